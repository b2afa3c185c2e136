//! Task queries on the maps of a state.

use taskpawl_model::value::Key;
use taskpawl_model::view::Query;

use super::state::{State, pairs_of};
use super::view::or_all;

impl State {
    pub(super) fn find_keys(&self, query: &Query) -> Vec<Key> {
        let text = query.search_text();
        let matching = self.candidates(query).into_iter().filter(|key| {
            let entry = self.entries.get(*key);
            entry.is_some_and(|entry| query.is_match(&entry.node, &entry.record, text.as_ref()))
        });
        matching.take(self.most(query)).skip(query.offset).take(or_all(query.limit)).collect()
    }

    /// Returns an upper bound for the number of matches. The search stops there instead of scanning all
    /// tasks.
    fn most(&self, query: &Query) -> usize {
        if query.status.is_empty() {
            return usize::MAX;
        }
        let counts = self.counts.iter().filter(|(status, _)| query.status.contains(status));
        usize::try_from(counts.map(|(_, count)| count).sum::<u64>()).unwrap_or(usize::MAX)
    }

    /// Returns the candidates, in the order of the query.
    fn candidates(&self, query: &Query) -> Vec<Key> {
        if query.ready.is_some() {
            let mut ready: Vec<_> = self.ready.iter().collect();
            ready.sort_by_key(|(_, priority, due, key)| (*priority, *due, *key));
            return ready.into_iter().map(|place| place.3).collect();
        }
        match query.parent {
            Some(parent) => pairs_of(&self.subtasks, parent).collect(),
            None => self.entries.iter().map(|(key, _)| key).collect(),
        }
    }
}
