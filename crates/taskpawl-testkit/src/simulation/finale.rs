//! The end of a simulation: everybody has stopped acting, and runs without disturbance finish what is left.

use std::collections::BTreeMap;

use taskpawl_model::{CallStatus, Phase, Query, Status, TaskId, View, ViewResult, Work};

use super::tools::is_repeatable;
use super::world::World;
use crate::interpreter::{Expected, interpret};

/// Longer than any lease.
const A_DAY: u64 = 86_400_000;

/// What is left of the task of a plan.
#[derive(Debug, Clone)]
struct Left {
    id: TaskId,
    status: Status,
}

impl World {
    pub(super) fn finale(&mut self) {
        self.is_quiet = true;
        self.now += A_DAY;
        self.run_undisturbed();
        // Each round ends at least one task, and none begins again.
        for _ in 0..self.plan.tasks.len() * 4 + 8 {
            if self.is_broken() || !self.decide_what_waits() {
                break;
            }
            self.run_undisturbed();
        }
        if self.is_broken() {
            return;
        }
        self.check_all();
        if self.rules.hands {
            self.coverage.add("simulations with hands");
        } else {
            self.coverage.add("simulations compared with the interpreter");
            self.compare();
        }
    }

    fn run_undisturbed(&mut self) {
        self.add_run(self.now);
        self.go_on();
        if self.is_broken() {
            return;
        }
        let held =
            self.look(|view| view.find(&Query { status: vec![Status::InProgress], ..Query::default() }));
        if !held.is_empty() {
            self.fail(format!("nobody acts any more, and {held:?} are in progress"));
        }
        let open = self.look(|view| view.open_runs());
        if !open.is_empty() {
            self.fail(format!("nobody acts any more, and runs are open: {open:?}"));
        }
        let query = Query { ready: Some(vec![Work::Calls]), ..Query::default() };
        let ready = self.look(|view| view.find(&query));
        if !ready.is_empty() {
            self.fail(format!("a run with every tool ended, and {ready:?} are ready"));
        }
    }

    /// Does what agents and people have to do; false when there is nothing.
    fn decide_what_waits(&mut self) -> bool {
        let mut has_decided = false;
        while !self.is_broken() && (self.end_a_manual_task() || self.decide_an_interrupted_task()) {
            has_decided = true;
        }
        has_decided
    }

    fn compare(&mut self) {
        let expected = interpret(&self.plan);
        let left = self.look(|view| {
            let mut left = Vec::new();
            for key in view.find(&Query::default())? {
                if let Some(task) = view.task(key)? {
                    left.push(Left { id: task.id, status: task.body.state.status() });
                }
            }
            Ok(left)
        });
        let found: BTreeMap<usize, Status> =
            left.iter().filter_map(|task| Some((number(task.id.as_str())?, task.status))).collect();
        for (position, status) in &expected.states {
            if found.get(position) != Some(status) {
                self.fail(format!("t{position} is {:?}, expected {status:?}", found.get(position)));
            }
        }
        self.compare_starts(&expected);
        let lines = self.look(|view| wrong_results(view));
        for line in lines {
            self.fail(line);
        }
    }

    /// Each call that belongs to the plan's way was started, once where nothing was killed and nobody decided.
    fn compare_starts(&mut self, expected: &Expected) {
        let mut started: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for ((task, call), count) in &self.oracle.starts {
            if let (Some(task), Some(call)) = (number(task.as_str()), number(call.as_str())) {
                started.insert((task, call), *count);
            }
        }
        let disturbed = ["crashes", "signals"].map(|what| self.coverage.of(what)) != [0, 0];
        for call in expected.starts.iter().chain(started.keys()) {
            let (is_wanted, count) =
                (expected.starts.contains(call), started.get(call).copied().unwrap_or(0));
            let was_decided = self.oracle.decided.contains_key(format!("t{}", call.0).as_str());
            // One call that failed ends a task; those beside it may not have been started yet, and then never are.
            let has_failed = expected.states.get(&call.0) == Some(&Status::Failed);
            let is_right = match (is_wanted, disturbed || was_decided) {
                (true, false) => count == 1 || (count == 0 && has_failed),
                (true, true) => count >= 1 || was_decided || has_failed,
                (false, _) => count == 0,
            };
            if !is_right {
                let line = format!("call {} of t{} was started {count} times", call.1, call.0);
                self.oracle.fail(line);
            }
        }
    }
}

fn number(id: &str) -> Option<usize> {
    id.get(1..)?.parse().ok()
}

/// Returns the calls that ended well and do not have the result of the attempt that ended them.
fn wrong_results(view: &dyn View) -> ViewResult<Vec<String>> {
    let mut wrong = Vec::new();
    for key in view.find(&Query::default())? {
        let (Some(task), Some(node)) = (view.task(key)?, view.node(key)?) else { continue };
        for call in view.calls(key)? {
            let prefix = format!("{}/{}/", task.id, call.id);
            let result = call.body.result.as_ref().and_then(|result| result.as_str());
            let is_right = match call.body.status {
                CallStatus::Succeeded => {
                    // Without a result where somebody said how it ended.
                    result.is_none_or(|result| result.starts_with(&prefix)) && call.body.finished_at.is_some()
                }
                CallStatus::Running => false,
                CallStatus::Interrupted => !is_repeatable(&call),
                CallStatus::Pending | CallStatus::Failed | CallStatus::Skipped | CallStatus::Cancelled => {
                    node.phase != Phase::Done
                }
            };
            if !is_right {
                wrong.push(format!("call `{}` of `{}`: {:?}", call.id, task.id, call.body));
            }
        }
    }
    Ok(wrong)
}
