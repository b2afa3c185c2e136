//! The core tools by name, and which of them a server offers.

use serde_json::{Map, Value};
use taskpawl::model::command::Refusal;
use taskpawl::model::task::PlanAccess;

use super::options::{Offer, ServerOptions};

/// A core tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Core {
    PlanShow,
    PlanWrite,
    ReadyList,
    RunReady,
    TaskAdd,
    TaskDelete,
    TaskGet,
    TaskUpdate,
}

/// The actions of `task_update`.
pub(super) const TASK_ACTIONS: [&str; 10] =
    ["claim", "renew", "release", "done", "fail", "retry", "reopen", "cancel", "skip", "signal"];

impl Core {
    /// All tools, in the order in which a plan is written and carried out.
    pub(super) const ALL: [Self; 8] = [
        Self::PlanShow,
        Self::PlanWrite,
        Self::TaskAdd,
        Self::TaskGet,
        Self::TaskUpdate,
        Self::TaskDelete,
        Self::ReadyList,
        Self::RunReady,
    ];

    /// Returns the name in the protocol.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::PlanShow => "plan_show",
            Self::PlanWrite => "plan_write",
            Self::ReadyList => "ready_list",
            Self::RunReady => "run_ready",
            Self::TaskAdd => "task_add",
            Self::TaskDelete => "task_delete",
            Self::TaskGet => "task_get",
            Self::TaskUpdate => "task_update",
        }
    }

    /// Returns the tool with this name, if the server offers it.
    pub(super) fn named(name: &str, options: &ServerOptions) -> Option<Self> {
        Self::all(options).find(|tool| tool.name() == name)
    }

    /// Returns the tools that the server offers.
    pub(super) fn all(options: &ServerOptions) -> impl Iterator<Item = Self> + use<> {
        let ServerOptions { has_plan, read_only, within, offer, .. } = *options;
        Self::ALL.into_iter().filter(move |tool| {
            let is_admitted = match within {
                None => !read_only,
                Some(access) => !read_only && access == PlanAccess::Add && tool.adds(),
            };
            let is_offered = match offer {
                Offer::All => true,
                Offer::Work => matches!(tool, Self::TaskGet | Self::TaskUpdate | Self::ReadyList),
            };
            has_plan && is_offered && (is_admitted || tool.has_read_only_form())
        })
    }

    /// Returns the refusal of a tool that programs of a call with this access cannot use.
    pub(super) fn beyond(self, access: PlanAccess) -> Refusal {
        if self.adds() {
            return Refusal::BeyondAccess {
                access: Some(access),
                what: "this command would change it".to_owned(),
            };
        }
        Refusal::BeyondAccess { access: None, what: format!("`{}` is not allowed", self.name()) }
    }

    /// Returns the tool with this name, even if the server does not offer it.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Returns whether the tool only adds to a plan.
    fn adds(self) -> bool {
        matches!(self, Self::TaskAdd | Self::PlanWrite)
    }

    /// Returns whether a call only reads, so that it can be repeated for more of the answer.
    pub(super) fn reads(self, arguments: &Map<String, Value>) -> bool {
        match self {
            Self::PlanShow | Self::TaskGet => true,
            Self::ReadyList => arguments.get("claim") != Some(&Value::Bool(true)),
            Self::PlanWrite | Self::RunReady | Self::TaskAdd | Self::TaskDelete | Self::TaskUpdate => false,
        }
    }

    fn has_read_only_form(self) -> bool {
        matches!(self, Self::PlanShow | Self::TaskGet | Self::ReadyList)
    }
}
