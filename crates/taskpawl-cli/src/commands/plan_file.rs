//! A plan on its way from a file to the store: its text, the values of its parameters, and its checks.

use std::io::Read;
use std::path::{Path, PathBuf};

use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::command::{ApplyReport, Refusal};
use taskpawl::model::plan::{Plan, PlanSource, PlanTask, read_plan, read_plan_file};
use taskpawl::model::rules::resolve;
use taskpawl::model::task::Origin;
use taskpawl::model::value::{TaskId, check_id};
use taskpawl::store::{self, Location, PlacementError};
use taskpawl::{ApplyOptions, Error, Manager, OnChanged};

use crate::app::App;
use crate::commands::{calls, parse};
use crate::error::{CliError, Problem};
use crate::failure::MAX_SHOWN;
use crate::plan_library::{self, IncludedPlans};
use crate::schedules;
use crate::text::nearest;

/// Options for reading a plan from its file.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Takes {
    /// Apply it as an instance of its own: a plan of this name, with ids that begin with it
    #[arg(long = "as", value_name = "NAME")]
    instance: Option<String>,
    /// A value for a parameter of the plan; lists and objects as JSON. May be given several times
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse::assignment)]
    params: Vec<(String, String)>,
    /// The file of the plan has moved here: the plan of its name follows it
    #[arg(long, conflicts_with = "instance")]
    moved: bool,
    /// Start finished tasks whose work changed over, with all that ran after them; calls that succeeded run again
    #[arg(long, conflicts_with = "keep_changed")]
    redo_changed: bool,
    /// Keep the results of finished tasks whose work changed; `reopen` runs the new work later
    #[arg(long)]
    keep_changed: bool,
}

impl Takes {
    /// Returns what becomes of finished tasks whose work changed.
    pub(crate) fn on_changed(&self) -> OnChanged {
        match (self.redo_changed, self.keep_changed) {
            (true, _) => OnChanged::Redo,
            (false, true) => OnChanged::Keep,
            (false, false) => OnChanged::Refuse,
        }
    }

    /// Returns the options with these values of parameters alone.
    pub(crate) fn with_params(params: Vec<(String, String)>) -> Self {
        Self { params, ..Self::default() }
    }

    /// Returns these options as words of a command line, for hints that repeat the command.
    pub(crate) fn words(&self) -> Vec<String> {
        let instance = self.instance.iter().flat_map(|name| ["--as".to_owned(), name.clone()]);
        let params = self.params.iter();
        let params = params.flat_map(|(name, value)| ["--param".to_owned(), format!("{name}={value}")]);
        let flags = self.flags().into_iter().filter(|(_, is_given)| *is_given);
        instance.chain(params).chain(flags.map(|(flag, _)| flag.to_owned())).collect()
    }

    fn flags(&self) -> [(&'static str, bool); 3] {
        [
            ("--moved", self.moved),
            ("--redo-changed", self.redo_changed),
            ("--keep-changed", self.keep_changed),
        ]
    }

    /// Returns a usage error if one of these options was given without a plan.
    pub(crate) fn refuse_without_plan(&self) -> Result<(), CliError> {
        let given = [("--as", self.instance.is_some()), ("--param", !self.params.is_empty())];
        match given.into_iter().chain(self.flags()).find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(CliError::usage_with(
                format!("`{option}` is about a plan, and none is given"),
                "name its file: `--plan FILE`",
            )),
            None => Ok(()),
        }
    }
}

/// The text of a plan file.
pub(super) struct PlanText {
    /// The path as given; `-` for standard input.
    path: PathBuf,
    /// The path as given, or `<stdin>`, for messages.
    pub(super) shown: String,
    pub(super) text: String,
    /// True if a planner wrote it. Only plans of people include others.
    is_of_planner: bool,
}

impl PlanText {
    /// Reads a file, or the plan with a name if there is no such file.
    pub(super) fn read(app: &App, path: &Path) -> Result<Self, CliError> {
        let name = path.to_str().filter(|_| plan_library::is_name(path));
        if let Some(name) = name
            && let Some(plan) = plan_library::find(app, name)?
        {
            // A plan that the program brings lies in no file, like one on standard input.
            let shown =
                plan.path.as_ref().map_or_else(|| format!("<{name}>"), |path| path.display().to_string());
            let path = plan.path.unwrap_or_else(|| PathBuf::from("-"));
            return Ok(Self { path, shown, text: plan.text, is_of_planner: false });
        }
        let is_stdin = path.as_os_str() == "-";
        let shown = if is_stdin { "<stdin>".to_owned() } else { path.display().to_string() };
        let text = read_text(path, is_stdin)?;
        Ok(Self { path: path.to_owned(), shown, text, is_of_planner: false })
    }

    /// Returns the text of a planner, which is in no file.
    pub(super) fn of_planner(text: String) -> Self {
        Self { path: PathBuf::from("-"), shown: "<planner>".to_owned(), text, is_of_planner: true }
    }

