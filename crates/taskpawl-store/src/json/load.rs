//! Builds the in-memory state, including all derived data, from the content of the file.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::command::{Command, Context};
use taskpawl_model::rules::decide;
use taskpawl_model::rules::{Graph, rebuild_nodes};
use taskpawl_model::task::EventKind;
use taskpawl_model::task::{ActorKind, Node, Origin, Task, TaskParts};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{Key, TaskId};
use taskpawl_model::view::{EdgeChange, NewEvent};

use super::document::{Document, seal};
use crate::derived::node_of;
use crate::memory::{Entry, State};

/// The actor of events that follow from an edit of the file.
const EDITOR: &str = "an edit of the file";

/// Builds the state of `document`. If tasks were edited from outside since the last write, the state gets an
/// event for the edit, with the time `changed_at`. That time must come from the file, so that all readers
/// build the same event.
///
/// # Errors
/// Describes the first fault in the document.
pub(super) fn state_of(document: &mut Document, changed_at: Timestamp) -> Result<State, String> {
    check_numbers(document)?;
    let edited = edited(document);
    let tasks = std::mem::take(&mut document.tasks);
    let keys = keys_of(document, &tasks)?;
    let edges = Edges::new(&tasks, &keys)?;
    let mut parts = BTreeMap::new();
    for task in tasks {
        let id = task.id.clone();
        let read = task.into_parts().map_err(|error| format!("task `{id}`: {error}"))?;
        parts.insert(keys[&id], read);
    }
    let nodes = nodes_of(&parts, &edges);
    check_order(&parts, &edges)?;
    let mut state =
        State { next_key: document.index.next_key, revision: document.revision, ..State::default() };
    fill(&mut state, document, parts, &nodes);
    for (task, on) in edges.dependencies {
        state.put_edge(EdgeChange { task, on, add: true });
    }
    if !edited.is_empty() {
        let edit = note_edit(&mut state, edited, changed_at);
        settle(&mut state, changed_at)?;
        // The event tells a live run which tasks may be ready now. It may also list tasks that were ready
        // before: the run ignores them, because it has already seen them.
        state.events[edit].ready = state.ready.iter().map(|(.., key)| *key).collect();
    }
    Ok(state)
}

/// Checks that no counter is so large that it could overflow when it is increased.
///
/// # Errors
/// Names the counter that is too large.
pub(super) fn check_numbers(document: &Document) -> Result<(), String> {
    check_count("`revision`", document.revision)?;
    for event in &document.events {
        check_count("the `revision` of an event", event.revision)?;
    }
    check_small("`nextKey`", document.index.next_key)?;
    for (id, mark) in &document.index.tasks {
        check_small(&format!("the key of task `{id}`"), mark.key.0)?;
    }
    document.tasks.iter().try_for_each(check_task)
}

fn check_task(task: &Task) -> Result<(), String> {
    let id = &task.id;
    check_small(&format!("`attempt` of task `{id}`"), task.attempt)?;
    check_small(&format!("`generation` of task `{id}`"), task.generation)?;
    check_count(&format!("`version` of task `{id}`"), task.version)?;
    for call in &task.metadata.tool_calls {
        check_small(&format!("`attempts` of call `{}` of task `{id}`", call.id), call.attempts)?;
    }
    Ok(())
}

fn check_small(what: &str, number: u32) -> Result<(), String> {
    check_number(what, u64::from(number), u64::from(u32::MAX / 2))
}

fn check_count(what: &str, number: u64) -> Result<(), String> {
    check_number(what, number, u64::MAX / 2)
}

fn check_number(what: &str, number: u64, most: u64) -> Result<(), String> {
    if number <= most { Ok(()) } else { Err(format!("{what} is {number}, which is above {most}")) }
}

/// Returns the ids of tasks that were changed, added or removed since a store wrote the file.
pub(super) fn edited(document: &Document) -> Vec<TaskId> {
    let marks = &document.index.tasks;
    let changed =
        document.tasks.iter().filter(|task| marks.get(&task.id).is_none_or(|mark| mark.seal != seal(task)));
    let present: BTreeSet<_> = document.tasks.iter().map(|task| &task.id).collect();
    let gone = marks.keys().filter(|id| !present.contains(id));
    changed.map(|task| task.id.clone()).chain(gone.cloned()).collect()
}

/// Assigns a key to each task: its recorded key, or a new one.
fn keys_of(document: &mut Document, tasks: &[Task]) -> Result<BTreeMap<TaskId, Key>, String> {
    let index = &mut document.index;
    // An edited `nextKey` must not lead to a key that another task has.
    let highest = index.tasks.values().map(|mark| mark.key.0.saturating_add(1)).max().unwrap_or(0);
    index.next_key = index.next_key.max(highest);
    let mut keys = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for task in tasks {
        let key = index.tasks.get(&task.id).map_or(Key(index.next_key), |mark| mark.key);
        index.next_key = index.next_key.max(key.0.saturating_add(1));
        if keys.insert(task.id.clone(), key).is_some() {
            return Err(format!("two tasks have the id `{}`", task.id));
        }
        if !taken.insert(key) {
            return Err(format!("task `{}` has the key of another task", task.id));
        }
    }
    Ok(keys)
}

/// Dependencies and parents by key. Sets, because an edit may list the same edge twice.
#[derive(Debug, Default)]
struct Edges {
    dependencies: BTreeSet<(Key, Key)>,
    parents: BTreeMap<Key, Key>,
}

