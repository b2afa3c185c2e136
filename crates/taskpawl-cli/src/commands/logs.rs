use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::task::{CallStatus, EventKind, Status, Task, ToolCall};
use taskpawl::model::value::format_time;
use taskpawl::model::value::{CallId, TaskId, secret_names};
use taskpawl::tools::{RedactorStream, Vault};
use taskpawl::{HistoryEntry, HistoryFilter, Manager, Taskpawl};

use crate::app::App;
use crate::commands::parse;
use crate::error::CliError;
use crate::output::{write_data, write_out};
use crate::shown::shown;
use crate::text::{clean, clean_block, style, without_sequences};

/// Show the output of a task's calls, of all failed tasks, or of a run. Shows the output of every start
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[command(after_help = "\
On a terminal escape sequences are left out and other control characters are escaped; --raw prints every byte that is kept.
Of a task with `forEach` it is what the calls of its items printed.
Secrets are taken out, also of what a call that still runs has printed so far.

Examples:
  taskpawl logs build
  taskpawl logs build -f
  taskpawl logs --failed
  taskpawl logs --run 3f2a
  taskpawl logs build --call c2 --attempt 1 --stderr")]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID", required_unless_present_any = ["failed", "run"])]
    id: Option<String>,
    /// Of all failed tasks
    #[arg(long, conflicts_with_all = ["id", "follow", "call", "attempt"])]
    failed: bool,
    /// Only what was started in this run: its id, or the beginning of it
    #[arg(long, value_name = "RUN", conflicts_with_all = ["failed", "follow", "attempt"])]
    run: Option<String>,
    /// Go on until the task ends, whichever process runs it
    #[arg(long, short, conflicts_with = "attempt")]
    follow: bool,
    /// Only of this call
    #[arg(long, value_name = "CALL")]
    call: Option<String>,
    /// Only of this start of each call, counted from 1
    #[arg(long, value_name = "N", value_parser = parse::at_least_one::<u32>)]
    attempt: Option<u32>,
    /// Only the standard output
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,
    /// Only the standard error
    #[arg(long)]
    stderr: bool,
    /// Print every byte as it is kept
    #[arg(long, conflicts_with_all = ["json", "fields"])]
    raw: bool,
}

/// Key of a part: one output stream of one start of a call. Parts are printed in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    /// Index of the item in its `forEach`; 0 without one.
    item: usize,
    task: TaskId,
    position: usize,
    call: String,
    start: u32,
    /// `false` sorts first, so standard output precedes standard error.
    is_stderr: bool,
    stream: &'static str,
}

/// Source of the text of a part.
#[derive(Debug)]
enum Source {
    File(PathBuf),
    /// File of a program that still runs, or that the run did not wait for. Secrets are not yet removed from
    /// it.
    Unfinished(PathBuf),
    /// Head and tail in the stored result. The fallback if the file was pruned.
    Result(String),
}

/// A part in the `--json` output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    /// The task, where several are shown: the items of a `forEach`, failed tasks, or tasks of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskId>,
    call: String,
    tool_name: String,
    attempt: u32,
    stream: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    text: String,
}