    /// Returns the plans that it may include; `None` if it includes none.
    pub(super) fn files(&self, app: &App) -> Option<IncludedPlans> {
        let of_file = || IncludedPlans::of_file(app, &self.path);
        let files = || if self.is_stdin() { IncludedPlans::of_text(app) } else { of_file() };
        (!self.is_of_planner).then(files)
    }

    fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Reads the plan and sets its parameters, as [`PlanFile::read`] does.
    pub(super) fn plan(self, app: &App, takes: &Takes) -> Result<PlanFile, CliError> {
        PlanFile::of_text(app, self, takes)
    }
}

/// A plan read from a file or from standard input.
pub(crate) struct PlanFile {
    /// The plan, with the values of its parameters.
    pub(crate) plan: Plan,
    /// The name under which the plan is applied.
    pub(crate) name: String,
    /// True if its text, or one that it includes, begins with the comment of plans that a planner wrote.
    pub(super) is_generated: bool,
    /// The path as given, or `<stdin>`, for messages.
    shown: String,
}

impl PlanFile {
    /// Reads a plan and sets its parameters. With `--as`, the plan becomes an instance of that name.
    pub(crate) fn read(app: &App, path: &Path, takes: &Takes) -> Result<Self, CliError> {
        PlanText::read(app, path)?.plan(app, takes)
    }

    fn of_text(app: &App, text: PlanText, takes: &Takes) -> Result<Self, CliError> {
        let (is_stdin, files) = (text.is_stdin(), text.files(app));
        let PlanText { path, shown, text, .. } = text;
        let wrong = |errors| CliError::Plan { file: shown.clone(), errors };
        let mut plan = match &files {
            Some(files) => read_plan_file(&text, files).map_err(wrong)?,
            None => read_plan(&text).map_err(wrong)?,
        };
        let includes_generated = files.is_some_and(|files| files.has_generated());
        let is_generated = includes_generated || taskpawl_planner::is_generated(&text);
        let params = takes.params.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        plan.set_params(params).map_err(wrong)?;
        if let Some(name) = &takes.instance {
            check_id(name).map_err(|error| CliError::usage(format!("`--as`: {error}")))?;
            return Ok(Self { plan: plan.into_instance(name), name: name.clone(), is_generated, shown });
        }
        if is_stdin {
            let name = plan.name.clone().unwrap_or_else(|| "plan".to_owned());
            return Ok(Self { plan, name, is_generated, shown });
        }
        let source = PlanSource { path: path_below(app, &path), is_moved: takes.moved };
        let name = match &plan.name {
            Some(name) => name.clone(),
            None => name_of_file(app, &source.path)?,
        };
        plan.source = Some(source);
        Ok(Self { plan, name, is_generated, shown })
    }

    /// Refuses unknown fields without reading a store. A store may hold such fields from another version.
    pub(super) fn refuse_unknown(&self) -> Result<(), CliError> {
        let wrong = |errors| CliError::Plan { file: self.shown.clone(), errors };
        self.plan.refuse_unknown().map_err(wrong)
    }

    /// Checks the tool calls against the tools of this program.
    pub(crate) fn check(&self, app: &App) -> Result<(), CliError> {
        schedules::check::refuse(&self.plan, &self.shown)?;
        self.check_in_new_project(app)?;
        // A plan without calls needs no toolbox, and so no configuration of MCP servers.
        if self.plan.tasks.iter().all(|task| task.calls.is_empty()) {
            return Ok(());
        }
        calls::check_plan(app, &self.plan, &self.shown)
    }

    /// Checks the plan against an empty store before it makes a project, so that a refused plan makes none.
    fn check_in_new_project(&self, app: &App) -> Result<(), CliError> {
        if !app.place().is_ok_and(|place| place.new_root().is_some()) {
            return Ok(());
        }
        let manager = empty_manager(app)?;
        let previewed = manager.preview_apply(self.plan.clone(), &self.name, ApplyOptions::default());
        previewed.map(drop).map_err(|error| self.placed(&manager, error))
    }

    /// Applies the plan to the store.
    pub(crate) fn apply(self, app: &App, options: ApplyOptions) -> Result<ApplyReport, CliError> {
        let manager = app.manager()?.clone().with_origin(Origin::Plan);
        let applied = manager.apply(self.plan.clone(), &self.name, options);
        let report = applied.map_err(|error| self.placed(&manager, error))?;
        // Warned only now: a refused plan is not stored, so nothing in it was preserved.
        calls::warn_about_limits(app, &self.plan, &self.shown);
        Ok(report)
    }

    pub(crate) fn preview(self, app: &App, options: ApplyOptions) -> Result<ApplyReport, CliError> {
        let manager = preview_manager(app)?;
        let previewed = manager.preview_apply(self.plan.clone(), &self.name, options);
        let report = previewed.map_err(|error| self.placed(&manager, error))?;
        calls::warn_about_limits(app, &self.plan, &self.shown);
        Ok(report)
    }

