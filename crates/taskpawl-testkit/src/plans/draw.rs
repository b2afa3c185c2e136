//! Random plans: tasks, their parents and their dependencies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Trigger};

use super::expr::Template;
use super::plan::{Decision, RandomCall, RandomPlan, RandomRetry, RandomTask, Script, Verdict};
use crate::random::Random;

/// Largest number of tasks in a random plan, without those that calls create.
const MAX_TASKS: usize = 25;

/// Paths that tasks write. Some contain others, so that overlaps occur.
const PATHS: [&str; 4] = ["out", "out/a.txt", "log", "src/*.rs"];

/// Names of resources.
const RESOURCES: [&str; 2] = ["disk", "gpu"];

impl RandomPlan {
    /// Returns the plan for a seed.
    pub fn new(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let mut plan = Self::graph(random);
        plan.add_limits(random);
        plan.add_makers(random);
        plan.add_flow(random);
        plan
    }

    /// Returns the plan for a seed with tasks, calls and dependencies only.
    pub fn plain(seed: u64) -> Self {
        let mut plan = Self::graph(&mut Random::new(seed));
        for task in &mut plan.tasks {
            (task.retry, task.approval) = (None, None);
            for call in task.calls_mut() {
                (call.retry, call.approval) = (None, None);
            }
        }
        plan
    }

    fn graph(random: &mut Random) -> Self {
        let count = 1 + random.below(MAX_TASKS);
        // Varies the plans between flat and deep, and between dense and sparse.
        let (below, density) = (random.below(80), 1 + random.below(3));
        let params = [
            ("flag", json!(random.chance(50))),
            ("n", json!(random.below(4))),
            ("word", json!(["a", "b"][random.below(2)])),
        ];
        let mut plan = Self {
            params: BTreeMap::from(params),
            capacities: RESOURCES.map(|name| (name, 1 + u32::from(random.chance(50)))).into(),
            tasks: (0..count).map(|position| task(position, below, random)).collect(),
        };
        for _ in 0..count * density {
            plan.add_need(random.below(count), random.below(count));
        }
        for task in &mut plan.tasks {
            task.trigger = trigger(!task.needs.is_empty(), random);
        }
        plan
    }

    fn add_limits(&mut self, random: &mut Random) {
        for task in self.tasks.iter_mut().filter(|task| !task.calls().is_empty()) {
            for (name, capacity) in &self.capacities {
                if random.chance(15) {
                    task.resources.insert(name, 1 + u32::from(*capacity > 1 && random.chance(40)));
                }
            }
            if random.chance(15) {
                task.writes.push(PATHS[random.below(PATHS.len())]);
            }
        }
    }

    /// Lets some calls create tasks.
    fn add_makers(&mut self, random: &mut Random) {
        for maker in 0..self.tasks.len() {
            let task = &self.tasks[maker];
            // In a parallel task it is not certain that a call runs once another one has failed.
            if task.is_parallel() || task.calls().is_empty() || !random.chance(12) {
                continue;
            }
            let call = random.below(task.calls().len());
            let dependents = self.tasks.iter().enumerate().filter(|(_, other)| {
                other.made_by.is_none()
                    && other.needs.contains(&maker)
                    && other.waits_for_all()
                    && other.parent.is_none()
            });
            let dependents: Vec<usize> = dependents.map(|(position, _)| position).collect();
            for _ in 0..=random.below(2) {
                self.add_made(maker, call, &dependents, random);
            }
            let circle = random.one_of(&dependents).copied().filter(|_| random.chance(15));
            self.tasks[maker].calls_mut()[call].circle = circle;
        }
    }

    fn add_made(&mut self, maker: usize, call: usize, dependents: &[usize], random: &mut Random) {
        let position = self.tasks.len();
        let mut task = task(position, 0, random);
        task.made_by = Some((maker, call));
        self.tasks.push(task);
        for _ in 0..random.below(3) {
            let on = random.below(position);
            // A task that another call creates may not exist yet.
            if self.tasks[on].made_by.is_none_or(|by| by == (maker, call)) {
                self.add_need(position, on);
            }
        }
        for dependent in dependents {
            if random.chance(40) {
                self.add_need(*dependent, position);
            }
        }
        self.tasks[position].trigger = trigger(!self.tasks[position].needs.is_empty(), random);
        self.tasks[maker].calls_mut()[call].makes.push(position);
    }
}

