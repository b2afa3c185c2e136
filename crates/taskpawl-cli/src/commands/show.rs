use std::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;
use taskpawl::Output as CallOutput;
use taskpawl::model::advice::Advice;
use taskpawl::model::task::{
    ApprovalRequest, Artifact, BlockedReason, CallStatus, Claim, ClaimEnd, Granted, Progress, Task,
    ToolAnswer, ToolCall, WAIT_TOOL,
};
use taskpawl::model::value::TaskId;
use taskpawl::model::value::{Map, Timestamp};

use crate::app::App;
use crate::commands::notify_programs::NotifyProgram;
use crate::commands::print;
use crate::commands::prune::size;
use crate::commands::question::{self, Extent};
use crate::error::CliError;
use crate::output::Output;
use crate::shown::{Shown, shown};
use crate::text::{clean, clean_block, flow, lease_end, short_line, style, time, without_sequences};

/// Show a task in full
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl show build
  taskpawl show build --fields status,result")]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID")]
    id: String,
}

/// A task, with the programs that its plan notifies.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    task: &'a Task,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notify: &'a [NotifyProgram],
}

/// The column of the values of fields.
const VALUES: usize = 14;

/// Shown for a task whose approval expired without a decision.
const OVER: &str = "the time to decide is over; the next run or command on it goes the way of its plan";

/// Shows a task with its calls, results and notes.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let plans = app.reader()?;
    let mut task = plans.blocking().get_task(&args.id)?;
    plans.engine().call_places().fill(&mut task);
    let out = app.out();
    let told = match &task.plan {
        Some(plan) => NotifyProgram::of_plan(plans.manager(), plan)?,
        None => None,
    };
    if out.is_json {
        return out.data(&Whole { task: &task, notify: told.as_slice() });
    }
    let mut sheet = Sheet::new(&out, &plans.engine().output()).of(&task, told.as_ref());
    if let Some(BlockedReason::Approval { .. }) = &task.blocked_reason {
        let request = plans.manager().approval_request(task.id.as_str())?;
        if let Some(request) = request {
            let is_over = task.question_over;
            sheet.push(asked(app, &request, is_over)?);
        }
    }
    out.print(sheet.wrapped(out.width))
}

/// Formats the full question of a task, with the commands that decide it.
fn asked(app: &App, request: &ApprovalRequest, is_over: bool) -> Result<Shown, CliError> {
    let paint = app.out().paint;
    let mut text = shown!["\n", paint.style(style::BOLD, "waits for a decision"), "\n"];
    // The first line repeats the id and the name of the task.
    for line in question::text(request, Extent::Full, paint).lines().skip(1) {
        text.push(shown![line, "\n"]);
    }
    let _ = writeln!(text, "  hash {}", request.hash);
    let id = &request.task;
    let goes_on = request.on_expiry.as_deref().is_some_and(|word| word != "reject");
    let mut commands = match (is_over, goes_on) {
        (false, _) => question::advice_of(request),
        (true, true) => vec![Advice::run_ready_of(id).into()],
        (true, false) => vec![Advice::retry(id).into()],
    };
    app.write_advice(&mut commands)?;
    for command in commands {
        let _ = writeln!(text, "  {command}");
    }
    Ok(text)
}

/// The text of a task while it is built.
struct Sheet<'a> {
    out: &'a Output,
    /// Output files of calls: they hold the full size of parts that were cut.
    output: &'a CallOutput,
    text: Shown,
}

impl<'a> Sheet<'a> {
    fn new(out: &'a Output, output: &'a CallOutput) -> Self {
        Self { out, output, text: Shown::new() }
    }

