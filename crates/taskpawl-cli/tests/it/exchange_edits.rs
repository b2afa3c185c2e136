//! Random edits on both sides of a file: no status moves to another text, and a second exchange changes nothing.

mod files;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use taskpawl_fuzz::is_due;

use crate::harness::Cli;
use files::{Edited, FILES, Item};

/// A generator of numbers: the same edits in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    /// Returns a list of items, and a place in it: the whole list, or the subtasks of one of its items.
    fn list<'i>(&mut self, items: &'i mut Vec<Item>) -> (&'i mut Vec<Item>, usize) {
        let above = self.below(2 * items.len());
        let has_subtasks = items.get(above).is_some_and(|item| !item.below.is_empty());
        let list = if has_subtasks { &mut items[above].below } else { items };
        let place = self.below(list.len());
        (list, place)
    }
}

fn name(number: usize) -> String {
    let words = ["parser", "книга", "項目", "größe", "release", "index"];
    format!(
        "{} number{number} of the {} list",
        words[number % words.len()],
        words[(number / 2) % words.len()]
    )
}

fn new_item(next: &mut usize) -> Item {
    *next += 1;
    Item::new(*next - 1, name(*next - 1))
}

/// Edits a file as its own program does: an item is done, moved, renamed, added, given a subtask, or removed.
fn edit(items: &mut Vec<Item>, has_subtasks: bool, random: &mut Random, next: &mut usize) {
    let top = random.below(items.len());
    let is_last = items.len() <= 3;
    let (list, place) = random.list(items);
    match random.below(7) {
        0 => list[place].is_done = true,
        1 => {
            let item = list.remove(place);
            list.insert(random.below(list.len() + 1), item);
        }
        2 => {
            // More than half of the words stay.
            let text = list[place].text.replace("list", "checklist");
            list[place].text = text;
        }
        4 | 5 if has_subtasks => items[top].below.push(new_item(next)),
        3..=5 => list.insert(place, new_item(next)),
        _ => drop((!is_last).then(|| items.remove(top))),
    }
}

/// The other side of a file: tasks that remember its items.
trait Store {
    /// Marks the task with this text as done. Returns false if there is none that may be done.
    fn finish(&mut self, text: &str) -> bool;

    /// Creates a task below the one with this text. Returns false if that is not possible.
    fn create_below(&mut self, parent: &str, name: &str) -> bool;

    /// Imports the file and exports the tasks into it. Returns the number of records that were left out.
    fn exchange(&mut self) -> usize;

    /// Returns whether the tasks with a text are done.
    fn is_done(&self) -> BTreeMap<String, Vec<bool>>;

    /// Imports and exports again. Returns what changed here, which is nothing.
    fn exchange_again(&mut self) -> Value;
}

/// The tasks of taskpawl.
struct Tasks {
    cli: Cli,
    format: &'static str,
    path: &'static str,
}

impl Tasks {
    fn all(&self) -> BTreeMap<String, Vec<(String, String)>> {
        let run = self.cli.run(&["list", "--json", "--limit", "0"]).ok();
        let mut all: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for task in run.json()["data"].as_array().unwrap() {
            let text = |field: &str| task[field].as_str().unwrap().to_owned();
            all.entry(bare(&text("name")).to_owned()).or_default().push((text("id"), text("status")));
        }
        all
    }

    /// Returns the id of the only task with a text, if that is `todo`.
    fn todo(&self, text: &str) -> Option<String> {
        match self.all().get(text).map(Vec::as_slice) {
            Some([(id, status)]) if status == "todo" => Some(id.clone()),
            _ => None,
        }
    }
}

/// Returns a name without the number that a line of `OpenSpec` or Kiro begins with.
fn bare(name: &str) -> &str {
    let is_number = |word: &str| word.trim_end_matches('.').replace('.', "").parse::<usize>().is_ok();
    name.split_once(' ').filter(|(first, _)| is_number(first)).map_or(name, |(_, rest)| rest)
}

impl Store for Tasks {
    fn finish(&mut self, text: &str) -> bool {
        self.todo(text).is_some_and(|id| self.cli.run(&["done", &id]).code == Some(0))
    }

    fn create_below(&mut self, parent: &str, name: &str) -> bool {
        self.todo(parent).is_some_and(|id| self.cli.run(&["add-subtask", &id, name]).code == Some(0))
    }

    fn exchange(&mut self) -> usize {
        let run = self.cli.run(&["import", self.format, self.path, "--json"]).ok();
        let left_out = run.json()["data"]["leftOut"].as_array().unwrap().len();
        self.cli.run(&["export", self.format, self.path]).ok();
        left_out
    }

    fn is_done(&self) -> BTreeMap<String, Vec<bool>> {
        let is_done =
            |tasks: Vec<(String, String)>| tasks.iter().map(|(_, status)| status == "done").collect();
        self.all().into_iter().map(|(text, tasks)| (text, is_done(tasks))).collect()
    }

    fn exchange_again(&mut self) -> Value {
        let run = self.cli.run(&["import", self.format, self.path, "--json"]).ok();
        self.cli.run(&["export", self.format, self.path]).ok();
        let report = run.json();
        json!({ "created": report["data"]["created"], "changed": report["data"]["changed"] })
    }
}

