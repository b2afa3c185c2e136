//! Scheduled happenings of a simulation.

use std::collections::BTreeMap;

use taskpawl_model::command::{Answer, Command, Report, Round};
use taskpawl_model::value::{Key, RunId, TaskId};

/// Something that happens at a point in simulated time. Runs and tools are referred to by number.
#[derive(Debug)]
pub(super) enum SimulatedEvent {
    /// A process starts a run: it writes the run record and looks for dead runs.
    RunStarts(usize),
    /// The commit of a recovery.
    Recovery { run: usize, is_first: bool, commands: Vec<(Option<RunId>, Command)> },
    /// The run has finished its recovery and loads the ready tasks.
    RunBegins(usize),
    /// The committer processes the round of a run.
    Commit { run: usize, round: Box<Round> },
    /// A run learns that its round is durable.
    Answer { run: usize, answer: Box<Answer>, reports: Vec<Report> },
    /// A run processes its inbox.
    Turn(usize),
    /// A pause of a run is over, unless it has woken up since.
    Tick { run: usize, pause: u64 },
    /// The approver of a run decides about a task.
    ApproverDecides { run: usize, key: Key },
    /// A run is asked to stop, or to stop harder.
    Signal(usize),
    /// A run is killed.
    Crash(usize),
    /// The supervisor of a killed run has ended the tools, and the lock is released.
    ToolsGone(usize),
    /// A tool ends.
    ToolEnds(usize),
    /// An agent acts, and then `more` times again.
    Agent { agent: usize, more: usize },
    /// An agent reports the end of a task that it had claimed.
    AgentReports(Held),
    /// A person gives a command, and then `more` further ones.
    Hand { more: usize },
}

/// A task that an agent claimed, as far as the agent knows.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) agent: usize,
    pub(super) task: TaskId,
    pub(super) attempt: u32,
}

/// Future happenings in order. Those at the same time happen in the order in which they were scheduled.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BTreeMap<(u64, u64), SimulatedEvent>,
    planned: u64,
}

impl Agenda {
    pub(super) fn plan(&mut self, at: u64, event: SimulatedEvent) {
        self.planned += 1;
        self.entries.insert((at, self.planned), event);
    }

    pub(super) fn next(&mut self) -> Option<(u64, SimulatedEvent)> {
        self.entries.pop_first().map(|((at, _), event)| (at, event))
    }
}
