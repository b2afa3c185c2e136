mod args;
mod parts;
mod printer;
mod wanted;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::task::{CallStatus, Status, Task};
use taskpawl::model::value::{TaskId, format_time};
use taskpawl::tools::Vault;
use taskpawl::{Taskpawl, can_be_shown, is_unfinished};

pub(crate) use args::Args;
use parts::{Name, Source, parts, read_from, redacted};
pub(crate) use parts::{Tail, tails};
use printer::Printer;
use wanted::{Wanted, running_tasks};

use crate::app::App;
use crate::error::CliError;

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
    /// The worker that ran it; absent for the machine of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    text: String,
}

/// Prints the output of calls, and with `--follow` until the task ends.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let plans = app.reader()?;
    let vault = plans.engine().vault();
    let mut wanted = Wanted::of(plans, args)?;
    let places = plans.engine().call_places();
    wanted.tasks.iter_mut().for_each(|task| places.fill(task));
    let tasks = wanted.tasks.clone();
    for task in &tasks {
        remark_on_withheld(app, &vault, task);
        remark_on_workers(app, task);
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

/// Reports calls whose output is withheld until they end.
fn remark_on_withheld(app: &App, vault: &Vault, task: &Task) {
    for call in &task.metadata.tool_calls {
        if is_unfinished(call, call.attempts) && !can_be_shown(call, vault) {
            let what = "it names a secret that this command cannot look up by itself";
            app.out().remark(&format!("the output of `{}` is shown when it is over: {what}", call.id));
        }
    }
}

/// Reports the workers of calls, with the place of output that did not come back.
fn remark_on_workers(app: &App, task: &Task) {
    for call in &task.metadata.tool_calls {
        let Some(worker) = &call.worker else { continue };
        let text = match (call.status, call.cut.is_empty()) {
            (CallStatus::Running, _) => format!("runs on @{worker}: its output comes with its result"),
            (_, true) => format!("ran on @{worker}"),
            (_, false) => format!("ran on @{worker}, which keeps the whole in its state directory"),
        };
        app.out().remark(&format!("`{}` of `{}` {text}", call.id, task.id));
    }
}

/// Returns the worker that ran the start of a part. Only that of the last start is known.
fn worker_of<'t>(name: &Name, task: &'t Task) -> Option<&'t String> {
    let call = task.metadata.tool_calls.get(name.position)?;
    call.worker.as_ref().filter(|_| call.attempts == name.start)
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
            bytes = redacted(vault, &bytes);
        }
        shown.push(Shown {
            task: (wanted.task.is_none() || task.progress.item.is_some()).then(|| name.task.clone()),
            tool_name: task.metadata.tool_calls[name.position].tool_name.clone(),
            call: name.call.clone(),
            attempt: name.start,
            stream: name.stream,
            worker: worker_of(&name, task).cloned(),
            file: match source {
                Source::File(path) => Some(path),
                Source::Unfinished(_) | Source::Result(_) => None,
            },
            text: String::from_utf8_lossy(&bytes).into_owned(),
        });
    }
    app.out().data(&shown)
}
