use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use taskpawl_model::{
    CallId, CallSpec, Mode, NewCall, Period, Plan, PlanTask, Priority, TaskId, TaskSpec, Timestamp, Trigger,
};

use crate::random::Random;

/// The most tasks of a random plan.
const MOST_TASKS: usize = 25;

/// A plan together with how everything in it will end.
#[derive(Debug, Clone)]
pub struct RandomPlan {
    /// The tasks, each after the one above it.
    pub tasks: Vec<RandomTask>,
}

/// A task of a random plan; others are named by their positions.
#[derive(Debug, Clone)]
pub struct RandomTask {
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
}

/// A tool call of a random task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomCall {
    /// Whether it ends well.
    pub good: bool,
    /// Whether it would go on for ever, and ends by its timeout.
    pub endless: bool,
    /// Whether its author says that it may be started again.
    pub idempotent: Option<bool>,
}

/// What there is to do for a task itself, and how that will end.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    },
    /// It ends by itself.
    Milestone,
}

impl RandomPlan {
    /// Returns the plan of a seed.
    pub fn new(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let count = 1 + random.below(MOST_TASKS);
        // Flat and deep plans, dense and thin ones.
        let (below, density) = (random.below(80), 1 + random.below(3));
        let mut plan = Self { tasks: (0..count).map(|position| task(position, below, random)).collect() };
        for _ in 0..count * density {
            plan.add_need(random.below(count), random.below(count));
        }
        for task in &mut plan.tasks {
            task.trigger = trigger(!task.needs.is_empty(), random);
        }
        plan
    }

    /// Returns the id of the task at a position.
    pub fn id(position: usize) -> TaskId {
        TaskId::from(format!("t{position}"))
    }

    /// Returns what is directly below a task.
    pub fn subtasks(&self, position: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.tasks.len()).filter(move |below| self.tasks[*below].parent == Some(position))
    }

    /// Adds a dependency unless it would close a circle.
    fn add_need(&mut self, task: usize, on: usize) {
        self.tasks[task].needs.insert(on);
        if !self.has_order() {
            self.tasks[task].needs.remove(&on);
        }
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

    /// Returns the plan in the form in which it is applied. Its calls name `tool` and carry their script in their arguments.
    pub fn to_plan(&self, tool: &str) -> Plan {
        let tasks = self.tasks.iter().enumerate().map(|(position, task)| plan_task(position, task, tool));
        Plan { version: 1, tasks: tasks.collect(), ..Plan::default() }
    }
}

fn task(position: usize, below: usize, random: &mut Random) -> RandomTask {
    let parent = (position > 0 && random.chance(below)).then(|| random.below(position));
    RandomTask {
        trigger: Trigger::AllDone,
        needs: BTreeSet::new(),
        parent,
        script: script(random),
        priority: if random.chance(30) { Priority::ALL[random.below(4)] } else { Priority::Medium },
        due: random.chance(20).then(|| u8::try_from(random.below(9)).unwrap_or_default()),
    }
}

fn script(random: &mut Random) -> Script {
    match random.below(10) {
        0..=5 => {
            let count = 1 + random.below(3);
            let calls = (0..count).map(|_| call(random)).collect();
            Script::Calls { parallel: random.chance(40), calls }
        }
        6..=8 => Script::Manual { good: random.chance(75) },
        _ => Script::Milestone,
    }
}

fn call(random: &mut Random) -> RandomCall {
    let good = random.chance(85);
    let idempotent = random.chance(60).then(|| random.chance(50));
    RandomCall { good, endless: !good && random.chance(30), idempotent }
}

fn trigger(has_needs: bool, random: &mut Random) -> Trigger {
    match random.below(6) {
        3 if has_needs => Trigger::AnyDone,
        4 if has_needs => Trigger::AnyFailed,
        5 => Trigger::AllFinished,
        _ => Trigger::AllDone,
    }
}

fn plan_task(position: usize, task: &RandomTask, tool: &str) -> PlanTask {
    let (parallel, calls) = match &task.script {
        Script::Calls { parallel, calls } => (*parallel, calls.as_slice()),
        Script::Manual { .. } | Script::Milestone => (false, &[][..]),
    };
    let new_call = |(number, call): (usize, &RandomCall)| {
        let mut spec = CallSpec { tool_name: tool.to_owned(), ..CallSpec::default() };
        spec.args.insert("good".to_owned(), json!(call.good));
        spec.args.insert("pauses".to_owned(), json!((position + number) % 3));
        spec.idempotent = call.idempotent;
        if call.endless {
            spec.args.insert("endless".to_owned(), json!(true));
            spec.timeout = Some(Period(Duration::from_millis(40)));
        }
        NewCall { id: Some(CallId::from(format!("c{number}"))), spec }
    };
    PlanTask {
        id: Some(RandomPlan::id(position)),
        spec: TaskSpec {
            name: format!("task {position}"),
            trigger: Some(task.trigger),
            mode: parallel.then_some(Mode::Parallel),
            milestone: task.script == Script::Milestone,
            priority: task.priority,
            due_date: task.due.and_then(|days| Timestamp::from_timestamp(86_400 * i64::from(days), 0)),
            ..TaskSpec::default()
        },
        calls: calls.iter().enumerate().map(new_call).collect(),
        needs: task.needs.iter().copied().collect(),
        parent: task.parent,
        ..PlanTask::default()
    }
}
