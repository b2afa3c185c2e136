//! Kits of coding agents, `agent:NAME`: hosts and settings for the program of one agent, and for nothing else.

use serde::{Deserialize, Serialize};
use taskpawl::model::value::Timestamp;
use taskpawl::tools::{NamedGrant, RememberedGrant};

use crate::grants::Project;

/// The access that a person has granted to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GrantedAgent {
    project: Project,
    /// The name of the agent.
    pub(crate) agent: String,
    /// The program as it was shown. Another program under the same name has nothing.
    pub(crate) command: Vec<String>,
    pub(crate) grants: Vec<NamedGrant>,
    /// Calls that models wrote have it as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) agents: bool,
    pub(crate) at: Timestamp,
}

impl GrantedAgent {
    pub(crate) fn new(
        (project, at): (Project, Timestamp),
        agent: &taskpawl_agent::AgentDefinition,
        agents: bool,
    ) -> Self {
        Self {
            project,
            agent: agent.name.clone(),
            command: agent.argv.clone(),
            grants: agent.needs.clone(),
            agents,
            at,
        }
    }

    pub(crate) fn project(&self) -> &Project {
        &self.project
    }

    /// Returns the name of its kit.
    pub(crate) fn kit(&self) -> String {
        format!("agent:{}", self.agent)
    }

    /// Returns its grants, for calls of this agent alone.
    pub(crate) fn remembered(&self) -> impl Iterator<Item = RememberedGrant> + '_ {
        self.grants.iter().map(|grant| RememberedGrant {
            plan: None,
            agents: self.agents,
            only: None,
            kit: Some(self.kit()),
            grant: grant.clone(),
        })
    }
}
