//! Checks a plan before it is applied: everything that can be known without running it, in one list.

use std::collections::BTreeMap;

use serde_json::Value;
use taskpawl_manager::Error;
use taskpawl_model::advice::Hint;
use taskpawl_model::command::Refusal;
use taskpawl_model::expr::{result_fields, result_fields_of_condition, unmarked_expression};
use taskpawl_model::plan::{Inspected, Plan, PlanError, PlanTask, Position, inspect_plan};
use taskpawl_model::rules::resolve;
use taskpawl_model::task::CallSpec;
use taskpawl_model::value::TaskId;
use taskpawl_text::nearest;
use taskpawl_tools::{RegisteredTool, Registry, ToolError};

use crate::facade::Taskpawl;

/// Whether a plan can be applied with a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckSeverity {
    /// The plan is refused, or a task of it is certain to fail.
    Error,
    /// A task may fail here.
    Warning,
}

/// A problem of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckProblem {
    /// How bad it is.
    pub severity: CheckSeverity,
    /// Name of the kind of problem, for programs.
    pub code: &'static str,
    /// Position in the text; the default if it is unknown.
    pub at: Position,
    /// The field, or the task.
    pub path: String,
    /// Description of the problem.
    pub message: String,
    /// What to do about it.
    pub hint: Option<Hint>,
}

/// Everything that is known about a plan before it runs.
#[derive(Debug, Default)]
pub struct PlanCheck {
    /// The plan, as far as it could be read. It can be applied if no problem is an error.
    pub plan: Option<Plan>,
    /// The problems, in the order of the text.
    pub problems: Vec<CheckProblem>,
}

impl PlanCheck {
    /// Returns whether the plan has errors.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == CheckSeverity::Error)
    }
}

/// Explains a tool that is not registered: `None` if a run may have it, else what to do.
pub type ExplainTool<'a> = &'a dyn Fn(&str) -> Option<Hint>;

