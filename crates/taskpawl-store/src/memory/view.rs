//! [`View`] over the state in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use taskpawl_model::command::RequestRecord;
use taskpawl_model::task::Event;
use taskpawl_model::task::{
    Actor, CallRecord, KeySpace, Node, PlanRecord, RunRecord, SignalRecord, Status, TaskRecord, Work,
};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{Key, Period, RunId, TaskId};
use taskpawl_model::view::DurationSource;
use taskpawl_model::view::{
    EventQuery, FindTasks, Query, ReadGraph, ReadHistory, ReadRuns, ReadTasks, UndoSnapshot, Undoable,
    ViewResult, Waits,
};

use super::state::{State, pairs_of};

impl State {
    /// Returns the calls of tasks that a run could start now, as pairs of task and tool name.
    fn ready_calls(&self) -> impl Iterator<Item = (Key, &str)> {
        let ready = self.ready.iter().filter(|(work, ..)| *work == Work::Calls).map(|place| place.3);
        ready.flat_map(|key| {
            let calls = self.entries.get(key).into_iter().flat_map(|entry| entry.calls.iter().flatten());
            calls.map(move |call| (key, call.spec.tool_name.as_str()))
        })
    }

    /// Returns the index of the first event after `revision`.
    fn first_after(&self, revision: u64) -> usize {
        self.events.partition_point(|event| event.revision <= revision)
    }
}

impl ReadTasks for State {
    fn key(&self, id: &str) -> ViewResult<Option<Key>> {
        Ok(self.ids.get(id).copied())
    }

    fn id(&self, key: Key) -> ViewResult<Option<TaskId>> {
        Ok(self.entries.get(key).map(|entry| entry.record.id.clone()))
    }

    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> ViewResult<Vec<TaskId>> {
        let from = self.ids.range(TaskId::from(prefix)..).map(|(id, _)| id);
        Ok(from.take_while(|id| id.as_str().starts_with(prefix)).take(limit).cloned().collect())
    }

    fn deleted_id(&self, id: &str) -> ViewResult<Option<Option<String>>> {
        Ok(self.deleted.get(id).cloned())
    }

    fn next_key(&self) -> ViewResult<Key> {
        Ok(Key(self.next_key))
    }

    fn task(&self, key: Key) -> ViewResult<Option<TaskRecord>> {
        Ok(self.entries.get(key).map(|entry| entry.record.clone()))
    }

    fn calls(&self, key: Key) -> ViewResult<Vec<CallRecord>> {
        Ok(self
            .entries
            .get(key)
            .map(|entry| entry.calls.iter().flatten().cloned().collect())
            .unwrap_or_default())
    }

    fn applied(&self, key: Key) -> ViewResult<Option<String>> {
        Ok(self.entries.get(key).and_then(|entry| entry.applied.clone()))
    }

    fn plan(&self, name: &str) -> ViewResult<Option<PlanRecord>> {
        Ok(self.plans.get(name).cloned())
    }

    fn plans(&self) -> ViewResult<Vec<PlanRecord>> {
        Ok(self.plans.values().cloned().collect())
    }
}

impl ReadGraph for State {
    fn node(&self, key: Key) -> ViewResult<Option<Node>> {
        Ok(self.entries.get(key).map(|entry| entry.node))
    }

    fn dependencies(&self, key: Key) -> ViewResult<Vec<Key>> {
        Ok(pairs_of(&self.dependencies, key).collect())
    }

    fn dependents(&self, key: Key) -> ViewResult<Vec<Key>> {
        Ok(pairs_of(&self.dependents, key).collect())
    }

    fn subtasks(&self, key: Key) -> ViewResult<Vec<Key>> {
        Ok(pairs_of(&self.subtasks, key).collect())
    }

    fn each_node(&self, each: &mut dyn FnMut(Node)) -> ViewResult<()> {
        self.entries.iter().for_each(|(_, entry)| each(entry.node));
        Ok(())
    }

    fn each_dependency(&self, each: &mut dyn FnMut(Key, Key)) -> ViewResult<()> {
        self.dependencies.iter().for_each(|(task, on)| each(*task, *on));
        Ok(())
    }

    fn counts(&self) -> ViewResult<BTreeMap<Status, u64>> {
        Ok(Status::ALL
            .iter()
            .map(|status| (*status, self.counts.get(status).copied().unwrap_or(0)))
            .collect())
    }
}

impl FindTasks for State {
    fn find(&self, query: &Query) -> ViewResult<Vec<Key>> {
        Ok(self.find_keys(query))
    }

    fn leases(&self, actor: Option<&str>) -> ViewResult<Vec<Key>> {
        let held = self.leases.iter().filter(|(_, holder)| actor.is_none_or(|actor| *holder == actor));
        Ok(held.map(|(key, _)| *key).collect())
    }

    fn running(&self) -> ViewResult<Vec<Key>> {
        Ok(self.running.iter().copied().collect())
    }