    fn of(mut self, task: &Task, told: Option<&NotifyProgram>) -> Shown {
        let now = self.out.now;
        let id = self.out.paint.style(style::BOLD, &clean(task.id.as_str()));
        let name =
            if task.name == task.id.as_str() { String::new() } else { format!("  {}", clean(&task.name)) };
        self.text.push(shown![id, name, "\n"]);
        let status = self.out.paint.style(style::of_status(task.status), task.status.as_str());
        self.raw("status", status);
        self.field("blocked", task.blocked_reason.as_ref().map(print::reason));
        self.field("over", task.question_over.then(|| OVER.to_owned()));
        self.field("error", task.error.as_deref().map(without_sequences));
        let wait = task.progress.waiting_for.as_deref();
        self.field("waits", wait.map(|wait| print::wait_text(wait, task.wait_over)));
        let claim = task.claim.as_ref().filter(|_| wait.is_none());
        self.field("held by", claim.map(|claim| holder(claim, task.claim_ended, now)));
        self.field("ended by", task.ended_by.as_ref().map(print::ending));
        self.field("priority", Some(task.priority.to_string()));
        self.options(&task.options);
        self.field("approved", task.progress.approval.as_deref().map(|granted| decided(granted, now)));
        self.field("plan", task.plan.clone());
        self.field("tells", told.map(NotifyProgram::line));
        self.field("parent", task.parent.as_ref().map(ToString::to_string));
        self.field("needs", list(&task.dependencies));
        self.field("subtasks", list(&task.subtasks));
        self.field(
            "item",
            task.progress.item.as_ref().map(|item| format!("{}: {}", item.index, plain(&item.value))),
        );
        self.field("round", rounds(task));
        self.field("deadline", task.progress.deadline.map(|at| time(at, now)));
        self.field("attempt", (task.attempt > 0).then(|| task.attempt.to_string()));
        self.field("created", Some(time(task.created_at, now)));
        self.field("updated", Some(format!("{} (version {})", time(task.updated_at, now), task.version)));
        self.field("started", task.started_at.map(|at| time(at, now)));
        self.field("finished", task.finished_at.map(|at| time(at, now)));
        self.field("cached", task.progress.cached_from.map(|at| cached(at, now)));
        self.field("changed", changed_beyond(&task.progress));
        self.block("description", &task.description);
        self.calls(&task.id, &task.metadata.tool_calls);
        self.map("context", &task.metadata.context);
        self.map("metadata", &task.metadata.extra);
        self.result(task);
        self.notes(task);
        self.text
    }

    fn raw(&mut self, label: &str, value: impl Into<Shown>) {
        let label = self.out.paint.style(style::DIM, &format!("{label:<10}"));
        self.text.push(shown!["  ", label, "  ", value.into(), "\n"].hung(self.out.width, VALUES));
    }

    fn field(&mut self, label: &str, value: Option<String>) {
        if let Some(value) = value {
            self.raw(label, short_line(&clean(&value)).into_owned());
        }
    }

    fn options(&mut self, options: &Map) {
        for (name, value) in options {
            self.field(&clean(name), Some(of_plan(value)));
        }
    }

    fn heading(&mut self, label: &str) {
        self.text.push(shown!["\n", self.out.paint.style(style::BOLD, label), "\n"]);
    }

    fn block(&mut self, label: &str, text: &str) {
        if !text.is_empty() {
            self.heading(label);
            self.indented(text, "  ");
        }
    }

    fn indented(&mut self, text: &str, indent: &str) {
        for line in clean_block(text).lines() {
            let line = short_line(line);
            let _ = writeln!(self.text, "{}", format!("{indent}{line}").trim_end());
        }
    }

