//! Changes of a stored plan that a planner proposes: its repair after a failure, and the subtasks of a manual task.

use serde_json::{Map, Value, json};
use taskpawl_manager::{ApplyOptions, Error, Manager};
use taskpawl_model::command::{ApplyReport, Refusal};
use taskpawl_model::plan::{Plan, PlanErrors, plan_value, read_plan};
use taskpawl_model::rules::{complete_part, resolve};
use taskpawl_model::task::{Origin, PlanRecord, Status, Task};
use taskpawl_model::value::TaskId;
use taskpawl_model::view::Query;
use taskpawl_planner::{
    Budget, Facts, MAX_OUTPUT_BYTES, Output, Patch, Planner, Prompt, Proposal, ProposeError, patch_schema,
    propose,
};
use taskpawl_text::tail;
use taskpawl_tools::{Redactor, ToolSpec, content_hash};

use crate::blocking::Blocking;
use crate::check::{CheckOptions, CheckSeverity};

/// The most repairs of a plan by planners. A plan that fails more often needs a person.
pub const MAX_REPAIRS: usize = 3;

/// The field of a plan that has the errors of its repairs.
const REPAIRS: &str = "x-repairs";

/// A change of a plan that passed every check.
#[derive(Debug, Clone)]
pub struct PlanChange {
    /// The name of the plan.
    pub plan: String,
    /// The differences, one line each: `+` for what is new, `-` for what goes.
    pub difference: Vec<String>,
    /// The answer of the planner, with its consumption.
    pub proposal: Proposal,
    /// True if it only runs failed tasks again as they are.
    pub only_retries: bool,
    part: Plan,
}

/// The reason why a plan has no change to ask for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoChange {
    /// Nothing failed.
    #[error("no task of plan `{plan}` has failed")]
    NothingFailed {
        /// The name of the plan.
        plan: String,
    },
    /// The plan was repaired too often.
    #[error("plan `{plan}` was repaired {MAX_REPAIRS} times, which is the most")]
    TooOften {
        /// The name of the plan.
        plan: String,
    },
    /// The same errors were repaired before.
    #[error("plan `{plan}` was repaired before for the same error")]
    SameError {
        /// The name of the plan.
        plan: String,
    },
    /// The task has work, or is over.
    #[error("task `{task}` is not open manual work of a plan: {why}")]
    NotManual {
        /// The id of the task.
        task: String,
        /// The reason.
        why: &'static str,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] Error),
}

/// A prompt about a plan of the store.
#[derive(Debug)]
pub struct ChangeRequest {
    /// The prompt, whose data are redacted.
    pub prompt: Prompt,
    /// True if output or results of calls are in the prompt.
    pub has_output: bool,
    plan: String,
    /// The task that is expanded.
    parent: Option<String>,
    /// The hash of the errors that are repaired.
    error: Option<String>,
}

impl ChangeRequest {
    /// Returns the name of the plan that is changed.
    pub fn plan(&self) -> &str {
        &self.plan
    }
}

impl Blocking {
    /// Prepares the repair of a plan with failed tasks: the plan in short, their errors with the end of their output, and what is blocked.
    ///
    /// # Errors
    /// Nothing failed, or the plan was repaired too often.
    pub fn repair_request(
        &self,
        plan: &str,
        tools: &[ToolSpec],
        facts: &Facts,
        max_tasks: usize,
        redactor: &Redactor,
    ) -> Result<ChangeRequest, NoChange> {
        let tasks = self.tasks_of_plan(plan)?;
        let failed: Vec<&Task> = tasks.iter().filter(|task| task.status == Status::Failed).collect();
        if failed.is_empty() {
            return Err(NoChange::NothingFailed { plan: plan.to_owned() });
        }
        let errors: Vec<String> = failed.iter().map(|task| error_key(task)).collect();
        let error = content_hash(errors.join("\n").as_bytes());
        let repairs = repairs(&self.record(plan)?);
        if repairs.len() >= MAX_REPAIRS {
            return Err(NoChange::TooOften { plan: plan.to_owned() });
        }
        if repairs.contains(&error) {
            return Err(NoChange::SameError { plan: plan.to_owned() });
        }
        let lines: Vec<String> = tasks.iter().map(line).collect();
        let output = |task: &&Task| {
            let text = redactor.text(&failure(task)).into_owned();
            Output { of: format!("Failed task {}", task.id), text }
        };
        let failures: Vec<Output> = failed.iter().map(output).collect();
        let blocked: Vec<String> = tasks
            .iter()
            .filter(|task| task.status == Status::Blocked)
            .map(|task| task.id.to_string())
            .collect();
        let prompt = Prompt::repair(&lines, &failures, &blocked, tools, facts, max_tasks);
        Ok(ChangeRequest {
            prompt,
            has_output: true,
            plan: plan.to_owned(),
            parent: None,
            error: Some(error),
        })
    }