    fn tools(&self) -> ViewResult<Vec<String>> {
        let names: BTreeSet<&str> = self.ready_calls().map(|(_, name)| name).collect();
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    fn ready_calling(&self, tool: &str, limit: usize) -> ViewResult<Vec<Key>> {
        let keys: BTreeSet<Key> =
            self.ready_calls().filter(|(_, name)| *name == tool).map(|(key, _)| key).collect();
        Ok(keys.into_iter().take(or_all(limit)).collect())
    }

    fn waiting(&self, which: Waits<'_>) -> ViewResult<Vec<Key>> {
        let meant = self.waits.iter().filter(|(_, wait)| which.is_meant(wait));
        Ok(meant.map(|(key, _)| *key).collect())
    }

    fn next_wake(&self) -> ViewResult<Option<Timestamp>> {
        Ok(self.waits.values().filter_map(|wait| wait.time).min())
    }

    fn each_duration(&self, each: &mut dyn FnMut(Key, Period, DurationSource)) -> ViewResult<()> {
        for (key, entry) in self.entries.iter() {
            let record = &entry.record;
            let took = record.body.progress.took.map(|period| (period, DurationSource::Took));
            let estimate = record.spec.estimate.map(|period| (period, DurationSource::Estimate));
            for (period, source) in took.into_iter().chain(estimate) {
                each(key, period, source);
            }
        }
        Ok(())
    }
}

impl ReadRuns for State {
    fn run(&self, id: &RunId) -> ViewResult<Option<RunRecord>> {
        Ok(self.runs.iter().rev().find(|run| run.id == *id).cloned())
    }

    fn runs(&self, limit: usize) -> ViewResult<Vec<RunRecord>> {
        Ok(self.runs.iter().rev().take(or_all(limit)).cloned().collect())
    }

    fn pruned_runs(&self, prefix: &str) -> ViewResult<Vec<(RunId, Timestamp)>> {
        let from = self.pruned_runs.range(RunId::from(prefix)..);
        let found = from.take_while(|(id, _)| id.as_str().starts_with(prefix));
        Ok(found.map(|(id, at)| (id.clone(), *at)).collect())
    }

    fn signals(&self, name: Option<&str>) -> ViewResult<Vec<SignalRecord>> {
        let meant = self.signals.iter().filter(|signal| name.is_none_or(|name| signal.name == name));
        Ok(meant.cloned().collect())
    }

    fn key_space(&self) -> ViewResult<Option<KeySpace>> {
        Ok(self.key_space.clone())
    }
}

impl ReadHistory for State {
    fn revision(&self) -> ViewResult<u64> {
        Ok(self.revision)
    }

    fn events(&self, after: u64, task: Option<Key>, limit: usize) -> ViewResult<Vec<Event>> {
        let first = self.first_after(after);
        let Some(key) = task else {
            return Ok(self.events[first..].iter().take(or_all(limit)).cloned().collect());
        };
        let positions = self.history.get(key).map(Vec::as_slice).unwrap_or_default();
        let later = positions.iter().filter(|position| **position >= first);
        Ok(later.take(or_all(limit)).map(|position| self.events[*position].clone()).collect())
    }

    fn find_events(&self, query: &EventQuery) -> ViewResult<Vec<Event>> {
        let own = match query.task {
            None => (self.first_after(query.after)..self.events.len()).collect(),
            Some(key) => self.history.get(key).cloned().unwrap_or_default(),
        };
        let mut found: Vec<&Event> = own
            .iter()
            .map(|position| &self.events[*position])
            .filter(|event| query.is_match(event))
            .collect();
        let left_out = found.len().saturating_sub(or_all(query.limit));
        if query.latest {
            found.drain(..left_out);
        } else {
            found.truncate(or_all(query.limit));
        }
        Ok(found.into_iter().cloned().collect())
    }

    fn undoables(&self, first: u64, last: u64) -> ViewResult<Vec<Undoable>> {
        let commands = self.undo.range(first..).map(|(_, kept)| &kept.command);
        Ok(commands.take_while(|command| command.first <= last).cloned().collect())
    }

    fn last_undoable(&self, actor: Actor<'_>) -> ViewResult<Option<Undoable>> {
        let mut commands = self.undo.values().rev().map(|kept| &kept.command);
        let is_own = |command: &Undoable| actor.is(self.kind_at(command.revision), &command.actor);
        Ok(commands.find(|command| is_own(command) && !command.is_void()).cloned())
    }

    fn request(&self, actor: Actor<'_>, request: &str) -> ViewResult<Option<RequestRecord>> {
        // Versions before 0.2 stored requests under the name of the actor, without its kind.
        let mut found = [actor.key(), actor.name.to_owned()]
            .into_iter()
            .filter_map(|key| self.requests.get(&(key, request.to_owned())));
        Ok(found.find(|done| done.is_of(actor)).cloned())
    }

    fn requests_before(&self, time: Timestamp) -> ViewResult<u64> {
        Ok(self.requests.values().filter(|done| done.at < time).count() as u64)
    }

    fn each_undo_snapshot(&self, each: &mut dyn FnMut(u64, Arc<UndoSnapshot>)) -> ViewResult<()> {
        for (revision, kept) in &self.undo {
            kept.undo_snapshot.iter().for_each(|undo_snapshot| each(*revision, Arc::clone(undo_snapshot)));
        }
        Ok(())
    }

    fn undo_snapshot(&self, revision: u64) -> ViewResult<Option<Arc<UndoSnapshot>>> {
        Ok(self.undo.get(&revision).and_then(|kept| kept.undo_snapshot.clone()))
    }
}

/// Treats a limit of 0 as no limit.
pub(super) fn or_all(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
}