impl Taskpawl {
    /// Checks the text of a plan file, JSON or YAML. All stages run as far as they can: the syntax and the fields, ids and
    /// references, dependencies on tasks of the store, tools and their arguments, fields of results, paths, hosts and
    /// programs. Nothing is written, and nothing is started.
    ///
    /// `explain` is asked about tools that are not registered.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn check_text(&self, text: &str, explain: ExplainTool<'_>) -> Result<PlanCheck, Error> {
        let Inspected { plan, errors } = inspect_plan(text);
        let mut problems: Vec<CheckProblem> = errors.into_iter().map(of_plan).collect();
        if let Some(plan) = &plan {
            let checker = Checker {
                registry: self.engine().tools(),
                root: &self.engine().project().root,
                plan,
                explain,
            };
            problems.extend(self.missing_variables(plan));
            for task in &plan.tasks {
                checker.task(task, &mut problems);
            }
            for task in &plan.tasks {
                self.check_outside(plan, task, &mut problems)?;
            }
        }
        problems.sort_by_key(|problem| (problem.at.line, problem.at.column));
        Ok(PlanCheck { plan, problems })
    }

    /// Checks that the variables are set that the plan requires.
    fn missing_variables(&self, plan: &Plan) -> impl Iterator<Item = CheckProblem> {
        let missing = plan.requires.env.iter().filter(|name| !self.engine().has_outer_variable(name));
        missing.map(|name| CheckProblem {
            severity: CheckSeverity::Error,
            code: "missing_variable",
            at: plan.requires.at,
            path: "requires".to_owned(),
            message: format!("the environment variable `{name}` is not set"),
            hint: Some(Hint::new(format!("set it, and pass it to the run: `--env {name}`"))),
        })
    }

    /// Checks that the tasks of the store exist that a task of the plan depends on.
    fn check_outside(
        &self,
        plan: &Plan,
        task: &PlanTask,
        problems: &mut Vec<CheckProblem>,
    ) -> Result<(), Error> {
        for id in &task.needs_outside {
            match self.manager().read(|view| resolve(view, id.as_str())) {
                Ok(_) => {}
                Err(Error::Refused(refusal)) => {
                    let similar = if let Refusal::UnknownTask { similar, .. } = &*refusal {
                        similar.as_slice()
                    } else {
                        &[]
                    };
                    // The asking task itself is never meant.
                    let names = plan.tasks.iter().filter(|other| !std::ptr::eq(*other, task)).map(name_of);
                    let near = nearest(id.as_str(), names.chain(similar.iter().map(TaskId::as_str)));
                    problems.push(CheckProblem {
                        severity: CheckSeverity::Error,
                        code: "unknown_task",
                        at: task.at,
                        path: format!("task `{}`", name_of(task)),
                        message: format!("needs `{id}`, which is neither in the plan nor in the store"),
                        hint: near.map(|near| Hint::new("did you mean ").data(near).text("?")),
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn of_plan(error: PlanError) -> CheckProblem {
    CheckProblem {
        severity: CheckSeverity::Error,
        code: error.problem.code(),
        at: error.at,
        path: error.path.clone(),
        message: error.problem.to_string(),
        hint: error.hint,
    }
}

/// Returns the warning about a `{{ … }}` without `$` in the arguments of a call.
pub fn unmarked_warning(call: &CallSpec) -> Option<String> {
    let found = call.args.values().find_map(unmarked_expression)?;
    Some(format!("`{found}` is passed on as text; `${found}` is an expression"))
}

fn name_of(task: &PlanTask) -> &str {
    task.id.as_ref().map_or(task.spec.name.as_str(), |id| id.as_str())
}

struct Checker<'a> {
    registry: &'a Registry,
    root: &'a std::path::Path,
    plan: &'a Plan,
    explain: ExplainTool<'a>,
}

impl Checker<'_> {
    fn task(&self, task: &PlanTask, problems: &mut Vec<CheckProblem>) {
        let mut problem = |severity, code, path: &str, message: String, hint: Option<Hint>| {
            let place = format!("task `{}`", name_of(task));
            let path = if path.is_empty() { place } else { format!("{place}: {path}") };
            problems.push(CheckProblem { severity, code, at: task.at, path, message, hint });
        };
        for call in &task.calls {
            let spec = &call.spec;
            if let Some(message) = unmarked_warning(spec) {
                problem(CheckSeverity::Warning, "unmarked_expression", &spec.tool_name, message, None);
            }
            if let Some(tool) = self.registry.get(&spec.tool_name) {
                for (severity, code, field, message) in self.of_call(tool, spec) {
                    problem(severity, code, &format!("{}: {field}", spec.tool_name), message, None);
                }
            } else if !spec.tool_name.is_empty()
                && !self.plan.tools.contains(&spec.tool_name)
                && let Some(hint) = (self.explain)(&spec.tool_name)
            {
                let message = format!("no tool `{}` is known here", spec.tool_name);
                problem(CheckSeverity::Error, "unknown_tool", "", message, Some(hint));
            }
        }
        for (other, field, known) in self.unknown_result_fields(task) {
            let message = format!("the result of `{other}` has no field `{field}`");
            let hint = match nearest(&field, known.iter().map(String::as_str)) {
                Some(near) => Hint::new("did you mean ").data(near).text("?"),
                None => Hint::new(format!("its fields are {}", known.join(", "))),
            };
            problem(CheckSeverity::Error, "unknown_result_field", "", message, Some(hint));
        }
    }

    fn of_call(
        &self,
        tool: &RegisteredTool,
        spec: &CallSpec,
    ) -> Vec<(CheckSeverity, &'static str, String, String)> {
        let args = Value::Object(spec.args.clone());
        let mut found = Vec::new();
        let mut invalid = |error: ToolError| {
            let (field, problem) = if let ToolError::InvalidArgs { field, problem, .. } = error {
                (field, problem)
            } else {
                ("args".to_owned(), error.to_string())
            };
            found.push((CheckSeverity::Error, "invalid_args", field, problem));
        };
        if spec.plan_access.is_some()
            && let Err(error) = tool.check_plan_access()
        {
            invalid(error);
        }
        // The value of an expression, and so its type, is known only when the call starts.
        if !has_expression(&args)
            && let Err(error) = tool.check_args(&args)
        {
            invalid(error);
        }
        found.extend(tool.foresee(&args, self.root).into_iter().map(|foreseen| {
            let severity = if foreseen.is_certain { CheckSeverity::Error } else { CheckSeverity::Warning };
            (severity, foreseen.code, foreseen.field.to_owned(), foreseen.message)
        }));
        found
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

    /// Returns all fields that the result of a task can have; `None` if they are not known.
    fn fields_of_result(&self, name: &str) -> Option<Vec<String>> {
        let task = self.plan.tasks.iter().find(|task| name_of(task) == name || task.spec.name == name)?;
        let [call] = task.calls.as_slice() else { return None };
        if task.spec.for_each.is_some() {
            return None;
        }
        let schema = self.registry.get(&call.spec.tool_name)?.spec().result_schema.as_ref()?;
        let fields = schema.get("properties")?.as_object()?;
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        is_closed.then(|| fields.keys().cloned().collect())
    }
}

/// Returns whether a value contains an expression, whose result is not known yet.
fn has_expression(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${{"),
        Value::Array(items) => items.iter().any(has_expression),
        Value::Object(map) => map.values().any(has_expression),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