    /// Prepares the expansion of a manual task of a plan. With a redactor, the planner also gets the results of the tasks that it needs.
    ///
    /// # Errors
    /// The task does not exist, or is no open manual work.
    pub fn expand_request(
        &self,
        task: &str,
        tools: &[ToolSpec],
        facts: &Facts,
        max_tasks: usize,
        redactor: Option<&Redactor>,
    ) -> Result<ChangeRequest, NoChange> {
        let task = self.get_task(task)?;
        let why = match (&task.plan, task.status) {
            (None, _) => Some("it belongs to no plan"),
            _ if !task.metadata.tool_calls.is_empty() => Some("it has calls"),
            _ if !task.subtasks.is_empty() => Some("it has subtasks"),
            (_, Status::Todo | Status::Blocked) => None,
            (_, Status::InProgress) => Some("it is in progress"),
            (_, Status::Done | Status::Failed | Status::Cancelled | Status::Skipped) => Some("it is over"),
        };
        if let Some(why) = why {
            return Err(NoChange::NotManual { task: task.id.to_string(), why });
        }
        let plan = task.plan.clone().unwrap_or_default();
        let mut found = Vec::new();
        for id in &task.dependencies {
            let needed = self.get_task(id.as_str())?;
            if let (Some(result), Some(redactor)) = (&needed.result, redactor) {
                let text = redactor.text(&text_of(result)).into_owned();
                found.push(Output { of: format!("Result of {id}"), text });
            }
        }
        let text = format!("{}: {}\n{}", task.id, task.name, task.description);
        let prompt = Prompt::expand(&text, &found, tools, facts, max_tasks);
        let has_output = !found.is_empty();
        Ok(ChangeRequest { prompt, has_output, plan, parent: Some(task.id.to_string()), error: None })
    }

    /// Asks a planner for a change until it passes every check. Nothing is applied.
    ///
    /// # Errors
    /// The planner fails, or none of its answers is accepted.
    pub fn propose_change(
        &self,
        request: &ChangeRequest,
        tools: &[ToolSpec],
        planner: &dyn Planner,
        budget: Budget,
        options: CheckOptions<'_>,
    ) -> Result<PlanChange, ProposeError<Error>> {
        let schema = patch_schema(tools, budget.max_tasks);
        let mut accepted = None;
        let proposal = propose(planner, request.prompt.messages(), &schema, budget, |text| {
            match self.judged(request, text, budget.max_tasks, options)? {
                Ok(change) => {
                    accepted = Some(change);
                    Ok(Vec::new())
                }
                Err(problems) => Ok(problems),
            }
        })?;
        let Some(Judged { part, difference, only_retries }) = accepted else {
            unreachable!("BUG: an accepted answer was judged")
        };
        Ok(PlanChange { plan: request.plan.clone(), difference, proposal, only_retries, part })
    }

    /// Applies a change in one command, so that one `undo` takes it back. Its calls are those of an agent.
    ///
    /// # Errors
    /// The plan has changed since, so that the change does not fit any more.
    pub fn apply_change(&self, change: &PlanChange) -> Result<ApplyReport, Error> {
        self.agent_manager().apply(change.part.clone(), &change.plan, options())
    }

    fn agent_manager(&self) -> Manager {
        self.manager().clone().with_origin(Origin::Agent)
    }

    fn tasks_of_plan(&self, plan: &str) -> Result<Vec<Task>, Error> {
        let query = Query { plan: Some(plan.to_owned()), ..Query::default() };
        Ok(self.manager().list(&query)?.tasks)
    }

    fn record(&self, plan: &str) -> Result<PlanRecord, Error> {
        self.manager().read(|view| Ok(view.plan(plan)?.unwrap_or_default()))
    }

