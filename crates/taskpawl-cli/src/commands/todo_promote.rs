//! `todo promote`: makes tasks of list items.

use std::path::PathBuf;
use std::process::ExitCode;

use taskpawl::model::advice::Hint;
use taskpawl_todo::{Dialect, Item, ListError, Lists, Promoted, Promotion, choose};

use crate::app::App;
use crate::commands::print::count;
use crate::commands::{plan_file, todo};
use crate::error::CliError;
use crate::output::write_err;
use crate::shown::{Shown, shown};
use crate::text::{clean, style};
use crate::todo_lists;

/// Which items become tasks.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
#[command(after_help = "\
The items become manual tasks with the label `todo`, for agents and people; nothing is run. Finished \
items are left out unless they are named. An item that was promoted before stays the task \
that it is.

Examples:
  taskpawl todo promote
  taskpawl todo promote 3 4 --plan release --yes
  taskpawl todo promote --scope 0b2f6c1e-9a4d-4c55-8a39-2f6f0f5f7f10
  taskpawl todo promote --dialect queue --scope agent-7 --dry-run")]
pub(crate) struct Args {
    /// The items, by id or title; without any all that are not finished
    #[arg(value_name = "ITEM")]
    items: Vec<String>,
    /// Kind of the list: conversation, checklist or queue [default: that which has a list of the scope; checklist without a scope]
    #[arg(long, value_name = "DIALECT", value_parser = todo::dialect)]
    dialect: Option<Dialect>,
    /// Owner of the list: a conversation, session or agent [env: TASKPAWL_SCOPE] [default: the checklist that changed last]
    #[arg(long, value_name = "ID")]
    scope: Option<String>,
    /// The plan that the tasks join
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Directory of the queues [default: files/ in the state directory]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Only say which items would become tasks, and what would be refused
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

/// A list, with its dialect and scope.
struct Found {
    dialect: Dialect,
    scope: String,
    items: Vec<Item>,
}

/// Makes tasks of items, after a confirmation.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let Found { dialect, scope, items } = found(app, args)?;
    let chosen = chosen(&items, &args.items)?;
    let out = app.out();
    if chosen.is_empty() {
        out.remark("there is nothing to promote: no item is unfinished");
        return print(app, &[]);
    }
    let plan = args.plan.as_deref();
    let promotion = Promotion { dialect, scope: &scope, items: &items, chosen: &chosen, plan };
    if args.dry_run {
        return preview(app, &promotion);
    }
    if !args.yes {
        for place in &chosen {
            out.remark(&items[*place].line());
        }
    }
    if !args.yes && !is_wanted(app, chosen.len())? {
        out.remark("nothing was promoted");
        return Ok(ExitCode::SUCCESS);
    }
    print(app, &promotion.make(app.manager()?)?)
}

/// Marks an item that is already a task.
const WAS: &str = "  (was promoted before)";

