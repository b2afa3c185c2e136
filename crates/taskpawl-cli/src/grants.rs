//! Grants that a person has remembered for the plans of a project.
//!
//! They are kept in the user's state directory, which programs cannot reach, by the id and the path of the project: a copy of a project has
//! no grants of its own accord.

mod project;

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use taskpawl::model::value::Timestamp;
use taskpawl::tools::{NamedGrant, Power, RememberedGrant, Ruling};

pub(crate) use self::project::{Project, plan_text};
use crate::context::Context;
use crate::error::CliError;
use crate::kits::{GrantedAgent, GrantedKit};
use crate::remembered::Approval;
use crate::state_files::{change_own, change_state, read_state, state_file};
use crate::text::clean;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// The remembered grants of all projects.
#[derive(Debug, Default, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names of the file")]
pub(crate) struct Grants {
    grants: Vec<Entry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    approvals: Vec<Approval>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kits: Vec<GrantedKit>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    agents: Vec<GrantedAgent>,
}

/// A remembered grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    project: Project,
    pub(crate) grant: NamedGrant,
    /// The plan whose calls have it; absent for all plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<String>,
    /// Calls that models wrote have it as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) agents: bool,
    pub(crate) at: Timestamp,
    /// The start of the last run that took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_used: Option<Timestamp>,
}

impl Entry {
    pub(crate) fn new(
        project: Project,
        grant: NamedGrant,
        plan: Option<String>,
        agents: bool,
        at: Timestamp,
    ) -> Self {
        Self { project, grant, plan, agents, at, last_used: None }
    }

    /// Returns whether both are the same grant for the same calls.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.remembered() == other.remembered()
    }

    fn remembered(&self) -> RememberedGrant {
        RememberedGrant {
            plan: self.plan.clone(),
            agents: self.agents,
            only: None,
            kit: None,
            grant: self.grant.clone(),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grant = clean(&self.grant.to_string());
        write!(f, "{grant} ({})", plan_text(self.plan.as_deref()))
    }
}

impl Grants {
    /// Returns the grants of this project, in the order in which they were given.
    pub(crate) fn of_project(context: &Context) -> Result<Vec<Entry>, CliError> {
        let project = Project::of(context)?;
        Ok(Self::all(context)?.grants.into_iter().filter(|entry| entry.project == project).collect())
    }

    /// Returns the remembered approvals of this project, in the order in which they were given.
    pub(crate) fn approvals_of_project(context: &Context) -> Result<Vec<Approval>, CliError> {
        let project = Project::of(context)?;
        Ok(Self::all(context)?
            .approvals
            .into_iter()
            .filter(|approval| *approval.project() == project)
            .collect())
    }

    /// Returns the kits of this project.
    pub(crate) fn kits_of_project(context: &Context) -> Result<Vec<GrantedKit>, CliError> {
        let project = Project::of(context)?;
        Ok(Self::all(context)?.kits.into_iter().filter(|kit| *kit.project() == project).collect())
    }

    /// Returns the coding agents that have what they need in this project.
    pub(crate) fn agents_of_project(context: &Context) -> Result<Vec<GrantedAgent>, CliError> {
        let project = Project::of(context)?;
        Ok(Self::all(context)?.agents.into_iter().filter(|agent| *agent.project() == project).collect())
    }

    fn all(context: &Context) -> Result<Self, CliError> {
        let Some(path) = path(context) else { return Ok(Self::default()) };
        read_state(&path, MAX_BYTES).map_err(|source| CliError::File { action: "read", path, source })
    }

    /// Changes the grants of this project.
    pub(crate) fn change(context: &Context, change: impl FnOnce(&mut Vec<Entry>)) -> Result<(), CliError> {
        let project = Project::of(context)?;
        Self::edit(context, |all| change_own(&mut all.grants, |entry| entry.project == project, change))
    }

