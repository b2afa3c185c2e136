//! Reads that explain the current status and predict runs.

use taskpawl_model::command::Refusal;
use taskpawl_model::insight::{
    CriticalPath, Explanation, Facts, Forecast, ForecastOptions, ReadyList, critical_path, explain,
    explain_ready, forecast,
};
use taskpawl_model::plan::Plan;
use taskpawl_model::rules::{Means, preview, resolve};
use taskpawl_model::value::Selector;

use crate::error::Error;
use crate::manager::{ApplyOptions, Manager};

impl Manager {
    /// Explains why a task is not running, down to the first cause, with the commands that unblock it.
    /// `means` describes the tools and resources of the next run.
    pub fn explain(&self, id: &str, means: &Means) -> Result<Explanation, Error> {
        let asker = self.context();
        let facts = Facts { now: asker.now, is_alive: &|run| self.is_alive(run), means, asker: Some(&asker) };
        self.read(|view| {
            let key = resolve(view, id)?;
            let unknown = || Refusal::UnknownTask { id: id.to_owned(), similar: Vec::new() };
            view.node(key)?.ok_or_else(unknown)?;
            Ok(explain(view, key, &facts)?)
        })
    }

    /// Returns the ready tasks among the selected ones, in the order in which they are taken, with the
    /// reasons for that order. Returns at most `limit` tasks for runs and `limit` manual tasks (0: all).
    /// `means` describes the next run.
    pub fn explain_ready(&self, only: &[Selector], limit: usize, means: &Means) -> Result<ReadyList, Error> {
        self.read(|view| explain_ready(view, only, limit, means, Some(&self.context())))
    }

    /// Predicts the course and the end of a run. Writes nothing.
    pub fn forecast(&self, options: &ForecastOptions) -> Result<Forecast, Error> {
        self.read(|view| forecast(view, &self.judged(options)))
    }

    /// Predicts a run after `plan` is applied. Writes nothing, not even the plan.
    pub fn forecast_plan(
        &self,
        plan: Plan,
        name: &str,
        apply: ApplyOptions,
        options: &ForecastOptions,
    ) -> Result<Forecast, Error> {
        let request = self.request(Self::apply_command(plan, name, apply));
        self.read(|view| {
            preview(view, &request.command, &request.context, |after| forecast(after, &self.judged(options)))?
        })
    }

    /// Adds the policy hook of this manager, unless the options have one, so that a forecast decides calls
    /// like a run.
    fn judged(&self, options: &ForecastOptions) -> ForecastOptions {
        let policy_hook = options.policy_hook.clone().or_else(|| self.policy_hook().cloned());
        ForecastOptions { policy_hook, now: self.source().now(), ..options.clone() }
    }

    /// Returns the critical path of the selected tasks. With `left`, only unfinished tasks count.
    pub fn critical_path(&self, only: &[Selector], jobs: usize, left: bool) -> Result<CriticalPath, Error> {
        self.read(|view| critical_path(view, only, jobs, left))
    }
}
