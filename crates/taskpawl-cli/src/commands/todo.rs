use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use taskpawl::Taskpawl;
use taskpawl_todo::{ChecklistStatus, Dialect, MirroredList, clear_mirrored, mirrored_list, prompt_block};

use crate::app::App;
use crate::commands::print::count;
use crate::commands::{todo_promote, todo_queue};
use crate::error::CliError;
use crate::files::read_file;
use crate::text::{clean, clean_block, nearest};

/// Use the to-do lists of models. Reads, promotes and clears them, uses the queues of agents, and describes the
/// tools of the dialects
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
#[command(after_help = "\
Models keep to-do lists in four dialects: conversation, checklist, session and queue (and \
checklist:manage_todo_list, which is checklist under another name). Their tools stand in \
`taskpawl tools list`, so plans can call them; docs/todo.md says more. The items of a \
list are statements of a model, and never run; `promote` makes tasks of them.

Examples:
  taskpawl todo help manage_tasks
  taskpawl todo guide session --write
  taskpawl todo prompt
  taskpawl todo promote --plan release
  taskpawl todo clear")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
enum What {
    /// Say what a tool of a dialect does, takes and answers
    Help {
        /// The tool
        #[arg(value_name = "TOOL")]
        tool: String,
    },
    /// Print the guide to a dialect, which is for models: when to use it, when not, and how
    Guide {
        /// conversation, checklist, checklist:manage_todo_list, session or queue
        #[arg(value_name = "DIALECT", value_parser = dialect)]
        dialect: Dialect,
        /// Write it to a file instead; without PATH to .agent/prompts/rules/ in the project
        #[arg(long, value_name = "PATH", num_args = 0..=1)]
        #[expect(clippy::option_option, reason = "not given, given, and given with a path")]
        write: Option<Option<PathBuf>>,
        /// Also where the file is there and says something else
        #[arg(long, requires = "write")]
        force: bool,
    },
    /// Print the checklist that a model keeps as a block for its system prompt; nothing where there is none
    Prompt {
        /// Its session [env: TASKPAWL_SCOPE] [default: the one that changed last]
        #[arg(long, value_name = "ID")]
        scope: Option<String>,
    },
    /// Empty a checklist, also one that another process keeps
    Clear {
        /// Its session [env: TASKPAWL_SCOPE] [default: the one that changed last]
        #[arg(long, value_name = "ID")]
        scope: Option<String>,
    },
    /// Make manual tasks of the plan from items of a list; the list stays
    Promote(todo_promote::Args),
    /// Confirm an item that was popped with a lease, so that it does not return
    Ack(todo_queue::AckArgs),
    #[command(flatten)]
    Queue(todo_queue::QueueCommand),
}

/// Result of `todo clear` in `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cleared<'a> {
    scope: &'a str,
    items: usize,
}

/// Runs a command on to-do lists.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    match &args.what {
        What::Help { tool } => help(app, tool),
        What::Guide { dialect, write: None, .. } => app.out().print(taskpawl_todo::guide(*dialect)),
        What::Guide { dialect, write: Some(path), force } => {
            write_guide(app, *dialect, path.as_deref(), *force)
        }
        What::Prompt { scope } => prompt(app, scope.as_deref()),
        What::Clear { scope } => clear(app, scope.as_deref()),
        What::Promote(args) => todo_promote::run(app, args),
        What::Ack(args) => todo_queue::acknowledge(app, args),
        What::Queue(command) => command.run(app),
    }
}

/// Parses the name of a dialect.
pub(super) fn dialect(word: &str) -> Result<Dialect, String> {
    Dialect::from_word(word).ok_or_else(|| unknown_dialect(word, &Dialect::WORDS))
}

/// Returns the error for an unknown dialect, with the valid `words`.
pub(super) fn unknown_dialect(word: &str, words: &[&str]) -> String {
    let near = nearest(word, words.iter().copied());
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("there is no dialect `{word}`: use {}{hint}", words.join(", "))
}

fn help(app: &App, tool: &str) -> Result<ExitCode, CliError> {
    let Some(text) = taskpawl_todo::help(tool) else {
        let message = match nearest(tool, taskpawl_todo::tool_names()) {
            Some(near) => format!("no dialect has a tool `{tool}`; did you mean `{near}`?"),
            None => format!("no dialect has a tool `{tool}`"),
        };
        let names: Vec<&str> = taskpawl_todo::tool_names().collect();
        return Err(CliError::usage_with(message, format!("the tools are {}", names.join(", "))));
    };
    app.out().print(&text)
}

/// Writes a guide. An existing file with other content is replaced only with `--force`.
fn write_guide(
    app: &App,
    dialect: Dialect,
    path: Option<&Path>,
    is_forced: bool,
) -> Result<ExitCode, CliError> {
    let directory = &app.environment().directory;
    let path = match path {
        Some(path) => directory.join(path),
        None => app.place().map_or(directory, |place| &place.root).join(dialect.guide_path()),
    };
    let text = taskpawl_todo::guide(dialect);
    let failed = |source| CliError::File { action: "write", path: path.clone(), source };
    match read_file(&path) {
        Ok(old) if old == text => {
            app.out().remark("the guide is there already, as it should be");
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Ok(_) | Err(_) if is_forced => {}
        Err(source) => return Err(failed(source)),
        Ok(_) => {
            let message = format!("`{}` is there and says something else", path.display());
            return Err(CliError::usage_with(message, "name another PATH, or give `--force`"));
        }
    }
    if let Some(above) = path.parent() {
        fs::create_dir_all(above).map_err(failed)?;
    }
    fs::write(&path, text).map_err(failed)?;
    app.out().print(format!("{}\n", clean(&path.to_string_lossy())))
}

/// Returns the checklist of a scope, or the one that changed last.
pub(super) fn checklist(
    app: &App,
    plans: &Taskpawl,
    scope: Option<&str>,
) -> Result<Option<MirroredList>, CliError> {
    let scope = scope.map(str::to_owned).or_else(|| app.environment().text("TASKPAWL_SCOPE"));
    Ok(mirrored_list(plans.manager(), &plans.engine().project().files, scope.as_deref())?)
}

fn prompt(app: &App, scope: Option<&str>) -> Result<ExitCode, CliError> {
    let list = checklist(app, app.reader()?, scope)?;
    let block = list.map(|list| prompt_block(&list.items)).unwrap_or_default();
    let out = app.out();
    if out.is_json {
        return out.data(&serde_json::json!({ "prompt": block }));
    }
    if block.is_empty() { Ok(ExitCode::SUCCESS) } else { out.print(format!("{}\n", clean_block(&block))) }
}

fn clear(app: &App, scope: Option<&str>) -> Result<ExitCode, CliError> {
    let plans = app.writer()?;
    let out = app.out();
    let Some(list) = checklist(app, plans, scope)? else {
        out.remark("there is no checklist to clear");
        return if out.is_json { out.data(&Vec::<Cleared<'_>>::new()) } else { Ok(ExitCode::SUCCESS) };
    };
    clear_mirrored(plans.manager(), &list.scope)?;
    if out.is_json {
        return out.data(&[Cleared { scope: &list.scope, items: list.items.len() }]);
    }
    let done = list.items.iter().filter(|item| item.status == ChecklistStatus::Completed).count();
    let items = count(list.items.len() as u64, "item");
    out.print(format!("cleared the checklist of {}: {items}, {done} completed\n", clean(&list.scope)))
}
