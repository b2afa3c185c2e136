//! Signals: they end the durable waits of tasks.

use serde_json::Value;
use taskpawl_model::command::{Command, NewSignal};
use taskpawl_model::task::SignalRecord;
use taskpawl_model::value::TaskId;

use crate::{Error, Manager};

impl Manager {
    /// Sends a signal. The first task that waits for it takes it, in the same commit; without one it is kept for the
    /// first that will wait. Returns its id, and the task that took it.
    ///
    /// # Errors
    /// The name is invalid, the data is larger than 64 KiB, or the actor is an agent that may not report on the task
    /// `to`.
    ///
    /// # Durability
    /// Once this returns, the signal survives crashes, and exactly one task takes it.
    pub fn signal(
        &self,
        name: &str,
        data: Value,
        to: Option<&str>,
    ) -> Result<(String, Option<TaskId>), Error> {
        let id = self.source().new_id();
        let signal = NewSignal { id: id.clone(), name: name.to_owned(), data, to: to.map(str::to_owned) };
        let answer = self.command(Command::Signal(Box::new(signal)))?;
        Ok((id, answer.tasks.into_iter().next()))
    }

    /// Returns the signals that no task has taken, the oldest first: those with a name, or all.
    pub fn signals(&self, name: Option<&str>) -> Result<Vec<SignalRecord>, Error> {
        self.read(|view| Ok(view.signals(name)?))
    }

    /// Drops the signals of a name that no task has taken; returns their number.
    pub fn drop_signals(&self, name: &str) -> Result<u64, Error> {
        self.command(Command::DropSignals { name: name.to_owned() }).map(|answer| answer.dropped_signals)
    }
}
