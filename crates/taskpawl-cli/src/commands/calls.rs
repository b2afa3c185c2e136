//! Checks tool calls against the tools of this program before they are stored.

use std::collections::BTreeMap;

use serde_json::Value;
use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::plan::{Plan, PlanTask, Position, is_own_field};
use taskpawl::model::task::{CallSpec, NewCall};
use taskpawl::model::value::Map;
use taskpawl::model::value::{TaskId, bounded};
use taskpawl::tools::ToolError;
use taskpawl::unmarked_warning;

use crate::app::App;
use crate::error::{CliError, Problem};
use crate::failure::MAX_SHOWN;
use crate::servers::McpServers;
use crate::toolbox::Toolbox;

/// A fault of one call.
enum ToolProblem {
    /// No tool of this name is known here.
    UnknownTool(Hint),
    Wrong {
        field: String,
        problem: String,
    },
}

/// Checks calls from the command line. An unknown tool is only a warning.
pub(super) fn check_all(app: &App, calls: &[NewCall]) -> Result<(), CliError> {
    let place = |_: usize, path: &str| (None, Position::default(), path.to_owned());
    check(app, calls.iter().map(|call| (0, &*call.spec)), place, None)
}

/// Advice that lists the tools.
const TOOLS: Advice = Advice::ListTools { connect: false };

/// Checks the calls of a plan that was read from `file`. An unknown tool is an error, unless the plan names it in `tools`
/// or a server may bring it.
pub(super) fn check_plan(app: &App, plan: &Plan, file: &str) -> Result<(), CliError> {
    let calls = plan.tasks.iter().enumerate();
    let calls = calls.flat_map(|(index, task)| task.calls.iter().map(move |call| (index, &*call.spec)));
    let place = |index: usize, path: &str| {
        let task = &plan.tasks[index];
        let path = if path.is_empty() { task.place() } else { format!("{}: {path}", task.place()) };
        (Some(file.to_owned()), task.at, path)
    };
    check(app, calls, place, Some(&plan.tools))
}

/// Warns once for each field that is preserved, but has no effect in this version.
pub(super) fn warn_about_limits(app: &App, plan: &Plan, file: &str) {
    let mut found: BTreeMap<&str, (&PlanTask, usize)> = BTreeMap::new();
    for field in plan.extra.keys().filter(|field| *field != "description" && !is_own_field(field)) {
        app.out().warn(&format!("{file}: `{field}` is not a known field of a plan; it is kept"));
    }
    for task in &plan.tasks {
        let of_calls = task.calls.iter().flat_map(|call| call.spec.extra.keys());
        for field in task.spec.extra.keys().chain(of_calls).filter(|field| !is_own_field(field)) {
            found.entry(field).or_insert((task, 0)).1 += 1;
        }
    }
    let left_out = found.len().saturating_sub(bounded::MAX_ITEMS);
    for (field, (task, count)) in found.into_iter().take(bounded::MAX_ITEMS) {
        let name = task.id.as_ref().map_or(task.spec.name.as_str(), TaskId::as_str);
        let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        let message = format!("`{field}` is kept, but this version does not know it");
        let path = format!("task `{name}`{more}");
        app.out().warn(&Problem::at(Some(file), task.at, path, message).line());
    }
    if left_out > 0 {
        app.out().warn(&format!("{file}: {left_out} more fields are kept that this version does not know"));
    }
}

fn check<'a>(
    app: &App,
    calls: impl Iterator<Item = (usize, &'a CallSpec)>,
    place: impl Fn(usize, &str) -> (Option<String>, Position, String),
    of_plan: Option<&[String]>,
) -> Result<(), CliError> {
    let toolbox = app.toolbox()?;
    let (mut problems, mut unknown, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for (index, call) in calls {
        if let Some(message) = unmarked_warning(call) {
            let (file, at, path) = place(index, &call.tool_name);
            warnings.push(Problem::at(file.as_deref(), at, path, message));
        }
        match look_at(toolbox, app.servers()?, call) {
            Some(ToolProblem::UnknownTool(_))
                if of_plan.is_some_and(|brought| brought.contains(&call.tool_name)) => {}
            Some(ToolProblem::UnknownTool(message)) => {
                let (file, at, path) = place(index, "");
                let message = message.format_with(&*app.out().line);
                let problem = Problem::at(file.as_deref(), at, path, message);
                let is_error = of_plan.is_some() && !may_come(app, &call.tool_name);
                if is_error { problems.push(problem) } else { unknown.push(problem) }
            }
            Some(ToolProblem::Wrong { field, problem }) => {
                let (file, at, path) = place(index, &format!("{}: {field}", call.tool_name));
                problems.push(Problem::at(file.as_deref(), at, path, problem));
            }
            None => {}
        }
    }
    warn_of_unknown(app, unknown);
    for warning in warnings.iter().take(MAX_SHOWN) {
        app.out().warn(&warning.line());
    }
    if problems.is_empty() { Ok(()) } else { Err(CliError::Calls { problems }) }
}

/// Returns whether a run may have a tool that is not known yet: a configured server, or a file that needs trust, may
/// bring it.
pub(super) fn may_come(app: &App, name: &str) -> bool {
    let of_server = app.servers().is_ok_and(|servers| servers.finder().may_find(name));
    of_server || app.toolbox().is_ok_and(|toolbox| toolbox.lack(name).is_some())
}

fn warn_of_unknown(app: &App, calls: Vec<Problem>) {
    let groups = Problem::kinds(calls);
    for group in groups.iter().take(MAX_SHOWN) {
        app.out().warn(&group.counted(&group.first.line()));
    }
    let more: usize = groups.iter().skip(MAX_SHOWN).map(|group| group.count).sum();
    if more > 0 {
        let more = Hint::new(format!("… and {more} more whose tool is not known here: "));
        let out = app.out();
        out.warn(&more.advice(TOOLS).text(" shows all tools").format_with(&*out.line));
    }
}

fn look_at(toolbox: &Toolbox, servers: &McpServers, call: &CallSpec) -> Option<ToolProblem> {
    let Some(tool) = toolbox.registry().get(&call.tool_name) else {
        return Some(ToolProblem::UnknownTool(toolbox.unknown(servers, &call.tool_name)));
    };
    if call.plan_access.is_some()
        && let Err(ToolError::InvalidArgs { field, problem, .. }) = tool.check_plan_access()
    {
        return Some(ToolProblem::Wrong { field, problem });
    }
    match tool.check_planned_args(&Value::Object(Map::clone(&call.args))) {
        Err(ToolError::InvalidArgs { field, problem, .. }) => Some(ToolProblem::Wrong { field, problem }),
        Err(other) => Some(ToolProblem::Wrong { field: "args".to_owned(), problem: other.to_string() }),
        Ok(()) => None,
    }
}

/// Returns an error if no run can have a tool of this name.
pub(crate) fn require_tool(app: &App, name: &str) -> Result<(), CliError> {
    let is_known = app.toolbox()?.registry().get(name).is_some();
    // The tools of a server that never ran are registered only when a run starts it.
    if is_known || app.servers()?.finder().may_find(name) { Ok(()) } else { Err(unknown_tool(app, name)?) }
}

/// Returns the error for an unknown tool, with suggestions.
pub(crate) fn unknown_tool(app: &App, name: &str) -> Result<CliError, CliError> {
    let message = app.toolbox()?.unknown(app.servers()?, name).format_with(&*app.out().line);
    Ok(CliError::usage_with(message, Hint::from(TOOLS).text(" shows all")))
}