fn task(position: usize, below: usize, random: &mut Random) -> RandomTask {
    let parent = (position > 0 && random.chance(below)).then(|| random.below(position));
    RandomTask {
        made_by: None,
        trigger: Trigger::AllDone,
        needs: BTreeSet::new(),
        parent,
        script: script(random),
        priority: if random.chance(30) { Priority::ALL[random.below(4)] } else { Priority::Medium },
        due: random.chance(20).then(|| u8::try_from(random.below(9)).unwrap_or_default()),
        when: None,
        items: None,
        rounds: None,
        retry: random.chance(10).then(|| retry(random)),
        timeout: None,
        resources: BTreeMap::new(),
        writes: Vec::new(),
        approval: random.chance(6).then(|| decision(random)),
        is_cached: false,
    }
}

fn script(random: &mut Random) -> Script {
    match random.below(10) {
        0..=5 => {
            let count = 1 + random.below(3);
            let calls = (0..count).map(|number| call(number, random)).collect();
            Script::Calls { parallel: random.chance(40), calls }
        }
        6..=8 => Script::Manual { good: random.chance(75), value: given(random) },
        _ => Script::Milestone,
    }
}

fn call(number: usize, random: &mut Random) -> RandomCall {
    let idempotent = random.chance(60).then(|| random.chance(50));
    let (fails, class) = match random.below(100) {
        0..=74 => (0, "failed"),
        75..=89 => (1 + random.below_u64(2), ["failed", "io", "timeout"][random.below(3)]),
        _ => (u64::from(RandomCall::ALWAYS), ["failed", "io", "timeout"][random.below(3)]),
    };
    RandomCall {
        value: Template::Given(given(random)),
        when: None,
        fails: u32::try_from(fails).unwrap_or(RandomCall::ALWAYS),
        class,
        timeout: (fails > 0 && class == "timeout").then_some(40),
        retry: (fails > 0 && random.chance(60)).then(|| retry(random)),
        idempotent,
        approval: random.chance(4).then(|| decision(random)),
        makes: Vec::new(),
        circle: None,
        name: random.chance(20).then(|| format!("saved{number}")),
    }
}

fn retry(random: &mut Random) -> RandomRetry {
    let on = match random.below(4) {
        0 => vec!["timeout"],
        1 => vec!["failed", "timeout"],
        _ => Vec::new(),
    };
    let attempts = 1 + u32::from(random.chance(80)) + u32::from(random.chance(40));
    RandomRetry { attempts, on, delay: random.chance(70).then(|| 10 + random.below_u64(60)) }
}

fn decision(random: &mut Random) -> Decision {
    let verdict = match random.below(8) {
        0 => Verdict::Rejected,
        1 => Verdict::Expired,
        2..=4 => Verdict::Granted("blue"),
        _ => Verdict::Granted("red"),
    };
    Decision { is_question: verdict == Verdict::Expired || random.chance(50), verdict }
}

/// Returns a literal value.
pub(super) fn given(random: &mut Random) -> Value {
    match random.below(12) {
        0..=4 => json!(random.below(4)),
        5..=8 => json!(["a", "b", "c d", "$5 {x}"][random.below(4)]),
        9 => json!(random.chance(50)),
        _ => json!((0..random.below(4)).map(|_| random.below(3)).collect::<Vec<_>>()),
    }
}

fn trigger(has_needs: bool, random: &mut Random) -> Trigger {
    match random.below(6) {
        3 if has_needs => Trigger::AnyDone,
        4 if has_needs => Trigger::AnyFailed,
        5 => Trigger::AllFinished,
        _ => Trigger::AllDone,
    }
}
