//! To-do items become tasks of the plan: manual ones, for agents and people.

use serde::Serialize;
use serde_json::{Value, json};
use taskpawl_manager::{Error, Manager};
use taskpawl_model::{Map, NewTask, Priority, Query, TaskId, TaskSpec};

use crate::dialect::Dialect;
use crate::list::{Item, Urgency};
use crate::prompt::plain_title;

/// The label of tasks that were items.
const LABEL: &str = "todo";

/// The field of a task's metadata that says which item it was.
const FIELD: &str = "todo";

/// What became of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Promoted {
    /// The task.
    pub id: TaskId,
    /// What is to be done.
    pub name: String,
    /// Whether the task was made now; an item that was promoted before stays the task that it is.
    pub is_new: bool,
}

/// Turns items of a list into manual tasks, in `plan` where one is named. The list stays as it is. An item becomes one task, however
/// often this is asked for.
///
/// # Errors
/// A task is refused, or the store fails; tasks that were made before stay.
pub fn promote(
    manager: &Manager,
    dialect: Dialect,
    scope: &str,
    items: &[Item],
    plan: Option<&str>,
) -> Result<Vec<Promoted>, Error> {
    let known = manager.list(&Query { labels: vec![LABEL.to_owned()], ..Query::default() })?.tasks;
    let one = |item: &Item| {
        let mark = mark(dialect, scope, item);
        let was = known.iter().find(|task| task.metadata.extra.get(FIELD) == Some(&mark));
        if let Some(task) = was {
            return Ok(Promoted { id: task.id.clone(), name: task.name.clone(), is_new: false });
        }
        let spec = spec(item, mark);
        let name = spec.name.clone();
        let plan = plan.map(str::to_owned);
        let id = manager.create(NewTask { spec, plan, ..NewTask::default() })?;
        Ok(Promoted { id, name, is_new: true })
    };
    items.iter().map(one).collect()
}

/// Returns the items that are called so, by id or title, each once; without names all that are unfinished.
///
/// # Errors
/// The first name that no item has.
pub fn choose(items: &[Item], names: &[String]) -> Result<Vec<Item>, String> {
    if names.is_empty() {
        return Ok(items.iter().filter(|item| item.is_unfinished()).cloned().collect());
    }
    let mut places: Vec<usize> = Vec::new();
    for name in names {
        let is_meant = |item: &Item| item.id.to_string() == *name || item.title == *name;
        let place = items.iter().position(is_meant).ok_or_else(|| name.clone())?;
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Ok(places.into_iter().map(|place| items[place].clone()).collect())
}

/// Says which item it is. Where a dialect has no ids, or uses them again, the title tells items apart.
fn mark(dialect: Dialect, scope: &str, item: &Item) -> Value {
    json!({"dialect": dialect.as_str(), "scope": scope, "id": item.id, "title": item.title})
}

fn spec(item: &Item, mark: Value) -> TaskSpec {
    let priority = match item.urgency {
        Some(Urgency::High) => Priority::High,
        Some(Urgency::Low) => Priority::Low,
        Some(Urgency::Medium) | None => Priority::Medium,
    };
    TaskSpec {
        name: plain_title(&item.title),
        description: item.description.clone(),
        priority,
        labels: vec![LABEL.to_owned()],
        metadata: Map::from_iter([(FIELD.to_owned(), mark)]),
        ..TaskSpec::default()
    }
}
