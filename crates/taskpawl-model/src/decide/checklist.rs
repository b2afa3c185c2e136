//! Checklists of models: the store records the latest list and derives nothing from it.

use super::author::invalid;
use crate::checklist::ChecklistItem;
use crate::draft::{Decided, Draft};
use crate::event::{ChecklistChanged, EventKind};

/// Longest name of a scope, in characters.
const MOST_SCOPE: usize = 256;

impl Draft<'_> {
    pub(super) fn checklist(
        &mut self,
        scope: &str,
        items: &[ChecklistItem],
        cleared: bool,
        keeper: Option<&str>,
        kept: bool,
    ) -> Decided<()> {
        if scope.trim().is_empty() || scope.chars().count() > MOST_SCOPE {
            let problem = format!("a scope has 1 to {MOST_SCOPE} characters");
            return Err(invalid("scope", problem).into());
        }
        let (scope, items, keeper) = (scope.to_owned(), items.to_vec(), keeper.map(str::to_owned));
        let list = ChecklistChanged { scope, items, cleared, keeper, kept };
        self.emit(None, EventKind::Checklist(Box::new(list)))
    }
}
