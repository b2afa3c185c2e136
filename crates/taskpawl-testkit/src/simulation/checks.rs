//! Checks of the simulated world, at the start of a tool, after commits and at the end of a run.

use std::collections::BTreeMap;

use taskpawl_model::command::{Report, StartedCall};
use taskpawl_model::task::{Status, Work};
use taskpawl_model::value::Key;
use taskpawl_model::view::{ViewResult, read_task};

use super::living::Living;
use super::world::World;
use crate::RandomTask;
use crate::invariants::broken_invariants;

/// Interval of full checks, in steps. Events are checked after each commit.
const FULL_CHECK: u64 = 8;

impl World {
    /// Checks the start of a tool.
    pub(super) fn check_start(&mut self, call: &StartedCall, round: u32) {
        let living: Vec<_> = self.tools.living.values().cloned().collect();
        let same = living.iter().filter(|living| living.call.key == call.key).cloned();
        self.oracle.start(call, same);
        // Commands of people may reset calls that have already succeeded.
        if !self.rules.hands {
            self.oracle.start_in_round(call, round);
        }
        let is_parallel = self.plan.task(call.task.as_str()).is_some_and(RandomTask::is_parallel);
        if !is_parallel && self.oracle.pauses.get(&call.task).is_some_and(|end| *end > self.time()) {
            self.fail(format!("`{}` goes on before its pause is over", call.task));
        }
        self.check_limits(call, &living);
    }

    /// Checks that the running tools and the new one together stay within the limits.
    fn check_limits(&mut self, call: &StartedCall, living: &[Living]) {
        let mut held = BTreeMap::from([(call.task.clone(), call.attempt)]);
        held.extend(living.iter().map(|living| (living.call.task.clone(), living.call.attempt)));
        // Cancelled attempts hold nothing any more, even if their tools are still running.
        held.retain(|task, attempt| {
            self.record(task).is_some_and(|record| {
                record.body.attempt == *attempt && record.body.state.status() == Status::InProgress
            })
        });
        let tasks: Vec<String> = held.keys().map(ToString::to_string).collect();
        for line in self.plan.broken_limits(&tasks) {
            // People may move items to another parent; they are no items then.
            if !self.rules.hands || !line.contains("items run at once") {
                self.fail(line);
            }
        }
    }

    pub(super) fn check_now_and_then(&mut self) {
        if self.step.is_multiple_of(FULL_CHECK) {
            self.check_all();
        } else {
            let number = self.random.below(self.plan.tasks.len());
            let id = crate::RandomPlan::id(number);
            self.look(|view| {
                Ok(view.key(id.as_str())?.map(|key| read_task(view, key)).transpose()?.is_some())
            });
        }
    }

    /// Checks all derived data of the store.
    pub(super) fn check_all(&mut self) {
        self.coverage.add("full checks");
        let lines = self.look(|view| {
            let mut keys = Vec::new();
            view.each_node(&mut |node| keys.push(node.key))?;
            for key in keys {
                read_task(view, key)?;
            }
            broken_invariants(view)
        });
        for line in lines {
            self.fail(line);
        }
    }

    pub(super) fn check_acknowledged(&mut self, reports: &[Report]) {
        let keys: Vec<Key> = reports.iter().map(|report| report.task).collect();
        let ids = self.look(|view| keys.iter().map(|key| view.id(*key)).collect::<ViewResult<Vec<_>>>());
        for (report, id) in reports.iter().zip(ids) {
            if let Some(id) = id {
                self.oracle.acknowledge(&id, report);
            }
        }
    }

    /// Checks that a finished run holds nothing and, unless it was stopped, has left no ready task.
    pub(super) fn check_end_of(&mut self, run: usize, was_stopped: bool) {
        if !self.tools.of_run(run).is_empty() {
            self.fail(format!("run {run} is over while its tools live"));
        }
        let (id, run_view) = (self.runs[run].id.clone(), self.runs[run].driven.run_view().clone());
        // An agent holds a place among the items of a list, say: the run does not wait for agents.
        let unmet: Vec<Key> = self.runs[run].driven.held_up_by_others().map(|(key, _)| key).collect();
        let (held, ready) = self.look(|view| {
            let query =
                |ready| taskpawl_model::view::Query { ready, ..taskpawl_model::view::Query::default() };
            let mut held = Vec::new();
            for key in view.find(&query(None))? {
                let task = view.task(key)?;
                if let Some(task) = task.filter(|task| super::run::holder(task) == Some(&id)) {
                    held.push(task.id);
                }
            }
            let mut ready = view.find(&query(Some(vec![Work::Calls])))?;
            ready.retain(|key| run_view.scope().is_none_or(|scope| scope.contains(key)));
            ready.retain(|key| !run_view.missing_tools().contains_key(key) && !unmet.contains(key));
            Ok((held, ready))
        });
        if !held.is_empty() {
            self.fail(format!("run {run} is over and holds {held:?}"));
        }
        let record = self.look(|view| view.run(&id));
        if let Some(record) = record.filter(|record| !record.ending.is_empty()) {
            self.fail(format!("run {run} is over and has not said how these ended: {:?}", record.ending));
        }
        if !was_stopped && !ready.is_empty() {
            self.fail(format!("run {run} is over while {ready:?} are ready"));
        }
    }
}
