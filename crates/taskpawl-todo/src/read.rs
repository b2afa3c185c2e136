//! Reading the lists of all dialects.

use std::path::Path;

use crate::dialect::Dialect;
use crate::list::Item;
use crate::lists::{ListError, Lists};
use crate::{conversation, queue};

impl Lists {
    /// Returns the items of a list. Lists of conversations and queues are read from their files, the others from
    /// memory. A checklist of another process is read from the store.
    ///
    /// # Errors
    /// The scope is invalid for the dialect, or the list cannot be read.
    pub fn items(&self, dialect: Dialect, scope: &str) -> Result<Vec<Item>, ListError> {
        let not = |what| ListError::Scope { scope: scope.to_owned(), what };
        match dialect {
            Dialect::Conversation => {
                let base = self.base().unwrap_or(Path::new("."));
                let read = conversation::items(self, base, scope)
                    .ok_or_else(|| not("id of a conversation: a UUID"))?;
                Ok(read?)
            }
            Dialect::Queue => {
                let root = self.queue_root().ok_or(ListError::NoFolder)?;
                let read = queue::items(root, scope, self.source().now());
                Ok(read.ok_or_else(|| not("id of an agent: the name of one folder"))??)
            }
            Dialect::Session => Ok(self.session(scope).iter().cloned().collect()),
            Dialect::Checklist | Dialect::TodoList => self.items_of_checklist(scope),
        }
    }

    /// Resolves `ik://system/agents/ID/tasks.json` to `{"items":[…]}`: the queue of an agent, without items that are
    /// currently leased. Returns `None` for other addresses.
    ///
    /// # Errors
    /// The id would leave its directory, or the queue cannot be read.
    pub fn read_address(&self, address: &str) -> Option<Result<String, ListError>> {
        let agent = address.strip_prefix("ik://system/agents/")?.strip_suffix("/tasks.json")?;
        Some(self.items(Dialect::Queue, agent).map(|items| queue::listed(&items)))
    }
}
