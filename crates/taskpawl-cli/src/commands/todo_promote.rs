//! `todo promote`: items of a list become tasks of the plan.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use taskpawl_todo::{Dialect, Item, Lists, Promoted, plain_title, promote};

use crate::app::App;
use crate::commands::print::count;
use crate::commands::todo;
use crate::error::CliError;
use crate::text::{clean, style};
use crate::todo_lists;

/// Which items become tasks.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
#[command(after_help = "\
The items become manual tasks with the label `todo`, for agents and people; nothing is run. What
is finished stays behind unless it is named. An item that was promoted before stays the task
that it is.

Examples:
  taskpawl todo promote
  taskpawl todo promote 3 4 --plan release --yes
  taskpawl todo promote --dialect conversation --scope 0b2f6c1e-9a4d-4c55-8a39-2f6f0f5f7f10
  taskpawl todo promote --dialect queue --scope agent-7 --dry-run")]
pub(crate) struct Args {
    /// The items, by id or title; without any all that are not finished
    #[arg(value_name = "ITEM")]
    items: Vec<String>,
    /// Whose kind of list it is: conversation, checklist or queue
    #[arg(long, value_name = "DIALECT", default_value = "checklist", value_parser = todo::dialect)]
    dialect: Dialect,
    /// The conversation, session or agent whose list it is [env: TASKPAWL_SCOPE] [default: the checklist that changed last]
    #[arg(long, value_name = "ID")]
    scope: Option<String>,
    /// The plan that the tasks join
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Where queues are kept [default: files/ in the state directory]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Only say which items would become tasks
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

/// Makes tasks of items.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let (scope, items) = found(app, args)?;
    let chosen = chosen(items, &args.items)?;
    let out = app.out();
    if chosen.is_empty() {
        out.remark("there is nothing to promote: no item is unfinished");
        return print(app, &[]);
    }
    if !args.yes || args.dry_run {
        for item in &chosen {
            out.remark(&line(item));
        }
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && !is_wanted(app, chosen.len())? {
        out.remark("nothing was promoted");
        return Ok(ExitCode::SUCCESS);
    }
    let promoted = promote(app.manager()?, args.dialect, &scope, &chosen, args.plan.as_deref())?;
    print(app, &promoted)
}

/// Returns the list that is meant, with its scope.
fn found(app: &App, args: &Args) -> Result<(String, Vec<Item>), CliError> {
    let scope = args.scope.clone().or_else(|| app.environment().text("TASKPAWL_SCOPE"));
    let missing = |what: &str| CliError::usage(format!("which {what} is meant? `--scope ID` says so"));
    let lists = todo_lists::builder_for(app, args.root.as_deref())?.build();
    let scope = match args.dialect {
        Dialect::Session => {
            let message = "the lists of `session` are in the memory of the process that keeps them";
            let hint = "let the model put what outlives the session into the plan, or use another dialect";
            return Err(CliError::usage_with(message, hint));
        }
        Dialect::Checklist | Dialect::TodoList => {
            let plans = app.reader()?;
            let list = todo::checklist(app, plans, scope.as_deref())?;
            let Some(list) = list else { return Ok((scope.unwrap_or_default(), Vec::new())) };
            todo_lists::mirror(&lists, plans);
            list.scope
        }
        Dialect::Conversation => scope.ok_or_else(|| missing("conversation"))?,
        Dialect::Queue => scope.ok_or_else(|| missing("agent"))?,
    };
    let items = items(&lists, args.dialect, &scope)?;
    Ok((scope, items))
}

fn items(lists: &Lists, dialect: Dialect, scope: &str) -> Result<Vec<Item>, CliError> {
    let failed = |error: taskpawl_todo::ListError| {
        let mut message = error.to_string();
        if let Some(source) = std::error::Error::source(&error) {
            message = format!("{message}: {source}");
        }
        CliError::usage(message)
    };
    lists.items(dialect, scope).map_err(failed)
}

fn chosen(items: Vec<Item>, names: &[String]) -> Result<Vec<Item>, CliError> {
    if names.is_empty() {
        return Ok(items.into_iter().filter(Item::is_unfinished).collect());
    }
    let one = |name: &String| {
        let is_meant = |item: &&Item| item.id.to_string() == *name || item.title == *name;
        let unknown = || {
            let known: Vec<String> = items.iter().map(line).collect();
            let hint = format!("the list has: {}", known.join("; "));
            CliError::usage_with(format!("no item of the list is called `{}`", clean(name)), hint)
        };
        items.iter().find(is_meant).cloned().ok_or_else(unknown)
    };
    names.iter().map(one).collect()
}

fn line(item: &Item) -> String {
    let (id, title) = (item.id.to_string(), plain_title(&item.title));
    if id.is_empty() { title } else { format!("{id}  {title}") }
}

/// Asks whether the items that were shown shall become tasks.
fn is_wanted(app: &App, items: usize) -> Result<bool, CliError> {
    if !app.terminal().can_ask() || app.is_json() {
        let hint = "`--dry-run` shows the items, `--yes` makes the tasks";
        return Err(CliError::usage_with("nobody can be asked here whether these become tasks", hint));
    }
    let mut stderr = std::io::stderr().lock();
    // Without the question nobody can answer it, and then the answer is no.
    let asked =
        write!(stderr, "Make {} of these? [y/N] ", count(items as u64, "task")).and_then(|()| stderr.flush());
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    Ok(asked.is_ok() && read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn print(app: &App, promoted: &[Promoted]) -> Result<ExitCode, CliError> {
    let out = app.out();
    if out.is_json {
        return out.data(&promoted);
    }
    let line = |task: &Promoted| {
        let was = if task.is_new { "" } else { "  (was promoted before)" };
        let id = out.paint.style(style::BOLD, &clean(task.id.as_str()));
        if out.is_quiet { format!("{id}\n") } else { format!("{id}  {}{was}\n", clean(&task.name)) }
    };
    out.print(&promoted.iter().map(line).collect::<String>())
}
