//! Checks a plan before it is applied: everything that can be known without running it, in one list.

mod checker;
mod lock_files;

use std::fmt;
use std::path::Path;

use serde_json::{Value, json};
use taskpawl_engine::RunVariables;
use taskpawl_manager::Error;
use taskpawl_model::advice::Hint;
use taskpawl_model::command::Refusal;
use taskpawl_model::expr::{Name, args_mentions, unmarked_expression};
use taskpawl_model::plan::{
    Inspected, Plan, PlanError, PlanFiles, PlanPart, PlanSpot, PlanTask, Position, inspect_plan,
    inspect_plan_file, locate,
};
use taskpawl_model::rules::resolve;
use taskpawl_model::task::{CallSpec, MERGE_TOOL, Origin};
use taskpawl_model::value::TaskId;
use taskpawl_text::nearest;

use self::checker::Checker;
use self::lock_files::{BareWorktree, bare_worktree};
use crate::blocking::Blocking;
use crate::facade::Taskpawl;
use crate::plan_directory::PlanDirectory;

/// The most problems in the result of a check. The others are counted.
pub const MAX_PROBLEMS: usize = 40;

/// Effect of a problem on a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckSeverity {
    /// The plan is refused, or a task of it is certain to fail.
    Error,
    /// A task may fail here.
    Warning,
    /// A call waits for the approval of a person.
    Note,
}

impl CheckSeverity {
    /// Returns its name, for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A problem of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckProblem {
    /// Its effect.
    pub severity: CheckSeverity,
    /// Name of the kind of problem, for programs.
    pub code: &'static str,
    /// Position in the text; the default if it is unknown.
    pub at: Position,
    /// Path of the value in the plan, such as `tasks[0].run`.
    pub path: String,
    /// Description of the problem.
    pub message: String,
    /// What to do about it.
    pub hint: Option<Hint>,
}

impl CheckProblem {
    /// Returns the problem as data. See [`PlanCheck::to_json`].
    pub fn to_json(&self) -> Value {
        let Self { severity, code, at, path, message, hint } = self;
        let mut data = json!({"severity": severity.as_str(), "code": code, "path": path, "message": message});
        if *at != Position::default() {
            (data["line"], data["column"]) = (json!(at.line), json!(at.column));
        }
        if let Some(hint) = hint {
            data["hint"] = json!(hint.to_string());
        }
        data
    }
}

impl fmt::Display for CheckProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at != Position::default() {
            write!(f, "{}: ", self.at)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, " ({hint})"))
    }
}

/// Everything that is known about a plan before it runs. It can be applied if there are no errors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanCheck {
    /// At most [`MAX_PROBLEMS`] problems in the order of the text, errors before others if there are more.
    pub problems: Vec<CheckProblem>,
    /// The number of all errors.
    pub errors: usize,
    /// The number of problems that are not listed.
    pub omitted: usize,
}

impl PlanCheck {
    /// Returns whether the plan can be applied.
    pub fn is_ok(&self) -> bool {
        self.errors == 0
    }

    /// Returns the problems as a list for models and programs. Each has `severity`, `code`, `path`, `message`, and if known `line`,
    /// `column` and `hint`.
    pub fn to_json(&self) -> Value {
        let mut list: Vec<Value> = self.problems.iter().map(CheckProblem::to_json).collect();
        if self.omitted > 0 {
            list.push(json!({"omitted": self.omitted}));
        }
        list.into()
    }

    fn of(text: &str, mut found: Vec<Problem>) -> Self {
        let is_error = |problem: &&Problem| problem.found.severity == CheckSeverity::Error;
        let errors = found.iter().filter(is_error).count();
        let omitted = found.len().saturating_sub(MAX_PROBLEMS);
        if omitted > 0 {
            found.sort_by_key(|problem| (problem.found.severity, problem.found.at));
            found.truncate(MAX_PROBLEMS);
        }
        Self { problems: located(text, found), errors, omitted }
    }
}

/// Explains a tool that is not registered: `None` if a run may have it, else what to do.
pub type ExplainTool<'a> = &'a dyn Fn(&str) -> Option<Hint>;

/// Facts that a check takes as given.
#[derive(Clone, Copy)]
pub struct CheckOptions<'a> {
    /// The author of the calls in the eyes of the policy.
    pub origin: Origin,
    /// The variables that the run will get.
    pub variables: &'a RunVariables,
    /// Called for tools that are not registered.
    pub explain: ExplainTool<'a>,
    /// The plans that tasks may include; `None` for a text in no file, which includes none.
    pub files: Option<&'a dyn PlanFiles>,
}

impl std::fmt::Debug for CheckOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { origin, variables, explain: _, files } = self;
        f.debug_struct("CheckOptions")
            .field("origin", origin)
            .field("variables", variables)
            .field("files", files)
            .finish()
    }
}

/// The failure of [`Taskpawl::check`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The plan has faults.
    #[error("the plan has {} faults: {}", .0.errors, first(.0))]
    Faults(PlanCheck),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] Error),
}

