//! Runs that a server starts by itself: whenever a task is ready, and when durable waits end.

use std::time::Duration;

use taskpawl::model::task::Work;
use taskpawl::model::value::Timestamp;
use taskpawl::model::view::Query;
use taskpawl::{Error, Manager, RunControl, RunError, RunOptions, Taskpawl};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::serve_schedules::Scheduler;
use crate::error::CliError;

/// The longest sleep: leases, questions and runs of other processes end without a commit.
const LONGEST: Duration = Duration::from_mins(1);

/// The state of a store, as far as the server has to know it to start a run.
struct Prospect {
    revision: u64,
    is_ready: bool,
    /// The first end of a durable wait. One timer is enough for any number of them.
    next_wake: Option<Timestamp>,
}

/// The settings of the runs that a server starts.
pub(super) struct RunnerOptions {
    pub(super) plans: Taskpawl,
    pub(super) run: RunOptions,
    pub(super) scheduler: Scheduler,
}

/// The task that starts runs, one after the other.
pub(super) struct Runner {
    tasks: JoinSet<Result<(), CliError>>,
    control: RunControl,
    stop: CancellationToken,
}

impl Runner {
    /// Starts runs with these options from now on, and instances of scheduled plans. Runs have no terminal, so that questions
    /// stay open.
    pub(super) fn start(options: RunnerOptions) -> Self {
        let (control, stop) = (RunControl::default(), CancellationToken::new());
        let RunnerOptions { plans, run: mut options, scheduler } = options;
        options.control = control.clone();
        options.wait = false;
        let mut tasks = JoinSet::new();
        let running = keep_running(plans, options, stop.clone());
        tasks.spawn(async move { running.await.map_err(CliError::from) });
        tasks.spawn(scheduler.keep(stop.clone()));
        Self { tasks, control, stop }
    }

    /// Returns a function that stops it: nothing more starts. The first call lets running calls end, the second kills them.
    pub(super) fn stopper(&self) -> impl Fn() + use<> {
        let (control, stop) = (self.control.clone(), self.stop.clone());
        move || {
            stop.cancel();
            control.stop();
        }
    }

    /// Waits for the end of the current run after the [stopper](Self::stopper) was called, or for an error.
    pub(super) async fn ended(&mut self) -> Result<(), CliError> {
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
        }
        Ok(())
    }
}

async fn keep_running(plans: Taskpawl, options: RunOptions, stop: CancellationToken) -> Result<(), RunError> {
    // A run that could start nothing would start nothing again: the store has to change first.
    let mut ran_at = None;
    while !stop.is_cancelled() {
        // Takes back what dead runs left, and ends the waits that are over.
        let engine = plans.engine().clone();
        plans.manage(move |_| engine.recover()).await?;
        let work = plans.manage(look).await?;
        if work.is_ready && ran_at != Some(work.revision) {
            plans.run_all_ready(options.clone()).await?;
            ran_at = Some(plans.manage(look).await?.revision);
            continue;
        }
        let now = plans.manager().source().now();
        let left = work.next_wake.map(|wake| (wake - now).to_std().unwrap_or_default());
        let pause = left.map_or(LONGEST, |left| left.min(LONGEST));
        let changed = plans.manage(move |manager| Ok(manager.store().wait_change(work.revision, pause)?));
        tokio::select! {
            changed = changed => drop(changed?),
            () = stop.cancelled() => {}
        }
    }
    Ok(())
}

fn look(manager: &Manager) -> Result<Prospect, Error> {
    manager.read(|view| {
        let ready = Query { ready: Some(vec![Work::Calls]), limit: 1, ..Query::default() };
        Ok(Prospect {
            revision: view.revision()?,
            is_ready: !view.find(&ready)?.is_empty(),
            next_wake: view.next_wake()?,
        })
    })
}
