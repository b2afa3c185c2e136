//! Calls of runs that were killed: workers still execute them, and this run waits for their ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use taskpawl_model::command::StartedCall;
use taskpawl_model::run::recovery::CallElsewhere;
use taskpawl_model::value::{CallId, RunId, TaskId};
use tokio::task::JoinSet;

use crate::call_executor::SentCall;
use crate::placements::KnownPlacements;
use crate::sending::{Returned, Sender, started_again};

/// The end of a call, with the dead run that had sent it.
pub(crate) type Joined = (RunId, Returned);

/// The calls that this run waits for, although others have started them.
#[derive(Debug, Default)]
pub(crate) struct Adoption {
    calls: JoinSet<Joined>,
    /// Calls whose ends are awaited or reported, so that none is joined twice.
    known: BTreeSet<(TaskId, CallId, u32)>,
    /// The number of awaited calls of each run.
    runs: BTreeMap<RunId, usize>,
}

impl Adoption {
    /// Joins the calls that are not joined yet, and returns how many of each run.
    pub(crate) fn begin(
        &mut self,
        files: &Path,
        sender: &Arc<Sender>,
        found: Vec<CallElsewhere>,
        leaving: impl Fn(&StartedCall) -> SentCall,
    ) -> BTreeMap<RunId, usize> {
        let (mut placements, mut new) = (KnownPlacements::default(), BTreeMap::new());
        for elsewhere in found {
            let CallElsewhere { run, task, call, .. } = &elsewhere;
            let identity = (task.id.clone(), call.id.clone(), call.body.attempts);
            let placement = placements.of(files, run, &task.id, call).cloned();
            let Some(placement) = placement.filter(|_| self.known.insert(identity)) else { continue };
            let started = started_again(&elsewhere);
            let mut sent = leaving(&started);
            // The key under which the call was sent, whatever the store would make of it now.
            sent.ticket = placement.ticket.clone();
            // The worker compares it with the call that it runs, and the trace goes on under the run that sent it.
            sent.run = run.clone();
            let call = sender.join(placement, started, sent);
            let run = run.clone();
            *self.runs.entry(run.clone()).or_default() += 1;
            *new.entry(run.clone()).or_default() += 1;
            self.calls.spawn(async move { (run, call.await) });
        }
        new
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns whether calls of a run are awaited.
    pub(crate) fn holds(&self, run: &RunId) -> bool {
        self.runs.contains_key(run)
    }

    /// Waits for the end of a call.
    ///
    /// # Cancel safety
    /// No end is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<Joined> {
        let joined = match self.calls.join_next().await? {
            Ok(joined) => joined,
            // Tasks of the set are never aborted while the run goes on, so that an error can only be a panic.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        if let Some(count) = self.runs.get_mut(&joined.0) {
            *count -= 1;
            if *count == 0 {
                self.runs.remove(&joined.0);
            }
        }
        Some(joined)
    }
}
