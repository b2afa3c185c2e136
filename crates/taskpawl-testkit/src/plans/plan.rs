use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Trigger};
use taskpawl_model::value::TaskId;

use super::expr::{Expr, Template};

/// A plan together with the scripted outcome of everything in it.
#[derive(Debug, Clone)]
pub struct RandomPlan {
    /// Values of its parameters.
    pub params: BTreeMap<&'static str, Value>,
    /// Capacity of each resource.
    pub capacities: BTreeMap<&'static str, u32>,
    /// The tasks: parents come before their subtasks, tasks that calls create come last.
    pub tasks: Vec<RandomTask>,
}

/// A task of a random plan. Other tasks are referred to by position.
#[derive(Debug, Clone)]
pub struct RandomTask {
    /// The task and the number of the call that creates this task; `None` if it is in the plan from the start.
    pub made_by: Option<(usize, usize)>,
    /// Condition on the dependencies.
    pub trigger: Trigger,
    /// Positions of the dependencies.
    pub needs: BTreeSet<usize>,
    /// Position of the parent.
    pub parent: Option<usize>,
    /// Work of the task, with its outcome.
    pub script: Script,
    /// Priority.
    pub priority: Priority,
    /// Due date, in days since 1970.
    pub due: Option<u8>,
    /// Condition for the task.
    pub when: Option<Expr>,
    /// Makes the task run once per item of a list.
    pub items: Option<Items>,
    /// Makes the task repeat its calls.
    pub rounds: Option<Rounds>,
    /// Default for the retries of its calls.
    pub retry: Option<RandomRetry>,
    /// Time limit of each attempt, in milliseconds.
    pub timeout: Option<u64>,
    /// Units of resources that it holds while it runs.
    pub resources: BTreeMap<&'static str, u32>,
    /// Paths that it declares to write.
    pub writes: Vec<&'static str>,
    /// Approval that it waits for before it starts.
    pub approval: Option<Decision>,
    /// True if it uses the cache.
    pub is_cached: bool,
}

/// The items of a task that runs once per item.
#[derive(Debug, Clone, PartialEq)]
pub struct Items {
    /// The list of items.
    pub list: Template,
    /// Number of items that run at the same time.
    pub concurrency: Option<u32>,
}

/// The rounds of a task that repeats its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounds {
    /// The round, from 0, after which its condition holds.
    pub enough: u32,
    /// Largest number of rounds.
    pub most: u32,
    /// Delay between two rounds, in milliseconds.
    pub delay: u64,
}

/// Retry policy of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomRetry {
    /// Number of attempts, including the first one.
    pub attempts: u32,
    /// Error classes that are retried; empty for all.
    pub on: Vec<&'static str>,
    /// First delay, in milliseconds; `None` for the default.
    pub delay: Option<u64>,
}

/// An approval with its scripted verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// True if it is a question with options.
    pub is_question: bool,
    /// The scripted verdict.
    pub verdict: Verdict,
}

/// Verdict about an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Approved; for a question with this answer.
    Granted(&'static str),
    /// Rejected.
    Rejected,
    /// Not answered in time, which counts as rejected.
    Expired,
}

/// A tool call of a random task.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomCall {
    /// Argument of the call, which is also its result. A call with the argument `bad` fails.
    pub value: Template,
    /// Condition for the call.
    pub when: Option<Expr>,
    /// Number of failures in each round before the call succeeds; [`RandomCall::ALWAYS`] if it never does.
    pub fails: u32,
    /// Error class of its failures. A call with `timeout` never finishes, and is ended by its timeout.
    pub class: &'static str,
    /// Time limit, in milliseconds.
    pub timeout: Option<u64>,
    /// Retry policy.
    pub retry: Option<RandomRetry>,
    /// True if its author declares that it may be repeated if its outcome is unknown.
    pub idempotent: Option<bool>,
    /// Approval that it waits for before it starts.
    pub approval: Option<Decision>,
    /// Positions of the tasks that it creates.
    pub makes: Vec<usize>,
    /// A task that the last created task both needs and is needed by. The cycle makes the call fail.
    pub circle: Option<usize>,
    /// Name of its result in the context of the task.
    pub name: Option<String>,
}

/// The work of a task, with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub enum Script {
    /// The task makes tool calls.
    Calls {
        /// True if the calls run in parallel.
        parallel: bool,
        /// The calls, in order.
        calls: Vec<RandomCall>,
    },
    /// The task is manual. A task with subtasks instead ends with them.
    Manual {
        /// True if it succeeds.
        good: bool,
        /// Its result.
        value: Value,
    },
    /// The task ends as soon as its dependencies allow it.
    Milestone,
}

impl RandomCall {
    /// Value of `fails` for a call that never succeeds.
    pub const ALWAYS: u32 = 1000;

    /// Returns the name of the call's result in the context of its task.
    pub fn name(&self, number: usize) -> String {
        self.name.clone().unwrap_or_else(|| format!("c{number}"))
    }

    /// Returns the outcome of a start of such a call. `args` are its arguments, `round` is the number of completed
    /// rounds of the task, and `failures` the number of failures in this round.
    ///
    /// # Errors
    /// The error class, if the call fails.
    pub fn play(args: &Value, round: u32, failures: u32) -> Result<Value, String> {
        let fails = args["fails"].as_u64().unwrap_or_default();
        if args["value"] == "bad" {
            return Err("failed".to_owned());
        }
        if u64::from(failures) < fails {
            return Err(args["class"].as_str().unwrap_or("failed").to_owned());
        }
        let mut result = json!({"value": args["value"], "round": round});
        if let Some(tasks) = args.get("makes") {
            result["tasks"] = tasks.clone();
        }
        Ok(result)
    }
}

