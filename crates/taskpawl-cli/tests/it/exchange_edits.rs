//! Random edits on both sides of a file: no status moves to another text, and a second exchange changes nothing.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::harness::Cli;

/// A file as its own program edits it.
struct Edited {
    format: &'static str,
    file: &'static str,
    kind: Kind,
}

/// The form of the items.
#[derive(Clone, Copy)]
enum Kind {
    /// Lines `- [ ] text`, with what stands before the text of the item with a number.
    Boxes(fn(usize, usize) -> String),
    /// Lines of todo.txt.
    TodoTxt,
    /// Objects, one in each line or in a list, with their fields.
    Objects {
        list: &'static str,
        id: &'static str,
        text: &'static str,
        open: &'static str,
        done: &'static str,
    },
}

const FILES: &[Edited] = &[
    Edited { format: "markdown", file: "list.md", kind: Kind::Boxes(|_, _| String::new()) },
    Edited { format: "spec-kit", file: "tasks.md", kind: Kind::Boxes(|id, _| format!("T{id:03} ")) },
    Edited {
        format: "openspec",
        file: "tasks.md",
        kind: Kind::Boxes(|_, place| format!("1.{} ", place + 1)),
    },
    Edited { format: "kiro", file: "tasks.md", kind: Kind::Boxes(|_, place| format!("{}. ", place + 1)) },
    Edited { format: "todo.txt", file: "todo.txt", kind: Kind::TodoTxt },
    objects("beads", "issues.jsonl", "", ["id", "title", "open", "closed"]),
    objects("taskmaster", "tasks.json", "/master/tasks", ["id", "title", "pending", "done"]),
    objects("taskwarrior", "export.json", "/", ["uuid", "description", "pending", "completed"]),
    objects("claude", "todos.json", "/", ["", "content", "pending", "completed"]),
    objects("shrimp", "tasks.json", "/tasks", ["id", "name", "pending", "completed"]),
    objects("tasks", "tasks.json", "/tasks", ["id", "name", "todo", "done"]),
];

