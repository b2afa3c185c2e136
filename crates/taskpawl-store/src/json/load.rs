//! From the content of the file to a state, with everything that is derived.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::{
    ActorKind, Command, Context, EdgeChange, EventKind, Graph, Key, NewEvent, Node, Origin, Task, TaskId,
    TaskParts, Timestamp, decide, rebuild_nodes,
};

use super::document::{Document, seal};
use crate::derived::node_of;
use crate::memory::{Entry, State};

/// In whose name events are that follow from an edit of the file.
const EDITOR: &str = "an edit of the file";

/// Returns the state of `document`. If its tasks were edited from outside since a store wrote them, the state has an event that
/// says so, as of `changed_at`: the same for all who read the file before the next write.
///
/// # Errors
/// Says what does not fit.
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
        // A live run learns from it what to look at. What was ready before is no harm: the run knows it.
        state.events[edit].ready = state.ready.iter().map(|(.., key)| *key).collect();
    }
    Ok(state)
}

/// Checks that there is room to count on from every number.
///
/// # Errors
/// Says which number is too large.
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

/// Returns the tasks that are not as a store wrote them, those that are gone included.
pub(super) fn edited(document: &Document) -> Vec<TaskId> {
    let marks = &document.index.tasks;
    let changed =
        document.tasks.iter().filter(|task| marks.get(&task.id).is_none_or(|mark| mark.seal != seal(task)));
    let present: BTreeSet<_> = document.tasks.iter().map(|task| &task.id).collect();
    let gone = marks.keys().filter(|id| !present.contains(id));
    changed.map(|task| task.id.clone()).chain(gone.cloned()).collect()
}

/// Returns the key of each task: the one that it had, or a fresh one.
fn keys_of(document: &mut Document, tasks: &[Task]) -> Result<BTreeMap<TaskId, Key>, String> {
    let index = &mut document.index;
    let highest = index.tasks.values().map(|mark| mark.key.0.saturating_add(1)).max().unwrap_or(0);
    index.next_key = index.next_key.max(highest);
    let mut keys = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for task in tasks {
        let key = index.tasks.get(&task.id).map_or(Key(index.next_key), |mark| mark.key);
        index.next_key = index.next_key.max(key.0.saturating_add(1));
        if keys.insert(task.id.clone(), key).is_some() {
            return Err(format!("there are two tasks `{}`", task.id));
        }
        if !taken.insert(key) {
            return Err(format!("task `{}` has the key of another one", task.id));
        }
    }
    Ok(keys)
}

/// The edges by key. An edit may name one twice: it is still one.
#[derive(Debug, Default)]
struct Edges {
    dependencies: BTreeSet<(Key, Key)>,
    parents: BTreeMap<Key, Key>,
}

impl Edges {
    /// An edit may name a subtask at either end.
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
            Some(other) if other != parent => Err(format!("task `{id}` is below two tasks")),
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

/// Checks that no task waits for itself.
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
            Err(format!("tasks wait for one another in a circle: {}", ids.join(", ")))
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
    state.key_space = document.key_space.take();
    state.runs = std::mem::take(&mut document.runs);
    state.pruned_runs = std::mem::take(&mut document.pruned_runs);
    state.events = std::mem::take(&mut document.events);
    let requests = std::mem::take(&mut document.requests).into_iter();
    state.requests = requests.map(|done| ((done.actor_key(), done.request.clone()), done)).collect();
    let undo = std::mem::take(&mut document.undo).into_iter();
    state.undo = undo.map(|kept| (kept.command.revision, kept)).collect();
    for (position, event) in state.events.iter().enumerate() {
        // An edit of the file is part of the history of each task that it changed.
        let edited = if let EventKind::ExternalEdit { tasks } = &event.kind { tasks.as_slice() } else { &[] };
        for key in event.task.iter().chain(edited).filter_map(|id| state.ids.get(id)) {
            state.history.push(*key, position);
        }
    }
}

/// Lets every gate take effect that the edit touched.
fn settle(state: &mut State, at: Timestamp) -> Result<(), String> {
    let actor = EDITOR.into();
    let context = Context {
        now: at,
        actor,
        kind: ActorKind::Unknown,
        run: None,
        origin: Origin::Library,
        gatekeeper: None,
    };
    let decision = decide(state, &Command::Settle, &context).map_err(|error| error.to_string())?;
    state.apply(decision.changes);
    Ok(())
}

/// Returns the position of the event.
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
