//! What a committer needs of a store: the contract of all backends.

use std::fmt::Debug;

use taskpawl_model::view::{Changes, View, ViewResult};

use crate::StoreError;

/// The writing side of a backend: at most one transaction at a time, under the lock that all processes share.
pub(crate) trait Backend: Send + Debug {
    /// Tries to take the lock for the next transaction without waiting. Returns whether the lock is held now.
    fn lock_now(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Waits for the lock, unless it is already held, and begins a transaction.
    fn begin(&mut self) -> Result<(), StoreError>;

    /// Returns a view of the transaction, including its own writes.
    fn view(&self) -> &dyn View;

    /// Writes all of `changes` and returns the revision of the last event. After an error the caller must
    /// roll back: the transaction may contain a part of the changes.
    fn apply(&mut self, changes: Changes) -> Result<u64, StoreError>;

    /// Makes the transaction durable. Releases the lock, also on an error.
    fn commit(&mut self) -> Result<(), StoreError>;

    /// Discards the transaction and releases the lock.
    fn rollback(&mut self) -> Result<(), StoreError>;

    /// Reads the committed data on the writing connection, outside a transaction. Returns false if it did not
    /// read, because no connection is open yet or the read would block writers.
    fn read(&mut self, _look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Returns whether a commit never waits for a disk or another process. Such a commit is cheaper than a
    /// thread handoff.
    fn is_instant(&self) -> bool {
        false
    }
}

/// The reading side of a backend.
pub(crate) trait Reader: Send + Sync + Debug {
    /// Passes one consistent snapshot to `look`.
    fn read(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError>;

    /// Starts to watch for changes by other processes.
    fn watch(&self) -> Result<Box<dyn Watch + '_>, StoreError>;

    /// Returns warnings for the user, for example about a network file system.
    fn warnings(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

/// Detects changes by other processes at low cost.
pub(crate) trait Watch {
    /// Returns whether the store may have changed since the previous call. Returns true on the first call.
    fn has_changed(&mut self) -> Result<bool, StoreError>;
}
