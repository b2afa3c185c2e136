//! The store in memory, for tests, simulations and programs that persist nothing.

mod find;
mod pages;
mod state;
mod view;

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use taskpawl_model::view::{Changes, View, ViewResult};

pub(crate) use state::{Entry, State, UndoEntry};

use crate::StoreError;
use crate::backend::{Backend, Reader, Watch};

/// The only copy of the state. A transaction takes it out and puts it back, and readers wait for its return.
/// A writer never waits for readers: a reader that still holds the old state keeps it, and the writer copies
/// the state on its first change.
#[derive(Debug)]
struct Shared {
    state: Mutex<Option<Arc<State>>>,
    /// Signalled when the state is put back.
    is_back: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<State>>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_back.wait_while(state, |state| state.is_none()).unwrap_or_else(PoisonError::into_inner)
    }

    fn put_back(&self, state: Arc<State>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
        self.is_back.notify_all();
    }
}

/// Returns both sides of an empty store.
pub(crate) fn open() -> (Box<dyn Backend>, Box<dyn Reader>) {
    let shared = Arc::new(Shared { state: Mutex::new(Some(Arc::default())), is_back: Condvar::new() });
    let backend = MemoryBackend { shared: Arc::clone(&shared), working: None, is_changed: false };
    (Box::new(backend), Box::new(MemoryReader { shared }))
}

#[derive(Debug)]
struct MemoryBackend {
    shared: Arc<Shared>,
    /// The state, while a transaction is open.
    working: Option<Arc<State>>,
    is_changed: bool,
}

impl MemoryBackend {
    fn finish(&mut self) {
        self.is_changed = false;
        if let Some(state) = self.working.take() {
            self.shared.put_back(state);
        }
    }
}

impl Backend for MemoryBackend {
    fn begin(&mut self) -> Result<(), StoreError> {
        self.working = self.shared.lock().take();
        Ok(())
    }

    fn view(&self) -> &dyn View {
        &**self.working.as_ref().expect("BUG: a view is taken within a transaction")
    }

    fn apply(&mut self, changes: Changes) -> Result<u64, StoreError> {
        self.is_changed = true;
        let state = self.working.as_mut().expect("BUG: changes are applied within a transaction");
        // Copies the state only if a reader still holds it.
        Ok(Arc::make_mut(state).apply(changes))
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.finish();
        Ok(())
    }

    fn is_instant(&self) -> bool {
        true
    }

    /// Changes cannot be reverted, so this fails if there are any. That happens only after a panic of the
    /// rules, which closes the handle anyway.
    fn rollback(&mut self) -> Result<(), StoreError> {
        let was_changed = self.is_changed;
        self.finish();
        if was_changed { Err(StoreError::Poisoned { path: PathBuf::from(":memory:") }) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct MemoryReader {
    shared: Arc<Shared>,
}

impl Reader for MemoryReader {
    fn read(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        let state = self.shared.lock().clone().expect("BUG: the state is back");
        look(&*state).map_err(StoreError::from_view)
    }

    fn watch(&self) -> Result<Box<dyn Watch + '_>, StoreError> {
        Ok(Box::new(FirstLook { has_looked: false }))
    }
}

/// No other process can change a store in memory, so the notifications of the handle cover everything after
/// the first call.
struct FirstLook {
    has_looked: bool,
}

impl Watch for FirstLook {
    fn has_changed(&mut self) -> Result<bool, StoreError> {
        Ok(!std::mem::replace(&mut self.has_looked, true))
    }
}