fn first(found: &PlanCheck) -> String {
    found.problems.first().map(ToString::to_string).unwrap_or_default()
}

impl Taskpawl {
    /// Checks a plan before it is applied: a text in JSON or YAML, data, or a built plan. Nothing is written, and nothing is started.
    ///
    /// All stages run as far as they can, as in [`Blocking::check_text`], so that a model can correct everything at once:
    ///
    /// ```
    /// use taskpawl::{CheckError, Taskpawl};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plans = Taskpawl::open(":memory:")?;
    /// let Err(CheckError::Faults(found)) = plans.check("tasks: [{id: a, call: {slep: {}}}]").await else { panic!() };
    /// let faults = found.to_json();
    /// assert_eq!((&faults[0]["code"], &faults[0]["line"]), (&"unknown_tool".into(), &1.into()));
    /// assert_eq!(faults[0]["hint"], "did you mean `sleep`?");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`CheckError::Faults`] has all errors, and the warnings. A plan with warnings alone is returned.
    pub async fn check(&self, plan: impl Into<crate::Plan>) -> Result<crate::Plan, CheckError> {
        let plan = plan.into();
        let text = plan.to_text().map_err(|errors| {
            CheckError::Faults(PlanCheck::of(
                "",
                errors.errors().iter().cloned().map(Problem::of_plan).collect(),
            ))
        })?;
        let file = plan.file().map(Path::to_owned);
        let found = self.offload(move |plans| plans.check_own(&text, file.as_deref())).await?;
        if found.is_ok() { Ok(plan) } else { Err(CheckError::Faults(found)) }
    }
}

impl Blocking {
    /// Checks the text of a plan of this program, whose tools and variables are those of this handle.
    fn check_own(&self, text: &str, file: Option<&Path>) -> Result<PlanCheck, Error> {
        let (origin, variables) = (self.manager().context().origin, RunVariables::default());
        let files = file.map(|file| PlanDirectory::of_file(&self.engine.project().root, file));
        let (explain, files) = (self.explain_tool(), files.as_ref().map(|files| files as &dyn PlanFiles));
        self.check_text(text, CheckOptions { origin, variables: &variables, explain: &explain, files })
    }

    /// Returns the explanation of tools that this program does not have.
    pub(crate) fn explain_tool(&self) -> impl Fn(&str) -> Option<Hint> {
        |name: &str| {
            if self.engine.may_find(name) {
                return None;
            }
            let tools = self.engine.tools();
            Some(match nearest(name, tools.names()) {
                Some(near) => Hint::new("did you mean ").data(near).text("?"),
                None => Hint::new(format!("the tools are {}", tools.names().collect::<Vec<_>>().join(", "))),
            })
        }
    }

