//! The contract of a store, as its callers see it.

use std::fmt::Debug;
use std::sync::mpsc;
use std::time::Duration;

use taskpawl_model::{Answer, DecideError, Decision, Event, Refusal, Request, View, ViewResult, decide};

use crate::StoreError;

/// What became of one request: an answer once it is durable, or the refusal of the rules, which wrote nothing.
pub type Outcome = Result<Answer, Box<Refusal>>;

/// Takes the outcomes of the requests of one [`Store::submit`], in their order.
///
/// It is called once, on the thread that commits, in the order of the commits: in a store in memory that may be the thread that
/// submits, before [`Store::submit`] returns. It must be short, and must not call [`Store::write`], which would wait for itself.
pub type Reply = Box<dyn FnOnce(Result<Vec<Outcome>, StoreError>) + Send>;

/// Sees the moment that the requests of one [`Store::write_and_look`] leave, with their outcomes; called once, by whoever commits.
///
/// It must be short, for others wait, and must not use the store. What it sees is not durable yet. If it panics, the store is closed, as
/// after a panic of the rules.
pub type Look = Box<dyn FnOnce(&dyn View, &[Outcome]) + Send>;

/// Keeps tasks and events durably and in order, for several threads and processes at once.
///
/// # Durability
/// An outcome is given after its commit is durable: it survives the end of the process and, for stores in files, of the
/// machine. An error means that nothing of the batch is visible. After a failure whose extent nobody knows, every use
/// gives [`StoreError::Poisoned`] until the store is opened again.
///
/// # Concurrency
/// Every request is decided on what its own transaction sees, behind one lock for all processes: nothing is lost or done
/// twice, and nobody has to try again.
pub trait Store: Send + Sync + Debug {
    /// Shows one consistent moment of the store to `look`. A store that does not exist yet is shown empty.
    ///
    /// It never writes, and does not wait for writers where the store is a database. `look` must not write to the store.
    fn read(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError>;

    /// As [`read`](Self::read), for a short look at what may just have been written: where nobody writes now, it may go through the
    /// connection that writes, which knows that already. Writers wait for it.
    fn read_briefly(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        self.read(look)
    }

    /// Queues requests and returns without waiting for anything outside the process; `reply` gets what became of them. Everything queued meanwhile shares a commit.
    fn submit(&self, requests: Vec<Request>, reply: Reply);

    /// As [`submit`](Self::submit), for a caller that has nothing else to do: where the lock is free, it commits itself, which may
    /// wait for the disk but for nobody else, and `reply` has got what became of them when this returns.
    fn submit_here(&self, requests: Vec<Request>, reply: Reply) {
        self.submit(requests, reply);
    }

    /// Writes, and waits until that is durable. Requests of other threads that wait share the commit.
    fn write(&self, requests: Vec<Request>) -> Result<Vec<Outcome>, StoreError>;

    /// As [`write`](Self::write), and shows to `look` what the requests left: by a store of this process before anybody else changes it, by
    /// others, and where there is no request, a moment later.
    fn write_and_look(&self, requests: Vec<Request>, look: Look) -> Result<Vec<Outcome>, StoreError> {
        self.write_then_look(requests, look)
    }

    /// As [`write_and_look`](Self::write_and_look), in two steps.
    fn write_then_look(&self, requests: Vec<Request>, look: Look) -> Result<Vec<Outcome>, StoreError> {
        let outcomes = self.write(requests)?;
        let mut look = Some(look);
        self.read(&mut |view| {
            let look = look.take().expect("BUG: a store looks once");
            look(view, &outcomes);
            Ok(())
        })?;
        Ok(outcomes)
    }

    /// Waits until the store has a revision after `since`, or until `timeout` is over, and returns the revision then.
    ///
    /// Commits of this process wake it at once; those of others are noticed within 20 to 200 ms.
    fn wait_change(&self, since: u64, timeout: Duration) -> Result<u64, StoreError>;

    /// Returns what should be said to people about the store, beside any answer.
    fn warnings(&self) -> Result<Vec<String>, StoreError>;
}

impl dyn Store + '_ {
    /// Shows one consistent moment of the store to `look` and returns what it makes of it.
    ///
    /// # Panics
    /// An implementation of [`read`](Store::read) does not look exactly once.
    pub fn view<T>(&self, look: impl FnOnce(&dyn View) -> ViewResult<T>) -> Result<T, StoreError> {
        seen(look, |look| self.read(look))
    }

    /// As `view`, by [`read_briefly`](Store::read_briefly).
    ///
    /// # Panics
    /// An implementation of [`read_briefly`](Store::read_briefly) does not look exactly once.
    pub fn view_briefly<T>(&self, look: impl FnOnce(&dyn View) -> ViewResult<T>) -> Result<T, StoreError> {
        seen(look, |look| self.read_briefly(look))
    }

    /// As [`write`](Store::write), and returns also what `look` makes of what they left, as of
    /// [`write_and_look`](Store::write_and_look).
    ///
    /// # Errors
    /// As of `write`. Where only `look` fails, the outcomes are durable all the same.
    ///
    /// # Panics
    /// An implementation of `write_and_look` does not look exactly once.
    pub fn write_and_view<T: Send + 'static>(
        &self,
        requests: Vec<Request>,
        look: impl FnOnce(&dyn View, &[Outcome]) -> ViewResult<T> + Send + 'static,
    ) -> Result<(Vec<Outcome>, T), StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let look: Look = Box::new(move |view, outcomes| {
            // The receiver waits below; it cannot be gone.
            let _ = sender.send(look(view, outcomes));
        });
        let outcomes = self.write_and_look(requests, look)?;
        let seen = receiver.recv().expect("BUG: a store looks once");
        Ok((outcomes, seen.map_err(StoreError::from_view)?))
    }

    /// Returns the events after `revision` in order, at most `limit` (0: all).
    pub fn events_since(&self, revision: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.view(|view| view.events(revision, None, limit))
    }

    /// Returns what `request` would come to now. Nothing is written, not a byte.
    pub fn preview(&self, request: &Request) -> Result<Result<Decision, Box<Refusal>>, StoreError> {
        self.view(|view| match decide(view, &request.command, &request.context) {
            Ok(decision) => Ok(Ok(decision)),
            Err(DecideError::Refused(refusal)) => Ok(Err(refusal)),
            Err(DecideError::View(error)) => Err(error),
            Err(other) => Err(taskpawl_model::ViewError(Box::new(other))),
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