    fn calls(&mut self, task: &TaskId, calls: &[ToolCall]) {
        if !calls.is_empty() {
            self.heading("tool calls");
        }
        for call in calls {
            let args = Value::Object(call.args.clone());
            let line = format!("  {}  {}  {} {}", call.id, call.status, call.tool_name, flow(&args));
            self.indented(&clean(&line), "");
            if let Some(args) = &call.evaluated_args {
                self.indented(&clean(&format!("with: {}", flow(&Value::Object(args.clone())))), "      ");
            }
            if let Some(granted) = &call.granted {
                self.indented(&clean(&decided(granted, self.out.now)), "      ");
            }
            for line in answered(call, self.out.now) {
                self.indented(&clean(&line), "      ");
            }
            for (name, value) in &call.options {
                self.indented(&clean(&format!("{name}: {}", of_plan(value))), "      ");
            }
            if let Some(starts) = starts(call, self.out.now) {
                self.indented(&starts, "      ");
            }
            if let Some(worker) = &call.worker {
                let word = if call.status == CallStatus::Running { "runs on" } else { "ran on" };
                self.indented(&clean(&format!("{word}: @{worker}")), "      ");
            }
            if let Some(usage) = &call.usage {
                self.indented(&clean(&format!("used: {usage}")), "      ");
            }
            if let Some(error) = &call.error {
                self.indented(&without_sequences(&format!("error: {error}")), "      ");
            }
            for line in cut_parts(call, self.output, task) {
                self.indented(&clean(&line), "      ");
            }
            for artifact in &call.artifacts {
                let Artifact { path, bytes, media_type, .. } = artifact;
                let text = format!("artifact: {}: {path} ({media_type}, {})", artifact.name(), size(*bytes));
                self.indented(&clean(&text), "      ");
            }
            if let Some(result) = &call.result {
                self.indented(&clean(&format!("result: {result}")), "      ");
            }
        }
    }

    fn map(&mut self, label: &str, map: &Map) {
        if !map.is_empty() {
            self.heading(label);
        }
        for (name, value) in map {
            self.indented(&clean(&format!("{name}: {}", plain(value))), "  ");
        }
    }

    /// The result of a task with calls is the result of its last call, which is already shown there.
    fn result(&mut self, task: &Task) {
        if let Some(result) = task.result.as_ref().filter(|_| task.metadata.tool_calls.is_empty()) {
            self.block("result", &plain(result));
        }
    }

    fn notes(&mut self, task: &Task) {
        if !task.notes.is_empty() {
            self.heading("notes");
        }
        for note in &task.notes {
            let head = format!("{} {}: ", time(note.at, self.out.now), clean(&note.actor));
            self.indented(&format!("{head}{}", note.text), "  ");
        }
    }
}

fn holder(claim: &Claim, ended: Option<ClaimEnd>, now: Option<Timestamp>) -> String {
    let run = claim.run.as_ref().map(|run| format!("run {run}"));
    let until = claim.lease_until.map(|end| format!(", {}", lease_end(end, now))).unwrap_or_default();
    match (run, ended) {
        (Some(run), Some(ClaimEnd::Killed)) => {
            format!("{run}, which ended without finishing; the next run or command on it takes it back")
        }
        (Some(run), _) => format!("{} in {run}", claim.actor),
        (None, Some(_)) => {
            format!("{}{until}, which is over; the next claim gets it", claim.actor)
        }
        (None, None) if until.is_empty() => {
            format!("{}, by a claim that does not end by itself", claim.actor)
        }
        (None, None) => format!("{}{until}", claim.actor),
    }
}

fn cached(at: Timestamp, now: Option<Timestamp>) -> String {
    format!(
        "nothing that it depends on had changed since its success ({}), whose results it has",
        time(at, now)
    )
}

/// Lists files that changed while the task ran, and that are not in its `writes`.
fn changed_beyond(progress: &Progress) -> Option<String> {
    let files = &progress.changed_beyond;
    let unknown = progress.changes_unknown.as_ref().map(|unknown| format!(" ({unknown})"));
    let is_told = !files.is_empty() || unknown.is_some();
    is_told.then(|| format!("beyond `writes`: {}{}", files.join(", "), unknown.unwrap_or_default()))
}

fn decided(granted: &Granted, now: Option<Timestamp>) -> String {
    let answer = granted.answer.as_ref().map(|answer| format!(": {}", plain(answer))).unwrap_or_default();
    let edited = if granted.args.is_some() { ", with other arguments" } else { "" };
    format!("approved by {} ({}){edited}{answer}", granted.by, time(granted.at, now))
}