    /// Checks the text of a plan file, JSON or YAML. All stages run as far as they can: the syntax and the fields, ids and
    /// references, dependencies on tasks of the store, tools and their arguments, fields of results, paths, hosts,
    /// programs, secrets and variables, and the decisions of the policy. Nothing is written, and nothing is started.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn check_text(&self, text: &str, options: CheckOptions<'_>) -> Result<PlanCheck, Error> {
        let Inspected { plan, errors } = match options.files {
            Some(files) => inspect_plan_file(text, files),
            None => inspect_plan(text),
        };
        let mut found: Vec<Problem> = errors.into_iter().map(Problem::of_plan).collect();
        if let Some(plan) = &plan {
            found.extend(self.missing_variables(plan, options.variables));
            self.check_tasks(plan, options, true, &mut found)?;
        }
        Ok(PlanCheck::of(text, found))
    }

    /// Checks a plan without errors of its own, as [`check_text`](Self::check_text) does, but for the notes. `text` is the
    /// file that it was read from; without it, problems name the task instead of a position.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn check_plan(&self, plan: &Plan, text: &str, options: CheckOptions<'_>) -> Result<PlanCheck, Error> {
        let mut found = Vec::new();
        self.check_tasks(plan, options, false, &mut found)?;
        Ok(PlanCheck::of(text, found))
    }

    fn check_tasks(
        &self,
        plan: &Plan,
        options: CheckOptions<'_>,
        has_notes: bool,
        found: &mut Vec<Problem>,
    ) -> Result<(), Error> {
        let checker = Checker {
            engine: &self.engine,
            policy_hook: self.manager().policy_hook().map(|hook| &**hook),
            plan,
            origin: options.origin,
            explain: options.explain,
            has_notes,
        };
        for task in &plan.tasks {
            checker.task(task, found);
        }
        self.check_worktrees(plan, found);
        plan.tasks.iter().try_for_each(|task| self.check_outside(plan, task, found))
    }

    /// Checks that the project can have worktrees, if a task needs one or merges the work of others.
    fn check_worktrees(&self, plan: &Plan, found: &mut Vec<Problem>) {
        let merges = |task: &&PlanTask| task.calls.iter().any(|call| call.spec.tool_name == MERGE_TOOL);
        let task = plan.tasks.iter().find(|task| task.spec.worktree.is_some() || merges(task));
        if let Some(task) = task
            && let Err(why) = self.engine.check_worktrees()
        {
            found.push(Problem::new(task, PlanPart::Task, "worktree", why));
        }
        self.check_installed(plan, found);
    }

    /// Warns about the first worktree without the packages that a lock file of the project names.
    fn check_installed(&self, plan: &Plan, found: &mut Vec<Problem>) {
        let Some(BareWorktree { task, message, hint }) = bare_worktree(&self.engine.project().root, plan)
        else {
            return;
        };
        let problem = Problem::new(task, PlanPart::Task, "bare_worktree", message);
        found.push(problem.with_severity(CheckSeverity::Warning).with_hint(Some(hint)));
    }

    /// Checks that the variables are set that the plan requires, or that its calls name.
    fn missing_variables(&self, plan: &Plan, variables: &RunVariables) -> Vec<Problem> {
        let is_missing = |name: &str| !variables.contains(name) && !self.engine.has_outer_variable(name);
        let required = plan.requires.env.iter().filter(|name| is_missing(name));
        let required = required.map(|name| Problem {
            found: CheckProblem {
                severity: CheckSeverity::Error,
                code: "missing_variable",
                at: plan.requires.at,
                path: "requires".to_owned(),
                message: unset(name),
                hint: Some(pass(name)),
            },
            spot: None,
        });
        let mut found: Vec<Problem> = required.collect();
        for task in &plan.tasks {
            for (index, call) in task.calls.iter().enumerate() {
                for mention in args_mentions(&call.spec.tool_name, &call.spec.args).unwrap_or_default() {
                    let Name::Variable(name) = &mention.name else { continue };
                    if is_missing(name) && !plan.requires.env.contains(name) {
                        let part = PlanPart::Argument(index, format!(".{}", mention.pointer));
                        let problem = Problem::new(task, part, "missing_variable", unset(name));
                        found.push(problem.with_hint(Some(pass(name))));
                    }
                }
            }
        }
        found
    }

    /// Checks that the tasks of the store exist that a task of the plan depends on.
    fn check_outside(&self, plan: &Plan, task: &PlanTask, found: &mut Vec<Problem>) -> Result<(), Error> {
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
                    let message = format!("needs `{id}`, which is neither in the plan nor in the store");
                    let problem = Problem::new(task, PlanPart::Need(id.to_string()), "unknown_task", message);
                    let hint = near.map(|near| Hint::new("did you mean ").data(near).text("?"));
                    found.push(problem.with_hint(hint));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A problem whose exact position is not known yet.
struct Problem {
    found: CheckProblem,
    /// The part of the plan; `None` if the position is known.
    spot: Option<PlanSpot>,
}

impl Problem {
    /// Returns an error in a part of a task.
    fn new(task: &PlanTask, part: PlanPart, code: &'static str, message: String) -> Self {
        let found = CheckProblem {
            severity: CheckSeverity::Error,
            code,
            at: task.at,
            path: task.place(),
            message,
            hint: None,
        };
        // Only the plan itself is searched for parts.
        let spot = task.included.is_none().then_some(PlanSpot { task: task.at, part });
        Self { found, spot }
    }

    fn of_plan(error: PlanError) -> Self {
        let found = CheckProblem {
            severity: CheckSeverity::Error,
            code: error.problem.code(),
            at: error.at,
            path: error.path.clone(),
            message: error.problem.to_string(),
            hint: error.hint,
        };
        Self { found, spot: None }
    }

    fn with_severity(mut self, severity: CheckSeverity) -> Self {
        self.found.severity = severity;
        self
    }

    fn with_hint(mut self, hint: Option<Hint>) -> Self {
        self.found.hint = hint;
        self
    }
}

/// Returns the problems with their positions in the text, in its order.
fn located(text: &str, found: Vec<Problem>) -> Vec<CheckProblem> {
    let spots: Vec<PlanSpot> = found.iter().filter_map(|problem| problem.spot.clone()).collect();
    let mut places = if spots.is_empty() { Vec::new() } else { locate(text, &spots) }.into_iter();
    let mut problems: Vec<CheckProblem> = Vec::new();
    for Problem { mut found, spot } in found {
        if let Some(place) = spot.and_then(|_| places.next().flatten()) {
            (found.at, found.path) = (place.at, place.path);
        }
        problems.push(found);
    }
    problems.sort_by_key(|problem| problem.at);
    problems
}

fn unset(name: &str) -> String {
    format!("the environment variable `{name}` is not set")
}

fn pass(name: &str) -> Hint {
    Hint::new(format!("set it, and pass it to the run: `--env {name}`"))
}

/// Returns the warning about a `{{ … }}` without `$` in the arguments of a call.
pub fn unmarked_warning(call: &CallSpec) -> Option<String> {
    let found = call.args.values().find_map(unmarked_expression)?;
    Some(format!("`{found}` is passed on as text; `${found}` is an expression"))
}

fn name_of(task: &PlanTask) -> &str {
    task.id.as_ref().map_or(task.spec.name.as_str(), |id| id.as_str())
}