/// Lists the items that would become tasks.
fn preview(app: &App, promotion: &Promotion<'_>) -> Result<ExitCode, CliError> {
    let before = promotion.preview(&plan_file::preview_manager(app)?)?;
    for (place, was) in promotion.chosen.iter().zip(before) {
        let was = if was.is_some() { WAS } else { "" };
        app.out().remark(&format!("{}{was}", promotion.items[*place].line()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the list that the options name.
fn found(app: &App, args: &Args) -> Result<Found, CliError> {
    let scope = args.scope.clone().or_else(|| app.environment().text("TASKPAWL_SCOPE"));
    let lists = todo_lists::builder_for(app, args.root.as_deref())?.build();
    match (args.dialect, scope) {
        (None, Some(scope)) => of_any(app, &lists, &scope),
        (dialect, scope) => of(app, &lists, dialect.unwrap_or(Dialect::Checklist), scope),
    }
}

/// Returns the list of one dialect.
fn of(app: &App, lists: &Lists, dialect: Dialect, scope: Option<String>) -> Result<Found, CliError> {
    let missing = |what: &str| CliError::usage(format!("which {what} is meant? `--scope ID` says so"));
    let scope = match dialect {
        Dialect::Session => return Err(out_of_reach()),
        Dialect::Checklist | Dialect::TodoList => {
            let plans = app.reader()?;
            let list = todo::checklist(app, plans, scope.as_deref())?;
            let Some(list) = list else {
                return Ok(Found { dialect, scope: scope.unwrap_or_default(), items: Vec::new() });
            };
            // The dialect reads its items through `lists`, so the stored checklist is loaded into them first.
            todo_lists::mirror(lists, plans);
            list.scope
        }
        Dialect::Conversation => scope.ok_or_else(|| missing("conversation"))?,
        Dialect::Queue => scope.ok_or_else(|| missing("agent"))?,
    };
    let items = lists.items(dialect, &scope).map_err(|error| read_error(&error))?;
    Ok(Found { dialect, scope, items })
}

fn out_of_reach() -> CliError {
    let message = "the lists of `session` are in the memory of the process that keeps them";
    let hint = Hint::default()
        .command("create NAME")
        .text(" makes a task of an item; a model does so with `todo_promote` of ")
        .command("mcp --dialect session --dialect core");
    CliError::usage_with(message, hint)
}

/// Returns the list of a scope in any dialect. Lists in several dialects are ambiguous and refused.
fn of_any(app: &App, lists: &Lists, scope: &str) -> Result<Found, CliError> {
    todo_lists::mirror(lists, app.reader()?);
    let mut all = Vec::new();
    for dialect in [Dialect::Checklist, Dialect::Conversation, Dialect::Queue] {
        let items = items_if_any(lists, dialect, scope)?;
        if !items.is_empty() {
            all.push(Found { dialect, scope: scope.to_owned(), items });
        }
    }
    // Scopes are chosen freely per dialect, so the same name can refer to several lists.
    if all.len() > 1 {
        let names: Vec<&str> = all.iter().map(|found| found.dialect.as_str()).collect();
        let message = format!("`{}` has a list in each of {}", clean(scope), names.join(", "));
        return Err(CliError::usage_with(message, "`--dialect DIALECT` says which is meant"));
    }
    Ok(all.pop().unwrap_or_else(|| {
        app.out().remark(&format!("no checklist, conversation or queue of `{}` has an item", clean(scope)));
        Found { dialect: Dialect::Checklist, scope: scope.to_owned(), items: Vec::new() }
    }))
}

/// Returns the items of a scope. A scope that is not valid in this dialect has none.
fn items_if_any(lists: &Lists, dialect: Dialect, scope: &str) -> Result<Vec<Item>, CliError> {
    let items = lists.items(dialect, scope);
    if matches!(items, Err(ListError::Scope { .. } | ListError::NoFolder)) {
        return Ok(Vec::new());
    }
    items.map_err(|error| read_error(&error))
}

fn read_error(error: &ListError) -> CliError {
    match std::error::Error::source(error) {
        Some(source) => CliError::usage(format!("{error}: {source}")),
        None => CliError::usage(error.to_string()),
    }
}

fn chosen(items: &[Item], names: &[String]) -> Result<Vec<usize>, CliError> {
    choose(items, names).map_err(|name| {
        let known: Vec<String> = items.iter().map(Item::line).collect();
        let hint = match &known[..] {
            [] => "the list is empty; `--scope` and `--dialect` name another one".to_owned(),
            known => format!("the list has: {}", known.join("; ")),
        };
        CliError::usage_with(format!("no item of the list is called `{}`", clean(&name)), hint)
    })
}

/// Asks for confirmation of the listed items.
fn is_wanted(app: &App, items: usize) -> Result<bool, CliError> {
    if !app.terminal().can_ask() || app.is_json() {
        let hint = "`--dry-run` shows the items, `--yes` makes the tasks";
        return Err(CliError::usage_with(
            "there is no terminal here to ask whether these become tasks",
            hint,
        ));
    }
    // If the question cannot be printed, the answer is no.
    let asked = write_err(&format!("Make {} of these? [y/N] ", count(items as u64, "task")).into());
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
        let was = if task.is_new { "" } else { WAS };
        let id = out.paint.style(style::BOLD, &clean(task.id.as_str()));
        if out.is_quiet { shown![id, "\n"] } else { shown![id, "  ", clean(&task.name), was, "\n"] }
    };
    out.print(promoted.iter().map(line).collect::<Shown>())
}
