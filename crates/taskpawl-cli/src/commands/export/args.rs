use std::path::PathBuf;

use taskpawl::model::value::Selector;
use taskpawl_formats::Format;

use crate::commands::{exchange, parse};

/// Export tasks for another program
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An existing file is written only if the store has all its tasks; import new ones first. The export changes the \
tasks that came from the file, and adds their new subtasks. `--only` and `--add-new` add other tasks. Other content of \
the file stays. Values that an import kept as they are here overwrite those of the file, and are listed; \
`import --adopt` takes over the file's values. A task that was removed from the file stays out of it, unless it changed here \
since, or `--again` is given. A task that was deleted here stays in the file, unless `--take-out` is given.
`import --help` lists the formats, `docs/formats.md` their fields.

Examples:
  taskpawl export markdown
  taskpawl export backlog backlog
  taskpawl export taskwarrior --only plan:release > release.json
  taskpawl export beads .beads/issues.jsonl --dry-run")]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Args {
    /// The format
    #[arg(value_name = "FORMAT", value_parser = exchange::writable_format)]
    pub(super) format: Format,
    /// The file or folder; `-`, or nothing, for standard output
    #[arg(value_name = "PATH")]
    pub(super) path: Option<PathBuf>,
    /// Export the tasks of a plan, with a label, or a task with its subtasks (repeatable); those of an existing file are always exported
    #[arg(long, value_name = "plan:NAME|label:NAME|ID", value_parser = parse::selector)]
    pub(super) only: Vec<Selector>,
    /// The prefix of ids that the file gives new tasks here
    #[arg(long, value_name = "NAME")]
    pub(super) prefix: Option<String>,
    /// Also add the tasks of the store that did not come from the file
    #[arg(long, conflicts_with = "only")]
    pub(super) add_new: bool,
    /// Preview the export, and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Overwrite a file that has changes which are not here, or that cannot be read
    #[arg(long)]
    pub(super) force: bool,
    /// Write tasks again that were removed from the file, even if they did not change here since
    #[arg(long)]
    pub(super) again: bool,
    /// Remove tasks from the file that were deleted here
    #[arg(long)]
    pub(super) take_out: bool,
}
