//! Simulated tools: their durations, their ends, and the table of running ones.

use std::collections::BTreeMap;

use serde_json::Value;
use taskpawl_model::command::StartedCall;
use taskpawl_model::value::Key;

use super::event::SimulatedEvent;
use super::living::Living;
use super::report::Fault;
use super::world::World;
use crate::random::Random;
use crate::{RandomCall, RandomTask};

/// A tool whose calls are only repeatable if their author says so.
pub(super) const WORK: &str = crate::TOOL;
/// A tool that some runs do not have.
pub(super) const RARE: &str = "rare";

/// Returns the duration of a call in milliseconds; 0 if it ends in the turn that starts it.
fn duration(random: &mut Random) -> u64 {
    match random.below(10) {
        0 | 1 => 0,
        9 => 100 + random.below_u64(400),
        _ => 1 + random.below_u64(80),
    }
}

/// All running tools, by number.
#[derive(Debug, Default)]
pub(super) struct Tools {
    pub(super) living: BTreeMap<usize, Living>,
    started: usize,
}

impl Tools {
    fn start(&mut self, living: Living) -> usize {
        self.started += 1;
        self.living.insert(self.started, living);
        self.started
    }

    /// Requests the end of the tools of a run, or only of one task; returns their numbers.
    pub(super) fn kill(&mut self, run: usize, task: Option<Key>) -> Vec<usize> {
        let concerned = self
            .living
            .iter_mut()
            .filter(|(_, living)| living.run == run && task.is_none_or(|task| living.call.key == task));
        concerned
            .map(|(number, living)| {
                living.is_killed = true;
                *number
            })
            .collect()
    }

    pub(super) fn of_run(&self, run: usize) -> Vec<usize> {
        let own = self.living.iter().filter(|(_, living)| living.run == run);
        own.map(|(number, _)| *number).collect()
    }
}

impl World {
    pub(super) fn start_tool(&mut self, run: usize, call: StartedCall) {
        let (task, id, attempt) = (call.task.clone(), call.call.id.clone(), call.attempt);
        self.note(|| format!("run {run} starts {task}/{id}, attempt {attempt}"));
        self.coverage.add("tools started");
        let record = self.record(&task).filter(|_| !self.has_fault(Fault::ForgottenRounds));
        let round = record.map_or(0, |record| record.body.progress.round);
        self.note_construct(&call, round);
        self.check_start(&call, round);
        let (args, failures) = (Value::Object(call.args.clone()), call.call.body.failures);
        let outcome = RandomCall::play(&args, round, failures);
        let millis = match &outcome {
            Err(class) if class == "timeout" => self.time_left(&call),
            _ => duration(&mut self.random),
        };
        let since = self.now;
        let tool = self.tools.start(Living { run, call, since, outcome, is_killed: false });
        if millis == 0
            && let Some(living) = self.tools.living.remove(&tool)
        {
            let ended = living.end(0, &mut self.random);
            self.runs[run].inbox.push_back(ended);
        } else {
            self.after(millis, SimulatedEvent::ToolEnds(tool));
        }
    }

    fn note_construct(&mut self, call: &StartedCall, round: u32) {
        let has_limits = |task: &RandomTask| !task.resources.is_empty() || !task.writes.is_empty();
        let met = [
            (round > 0, "starts in later rounds"),
            (call.call.body.failures > 0, "starts after failures"),
            (call.task.as_str().contains('.'), "starts of items"),
            (call.call.spec.emit, "starts that make tasks"),
            (self.plan.task(call.task.as_str()).is_some_and(has_limits), "starts with limits"),
        ];
        met.into_iter().filter(|(is_met, _)| *is_met).for_each(|(_, what)| self.coverage.add(what));
    }

    /// Records which constructs were active when a run was killed.
    pub(super) fn note_killed(&mut self, run: usize) {
        let tools: Vec<Living> =
            self.tools.of_run(run).iter().filter_map(|tool| self.tools.living.get(tool)).cloned().collect();
        for living in tools {
            let call = living.call;
            let round = self.record(&call.task).map_or(0, |record| record.body.progress.round);
            let met = [
                (round > 0, "crashes in later rounds"),
                (call.call.body.failures > 0, "crashes after failures"),
                (call.task.as_str().contains('.'), "crashes among items"),
                (call.call.spec.emit, "crashes while tasks are made"),
            ];
            met.into_iter().filter(|(is_met, _)| *is_met).for_each(|(_, what)| self.coverage.add(what));
        }
    }

    /// Returns the time after which a call that never finishes is ended by its timeout.
    fn time_left(&self, call: &StartedCall) -> u64 {
        let own = call.call.spec.timeout.and_then(|period| u64::try_from(period.0.as_millis()).ok());
        let left = call.deadline.map(|deadline| (deadline - self.time()).num_milliseconds().max(0));
        let left = left.and_then(|left| u64::try_from(left).ok());
        own.into_iter().chain(left).min().unwrap_or(40)
    }

    pub(super) fn kill_tools(&mut self, run: usize, task: Option<Key>) {
        for tool in self.tools.kill(run, task) {
            self.coverage.add("tools killed");
            self.within(60, SimulatedEvent::ToolEnds(tool));
        }
    }

    pub(super) fn end_tool(&mut self, tool: usize) {
        let Some(living) = self.tools.living.remove(&tool) else { return };
        let run = living.run;
        let lasted = self.now - living.since;
        let end = living.end(lasted, &mut self.random);
        if self.lives(run) {
            self.tell(run, end);
        } else {
            self.coverage.add("ends that nobody heard");
        }
    }
}
