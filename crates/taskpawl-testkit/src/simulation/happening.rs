//! What is going to happen, and when.

use std::collections::BTreeMap;

use taskpawl_model::{Answer, Command, Report, Round, RunId, TaskId};

/// Something that happens at a moment of virtual time. Runs and tools are named by their numbers.
#[derive(Debug)]
pub(super) enum Happening {
    /// A process starts a run: its record is written, and it looks what dead runs left.
    RunStarts(usize),
    /// The commit of a recovery.
    Recovery { run: usize, is_first: bool, commands: Vec<(Option<RunId>, Command)> },
    /// The run has recovered what it found, and looks what is ready.
    RunBegins(usize),
    /// The committer comes to the round of a run.
    Commit { run: usize, round: Box<Round> },
    /// A run hears that its round is durable.
    Answer { run: usize, answer: Box<Answer>, reports: Vec<Report> },
    /// A run takes in what has come.
    Turn(usize),
    /// A run looks what others wrote, unless something else came since.
    Look { run: usize, pause: u64 },
    /// Somebody asks a run to stop, or to stop harder.
    Signal(usize),
    /// A run is killed.
    Crash(usize),
    /// The tools of a killed run are ended, and its lock is free.
    ToolsGone(usize),
    /// A tool ends.
    ToolEnds(usize),
    /// An agent does something, and then so many times more.
    Agent { agent: usize, more: usize },
    /// An agent says how a task ended that it had claimed.
    AgentReports(Held),
    /// A person gives a command, and then so many more.
    Hand { more: usize },
}

/// A task that an agent claimed, as the agent knows it.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) agent: usize,
    pub(super) task: TaskId,
    pub(super) attempt: u32,
}

/// What is going to happen, in order; what happens at the same moment happens in the order in which it was planned.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BTreeMap<(u64, u64), Happening>,
    planned: u64,
}

impl Agenda {
    pub(super) fn plan(&mut self, at: u64, happening: Happening) {
        self.planned += 1;
        self.entries.insert((at, self.planned), happening);
    }

    pub(super) fn next(&mut self) -> Option<(u64, Happening)> {
        self.entries.pop_first().map(|((at, _), happening)| (at, happening))
    }
}
