//! Task queries on the maps of a state.

use taskpawl_model::{Key, Query};

use super::state::{Entry, State, pairs_of};
use super::view::or_all;
use crate::words::Needle;

impl State {
    pub(super) fn find_keys(&self, query: &Query) -> Vec<Key> {
        let needle = query.text.as_deref().map(Needle::new);
        let matching = self.candidates(query).into_iter().filter(|key| {
            self.entries.get(*key).is_some_and(|entry| is_match(entry, query, needle.as_ref()))
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

fn is_match(entry: &Entry, query: &Query, needle: Option<&Needle>) -> bool {
    let Entry { record, node, .. } = entry;
    let spec = &record.spec;
    is_any(&query.status, &node.status_kind.status())
        && is_any(&query.priority, &spec.priority)
        && query.ready.as_ref().is_none_or(|works| is_any(works, &node.work))
        && query.assignee.as_ref().is_none_or(|assignee| spec.assignee.as_ref() == Some(assignee))
        && is_free_for(query.free_for.as_ref(), spec.assignee.as_ref())
        && query.plan.as_ref().is_none_or(|plan| record.plan.as_deref() == Some(plan.as_str()))
        && query.parent.is_none_or(|parent| node.parent == Some(parent))
        && query.labels.iter().all(|label| spec.labels.contains(label))
        && needle.is_none_or(|needle| needle.is_in(&[record.id.as_str(), &spec.name, &spec.description]))
}

fn is_free_for(actor: Option<&String>, assignee: Option<&String>) -> bool {
    actor.is_none() || assignee.is_none() || actor == assignee
}

/// Returns whether `value` is in the list. An empty list accepts any value.
fn is_any<T: PartialEq>(wanted: &[T], value: &T) -> bool {
    wanted.is_empty() || wanted.contains(value)
}
