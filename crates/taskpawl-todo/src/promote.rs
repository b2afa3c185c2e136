//! To-do items become tasks of the plan: manual ones, for agents and people.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;
use serde_json::{Value, json};
use taskpawl_manager::{Error, Manager};
use taskpawl_model::{
    Command, Map, NewTask, Priority, Query, Refusal, Task, TaskId, TaskSpec, View, ViewResult, read_task,
};
use taskpawl_tools::content_hash;

use crate::dialect::Dialect;
use crate::list::{Item, ItemId, Urgency};
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

/// Items of a list that are to become manual tasks. The list stays as it is. An item becomes one task, however often this is asked
/// for, also where it has got another number since; of items that are called the same each becomes one of its own.
#[derive(Debug, Clone, Copy)]
pub struct Promotion<'a> {
    /// What kind of list it is.
    pub dialect: Dialect,
    /// Whose list it is.
    pub scope: &'a str,
    /// The whole list: which task an item is follows from which tasks the others are.
    pub items: &'a [Item],
    /// The places of the items that are to become tasks, as [`choose`] returns them.
    pub chosen: &'a [usize],
    /// The plan that the tasks join.
    pub plan: Option<&'a str>,
}

impl Promotion<'_> {
    /// Makes the tasks, and returns them in the order of the items that were chosen.
    ///
    /// # Errors
    /// A task is refused, or the store fails; tasks that were made before stay.
    ///
    /// # Concurrency
    /// Others may ask for the same at that time, in whatever process: an item becomes one task, and one of them is told that it is new.
    pub fn make(&self, manager: &Manager) -> Result<Vec<Promoted>, Error> {
        let mut tasks = BTreeMap::new();
        while !self.make_missing(manager, &mut tasks)? {}
        Ok(self.chosen.iter().filter_map(|place| tasks.remove(place)).collect())
    }

    /// Finds or makes the tasks that are missing in `tasks`. Returns false where somebody else was faster with one of them.
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

    /// Returns the ids that the items get that are no tasks yet, by their places: everybody who sees the same tasks gives them the same
    /// ones, and the store takes each once.
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
                if view.key(id.as_str())?.is_none() && view.deleted_id(id.as_str())?.is_none() {
                    break id;
                }
            };
            ids.insert(place, id);
        }
        Ok(ids)
    }

    /// Returns the id of one of the tasks that items of this title become.
    fn id(&self, title: &str, number: u64) -> TaskId {
        let origin = json!(["taskpawl todo", kept_as(self.dialect).as_str(), self.scope, title, number]);
        let hash = content_hash(origin.to_string().as_bytes());
        let bits = u128::from_str_radix(&hash[..32], 16).expect("BUG: a hash is written in hexadecimal");
        TaskId::from(uuid::Builder::from_custom_bytes(bits.to_be_bytes()).into_uuid().to_string())
    }

    /// Returns, in the order of the items that were chosen, the tasks that they are already, and nothing for those that would become
    /// one. Writes nothing.
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

    /// Returns which items are tasks already, by their places: first by id and title, and then by title alone, for lists whose items
    /// were numbered anew. A task that has ended is found by both alone: a list that follows another may ask for the same once more.
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

    /// Finds tasks for the places that have none, the oldest first and each once, by what `of_task` and `of_item` say.
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

/// Returns the places of the items that are called so, by id or else by title, each once; without names those of all that are
/// unfinished. A title that several items have names all of these.
///
/// # Errors
/// The first name that no item has.
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

/// Returns under which name a list is kept: that of the checklist has two.
fn kept_as(dialect: Dialect) -> Dialect {
    if dialect == Dialect::TodoList { Dialect::Checklist } else { dialect }
}

/// Returns the id and the title of the item that a task was.
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
