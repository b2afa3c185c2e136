//! Reads that say why things are as they are, and what would be.

use taskpawl_model::{Explanation, Facts, ReadyList, Refusal, Selector, explain, explain_ready, resolve};

use crate::error::Error;
use crate::manager::Manager;

impl Manager {
    /// Returns why a task is not running, down to the first cause, and the commands that clear it.
    pub fn explain(&self, id: &str) -> Result<Explanation, Error> {
        let facts = Facts { now: self.source().now(), is_alive: &|run| self.is_alive(run) };
        self.read(|view| {
            let key = resolve(view, id)?;
            let unknown = || Refusal::UnknownTask { id: id.to_owned(), similar: Vec::new() };
            view.node(key)?.ok_or_else(unknown)?;
            Ok(explain(view, key, &facts)?)
        })
    }

    /// Returns what is ready, of the tasks that the selectors select, in the order in which it is taken, and why in that
    /// order: at most `limit` for runs and as many for hands, 0 for all.
    pub fn explain_ready(&self, only: &[Selector], limit: usize) -> Result<ReadyList, Error> {
        self.read(|view| explain_ready(view, only, limit))
    }
}
