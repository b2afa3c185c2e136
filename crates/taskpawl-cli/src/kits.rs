//! Kits: what a tool needs beyond a host, as one grant with a name. A kit holds for named tasks, as they were defined when a person
//! granted it.
//!
//! A kit has sockets, variables and public files. Private keys, passwords and tokens are in none.

mod agent;
mod kind;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use taskpawl::Manager;
use taskpawl::model::task::Status;
use taskpawl::model::value::{TaskId, Timestamp};
use taskpawl::tools::{GrantedWork, Power, RememberedGrant, Ruling};

pub(crate) use self::agent::GrantedAgent;
pub(crate) use self::kind::Kit;
use crate::coding_agents::CodingAgents;
use crate::context::Context;
use crate::error::CliError;
use crate::grants::{Grants, Project};
use crate::person;

/// Days without use after which a kit is forgotten.
const MAX_DAYS: i64 = 30;

/// A granted kit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GrantedKit {
    project: Project,
    pub(crate) kit: Kit,
    pub(crate) tasks: Vec<KitTask>,
    /// Calls that models wrote have it as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) agents: bool,
    pub(crate) at: Timestamp,
    /// The start of the last run with an open task that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_used: Option<Timestamp>,
}

/// A task that has a kit, with its calls as they were shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KitTask {
    pub(crate) id: TaskId,
    pub(crate) calls: Vec<Definition>,
}

/// The definition of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definition {
    hash: String,
    /// The call as a person has seen it.
    pub(crate) text: String,
}

impl KitTask {
    /// Reads the calls of a task as they are defined now; `None` without such a task.
    pub(crate) fn read(manager: &Manager, id: &str) -> Result<Option<Self>, CliError> {
        Ok(manager.read(|view| {
            let Some(key) = view.key(id)? else { return Ok(None) };
            let of = |call: &taskpawl::model::task::CallRecord| Definition {
                hash: call.spec.definition_hash(),
                text: serde_json::json!({&call.spec.tool_name: call.spec.args}).to_string(),
            };
            let calls = view.calls(key)?.iter().map(of).collect();
            Ok(Some(Self { id: TaskId::new(id), calls }))
        })?)
    }

    /// Returns the difference to an older definition, with a sign before each line; empty without one.
    pub(crate) fn difference(&self, old: &Self) -> Vec<String> {
        let gone = old.calls.iter().filter(|call| !self.calls.contains(call));
        let new = self.calls.iter().filter(|call| !old.calls.contains(call));
        gone.map(|call| format!("- {}", call.text))
            .chain(new.map(|call| format!("+ {}", call.text)))
            .collect()
    }
}

impl GrantedKit {
    pub(crate) fn new(project: Project, kit: Kit, tasks: Vec<KitTask>, agents: bool, at: Timestamp) -> Self {
        Self { project, kit, tasks, agents, at, last_used: None }
    }

    pub(crate) fn project(&self) -> &Project {
        &self.project
    }

    /// Returns whether the kit was not used for so long that it does not count any more.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        now - self.last_used.unwrap_or(self.at) > TimeDelta::days(MAX_DAYS)
    }

    fn works(&self) -> Vec<GrantedWork> {
        let of_task = |task: &KitTask| -> Vec<GrantedWork> {
            let work =
                |call: &Definition| GrantedWork { task: task.id.to_string(), definition: call.hash.clone() };
            task.calls.iter().map(work).collect()
        };
        self.tasks.iter().flat_map(of_task).collect()
    }
}

/// Returns the grants of the kits that a policy lets runs of this project have.
pub(crate) fn grants(context: &Context) -> Result<Vec<RememberedGrant>, CliError> {
    let mut grants = Vec::new();
    for kit in in_force(context)? {
        let only = kit.works();
        // A kit whose socket is gone gives nothing: the agent was not started.
        for grant in kit.kit.grants(context).unwrap_or_default() {
            let (agents, only) = (kit.agents, Some(only.clone()));
            grants.push(RememberedGrant { plan: None, agents, only, kit: None, grant });
        }
    }
    grants.extend(of_agents(context)?);
    Ok(grants)
}

/// Returns the grants of coding agents. An agent whose program is another one by now has none.
fn of_agents(context: &Context) -> Result<Vec<RememberedGrant>, CliError> {
    if !are_in_force(context)? {
        return Ok(Vec::new());
    }
    let granted = Grants::agents_of_project(context)?;
    if granted.is_empty() {
        return Ok(Vec::new());
    }
    let agents = CodingAgents::of(context)?;
    let is_same = |granted: &&GrantedAgent| {
        agents.named(&granted.agent).is_some_and(|agent| agent.argv == granted.command)
    };
    Ok(granted.iter().filter(is_same).flat_map(GrantedAgent::remembered).collect())
}

fn are_in_force(context: &Context) -> Result<bool, CliError> {
    // Without a project nothing is remembered.
    if context.place().is_err() {
        return Ok(false);
    }
    let policy = context.policy()?;
    let is_never = |power| policy.ruling(power).ruling == Ruling::Never;
    Ok(!is_never(Power::Remembered) && !is_never(Power::Kits))
}

fn in_force(context: &Context) -> Result<Vec<GrantedKit>, CliError> {
    if !are_in_force(context)? {
        return Ok(Vec::new());
    }
    let now = context.source()?.now();
    Ok(Grants::kits_of_project(context)?.into_iter().filter(|kit| !kit.is_expired(now)).collect())
}

/// The remark about a task without its kit, because its calls are others than those that a person saw.
fn changed(kit: Kit, task: &TaskId) -> String {
    format!(
        "task `{task}` has changed and does not have the kit {kit}: `taskpawl allow kit:{kit} --task {task}` shows the difference"
    )
}

/// Says which kits a run takes, and which tasks have none because they have changed. Records the use.
pub(crate) fn tell(context: &Context, manager: &Manager) -> Result<(), CliError> {
    let kits = in_force(context)?;
    if kits.is_empty() {
        return Ok(());
    }
    person::check_power(context, Power::Kits, "kits")?;
    let mut used = Vec::new();
    for kit in &kits {
        let mut holders = Vec::new();
        let mut has_open = false;
        for task in &kit.tasks {
            let Some(now) = KitTask::read(manager, task.id.as_str())? else { continue };
            if manager.get(task.id.as_str())?.status == Status::Done {
                continue;
            }
            has_open = true;
            if now.difference(task).is_empty() {
                holders.push(format!("`{}`", task.id));
            } else {
                context.out().remark(&changed(kit.kit, &task.id));
            }
        }
        if !holders.is_empty() {
            context.out().remark(&format!("kit {} for {}", kit.kit, holders.join(", ")));
        }
        if has_open {
            used.push(kit.clone());
        }
    }
    let now = context.source()?.now();
    Grants::change_kits(context, |own| {
        own.retain(|kit| !kit.is_expired(now));
        own.iter_mut().filter(|kit| used.contains(kit)).for_each(|kit| kit.last_used = Some(now));
    })
}
