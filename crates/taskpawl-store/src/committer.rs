//! The committer: decides requests one after the other inside one transaction, and makes that durable.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use taskpawl_model::{Changes, DecideError, Request, View, ViewResult, decide};

use crate::store::Outcome;
use crate::{Location, StoreError};

/// The writing side of a backend: at most one transaction at a time, behind the lock that all processes share.
pub(crate) trait Backend: Send + Debug {
    /// Waits for the lock and begins a transaction.
    fn begin(&mut self) -> Result<(), StoreError>;

    /// Returns what the transaction sees, its own writes included.
    fn view(&self) -> &dyn View;

    /// Writes `changes` whole, and returns the revision of the last event.
    fn apply(&mut self, changes: &Changes) -> Result<u64, StoreError>;

    /// Makes the transaction durable and gives the lock back, also on an error.
    fn commit(&mut self) -> Result<(), StoreError>;

    /// Forgets the transaction and gives the lock back.
    fn rollback(&mut self) -> Result<(), StoreError>;
}

/// Commits requests, synchronously, on the thread that calls it.
#[derive(Debug)]
pub struct Committer {
    backend: Box<dyn Backend>,
    path: PathBuf,
    is_poisoned: bool,
}

impl Committer {
    /// Returns a committer without a handle around it: for simulations and one-shot writes. Nothing is touched yet.
    pub fn open(location: &Location) -> Self {
        let (backend, _) = location.sides();
        Self::new(backend, location.file())
    }

    pub(crate) fn new(backend: Box<dyn Backend>, path: &Path) -> Self {
        Self { backend, path: path.to_owned(), is_poisoned: false }
    }

    /// Decides `requests` in order, each on what those before it left, writes what was accepted, and returns the outcomes
    /// once all of it is durable. Refusals write nothing and do not disturb the others.
    ///
    /// # Errors
    /// Nothing of the batch is visible then. If a commit fails in a way that leaves open what is durable, or the rules
    /// panic, every later call gives [`StoreError::Poisoned`].
    pub fn commit<'a>(
        &mut self,
        requests: impl IntoIterator<Item = &'a Request>,
    ) -> Result<Vec<Outcome>, StoreError> {
        if self.is_poisoned {
            return Err(self.poisoned());
        }
        let mut requests = requests.into_iter();
        catch_unwind(AssertUnwindSafe(|| self.transact(&mut requests))).unwrap_or_else(|_| {
            self.is_poisoned = true;
            // The answer is `Poisoned` whether this succeeds or not.
            let _ = self.backend.rollback();
            Err(self.poisoned())
        })
    }

    /// Returns whether every later use fails.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    fn poisoned(&self) -> StoreError {
        StoreError::Poisoned { path: self.path.clone() }
    }

    fn transact(&mut self, requests: &mut dyn Iterator<Item = &Request>) -> Result<Vec<Outcome>, StoreError> {
        self.backend.begin()?;
        let decided = self.decide_all(requests);
        match decided {
            Ok((outcomes, true)) => self.make_durable().map(|()| outcomes),
            Ok((outcomes, false)) => self.undo().map(|()| outcomes),
            Err(error) => {
                self.undo()?;
                Err(error)
            }
        }
    }

    /// Returns the outcomes, and whether there is anything to commit.
    fn decide_all(
        &mut self,
        requests: &mut dyn Iterator<Item = &Request>,
    ) -> Result<(Vec<Outcome>, bool), StoreError> {
        let mut outcomes = Vec::new();
        let mut has_changes = false;
        let mut revision = self.backend.view().revision().map_err(StoreError::from_view)?;
        for request in requests {
            let outcome = match decide(self.backend.view(), &request.command, &request.context) {
                Ok(decision) => {
                    if !decision.changes.is_empty() {
                        revision = self.backend.apply(&decision.changes)?;
                        has_changes = true;
                    }
                    let mut answer = decision.answer;
                    answer.revision = revision;
                    Ok(answer)
                }
                Err(DecideError::Refused(refusal)) => Err(refusal),
                Err(DecideError::View(error)) => return Err(StoreError::from_view(error)),
                Err(other) => return Err(StoreError::View { source: std::sync::Arc::new(other) }),
            };
            outcomes.push(outcome);
        }
        Ok((outcomes, has_changes))
    }

    /// Shows what a transaction sees now to `look`, behind the lock.
    pub fn look<T>(&mut self, look: impl FnOnce(&dyn View) -> ViewResult<T>) -> Result<T, StoreError> {
        self.backend.begin()?;
        let seen = look(self.backend.view()).map_err(StoreError::from_view);
        self.undo()?;
        seen
    }

    fn make_durable(&mut self) -> Result<(), StoreError> {
        let result = self.backend.commit();
        if let Err(error) = &result {
            self.is_poisoned = !error.is_undone();
        }
        result
    }

    fn undo(&mut self) -> Result<(), StoreError> {
        let result = self.backend.rollback();
        self.is_poisoned = result.is_err();
        result
    }
}
