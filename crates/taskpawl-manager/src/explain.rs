//! Reads that say why things are as they are, and what would be.

use taskpawl_model::{
    CriticalPath, Explanation, Facts, Forecast, ForecastOptions, Means, Overlay, Plan, ReadyList, Refusal,
    Selector, critical_path, decide, explain, explain_ready, forecast, resolve,
};

use crate::error::Error;
use crate::manager::{ApplyOptions, Manager};

impl Manager {
    /// Returns why a task is not running, down to the first cause, and the commands that clear it; `means` is what the next run
    /// has.
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

    /// Returns what is ready, of the tasks that the selectors select, in the order in which it is taken, and why in that
    /// order: at most `limit` for runs and as many for hands, 0 for all. `means` is what the next run has.
    pub fn explain_ready(&self, only: &[Selector], limit: usize, means: &Means) -> Result<ReadyList, Error> {
        self.read(|view| explain_ready(view, only, limit, means, Some(&self.context())))
    }

    /// Says what a run would do and how it would end; writes nothing.
    pub fn forecast(&self, options: &ForecastOptions) -> Result<Forecast, Error> {
        self.read(|view| forecast(view, &self.judged(options)))
    }

    /// Says what a run would do after a plan was applied; writes nothing, neither the plan nor what the run does.
    pub fn forecast_plan(
        &self,
        plan: Plan,
        name: &str,
        apply: ApplyOptions,
        options: &ForecastOptions,
    ) -> Result<Forecast, Error> {
        let request = self.request(self.apply_command(plan, name, apply));
        self.read(|view| {
            let decision = decide(view, &request.command, &request.context)?;
            forecast(&Overlay::new(view, &decision.changes), &self.judged(options))
        })
    }

    /// Who judges calls when they start judges them in forecasts.
    fn judged(&self, options: &ForecastOptions) -> ForecastOptions {
        let gatekeeper = options.gatekeeper.clone().or_else(|| self.gatekeeper().cloned());
        ForecastOptions { gatekeeper, ..options.clone() }
    }

    /// Returns the critical path of the tasks that the selectors select; with `left`, of those alone that have not ended.
    pub fn critical_path(&self, only: &[Selector], jobs: usize, left: bool) -> Result<CriticalPath, Error> {
        self.read(|view| critical_path(view, only, jobs, left))
    }
}
