//! The committer: decides requests one after the other inside one transaction, and makes that durable.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskpawl_model::{Changes, DecideError, Refusal, Request, View, ViewResult, decide};

use crate::faults::{self, Fault};
use crate::store::Outcome;
use crate::{Location, StoreError};

/// The writing side of a backend: at most one transaction at a time, behind the lock that all processes share.
pub(crate) trait Backend: Send + Debug {
    /// Takes the lock for the next transaction if that means no wait, and returns whether it did.
    fn lock_now(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Waits for the lock, if it is not held yet, and begins a transaction.
    fn begin(&mut self) -> Result<(), StoreError>;

    /// Returns what the transaction sees, its own writes included.
    fn view(&self) -> &dyn View;

    /// Writes `changes` whole, and returns the revision of the last event. After an error the transaction is of no use but to be
    /// forgotten: part of them may stand in it.
    fn apply(&mut self, changes: Changes) -> Result<u64, StoreError>;

    /// Makes the transaction durable and gives the lock back, also on an error.
    fn commit(&mut self) -> Result<(), StoreError>;

    /// Forgets the transaction and gives the lock back.
    fn rollback(&mut self) -> Result<(), StoreError>;

    /// Shows what is committed to `look` on the connection that writes, outside of a transaction; returns whether it did: not where
    /// none is open yet, or reading by it would keep others from writing.
    fn read(&mut self, _look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Returns whether a commit waits for nothing outside the process: then handing it to another thread costs more than it does.
    fn is_instant(&self) -> bool {
        false
    }
}

/// Sees what a transaction sees when another request was decided, and the outcomes so far.
pub(crate) type Show<'a> = dyn FnMut(&dyn View, &[Outcome]) + 'a;

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
        self.commit_and_show(&mut requests.into_iter(), &mut |_, _| ())
    }

    /// As [`commit`](Self::commit), and shows to `show` what each request leaves, before that is durable.
    pub(crate) fn commit_and_show(
        &mut self,
        requests: &mut dyn Iterator<Item = &Request>,
        show: &mut Show<'_>,
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

    /// Begins a transaction and writes what the rules make of `requests` into it. Returns the outcomes, and whether there is
    /// anything to commit. After an error there is no transaction.
    pub(crate) fn prepare(
        &mut self,
        requests: &mut dyn Iterator<Item = &Request>,
        show: &mut Show<'_>,
    ) -> Result<(Vec<Outcome>, bool), StoreError> {
        self.guard(|this| this.begin_and_decide(requests, show))
    }

    /// Ends the transaction: durable if there is anything to commit, else as if it had never been.
    pub(crate) fn finish(&mut self, has_changes: bool) -> Result<(), StoreError> {
        self.guard(|this| if has_changes { this.make_durable() } else { this.undo() })
    }

    /// A panic closes the handle: nobody knows what it left half done.
    fn guard<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if self.is_poisoned {
            return Err(self.poisoned());
        }
        catch_unwind(AssertUnwindSafe(|| run(self))).unwrap_or_else(|_| {
            self.is_poisoned = true;
            // The answer is `Poisoned` whether this succeeds or not.
            let _ = self.backend.rollback();
            Err(self.poisoned())
        })
    }

    /// Does what must never be done: between the decision and its commit others may write.
    fn decide_before_lock(&mut self, request: &Request) -> Result<Outcome, StoreError> {
        let decided = self.look(|view| Ok(decide(view, &request.command, &request.context)))?;
        let mut decision = match decided {
            Ok(decision) => decision,
            Err(error) => return refusal_of(error).map(Err),
        };
        // Wide enough for others to come in between, also where nobody has to wait for a processor.
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

    /// Takes the lock for the next commit if that means no wait, and returns whether it did. Then a commit has to follow.
    pub(crate) fn lock_now(&mut self) -> bool {
        // What stands in the way is an error of the commit that waits.
        !self.is_poisoned && self.backend.lock_now().unwrap_or(false)
    }

    /// Shows what is committed to `look`, if there is a connection for it; returns whether there is. A panic of `look` goes on to the
    /// caller, and leaves nothing behind.
    pub(crate) fn read(
        &mut self,
        look: &mut dyn FnMut(&dyn View) -> ViewResult<()>,
    ) -> Result<bool, StoreError> {
        catch_unwind(AssertUnwindSafe(|| self.backend.read(look))).unwrap_or_else(|panic| {
            self.is_poisoned |= self.backend.rollback().is_err();
            resume_unwind(panic)
        })
    }

    /// Returns whether a commit waits for nothing outside the process.
    pub(crate) fn is_instant(&self) -> bool {
        self.backend.is_instant()
    }

    /// Returns whether every later use fails.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    fn poisoned(&self) -> StoreError {
        StoreError::Poisoned { path: self.path.clone() }
    }

    fn begin_and_decide(
        &mut self,
        requests: &mut dyn Iterator<Item = &Request>,
        show: &mut Show<'_>,
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
        show: &mut Show<'_>,
    ) -> Result<(Vec<Outcome>, bool), StoreError> {
        let mut outcomes = Vec::new();
        let mut has_changes = false;
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

    /// Shows what a transaction sees now to `look`, behind the lock.
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
        self.is_poisoned = matches!(result, Err(StoreError::InDoubt { .. } | StoreError::Poisoned { .. }));
        result
    }

    fn undo(&mut self) -> Result<(), StoreError> {
        let result = self.backend.rollback();
        self.is_poisoned = result.is_err();
        result
    }
}

/// Returns the refusal of the rules, which is an answer.
fn refusal_of(error: DecideError) -> Result<Box<Refusal>, StoreError> {
    match error {
        DecideError::Refused(refusal) => Ok(refusal),
        DecideError::View(error) => Err(StoreError::from_view(error)),
        other => Err(StoreError::View { source: Arc::new(other) }),
    }
}