    /// Returns the change in an answer with its differences, or all its problems.
    fn judged(
        &self,
        request: &ChangeRequest,
        text: &str,
        max_tasks: usize,
        check: CheckOptions<'_>,
    ) -> Result<Result<Judged, Vec<String>>, Error> {
        let answer = match plan_value(text) {
            Ok(answer) => answer,
            Err(errors) => return Ok(Err(told(&errors))),
        };
        let patch = match Patch::read(&answer) {
            Ok(patch) => patch,
            Err(problems) => return Ok(Err(problems)),
        };
        let mut problems = self.problems_of_ids(request, &patch)?;
        if patch.tasks().len() > max_tasks {
            problems.push(format!("{} tasks, and at most {max_tasks} are allowed", patch.tasks().len()));
        }
        if !problems.is_empty() {
            return Ok(Err(problems));
        }
        let Completed { before, part, changed } = self.completed(request, &patch)?;
        let plan = match read_plan(&part.to_string()) {
            Ok(plan) => plan,
            Err(errors) => return Ok(Err(told(&errors))),
        };
        let found = self.check_plan(&plan, "", check)?;
        let errors = found.problems.iter().filter(|problem| problem.severity == CheckSeverity::Error);
        problems.extend(errors.map(ToString::to_string));
        if problems.is_empty() {
            match self.agent_manager().preview_apply(plan.clone(), &request.plan, options()) {
                Ok(_) => {}
                Err(error @ (Error::Refused(_) | Error::Invalid(_))) => problems.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        if problems.is_empty() {
            let difference = difference(&before, &part, changed);
            Ok(Ok(Judged { part: plan, difference, only_retries: patch.only_retries() }))
        } else {
            Ok(Err(problems))
        }
    }

    /// Checks which tasks a patch names: it adds new ones, and changes those that failed or have not started.
    fn problems_of_ids(&self, request: &ChangeRequest, patch: &Patch) -> Result<Vec<String>, Error> {
        let record = self.record(&request.plan)?;
        let stored = |id: &str| record.stored_id(&id.into());
        let mut problems = Vec::new();
        if request.parent.is_some() && patch.changed_ids().next().is_some() {
            problems.push("only `add` is allowed here".to_owned());
        }
        for id in patch.added_ids() {
            if self.status(stored(id).as_str())?.is_some() {
                problems.push(format!("add: a task `{id}` exists; use `replace`, or another id"));
            }
        }
        for id in patch.changed_ids() {
            match self.status(stored(id).as_str())? {
                Some((Status::Todo | Status::Blocked | Status::Failed, Some(plan)))
                    if plan == request.plan => {}
                Some((status, Some(plan))) if plan == request.plan => {
                    problems.push(format!("`{id}` is {status}, and cannot change any more"));
                }
                _ => problems.push(format!("no task `{id}` is in the plan")),
            }
        }
        for (id, _) in &patch.retried {
            if let Some((status, _)) = self.status(stored(id).as_str())?
                && status != Status::Failed
            {
                problems.push(format!("retry: `{id}` has not failed, but is {status}"));
            }
        }
        Ok(problems)
    }

    fn status(&self, id: &str) -> Result<Option<(Status, Option<String>)>, Error> {
        match self.manager().read(|view| resolve(view, id)) {
            Err(Error::Refused(refusal)) if matches!(*refusal, Refusal::UnknownTask { .. }) => Ok(None),
            Err(error) => Err(error),
            Ok(_) => {
                let task = self.get_task(id)?;
                Ok((task.id.as_str() == id).then_some((task.status, task.plan)))
            }
        }
    }

    fn completed(&self, request: &ChangeRequest, patch: &Patch) -> Result<Completed, Error> {
        let changed = patch.changed_ids().chain(request.parent.as_deref());
        let bare: Vec<Value> = changed.map(|id| json!({"id": id})).collect();
        let tasks = match &request.parent {
            Some(parent) => vec![json!({"id": parent, "subtasks": patch.added})],
            None => patch.tasks(),
        };
        let mut record = self.record(&request.plan)?;
        if let Some(error) = &request.error {
            let mut all = repairs(&record);
            all.push(error.clone());
            record.header.insert(REPAIRS.to_owned(), json!(all));
        }
        let mut header: Map<String, Value> = record.header;
        header.remove(PlanRecord::NOTIFY_ORIGIN);
        let mut before = json!({"tasks": bare});
        let mut part = Value::Object(header);
        part["name"] = json!(request.plan);
        part["tasks"] = json!(tasks);
        let changed = tasks.len();
        self.manager().read(|view| {
            complete_part(view, &request.plan, &mut before)?;
            complete_part(view, &request.plan, &mut part)?;
            Ok(())
        })?;
        Ok(Completed { before, part, changed })
    }
}

/// A change that passed every check.
struct Judged {
    part: Plan,
    difference: Vec<String>,
    only_retries: bool,
}

/// A change with all that its tasks refer to.
struct Completed {
    /// The changed tasks as they are.
    before: Value,
    /// The part of the plan with the change. Tasks that stay as they are follow those that change.
    part: Value,
    /// The number of tasks that change.
    changed: usize,
}

fn told(errors: &PlanErrors) -> Vec<String> {
    let one = |error: &taskpawl_model::plan::PlanError| {
        let hint = error.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}: {}{hint}", error.path, error.problem)
    };
    errors.errors().iter().map(one).collect()
}

fn options() -> ApplyOptions {
    ApplyOptions { keeps_approvals: true, ..ApplyOptions::default() }
}

/// Returns the hashes of the errors that were repaired.
fn repairs(record: &PlanRecord) -> Vec<String> {
    let list = record.header.get(REPAIRS).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|hash| hash.as_str().map(str::to_owned)).collect()
}

