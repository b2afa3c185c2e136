//! Promotion of to-do items to manual tasks of the plan, for agents and people.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;
use serde_json::{Value, json};
use taskpawl_manager::{Error, Manager};
use taskpawl_model::command::{Command, NewTask, Refusal};
use taskpawl_model::task::{Priority, Task, TaskSpec};
use taskpawl_model::value::Map;
use taskpawl_model::value::TaskId;
use taskpawl_model::view::read_task;
use taskpawl_model::view::{Query, View, ViewResult};
use taskpawl_tools::content_hash;

use crate::dialect::Dialect;
use crate::list::{Item, ItemId, Urgency};
use crate::prompt::plain_title;

/// Label of tasks that were promoted from items.
const LABEL: &str = "todo";

/// Metadata field of a task that identifies the item.
const FIELD: &str = "todo";

/// Result for one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Promoted {
    /// Id of the task.
    pub id: TaskId,
    /// Name of the task.
    pub name: String,
    /// True if the task was created by this call. An item that was promoted before keeps its task.
    pub is_new: bool,
}

/// A promotion of items to manual tasks. It does not change the list. An item becomes one task, even if it is promoted
/// repeatedly or has been renumbered since. Several items with the same title become separate tasks.
#[derive(Debug, Clone, Copy)]
pub struct Promotion<'a> {
    /// Dialect of the list.
    pub dialect: Dialect,
    /// Scope of the list.
    pub scope: &'a str,
    /// All items of the list. The tasks of the other items determine which task belongs to an item.
    pub items: &'a [Item],
    /// Positions of the items to promote, as returned by [`choose`].
    pub chosen: &'a [usize],
    /// Plan that the tasks join.
    pub plan: Option<&'a str>,
}

