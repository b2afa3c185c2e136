//! Plans by name: those of the project, of the user, and those that the program brings.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use taskpawl::model::plan::{IncludeError, IncludedText, PlanFiles, inspect_plan};
use taskpawl::tools::read_if_there;
use taskpawl::{NamedPlanText, PlanDirectory, PlanNames};
use taskpawl_text::{error_chain, nearest};

use crate::config;
use crate::context::Context;
use crate::error::CliError;

/// The largest plan that is read, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The endings of plan files.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// The plans that the program brings.
const BUNDLED: &[(&str, &str)] = &[
    ("feature", include_str!("../plans/feature.yaml")),
    ("fix", include_str!("../plans/fix.yaml")),
    ("refactor", include_str!("../plans/refactor.yaml")),
    ("release", include_str!("../plans/release.yaml")),
    ("review", include_str!("../plans/review.yaml")),
    ("triage", include_str!("../plans/triage.yaml")),
];

/// The owner of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PlanOwner {
    Project,
    User,
    Bundled,
}

/// A plan with a name.
#[derive(Debug, Clone)]
pub(crate) struct NamedPlan {
    pub(crate) name: String,
    pub(crate) owner: PlanOwner,
    /// The file; `None` for a plan that the program brings.
    pub(crate) path: Option<PathBuf>,
    pub(crate) text: String,
}

impl NamedPlan {
    /// Returns the description in the plan, if it can be read.
    pub(crate) fn description(&self) -> Option<String> {
        let plan = inspect_plan(&self.text).plan?;
        plan.extra.get("description").and_then(|text| text.as_str()).map(str::to_owned)
    }
}

/// The directories with plans by name.
#[derive(Debug, Clone)]
struct Directories {
    user: Option<PathBuf>,
    project: PathBuf,
}

impl Directories {
    fn of(context: &Context) -> Self {
        let user = config::files(context.environment()).user;
        let user = user.as_deref().and_then(Path::parent).map(|directory| directory.join("plans"));
        Self { user, project: context.root().join(".taskpawl").join("plans") }
    }

    fn all(&self) -> Result<Vec<NamedPlan>, CliError> {
        let bundled = BUNDLED.iter().map(|(name, text)| NamedPlan {
            name: (*name).to_owned(),
            owner: PlanOwner::Bundled,
            path: None,
            text: (*text).to_owned(),
        });
        let user = self.user.as_deref();
        let user = user.map(|directory| in_directory(PlanOwner::User, directory)).transpose()?;
        let project = in_directory(PlanOwner::Project, &self.project)?;
        let mut plans: Vec<NamedPlan> = Vec::new();
        for plan in user.into_iter().flatten().chain(bundled).chain(project) {
            if !plans.iter().any(|other| other.name == plan.name) {
                plans.push(plan);
            }
        }
        plans.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(plans)
    }

    /// Finds a plan for a task that includes it.
    fn included(&self, name: &str) -> Result<NamedPlanText, IncludeError> {
        let name = name.to_owned();
        let plans = match self.all() {
            Ok(plans) => plans,
            Err(error) => return Err(IncludeError::Unreadable { file: name, why: error_chain(&error) }),
        };
        if let Some(plan) = plans.iter().find(|plan| plan.name == name) {
            return Ok(NamedPlanText { path: plan.path.clone(), text: plan.text.clone() });
        }
        let near = nearest(&name, plans.iter().map(|plan| plan.name.as_str())).map(str::to_owned);
        Err(IncludeError::Unnamed { name, near })
    }
}

/// Returns all plans by name. A plan of the user hides a bundled one. A plan of the project hides neither: another person or a
/// program may have written it.
pub(crate) fn all(context: &Context) -> Result<Vec<NamedPlan>, CliError> {
    Directories::of(context).all()
}

/// Finds a plan by its name.
pub(crate) fn find(context: &Context, name: &str) -> Result<Option<NamedPlan>, CliError> {
    Ok(all(context)?.into_iter().find(|plan| plan.name == name))
}

/// Returns the plans by name, for tasks that include them.
pub(crate) fn names(context: &Context) -> PlanNames {
    let directories = Directories::of(context);
    PlanNames(Arc::new(move |name: &str| directories.included(name)))
}

/// The plans that a plan includes: files, and plans by name.
#[derive(Debug)]
pub(crate) struct IncludedPlans {
    files: PlanDirectory,
    has_generated: Cell<bool>,
}

impl IncludedPlans {
    /// Returns the plans that a plan file includes.
    pub(crate) fn of_file(context: &Context, file: &Path) -> Self {
        let file = context.environment().directory.join(file);
        Self::new(context, PlanDirectory::of_file(context.root(), &file))
    }

    /// Returns the plans that a text includes, whose paths begin at the working directory.
    pub(crate) fn of_text(context: &Context) -> Self {
        Self::new(context, PlanDirectory::of_text(context.root(), &context.environment().directory))
    }

    fn new(context: &Context, files: PlanDirectory) -> Self {
        Self { files: files.with_names(names(context)), has_generated: Cell::new(false) }
    }

    /// Returns whether one of the plans that were read begins with the comment of plans that a planner wrote.
    pub(crate) fn has_generated(&self) -> bool {
        self.has_generated.get()
    }
}

impl PlanFiles for IncludedPlans {
    fn file(&self) -> Option<String> {
        self.files.file()
    }

    fn read(&self, name: &str, by: Option<&str>) -> Result<IncludedText, IncludeError> {
        let found = self.files.read(name, by)?;
        if taskpawl_planner::is_generated(&found.text) {
            self.has_generated.set(true);
        }
        Ok(found)
    }
}

/// Returns whether a path may be the name of a plan: it names no file, and has neither a directory nor an ending.
pub(crate) fn is_name(path: &Path) -> bool {
    let is_bare = path.components().count() == 1 && path.extension().is_none();
    is_bare && path.as_os_str() != "-" && path.symlink_metadata().is_err()
}

fn in_directory(owner: PlanOwner, directory: &Path) -> Result<Vec<NamedPlan>, CliError> {
    let failed = |source| CliError::File { action: "read", path: directory.to_owned(), source };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut plans = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let is_plan = path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
        let Some(name) = path.file_stem().and_then(|name| name.to_str()).filter(|_| is_plan) else {
            continue;
        };
        if let Some(text) = read_if_there(&path, MAX_BYTES).map_err(failed)? {
            plans.push(NamedPlan { name: name.to_owned(), owner, path: Some(path.clone()), text });
        }
    }
    // Two files of one name: the order of a directory is none.
    plans.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(plans)
}