fn line(task: &Task) -> String {
    let needs: Vec<&str> = task.dependencies.iter().map(TaskId::as_str).collect();
    let needs = if needs.is_empty() { String::new() } else { format!(", needs {}", needs.join(", ")) };
    format!("{} ({}{needs}): {}", task.id, task.status, task.name)
}

fn error_of(task: &Task) -> String {
    let of_call = task.metadata.tool_calls.iter().rev().find_map(|call| call.error.clone());
    of_call.or_else(|| task.error.clone()).unwrap_or_default()
}

/// Returns what makes an error the same after a repair. The message of a failed program names its command, which the repair has changed.
fn error_key(task: &Task) -> String {
    let failed = task.metadata.tool_calls.iter().find(|call| call.error.is_some());
    let output = failed.and_then(|call| call.result.as_ref()).map_or_else(|| error_of(task), text_of);
    let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let class = failed.and_then(|call| call.error_class.as_deref()).unwrap_or_default();
    format!("{}: {class}: {last}", task.id)
}

/// Returns the failed call with its error and the end of its output.
fn failure(task: &Task) -> String {
    let failed = task.metadata.tool_calls.iter().find(|call| call.error.is_some());
    let Some(call) = failed else { return format!("error: {}", error_of(task)) };
    let args = json!(call.evaluated_args.as_ref().unwrap_or(&call.args));
    let output = call.result.as_ref().map(text_of).unwrap_or_default();
    let head = format!("call: {} {args}\nerror: {}\n", call.tool_name, error_of(task));
    let room = MAX_OUTPUT_BYTES.saturating_sub(head.len() + 16);
    head + "output:\n" + tail(&output, room)
}

/// Returns a result as text: the streams of a program, or JSON.
fn text_of(result: &Value) -> String {
    let stream = |name: &str| result[name].as_str().filter(|text| !text.is_empty());
    match (stream("stdout"), stream("stderr")) {
        (None, None) => result.as_str().map_or_else(|| result.to_string(), str::to_owned),
        (out, err) => [out, err].into_iter().flatten().collect::<Vec<_>>().join("\n"),
    }
}

/// Returns the differences of the first `changed` tasks of a part, field by field.
fn difference(before: &Value, after: &Value, changed: usize) -> Vec<String> {
    let empty = Map::new();
    let mut lines = Vec::new();
    for task in after["tasks"].as_array().into_iter().flatten().take(changed) {
        let id = &task["id"];
        let old = before["tasks"].as_array().into_iter().flatten().find(|old| old["id"] == *id);
        let (old, new) =
            (old.and_then(Value::as_object).unwrap_or(&empty), task.as_object().unwrap_or(&empty));
        let mut fields: Vec<&String> = new.keys().chain(old.keys()).collect();
        fields.sort_unstable();
        fields.dedup();
        let changed = fields.into_iter().filter(|field| old.get(*field) != new.get(*field));
        let mut of_task = Vec::new();
        for field in changed.filter(|field| *field != "id") {
            let line = |sign, value: &Value| format!("{sign}   {field}: {value}");
            of_task.extend(old.get(field).map(|value| line('-', value)));
            of_task.extend(new.get(field).map(|value| line('+', value)));
        }
        if !of_task.is_empty() {
            lines.push(format!(
                "{} {}",
                if old.is_empty() { '+' } else { ' ' },
                id.as_str().unwrap_or_default()
            ));
            lines.extend(of_task);
        }
    }
    lines
}
