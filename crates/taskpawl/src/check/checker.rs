//! The checks of one task that need tools, the policy and secrets.

use std::collections::BTreeMap;

use serde_json::Value;
use taskpawl_engine::Engine;
use taskpawl_model::advice::Hint;
use taskpawl_model::expr::{result_fields, result_fields_of_condition};
use taskpawl_model::plan::{Plan, PlanPart, PlanTask};
use taskpawl_model::rules::authorize_planned;
use taskpawl_model::task::{
    CallSpec, Origin, PolicyDecision, PolicyHook, SandboxRequest, WAIT_TOOL, WaitRequest,
};
use taskpawl_model::value::secret_names;
use taskpawl_text::{error_chain, nearest};
use taskpawl_tools::{RegisteredTool, SandboxError, SecretError, ToolError};

use super::{CheckSeverity, ExplainTool, Problem, name_of, unmarked_warning};

pub(super) struct Checker<'a> {
    pub(super) engine: &'a Engine,
    pub(super) policy_hook: Option<&'a dyn PolicyHook>,
    pub(super) plan: &'a Plan,
    /// The author of the calls, in the eyes of the policy.
    pub(super) origin: Origin,
    pub(super) explain: ExplainTool<'a>,
    /// True if calls that ask a person are listed. In a large plan each call may ask.
    pub(super) has_notes: bool,
}

