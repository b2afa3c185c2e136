//! Ids of tasks whose author gave none: made from their names, within the transaction that creates them.

use crate::rules::draft::{Decided, Draft};
use crate::value::{TaskId, id_from_name};

impl Draft<'_> {
    /// Returns an id from the name of a new task: `write-tests`, or `write-tests-2` if that belongs or belonged to
    /// another task. `is_reserved` tells whether the same command gives the id to another task.
    pub(super) fn id_from_name(
        &self,
        prefix: Option<&str>,
        name: &str,
        is_reserved: impl Fn(&TaskId) -> bool,
    ) -> Decided<TaskId> {
        let word = id_from_name(name);
        let base = prefix.map_or_else(|| word.clone(), |prefix| format!("{prefix}.{word}"));
        let is_taken = |id: &TaskId| {
            // A deleted id stays the name of its task in history.
            let is_used =
                self.find_id(id.as_str())?.is_some() || self.view.deleted_id(id.as_str())?.is_some();
            Ok(is_used || is_reserved(id))
        };
        free_id(&base, is_taken)
    }
}

/// Returns an id that is not taken: `base`, or `base` with a number.
fn free_id(base: &str, mut is_taken: impl FnMut(&TaskId) -> Decided<bool>) -> Decided<TaskId> {
    let first = TaskId::from(base);
    if !is_taken(&first)? {
        return Ok(first);
    }
    let numbered = |number: u64| TaskId::from(format!("{base}-{number}"));
    // Doubled until one is free, then halved: among thousands of equal names a search one by one would read as many.
    let (mut taken, mut free) = (1, 2);
    while is_taken(&numbered(free))? {
        (taken, free) = (free, free * 2);
    }
    while free - taken > 1 {
        let between = taken + (free - taken) / 2;
        if is_taken(&numbered(between))? {
            taken = between;
        } else {
            free = between;
        }
    }
    Ok(numbered(free))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_are_found_in_few_reads() {
        let mut used = BTreeSet::new();
        for number in 1..2_000 {
            let mut reads = 0;
            let id = free_id("a", |id| {
                reads += 1;
                Ok(used.contains(id))
            });
            let id = id.unwrap_or_else(|_| unreachable!());
            let expected = if number == 1 { "a".to_owned() } else { format!("a-{number}") };
            assert_eq!(id.as_str(), expected);
            assert!(reads <= 24, "{reads} reads for {id}");
            used.insert(id);
        }
    }
}