impl Promotion<'_> {
    /// Creates the tasks, and returns them in the order of the chosen items.
    ///
    /// # Errors
    /// A task is refused, or the store fails. Tasks that were created before remain.
    ///
    /// # Concurrency
    /// Several processes may promote the same items at the same time: an item becomes one task, and only one caller is
    /// told that it is new.
    pub fn make(&self, manager: &Manager) -> Result<Vec<Promoted>, Error> {
        let mut tasks = BTreeMap::new();
        // Retried until no other process has created one of the tasks in between.
        while !self.make_missing(manager, &mut tasks)? {}
        Ok(self.chosen.iter().filter_map(|place| tasks.remove(place)).collect())
    }

    /// Finds or creates the tasks that are missing in `tasks`. Returns false if another process created one of them
    /// first.
    fn make_missing(&self, manager: &Manager, tasks: &mut BTreeMap<usize, Promoted>) -> Result<bool, Error> {
        let (mut known, mut ids) = manager.read(|view| {
            let known = self.known(view)?;
            let ids = self.next_ids(view, &known)?;
            Ok((known, ids))
        })?;
        for place in self.chosen {
            if tasks.contains_key(place) {
                continue;
            }
            if let Some(task) = known.remove(place) {
                tasks.insert(*place, task);
                continue;
            }
            let task = NewTask { id: ids.remove(place).unwrap_or_default(), ..self.new_task(*place) };
            let name = task.spec.name.clone();
            match manager.create(task) {
                Ok(id) => tasks.insert(*place, Promoted { id, name, is_new: true }),
                Err(error) if is_taken(&error) => return Ok(false),
                Err(error) => return Err(error),
            };
        }
        Ok(true)
    }

    /// Returns the ids for items without a task, by position. Processes that see the same tasks compute the same ids,
    /// and the store accepts each id only once.
    fn next_ids(
        &self,
        view: &dyn View,
        known: &BTreeMap<usize, Promoted>,
    ) -> ViewResult<BTreeMap<usize, TaskId>> {
        let (mut ids, mut numbers) = (BTreeMap::new(), BTreeMap::<&str, u64>::new());
        for (place, item) in self.items.iter().enumerate().filter(|(place, _)| !known.contains_key(place)) {
            let number = numbers.entry(&item.title).or_default();
            let id = loop {
                let id = self.id(&item.title, *number);
                *number += 1;
                // The id of a deleted task stays taken: its item becomes a new task with the next number.
                if view.key(id.as_str())?.is_none() && view.deleted_id(id.as_str())?.is_none() {
                    break id;
                }
            };
            ids.insert(place, id);
        }
        Ok(ids)
    }

    /// Returns the id of the task for the item with this title and number. It is a UUID that is derived from the list
    /// and the title.
    fn id(&self, title: &str, number: u64) -> TaskId {
        let origin = json!(["taskpawl todo", kept_as(self.dialect).as_str(), self.scope, title, number]);
        let hash = content_hash(origin.to_string().as_bytes());
        let bits = u128::from_str_radix(&hash[..32], 16).expect("BUG: a hash is written in hexadecimal");
        TaskId::from(uuid::Builder::from_custom_bytes(bits.to_be_bytes()).into_uuid().to_string())
    }

    /// Returns the existing tasks in the order of the chosen items, and `None` for those that would be created. Writes
    /// nothing.
    ///
    /// # Errors
    /// A task would be refused, or the store fails.
    pub fn preview(&self, manager: &Manager) -> Result<Vec<Option<Promoted>>, Error> {
        let mut known = manager.read(|view| Ok(self.known(view)?))?;
        let one = |place: &usize| {
            let was = known.remove(place);
            if was.is_none() {
                let id = TaskId::from(manager.source().new_id());
                manager.preview(Command::Create(Box::new(NewTask { id, ..self.new_task(*place) })))?;
            }
            Ok(was)
        };
        self.chosen.iter().map(one).collect()
    }

    /// Returns the existing tasks of items, by position. Compares id and title first, then the title alone, because
    /// lists may have been renumbered. Finished tasks only match by both: a new list may ask for the same work again.
    fn known(&self, view: &dyn View) -> ViewResult<BTreeMap<usize, Promoted>> {
        let mut tasks = Vec::new();
        for key in view.find(&Query { labels: vec![LABEL.to_owned()], ..Query::default() })? {
            tasks.extend(read_task(view, key)?);
        }
        tasks.retain(|task| self.is_of_this_list(task));
        let mut found = BTreeMap::new();
        let by_mark = |task: &Task| Some(mark_of(task));
        self.assign(&tasks, &mut found, by_mark, |item| (item.id.to_string(), item.title.clone()));
        let by_title = |task: &Task| (!task.status.is_finished()).then(|| mark_of(task).1);
        self.assign(&tasks, &mut found, by_title, |item| item.title.clone());
        let task = |index: usize| Promoted {
            id: tasks[index].id.clone(),
            name: tasks[index].name.clone(),
            is_new: false,
        };
        Ok(found.into_iter().map(|(place, index)| (place, task(index))).collect())
    }

    /// Assigns tasks to positions without one, the oldest first and each task once, by equal keys.
    fn assign<K: Ord>(
        &self,
        tasks: &[Task],
        found: &mut BTreeMap<usize, usize>,
        of_task: impl Fn(&Task) -> Option<K>,
        of_item: impl Fn(&Item) -> K,
    ) {
        let taken: BTreeSet<usize> = found.values().copied().collect();
        let mut by_key: BTreeMap<K, VecDeque<usize>> = BTreeMap::new();
        for (index, task) in tasks.iter().enumerate().filter(|(index, _)| !taken.contains(index)) {
            if let Some(key) = of_task(task) {
                by_key.entry(key).or_default().push_back(index);
            }
        }
        for (place, item) in self.items.iter().enumerate() {
            if !found.contains_key(&place)
                && let Some(index) = by_key.get_mut(&of_item(item)).and_then(VecDeque::pop_front)
            {
                found.insert(place, index);
            }
        }
    }

    fn is_of_this_list(&self, task: &Task) -> bool {
        let Some(mark) = task.metadata.extra.get(FIELD) else { return false };
        let dialect = mark["dialect"].as_str().and_then(Dialect::from_word).map(kept_as);
        dialect == Some(kept_as(self.dialect)) && mark["scope"] == self.scope
    }

    fn new_task(&self, place: usize) -> NewTask {
        let item = &self.items[place];
        let mark = json!({
            "dialect": kept_as(self.dialect).as_str(), "scope": self.scope, "id": item.id, "title": item.title,
        });
        NewTask { spec: spec(item, mark), plan: self.plan.map(str::to_owned), ..NewTask::default() }
    }
}

fn is_taken(error: &Error) -> bool {
    matches!(error, Error::Refused(refusal) if matches!(**refusal, Refusal::DuplicateId { .. }))
}

/// Returns the positions of the named items, by id or else by title, each once. Without names, returns those of all
/// unfinished items. A title that several items share selects all of them.
///
/// # Errors
/// The first name that matches no item.
pub fn choose(items: &[Item], names: &[String]) -> Result<Vec<usize>, String> {
    let all = |is_meant: &dyn Fn(&Item) -> bool| -> Vec<usize> {
        (0..items.len()).filter(|place| is_meant(&items[*place])).collect()
    };
    if names.is_empty() {
        return Ok(all(&Item::is_unfinished));
    }
    let mut places: Vec<usize> = Vec::new();
    for name in names {
        let mut found = all(&|item| item.id.to_string() == *name);
        if found.is_empty() {
            found = all(&|item| item.title == *name);
        }
        if found.is_empty() {
            return Err(name.clone());
        }
        found.retain(|place| !places.contains(place));
        places.extend(found);
    }
    Ok(places)
}

/// Returns the canonical dialect: the checklist has two names.
fn kept_as(dialect: Dialect) -> Dialect {
    if dialect == Dialect::TodoList { Dialect::Checklist } else { dialect }
}

/// Returns the id and the title of the item that a task was promoted from.
fn mark_of(task: &Task) -> (String, String) {
    let mark = task.metadata.extra.get(FIELD).unwrap_or(&Value::Null);
    let id = ItemId::read(&mark["id"]).map(|id| id.to_string()).unwrap_or_default();
    (id, mark["title"].as_str().unwrap_or_default().to_owned())
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
