//! Tools that are played: how long they take, how they end, and what is kept of those that live.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use taskpawl_model::schedule::Event;
use taskpawl_model::{CallEnd, CallError, CallRecord, CallSpec, Key, Report, StartedCall};

use super::happening::Happening;
use super::run::News;
use super::world::World;
use crate::random::Random;

/// A tool whose calls may be started again only where their author says so.
pub(super) const WORK: &str = "work";
/// A tool that only reads: its calls may be started again.
pub(super) const READ: &str = "read";
/// A tool that not every run has.
pub(super) const RARE: &str = "rare";

/// A call whose tool lives.
#[derive(Debug, Clone)]
pub(super) struct Living {
    pub(super) run: usize,
    pub(super) call: StartedCall,
    /// Somebody asked for its end.
    pub(super) is_killed: bool,
}

impl Living {
    /// Returns how it ends, and what the run hears of it.
    pub(super) fn end(self, random: &mut Random) -> Event {
        let StartedCall { key, attempt, call, task, .. } = self.call;
        let end = if self.is_killed && random.chance(75) {
            CallEnd::Interrupted { repeatable: is_repeatable(&call) }
        } else if is_good(&call.spec) {
            CallEnd::Succeeded(json!(format!("{task}/{}/{attempt}", call.id)))
        } else {
            let class = if call.spec.timeout.is_some() { "timeout" } else { "exit_code" };
            CallEnd::Failed {
                error: CallError { class: class.to_owned(), message: "as told".to_owned() },
                result: None,
            }
        };
        Event::Ended(Box::new(Report::new(key, attempt, call.id, end)))
    }
}

pub(super) fn is_good(spec: &CallSpec) -> bool {
    spec.args.get("good") != Some(&Value::Bool(false))
}

/// Returns whether a call may be started again though nobody knows how far it came.
pub(super) fn is_repeatable(call: &CallRecord) -> bool {
    call.spec.idempotent.unwrap_or(call.spec.tool_name == READ)
}

/// Returns how long a call takes; 0 when it ends in the turn that starts it.
pub(super) fn duration(call: &CallSpec, random: &mut Random) -> u64 {
    if call.args.contains_key("endless") {
        let timeout = call.timeout.map_or(40, |period| period.0.as_millis());
        return u64::try_from(timeout).unwrap_or(40);
    }
    match random.below(10) {
        0 | 1 => 0,
        9 => 100 + random.below_u64(400),
        _ => 1 + random.below_u64(80),
    }
}

/// Every tool that lives, by its number.
#[derive(Debug, Default)]
pub(super) struct Tools {
    pub(super) living: BTreeMap<usize, Living>,
    started: usize,
}

impl Tools {
    pub(super) fn start(&mut self, run: usize, call: StartedCall) -> usize {
        self.started += 1;
        self.living.insert(self.started, Living { run, call, is_killed: false });
        self.started
    }

    /// Asks for the end of the tools of a run, of one task or of all, and returns which are concerned.
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
    pub(super) fn start_tool(&mut self, run: usize, call: StartedCall, events: &mut VecDeque<Event>) {
        let (task, id, attempt) = (call.task.clone(), call.call.id.clone(), call.attempt);
        self.note(|| format!("run {run} starts {task}/{id}, attempt {attempt}"));
        self.coverage.add("tools started");
        let living: Vec<_> =
            self.tools.living.values().filter(|living| living.call.key == call.key).cloned().collect();
        self.oracle.start(&call, living.into_iter());
        let millis = duration(&call.call.spec, &mut self.random);
        let tool = self.tools.start(run, call);
        if millis == 0
            && let Some(living) = self.tools.living.remove(&tool)
        {
            events.push_back(living.end(&mut self.random));
        } else {
            self.after(millis, Happening::ToolEnds(tool));
        }
    }

    pub(super) fn kill_tools(&mut self, run: usize, task: Option<Key>) {
        for tool in self.tools.kill(run, task) {
            self.coverage.add("tools killed");
            self.within(60, Happening::ToolEnds(tool));
        }
    }

    pub(super) fn end_tool(&mut self, tool: usize) {
        let Some(living) = self.tools.living.remove(&tool) else { return };
        let run = living.run;
        let end = living.end(&mut self.random);
        if self.lives(run) {
            self.tell(run, News::Event(end));
        } else {
            self.coverage.add("ends that nobody heard");
        }
    }
}
