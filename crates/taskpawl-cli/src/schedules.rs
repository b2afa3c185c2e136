//! Plans that `serve --run` runs at their times.
//!
//! A file in the user's state directory, which programs of calls cannot reach, has their text: a plan file lies in the project, where
//! programs may write.

pub(crate) mod check;
pub(crate) mod instance;

use std::fs::{File, TryLockError};
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use taskpawl::model::plan::{Plan, PlanSchedule, Reaction, expand_plan, read_plan, read_plan_file};
use taskpawl::model::value::Timestamp;
use taskpawl::tools::content_hash;
use taskpawl_schedule::{Calendar, InstanceState, Memory, Overlap, Rules};

use crate::context::Context;
use crate::error::CliError;
use crate::grants::Project;
use crate::plan_library::IncludedPlans;
use crate::state_files::{change_own, change_state, lock_file, read_state, state_file};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The schedules of all projects.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    schedules: Vec<Schedule>,
}

/// A scheduled plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Schedule {
    project: Project,
    /// The name of the plan.
    pub(crate) name: String,
    /// The file that it was read from.
    pub(crate) file: PathBuf,
    /// The text of that file at the time.
    pub(crate) text: String,
    /// The long form of the plan at the time, if it includes others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<String>,
    /// Given values of its parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) params: Vec<(String, String)>,
    pub(crate) added_at: Timestamp,
    #[serde(flatten)]
    pub(crate) memory: Memory,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<Instance>,
}

/// The last instance of a scheduled plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Instance {
    /// The name of its plan in the store.
    pub(crate) plan: String,
    /// The time of the calendar.
    pub(crate) due: Timestamp,
    /// The time of its start.
    pub(crate) started_at: Timestamp,
    /// The last known state. The store says what an open instance has become.
    pub(crate) state: InstanceState,
    /// States that were reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) told: Vec<InstanceState>,
    /// The reason why it could not be added to the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Schedule {
    pub(crate) fn new(
        context: &Context,
        (name, file): (String, PathBuf),
        (text, whole): (String, Option<String>),
        params: Vec<(String, String)>,
        now: Timestamp,
    ) -> Result<Self, CliError> {
        let memory = Memory { handled: now, queued: None };
        let project = Project::of(context)?;
        Ok(Self { project, name, file, text, whole, params, added_at: now, memory, last: None })
    }

    /// Returns the long form of a plan that includes others. A later change of their files must not run without a person.
    pub(crate) fn whole(plan: &Plan) -> Option<String> {
        let has_included = plan.tasks.iter().any(|task| task.included.is_some());
        has_included.then(|| expand_plan(plan).to_string())
    }

    /// Returns whether the file, or one that it includes, has changed since it was added. A file that is gone has not.
    pub(crate) fn has_changed(&self, context: &Context) -> bool {
        let Ok(text) = std::fs::read_to_string(&self.file) else { return false };
        let whole = || {
            let files = IncludedPlans::of_file(context, &self.file);
            Self::whole(&read_plan_file(&text, &files).ok()?)
        };
        text != self.text || (self.whole.is_some() && whole() != self.whole)
    }

    /// Reads the plan as it was added.
    pub(crate) fn plan(&self) -> Result<Plan, CliError> {
        let wrong = |errors| CliError::Plan { file: self.file.display().to_string(), errors };
        let mut plan = read_plan(self.whole.as_ref().unwrap_or(&self.text)).map_err(wrong)?;
        plan.set_params(self.params.iter().map(|(name, value)| (&**name, &**value))).map_err(wrong)?;
        Ok(plan)
    }
}

/// The times of a scheduled plan, with its rules.
#[derive(Debug)]
pub(crate) struct Times {
    pub(crate) calendar: Calendar,
    pub(crate) rules: Rules,
    pub(crate) tells_failures: bool,
    pub(crate) tells_missed: bool,
}

impl Times {
    pub(crate) fn of(plan: &PlanSchedule) -> Result<Self, taskpawl_schedule::CalendarError> {
        let overlap = match plan.overlap {
            taskpawl::model::plan::OverlapWord::Skip => Overlap::Skip,
            taskpawl::model::plan::OverlapWord::Queue => Overlap::Queue,
            taskpawl::model::plan::OverlapWord::Replace => Overlap::Replace,
        };
        let expires = chrono::TimeDelta::from_std(plan.expires.0).unwrap_or(chrono::TimeDelta::MAX);
        // A century is forever, and cannot overflow a date.
        let expires = expires.min(chrono::TimeDelta::days(36_500));
        Ok(Self {
            calendar: Calendar::parse(&plan.cron, &plan.timezone)?,
            rules: Rules { overlap, expires },
            tells_failures: plan.on_failure == Reaction::Notify,
            tells_missed: plan.on_missed == Reaction::Notify,
        })
    }
}

/// The place of the schedules of a project, for threads without a context.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    path: PathBuf,
    project: Project,
}

impl Place {
    pub(crate) fn of(context: &Context) -> Result<Self, CliError> {
        let missing = || CliError::usage_with("there is no place for schedules", "set HOME");
        Self::find(context)?.ok_or_else(missing)
    }

    /// Returns `None` without a state directory.
    pub(crate) fn find(context: &Context) -> Result<Option<Self>, CliError> {
        let Some(path) = state_file(context, "schedules.json") else { return Ok(None) };
        Ok(Some(Self { path, project: Project::of(context)? }))
    }

    /// Returns a place in a directory.
    #[cfg(test)]
    pub(crate) fn for_tests(directory: &std::path::Path) -> Self {
        Self { path: directory.join("schedules.json"), project: Project::at(directory) }
    }

    /// Returns a schedule of this project.
    #[cfg(test)]
    pub(crate) fn schedule(&self, name: &str, text: String, now: Timestamp) -> Schedule {
        Schedule {
            project: self.project.clone(),
            name: name.to_owned(),
            file: PathBuf::from("plan.yaml"),
            text,
            whole: None,
            params: Vec::new(),
            added_at: now,
            memory: Memory { handled: now, queued: None },
            last: None,
        }
    }

    /// Returns the schedules of the project.
    pub(crate) fn read(&self) -> Result<Vec<Schedule>, CliError> {
        let record: Record =
            read_state(&self.path, MAX_BYTES).map_err(|source| self.failed("read", source))?;
        Ok(record.schedules.into_iter().filter(|one| one.project == self.project).collect())
    }

    /// Changes the schedules of the project. A lock keeps two processes from undoing each other's change.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Vec<Schedule>) -> T) -> Result<T, CliError> {
        let changed = change_state(&self.path, MAX_BYTES, |record: &mut Record| {
            change_own(&mut record.schedules, |one| one.project == self.project, change)
        });
        changed.map_err(|source| self.failed("write", source))
    }

    /// Takes the right to run the schedules of the project; `None` if another server has it. The kernel frees the lock of a
    /// dead process.
    pub(crate) fn serve(&self) -> Result<Option<File>, CliError> {
        let path = self.server_lock();
        let file = lock_file(&path).map_err(|source| self.failed("write", source))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(self.failed("lock", source)),
        }
    }

    fn server_lock(&self) -> PathBuf {
        let project = serde_json::to_vec(&self.project).unwrap_or_default();
        let hash = content_hash(&project);
        self.path.with_file_name("schedules").join(format!("{}.lock", hash.get(..16).unwrap_or(&hash)))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> CliError {
        CliError::File { action, path: self.path.clone(), source }
    }
}
