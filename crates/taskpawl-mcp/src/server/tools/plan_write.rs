use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use taskpawl::model::advice::Hint;
use taskpawl::model::command::Refusal;
use taskpawl::model::plan::{
    Plan, PlanError, PlanErrors, PlanProblem, PlanTask, is_own_field, plan_value, read_plan_up_to,
};
use taskpawl::model::rules::complete_part;
use taskpawl::model::task::PolicyDecision;
use taskpawl::model::task::{CallSpec, NewCall, Origin, PlanNotify, PlanRecord, TaskSpec};
use taskpawl::model::value::Selector;
use taskpawl::model::value::TaskId;
use taskpawl::tools::{Registry, ToolError};
use taskpawl::{ApplyOptions, CheckOptions, CheckSeverity, Error, Manager, PlanCheck, RunVariables};
use taskpawl_text::nearest;

use super::definition::{Definition, WRITES, schema, switch, text};
use crate::server::actions::Action;
use crate::server::announced::announced;
use crate::server::answer::Answer;
use crate::server::arguments;
use crate::server::caller::Caller;
use crate::server::digest::after;
use crate::server::help::tool_names;
use crate::server::options::ServerOptions;
use crate::server::reading::corrected;
use crate::server::refusal::{CallFault, Refused, problems_of};

/// Name of a plan without a name.
const NAME: &str = "plan";

/// Maximum size of a plan that is corrected for a refusal, in bytes.
const MAX_CORRECTED: usize = 800;

/// Maximum number of tasks of one call. In memory a task takes up to 5 kB, and the largest message could contain
/// 400,000 tasks.
const MAX_TASKS: usize = 40_000;

pub(super) fn definition(within: bool) -> Definition {
    let mut definition = definition_of_plans();
    if within {
        definition.description = JOINING;
        definition.input =
            schema(json!({"plan": {"type": "object", "description": "{tasks: [...]}"}}), &["plan"], true);
        definition.hints = super::definition::Hints { destroys: false, ..definition.hints };
    }
    definition
}

/// The description inside a call.
const JOINING: &str = "Adds tasks to the plan of this call, all or nothing. A task: id, name, needs: [ids], and work: run: \"command\" or call: {TOOL: {args}}, or none (by hand). The same tasks again change nothing.";

