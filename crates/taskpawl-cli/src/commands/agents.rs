//! `init --agent`: shows the changes to the instruction files of agents, then writes or removes them.

use std::io::BufRead as _;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use taskpawl::model::advice::Hint;

use crate::agents::{Agent, Change, Changes, Wish};
use crate::app::App;
use crate::error::CliError;
use crate::output::write_err;

/// Which agents are told of the project, and how.
#[derive(Debug, clap::Args)]
pub(super) struct AgentArgs {
    /// Tell this agent of the project; may be given several times
    #[arg(long = "agent", value_name = "AGENT", value_delimiter = ',', value_enum)]
    agents: Vec<Agent>,
    /// Let tool calls that the agent adds run in the sandbox without being asked about, as far as the policy has nothing against it
    #[arg(long, value_name = "WHAT", value_enum, requires = "agents")]
    allow: Option<Allow>,
    /// Tell the state of the plan at the start of each session and after each compaction (claude)
    #[arg(long, requires = "agents")]
    hooks: bool,
    /// Take back what was written for the agent
    #[arg(long, requires = "agents", conflicts_with_all = ["allow", "share", "new"])]
    remove: bool,
    /// Do not ask
    #[arg(long, short, requires = "agents")]
    yes: bool,
}

/// What may run without being asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Allow {
    /// Whatever runs in the sandbox
    Sandboxed,
}

/// Result of the command in `--json`.
#[derive(Serialize)]
struct Shown<'a> {
    root: String,
    files: Vec<ShownFile<'a>>,
    written: bool,
}

#[derive(Serialize)]
struct ShownFile<'a> {
    path: &'a str,
    change: Change,
}

impl AgentArgs {
    /// Returns whether an agent was named; without one `init` leaves all agent files alone.
    pub(super) fn is_asked(&self) -> bool {
        !self.agents.is_empty()
    }

    fn changes(&self, root: &Path, allow_sandboxed: bool) -> Result<Changes, CliError> {
        let mut agents = self.agents.clone();
        agents.sort_unstable();
        agents.dedup();
        if self.remove && self.hooks {
            let hint = Hint::new("leave out `--hooks`; ")
                .command("init --agent claude")
                .text(" without it writes the rest again");
            return Err(CliError::usage_with("`--remove` takes back everything, the hooks too", hint));
        }
        if self.remove {
            return Changes::removing(root, &agents);
        }
        if self.hooks && !agents.contains(&Agent::Claude) {
            let hint = "the others have the instructions, and the MCP tool `plan_show`";
            return Err(CliError::usage_with("only claude has hooks that tell the state of the plan", hint));
        }
        Changes::adding(root, &agents, Wish { allow_sandboxed, hooks: self.hooks })
    }
}

/// Prints the changes as a diff and, if the user agrees, writes them. `make` creates the project before any
/// file is written.
pub(super) fn run(
    app: &App,
    args: &AgentArgs,
    root: &Path,
    make: impl FnOnce() -> Result<(), CliError>,
) -> Result<ExitCode, CliError> {
    let out = app.out();
    let changes = args.changes(root, allows(app, args)?)?;
    for kept in &changes.kept {
        out.remark(kept);
    }
    if !changes.is_empty() {
        if !out.is_json {
            out.print(changes.diff(out.paint))?;
        }
        consent(app, args)?;
    }
    if !args.remove {
        make()?;
        remark_on_path(app);
    }
    changes.write(root)?;
    let written = !changes.is_empty();
    if out.is_json {
        let files = changes.list().map(|(path, change)| ShownFile { path, change }).collect();
        return out.data(&Shown { root: root.display().to_string(), files, written });
    }
    out.remark(match (written, args.remove) {
        (false, false) => "everything is there already: nothing was changed",
        (false, true) => "there is nothing to take back",
        (true, false) => "written; restart the agent, and allow its server `taskpawl` when it asks",
        (true, true) => "taken back",
    });
    Ok(ExitCode::SUCCESS)
}

/// Asks for confirmation, unless `--yes` was given.
fn consent(app: &App, args: &AgentArgs) -> Result<(), CliError> {
    if args.yes {
        return Ok(());
    }
    let refused = |message: &str| CliError::usage_with(message, "`--yes` does it without asking");
    if app.is_json() || !app.terminal().can_ask() {
        return Err(refused("nothing was changed: there is no terminal to ask at"));
    }
    if is_yes("\nchange these files? [y/N] ")? { Ok(()) } else { Err(refused("nothing was changed")) }
}

/// Returns whether calls of the agent run in the sandbox without a question each: as said, else as the person at the
/// terminal answers. Without an answer each of them asks.
fn allows(app: &App, args: &AgentArgs) -> Result<bool, CliError> {
    let is_open = args.allow.is_none() && !args.yes && !args.remove;
    if !is_open || app.is_json() || !app.terminal().can_ask() {
        return Ok(args.allow.is_some());
    }
    is_yes(
        "Tool calls that the agent adds ask you before they run, but for those that only read.\n\
         Let them run in the sandbox without asking? (`--allow sandboxed`) [y/N] ",
    )
}

/// Asks a question on the terminal. Anything but a yes is a no.
fn is_yes(question: &str) -> Result<bool, CliError> {
    // If the question cannot be printed, the answer decides: an input at its end counts as a no.
    let _ = write_err(&question.into());
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|source| CliError::File { action: "read", path: "standard input".into(), source })?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Warns if `taskpawl` is not on the PATH, because agents start the program by its name.
fn remark_on_path(app: &App) {
    let path = app.environment().text("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|directory| directory.join("taskpawl").is_file());
    if !is_there {
        app.out().warn("`taskpawl` is not on the PATH: agents that start it by this name will not find it");
    }
}
