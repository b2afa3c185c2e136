//! The record of a run: its tasks, attempts and calls, read from its events.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use taskpawl_model::task::{CallStatus, Cause, Event, EventKind, RunRecord, Status, Task, ToolCall};
use taskpawl_model::value::{CallId, RunId, TaskId, Timestamp};

use crate::artifacts::LeftFile;
use crate::included::{Detail, Included};
use crate::sandboxes::Sandboxes;

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// It goes on.
    Running,
    /// Its process ended without finishing it.
    Killed,
    /// It ended with this exit code.
    Exit(u8),
}

/// A run with its tasks.
#[derive(Debug, Clone)]
pub struct RunLog {
    /// The id.
    pub id: RunId,
    /// The restriction to certain tasks; empty for all.
    pub scope: Vec<String>,
    /// The end.
    pub end: RunEnd,
    /// The start.
    pub started_at: Timestamp,
    /// The end, or the last event of a run that has no recorded end.
    pub ended_at: Timestamp,
    /// The details that it holds.
    pub included: Included,
    /// The sandboxes of its programs.
    pub sandboxes: Sandboxes,
    /// The tasks, in the order of their first event.
    pub tasks: Vec<TaskLog>,
}

/// A task of a run.
#[derive(Debug, Clone)]
pub struct TaskLog {
    /// The id.
    pub id: TaskId,
    /// The name; that of the id for a task that was deleted.
    pub name: String,
    /// The plan.
    pub plan: Option<String>,
    /// The position in the plan file.
    pub line: Option<SourceLine>,
    /// The last status in the run.
    pub status: Status,
    /// The attempts of the run.
    pub attempts: Vec<Attempt>,
    /// The starts of calls.
    pub calls: Vec<CallLog>,
    /// The start of its wait for a time or a signal, if it waits.
    pub waits_since: Option<Timestamp>,
    /// The reason for the status, if errors are included.
    pub error: Option<String>,
    /// The description, if prompts are included.
    pub prompt: Option<String>,
    /// The files that its calls left.
    pub artifacts: Vec<LeftFile>,
}

/// A line of a plan file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, relative to the repository or the project.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// An attempt of a task.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The number, from 1 over all runs.
    pub number: u32,
    /// The claim.
    pub started_at: Timestamp,
    /// The end; absent if the run ended before.
    pub ended_at: Option<Timestamp>,
    /// The status that it ended with.
    pub status: Status,
}

/// One start of a call.
#[derive(Debug, Clone)]
pub struct CallLog {
    /// The id, unique within the task.
    pub id: CallId,
    /// The name of the tool; empty if the call no longer exists.
    pub tool: String,
    /// The attempt of the task.
    pub attempt: u32,
    /// The number of the start, from 1.
    pub start: u32,
    /// The start.
    pub started_at: Timestamp,
    /// The end; absent if the run ended before.
    pub ended_at: Option<Timestamp>,
    /// The status that it ended with.
    pub status: Option<CallStatus>,
    /// The exit code of a program. Only the last start of a call has one.
    pub exit_code: Option<i64>,
    /// The class of the failure. Only the last start of a call has one.
    pub error_class: Option<String>,
    /// The error, if errors are included.
    pub error: Option<String>,
    /// The arguments of the last start as JSON, if they are included.
    pub args: Option<String>,
    /// The result of the last start as JSON, if results are included.
    pub result: Option<String>,
    /// The output, if it is included.
    pub output: Vec<Printed>,
}

/// Output of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The stream.
    pub stream: String,
    /// The text, or its end.
    pub text: String,
    /// True if the text is only the end.
    pub is_cut: bool,
}

/// The statuses of tasks as reports group them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Failed.
    Failed,
    /// The run ended while it was in progress.
    Unfinished,
    /// Waits for a time or a signal, without a run.
    Waiting,
    /// Blocked, or not started.
    Blocked,
    /// Skipped or cancelled.
    Skipped,
    /// Succeeded.
    Done,
}