fn definition_of_plans() -> Definition {
    Definition {
        description: "Writes a plan, all or nothing. A task: id, name, needs: [ids], and work: run: \"command\" or call: {TOOL: {args}}, or none (by hand). Tasks left out stay, listed as gone; merge: only adds and changes.",
        input: schema(
            json!({
                "plan": {"type": "object", "description": "{tasks: [...], params?}"},
                "name": text(), "merge": switch(), "dry_run": switch(),
            }),
            &["plan"],
            true,
        ),
        hints: super::definition::Hints { is_idempotent: true, ..WRITES },
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Only its presence is checked here: the plan was taken out before.
    #[serde(rename = "plan")]
    _plan: IgnoredAny,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    merge: bool,
    #[serde(default)]
    dry_run: bool,
}

/// Checks the arguments of a call.
pub(super) fn check_arguments(given: Map<String, Value>) -> Result<(), Refused> {
    arguments::read::<Arguments>(given).map(drop)
}

pub(super) fn call(
    caller: &Caller,
    options: &ServerOptions,
    mut arguments: Map<String, Value>,
) -> Result<Answer, Refused> {
    // Parsing the arguments copies them, and a plan is large: it is taken out before.
    let plan = arguments.get_mut("plan").filter(|plan| !plan.is_null());
    let plan = plan.map(|plan| std::mem::replace(plan, Value::Bool(true))).unwrap_or_default();
    let given = arguments.clone();
    let Arguments { name, mut merge, dry_run, .. } = arguments::read(arguments)?;
    if options.within.is_some() {
        refuse_dry_run(dry_run)?;
        // The tasks join the plan of the call, which keeps its other tasks and its header.
        merge = false;
    }
    let manager = caller.manager();
    let is_text = plan.is_string() && !merge;
    let (plan, text, around) = if merge {
        merged_part(&manager, plan, name.as_deref(), &given)?
    } else {
        whole_plan(caller, plan, given.clone())?
    };
    let name = name.or_else(|| plan.name.clone());
    let (is_nameless, name) = (name.is_none(), name.unwrap_or_else(|| NAME.to_owned()));
    let problems = checked(caller, options, &plan, (text, is_text), given)?;
    let mut warnings = warnings(caller, &plan);
    let notify = PlanNotify { argv: plan.notify.clone(), origin: Origin::Mcp };
    let options = ApplyOptions { keeps_approvals: true, ..ApplyOptions::default() };
    let report = if dry_run {
        manager.preview_apply(plan, &name, options)?
    } else {
        manager.apply(plan, &name, options)?
    };
    if report.header.iter().any(|field| field == "notify") && !notify.argv.is_empty() {
        warnings.extend(not_told(&manager, &notify));
    }
    let unchanged = report.unchanged.saturating_sub(around);
    let mut answer = Answer::new(json!({"plan": report.plan, "unchanged": unchanged}))
        .with("created", json!(report.created))
        .with("changed", json!(report.changed))
        .with("prefix", json!(report.prefix))
        .with("prefixed", json!(report.prefixed))
        .with("changedFields", json!(report.header))
        .with("warnings", json!(warnings))
        .with("problems", json!(problems));
    if !dry_run {
        let written: Vec<TaskId> = report.created.iter().chain(&report.changed).cloned().collect();
        answer = answer.with("asks", announced(caller, &written, Some(&report.plan))?);
    }
    let was_there = report.unchanged > 0 || !report.changed.is_empty() || !report.gone.is_empty();
    if !merge {
        answer = answer.with("gone", json!(report.gone));
        // A caller that gave no name may have meant a new plan.
        answer = answer.with("note", json!((is_nameless && was_there).then_some(WAS_THERE)));
    }
    if dry_run {
        return Ok(answer.with("dryRun", json!(true)));
    }
    let answer = answer.rest(Action::call("plan_show", json!({"plan": report.plan})));
    let only = [Selector::Plan(report.plan)];
    // An empty plan selects nothing, which is an error here but no failure of the call.
    let ready = caller.reads().explain_ready(&only, 2, &caller.means);
    let begin = ready.map(|ready| after(&ready, &only)).unwrap_or_default();
    Ok(answer.next(begin).next([Action::call("plan_show", json!({}))]))
}

/// The note for a plan without a name that was written into an existing plan.
const WAS_THERE: &str = "no `name` was given, so this was written into the plan `plan`, which was there before: its tasks are \
                         unchanged, changed or gone as listed; give `name` for a plan of its own";

/// Refuses a preview: it would show a separate plan, but the tasks join the plan of the call.
fn refuse_dry_run(dry_run: bool) -> Result<(), Refused> {
    if dry_run {
        let what = "`dry_run` shows another plan, and these tasks join that of the call".to_owned();
        return Err(Refusal::BeyondAccess { access: None, what }.into());
    }
    Ok(())
}

/// Parses a plan, given as an object or as text. Also returns its text.
///
/// `given` are the arguments of the call, for the corrected call of a refusal.
fn whole_plan(
    caller: &Caller,
    plan: Value,
    given: Map<String, Value>,
) -> Result<(Plan, String, u64), Refused> {
    let is_text = plan.is_string();
    let text = if let Value::String(text) = plan { text } else { into_text(plan) };
    let plan = read(&text, if is_text { Refused::Text } else { Refused::from });
    match plan {
        Ok(plan) => Ok((plan, text, 0)),
        // All problems at once, not only those of the reader.
        Err(Refused::Text(_) | Refused::Command(Error::Invalid(_))) => {
            let refused = Refused::Plan { found: all_problems(caller, &text)?, is_text };
            Err(match again(&text, given).filter(|_| !is_text) {
                Some(call) => refused.corrected(call),
                None => refused,
            })
        }
        Err(other) => Err(other),
    }
}

/// Parses a part of a plan like [`part`]. The refusal of a short one has the corrected call.
fn merged_part(
    manager: &Manager,
    plan: Value,
    name: Option<&str>,
    given: &Map<String, Value>,
) -> Result<(Plan, String, u64), Refused> {
    let written = is_small(&plan).then(|| plan.to_string());
    part(manager, plan, name).map_err(|refused| {
        let corrected = written.and_then(|text| again(&text, given.clone()));
        match (corrected, &refused) {
            (Some(call), Refused::Command(Error::Invalid(_))) => refused.corrected(call),
            _ => refused,
        }
    })
}

/// Returns whether a plan may be short enough to be corrected, without writing it out.
fn is_small(plan: &Value) -> bool {
    plan["tasks"].as_array().is_some_and(|tasks| tasks.len() <= MAX_CORRECTED / 20)
}

/// Returns the call with the plan as it was probably meant, if that can be read.
fn again(text: &str, mut given: Map<String, Value>) -> Option<Action> {
    if text.len() > MAX_CORRECTED {
        return None;
    }
    let plan = corrected::plan(&serde_json::from_str(text).ok()?)?;
    read(&plan.to_string(), Refused::from).ok()?;
    given.insert("plan".to_owned(), plan);
    Some(Action::call("plan_write", Value::Object(given)))
}

/// Adds the call without the dependencies that do not exist to the refusal of a plan.
fn without_unknown_needs(refused: Refused, text: &str, mut given: Map<String, Value>) -> Refused {
    let Refused::Plan { found, is_text: false } = &refused else { return refused };
    if text.len() > MAX_CORRECTED || found.problems.iter().any(|problem| problem.code != "unknown_task") {
        return refused;
    }
    let paths: Vec<&str> = found.problems.iter().map(|problem| problem.path.as_str()).collect();
    let Some(plan) = serde_json::from_str(text).ok().and_then(|plan| corrected::without_needs(&plan, &paths))
    else {
        return refused;
    };
    given.insert("plan".to_owned(), plan);
    refused.corrected(Action::call("plan_write", Value::Object(given)))
}

/// Explains a tool that no run here can have.
fn explain_tool(caller: &Caller, name: &str) -> Option<Hint> {
    if caller.means.may_have_tool(name) {
        return None;
    }
    Some(match nearest(name, caller.plans.engine().tools().names()) {
        // The reason is that of its server.
        _ if name.contains('/') => caller.means.unknown(name),
        Some(near) => Hint::new("did you mean ").data(near).text("?"),
        None => Hint::new(format!(
            "the tools are {}; name it in `tools` of the plan if another program brings it",
            tool_names(caller).join(", ")
        )),
    })
}

/// Returns all problems of a plan with errors, the errors first. The calls that ask a person are not among them.
fn all_problems(caller: &Caller, text: &str) -> Result<PlanCheck, Refused> {
    // No variables are known: a person passes them to the run.
    let (variables, explain) = (RunVariables::default(), |name: &str| explain_tool(caller, name));
    let options = CheckOptions { origin: Origin::Mcp, variables: &variables, explain: &explain, files: None };
    let mut found = caller.plans.blocking().check_text(text, options)?;
    found.problems.retain(|problem| problem.severity != CheckSeverity::Note);
    found.problems.sort_by_key(|problem| problem.severity);
    Ok(found)
}

/// Checks a plan before it is written, and returns the warnings of the check. Drops its text, which may be large.
fn checked(
    caller: &Caller,
    options: &ServerOptions,
    plan: &Plan,
    (text, is_text): (String, bool),
    given: Map<String, Value>,
) -> Result<Vec<Value>, Refused> {
    if options.within.is_some() {
        // The policy and the tools of the run decide, which this server does not know.
        let calls = plan.tasks.iter().flat_map(|task| task.calls.iter().map(move |call| (word(task), call)));
        check_calls(caller, options, &plan.tools, calls)?;
        return Ok(Vec::new());
    }
    check(caller, plan, &text, is_text).map_err(|refused| without_unknown_needs(refused, &text, given))
}

/// Checks a plan, and returns what may fail here. The calls that ask a person are not among that.
fn check(caller: &Caller, plan: &Plan, text: &str, is_text: bool) -> Result<Vec<Value>, Refused> {
    let (variables, explain) = (RunVariables::default(), |name: &str| explain_tool(caller, name));
    let options = CheckOptions { origin: Origin::Mcp, variables: &variables, explain: &explain, files: None };
    let mut found = caller.plans.blocking().check_plan(plan, text, options)?;
    if found.errors > 0 && !text.is_empty() {
        // Unknown fields are kept until the plan is applied, but they are listed with the other errors.
        found = all_problems(caller, text)?;
    }
    if found.errors > 0 {
        return Err(Refused::Plan { found, is_text });
    }
    found.problems.retain(|problem| problem.severity == CheckSeverity::Warning);
    Ok(problems_of(&found, is_text).0)
}

/// Parses the text of a plan, up to the maximum number of tasks for one call.
fn read(text: &str, refused: fn(PlanErrors) -> Refused) -> Result<Plan, Refused> {
    read_plan_up_to(text, MAX_TASKS).map_err(|errors| {
        let is_large = |error: &PlanError| matches!(error.problem, PlanProblem::TooManyTasks { .. });
        if !errors.errors().iter().any(is_large) {
            return refused(errors);
        }
        let parts = "write it in parts with `merge: true`, which changes nothing of the others";
        Refused::argument("plan", format!("it has more than {MAX_TASKS} tasks: {parts}"))
    })
}

/// Converts a value to text and drops it: in memory a large plan takes ten times as much as its text.
fn into_text(value: Value) -> String {
    let text = value.to_string();
    drop(value);
    text
}

/// Parses a part of a plan, and completes it from the stored plan. Also returns the number of tasks that were added
/// only because the part refers to them.
///
/// The positions in the completed text mean nothing to the caller, so an empty text is returned beside it.
fn part(manager: &Manager, mut part: Value, name: Option<&str>) -> Result<(Plan, String, u64), Refused> {
    // Some models write an object as text.
    if let Some(text) = part.as_str() {
        part = plan_value(text).map_err(Refused::Text)?;
    }
    if part.is_array() {
        part = json!({"tasks": part});
    }
    let name = name.or(part["name"].as_str()).unwrap_or(NAME).to_owned();
    let record = manager.read(|view| Ok(view.plan(&name)?))?;
    if let (Some(record), Some(part)) = (record, part.as_object_mut()) {
        for (field, value) in record.header {
            // The origin of `notify` records its author, and is no field of a plan.
            if field == PlanRecord::NOTIFY_ORIGIN {
                continue;
            }
            part.entry(field).or_insert(value);
        }
    }
    let around = manager.read(|view| Ok(complete_part(view, &name, &mut part)?))?;
    Ok((read(&into_text(part), Refused::from)?, String::new(), around as u64))
}

/// Explains why the plan's `notify` program will not run, if the policy does not allow it.
fn not_told(manager: &Manager, notify: &PlanNotify) -> Option<String> {
    match notify.authorize(manager.policy_hook().map(|policy_hook| &**policy_hook)) {
        PolicyDecision::Allow => None,
        PolicyDecision::Ask { why } | PolicyDecision::Deny { why } => Some(format!(
            "`notify` is kept and not run: {why}; it runs when a person applies the plan with it"
        )),
    }
}

fn word(task: &PlanTask) -> String {
    task.id.as_ref().map_or_else(|| task.spec.name.clone(), TaskId::to_string)
}

/// Refuses calls of tools that no run can have, and calls whose arguments do not fit their tools. Expressions
/// may become any value. Unknown tools pass if another program brings them (`brought`), and within a call of a run,
/// which may have them.
pub(super) fn check_calls<'a>(
    caller: &Caller,
    options: &ServerOptions,
    brought: &[String],
    calls: impl Iterator<Item = (String, &'a NewCall)>,
) -> Result<(), Refused> {
    let tools = caller.plans.engine().tools();
    let unknown = |name: &str| {
        if brought.iter().any(|known| known == name) {
            return None;
        }
        let hint =
            explain_tool(caller, name).filter(|_| options.within.is_none())?.format_with(&caller.words());
        Some(if name.contains('/') { hint } else { format!("no tool `{name}` is known here; {hint}") })
    };
    let fault = |(task, call): (String, &NewCall)| {
        let fault = unknown(&call.spec.tool_name).or_else(|| problem(tools, &call.spec))?;
        Some(CallFault { task, fault })
    };
    let problems: Vec<CallFault> = calls.filter_map(fault).collect();
    if problems.is_empty() { Ok(()) } else { Err(Refused::Calls(problems)) }
}

fn problem(tools: &Registry, call: &CallSpec) -> Option<String> {
    let tool = tools.get(&call.tool_name)?;
    let checked = call
        .plan_access
        .map_or(Ok(()), |_| tool.check_plan_access())
        .and_then(|()| tool.check_planned_args(&Value::Object(call.args.clone())));
    match checked {
        Err(ToolError::InvalidArgs { field, problem, .. }) => {
            Some(format!("{}: {field}: {problem}", call.tool_name))
        }
        Err(other) => Some(other.to_string()),
        Ok(()) => None,
    }
}

fn warnings(caller: &Caller, plan: &Plan) -> Vec<String> {
    let fields = plan
        .extra
        .keys()
        .filter(|field| *field != "description" && !is_own_field(field))
        .map(|field| unknown_field("the plan", field));
    let tasks = plan.tasks.iter().flat_map(|task| warnings_of_task(caller, &task.spec, &task.calls));
    let all: BTreeSet<String> = fields.chain(tasks).collect();
    all.into_iter().collect()
}

/// Returns warnings about unknown fields and tools of a task.
pub(super) fn warnings_of_task(caller: &Caller, spec: &TaskSpec, calls: &[NewCall]) -> Vec<String> {
    let fields = spec.extra.keys().filter(|field| !is_own_field(field));
    let fields = fields.map(|field| unknown_field("a task", field));
    fields.chain(warnings_of_calls(caller, calls)).collect()
}

/// Returns warnings about calls: unknown tools, and expressions without their mark.
pub(super) fn warnings_of_calls(caller: &Caller, calls: &[NewCall]) -> Vec<String> {
    let means = &caller.means;
    let unknown = calls.iter().filter(|call| !means.has_tool(&call.spec.tool_name));
    let mut warnings: Vec<String> = unknown
        .map(|call| means.unknown(&call.spec.tool_name).text(RUNS_SKIP).format_with(&caller.words()))
        .collect();
    // The tools of a server are its own to list.
    let is_of_server = |call: &NewCall| call.spec.tool_name.contains('/');
    if !warnings.is_empty() && !calls.iter().all(is_of_server) {
        warnings.push(format!("the tools are {}", tool_names(caller).join(", ")));
    }
    warnings.extend(calls.iter().filter_map(|call| taskpawl::unmarked_warning(&call.spec)));
    warnings
}

/// The consequence of an unknown tool.
const RUNS_SKIP: &str = "; runs of this server skip it";

fn unknown_field(of: &str, field: &str) -> String {
    format!("`{field}` is not a known field of {of}; it is kept and does nothing")
}