impl Edges {
    /// Collects the edges of all tasks. A subtask relation may be given by the parent, by the subtask, or by
    /// both.
    fn new(tasks: &[Task], keys: &BTreeMap<TaskId, Key>) -> Result<Self, String> {
        let mut edges = Self::default();
        let find = |task: &Task, other: &TaskId| {
            keys.get(other)
                .copied()
                .ok_or_else(|| format!("task `{}` refers to `{other}`, which does not exist", task.id))
        };
        for task in tasks {
            let key = keys[&task.id];
            for other in &task.dependencies {
                edges.dependencies.insert((key, find(task, other)?));
            }
            for other in &task.subtasks {
                edges.put_below(find(task, other)?, key, other)?;
            }
            if let Some(parent) = &task.parent {
                edges.put_below(key, find(task, parent)?, &task.id)?;
            }
        }
        Ok(edges)
    }

    fn put_below(&mut self, task: Key, parent: Key, id: &TaskId) -> Result<(), String> {
        match self.parents.insert(task, parent) {
            Some(other) if other != parent => Err(format!("task `{id}` has two parents")),
            _ => Ok(()),
        }
    }
}

fn nodes_of(parts: &BTreeMap<Key, TaskParts>, edges: &Edges) -> BTreeMap<Key, Node> {
    let parents: BTreeSet<_> = edges.parents.values().copied().collect();
    let node = |(key, task): (&Key, &TaskParts)| {
        let mut node = node_of(*key, &task.record, &task.calls, parents.contains(key));
        node.parent = edges.parents.get(key).copied();
        (*key, node)
    };
    let mut nodes = parts.iter().map(node).collect();
    rebuild_nodes(&mut nodes, &edges.dependencies);
    nodes
}

/// Checks that dependencies and subtasks form no cycle.
fn check_order(parts: &BTreeMap<Key, TaskParts>, edges: &Edges) -> Result<(), String> {
    let mut graph = Graph::default();
    for key in parts.keys() {
        graph.add_task(*key);
    }
    for (task, parent) in &edges.parents {
        graph.add_subtask(*task, *parent);
    }
    for (task, on) in &edges.dependencies {
        graph.add_dependency(*task, *on);
    }
    match graph.find_cycle() {
        None => Ok(()),
        Some(circle) => {
            let ids: Vec<_> = circle.iter().map(|key| format!("`{}`", parts[key].record.id)).collect();
            Err(format!("dependency cycle: {}", ids.join(", ")))
        }
    }
}

fn fill(
    state: &mut State,
    document: &mut Document,
    parts: BTreeMap<Key, TaskParts>,
    nodes: &BTreeMap<Key, Node>,
) {
    state.deleted = std::mem::take(&mut document.deleted_ids);
    for (key, TaskParts { record, calls, .. }) in parts {
        let applied = document.applied.remove(&record.id);
        let calls = calls.into_iter().map(Some).collect();
        state.insert(Entry { record, node: nodes[&key], calls, applied });
    }
    for id in document.index.tasks.keys().filter(|id| !state.ids.contains_key(*id)) {
        state.deleted.insert(id.clone(), None);
    }
    state.plans =
        std::mem::take(&mut document.plans).into_iter().map(|plan| (plan.name.clone(), plan)).collect();
    state.signals = std::mem::take(&mut document.signals);
    state.key_space = document.key_space.take();
    state.runs = std::mem::take(&mut document.runs);
    state.pruned_runs = std::mem::take(&mut document.pruned_runs);
    state.events = std::mem::take(&mut document.events);
    let requests = std::mem::take(&mut document.requests).into_iter();
    state.requests = requests.map(|done| ((done.actor_key(), done.request.clone()), done)).collect();
    let undo = std::mem::take(&mut document.undo).into_iter();
    state.undo = undo.map(|kept| (kept.command.revision, kept)).collect();
    for (position, event) in state.events.iter().enumerate() {
        // Events of an edit name no single task; add them to the history of each task that they list.
        let edited = if let EventKind::ExternalEdit { tasks } = &event.kind { tasks.as_slice() } else { &[] };
        for key in event.task.iter().chain(edited).filter_map(|id| state.ids.get(id)) {
            state.history.push(*key, position);
        }
    }
}

/// Lets all gates take effect that the edit changed.
fn settle(state: &mut State, at: Timestamp) -> Result<(), String> {
    let actor = EDITOR.into();
    let context = Context {
        now: at,
        actor,
        kind: ActorKind::Unknown,
        run: None,
        origin: Origin::Library,
        policy_hook: None,
        redact: None,
    };
    let decision = decide(state, &Command::Settle, &context).map_err(|error| error.to_string())?;
    state.apply(decision.changes);
    Ok(())
}

/// Adds an event for the edit and returns its position.
fn note_edit(state: &mut State, tasks: Vec<TaskId>, at: Timestamp) -> usize {
    let position = state.events.len();
    for key in tasks.iter().filter_map(|id| state.ids.get(id)) {
        state.history.push(*key, position);
    }
    state.put_event(NewEvent {
        at,
        actor: EDITOR.into(),
        actor_kind: ActorKind::Unknown,
        run: None,
        task: None,
        kind: EventKind::ExternalEdit { tasks },
        ready: Box::default(),
    });
    position
}