/// Prints the output of calls, and with `--follow` until the task ends.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let plans = app.reader()?;
    let vault = plans.engine().vault();
    let wanted = Wanted::of(plans, args)?;
    let tasks = wanted.tasks.clone();
    for task in &tasks {
        remark_on_withheld(app, &vault, task);
    }
    if app.out().is_json {
        if args.follow {
            return Err(CliError::usage("`--follow` shows text; it has no JSON"));
        }
        for task in &tasks {
            remark_on_pruned(app, plans, task)?;
        }
        return print_json(app, plans, &vault, (args, &wanted), &tasks);
    }
    let mut printer = Printer::new(app, args, &wanted, vault);
    let count = printer.print(plans, args, &tasks)?;
    if let (true, Some(task)) = (args.follow, &wanted.task) {
        return follow(app, args, task.clone(), &mut printer);
    }
    let mut is_pruned = false;
    for task in &tasks {
        is_pruned |= remark_on_pruned(app, plans, task)?;
    }
    if !is_pruned && count == 0 {
        app.out().advise(&match &wanted.task {
            Some(task) => nothing(task, &tasks),
            None if args.failed && tasks.is_empty() => "no task has failed".into(),
            None => "nothing was printed".into(),
        });
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts of calls: task, call and number of the start.
type Starts = BTreeSet<(TaskId, CallId, u32)>;

/// The tasks whose output is wanted.
struct Wanted {
    /// The task that the user named.
    task: Option<Task>,
    /// The tasks that hold the calls.
    tasks: Vec<Task>,
    /// The starts of calls in the wanted run.
    starts: Option<Starts>,
}

impl Wanted {
    fn of(plans: &Taskpawl, args: &Args) -> Result<Self, CliError> {
        let manager = plans.manager();
        let get = |id: &TaskId| manager.get(id.as_str());
        let starts = args.run.as_deref().map(|run| starts_in(manager, run)).transpose()?;
        if let Some(id) = &args.id {
            let task = manager.get(id)?;
            check(args, &task)?;
            let tasks = running_tasks(plans, &task)?;
            return Ok(Self { task: Some(task), tasks, starts });
        }
        let Some(started) = &starts else {
            let failed = manager.select(&[], &[Status::Failed])?;
            let tasks = failed.iter().map(|id| manager.get(id)).collect::<Result<_, _>>()?;
            return Ok(Self { task: None, tasks, starts });
        };
        let tasks: BTreeSet<&TaskId> = started.iter().map(|(task, ..)| task).collect();
        // A task that was deleted since then has no output any more.
        let tasks = tasks.into_iter().filter_map(|id| get(id).ok()).collect();
        Ok(Self { task: None, tasks, starts })
    }
}

/// Returns the starts of calls in a run.
fn starts_in(manager: &Manager, run: &str) -> Result<Starts, CliError> {
    let filter = HistoryFilter { run: Some(manager.find_run(run)?.to_string()), ..HistoryFilter::default() };
    let started = |entry: HistoryEntry| {
        if let EventKind::CallStarted { call, start, .. } = entry.event.kind {
            return Some((entry.event.task?, call, start));
        }
        None
    };
    Ok(manager.find_history(&filter)?.into_iter().filter_map(started).collect())
}

/// Returns the tasks that hold the calls: the items of a `forEach`, otherwise the task itself.
fn running_tasks(plans: &Taskpawl, task: &Task) -> Result<Vec<Task>, CliError> {
    if !task.options.contains_key("forEach") {
        return Ok(vec![task.clone()]);
    }
    // A `forEach` is no caller itself: each item is a subtask with a copy of the calls.
    let subtasks = task.subtasks.iter().map(|id| plans.manager().get(id.as_str()));
    let mut items = subtasks.collect::<Result<Vec<_>, _>>()?;
    items.retain(|item| item.progress.item.is_some());
    items.sort_by_key(place_of_item);
    Ok(items)
}

/// Returns the index of an item in its `forEach`.
fn place_of_item(task: &Task) -> usize {
    task.progress.item.as_ref().map_or(0, |item| usize::try_from(item.index).unwrap_or(usize::MAX))
}

/// Returns whether the file of this start still contains secrets. They are removed when the call ends.
fn is_unfinished(call: &ToolCall, start: u32) -> bool {
    call.status == CallStatus::Running && call.attempts == start
}

/// Returns whether this process knows every secret of the call, so that it can remove them itself.
fn can_be_shown(call: &ToolCall, vault: &Vault) -> bool {
    vault.knows(&secret_names(&call.args))
}

/// Reports calls whose output is withheld until they end.
fn remark_on_withheld(app: &App, vault: &Vault, task: &Task) {
    for call in &task.metadata.tool_calls {
        if is_unfinished(call, call.attempts) && !can_be_shown(call, vault) {
            let what = "it names a secret that this command cannot look up by itself";
            app.out().remark(&format!("what `{}` prints is shown when it is over: {what}", call.id));
        }
    }
}

/// Reports pruned output, and returns whether some was pruned.
fn remark_on_pruned(app: &App, plans: &Taskpawl, task: &Task) -> Result<bool, CliError> {
    let pruned_at = plans.manager().output_pruned_at(task.id.as_str())?;
    if let Some(at) = pruned_at {
        let pruned = Hint::default().data(&task.id).text(": output was pruned; the rest is in its results: ");
        let at = format!(" (last pruned at {})", format_time(at));
        app.out().advise(&pruned.advice(Advice::show(&task.id)).text(at));
    }
    Ok(pruned_at.is_some())
}

fn nothing(task: &Task, running: &[Task]) -> Hint {
    let calls = || running.iter().flat_map(|task| &task.metadata.tool_calls);
    let started = calls().any(|call| call.attempts > 0);
    let runs = calls().any(|call| call.status == CallStatus::Running);
    let why = match (task.metadata.tool_calls.is_empty(), started) {
        (true, _) => "has no calls",
        (false, false) => "has not been started",
        (false, true) if runs => "has printed nothing so far that was asked for",
        (false, true) => {
            let nothing = Hint::default().data(&task.id).text(" printed nothing that was asked for; ");
            return nothing.advice(Advice::show(&task.id)).text(" has the results of its calls");
        }
    };
    Hint::default().data(&task.id).text(" ").text(why)
}

fn check(args: &Args, task: &Task) -> Result<(), CliError> {
    let Some(call) = &args.call else { return Ok(()) };
    let calls: Vec<&str> = task.metadata.tool_calls.iter().map(|call| call.id.as_str()).collect();
    if calls.contains(&call.as_str()) {
        return Ok(());
    }
    let hint = match calls.as_slice() {
        [] => "it has none".to_owned(),
        calls => format!("it has {}", calls.join(", ")),
    };
    Err(CliError::usage_with(format!("task `{}` has no call `{call}`", task.id), hint))
}

/// Prints new output until the task ends.
fn follow(app: &App, args: &Args, mut task: Task, printer: &mut Printer) -> Result<ExitCode, CliError> {
    const PAUSE: Duration = Duration::from_millis(100);
    let plans = app.reader()?;
    while !is_over(&task) {
        let seen = plans.manager().revision()?;
        // The pause bounds the wait, because output that programs write causes no change of the store.
        plans.manager().store().wait_change(seen, PAUSE)?;
        task = plans.manager().get(task.id.as_str())?;
        printer.print(plans, args, &running_tasks(plans, &task)?)?;
    }
    if task.claim_ended.is_some() {
        app.out().remark(&format!("the run of `{}` ended without finishing", task.id));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether no more output can come for now. A later run may start the task again.
fn is_over(task: &Task) -> bool {
    task.status.is_finished() || task.status == Status::Blocked || task.claim_ended.is_some()
}

/// Returns the available parts, in the order of their names.
fn parts<'a>(
    plans: &Taskpawl,
    vault: &Vault,
    args: &Args,
    starts: Option<&Starts>,
    tasks: &'a [Task],
) -> Vec<(Name, Source, &'a Task)> {
    let is_in_run = |name: &Name| {
        let start = (name.task.clone(), CallId::from(name.call.clone()), name.start);
        starts.is_none_or(|starts| starts.contains(&start))
    };
    let of = |task: &'a Task| {
        let parts = parts_of(plans, vault, args, task).into_iter();
        parts.filter(|(name, _)| is_in_run(name)).map(move |(name, source)| (name, source, task))
    };
    tasks.iter().flat_map(of).collect()
}

fn parts_of(plans: &Taskpawl, vault: &Vault, args: &Args, task: &Task) -> BTreeMap<Name, Source> {
    let mut parts = BTreeMap::new();
    let calls = task.metadata.tool_calls.iter().enumerate();
    for (position, call) in
        calls.filter(|(_, call)| args.call.as_deref().is_none_or(|id| id == call.id.as_str()))
    {
        let name = |start, stream| Name {
            item: place_of_item(task),
            task: task.id.clone(),
            position,
            call: call.id.to_string(),
            start,
            is_stderr: stream == "stderr",
            stream,
        };
        for stream in ["stdout", "stderr"] {
            // Inserted first: a file of the same start replaces the shortened text below.
            if let Some(text) = kept(call, stream) {
                parts.insert(name(call.attempts, stream), Source::Result(text));
            }
        }
        for part in plans.engine().output().parts(&task.id, &call.id, call.attempts) {
            let source = match is_unfinished(call, part.start) {
                true if can_be_shown(call, vault) => Source::Unfinished(part.path),
                // Showing it could reveal a secret that this process cannot recognize.
                true => continue,
                false => Source::File(part.path),
            };
            parts.insert(name(part.start, part.stream), source);
        }
    }
    parts.retain(|name, _| {
        args.attempt.is_none_or(|attempt| attempt == name.start)
            && !(args.stdout && name.stream != "stdout")
            && !(args.stderr && name.stream != "stderr")
    });
    parts
}

/// Returns the stream as stored in the result of the last start.
fn kept(call: &ToolCall, stream: &str) -> Option<String> {
    if !matches!(call.status, CallStatus::Succeeded | CallStatus::Failed) {
        return None;
    }
    let text = call.result.as_ref()?.get(stream).and_then(Value::as_str)?;
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn print_json(
    app: &App,
    plans: &Taskpawl,
    vault: &Vault,
    (args, wanted): (&Args, &Wanted),
    tasks: &[Task],
) -> Result<ExitCode, CliError> {
    let mut shown = Vec::new();
    for (name, source, task) in parts(plans, vault, args, wanted.starts.as_ref(), tasks) {
        let mut bytes = Vec::new();
        read_from(&source, 0, &mut bytes)?;
        if matches!(source, Source::Unfinished(_)) {
            let (mut stream, mut clean) = (vault.redactor().stream(), Vec::new());
            stream.push(&bytes, &mut clean);
            stream.finish(&mut clean);
            bytes = clean;
        }
        shown.push(Shown {
            task: (wanted.task.is_none() || task.progress.item.is_some()).then(|| name.task.clone()),
            tool_name: task.metadata.tool_calls[name.position].tool_name.clone(),
            call: name.call,
            attempt: name.start,
            stream: name.stream,
            file: match source {
                Source::File(path) => Some(path),
                Source::Unfinished(_) | Source::Result(_) => None,
            },
            text: String::from_utf8_lossy(&bytes).into_owned(),
        });
    }
    app.out().data(&shown)
}

/// Appends the bytes of a part after `offset`, at most 1 MiB at a time.
fn read_from(source: &Source, offset: u64, bytes: &mut Vec<u8>) -> Result<(), CliError> {
    match source {
        Source::Result(text) => bytes.extend_from_slice(
            text.as_bytes().get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default(),
        ),
        Source::File(path) | Source::Unfinished(path) => match read_file(path, offset, bytes) {
            Ok(()) => {}
            // A call removes its empty files when it ends.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(CliError::File { action: "read", path: path.clone(), source }),
        },
    }
    Ok(())
}

fn read_file(path: &Path, offset: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    // Limited, so that the caller prints each piece before it reads the next: logs can be larger than memory.
    file.take(1 << 20).read_to_end(bytes)?;
    Ok(())
}

/// Prints parts, and remembers the position in each.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Printer {
    is_cleaned: bool,
    has_heads: bool,
    paint: crate::text::Paint,
    /// Printed bytes of each part, counted after secrets were removed.
    printed: BTreeMap<Name, u64>,
    /// Readers of parts whose programs still write.
    unfinished: BTreeMap<Name, Unfinished>,
    vault: Vault,
    follows: bool,
    /// The starts of calls that are printed; all without it.
    starts: Option<Starts>,
    /// True if headings name the task.
    names_tasks: bool,
    /// The last printed part: another one needs a heading.
    last: Option<Name>,
    ends_line: bool,
}

/// Position in a part whose program still writes.
struct Unfinished {
    read: u64,
    /// `None` once everything is printed.
    stream: Option<RedactorStream>,
    /// Inode of the file. After the program ends, the redacted output replaces it under the same path.
    inode: u64,
}

impl Printer {
    fn new(app: &App, args: &Args, wanted: &Wanted, vault: Vault) -> Self {
        let out = app.out();
        Self {
            // A file or pipe gets the original bytes. On a terminal, control sequences are removed, so that
            // they cannot move the cursor.
            is_cleaned: app.terminal().stdout && !args.raw,
            has_heads: !out.is_quiet && !args.raw,
            paint: out.paint,
            printed: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            vault,
            follows: args.follow,
            starts: wanted.starts.clone(),
            names_tasks: wanted.task.is_none(),
            last: None,
            ends_line: true,
        }
    }

    /// Prints new output, and returns the number of parts.
    fn print(&mut self, plans: &Taskpawl, args: &Args, tasks: &[Task]) -> Result<usize, CliError> {
        let parts = parts(plans, &self.vault, args, self.starts.as_ref(), tasks);
        let has_heads = self.has_heads && (parts.len() > 1 || args.follow || self.names_tasks);
        for (name, source, task) in &parts {
            self.print_part(name, source, has_heads, task)?;
        }
        Ok(parts.len())
    }

    fn print_part(
        &mut self,
        name: &Name,
        source: &Source,
        has_head: bool,
        task: &Task,
    ) -> Result<(), CliError> {
        loop {
            let offset = self.printed.get(name).copied().unwrap_or(0);
            let Some(bytes) = self.next(name, source, offset)? else { return Ok(()) };
            if bytes.is_empty() {
                continue;
            }
            if has_head && self.last.as_ref() != Some(name) {
                self.head(name, task)?;
            }
            self.last = Some(name.clone());
            self.printed.insert(name.clone(), offset + bytes.len() as u64);
            self.ends_line = bytes.ends_with(b"\n");
            self.write(&bytes)?;
        }
    }

    /// Returns the next bytes of a part, which can be empty for now. `None` means that nothing more can be
    /// read at present.
    fn next(&mut self, name: &Name, source: &Source, offset: u64) -> Result<Option<Vec<u8>>, CliError> {
        let mut bytes = Vec::new();
        let Source::Unfinished(path) = source else {
            read_from(source, offset, &mut bytes)?;
            return Ok(Some(bytes).filter(|bytes| !bytes.is_empty()));
        };
        // The file may have been replaced since it was listed. The next pass finds the new one.
        let Ok(data) = std::fs::metadata(path) else { return Ok(None) };
        let redactor = self.vault.redactor();
        let new = || Unfinished { read: 0, stream: Some(redactor.stream()), inode: data.ino() };
        let part = self.unfinished.entry(name.clone()).or_insert_with(new);
        let Some(stream) = part.stream.as_mut().filter(|_| part.inode == data.ino()) else { return Ok(None) };
        read_from(source, part.read, &mut bytes)?;
        part.read += bytes.len() as u64;
        let mut clean = Vec::new();
        stream.push(&bytes, &mut clean);
        if !bytes.is_empty() {
            return Ok(Some(clean));
        }
        // Without `--follow`, the text that the redactor holds back is flushed: no later text can complete a
        // secret in it.
        match part.stream.take() {
            Some(stream) if !self.follows => stream.finish(&mut clean),
            stream => part.stream = stream,
        }
        Ok(Some(clean).filter(|clean| !clean.is_empty()))
    }

    fn head(&mut self, name: &Name, task: &Task) -> Result<(), CliError> {
        let break_line = if self.ends_line { "" } else { "\n" };
        let tool = &task.metadata.tool_calls[name.position].tool_name;
        let has_task = self.names_tasks || task.progress.item.is_some();
        let item = if has_task { format!("{}: ", name.task) } else { String::new() };
        let head = format!("== {item}{} {tool}, start {}, {} ==", name.call, name.start, name.stream);
        let head = self.paint.style(style::DIM, &clean(&head));
        write_out(&shown![break_line, head, "\n"])
    }

    fn write(&self, bytes: &[u8]) -> Result<(), CliError> {
        if !self.is_cleaned {
            return write_data(bytes);
        }
        write_out(&clean_block(&without_sequences(&String::from_utf8_lossy(bytes))).into())
    }
}
