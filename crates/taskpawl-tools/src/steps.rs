//! The journal of the steps of a call.

use std::io;
use std::sync::Arc;

use serde_json::Value;

/// Keeps the results of the steps of one call over its starts. The engine implements it. Its methods block.
pub trait StepJournal: Send + Sync {
    /// Returns the recorded result of a step.
    fn result(&self, step: &str) -> io::Result<Option<Value>>;

    /// Records the result of a step durably.
    fn record(&self, step: &str, result: Value) -> io::Result<()>;

    /// Returns the last details.
    fn details(&self) -> io::Result<Option<Value>>;

    /// Replaces the details. They survive the death of the process, but not that of the machine.
    fn replace_details(&self, details: Value) -> io::Result<()>;
}

/// A journal that clones of a context share.
pub type SharedJournal = Arc<dyn StepJournal>;