/// Returns the progress of a loop.
fn rounds(task: &Task) -> Option<String> {
    let most = task.options.get("repeat")?.get("max")?;
    (task.progress.round > 0).then(|| format!("{} of at most {most} are over", task.progress.round))
}

/// Returns the number of starts, if there were several, and the time of the next one.
fn starts(call: &ToolCall, now: Option<Timestamp>) -> Option<String> {
    if call.tool_name == WAIT_TOOL {
        return call.due.map(|due| format!("waits until {}", time(due, now)));
    }
    let again = call.due.map(|due| format!("again {}", time(due, now)));
    let starts =
        (call.attempts > 1 || again.is_some()).then(|| print::count(u64::from(call.attempts), "start"));
    let failures = (call.failures > 0).then(|| print::count(u64::from(call.failures), "failure"));
    let said: Vec<String> = starts.into_iter().chain(failures).chain(again).collect();
    (call.attempts > 1 || call.due.is_some()).then(|| said.join(", "))
}

/// Hint for reading a part that was cut.
const WAYS_OUT: &str = "`keep: 4MiB` on the call keeps more, `| partial` in an expression reads what is kept";

/// Describes the answers that the tool of a call got while it ran.
fn answered(call: &ToolCall, now: Option<Timestamp>) -> Vec<String> {
    let answers = call.asked.iter().flat_map(|asked| &asked.answers);
    let line = |known: &ToolAnswer| {
        let ToolAnswer { question, answer, by, at, .. } = known;
        format!("asked: {}: {answer} (by {by}, {})", question.ask, time(*at, now))
    };
    answers.map(line).collect()
}

/// Describes the parts of a result that were cut, with the kept size of each.
fn cut_parts(call: &ToolCall, output: &CallOutput, task: &TaskId) -> Vec<String> {
    let Some(result) = &call.result else { return Vec::new() };
    // The empty pointer means that the whole result was replaced, so parts inside of it no longer exist.
    let is_stand_in = call.cut.iter().any(String::is_empty);
    let parts = call.cut.iter().filter(|pointer| !is_stand_in || pointer.is_empty());
    let line = |pointer: &String| {
        let name = if pointer.is_empty() { "the result" } else { pointer.trim_start_matches('/') };
        let there = whole_bytes(call, output, task, pointer).map(|bytes| format!(" of {}", size(bytes)));
        let shown = shown_bytes(result, pointer);
        format!("cut: {name}, {}{} kept; {WAYS_OUT}", size(shown), there.unwrap_or_default())
    };
    parts.map(line).collect()
}

/// Returns the kept bytes of a part. A result in a file keeps its head and tail.
fn shown_bytes(result: &Value, pointer: &str) -> u64 {
    let of = |value: &Value| value.as_str().map_or_else(|| value.to_string().len(), str::len) as u64;
    if pointer.is_empty() {
        return ["head", "tail"].iter().filter_map(|name| result.get(name)).map(of).sum();
    }
    result.pointer(pointer).map_or(0, of)
}

/// Returns the full size of a part in bytes, if known.
fn whole_bytes(call: &ToolCall, output: &CallOutput, task: &TaskId, pointer: &str) -> Option<u64> {
    if pointer.is_empty() {
        return call.result.as_ref()?.get("bytes")?.as_u64();
    }
    let stream = pointer.trim_start_matches('/');
    let parts = output.parts(task, &call.id, call.attempts);
    let part = parts.into_iter().rfind(|part| part.start == call.attempts && part.stream == stream)?;
    Some(part.path.metadata().ok()?.len())
}

fn list(ids: &[TaskId]) -> Option<String> {
    (!ids.is_empty()).then(|| ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", "))
}

/// Returns the value of a field that its author wrote in a plan.
fn of_plan(value: &Value) -> String {
    if value.is_object() { flow(value) } else { plain(value) }
}

/// Formats a value: strings without quotes, and lists of strings with commas.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}