/// Exchanges a file with random edits on both sides. Returns the first item that lost its status or its text.
fn exchange(edited: &Edited, path: &Path, store: &mut dyn Store, seed: u64) -> Result<(), String> {
    let (mut random, mut next) = (Random(seed), 1);
    let mut first: Vec<Item> = (0..8).map(|_| new_item(&mut next)).collect();
    first.iter_mut().filter(|item| item.id % 3 == 0).for_each(|item| item.is_done = true);
    if edited.has_subtasks {
        first[0].below = vec![new_item(&mut next), new_item(&mut next)];
        first[3].below = vec![new_item(&mut next)];
    }
    edited.write(path, &first);
    store.exchange();
    for round in 0..4 {
        let at = format!("{}, seed {seed}, round {round}", edited.format);
        let mut items = edited.items(path);
        next = items.iter().flat_map(Item::all).map(|item| item.id + 1).chain([next]).max().unwrap_or(next);
        for _ in 0..=random.below(3) {
            edit(&mut items, edited.has_subtasks, &mut random, &mut next);
        }
        let mut wanted: BTreeMap<String, bool> =
            items.iter().flat_map(Item::all).map(|item| (item.text.clone(), item.is_done)).collect();
        let (list, place) = random.list(&mut items);
        let here = list[place].text.clone();
        if store.finish(&here) {
            wanted.insert(here, true);
        }
        let above = &items[random.below(items.len())];
        let below = name(next);
        if edited.has_subtasks && !above.is_done && store.create_below(&above.text, &below) {
            wanted.insert(below, false);
            next += 1;
        }
        edited.write(path, &items);
        let left_out = store.exchange();
        if left_out != usize::from(edited.has_fault()) {
            return Err(format!("{at}: {left_out} records were left out"));
        }
        check(edited, path, store, &wanted).map_err(|error| format!("{at}: {error}"))?;
        let before = edited.text(path);
        let again = store.exchange_again();
        if again != json!({ "created": [], "changed": [] }) || edited.text(path) != before {
            return Err(format!("{at}: a second exchange changed {again} or the file"));
        }
    }
    Ok(())
}

/// Returns the first item whose text is not there, or has another status, in the file or in the store.
fn check(
    edited: &Edited,
    path: &Path,
    store: &dyn Store,
    wanted: &BTreeMap<String, bool>,
) -> Result<(), String> {
    let (items, here) = (edited.items(path), store.is_done());
    let text = || edited.text(path);
    let mut found = 0;
    for item in items.iter().flat_map(Item::all) {
        let Some(is_wanted) = wanted.get(&item.text).copied() else {
            return Err(format!("`{}` is new in the file\n{}", item.text, text()));
        };
        found += 1;
        let Some(here) = here.get(&item.text) else { return Err(format!("`{}` is not here", item.text)) };
        // Here the status of a parent follows from its subtasks, and a change below it is written to the file.
        let is_parent_done = !item.below.is_empty() && here.contains(&true);
        let is_parent_over = is_parent_done && item.below.iter().all(|below| below.is_done);
        if item.is_done != is_wanted && !(item.is_done && is_parent_done) {
            return Err(format!("`{}` is done in the file: {}\n{}", item.text, item.is_done, text()));
        }
        if !here.contains(&is_wanted) && !is_parent_over {
            return Err(format!("`{}` is done here: {here:?}\n{}", item.text, text()));
        }
    }
    if found == wanted.len() {
        Ok(())
    } else {
        Err(format!("{found} of {wanted:?} are in the file\n{}", text()))
    }
}

/// The edits of one exchange each.
const SEEDS: [u64; 3] = [7, 1_000_003, 424_242];

#[test]
fn edits_on_both_sides_move_no_status_to_another_text() {
    for (format, edited) in (0..).zip(FILES) {
        // One of them for each format, and the next one tomorrow.
        for (_, seed) in (format..).zip(SEEDS).filter(|(case, _)| is_due(*case, 3)) {
            let cli = Cli::new();
            let path = cli.path("work").join(edited.path);
            let mut tasks = Tasks { cli, format: edited.format, path: edited.path };
            if let Err(error) = exchange(edited, &path, &mut tasks, seed) {
                panic!("{error}");
            }
        }
    }
}

/// A store that takes the item at a position for the task at that position.
struct ByPosition<'f> {
    edited: &'f Edited,
    path: &'f Path,
    /// The items at the last exchange.
    items: Vec<Item>,
    /// The positions that are done since: of an item, and of a subtask in it.
    finished: Vec<(usize, Option<usize>)>,
}

impl Store for ByPosition<'_> {
    fn finish(&mut self, text: &str) -> bool {
        let is_it = |item: &Item| item.text == text && !item.is_done;
        let found = self.items.iter().enumerate().find_map(|(place, item)| {
            let below = || item.below.iter().position(is_it).map(|below| (place, Some(below)));
            if is_it(item) { Some((place, None)) } else { below() }
        });
        self.finished.extend(found);
        found.is_some()
    }

    fn create_below(&mut self, _parent: &str, _name: &str) -> bool {
        false
    }

    fn exchange(&mut self) -> usize {
        self.items = self.edited.items(self.path);
        for (place, below) in std::mem::take(&mut self.finished) {
            let item = self.items.get_mut(place);
            let item = match below {
                Some(below) => item.and_then(|item| item.below.get_mut(below)),
                None => item,
            };
            if let Some(item) = item {
                item.is_done = true;
            }
        }
        self.edited.write(self.path, &self.items);
        usize::from(self.edited.has_fault())
    }

    fn is_done(&self) -> BTreeMap<String, Vec<bool>> {
        self.items.iter().flat_map(Item::all).map(|item| (item.text.clone(), vec![item.is_done])).collect()
    }

    fn exchange_again(&mut self) -> Value {
        json!({ "created": [], "changed": [] })
    }
}

#[test]
fn matching_by_position_is_found_in_every_format() {
    for edited in FILES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(edited.path);
        let found = (1..=20).any(|seed| {
            let mut store = ByPosition { edited, path: &path, items: Vec::new(), finished: Vec::new() };
            exchange(edited, &path, &mut store, 7_919 * seed).is_err()
        });
        assert!(found, "{}: no seed finds a status at the text of another item", edited.format);
    }
}
