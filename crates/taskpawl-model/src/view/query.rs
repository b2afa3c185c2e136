//! Conditions on tasks and events.

use serde::{Deserialize, Serialize};

use crate::task::event::Event;
use crate::task::record::{Node, TaskRecord, Work};
use crate::task::spec::Priority;
use crate::task::status::Status;
use crate::value::Timestamp;
use crate::value::{Key, RunId, TaskId};

/// Conditions on tasks. An empty field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Query {
    /// With one of these statuses.
    pub status: Vec<Status>,
    /// Ready, and ended by one of these actors. The order is then priority, due date and age, instead of age alone.
    pub ready: Option<Vec<Work>>,
    /// With this assignee.
    pub assignee: Option<String>,
    /// With this assignee, or with none.
    pub free_for: Option<String>,
    /// With one of these priorities.
    pub priority: Vec<Priority>,
    /// With all of these labels.
    pub labels: Vec<String>,
    /// Created by this plan.
    pub plan: Option<String>,
    /// Direct subtasks of this task.
    pub parent: Option<Key>,
    /// With this text in the id, name or description, ignoring case.
    pub text: Option<String>,
    /// The maximum number of results; 0 for all.
    pub limit: usize,
    /// The number of results to skip.
    pub offset: usize,
}

impl Query {
    /// Returns the search text in the form that [`Query::is_match`] takes.
    pub fn search_text(&self) -> Option<SearchText> {
        self.text.as_deref().map(SearchText::new)
    }

    /// Returns whether a task matches. `text` is [`Query::search_text`], made once for all tasks.
    pub fn is_match(&self, node: &Node, task: &TaskRecord, text: Option<&SearchText>) -> bool {
        let spec = &task.spec;
        let is_free_for = |actor| spec.assignee.as_ref().is_none_or(|assignee| assignee == actor);
        is_any(&self.status, &node.status_kind.status())
            && is_any(&self.priority, &spec.priority)
            && self.ready.as_ref().is_none_or(|works| node.is_ready() && is_any(works, &node.work))
            && self.assignee.as_ref().is_none_or(|assignee| spec.assignee.as_ref() == Some(assignee))
            && self.free_for.as_ref().is_none_or(is_free_for)
            && self.plan.as_ref().is_none_or(|plan| task.plan.as_deref() == Some(plan.as_str()))
            && self.parent.is_none_or(|parent| node.parent == Some(parent))
            && self.labels.iter().all(|label| spec.labels.contains(label))
            && text.is_none_or(|text| text.is_in(&[task.id.as_str(), &spec.name, &spec.description]))
    }
}

/// Returns whether `value` is in the list. An empty list accepts any value.
fn is_any<T: PartialEq>(wanted: &[T], value: &T) -> bool {
    wanted.is_empty() || wanted.contains(value)
}

/// A search text, compared without regard to case.
#[derive(Debug)]
pub struct SearchText(String);

impl SearchText {
    /// Returns the search text for `text`.
    pub fn new(text: &str) -> Self {
        Self(text.to_lowercase())
    }

    /// Returns whether it occurs in one of `texts`.
    pub fn is_in(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| text.to_lowercase().contains(&self.0))
    }
}

/// Conditions on events. An absent field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventQuery {
    /// After this revision.
    pub after: u64,
    /// Up to and including this revision.
    pub until: Option<u64>,
    /// Of the task with this key.
    pub task: Option<Key>,
    /// Of tasks with this id, including deleted ones. There is no index on it, so all events are scanned.
    pub task_id: Option<TaskId>,
    /// By this actor.
    pub actor: Option<String>,
    /// In this run.
    pub run: Option<RunId>,
    /// Of this kind, by the word of its `type`. There is no index on it, so all events are scanned.
    pub kind: Option<String>,
    /// At this time or later.
    pub since: Option<Timestamp>,
    /// The maximum number of results; 0 for all.
    pub limit: usize,
    /// True to return the last matches instead of the first.
    pub latest: bool,
}

impl EventQuery {
    /// Returns whether an event matches. The task by key, the limit and the order are left to the caller: events do
    /// not record the key.
    pub fn is_match(&self, event: &Event) -> bool {
        event.revision > self.after
            && self.until.is_none_or(|until| event.revision <= until)
            && self.task_id.as_ref().is_none_or(|id| event.task.as_ref() == Some(id))
            && self.actor.as_ref().is_none_or(|actor| event.actor == *actor)
            && self.run.as_ref().is_none_or(|run| event.run.as_ref() == Some(run))
            && self.kind.as_ref().is_none_or(|kind| event.kind.name() == kind)
            && self.since.is_none_or(|since| event.at >= since)
    }
}