impl Outcome {
    /// All outcomes, the most urgent first.
    pub const ALL: [Self; 6] =
        [Self::Failed, Self::Unfinished, Self::Waiting, Self::Blocked, Self::Skipped, Self::Done];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Unfinished => "unfinished",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Skipped => "skipped",
            Self::Done => "done",
        }
    }

    /// Returns the outcome of a status.
    pub fn of(status: Status) -> Self {
        match status {
            Status::Failed => Self::Failed,
            Status::InProgress => Self::Unfinished,
            Status::Blocked | Status::Todo => Self::Blocked,
            Status::Skipped | Status::Cancelled => Self::Skipped,
            Status::Done => Self::Done,
        }
    }
}

impl RunLog {
    /// Returns the duration so far.
    pub fn took(&self) -> Duration {
        between(self.started_at, self.ended_at)
    }

    /// Returns the number of tasks by outcome, without outcomes that no task has.
    pub fn counts(&self) -> Vec<(Outcome, usize)> {
        let count = |outcome| self.tasks.iter().filter(|task| task.outcome() == outcome).count();
        Outcome::ALL
            .into_iter()
            .map(|outcome| (outcome, count(outcome)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Returns the counts as a text, such as `1 failed, 12 done`.
    pub fn counts_text(&self) -> String {
        let words = self.counts().into_iter().map(|(outcome, count)| format!("{count} {}", outcome.as_str()));
        let words: Vec<String> = words.collect();
        if words.is_empty() { "no tasks".to_owned() } else { words.join(", ") }
    }

    /// Returns the tasks that failed or did not finish.
    pub fn failures(&self) -> impl Iterator<Item = &TaskLog> {
        let is_bad = |task: &&TaskLog| matches!(task.outcome(), Outcome::Failed | Outcome::Unfinished);
        self.tasks.iter().filter(is_bad)
    }

    /// Returns the end as a text, such as `exit 1`.
    pub fn end_text(&self) -> String {
        match self.end {
            RunEnd::Running => "running".to_owned(),
            RunEnd::Killed => "killed".to_owned(),
            RunEnd::Exit(code) => format!("exit {code}"),
        }
    }

    /// Returns the first characters of the id, which name the run in commands.
    pub fn short_id(&self) -> String {
        self.id.as_str().chars().take(8).collect()
    }
}

impl TaskLog {
    /// Returns the outcome.
    pub fn outcome(&self) -> Outcome {
        if self.waits_since.is_some() { Outcome::Waiting } else { Outcome::of(self.status) }
    }

    /// Returns the outcome of one of its attempts.
    pub fn outcome_of(&self, attempt: &Attempt) -> Outcome {
        if attempt.ended_at.is_none() { self.outcome() } else { Outcome::of(attempt.status) }
    }

    /// Returns whether neither it nor one of its calls is in progress.
    fn has_ended(&self) -> bool {
        self.status != Status::InProgress && self.calls.iter().all(|call| call.ended_at.is_some())
    }

    /// Returns the time of all attempts together, until `end` for one that has not ended.
    pub fn took(&self, end: Timestamp) -> Duration {
        self.attempts.iter().map(|attempt| between(attempt.started_at, attempt.ended_at.unwrap_or(end))).sum()
    }

    /// Returns the start of its first attempt.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.attempts.first().map(|attempt| attempt.started_at)
    }

    /// Returns the reason why it failed or did not finish, from what the log may show.
    pub fn failure(&self) -> String {
        let failed =
            |call: &&CallLog| !matches!(call.status, Some(CallStatus::Succeeded | CallStatus::Skipped));
        let call = self.calls.iter().rev().find(failed);
        let reason = match (&self.error, call) {
            (Some(error), _) => return error.clone(),
            (None, Some(call)) => call.failure(),
            (None, None) => return self.outcome().as_str().to_owned(),
        };
        let Some(call) = call else { return reason };
        let tool = if call.tool.is_empty() { String::new() } else { format!(" ({})", call.tool) };
        format!("call {}{tool}: {reason}", call.id)
    }
}

impl CallLog {
    /// Returns the reason why it did not succeed, in a few words.
    pub fn failure(&self) -> String {
        if let Some(error) = &self.error {
            return error.clone();
        }
        match (self.exit_code.filter(|code| *code != 0), &self.error_class, self.status) {
            (Some(code), ..) => format!("exit code {code}"),
            (None, Some(class), _) => class.clone(),
            (None, None, Some(status)) => status.as_str().to_owned(),
            (None, None, None) => "the run ended before it".to_owned(),
        }
    }
}

/// Returns the time between two times; zero if they are in the other order.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> Duration {
    (to - from).to_std().unwrap_or_default()
}

/// Collects a [`RunLog`].
#[derive(Debug)]
pub struct LogBuilder {
    log: RunLog,
    places: BTreeMap<TaskId, usize>,
}

impl LogBuilder {
    /// Continues a log.
    pub fn of(log: RunLog) -> Self {
        let places = log.tasks.iter().enumerate().map(|(place, task)| (task.id.clone(), place)).collect();
        Self { log, places }
    }

