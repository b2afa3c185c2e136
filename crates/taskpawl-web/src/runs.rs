//! The runs that the page has started.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::StatusCode;
use taskpawl::model::value::RunId;
use taskpawl::{Observer, RunControl, RunEvent, RunOptions, Taskpawl};
use taskpawl_text::error_chain;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use crate::answer::Problem;

/// The runs of this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs {
    live: Arc<Mutex<BTreeMap<RunId, RunControl>>>,
    tracker: TaskTracker,
}

impl Runs {
    /// Starts a run, and returns when it is recorded. The run continues if the client goes away.
    ///
    /// # Errors
    /// The run could not start.
    pub(crate) async fn start(
        &self,
        plans: Taskpawl,
        id: RunId,
        mut options: RunOptions,
    ) -> Result<(), Problem> {
        let (started, has_started) = oneshot::channel();
        options.id = Some(id.clone());
        options.control = RunControl::default();
        options.observer = Some(Arc::new(Start(Mutex::new(Some(started)))));
        locked(&self.live).insert(id.clone(), options.control.clone());
        let live = Arc::clone(&self.live);
        let run = self.tracker.spawn(async move {
            let ended = plans.run_all_ready(options).await;
            locked(&live).remove(&id);
            ended
        });
        tokio::select! {
            // A run that has started and ended at once is reported as started: its end is recorded.
            biased;
            Ok(()) = has_started => Ok(()),
            ended = run => match ended {
                Ok(Err(error)) => Err(Problem::new(StatusCode::CONFLICT, error_chain(&error))),
                Ok(Ok(_)) | Err(_) => Ok(()),
            },
        }
    }

    /// Asks every run to stop. The first request lets running calls end; the second kills them.
    pub(crate) fn stop_all(&self) {
        for control in locked(&self.live).values() {
            control.stop();
        }
    }

    /// Waits until all runs have ended. None starts afterwards.
    pub(crate) async fn wait(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// Reports that a run is recorded.
struct Start(Mutex<Option<oneshot::Sender<()>>>);

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Start")
    }
}

impl Observer for Start {
    fn event(&self, event: &RunEvent) {
        if matches!(event, RunEvent::RunStarted { .. })
            && let Some(started) = locked(&self.0).take()
        {
            // The client may be gone.
            let _ = started.send(());
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
