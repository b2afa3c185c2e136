//! The change feed of a store as a stream.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use futures_core::Stream;
use taskpawl_manager::Error;
use taskpawl_model::task::Event;
use tokio::sync::mpsc;

use crate::blocking::Blocking;
use crate::facade::Taskpawl;

/// Longest time after which the thread of a dropped stream ends, unless the store changes before.
const MAX_WAIT: Duration = Duration::from_millis(200);

/// Events that are read ahead of the reader.
const AHEAD: usize = 256;

/// The events of a store as they are recorded, also by other processes. See [`Taskpawl::changes`].
///
/// Dropping the stream ends it. It ends by itself after an error.
#[derive(Debug)]
pub struct Changes {
    events: mpsc::Receiver<Result<Event, Error>>,
}

impl Taskpawl {
    /// Returns the events after `revision` as a stream: first the recorded ones, then those to come, of all processes that use the
    /// store. 0 begins with the first event, [`revision`](Self::revision) with the next.
    ///
    /// A slow reader does not delay writers: the stream reads from the store, which keeps the events.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let plans = taskpawl::Taskpawl::open(":memory:")?;
    /// let mut changes = plans.changes(0);
    /// plans.apply_text("tasks: [{id: look}]", "example").await?;
    /// let event = changes.next().await.expect("the stream goes on")?;
    /// assert_eq!(event.revision, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn changes(&self, revision: u64) -> Changes {
        let (sender, events) = mpsc::channel(AHEAD);
        let plans = self.blocking().clone();
        // A thread of its own: one of tokio's blocking threads would delay the end of the runtime.
        let started = thread::Builder::new().name("taskpawl-changes".to_owned());
        let failed = sender.clone();
        if let Err(source) = started.spawn(move || send_changes(&plans, revision, &sender)) {
            // Cannot fail: the channel is empty, and its receiver is alive.
            let _ = failed.try_send(Err(thread_error(source)));
        }
        Changes { events }
    }
}

fn send_changes(plans: &Blocking, mut revision: u64, sender: &mpsc::Sender<Result<Event, Error>>) {
    while !sender.is_closed() {
        let events = match plans.wait_events(revision, MAX_WAIT) {
            Ok(events) => events,
            Err(error) => {
                // A dropped stream has no use for the error.
                let _ = sender.blocking_send(Err(error));
                return;
            }
        };
        for event in events {
            revision = event.revision;
            if sender.blocking_send(Ok(event)).is_err() {
                return;
            }
        }
    }
}

fn thread_error(source: std::io::Error) -> Error {
    taskpawl_store::StoreError::Io {
        action: "start a thread that reads",
        path: "the change feed".into(),
        source: std::sync::Arc::new(source),
    }
    .into()
}

impl Changes {
    /// Returns the next event as soon as there is one; `None` after an error.
    ///
    /// # Cancel safety
    /// No event is lost.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        self.events.recv().await
    }
}

impl Stream for Changes {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_recv(cx)
    }
}