    /// Begins the log of a run.
    pub fn new(run: &RunRecord, end: RunEnd, included: Included) -> Self {
        let log = RunLog {
            id: run.id.clone(),
            scope: run.scope.iter().map(|word| included.text(word)).collect(),
            end,
            started_at: run.started_at,
            // The recovery of a killed run may come days later, so its last event counts.
            ended_at: run.finished_at.unwrap_or(run.started_at),
            included,
            sandboxes: Sandboxes::default(),
            tasks: Vec::new(),
        };
        Self { log, places: BTreeMap::new() }
    }

    /// Adds the next event of the run.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other events say nothing about the work of a run")]
    pub fn take(&mut self, event: &Event) {
        self.log.ended_at = self.log.ended_at.max(event.at);
        let Some(id) = event.task.as_ref() else { return };
        match &event.kind {
            EventKind::Status { to, text, attempt, cause, .. } => {
                let error = text.as_deref().filter(|_| self.log.included.has(Detail::Errors));
                let error = error.map(|error| self.log.included.text(error));
                let task = self.task(id);
                if *cause == Cause::Wait {
                    // The attempt goes on without the run.
                    (task.waits_since, task.error) = (Some(event.at), error);
                } else {
                    task.set(*to, *attempt, event.at, error);
                }
            }
            EventKind::CallStarted { call, attempt, start, .. } => {
                let call = CallLog::new(call.clone(), *attempt, *start, event.at);
                self.task(id).calls.push(call);
            }
            EventKind::CallEnded { call, attempt, status, error, .. } => {
                let error = error.as_deref().filter(|_| self.log.included.has(Detail::Errors));
                let error = error.map(|error| self.log.included.text(error));
                let task = self.task(id);
                let calls = &mut task.calls;
                let is_open = |started: &CallLog| started.id == *call && started.ended_at.is_none();
                if let Some(since) = task.waits_since.filter(|_| !calls.iter().any(is_open)) {
                    // A wait has no event of its start.
                    let number = calls.iter().filter(|started| started.id == *call).count() + 1;
                    let start = u32::try_from(number).unwrap_or(u32::MAX);
                    calls.push(CallLog::new(call.clone(), *attempt, start, since));
                }
                if let Some(started) = calls.iter_mut().rev().find(|started| is_open(started)) {
                    (started.status, started.ended_at, started.error) =
                        (Some(*status), Some(event.at), error);
                }
            }
            _ => {}
        }
    }

    /// Adds a failure of a task in the scope of the run that is older than the run, and counts for its end.
    pub fn add_earlier_failure(&mut self, task: &Task) {
        if self.places.contains_key(&task.id) {
            return;
        }
        let error = task.error.as_deref().filter(|_| self.log.included.has(Detail::Errors));
        let error = error.map(|error| self.log.included.text(error));
        let log = self.task(&task.id);
        (log.status, log.error) = (Status::Failed, error);
    }

    fn task(&mut self, id: &TaskId) -> &mut TaskLog {
        let tasks = &mut self.log.tasks;
        let place = *self.places.entry(id.clone()).or_insert_with(|| {
            tasks.push(TaskLog::new(id.clone()));
            tasks.len() - 1
        });
        &mut tasks[place]
    }

    /// Returns the details that the log includes.
    pub fn included(&self) -> &Included {
        &self.log.included
    }

    /// Returns the ids of the tasks so far.
    pub fn ids(&self) -> impl Iterator<Item = &TaskId> {
        self.log.tasks.iter().map(|task| &task.id)
    }

