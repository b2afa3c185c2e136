use std::process::ExitCode;

use serde::Serialize;
use taskpawl::CallOfRun;
use taskpawl::model::value::{RunId, TaskId};

use crate::app::App;
use crate::error::CliError;
use crate::shown::{Shown, shown};
use crate::text::{clean, count, style};

/// Stop a run of another process. Nothing more starts, and running calls may finish
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The run notices the request within a second, and ends with exit code 130. Its tasks continue with the next run.
An agent stops only runs that it started.

Examples:
  taskpawl runs
  taskpawl stop 3f2a
  taskpawl stop 3f2a --now")]
pub(crate) struct Args {
    /// The run: its id, or the beginning of it
    #[arg(value_name = "RUN")]
    run: String,
    /// End its running calls, too. Names those first whose effects are unknown afterwards
    #[arg(long)]
    now: bool,
}

/// Result of `stop`.
#[derive(Debug, Serialize)]
struct Stopping {
    run: RunId,
    now: bool,
    /// The calls that run now.
    running: Vec<RunningCall>,
}

/// A running call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RunningCall {
    task: TaskId,
    call: String,
    tool_name: String,
    /// True if the call would be `interrupted`: its effects are unknown, and it is not started again by itself.
    interrupted: bool,
}

/// Asks a run to stop.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let manager = app.manager()?;
    let run = manager.find_run(&args.run)?;
    let running = manager.calls_of_run(&run)?;
    let running: Vec<RunningCall> =
        running.into_iter().map(|call| RunningCall::new(app, call, args.now)).collect::<Result<_, _>>()?;
    let out = app.out();
    // Named before the request is made, so that the list is known even if this command does not get further.
    let interrupted: Vec<String> =
        running.iter().filter(|call| call.interrupted).map(RunningCall::name).collect();
    if !interrupted.is_empty() && !out.is_json {
        out.remark(&format!("to be interrupted, with unknown effects: {}", interrupted.join(", ")));
    }
    manager.stop_run(&run, args.now)?;
    let stopping = Stopping { run, now: args.now, running };
    if out.is_json { out.data(&stopping) } else { out.print(stopping.text(out.paint)) }
}

impl RunningCall {
    fn new(app: &App, CallOfRun { task, call }: CallOfRun, now: bool) -> Result<Self, CliError> {
        let args = call.body.args.as_ref().unwrap_or(&call.spec.args).clone();
        let tool = app.toolbox()?.registry().get(&call.spec.tool_name);
        // A tool that only the run has, such as that of an MCP server, counts as not repeatable.
        let by_tool = || tool.is_some_and(|tool| tool.tool().is_repeatable(&args.into()));
        let is_repeatable = call.spec.idempotent.unwrap_or_else(by_tool);
        Ok(Self {
            task,
            call: call.id.to_string(),
            interrupted: now && !is_repeatable,
            tool_name: call.spec.tool_name.clone(),
        })
    }

    fn name(&self) -> String {
        clean(&format!("{} {} ({})", self.task, self.call, self.tool_name))
    }
}

impl Stopping {
    fn text(&self, paint: crate::text::Paint) -> Shown {
        let calls = count(self.running.len() as u64, "call");
        let rest = match (self.running.len(), self.now) {
            (0, _) => "nothing runs".to_owned(),
            (_, true) => format!("{calls} ended"),
            (_, false) => format!("{calls} may finish"),
        };
        let id = paint.style(style::BOLD, &clean(self.run.as_str()));
        shown!["run ", id, " stops: nothing more starts, ", rest, "\n"]
    }
}
