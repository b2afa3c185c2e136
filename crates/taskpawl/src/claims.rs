//! Claims as guards: renewed while the work goes on, and given back when it is given up.

use std::ops::Deref;
use std::time::Duration;

use serde::Serialize;
use taskpawl_manager::{Ending, Error, Manager};
use taskpawl_model::command::Refusal;
use taskpawl_model::task::Task;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::facade::Taskpawl;

/// Longest time between two attempts to claim a task. Leases of others expire without a change of the store.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// A claimed manual task. See [`Taskpawl::claim_next`].
///
/// The claim renews itself until the guard reports or is dropped. A dropped guard gives the task back, so that another worker can take
/// it. When the program is killed, the lease runs out.
#[derive(Debug)]
#[must_use = "a dropped claim is given back"]
pub struct Claimed {
    plans: Taskpawl,
    task: Task,
    lost: CancellationToken,
    /// Renews the claim; ended with the guard.
    renewal: JoinSet<()>,
    is_over: bool,
}

impl Taskpawl {
    /// Waits for a ready manual task that is assigned to this actor or to no one, and claims it for `lease`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let plans = taskpawl::Taskpawl::open(":memory:")?;
    /// plans.apply_text("tasks: [{id: look}]", "example").await?;
    /// let claim = plans.claim_next(Duration::from_secs(60)).await?;
    /// assert_eq!(claim.id.as_str(), "look");
    /// claim.done("all is well").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// A claim whose future is dropped while it is made runs out with its lease.
    pub async fn claim_next(&self, lease: Duration) -> Result<Claimed, Error> {
        loop {
            let revision = self.revision().await?;
            if let Some(claim) = self.try_claim_next(lease).await? {
                return Ok(claim);
            }
            self.offload(move |plans| plans.wait_events(revision, MAX_WAIT)).await?;
        }
    }

    /// Claims a ready manual task like [`claim_next`](Self::claim_next); returns `None` if there is none now.
    pub async fn try_claim_next(&self, lease: Duration) -> Result<Option<Claimed>, Error> {
        match self.guarded(lease, move |manager| manager.claim_next(lease).map(|id| id.to_string())).await {
            Err(Error::Refused(refusal)) if matches!(*refusal, Refusal::NothingReady) => Ok(None),
            claimed => claimed.map(Some),
        }
    }

    /// Claims the manual task with this id or unique prefix for `lease`.
    ///
    /// # Errors
    /// The task is not ready, or another actor holds it.
    pub async fn claim(&self, id: &str, lease: Duration) -> Result<Claimed, Error> {
        let id = id.to_owned();
        self.guarded(lease, move |manager| manager.claim(&id, lease).map(|id| id.to_string())).await
    }

    async fn guarded(
        &self,
        lease: Duration,
        claim: impl FnOnce(&Manager) -> Result<String, Error> + Send + 'static,
    ) -> Result<Claimed, Error> {
        let task = self.manage(move |manager| manager.get(&claim(manager)?)).await?;
        let lost = CancellationToken::new();
        let mut renewal = JoinSet::new();
        renewal.spawn(renew(self.clone(), task.id.to_string(), lease, lost.clone()));
        Ok(Claimed { plans: self.clone(), task, lost, renewal, is_over: false })
    }
}

/// Renews a claim before its lease runs out, until another actor has taken the task or ended it.
async fn renew(plans: Taskpawl, id: String, lease: Duration, lost: CancellationToken) {
    loop {
        tokio::time::sleep(lease / 3).await;
        let id = id.clone();
        // A store that fails once may answer the next time, before the lease is over.
        if let Err(Error::Refused(_)) = plans.manage(move |manager| manager.renew(&id, lease)).await {
            lost.cancel();
            return;
        }
    }
}

impl Claimed {
    /// Waits until the claim is lost: another actor has ended or taken the task. A report is then refused.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Reports the task as done with a result.
    ///
    /// # Errors
    /// The claim was lost, the result cannot be written as JSON, or the store failed.
    pub async fn done(self, result: impl Serialize) -> Result<Task, ReportError> {
        let result = serde_json::to_value(result)?;
        let ending = Ending { result: Some(result), note: None, attempt: Some(self.task.attempt) };
        Ok(self.end(move |manager, id| manager.done(&[id], ending).map(drop)).await?)
    }

    /// Reports the task as failed.
    ///
    /// # Errors
    /// The claim was lost, or the store failed.
    pub async fn fail(self, reason: impl Into<String>) -> Result<Task, ReportError> {
        let ending = Ending { result: None, note: Some(reason.into()), attempt: Some(self.task.attempt) };
        Ok(self.end(move |manager, id| manager.fail(&[id], ending).map(drop)).await?)
    }

    /// Gives the task back, and waits until it is free. Dropping the guard does the same without waiting.
    pub async fn release(self) -> Result<Task, Error> {
        self.end(|manager, id| manager.release(&[id]).map(drop)).await
    }

    async fn end(
        mut self,
        command: impl FnOnce(&Manager, String) -> Result<(), Error> + Send + 'static,
    ) -> Result<Task, Error> {
        self.renewal.abort_all();
        let id = self.task.id.to_string();
        let task = self.plans.manage(move |manager| {
            command(manager, id.clone())?;
            manager.get(&id)
        });
        let task = task.await?;
        // A refused report leaves the claim to the drop of the guard.
        self.is_over = true;
        Ok(task)
    }
}

impl Deref for Claimed {
    type Target = Task;

    fn deref(&self) -> &Task {
        &self.task
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if self.is_over || self.lost.is_cancelled() {
            return;
        }
        let (plans, ids) = (self.plans.clone(), [self.task.id.to_string()]);
        // If it fails, the lease runs out.
        let release = move || drop(plans.manager().release(&ids));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(release)),
            Err(_) => release(),
        }
    }
}

/// The failure of a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The result cannot be written as JSON.
    #[error("failed to write the result as JSON")]
    Json(#[from] serde_json::Error),
    /// The store refused the report, or failed.
    #[error(transparent)]
    Store(#[from] Error),
}