const fn objects(
    format: &'static str,
    file: &'static str,
    list: &'static str,
    [id, text, open, done]: [&'static str; 4],
) -> Edited {
    Edited { format, file, kind: Kind::Objects { list, id, text, open, done } }
}

/// An item: its text, its number, whether it is done, and its object or line as it stands.
#[derive(Debug, Clone)]
struct Item {
    id: usize,
    text: String,
    is_done: bool,
    raw: Value,
}

impl Edited {
    fn items(&self, text: &str) -> Vec<Item> {
        let item = |place: usize, text: String, is_done, raw| Item { id: place + 1, text, is_done, raw };
        match self.kind {
            Kind::Boxes(_) => {
                let lines = text.lines().filter(|line| line.contains("] "));
                lines
                    .enumerate()
                    .map(|(place, line)| {
                        let (mark, text) = line.split_once("] ").unwrap();
                        let words = text.split_once(" <!--").map_or(text, |(text, _)| text);
                        let first = words.split(' ').next().unwrap();
                        let number = first.trim_start_matches('T').trim_end_matches('.').replace('.', "");
                        let is_number = number.parse::<usize>().is_ok();
                        let words = if is_number { words.split_once(' ').unwrap().1 } else { words };
                        let mut item = item(place, words.to_owned(), mark.ends_with('x'), json!(line));
                        if first.starts_with('T') && is_number {
                            item.id = number.parse().unwrap();
                        }
                        item
                    })
                    .collect()
            }
            Kind::TodoTxt => {
                let lines = text.lines().filter(|line| !line.is_empty());
                let is_word =
                    |word: &&str| *word != "x" && !word.starts_with("20") && !word.starts_with("taskpawl:");
                let text = |line: &str| line.split(' ').filter(is_word).collect::<Vec<_>>().join(" ");
                lines
                    .enumerate()
                    .map(|(place, line)| item(place, text(line), line.starts_with("x "), json!(line)))
                    .collect()
            }
            Kind::Objects { list, text: name, done, .. } => {
                let all: Vec<Value> = if list.is_empty() {
                    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
                } else {
                    let whole: Value = serde_json::from_str(text).unwrap();
                    whole.pointer(list.trim_end_matches('/')).unwrap().as_array().unwrap().clone()
                };
                all.into_iter()
                    .enumerate()
                    .filter(|(_, object)| object[name].is_string())
                    .map(|(place, object)| {
                        let text = object[name].as_str().unwrap().to_owned();
                        item(place, text, object["status"] == done, object)
                    })
                    .collect()
            }
        }
    }

    fn text(&self, items: &[Item]) -> String {
        match self.kind {
            Kind::Boxes(lead) => {
                let line = |(place, item): (usize, &Item)| {
                    let mark = if item.is_done { "x" } else { " " };
                    format!("- [{mark}] {}{}\n", lead(item.id, place), item.text)
                };
                format!("# List\n\n{}", items.iter().enumerate().map(line).collect::<Vec<_>>().concat())
            }
            Kind::TodoTxt => {
                let line = |item: &Item| {
                    let mark = if item.is_done { "x 2026-01-02 " } else { "" };
                    format!("{mark}{}\n", item.text)
                };
                items.iter().map(line).collect::<Vec<_>>().concat()
            }
            Kind::Objects { list, id, text, open, done } => {
                let object = |item: &Item| {
                    let mut object = item.raw.clone();
                    if !object.is_object() {
                        object = json!({});
                        if !id.is_empty() {
                            let number = format!("n-{}", item.id);
                            object[id] =
                                if self.format == "taskmaster" { json!(item.id) } else { json!(number) };
                        }
                    }
                    object[text] = json!(item.text);
                    let is_done = object["status"] == done;
                    if is_done != item.is_done || object["status"].is_null() {
                        object["status"] = json!(if item.is_done { done } else { open });
                    }
                    object
                };
                let mut all: Vec<Value> = items.iter().map(object).collect();
                if list.is_empty() {
                    return all.iter().map(|object| format!("{object}\n")).collect::<Vec<_>>().concat();
                }
                // A record that nothing can be made of stays where it is.
                all.push(json!({ "id": 4000, "uuid": "4000", "status": open }));
                match self.format {
                    "taskmaster" => json!({ "master": { "tasks": all } }).to_string(),
                    "shrimp" | "tasks" => json!({ "tasks": all }).to_string(),
                    _ => json!(all).to_string(),
                }
            }
        }
    }
}

/// A generator of numbers: the same edits in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
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

/// Edits the file; returns what is new in it.
fn edit(items: &mut Vec<Item>, random: &mut Random, next: &mut usize) {
    let place = random.below(items.len());
    match random.below(6) {
        0 => items[place].is_done = true,
        1 => {
            let item = items.remove(place);
            items.insert(random.below(items.len() + 1), item);
        }
        2 => {
            // More than half of the words stay.
            let text = items[place].text.replace("list", "checklist");
            items[place].text = text;
        }
        3 | 4 => {
            let item = Item { id: *next, text: name(*next), is_done: false, raw: Value::Null };
            items.insert(place, item);
            *next += 1;
        }
        _ => drop((items.len() > 3).then(|| items.remove(place))),
    }
}

fn statuses(cli: &Cli) -> BTreeMap<String, Vec<(String, String)>> {
    let run = cli.run(&["list", "--json", "--limit", "0"]).ok();
    let mut all: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for task in run.json()["data"].as_array().unwrap() {
        let text = |field: &str| task[field].as_str().unwrap().to_owned();
        let name = text("name");
        let name = match name.split_once(' ') {
            Some((first, rest)) if first.trim_end_matches('.').replace('.', "").parse::<usize>().is_ok() => {
                rest.to_owned()
            }
            _ => name,
        };
        all.entry(name).or_default().push((text("id"), text("status")));
    }
    all
}

fn exchange(edited: &Edited, seed: u64) {
    let (cli, mut random, mut next) = (Cli::new(), Random(seed), 9);
    let first: Vec<Item> =
        (1..next).map(|id| Item { id, text: name(id), is_done: id % 3 == 0, raw: Value::Null }).collect();
    let path = cli.file(edited.file, &edited.text(&first));
    let (format, file) = (edited.format, edited.file);
    cli.run(&["import", format, file]).ok();
    for round in 0..4 {
        let mut items = edited.items(&fs::read_to_string(&path).unwrap());
        for _ in 0..=random.below(3) {
            edit(&mut items, &mut random, &mut next);
        }
        let place = random.below(items.len());
        let here = items[place].text.clone();
        let mut wanted: BTreeMap<String, bool> =
            items.iter().map(|item| (item.text.clone(), item.is_done)).collect();
        let known = statuses(&cli).get(&here).cloned().unwrap_or_default();
        if let [(id, status)] = known.as_slice()
            && status == "todo"
            && cli.run(&["done", id]).code == Some(0)
        {
            wanted.insert(here, true);
        }
        fs::write(&path, edited.text(&items)).unwrap();
        let at = format!("{format}, seed {seed}, round {round}");
        let run = cli.run(&["import", format, file, "--json"]).ok();
        let has_fault = matches!(edited.kind, Kind::Objects { list, .. } if !list.is_empty());
        let left_out = run.json()["data"]["leftOut"].as_array().unwrap().len();
        assert_eq!(left_out, usize::from(has_fault), "{at}: {run}");
        cli.run(&["export", format, file]).ok();
        let text = fs::read_to_string(&path).unwrap();
        let there: BTreeMap<String, bool> =
            edited.items(&text).into_iter().map(|item| (item.text, item.is_done)).collect();
        assert_eq!(there, wanted, "{at}: {text}");
        let here = statuses(&cli);
        for (name, is_done) in &wanted {
            let found = here.get(name).unwrap_or_else(|| panic!("{at}: no task `{name}`\n{here:#?}"));
            assert!(
                found.iter().any(|(_, status)| (status == "done") == *is_done),
                "{at}: {name}: {found:?}"
            );
        }
        let again = cli.run(&["import", format, file, "--json"]).ok();
        let data = &again.json()["data"];
        assert_eq!((&data["created"], &data["changed"]), (&json!([]), &json!([])), "{at}: {again}");
        cli.run(&["export", format, file]).ok();
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{at}");
    }
}

#[test]
fn edits_on_both_sides_move_no_status_to_another_text() {
    for edited in FILES {
        for seed in [7, 1_000_003, 424_242] {
            exchange(edited, seed);
        }
    }
}
