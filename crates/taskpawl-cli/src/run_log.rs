//! Reads the log of a run for reports and traces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use taskpawl::model::insight::is_in_scope;
use taskpawl::model::plan::{IncludedPlace, PlanTask, read_plan_file};
use taskpawl::model::task::{PlanRecord, RunRecord, Status, Task};
use taskpawl::model::value::TaskId;
use taskpawl::model::view::{Query, read_task};
use taskpawl::tools::Power;
use taskpawl::{Manager, RunFilter, RunState, Taskpawl};
use taskpawl_report::{Detail, Included, LogBuilder, Outcome, Printed, RunEnd, RunLog, SourceLine};

use crate::app::App;
use crate::commands::logs::{Tail, tails};
use crate::error::CliError;
use crate::files::read_file;
use crate::plan_library::IncludedPlans;
use crate::{person, run_events};

/// The most bytes of one output stream of a failed call in a report.
const MAX_STREAM: u64 = 64 << 10;

/// The most bytes of output in a report.
const MAX_OUTPUT: usize = 16 << 20;

/// Returns the run that a command names, or else the latest one.
pub(crate) fn find_run(manager: &Manager, run: Option<&str>) -> Result<RunRecord, CliError> {
    if let Some(run) = run {
        return Ok(manager.run(&manager.find_run(run)?)?);
    }
    let latest = manager.runs(&RunFilter { limit: 1 })?.pop();
    latest.ok_or_else(|| CliError::usage_with("there is no run yet", "`taskpawl run-all-ready` starts one"))
}

/// Returns the details that a report includes.
///
/// # Errors
/// A policy forbids details, or leaves them to a person and the caller is none.
pub(crate) fn included(app: &App, details: &[Detail]) -> Result<Included, CliError> {
    if !details.is_empty() {
        person::check_power(app, Power::Include, "--include")?;
    }
    let home = app.environment().path("HOME").map(|home| home.to_string_lossy().into_owned());
    Ok(Included::new(details.iter().copied(), home))
}

/// Returns the end of a run.
pub(crate) fn end_of(manager: &Manager, run: &RunRecord) -> RunEnd {
    match (run.exit, manager.run_state(run)) {
        (Some(exit), _) => RunEnd::Exit(exit),
        (None, RunState::Running) => RunEnd::Running,
        (None, RunState::Killed | RunState::Finished) => RunEnd::Killed,
    }
}

/// Reads the log of a run from the history, and the included details from tasks and files.
pub(crate) fn read(
    app: &App,
    plans: &Taskpawl,
    run: &RunRecord,
    included: &Included,
) -> Result<RunLog, CliError> {
    described(app, plans, builder(plans.manager(), run, included)?)
}

/// Reads the log of a run like [`read`], with the failures because of which it ended and that are older: a report without them would
/// say less than the exit code.
pub(crate) fn read_for_report(
    app: &App,
    plans: &Taskpawl,
    run: &RunRecord,
    included: &Included,
) -> Result<RunLog, CliError> {
    let mut builder = builder(plans.manager(), run, included)?;
    for task in earlier_failures(plans.manager(), run)? {
        builder.add_earlier_failure(&task);
    }
    described(app, plans, builder)
}

fn builder(manager: &Manager, run: &RunRecord, included: &Included) -> Result<LogBuilder, CliError> {
    let mut builder = LogBuilder::new(run, end_of(manager, run), included.clone());
    run_events::each(manager, run, |event| builder.take(event))?;
    Ok(builder)
}

/// Returns the failed tasks in the scope of a run that ended before it did, and have not changed since.
fn earlier_failures(manager: &Manager, run: &RunRecord) -> Result<Vec<Task>, CliError> {
    let Some(end) = run.finished_at.filter(|_| run.exit == Some(1)) else { return Ok(Vec::new()) };
    Ok(manager.read(|view| {
        let mut failed = Vec::new();
        for key in view.find(&Query { status: vec![Status::Failed], ..Query::default() })? {
            let Some(task) = read_task(view, key)? else { continue };
            if task.finished_at.unwrap_or(task.updated_at) <= end && is_in_scope(view, key, &run.scope)? {
                failed.push(task);
            }
        }
        Ok(failed)
    })?)
}

/// Adds the facts that the history does not have.
fn described(app: &App, plans: &Taskpawl, mut builder: LogBuilder) -> Result<RunLog, CliError> {
    let manager = plans.manager();
    let has_output = builder.included().has(Detail::Output);
    let ids: Vec<TaskId> = builder.ids().cloned().collect();
    let mut lines = PlanLines::new(app, manager);
    let mut room = MAX_OUTPUT;
    for id in ids {
        // A task that was deleted since then has only its events.
        let Some(task) = task(manager, &id) else { continue };
        builder.describe(&task);
        if let Some(line) = lines.of(&task)? {
            builder.set_line(&id, line);
        }
        if has_output && is_failure(&task) && room > 0 {
            add_output(plans, &mut builder, &task, &mut room)?;
        }
    }
    Ok(builder.finish())
}

