use crate::commands::parse;

/// Show the output of a task's calls, of all failed tasks, or of a run. Shows the output of every start
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[command(after_help = "\
On a terminal escape sequences are left out and other control characters are escaped; --raw prints every byte that is kept.
Of a task with `forEach` it is the output of the calls of its items.
Secrets are taken out, also of the output so far of a call that still runs.

Examples:
  taskpawl logs build
  taskpawl logs build -f
  taskpawl logs --failed
  taskpawl logs --run 3f2a
  taskpawl logs build --call c2 --attempt 1 --stderr")]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID", required_unless_present_any = ["failed", "run"])]
    pub(super) id: Option<String>,
    /// Of all failed tasks
    #[arg(long, conflicts_with_all = ["id", "follow", "call", "attempt"])]
    pub(super) failed: bool,
    /// Only what was started in this run: its id, or the beginning of it
    #[arg(long, value_name = "RUN", conflicts_with_all = ["failed", "follow", "attempt"])]
    pub(super) run: Option<String>,
    /// Go on until the task ends, whichever process runs it
    #[arg(long, short, conflicts_with = "attempt")]
    pub(super) follow: bool,
    /// Only of this call
    #[arg(long, value_name = "CALL")]
    pub(super) call: Option<String>,
    /// Only of this start of each call, counted from 1
    #[arg(long, value_name = "N", value_parser = parse::at_least_one::<u32>)]
    pub(super) attempt: Option<u32>,
    /// Only the standard output
    #[arg(long, conflicts_with = "stderr")]
    pub(super) stdout: bool,
    /// Only the standard error
    #[arg(long)]
    pub(super) stderr: bool,
    /// Print every byte as it is kept
    #[arg(long, conflicts_with_all = ["json", "fields"])]
    pub(super) raw: bool,
}
