//! The programs that plans name to be told about their tasks, as people see them before they run.

use std::collections::BTreeSet;

use serde::Serialize;
use taskpawl::Manager;
use taskpawl::model::{Origin, PlanNotify, PlanRecord, PolicyDecision, TaskId};

use crate::error::CliError;
use crate::text::quoted;

/// A program that a plan names.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NotifyProgram {
    plan: String,
    argv: Vec<String>,
    /// Who wrote it into the plan.
    origin: Origin,
    /// Why it does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_run: Option<String>,
}

impl NotifyProgram {
    /// Says of a program whether it would run.
    pub(super) fn of(manager: &Manager, plan: &str, notify: PlanNotify) -> Self {
        let decided = notify.authorize(manager.policy_hook().map(|policy_hook| &**policy_hook));
        let not_run = match decided {
            PolicyDecision::Allow => None,
            PolicyDecision::Ask { why } | PolicyDecision::Deny { why } => Some(why),
        };
        Self { plan: plan.to_owned(), argv: notify.argv, origin: notify.origin, not_run }
    }

    /// Returns the program that a plan file names, which somebody is about to apply.
    pub(super) fn of_file(manager: &Manager, plan: &str, argv: &[String]) -> Option<Self> {
        let notify = PlanNotify { argv: argv.to_vec(), origin: Origin::Plan };
        (!argv.is_empty()).then(|| Self::of(manager, plan, notify))
    }

    /// Returns the program that the plan of this name tells, if it names one.
    pub(super) fn of_plan(manager: &Manager, plan: &str) -> Result<Option<Self>, CliError> {
        let record = manager.read(|view| Ok(view.plan(plan)?))?;
        let notify = record.as_ref().and_then(PlanRecord::notify);
        Ok(notify.map(|notify| Self::of(manager, plan, notify)))
    }

    /// Returns the programs that are told about some of these tasks.
    pub(super) fn of_tasks<'a>(
        manager: &Manager,
        tasks: impl Iterator<Item = &'a TaskId>,
    ) -> Result<Vec<Self>, CliError> {
        let records = manager.read(|view| Ok(view.plans()?))?;
        let mut named: Vec<(String, PlanNotify)> =
            records.into_iter().filter_map(|record| Some((record.name.clone(), record.notify()?))).collect();
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let mut met = BTreeSet::new();
        for task in tasks {
            met.extend(manager.get(task.as_str())?.plan);
        }
        named.retain(|(plan, _)| met.contains(plan));
        Ok(named.into_iter().map(|(plan, notify)| Self::of(manager, &plan, notify)).collect())
    }

    /// Returns what is told by which program, in one line.
    pub(super) fn line(&self) -> String {
        let words: Vec<String> = self.argv.iter().map(|word| quoted(word)).collect();
        let line = format!(
            "{} (`notify` of plan `{}`, written by `{}`)",
            words.join(" "),
            self.plan,
            self.origin.as_str()
        );
        match &self.not_run {
            Some(why) => format!("{line}, which is not run: {why}"),
            None => line,
        }
    }
}
