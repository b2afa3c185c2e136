//! Work that may block for ever, such as a look at a file on a network that is gone.

use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The reason why blocking work was not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// It was cancelled, or the runtime shuts down.
    Cancelled,
    /// Its deadline passed.
    TimedOut,
}

/// Runs `work` on a thread that may block, and waits for it until `cancel` fires or `deadline` passes; `None` is no deadline.
///
/// # Errors
/// The wait ended first. The work is not stopped: its result is dropped.
///
/// # Panics
/// The work panicked.
///
/// # Cancel safety
/// Dropping the future only stops waiting.
pub async fn blocking_within<T, F>(
    cancel: &CancellationToken,
    deadline: Option<Instant>,
    work: F,
) -> Result<T, Unfinished>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    tokio::select! {
        biased;
        done = spawn_blocking(work) => match done {
            Ok(done) => Ok(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Unfinished::Cancelled),
            },
        },
        () = cancel.cancelled() => Err(Unfinished::Cancelled),
        () = passed(deadline) => Err(Unfinished::TimedOut),
    }
}

/// Ends at the deadline; never without one.
pub async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