    /// Changes the remembered approvals of this project.
    pub(crate) fn change_approvals(
        context: &Context,
        change: impl FnOnce(&mut Vec<Approval>),
    ) -> Result<(), CliError> {
        let project = Project::of(context)?;
        Self::edit(context, |all| change_own(&mut all.approvals, |entry| *entry.project() == project, change))
    }

    /// Changes the kits of this project.
    pub(crate) fn change_kits(
        context: &Context,
        change: impl FnOnce(&mut Vec<GrantedKit>),
    ) -> Result<(), CliError> {
        let project = Project::of(context)?;
        Self::edit(context, |all| change_own(&mut all.kits, |kit| *kit.project() == project, change))
    }

    /// Changes the coding agents of this project.
    pub(crate) fn change_agents(
        context: &Context,
        change: impl FnOnce(&mut Vec<GrantedAgent>),
    ) -> Result<(), CliError> {
        let project = Project::of(context)?;
        Self::edit(context, |all| change_own(&mut all.agents, |agent| *agent.project() == project, change))
    }

    /// Changes the file. A lock keeps a run that records its use from undoing what another command changes.
    fn edit(context: &Context, edit: impl FnOnce(&mut Self)) -> Result<(), CliError> {
        let Some(path) = path(context) else {
            return Err(CliError::usage_with("there is no place for remembered grants", "set HOME"));
        };
        change_state(&path, MAX_BYTES, edit).map_err(|source| CliError::File {
            action: "write",
            path,
            source,
        })
    }
}

fn path(context: &Context) -> Option<PathBuf> {
    state_file(context, "grants.json")
}

/// Returns the remembered grants that the policy lets runs of this project have.
pub(crate) fn in_force(context: &Context) -> Result<Vec<Entry>, CliError> {
    // Without a project nothing is remembered.
    if context.place().is_err() {
        return Ok(Vec::new());
    }
    let policy = context.policy()?;
    let is_never = |power| policy.ruling(power).ruling == Ruling::Never;
    if is_never(Power::Remembered) {
        return Ok(Vec::new());
    }
    let entries = Grants::of_project(context)?;
    Ok(entries
        .into_iter()
        .filter(|entry| power_of(&entry.grant).is_some_and(|power| !is_never(power)))
        .collect())
}

/// Returns the power that a remembered grant uses; `None` for grants that are never remembered.
pub(crate) fn power_of(grant: &NamedGrant) -> Option<Power> {
    match grant {
        NamedGrant::Host(_) => Some(Power::Hosts),
        NamedGrant::Port(_) => Some(Power::Ports),
        NamedGrant::Read(_) | NamedGrant::Write(_) => Some(Power::Paths),
        NamedGrant::Socket(_) => Some(Power::Sockets),
        NamedGrant::Env(_) => Some(Power::Variables),
        NamedGrant::Off | NamedGrant::Net | _ => None,
    }
}

/// Returns remembered grants as settings of the sandbox.
pub(crate) fn settings(entries: &[Entry]) -> Vec<RememberedGrant> {
    entries.iter().map(Entry::remembered).collect()
}

/// Records that a run takes these grants.
pub(crate) fn record_use(context: &Context, used: &[Entry]) -> Result<(), CliError> {
    if used.is_empty() {
        return Ok(());
    }
    let now = context.source()?.now();
    Grants::change(context, |own| {
        let is_used = |entry: &&mut Entry| used.iter().any(|used| used.is_same(entry));
        own.iter_mut().filter(is_used).for_each(|entry| entry.last_used = Some(now));
    })
}

/// Returns the proposals of the project that no remembered grant covers.
pub(crate) fn open_proposals(context: &Context) -> Result<Vec<NamedGrant>, CliError> {
    let wants = context.config()?.wants();
    if wants.is_empty() || context.place().is_err() {
        return Ok(Vec::new());
    }
    let known = Grants::of_project(context)?;
    let is_open = |want: &&NamedGrant| !known.iter().any(|entry| entry.grant.covers(want));
    Ok(wants.iter().filter(is_open).cloned().collect())
}
