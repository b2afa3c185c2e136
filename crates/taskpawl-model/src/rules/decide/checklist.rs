//! Checklists of models: the store records the latest list and derives nothing from it.

use super::fields::invalid;
use crate::rules::draft::{Decided, Draft};
use crate::task::checklist::ChecklistItem;
use crate::task::event::{ChecklistChanged, EventKind};

/// Longest name of a scope, in characters.
const MAX_SCOPE: usize = 256;

impl Draft<'_> {
    pub(super) fn checklist(
        &mut self,
        scope: &str,
        items: &[ChecklistItem],
        cleared: bool,
        liveness_lock: Option<&str>,
        kept: bool,
    ) -> Decided<()> {
        if scope.trim().is_empty() || scope.chars().count() > MAX_SCOPE {
            let problem = format!("a scope has 1 to {MAX_SCOPE} characters");
            return Err(invalid("scope", problem).into());
        }
        let (scope, items, liveness_lock) =
            (scope.to_owned(), items.to_vec(), liveness_lock.map(str::to_owned));
        let list = ChecklistChanged { scope, items, cleared, liveness_lock, kept };
        self.emit(None, EventKind::Checklist(Box::new(list)))
    }
}
