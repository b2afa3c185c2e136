//! The committer: decides a batch of requests in order inside one transaction and makes it durable.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskpawl_model::command::{Refusal, Request};
use taskpawl_model::rules::{DecideError, decide};
use taskpawl_model::view::{View, ViewResult};

use crate::StoreError;
use crate::backend::Backend;
use crate::faults::{self, Fault};
use crate::store::Outcome;

/// Called after each decided request with the view of the transaction and the outcomes so far.
pub(crate) type DecidedObserver<'a> = dyn FnMut(&dyn View, &[Outcome]) + 'a;

/// Commits requests synchronously, on the calling thread.
#[derive(Debug)]
pub struct Committer {
    backend: Box<dyn Backend>,
    path: PathBuf,
    is_poisoned: bool,
}

impl Committer {
    pub(crate) fn new(backend: Box<dyn Backend>, path: &Path) -> Self {
        Self { backend, path: path.to_owned(), is_poisoned: false }
    }

    /// Decides `requests` in order, each on the result of the previous ones, and writes the accepted changes.
    /// Returns the outcomes after all of them are durable. A refused request writes nothing and does not
    /// affect the others.
    ///
    /// # Errors
    /// Nothing of the batch is visible after an error. If a commit fails so that its durability is unknown,
    /// or if the rules panic, every later call returns [`StoreError::Poisoned`].
    pub fn commit<'a>(
        &mut self,
        requests: impl IntoIterator<Item = &'a Request>,
    ) -> Result<Vec<Outcome>, StoreError> {
        self.commit_and_show(&mut requests.into_iter(), &mut |_, _| ())
    }

    /// Like [`commit`](Self::commit), but calls `show` after each request, before the batch is durable.
    pub(crate) fn commit_and_show(
        &mut self,
        requests: &mut dyn Iterator<Item = &Request>,
        show: &mut DecidedObserver<'_>,
    ) -> Result<Vec<Outcome>, StoreError> {
        if faults::is_on(Fault::DecideBeforeLock) {
            let mut outcomes = Vec::new();
            for request in requests {
                outcomes.push(self.decide_before_lock(request)?);
                self.look(|view| {
                    show(view, &outcomes);
                    Ok(())
                })?;
            }
            return Ok(outcomes);
        }
        let (outcomes, has_changes) = self.prepare(requests, show)?;
        self.finish(has_changes).map(|()| outcomes)
    }

    /// Begins a transaction and writes the changes of `requests` into it. Returns the outcomes, and whether
    /// there is anything to commit. After an error no transaction is open.
    pub(crate) fn prepare(
        &mut self,
        requests: &mut dyn Iterator<Item = &Request>,
        show: &mut DecidedObserver<'_>,
    ) -> Result<(Vec<Outcome>, bool), StoreError> {
        self.guard(|this| this.begin_and_decide(requests, show))
    }

    /// Ends the transaction: commits it if it has changes, otherwise rolls it back.
    pub(crate) fn finish(&mut self, has_changes: bool) -> Result<(), StoreError> {
        self.guard(|this| if has_changes { this.make_durable() } else { this.undo() })
    }

    /// Runs `run` and poisons the committer if it panics, because the panic may have left a half-written
    /// transaction.
    fn guard<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if self.is_poisoned {
            return Err(self.poisoned());
        }
        catch_unwind(AssertUnwindSafe(|| run(self))).unwrap_or_else(|_| {
            self.is_poisoned = true;
            // The result is `Poisoned` in any case, so the error of the rollback adds nothing.
            let _ = self.backend.rollback();
            Err(self.poisoned())
        })
    }

    /// Implements the fault `DecideBeforeLock`: other processes can write between the decision and its
    /// commit.
    fn decide_before_lock(&mut self, request: &Request) -> Result<Outcome, StoreError> {
        let decided = self.look(|view| Ok(decide(view, &request.command, &request.context)))?;
        let mut decision = match decided {
            Ok(decision) => decision,
            Err(error) => return refusal_of(error).map(Err),
        };
        // Widens the race, so that tests hit it even on an idle machine.
        std::thread::sleep(std::time::Duration::from_millis(1));
        self.backend.begin()?;
        match self.backend.apply(std::mem::take(&mut decision.changes)) {
            Ok(revision) => decision.answer.revision = revision,
            Err(error) => {
                self.undo()?;
                return Err(error);
            }
        }
        self.make_durable().map(|()| Ok(decision.answer))
    }

    /// Tries to take the lock for the next commit without waiting. If it returns true, a commit has to
    /// follow, which releases it.
    pub(crate) fn lock_now(&mut self) -> bool {
        // An error here is ignored: the commit that follows will meet it again and report it.
        !self.is_poisoned && self.backend.lock_now().unwrap_or(false)
    }

    /// Reads the committed data on the writing connection, if there is one; returns whether it did. A panic
    /// of `look` is passed on to the caller after a rollback, so that no read transaction stays open.
    pub(crate) fn read(
        &mut self,
        look: &mut dyn FnMut(&dyn View) -> ViewResult<()>,
    ) -> Result<bool, StoreError> {
        catch_unwind(AssertUnwindSafe(|| self.backend.read(look))).unwrap_or_else(|panic| {
            self.is_poisoned |= self.backend.rollback().is_err();
            resume_unwind(panic)
        })
    }

    /// Returns whether a commit never waits for a disk or another process.
    pub(crate) fn is_instant(&self) -> bool {
        self.backend.is_instant()
    }

    /// Returns whether every later commit fails.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    fn poisoned(&self) -> StoreError {
        StoreError::Poisoned { path: self.path.clone() }
    }

    fn begin_and_decide(
        &mut self,
        requests: &mut dyn Iterator<Item = &Request>,
        show: &mut DecidedObserver<'_>,
    ) -> Result<(Vec<Outcome>, bool), StoreError> {
        self.backend.begin()?;
        let decided = self.decide_all(requests, show);
        if decided.is_err() {
            self.undo()?;
        }
        decided
    }

    /// Returns the outcomes, and whether there is anything to commit.
    fn decide_all(
        &mut self,
        requests: &mut dyn Iterator<Item = &Request>,
        show: &mut DecidedObserver<'_>,
    ) -> Result<(Vec<Outcome>, bool), StoreError> {
        let mut outcomes = Vec::new();
        let mut has_changes = false;
        // Outcomes without changes carry the revision that they were decided on.
        let mut revision = self.backend.view().revision().map_err(StoreError::from_view)?;
        for request in requests {
            let outcome = match decide(self.backend.view(), &request.command, &request.context) {
                Ok(decision) => {
                    if !decision.changes.is_empty() {
                        revision = self.backend.apply(decision.changes)?;
                        has_changes = true;
                    }
                    let mut answer = decision.answer;
                    answer.revision = revision;
                    Ok(answer)
                }
                Err(error) => Err(refusal_of(error)?),
            };
            outcomes.push(outcome);
            show(self.backend.view(), &outcomes);
        }
        Ok((outcomes, has_changes))
    }

    /// Reads a view inside a transaction, under the write lock, and rolls the transaction back.
    pub fn look<T>(&mut self, look: impl FnOnce(&dyn View) -> ViewResult<T>) -> Result<T, StoreError> {
        self.backend.begin()?;
        let seen = look(self.backend.view()).map_err(StoreError::from_view);
        self.undo()?;
        seen
    }

    fn make_durable(&mut self) -> Result<(), StoreError> {
        let result = self.backend.commit();
        if faults::is_on(Fault::SwallowErrors) {
            return Ok(());
        }
        // Other errors mean that nothing was committed: the committer stays usable.
        self.is_poisoned = matches!(result, Err(StoreError::InDoubt { .. } | StoreError::Poisoned { .. }));
        result
    }

    fn undo(&mut self) -> Result<(), StoreError> {
        let result = self.backend.rollback();
        // A failed rollback may leave a transaction open, and the next batch must not run inside it.
        self.is_poisoned = result.is_err();
        result
    }
}

/// Extracts the refusal, which is a regular outcome; other errors are failures of the store.
fn refusal_of(error: DecideError) -> Result<Box<Refusal>, StoreError> {
    match error {
        DecideError::Refused(refusal) => Ok(refusal),
        DecideError::View(error) => Err(StoreError::from_view(error)),
        other => Err(StoreError::View { source: Arc::new(other) }),
    }
}
