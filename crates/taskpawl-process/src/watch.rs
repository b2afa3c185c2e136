use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bounded::passed;
use crate::capture::Capture;
use crate::group::Group;
use crate::program::End;

/// Delay before the pipes are registered with the runtime. Most programs end earlier and print little, so
/// that a single read at their end is cheaper.
const FIRST_LOOK: Duration = Duration::from_millis(5);

/// The reason for the end of a wait, or an error of storing output.
pub(crate) type Watched = Result<End, std::io::Error>;

/// Waits until the program ends or exceeds a limit, and returns the reason. Meanwhile moves its output to the
/// files.
pub(crate) async fn watch(
    group: &mut Group,
    capture: &mut Capture,
    output_bytes: u64,
    deadline: Option<Instant>,
    cancel: Option<&CancellationToken>,
) -> Watched {
    let first_look = tokio::time::sleep(FIRST_LOOK);
    tokio::pin!(first_look);
    loop {
        tokio::select! {
            biased;
            () = group.ended() => return Ok(End::Exited),
            () = cancelled(cancel) => return Ok(End::Cancelled),
            () = passed(deadline) => return Ok(End::TimedOut),
            () = capture.readable() => {}
            () = &mut first_look, if !first_look.is_elapsed() => capture.watch()?,
        }
        capture.take()?;
        if capture.size() > output_bytes {
            return Ok(End::OutputLimit);
        }
    }
}

async fn cancelled(cancel: Option<&CancellationToken>) {
    match cancel {
        Some(cancel) => cancel.cancelled().await,
        None => std::future::pending().await,
    }
}
