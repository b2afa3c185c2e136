//! Approvals that a person has remembered for a project: each answers the questions about calls that do the same work.
//!
//! They are kept beside the remembered grants.

mod programs;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use taskpawl::model::task::AskedCall;
use taskpawl::model::value::Timestamp;
use taskpawl::tools::{Power, RememberedApproval, Ruling};

use crate::context::Context;
use crate::error::CliError;
use crate::grants::{Grants, Project, plan_text};
use crate::text::{clean, cut};

/// The most characters of a call that are kept to show it.
const MAX_TEXT: usize = 200;

/// A remembered approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Approval {
    project: Project,
    /// The hash of the work that is approved.
    pub(crate) work: String,
    pub(crate) tool: String,
    /// The beginning of the call, to show it.
    pub(crate) call: String,
    /// The plan whose calls it holds for; absent for all plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<String>,
    /// Calls that models wrote are approved as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) agents: bool,
    /// The hashes of the programs of the project that the call names; absent for a missing one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    programs: BTreeMap<String, Option<String>>,
    pub(crate) at: Timestamp,
    /// The end of the last run in which it answered a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_used: Option<Timestamp>,
}

impl Approval {
    /// Returns the approval of a call.
    pub(crate) fn of(
        context: &Context,
        call: &AskedCall,
        plan: Option<String>,
        agents: bool,
    ) -> Result<Self, CliError> {
        let shown = programs::text(call);
        Ok(Self {
            project: Project::of(context)?,
            work: call.work_hash(),
            tool: call.tool.clone(),
            call: cut(&clean(&shown), MAX_TEXT),
            plan,
            agents,
            programs: programs::hashes(&context.place()?.root, call),
            at: context.source()?.now(),
            last_used: None,
        })
    }

    /// Returns the calls that the approval holds for.
    pub(crate) fn holds_for(&self) -> String {
        let agents = if self.agents { ", also calls of models" } else { "" };
        format!("for {}{agents}", plan_text(self.plan.as_deref()))
    }

    pub(crate) fn project(&self) -> &Project {
        &self.project
    }

    /// Returns the approval as the policy has it.
    pub(crate) fn rule(&self) -> RememberedApproval {
        RememberedApproval { work: self.work.clone(), plan: self.plan.clone(), agents: self.agents }
    }

    /// Returns the first program of the call that is not as it was when the call was approved.
    pub(crate) fn changed_program(&self, context: &Context) -> Result<Option<&str>, CliError> {
        let root = &context.place()?.root;
        let is_other = |(path, hash): &(&String, &Option<String>)| programs::hash(root, path) != **hash;
        Ok(self.programs.iter().find(is_other).map(|(path, _)| path.as_str()))
    }
}

/// Returns the remembered approvals that a policy lets runs of this project have. One whose program has changed is not among them.
pub(crate) fn in_force(context: &Context) -> Result<Vec<Approval>, CliError> {
    // Without a project nothing is remembered.
    if context.place().is_err() {
        return Ok(Vec::new());
    }
    let policy = context.policy()?;
    let is_never = |power| policy.ruling(power).ruling == Ruling::Never;
    if is_never(Power::Remembered) || is_never(Power::Approvals) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for approval in Grants::approvals_of_project(context)? {
        if approval.changed_program(context)?.is_none() {
            found.push(approval);
        }
    }
    Ok(found)
}

/// Returns the remembered approvals whose program has changed, with the path of that program.
pub(crate) fn outdated(context: &Context) -> Result<Vec<(String, Approval)>, CliError> {
    let mut found = Vec::new();
    for approval in Grants::approvals_of_project(context)? {
        if let Some(program) = approval.changed_program(context)?.map(str::to_owned) {
            found.push((program, approval));
        }
    }
    Ok(found)
}

/// Records that these approvals answered questions of a run.
pub(crate) fn record_use(context: &Context, used: &[RememberedApproval]) -> Result<(), CliError> {
    if used.is_empty() {
        return Ok(());
    }
    let now = context.source()?.now();
    Grants::change_approvals(context, |own| {
        let is_used = |approval: &&mut Approval| used.contains(&approval.rule());
        own.iter_mut().filter(is_used).for_each(|approval| approval.last_used = Some(now));
    })
}