/// Returns the task with exactly this id.
pub(crate) fn task(manager: &Manager, id: &TaskId) -> Option<Task> {
    manager.get(id.as_str()).ok().filter(|task| task.id == *id)
}

fn is_failure(task: &Task) -> bool {
    let is_stopped = task.metadata.tool_calls.iter().any(|call| call.status.as_str() == "interrupted");
    is_stopped || matches!(Outcome::of(task.status), Outcome::Failed | Outcome::Unfinished)
}

fn add_output(
    plans: &Taskpawl,
    builder: &mut LogBuilder,
    task: &Task,
    room: &mut usize,
) -> Result<(), CliError> {
    for Tail { call, start, stream, text, is_cut } in tails(plans, task, MAX_STREAM)? {
        let Some(left) = room.checked_sub(text.len()) else { continue };
        *room = left;
        builder.add_output(&task.id, &call, start, Printed { stream: stream.to_owned(), text, is_cut });
    }
    Ok(())
}

/// The lines of tasks in their plan files.
struct PlanLines<'a> {
    app: &'a App,
    manager: &'a Manager,
    plans: BTreeMap<String, Option<LinesOfPlan>>,
}

/// The lines of one plan file.
struct LinesOfPlan {
    record: PlanRecord,
    by_id: BTreeMap<String, SourceLine>,
    /// The lines of tasks without an id.
    by_name: BTreeMap<String, SourceLine>,
}

impl<'a> PlanLines<'a> {
    fn new(app: &'a App, manager: &'a Manager) -> Self {
        Self { app, manager, plans: BTreeMap::new() }
    }

    /// Returns the line of a task, or else that of the task above it: the items of a `forEach` are not in the file.
    fn of(&mut self, task: &Task) -> Result<Option<SourceLine>, CliError> {
        let Some(name) = &task.plan else { return Ok(None) };
        if !self.plans.contains_key(name) {
            let lines = self.read(name)?;
            self.plans.insert(name.clone(), lines);
        }
        let Some(Some(lines)) = self.plans.get(name) else { return Ok(None) };
        let mut above = task.parent.clone();
        let mut line = lines.line(name, &task.id, &task.name);
        while let (None, Some(id)) = (line, &above) {
            let Some(parent) = self::task(self.manager, id) else { break };
            line = lines.line(name, &parent.id, &parent.name);
            above = parent.parent;
        }
        Ok(line.cloned())
    }

    /// Reads the file of a plan; `None` without a file, or if it is no plan any more.
    fn read(&self, plan: &str) -> Result<Option<LinesOfPlan>, CliError> {
        let record = self.manager.read(|view| Ok(view.plan(plan)?))?;
        let Some((record, path)) = record.and_then(|record| Some((record.clone(), record.path?))) else {
            return Ok(None);
        };
        let whole = self.app.root().join(&path);
        let files = IncludedPlans::of_file(self.app, &whole);
        let plan = read_file(&whole).ok().and_then(|text| read_plan_file(&text, &files).ok());
        let Some(plan) = plan else { return Ok(None) };
        let (mut by_id, mut by_name) = (BTreeMap::new(), BTreeMap::new());
        let file = self.shown(&whole, path);
        for task in plan.tasks {
            let line = self.line(&file, &task);
            match task.id {
                Some(id) => _ = by_id.insert(id.to_string(), line),
                None => _ = by_name.insert(task.spec.name.clone(), line),
            }
        }
        Ok(Some(LinesOfPlan { record, by_id, by_name }))
    }

    /// Returns the line of a task: in the file of its plan, or in the one that the plan includes.
    fn line(&self, file: &str, task: &PlanTask) -> SourceLine {
        match task.included.as_deref() {
            Some(IncludedPlace { file, at }) => {
                SourceLine { file: self.shown(&self.app.root().join(file), file.clone()), line: at.line }
            }
            None => SourceLine { file: file.to_owned(), line: task.at.line },
        }
    }

    /// Returns the path of a file as annotations need it: relative to the checkout of the workflow, else to the project.
    fn shown(&self, whole: &Path, path: String) -> String {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let checkout = self.app.environment().path("GITHUB_WORKSPACE").map(real);
        let below =
            checkout.and_then(|root| Some(real(whole.to_owned()).strip_prefix(root).ok()?.to_owned()));
        below.map_or(path, |below| below.display().to_string())
    }
}

impl LinesOfPlan {
    fn line(&self, plan: &str, id: &TaskId, name: &str) -> Option<&SourceLine> {
        let of_file = self.record.file_id(id);
        // The ids of an instance of a plan begin with the name of the instance.
        let own = id.as_str().strip_prefix(plan).and_then(|rest| rest.strip_prefix('.'));
        let by_id = self.by_id.get(of_file.as_str()).or_else(|| self.by_id.get(own?));
        by_id.or_else(|| self.by_name.get(name))
    }
}
