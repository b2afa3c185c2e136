//! End of a simulation: all actors have stopped, and undisturbed runs complete the plan.

use taskpawl_model::task::{CallStatus, Status, StatusKind, Work};
use taskpawl_model::value::{CallId, TaskId};
use taskpawl_model::view::{Query, View, ViewResult};

use super::living::is_repeatable;
use super::world::World;
use crate::interpreter::{Expected, Found, differences, interpret};

/// A day in milliseconds, longer than any lease.
const A_DAY: u64 = 86_400_000;

impl World {
    pub(super) fn finale(&mut self) {
        self.is_quiet = true;
        self.now += A_DAY;
        self.run_undisturbed();
        // Each round ends at least one task, and no task is restarted, so the number of rounds is bounded.
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

    /// Performs the pending actions of agents and people; false if there are none.
    fn decide_what_waits(&mut self) -> bool {
        let mut has_decided = false;
        while !self.is_broken()
            && (self.end_a_manual_task() || self.decide_an_interrupted_task() || self.decide_a_question())
        {
            has_decided = true;
        }
        // Requests that no actor will answer expire.
        if !has_decided && self.is_asked() {
            self.now += A_DAY;
            return true;
        }
        has_decided
    }

    fn compare(&mut self) {
        let expected = interpret(&self.plan);
        for line in self.look(|view| errors(view)) {
            self.note(|| line);
        }
        let mut found = self.look(|view| found(view));
        let count = |((task, call), count): (&(TaskId, CallId), &usize)| {
            ((task.to_string(), call.to_string()), u32::try_from(*count).unwrap_or(u32::MAX))
        };
        found.starts = self.oracle.starts.iter().map(count).collect();
        self.allow_disturbances(&expected, &mut found);
        for line in differences(&expected, &found).into_iter().chain(self.look(|view| unsettled_calls(view)))
        {
            self.fail(line);
        }
    }

    /// Adjusts the number of starts for disturbances: killed calls are started again, and a call may never start if a
    /// person decided about its task.
    fn allow_disturbances(&self, expected: &Expected, found: &mut Found) {
        let disturbed = ["crashes", "signals"].map(|what| self.coverage.of(what)) != [0, 0];
        for (name, (least, most)) in &expected.starts {
            let was_decided = self.oracle.decided.contains_key(name.0.as_str());
            let Some(count) = found.starts.get_mut(name).filter(|_| disturbed || was_decided) else {
                if was_decided {
                    found.starts.insert(name.clone(), *least);
                }
                continue;
            };
            if *most > 0 && *count > *most {
                *count = *most;
            }
            if was_decided || expected.states.get(&name.0) == Some(&Status::Failed) {
                *count = (*count).max(*least);
            }
        }
    }
}

fn found(view: &dyn View) -> ViewResult<Found> {
    let mut found = Found::default();
    for key in view.find(&Query::default())? {
        let Some(task) = view.task(key)? else { continue };
        found.states.insert(task.id.to_string(), task.body.state.status());
        for call in view.calls(key)?.into_iter().filter(|call| call.body.status == CallStatus::Succeeded) {
            if let Some(result) = call.body.into_inner().result {
                found.results.insert((task.id.to_string(), call.id.to_string()), result);
            }
        }
    }
    Ok(found)
}

/// Returns the statuses and errors of tasks and calls, for the trace.
fn errors(view: &dyn View) -> ViewResult<Vec<String>> {
    let mut errors = Vec::new();
    for key in view.find(&Query::default())? {
        let Some(task) = view.task(key)? else { continue };
        errors.push(format!("{}: {:?}", task.id, task.body.state));
        let failed =
            view.calls(key)?.into_iter().filter_map(|call| Some((call.id, call.body.into_inner().error?)));
        errors.extend(failed.map(|(call, error)| format!("{}/{call}: {error:?}", task.id)));
    }
    Ok(errors)
}

/// Returns the calls whose status contradicts that of their task.
fn unsettled_calls(view: &dyn View) -> ViewResult<Vec<String>> {
    let mut wrong = Vec::new();
    for key in view.find(&Query::default())? {
        let (Some(task), Some(node)) = (view.task(key)?, view.node(key)?) else { continue };
        // The calls of a task that runs once per item are executed by its items.
        for call in view.calls(key)?.into_iter().filter(|_| task.spec.for_each.is_none()) {
            let is_right = match call.body.status {
                CallStatus::Succeeded => call.body.finished_at.is_some(),
                CallStatus::Running => false,
                CallStatus::Interrupted => !is_repeatable(&call),
                CallStatus::Skipped => true,
                CallStatus::Pending | CallStatus::Failed | CallStatus::Cancelled => {
                    node.status_kind != StatusKind::Done
                }
            };
            if !is_right {
                wrong.push(format!("call `{}` of `{}`: {:?}", call.id, task.id, call.body));
            }
        }
    }
    Ok(wrong)
}