impl RandomTask {
    /// Returns the calls; empty for tasks without any.
    pub fn calls(&self) -> &[RandomCall] {
        match &self.script {
            Script::Calls { calls, .. } => calls,
            Script::Manual { .. } | Script::Milestone => &[],
        }
    }

    /// Returns the calls for modification.
    pub fn calls_mut(&mut self) -> &mut [RandomCall] {
        match &mut self.script {
            Script::Calls { calls, .. } => calls,
            Script::Manual { .. } | Script::Milestone => &mut [],
        }
    }

    /// Returns whether the calls run in parallel.
    pub fn is_parallel(&self) -> bool {
        matches!(self.script, Script::Calls { parallel: true, .. })
    }

    /// Returns whether all dependencies have ended before the task starts.
    pub fn waits_for_all(&self) -> bool {
        matches!(self.trigger, Trigger::AllDone | Trigger::AllFinished)
    }
}

impl RandomPlan {
    /// Returns the id of the task at a position.
    pub fn id(position: usize) -> TaskId {
        TaskId::from(format!("t{position}"))
    }

    /// Returns the position of the task with this id, or of the task that it is an item of.
    pub fn position(&self, id: &str) -> Option<usize> {
        let digits = id.strip_prefix('t')?;
        let position = digits.split('.').next()?.parse().ok()?;
        (position < self.tasks.len()).then_some(position)
    }

    /// Returns the task with this id, or the task that it is an item of.
    pub fn task(&self, id: &str) -> Option<&RandomTask> {
        self.tasks.get(self.position(id)?)
    }

    /// Returns the positions of the direct subtasks.
    pub fn subtasks(&self, position: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.tasks.len()).filter(move |below| self.tasks[*below].parent == Some(position))
    }

    /// Returns the scripted verdict about a task, or about one of its calls.
    pub fn verdict(&self, id: &str, call: Option<usize>) -> Option<Verdict> {
        let task = self.task(id)?;
        let decision = match call {
            Some(call) => task.calls().get(call)?.approval.as_ref(),
            None => task.approval.as_ref(),
        };
        decision.map(|decision| decision.verdict)
    }

    /// Returns the limits that tasks or items exceed if they run at the same time, one per line.
    pub fn broken_limits(&self, ids: &[String]) -> Vec<String> {
        let mut lines = Vec::new();
        let tasks: Vec<(&String, &RandomTask)> =
            ids.iter().filter_map(|id| Some((id, self.task(id)?))).collect();
        for (name, capacity) in &self.capacities {
            let units: u32 = tasks.iter().filter_map(|(_, task)| task.resources.get(name)).sum();
            if units > *capacity {
                lines.push(format!("{ids:?} hold {units} units of `{name}`, and there are {capacity}"));
            }
        }
        for (position, (id, task)) in tasks.iter().enumerate() {
            let others = &tasks[position + 1..];
            let is_beside = |(_, other): &(&String, &RandomTask)| overlap(&task.writes, &other.writes);
            if let Some((other, _)) = others.iter().find(|other| is_beside(other)) {
                lines.push(format!("{id} and {other} run at once and write the same"));
            }
            let of = |id: &str| self.position(id).filter(|_| id.contains('.'));
            let items = tasks.iter().filter(|(other, _)| of(id).is_some() && of(other) == of(id)).count();
            let most = task.items.as_ref().and_then(|items| items.concurrency);
            if most.is_some_and(|most| items > usize::try_from(most).unwrap_or(usize::MAX)) {
                lines.push(format!("{items} items run at once beside {id}"));
            }
        }
        lines
    }

    /// Adds a dependency, unless it would close a cycle. Returns whether the dependency exists afterwards.
    pub(super) fn add_need(&mut self, task: usize, on: usize) -> bool {
        if !self.tasks[task].needs.insert(on) {
            return true;
        }
        let is_right = self.has_order();
        if !is_right {
            self.tasks[task].needs.remove(&on);
        }
        is_right
    }

    /// Returns whether starts and ends of all tasks can be ordered. A task starts after its dependencies have ended and
    /// its parent has started, and it ends after its subtasks.
    fn has_order(&self) -> bool {
        let (mut begun, mut over) = (BTreeSet::new(), BTreeSet::new());
        loop {
            let before = begun.len() + over.len();
            for (position, task) in self.tasks.iter().enumerate() {
                if task.needs.is_subset(&over) && task.parent.is_none_or(|parent| begun.contains(&parent)) {
                    begun.insert(position);
                }
                if begun.contains(&position) && self.subtasks(position).all(|below| over.contains(&below)) {
                    over.insert(position);
                }
            }
            if over.len() == self.tasks.len() {
                return true;
            }
            if begun.len() + over.len() == before {
                return false;
            }
        }
    }
}

/// Returns whether two tasks declare to write the same path. Only supports the kinds of paths in random plans.
fn overlap(one: &[&str], other: &[&str]) -> bool {
    let is_in = |path: &str, of: &str| path == of || path.starts_with(&format!("{of}/"));
    one.iter().any(|path| other.iter().any(|of| is_in(path, of) || is_in(of, path)))
}
