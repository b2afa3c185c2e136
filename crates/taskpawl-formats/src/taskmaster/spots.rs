//! The numbers of tasks in a file of Task Master.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;

use serde_json::Value;
use taskpawl_model::task::Task;
use taskpawl_model::value::TaskId;

use super::raw::Raw;
use super::words::{FORMAT, tag_of};
use crate::existing_document::{ExistingDocument, text_of};
use crate::preserved::{kept, take_away};
use crate::reading::LeftOut;

/// The position of a task in the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) tag: String,
    /// The number of the top-level task, and that of the subtask in it. A file may have other texts there.
    pub(super) top: String,
    pub(super) below: Option<String>,
}

impl Spot {
    pub(super) fn number(&self) -> String {
        self.below.as_ref().map_or_else(|| self.top.clone(), |below| format!("{}.{below}", self.top))
    }
}

/// The positions of tasks.
#[derive(Default)]
pub(super) struct Spots {
    by_id: BTreeMap<TaskId, Spot>,
    taken: BTreeSet<Spot>,
}

impl Spots {
    fn insert(&mut self, id: TaskId, spot: Spot) {
        self.taken.insert(spot.clone());
        self.by_id.insert(id, spot);
    }

    pub(super) fn get(&self, id: &TaskId) -> Option<&Spot> {
        self.by_id.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&TaskId, &Spot)> {
        self.by_id.iter()
    }

    /// Returns true if a subtask has a sibling with the number of `other`: a link without a dot would mean that one.
    pub(super) fn has_sibling(&self, spot: &Spot, other: &Spot) -> bool {
        self.taken.contains(&Spot { below: Some(other.top.clone()), ..spot.clone() })
    }
}

impl Index<&TaskId> for Spots {
    type Output = Spot;

    fn index(&self, id: &TaskId) -> &Spot {
        &self.by_id[id]
    }
}

/// Assigns a position to every task: the present one, or else the next free number. Deeper subtasks go below their top-level task.
pub(super) fn spots(
    tasks: &[&Task],
    document: &ExistingDocument<'_>,
    raw: &Raw,
    left_out: &mut Vec<LeftOut>,
) -> Spots {
    let by_id: BTreeMap<&TaskId, &Task> = tasks.iter().map(|task| (&task.id, *task)).collect();
    let mut numbers = Numbers::of(document, raw);
    let tops: BTreeMap<&TaskId, &TaskId> =
        tasks.iter().map(|task| (&task.id, top_of(task, &by_id))).collect();
    // All numbers are reserved before the first new one is chosen, so that no new task gets the number of a later one.
    for task in tasks {
        let tag = tag_of(by_id[tops[&task.id]]);
        numbers.reserve(task, &tag, tops[&task.id] == &task.id);
    }
    let mut spots = Spots::default();
    for task in tasks.iter().filter(|task| tops[&task.id] == &task.id) {
        let tag = tag_of(task);
        let top = numbers.top(task, &tag);
        spots.insert(task.id.clone(), Spot { tag, top, below: None });
    }
    for task in tasks.iter().filter(|task| tops[&task.id] != &task.id) {
        numbers.reserve_beside(task, &spots[tops[&task.id]]);
    }
    for task in tasks.iter().filter(|task| tops[&task.id] != &task.id) {
        let above = spots[tops[&task.id]].clone();
        let below = numbers.below(task, &above);
        if task.parent.as_ref() != Some(tops[&task.id]) {
            let why =
                format!("Task Master has one level of subtasks: it is written below `{}`", tops[&task.id]);
            left_out.push(LeftOut::new(format!("{}: parent", task.id), why));
        }
        spots.insert(task.id.clone(), Spot { below: Some(below), ..above });
    }
    spots
}

fn top_of<'t>(task: &'t Task, by_id: &BTreeMap<&'t TaskId, &'t Task>) -> &'t TaskId {
    let mut top = task;
    // Circular parents come from no store, but must not loop forever.
    for _ in 0..by_id.len() {
        match top.parent.as_ref().and_then(|parent| by_id.get(parent)) {
            Some(parent) => top = parent,
            None => break,
        }
    }
    &top.id
}

/// Returns the number that the task has in the file, or else the one in its id.
fn number_of(task: &Task, document: Option<&ExistingDocument<'_>>) -> Option<(String, Option<String>)> {
    if let Some(number) = document.and_then(|document| number_in(task, document)) {
        return Some(number);
    }
    let kept = kept(task, FORMAT);
    let text = kept.get("id").and_then(Value::as_str).unwrap_or(task.id.as_str()).to_owned();
    let (top, below) = match text.split_once('.') {
        Some((top, below)) => (top, Some(below.parse().ok()?)),
        None => (text.as_str(), None),
    };
    let number = (top.parse::<u64>().ok()?, below);
    // Only a canonical number can be restored: `01` would come back as `1`.
    let again = number.1.map_or_else(|| number.0.to_string(), |below: u64| format!("{}.{below}", number.0));
    (again == text).then(|| (number.0.to_string(), number.1.map(|below| below.to_string())))
}

