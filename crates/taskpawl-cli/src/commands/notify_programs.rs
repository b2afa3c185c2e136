//! Programs that plans notify about their tasks, as shown before they run.

use std::collections::BTreeSet;

use serde::Serialize;
use taskpawl::Manager;
use taskpawl::model::task::PolicyDecision;
use taskpawl::model::task::{Origin, PlanNotify, PlanRecord};
use taskpawl::model::value::TaskId;

use crate::error::CliError;
use crate::text::quoted;

/// A program from the `notify` field of a plan.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NotifyProgram {
    plan: String,
    argv: Vec<String>,
    /// The source that wrote it into the plan. The policy decides by it.
    origin: Origin,
    /// The reason of the policy for not running it.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_run: Option<String>,
}

impl NotifyProgram {
    /// Asks the policy hook whether the program would run.
    pub(super) fn of(manager: &Manager, plan: &str, notify: PlanNotify) -> Self {
        // A notify program runs without a question, so "ask" means that it does not run.
        let decided = notify.authorize(manager.policy_hook().map(|policy_hook| &**policy_hook));
        let not_run = match decided {
            PolicyDecision::Allow => None,
            PolicyDecision::Ask { why } | PolicyDecision::Deny { why } => Some(why),
        };
        Self { plan: plan.to_owned(), argv: notify.argv, origin: notify.origin, not_run }
    }

    /// Returns the program of a plan file that is about to be applied.
    pub(super) fn of_file(manager: &Manager, plan: &str, argv: &[String]) -> Option<Self> {
        let notify = PlanNotify { argv: argv.to_vec(), origin: Origin::Plan };
        (!argv.is_empty()).then(|| Self::of(manager, plan, notify))
    }

    /// Returns the program of a stored plan, if it has one.
    pub(super) fn of_plan(manager: &Manager, plan: &str) -> Result<Option<Self>, CliError> {
        let record = manager.read(|view| Ok(view.plan(plan)?))?;
        let notify = record.as_ref().and_then(PlanRecord::notify);
        Ok(notify.map(|notify| Self::of(manager, plan, notify)))
    }

    /// Returns the programs that are notified about any of these tasks.
    pub(super) fn of_tasks<'a>(
        manager: &Manager,
        tasks: impl Iterator<Item = &'a TaskId>,
    ) -> Result<Vec<Self>, CliError> {
        let records = manager.read(|view| Ok(view.plans()?))?;
        let mut named: Vec<(String, PlanNotify)> =
            records.into_iter().filter_map(|record| Some((record.name.clone(), record.notify()?))).collect();
        // The plan of each task is read only if any plan has a program: forecasts can contain thousands of
        // tasks.
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

    /// Formats the program, its plan and its origin in one line.
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