impl Checker<'_> {
    pub(super) fn task(&self, task: &PlanTask, found: &mut Vec<Problem>) {
        self.request(task, &PlanPart::Task, task.spec.sandbox.as_ref(), found);
        for (index, call) in task.calls.iter().enumerate() {
            let spec = &call.spec;
            self.request(task, &PlanPart::Tool(index), spec.sandbox.as_ref(), found);
            if let Some(message) = unmarked_warning(spec) {
                let problem = Problem::new(task, PlanPart::Tool(index), "unmarked_expression", message);
                found.push(problem.with_severity(CheckSeverity::Warning));
            }
            if let Some(tool) = self.engine.tools().get(&spec.tool_name) {
                self.arguments(task, index, tool, spec, found);
                self.decision(task, index, spec, found);
            } else if !spec.tool_name.is_empty()
                && !self.plan.tools.contains(&spec.tool_name)
                && let Some(hint) = (self.explain)(&spec.tool_name)
            {
                let message = format!("no tool `{}` is known here", spec.tool_name);
                let problem = Problem::new(task, PlanPart::Tool(index), "unknown_tool", message);
                found.push(problem.with_hint(Some(hint)));
            }
            self.secrets(task, index, spec, found);
        }
        if self.has_notes && task.spec.approval.is_some() {
            let what = if task.spec.approval_after().is_some() { " about its result" } else { "" };
            let message = format!("waits for the approval{what} that the plan requires");
            let problem = Problem::new(task, PlanPart::Task, "approval", message);
            found.push(problem.with_severity(CheckSeverity::Note));
        }
        for (other, field, known) in self.unknown_result_fields(task) {
            let message = format!("the result of `{other}` has no field `{field}`");
            let hint = match nearest(&field, known.iter().map(String::as_str)) {
                Some(near) => Hint::new("did you mean ").data(near).text("?"),
                None => Hint::new(format!("its fields are {}", known.join(", "))),
            };
            let is_given = self.is_given(task, &other);
            let part = PlanPart::ResultField { task: other, field };
            let mut problem = Problem::new(task, part, "unknown_result_field", message).with_hint(Some(hint));
            if is_given {
                "include.with".clone_into(&mut problem.found.path);
            }
            // Each task that reads the parameter has the same fault.
            if !is_given || found.iter().all(|other| other.found != problem.found) {
                found.push(problem);
            }
        }
    }

    /// Checks the arguments of a call against its tool.
    fn arguments(
        &self,
        task: &PlanTask,
        index: usize,
        tool: &RegisteredTool,
        spec: &CallSpec,
        found: &mut Vec<Problem>,
    ) {
        let args = Value::Object(spec.args.clone());
        if spec.plan_access.is_some()
            && let Err(error) = tool.check_plan_access()
        {
            found.push(invalid(task, index, error));
        }
        if let Err(error) = tool.check_planned_args(&args) {
            found.push(invalid(task, index, error));
        } else if let Some(problem) = wait_problem(spec) {
            let part = PlanPart::Argument(index, String::new());
            found.push(Problem::new(task, part, "invalid_args", problem));
        }
        for foreseen in tool.foresee(&args, &self.engine.project().root) {
            let severity = if foreseen.is_certain { CheckSeverity::Error } else { CheckSeverity::Warning };
            let part = PlanPart::Argument(index, format!(".{}", foreseen.field));
            let problem = Problem::new(task, part, foreseen.code, foreseen.message);
            found.push(problem.with_severity(severity));
        }
    }

    /// Reports the paths of a request that would be refused after an approval.
    fn request(
        &self,
        task: &PlanTask,
        part: &PlanPart,
        request: Option<&SandboxRequest>,
        found: &mut Vec<Problem>,
    ) {
        for refusal in request.map(|request| self.engine.refusals(request)).unwrap_or_default() {
            // A path may be there, or a link gone, when the plan runs.
            let is_certain = matches!(refusal, SandboxError::Own { .. });
            let severity = if is_certain { CheckSeverity::Error } else { CheckSeverity::Warning };
            found.push(
                Problem::new(task, part.clone(), "sandbox", refusal.to_string()).with_severity(severity),
            );
        }
    }

    /// Reports a call that the policy denies, or that waits for an approval.
    fn decision(&self, task: &PlanTask, index: usize, spec: &CallSpec, found: &mut Vec<Problem>) {
        let problem = |code, message| Problem::new(task, PlanPart::Tool(index), code, message);
        let asks = |why: &str| {
            let message = format!("asks a person before `{}` runs: {why}", spec.tool_name);
            problem("approval", message).with_severity(CheckSeverity::Note)
        };
        match authorize_planned(self.policy_hook, &task.spec, spec, self.origin) {
            PolicyDecision::Deny { why } => {
                found.push(problem("denied", format!("the policy denies `{}`: {why}", spec.tool_name)));
            }
            PolicyDecision::Ask { .. } | PolicyDecision::Allow if !self.has_notes => {}
            PolicyDecision::Ask { why } => found.push(asks(&why)),
            PolicyDecision::Allow if spec.approval.is_some() => found.push(asks("the plan requires it")),
            PolicyDecision::Allow => {}
        }
    }

    /// Reports the secrets of a call that are not available.
    fn secrets(&self, task: &PlanTask, index: usize, spec: &CallSpec, found: &mut Vec<Problem>) {
        for name in secret_names(&spec.args) {
            let Err(error) = self.engine.secrets().check(&name) else { continue };
            // A variable or a file may be there when the plan runs; a source that is not configured is not.
            let is_certain = matches!(error, SecretError::Unknown { .. });
            let severity = if is_certain { CheckSeverity::Error } else { CheckSeverity::Warning };
            let part = PlanPart::Secret(index, name);
            let problem = Problem::new(task, part, "secret", error_chain(&error));
            found.push(problem.with_severity(severity));
        }
    }

    /// Returns the fields that a task reads from results, and that the results cannot have.
    fn unknown_result_fields(&self, task: &PlanTask) -> Vec<(String, String, Vec<String>)> {
        let mut read = Vec::new();
        for call in &task.calls {
            read.extend(result_fields(&Value::Object(call.spec.args.clone())));
            read.extend(call.spec.when.iter().flat_map(|when| result_fields_of_condition(when)));
        }
        read.extend(task.spec.when.iter().flat_map(|when| result_fields_of_condition(when)));
        read.sort();
        read.dedup();
        let mut schemas: BTreeMap<String, Option<Vec<String>>> = BTreeMap::new();
        let mut unknown = Vec::new();
        for (other, field) in read {
            let known = schemas.entry(other.clone()).or_insert_with(|| self.fields_of_result(&other));
            if let Some(known) = known
                && !known.contains(&field)
            {
                unknown.push((other, field, known.clone()));
            }
        }
        unknown
    }

    /// Returns whether an included task reads the result of another one by a parameter: that task is in another file.
    fn is_given(&self, task: &PlanTask, other: &str) -> bool {
        let file = |task: &PlanTask| task.included.as_ref().map(|place| place.file.clone());
        task.included.is_some() && self.task_named(other).is_some_and(|other| file(other) != file(task))
    }

    fn task_named(&self, name: &str) -> Option<&PlanTask> {
        self.plan.tasks.iter().find(|task| name_of(task) == name || task.spec.name == name)
    }

    /// Returns all fields that the result of a task can have; `None` if they are not known.
    fn fields_of_result(&self, name: &str) -> Option<Vec<String>> {
        let task = self.task_named(name)?;
        let [call] = task.calls.as_slice() else { return None };
        if task.spec.for_each.is_some() {
            return None;
        }
        let schema = self.engine.tools().get(&call.spec.tool_name)?.spec().result_schema.as_ref()?;
        let fields = schema.get("properties")?.as_object()?;
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        is_closed.then(|| fields.keys().cloned().collect())
    }
}

/// Returns the problem of arguments that do not fit their tool.
/// Returns what is wrong with the arguments of a durable wait beyond its schema.
fn wait_problem(spec: &CallSpec) -> Option<String> {
    if spec.tool_name == WAIT_TOOL { WaitRequest::check(&spec.args).err() } else { None }
}

fn invalid(task: &PlanTask, index: usize, error: ToolError) -> Problem {
    let whole = || PlanPart::Argument(index, String::new());
    let (part, message) = if let ToolError::InvalidArgs { field, problem, .. } = error {
        match field.strip_prefix("args") {
            Some("") => (whole(), problem),
            Some(below) => {
                let name = below.strip_prefix('.').unwrap_or(below);
                (PlanPart::Argument(index, below.to_owned()), format!("`{name}` {problem}"))
            }
            None => (PlanPart::Tool(index), format!("`{field}` {problem}")),
        }
    } else {
        (whole(), error.to_string())
    };
    Problem::new(task, part, "invalid_args", message)
}
