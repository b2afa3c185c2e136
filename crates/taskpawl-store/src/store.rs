//! The contract of a store.

use std::fmt::Debug;
use std::sync::mpsc;
use std::time::Duration;

use taskpawl_model::command::{Answer, Refusal, Request};
use taskpawl_model::rules::decide;
use taskpawl_model::rules::{DecideError, Decision};
use taskpawl_model::task::Event;
use taskpawl_model::view::{View, ViewResult};

use crate::StoreError;

/// The result of one request: a durable answer, or a refusal by the rules, which wrote nothing.
pub type Outcome = Result<Answer, Box<Refusal>>;

/// Receives the outcomes of the requests of one [`Store::submit`], in the order of the requests.
///
/// Called once, on the committing thread, in the order of the commits. On a store in memory, that can be the
/// submitting thread, before [`Store::submit`] returns. The callback must be short. It must not call
/// [`Store::write`], which would deadlock on the committer.
pub type Reply = Box<dyn FnOnce(Result<Vec<Outcome>, StoreError>) + Send>;

/// Receives a view right after the requests of one [`Store::write_then_view`], together with their outcomes.
///
/// Called once, on the committing thread. It must be short, because other writers wait, and it must not use
/// the store. The data in the view is not durable yet. A panic closes the store, like a panic of the rules.
pub type ViewCallback = Box<dyn FnOnce(&dyn View, &[Outcome]) + Send>;

/// Durable, ordered storage of tasks and events for concurrent threads and processes.
///
/// # Durability
/// An outcome is reported after its commit is durable: it survives a crash of the process and, for stores in
/// files, of the machine. An error means that nothing of the batch is visible. After a failure of unknown
/// extent, every use returns [`StoreError::Poisoned`] until the store is opened again.
///
/// # Concurrency
/// Every request is decided on the data of its own transaction, under one lock for all processes. No update
/// is lost or applied twice, and callers never have to retry because of a conflict.
pub trait Store: Send + Sync + Debug {
    /// Passes one consistent snapshot of the store to `look`. A store that does not exist yet is empty.
    ///
    /// Never writes to the store. On a database it does not wait for writers either. `look` must not write to
    /// the store.
    fn read(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError>;

    /// Like [`read`](Self::read), for a short read right after a write. Unless a commit is running, it may
    /// use the writing connection, whose caches are already up to date. Writers wait until it is done.
    fn read_briefly(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        self.read(look)
    }

    /// Queues requests and returns without waiting for a disk or another process. `reply` receives the
    /// outcomes later. Requests that queue up during a commit share the next one.
    fn submit(&self, requests: Vec<Request>, reply: Reply);

    /// Like [`submit`](Self::submit), for a caller that has nothing else to do. If the lock is free, the
    /// requests are committed on this thread, and `reply` is called before this returns. That may wait for
    /// the disk, but not for another process.
    fn submit_here(&self, requests: Vec<Request>, reply: Reply) {
        self.submit(requests, reply);
    }

    /// Writes and waits until the commit is durable. Requests of other waiting threads share the commit.
    fn write(&self, requests: Vec<Request>) -> Result<Vec<Outcome>, StoreError>;

    /// Like [`write`](Self::write), and passes a view of the result to `look`. A store of this process calls
    /// it before any other change. A remote store, or a call without requests, reads a moment later and may
    /// see later changes too.
    fn write_then_view(
        &self,
        requests: Vec<Request>,
        look: ViewCallback,
    ) -> Result<Vec<Outcome>, StoreError> {
        self.write_then_look(requests, look)
    }

    /// Implements [`write_then_view`](Self::write_then_view) as a write followed by a separate read.
    fn write_then_look(
        &self,
        requests: Vec<Request>,
        look: ViewCallback,
    ) -> Result<Vec<Outcome>, StoreError> {
        let outcomes = self.write(requests)?;
        let mut look = Some(look);
        self.read(&mut |view| {
            let look = look.take().expect("BUG: a store looks once");
            look(view, &outcomes);
            Ok(())
        })?;
        Ok(outcomes)
    }

    /// Waits for a revision after `since`, at most for `timeout`, and returns the current revision.
    ///
    /// Commits of this process wake the caller at once. Commits of other processes are noticed within 20 to
    /// 200 ms.
    fn wait_change(&self, since: u64, timeout: Duration) -> Result<u64, StoreError>;

    /// Returns warnings about the store for the user, for example that it is on a network file system.
    fn warnings(&self) -> Result<Vec<String>, StoreError>;
}

impl dyn Store + '_ {
    /// Passes one consistent snapshot to `look` and returns its result.
    ///
    /// # Panics
    /// The implementation of [`read`](Store::read) does not call its callback exactly once.
    pub fn view<T>(&self, look: impl FnOnce(&dyn View) -> ViewResult<T>) -> Result<T, StoreError> {
        seen(look, |look| self.read(look))
    }

    /// Like `view`, but through [`read_briefly`](Store::read_briefly).
    ///
    /// # Panics
    /// The implementation of [`read_briefly`](Store::read_briefly) does not call its callback exactly once.
    pub fn view_briefly<T>(&self, look: impl FnOnce(&dyn View) -> ViewResult<T>) -> Result<T, StoreError> {
        seen(look, |look| self.read_briefly(look))
    }

    /// Like [`write`](Store::write), and also returns the result of `look` on the new data, see
    /// [`write_then_view`](Store::write_then_view).
    ///
    /// # Errors
    /// The errors of `write`, or the error of `look`. In the second case the outcomes are durable all the
    /// same.
    ///
    /// # Panics
    /// The implementation of `write_then_view` does not call its callback exactly once.
    pub fn write_and_view<T: Send + 'static>(
        &self,
        requests: Vec<Request>,
        look: impl FnOnce(&dyn View, &[Outcome]) -> ViewResult<T> + Send + 'static,
    ) -> Result<(Vec<Outcome>, T), StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let look: ViewCallback = Box::new(move |view, outcomes| {
            // Cannot fail: the receiver is alive until the end of this function.
            let _ = sender.send(look(view, outcomes));
        });
        let outcomes = self.write_then_view(requests, look)?;
        let seen = receiver.recv().expect("BUG: a store looks once");
        Ok((outcomes, seen.map_err(StoreError::from_view)?))
    }

    /// Returns the events after `revision` in ascending order, at most `limit` of them (0: all).
    pub fn events_since(&self, revision: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.view(|view| view.events(revision, None, limit))
    }

    /// Decides `request` on the current data and returns the decision. Writes nothing.
    pub fn preview(&self, request: &Request) -> Result<Result<Decision, Box<Refusal>>, StoreError> {
        self.view(|view| match decide(view, &request.command, &request.context) {
            Ok(decision) => Ok(Ok(decision)),
            Err(DecideError::Refused(refusal)) => Ok(Err(refusal)),
            Err(DecideError::View(error)) => Err(error),
            Err(other) => Err(taskpawl_model::view::ViewError(Box::new(other))),
        })
    }
}

fn seen<T>(
    look: impl FnOnce(&dyn View) -> ViewResult<T>,
    read: impl FnOnce(&mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError>,
) -> Result<T, StoreError> {
    let mut look = Some(look);
    let mut seen = None;
    read(&mut |view| {
        let look = look.take().expect("BUG: a store looks once");
        seen = Some(look(view)?);
        Ok(())
    })?;
    Ok(seen.expect("BUG: a read without an error has looked"))
}