    /// Adds the facts that events do not have: names, tools, exit codes and the included details.
    pub fn describe(&mut self, task: &Task) {
        let included = self.log.included.clone();
        let Some(place) = self.places.get(&task.id) else { return };
        let log = &mut self.log.tasks[*place];
        log.name = included.text(&task.name);
        log.plan.clone_from(&task.plan);
        let prompt = Some(&task.description).filter(|text| included.has(Detail::Prompts) && !text.is_empty());
        log.prompt = prompt.map(|text| included.text(text));
        log.artifacts.clear();
        for call in &task.metadata.tool_calls {
            for started in log.calls.iter_mut().filter(|started| started.id == call.id) {
                if started.describe(call, &included) {
                    log.artifacts.extend(LeftFile::of(call, &included));
                    self.log.sandboxes.add(call);
                }
            }
        }
    }

    /// Sets the position of a task in its plan file.
    pub fn set_line(&mut self, task: &TaskId, mut line: SourceLine) {
        if let Some(place) = self.places.get(task) {
            line.file = self.log.included.text(&line.file);
            self.log.tasks[*place].line = Some(line);
        }
    }

    /// Adds output of one start of a call. It is dropped unless output is included.
    pub fn add_output(&mut self, task: &TaskId, call: &CallId, start: u32, mut printed: Printed) {
        let Some(place) = self.places.get(task).filter(|_| self.log.included.has(Detail::Output)) else {
            return;
        };
        let calls = &mut self.log.tasks[*place].calls;
        if let Some(started) = calls.iter_mut().find(|started| started.id == *call && started.start == start)
        {
            printed.text = self.log.included.text(&printed.text);
            started.output.push(printed);
        }
    }

    /// Removes the tasks that are not in progress, and returns a log of them. If such a task starts again, it starts from the beginning.
    pub fn drain_ended(&mut self) -> RunLog {
        let tasks = std::mem::take(&mut self.log.tasks);
        let (ended, open) = tasks.into_iter().partition(TaskLog::has_ended);
        // Without tasks, because they were taken above.
        let run = self.log.clone();
        *self = Self::of(RunLog { tasks: open, ..run.clone() });
        RunLog { tasks: ended, ..run }
    }

    /// Sets the end of the run.
    pub fn set_end(&mut self, run: &RunRecord, end: RunEnd) {
        self.log.end = end;
        self.log.ended_at = run.finished_at.unwrap_or(self.log.ended_at);
    }

    /// Returns the collected log.
    pub fn finish(self) -> RunLog {
        self.log
    }
}

impl TaskLog {
    fn new(id: TaskId) -> Self {
        Self {
            name: id.to_string(),
            id,
            plan: None,
            line: None,
            status: Status::Todo,
            attempts: Vec::new(),
            calls: Vec::new(),
            waits_since: None,
            error: None,
            prompt: None,
            artifacts: Vec::new(),
        }
    }

    fn set(&mut self, status: Status, number: u32, at: Timestamp, error: Option<String>) {
        (self.status, self.error, self.waits_since) = (status, error, None);
        if status == Status::InProgress {
            self.attempts.push(Attempt { number, started_at: at, ended_at: None, status });
        } else if let Some(attempt) = self.attempts.last_mut().filter(|attempt| attempt.ended_at.is_none()) {
            (attempt.ended_at, attempt.status) = (Some(at), status);
        }
    }
}

impl CallLog {
    fn new(id: CallId, attempt: u32, start: u32, started_at: Timestamp) -> Self {
        Self {
            id,
            tool: String::new(),
            attempt,
            start,
            started_at,
            ended_at: None,
            status: None,
            exit_code: None,
            error_class: None,
            error: None,
            args: None,
            result: None,
            output: Vec::new(),
        }
    }

    /// Adds what the record of a call says about this start, and returns whether it is the one that the record describes.
    fn describe(&mut self, call: &ToolCall, included: &Included) -> bool {
        self.tool.clone_from(&call.tool_name);
        // The record of a call describes its last start alone.
        if call.attempts != self.start || self.ended_at.is_none() {
            return false;
        }
        self.exit_code =
            call.result.as_ref().and_then(|result| result.get("exitCode")).and_then(Value::as_i64);
        self.error_class.clone_from(&call.error_class);
        if included.has(Detail::Args) {
            let args = call.evaluated_args.as_ref().unwrap_or(&call.args);
            self.args = Some(included.text(&Value::from(args.clone()).to_string()));
        }
        if included.has(Detail::Results) {
            self.result = call.result.as_ref().map(|result| included.text(&result.to_string()));
        }
        true
    }
}
