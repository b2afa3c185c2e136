use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::{Priority, TaskId, Trigger};

use super::expr::{Expr, Template};

/// A plan together with how everything in it will end.
#[derive(Debug, Clone)]
pub struct RandomPlan {
    /// The values of its parameters.
    pub params: BTreeMap<&'static str, Value>,
    /// How much there is of each resource.
    pub capacities: BTreeMap<&'static str, u32>,
    /// The tasks, each after the one above it; last those that calls make.
    pub tasks: Vec<RandomTask>,
}

/// A task of a random plan; others are named by their positions.
#[derive(Debug, Clone)]
pub struct RandomTask {
    /// The task and the number of its call that makes this one; else it is in the plan from the beginning.
    pub made_by: Option<(usize, usize)>,
    /// When its dependencies let it start.
    pub trigger: Trigger,
    /// What it depends on.
    pub needs: BTreeSet<usize>,
    /// The task above.
    pub parent: Option<usize>,
    /// What there is to do, and how that will end.
    pub script: Script,
    /// How urgent it is.
    pub priority: Priority,
    /// When it is due, in days.
    pub due: Option<u8>,
    /// Whether it is done at all.
    pub when: Option<Expr>,
    /// One item for each element of a list.
    pub items: Option<Items>,
    /// Its rounds.
    pub rounds: Option<Rounds>,
    /// Retries of its calls.
    pub retry: Option<RandomRetry>,
    /// The longest that each attempt may take, in milliseconds.
    pub timeout: Option<u64>,
    /// What it holds while it runs.
    pub resources: BTreeMap<&'static str, u32>,
    /// What it writes.
    pub writes: Vec<&'static str>,
    /// What it waits for before it starts.
    pub approval: Option<Decision>,
    /// Whether a recorded success may stand for it.
    pub is_cached: bool,
}

/// One item for each element of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Items {
    /// The list.
    pub list: Template,
    /// How many run at once.
    pub concurrency: Option<u32>,
}

/// Rounds of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounds {
    /// After so many more than one it has had enough.
    pub enough: u32,
    /// The most.
    pub most: u32,
    /// The pause between two, in milliseconds.
    pub delay: u64,
}

/// How often a call is started again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomRetry {
    /// All starts.
    pub attempts: u32,
    /// After which failures; empty for all.
    pub on: Vec<&'static str>,
    /// The first pause, in milliseconds; `None` for the usual one.
    pub delay: Option<u64>,
}

/// A decision, and what it will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is a question with options.
    pub is_question: bool,
    /// What it will be.
    pub verdict: Verdict,
}

/// What somebody decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Yes; to a question this answer.
    Granted(&'static str),
    /// No.
    Rejected,
    /// Nobody answers in time, and that is a no.
    Expired,
}

/// A tool call of a random task.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomCall {
    /// What it is given, and gives back. A call that is given `bad` fails.
    pub value: Template,
    /// Whether it is made at all.
    pub when: Option<Expr>,
    /// How often it fails in each round before it ends well; [`RandomCall::ALWAYS`] for ever.
    pub fails: u32,
    /// How it fails: `timeout` for a call that would go on for ever, and ends by its timeout.
    pub class: &'static str,
    /// The longest that it may take, in milliseconds.
    pub timeout: Option<u64>,
    /// How often it is started again.
    pub retry: Option<RandomRetry>,
    /// Whether its author says that it may be started again when nobody knows how it ended.
    pub idempotent: Option<bool>,
    /// What it waits for before it starts.
    pub approval: Option<Decision>,
    /// The tasks that it makes.
    pub makes: Vec<usize>,
    /// A task that the last of those both needs and is needed by: they are all refused.
    pub circle: Option<usize>,
    /// The name that its result has.
    pub name: Option<String>,
}

/// What there is to do for a task itself, and how that will end.
#[derive(Debug, Clone, PartialEq)]
pub enum Script {
    /// Tool calls.
    Calls {
        /// Whether they run at once.
        parallel: bool,
        /// The calls, in order.
        calls: Vec<RandomCall>,
    },
    /// Somebody ends it by hand; or nobody, where it has subtasks.
    Manual {
        /// Whether it ends well.
        good: bool,
        /// With which result.
        value: Value,
    },
    /// It ends by itself.
    Milestone,
}

impl RandomCall {
    /// Of a call that never ends well.
    pub const ALWAYS: u32 = 1000;

    /// Returns the name of the call's result in the context of its task.
    pub fn name(&self, number: usize) -> String {
        self.name.clone().unwrap_or_else(|| format!("c{number}"))
    }

    /// Returns what the tool of such a call comes to: `args` as it is given, and how many rounds of its task and failures in
    /// this one are behind it. The class of the failure, else the result.
    ///
    /// # Errors
    /// It fails.
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
    /// Returns the calls.
    pub fn calls(&self) -> &[RandomCall] {
        match &self.script {
            Script::Calls { calls, .. } => calls,
            Script::Manual { .. } | Script::Milestone => &[],
        }
    }

    /// Returns the calls, to change them.
    pub fn calls_mut(&mut self) -> &mut [RandomCall] {
        match &mut self.script {
            Script::Calls { calls, .. } => calls,
            Script::Manual { .. } | Script::Milestone => &mut [],
        }
    }

    /// Returns whether its calls run at once.
    pub fn is_parallel(&self) -> bool {
        matches!(self.script, Script::Calls { parallel: true, .. })
    }

    /// Returns whether everything that it depends on has ended before it starts.
    pub fn waits_for_all(&self) -> bool {
        matches!(self.trigger, Trigger::AllDone | Trigger::AllFinished)
    }
}

impl RandomPlan {
    /// Returns the id of the task at a position.
    pub fn id(position: usize) -> TaskId {
        TaskId::from(format!("t{position}"))
    }

    /// Returns the position of the task with an id, or of the one whose item it is.
    pub fn position(&self, id: &str) -> Option<usize> {
        let digits = id.strip_prefix('t')?;
        let position = digits.split('.').next()?.parse().ok()?;
        (position < self.tasks.len()).then_some(position)
    }

    /// Returns the task with an id, or the one whose item it is.
    pub fn task(&self, id: &str) -> Option<&RandomTask> {
        self.tasks.get(self.position(id)?)
    }

    /// Returns what is directly below a task.
    pub fn subtasks(&self, position: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.tasks.len()).filter(move |below| self.tasks[*below].parent == Some(position))
    }

    /// Returns what somebody decides about a task, or about one of its calls.
    pub fn verdict(&self, id: &str, call: Option<usize>) -> Option<Verdict> {
        let task = self.task(id)?;
        let decision = match call {
            Some(call) => task.calls().get(call)?.approval.as_ref(),
            None => task.approval.as_ref(),
        };
        decision.map(|decision| decision.verdict)
    }

    /// Returns what tasks, or items of such, that run at once use more of than there is, a line each.
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

    /// Adds a dependency unless it would close a circle; returns whether it did.
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

    /// Returns whether the beginnings and ends of all tasks can be put in an order: a task begins after what it depends on
    /// has ended and after the one above has begun, and ends after those below.
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

/// Returns whether two tasks write the same, by the paths that [`RandomTask::writes`] may have.
fn overlap(one: &[&str], other: &[&str]) -> bool {
    let is_in = |path: &str, of: &str| path == of || path.starts_with(&format!("{of}/"));
    one.iter().any(|path| other.iter().any(|of| is_in(path, of) || is_in(of, path)))
}