/// Returns the number that the task has in the file, as it stands there.
fn number_in(task: &Task, document: &ExistingDocument<'_>) -> Option<(String, Option<String>)> {
    let (name, there) = (document.name(&task.id)?, document.task(&task.id)?);
    let above = there.parent.as_ref().and_then(|parent| document.name(parent));
    let below = above.and_then(|above| Some((above, name.strip_prefix(above)?.strip_prefix('.')?)));
    Some(match below {
        Some((above, below)) => (above.to_owned(), Some(below.to_owned())),
        None => (name.to_owned(), None),
    })
}

/// Returns the preserved links of a task that lead out of its file.
fn links_away(task: &Task) -> Vec<String> {
    take_away(&mut kept(task, FORMAT), "dependencies").iter().map(text_of).collect()
}

/// Numbers in use, by tag and top-level task.
#[derive(Default)]
struct Numbers<'t> {
    document: Option<&'t ExistingDocument<'t>>,
    given: BTreeSet<(String, String)>,
    reserved: BTreeSet<(String, String)>,
    reserved_below: BTreeSet<(String, String, String)>,
    below: BTreeSet<(String, String, String)>,
    /// The numbers of the records in the file.
    of_others: BTreeSet<(String, String)>,
    of_others_below: BTreeSet<(String, String, String)>,
    /// The first number that may be free, by tag and, for subtasks, by top-level task.
    next: BTreeMap<(String, Option<String>), u64>,
}

impl<'t> Numbers<'t> {
    fn of(document: &'t ExistingDocument<'t>, raw: &Raw) -> Self {
        let mut numbers = Self { document: Some(document), ..Self::default() };
        for (tag, number) in &raw.numbers {
            numbers.reserve_number(tag, number);
        }
        numbers.of_others.clone_from(&numbers.reserved);
        numbers.of_others_below.clone_from(&numbers.reserved_below);
        numbers
    }

    fn reserve_number(&mut self, tag: &str, number: &str) {
        let tag = tag.to_owned();
        match number.split_once('.') {
            Some((top, below)) => {
                self.reserved_below.insert((tag, top.to_owned(), below.to_owned()));
            }
            None => {
                self.reserved.insert((tag, number.to_owned()));
            }
        }
    }

    /// Returns true if a record of the file has the number, and not the task.
    fn is_of_other(&self, task: &Task, tag: &str, top: &str, below: Option<&str>) -> bool {
        let is_its_own = self.document.is_some_and(|document| document.name(&task.id).is_some());
        !is_its_own
            && match below {
                Some(below) => {
                    self.of_others_below.contains(&(tag.to_owned(), top.to_owned(), below.to_owned()))
                }
                None => self.of_others.contains(&(tag.to_owned(), top.to_owned())),
            }
    }

    fn reserve(&mut self, task: &Task, tag: &str, is_top: bool) {
        if let (true, Some((number, None))) = (is_top, number_of(task, self.document)) {
            self.reserved.insert((tag.to_owned(), number));
        }
        // A preserved link to a missing task must not start to point to a new one.
        for link in links_away(task) {
            self.reserve_number(tag, &link);
        }
    }

    /// Like [`reserve`](Self::reserve), for links of a subtask: there, a number means a sibling.
    fn reserve_beside(&mut self, task: &Task, above: &Spot) {
        let links = links_away(task).into_iter();
        self.reserved_below.extend(links.map(|number| (above.tag.clone(), above.top.clone(), number)));
    }

    fn top(&mut self, task: &Task, tag: &str) -> String {
        if let Some((number, None)) = number_of(task, self.document)
            && !self.is_of_other(task, tag, &number, None)
            && self.given.insert((tag.to_owned(), number.clone()))
        {
            return number;
        }
        let next = self.next.entry((tag.to_owned(), None)).or_insert(1);
        loop {
            let place = (tag.to_owned(), next.to_string());
            *next += 1;
            if !self.reserved.contains(&place) && self.given.insert(place.clone()) {
                return place.1;
            }
        }
    }

    fn below(&mut self, task: &Task, above: &Spot) -> String {
        if let Some((top, Some(number))) = number_of(task, self.document)
            && top == above.top
            && !self.is_of_other(task, &above.tag, &top, Some(&number))
            && self.below.insert((above.tag.clone(), top, number.clone()))
        {
            return number;
        }
        let next = self.next.entry((above.tag.clone(), Some(above.top.clone()))).or_insert(1);
        loop {
            let place = (above.tag.clone(), above.top.clone(), next.to_string());
            *next += 1;
            if !self.reserved_below.contains(&place) && self.below.insert(place.clone()) {
                return place.2;
            }
        }
    }
}
