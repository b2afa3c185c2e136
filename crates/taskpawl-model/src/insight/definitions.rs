//! Definitions of tasks before a command and now, for differences.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::plan::{expand_call, spec_fields};
use crate::task::{CallRecord, CallSpec, NewCall, TaskSpec};
use crate::value::{CallId, Key, Shared, TaskId};
use crate::view::{DeletedTask, TaskSnapshot, UndoSnapshot, View, ViewResult};

/// A task whose definition a command created, changed or removed.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionChange {
    /// Id of the task.
    pub id: TaskId,
    /// Definition before the command, in the long form of plan files; `None` if the command created the task.
    pub before: Option<Value>,
    /// Definition now, with what later commands changed in it; `None` if the task is gone.
    pub now: Option<Value>,
}

/// Returns the tasks whose definitions differ between now and the time before the command with an event of `revision`, in the order of
/// their creation; `None` if that command has no undo data, or no longer.
///
/// # Errors
/// The view cannot be read.
pub fn definition_changes(view: &dyn View, revision: u64) -> ViewResult<Option<Vec<DefinitionChange>>> {
    let Some(command) = view.undoables(revision, revision)?.into_iter().next() else { return Ok(None) };
    let Some(snapshot) = view.undo_snapshot(command.revision)? else { return Ok(None) };
    let created: BTreeSet<Key> = snapshot.created_keys().collect();
    let mut changes = Vec::new();
    for key in snapshot.keys() {
        let now = Definition::now(view, key)?;
        let before = match &now {
            _ if created.contains(&key) => None,
            Some(now) => Some(now.before(&snapshot, key)),
            None => snapshot.deleted.iter().find(|task| task.key == key).map(Definition::deleted),
        };
        let Some(id) = now.as_ref().or(before.as_ref()).map(|known| known.id.clone()) else { continue };
        let value = |known: Option<Definition>| known.map(|known| known.into_value(view)).transpose();
        let (before, now) = (value(before)?, value(now)?);
        if before != now {
            changes.push(DefinitionChange { id, before, now });
        }
    }
    Ok(Some(changes))
}

/// The fields of a task that its author wrote.
#[derive(Clone)]
struct Definition {
    id: TaskId,
    spec: Shared<TaskSpec>,
    calls: Vec<(CallId, Shared<CallSpec>)>,
    needs: Vec<Key>,
    parent: Option<Key>,
}

impl Definition {
    fn now(view: &dyn View, key: Key) -> ViewResult<Option<Self>> {
        let (Some(record), Some(node)) = (view.task(key)?, view.node(key)?) else { return Ok(None) };
        let (calls, needs) = (written(&view.calls(key)?), view.dependencies(key)?);
        Ok(Some(Self { id: record.id, spec: record.spec, calls, needs, parent: node.parent }))
    }

    fn deleted(task: &DeletedTask) -> Self {
        let (id, spec) = (task.record.id.clone(), task.record.spec.clone());
        Self { id, spec, calls: written(&task.calls), needs: task.dependencies.clone(), parent: task.parent }
    }

    /// Returns the definition with the changes of a command taken back.
    fn before(&self, snapshot: &UndoSnapshot, key: Key) -> Self {
        let mut before = self.clone();
        if let Some(task) = snapshot.tasks.iter().find(|task| task.key == key) {
            before.restore(task);
        }
        before.needs.retain(|on| !snapshot.added.contains(&(key, *on)));
        before.needs.extend(snapshot.removed.iter().filter(|(task, _)| *task == key).map(|(_, on)| *on));
        if let Some((_, parent)) = snapshot.parents.iter().find(|(task, _)| *task == key) {
            before.parent = *parent;
        }
        before
    }

    fn restore(&mut self, task: &TaskSnapshot) {
        if let Some(spec) = &task.spec {
            self.spec = spec.clone().into();
        }
        let mut first_added = usize::MAX;
        for (position, call) in &task.calls {
            let position = usize::try_from(*position).unwrap_or(usize::MAX);
            match call {
                Some(call) if position < self.calls.len() => {
                    self.calls[position] = (call.id.clone(), call.spec.clone());
                }
                Some(call) => self.calls.push((call.id.clone(), call.spec.clone())),
                None => first_added = first_added.min(position),
            }
        }
        self.calls.truncate(first_added);
    }

    fn into_value(self, view: &dyn View) -> ViewResult<Value> {
        let mut fields = spec_fields(&self.spec);
        let calls = self
            .calls
            .iter()
            .map(|(id, spec)| expand_call(&NewCall { id: Some(id.clone()), spec: spec.clone() }));
        let calls: Vec<Value> = calls.collect();
        let needs = self.needs.iter().map(|key| view.id(*key)).collect::<ViewResult<BTreeSet<_>>>()?;
        let needs: Vec<TaskId> = needs.into_iter().flatten().collect();
        let parent = self.parent.map(|key| view.id(key)).transpose()?.flatten();
        let all = [
            ("id", json!(self.id)),
            ("parent", json!(parent)),
            ("dependencies", json!(needs)),
            ("toolCalls", json!(calls)),
            ("metadata", json!(self.spec.metadata)),
        ];
        let is_empty = |value: &Value| value.is_null() || *value == json!([]) || *value == json!({});
        let all = all.into_iter().filter(|(_, value)| !is_empty(value));
        fields.extend(all.map(|(field, value)| (field.to_owned(), value)));
        Ok(Value::Object(fields))
    }
}

fn written(calls: &[CallRecord]) -> Vec<(CallId, Shared<CallSpec>)> {
    calls.iter().map(|call| (call.id.clone(), call.spec.clone())).collect()
}