    /// Adds the file to an error, and the position to an error about dependencies. The model stops at the
    /// first unknown dependency; this lists all of them.
    pub(super) fn placed(&self, manager: &Manager, error: Error) -> CliError {
        if let Error::Invalid(errors) = error {
            return CliError::Plan { file: self.shown.clone(), errors };
        }
        if !is_unknown_task(&error) {
            return error.into();
        }
        let unknown =
            self.plan.tasks.iter().flat_map(|task| task.needs_outside.iter().map(move |id| (task, id)));
        let mut problems = Vec::new();
        for (task, id) in unknown {
            let Err(Error::Refused(refusal)) = manager.read(|view| resolve(view, id.as_str())) else {
                continue;
            };
            let Refusal::UnknownTask { similar, .. } = *refusal else { continue };
            // Comparing each id with every name is quadratic: only the problems that are shown get a
            // suggestion.
            let hint = (problems.len() < MAX_SHOWN).then(|| self.hint(task, id, &similar));
            let message = format!("needs `{id}`, which is neither in the plan nor in the store");
            let problem =
                Problem::at(Some(&self.shown), task.at, format!("task `{}`", name_of(task)), message);
            problems.push(Problem { hint, ..problem });
        }
        if problems.is_empty() { error.into() } else { CliError::References { problems } }
    }

    /// Returns the nearest known id as a suggestion, or the command that lists ids. The dependent itself is
    /// never suggested.
    fn hint(&self, asker: &PlanTask, id: &TaskId, similar: &[TaskId]) -> Hint {
        let names = self.plan.tasks.iter().map(name_of).chain(similar.iter().map(TaskId::as_str));
        let names = names.filter(|name| *name != name_of(asker));
        nearest(id.as_str(), names).map_or_else(
            || Hint::from(Advice::List { status: Vec::new() }).text(" shows the ids in the store"),
            |near| Hint::new("did you mean ").data(near).text("?"),
        )
    }
}

fn is_unknown_task(error: &Error) -> bool {
    matches!(error, Error::Refused(refusal) if matches!(**refusal, Refusal::UnknownTask { .. }))
}

fn name_of(task: &PlanTask) -> &str {
    task.id.as_ref().map_or(task.spec.name.as_str(), TaskId::as_str)
}

pub(super) fn read_text(path: &Path, is_stdin: bool) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = if is_stdin {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(path).map(|content| bytes = content)
    };
    read.map_err(|source| CliError::File { action: "read", path: path.to_owned(), source })?;
    String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = 1 + before.matches('\n').count();
        let name = if is_stdin { "<stdin>".to_owned() } else { path.display().to_string() };
        CliError::usage_with(format!("`{name}` is no UTF-8: see line {line}"), "save it as UTF-8")
    })
}

/// Returns the path relative to the project, or the absolute path of a file outside of it.
fn path_below(app: &App, path: &Path) -> String {
    let whole = app.environment().directory.join(path);
    let whole = whole.canonicalize().unwrap_or(whole);
    let root = app.root().canonicalize().unwrap_or_else(|_| app.root().to_owned());
    whole.strip_prefix(&root).unwrap_or(&whole).display().to_string()
}

/// Returns the name of a plan whose file has no `name`, made from the path of the file. An older version used
/// the last part of the path alone: a plan that it named so keeps that name.
fn name_of_file(app: &App, path: &str) -> Result<String, CliError> {
    let path = Path::new(path);
    let stem = to_name(&path.file_stem().unwrap_or_default().to_string_lossy());
    if path.is_absolute() || path.parent().is_none_or(|parent| parent.as_os_str().is_empty()) {
        return Ok(stem);
    }
    let name = to_name(&path.with_extension("").to_string_lossy());
    let plans = match app.place() {
        Ok(place) if place.new_root().is_none() => {
            app.reader()?.manager().read(|view| Ok((view.plan(&name)?, view.plan(&stem)?)))?
        }
        Ok(_) | Err(_) => (None, None),
    };
    let is_older =
        |plan: taskpawl::model::task::PlanRecord| plan.path.is_none_or(|of| Path::new(&of) == path);
    Ok(if plans.0.is_none() && plans.1.is_some_and(is_older) { stem } else { name })
}

/// Turns a file stem into a valid id: other characters become `-`, and at most 64 are kept.
fn to_name(stem: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = stem.chars().map(|c| if is_kept(c) { c } else { '-' }).take(64).collect();
    if name.is_empty() { "plan".to_owned() } else { name }
}

/// Returns a manager for previews. Without a project the plan is compared with an empty store.
pub(super) fn preview_manager(app: &App) -> Result<Manager, CliError> {
    match app.place() {
        Err(CliError::Placement(PlacementError::NoProject { .. })) => {
            app.out().remark("there is no project here; compared with an empty store");
            empty_manager(app)
        }
        _ => Ok(app.reader()?.manager().clone().with_origin(Origin::Plan)),
    }
}

/// Returns a manager of an empty store.
pub(super) fn empty_manager(app: &App) -> Result<Manager, CliError> {
    let manager = Manager::new(store::open(&Location::Memory), &app.config()?.actor);
    Ok(manager.with_source(app.source()?).with_origin(Origin::Plan))
}
