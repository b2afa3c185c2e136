//! Task files as their own programs edit them: items are parsed from a file, and written back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// A file or a folder of a format.
pub(super) struct Edited {
    pub(super) format: &'static str,
    pub(super) path: &'static str,
    /// True if the format has subtasks.
    pub(super) has_subtasks: bool,
    kind: Kind,
}

/// The form of the items.
#[derive(Clone, Copy)]
enum Kind {
    /// Lines `- [ ] text`, with the text before the name of the item with a number at a position.
    Boxes(fn(usize, usize) -> String),
    /// Lines of todo.txt.
    TodoTxt,
    /// Objects, one in each line or in a list, with their fields.
    Objects(Fields),
    /// A file for each item, with front matter.
    Folder,
}

/// The list of the objects, and the names of their fields and words.
#[derive(Clone, Copy)]
struct Fields {
    list: &'static str,
    id: &'static str,
    text: &'static str,
    open: &'static str,
    done: &'static str,
}

pub(super) const FILES: &[Edited] = &[
    boxes("markdown", "list.md", |_, _| String::new()),
    boxes("spec-kit", "tasks.md", |id, _| format!("T{id:03} ")),
    boxes("openspec", "tasks.md", |_, place| format!("1.{} ", place + 1)),
    boxes("kiro", "tasks.md", |_, place| format!("{}. ", place + 1)),
    Edited { format: "todo.txt", path: "todo.txt", has_subtasks: false, kind: Kind::TodoTxt },
    objects("beads", "issues.jsonl", true, ["", "id", "title", "open", "closed"]),
    objects("taskmaster", "tasks.json", true, ["/master/tasks", "id", "title", "pending", "done"]),
    objects("taskwarrior", "export.json", false, ["/", "uuid", "description", "pending", "completed"]),
    objects("claude", "todos.json", false, ["/", "", "content", "pending", "completed"]),
    objects("shrimp", "tasks.json", false, ["/tasks", "id", "name", "pending", "completed"]),
    objects("tasks", "tasks.json", true, ["/tasks", "id", "name", "todo", "done"]),
    Edited { format: "backlog", path: "backlog", has_subtasks: true, kind: Kind::Folder },
];

const fn boxes(format: &'static str, path: &'static str, lead: fn(usize, usize) -> String) -> Edited {
    Edited { format, path, has_subtasks: true, kind: Kind::Boxes(lead) }
}

const fn objects(
    format: &'static str,
    path: &'static str,
    has_subtasks: bool,
    [list, id, text, open, done]: [&'static str; 5],
) -> Edited {
    Edited { format, path, has_subtasks, kind: Kind::Objects(Fields { list, id, text, open, done }) }
}

/// An item with its subtasks.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// A number that no other item has.
    pub(super) id: usize,
    pub(super) text: String,
    pub(super) is_done: bool,
    /// Its object, or the text of its file; null for a new item.
    raw: Value,
    pub(super) below: Vec<Self>,
}

impl Item {
    pub(super) fn new(id: usize, text: String) -> Self {
        Self { id, text, is_done: false, raw: Value::Null, below: Vec::new() }
    }

    /// Returns the item and its subtasks.
    pub(super) fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.below)
    }
}

impl Edited {
    /// Returns true if the file has one record that no task can be read from.
    pub(super) fn has_fault(&self) -> bool {
        match self.kind {
            Kind::Objects(Fields { list, .. }) => !list.is_empty(),
            Kind::Folder => true,
            Kind::Boxes(_) | Kind::TodoTxt => false,
        }
    }

    pub(super) fn items(&self, path: &Path) -> Vec<Item> {
        let text = || fs::read_to_string(path).unwrap();
        match self.kind {
            Kind::Boxes(_) => items_of_boxes(&text()),
            Kind::TodoTxt => items_of_todotxt(&text()),
            Kind::Objects(fields) => fields.items(&text()),
            Kind::Folder => items_of_folder(path),
        }
    }

    pub(super) fn write(&self, path: &Path, items: &[Item]) {
        match self.kind {
            Kind::Boxes(lead) => fs::write(path, text_of_boxes(items, lead)).unwrap(),
            Kind::TodoTxt => fs::write(path, text_of_todotxt(items)).unwrap(),
            Kind::Objects(fields) => fs::write(path, fields.text(self.format, items)).unwrap(),
            Kind::Folder => write_folder(path, items),
        }
    }

    /// Returns the text of the file, or of all files.
    pub(super) fn text(&self, path: &Path) -> String {
        match self.kind {
            Kind::Folder => {
                let files = task_files(path).into_iter();
                files.map(|(name, text)| format!("{name}\n{text}")).collect::<Vec<_>>().concat()
            }
            Kind::Boxes(_) | Kind::TodoTxt | Kind::Objects(_) => fs::read_to_string(path).unwrap(),
        }
    }
}

/// Adds items to a list, each below its parent, if it has one.
fn nested(all: Vec<(String, Option<String>, Item)>) -> Vec<Item> {
    let (mut ids, mut items): (Vec<String>, Vec<Item>) = (Vec::new(), Vec::new());
    let (below, above): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, parent, _)| parent.is_some());
    for (id, _, item) in above {
        ids.push(id);
        items.push(item);
    }
    for (_, parent, item) in below {
        let place = ids.iter().position(|id| Some(id) == parent.as_ref());
        items[place.expect("the parent is in the file")].below.push(item);
    }
    items
}

fn items_of_boxes(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for (place, line) in text.lines().filter(|line| line.contains("] ")).enumerate() {
        let (mark, text) = line.split_once("] ").unwrap();
        let words = text.split_once(" <!--").map_or(text, |(text, _)| text);
        let first = words.split(' ').next().unwrap();
        let number = first.trim_start_matches('T').trim_end_matches('.').replace('.', "").parse::<usize>();
        let words = if number.is_ok() { words.split_once(' ').unwrap().1 } else { words };
        let id = number.ok().filter(|_| first.starts_with('T')).unwrap_or(place + 1);
        let item = Item { is_done: mark.ends_with('x'), ..Item::new(id, words.to_owned()) };
        match items.last_mut().filter(|_| line.starts_with(' ')) {
            Some(above) => above.below.push(item),
            None => items.push(item),
        }
    }
    items
}

fn text_of_boxes(items: &[Item], lead: fn(usize, usize) -> String) -> String {
    let mut text = "# List\n\n".to_owned();
    for (place, item) in items.iter().enumerate() {
        for (depth, item) in item.all().enumerate() {
            let blank = if depth == 0 { "" } else { "  " };
            let mark = if item.is_done { "x" } else { " " };
            // In the formats with numbers each line needs one; only its presence matters.
            let lead = lead(item.id, place + depth);
            writeln!(text, "{blank}- [{mark}] {lead}{}", item.text).unwrap();
        }
    }
    text
}

fn items_of_todotxt(text: &str) -> Vec<Item> {
    let is_word = |word: &&str| *word != "x" && !word.starts_with("20") && !word.starts_with("taskpawl:");
    let text_of = |line: &str| line.split(' ').filter(is_word).collect::<Vec<_>>().join(" ");
    let lines = text.lines().filter(|line| !line.is_empty()).enumerate();
    lines
        .map(|(place, line)| Item { is_done: line.starts_with("x "), ..Item::new(place + 1, text_of(line)) })
        .collect()
}

fn text_of_todotxt(items: &[Item]) -> String {
    let mark = |item: &Item| if item.is_done { "x 2026-01-02 " } else { "" };
    items.iter().map(|item| format!("{}{}\n", mark(item), item.text)).collect::<Vec<_>>().concat()
}

impl Fields {
    fn items(self, text: &str) -> Vec<Item> {
        let objects: Vec<Value> = if self.list.is_empty() {
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        } else {
            let whole: Value = serde_json::from_str(text).unwrap();
            whole.pointer(self.list.trim_end_matches('/')).unwrap().as_array().unwrap().clone()
        };
        // `tasks.json` names the subtasks in their parent.
        let mut parents: BTreeMap<String, String> = BTreeMap::new();
        for object in &objects {
            let below = object["subtasks"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let id = object[self.id].as_str().unwrap_or_default();
            parents.extend(below.map(|below| (below.to_owned(), id.to_owned())));
        }
        let objects = objects.into_iter().enumerate();
        let objects = objects.filter(|(_, object)| object[self.text].is_string());
        let with_parent = |(place, object)| {
            let (id, parent, item) = self.item(place, object);
            let parent = parent.or_else(|| parents.get(&id).cloned());
            (id, parent, item)
        };
        nested(objects.map(with_parent).collect())
    }

    /// Returns an item with its id and that of its parent.
    fn item(self, place: usize, object: Value) -> (String, Option<String>, Item) {
        let links = object["dependencies"].as_array().into_iter().flatten();
        let link = links
            .filter(|link| link["type"] == "parent-child")
            .find_map(|link| link["depends_on_id"].as_str());
        let parent = object["parent"].as_str().or(link).map(str::to_owned);
        let subtasks = object["subtasks"].as_array().into_iter().flatten();
        let subtasks = subtasks.filter(|subtask| subtask.is_object()).enumerate();
        let below = subtasks.map(|(place, subtask)| self.item(place, subtask.clone()).2).collect();
        let text = object[self.text].as_str().unwrap().to_owned();
        let id = object[self.id].as_str().map(str::to_owned).unwrap_or_default();
        let is_done = object["status"] == self.done;
        (id, parent, Item { is_done, raw: object, below, ..Item::new(place + 1, text) })
    }

    fn text(self, format: &str, items: &[Item]) -> String {
        let mut all: Vec<Value> = Vec::new();
        for item in items {
            let mut object = self.object(format, item, None);
            if format == "taskmaster" {
                let below = item.below.iter().map(|subtask| self.object(format, subtask, None));
                object["subtasks"] = below.collect();
                all.push(object);
                continue;
            }
            let id = object[self.id].as_str().unwrap_or_default().to_owned();
            let below: Vec<Value> =
                item.below.iter().map(|below| self.object(format, below, Some(&id))).collect();
            if format == "tasks" {
                object["subtasks"] = below.iter().map(|object| object[self.id].clone()).collect();
            }
            all.push(object);
            all.extend(below);
        }
        if self.list.is_empty() {
            return all.iter().map(|object| format!("{object}\n")).collect::<Vec<_>>().concat();
        }
        // A record that no task can be read from. It stays.
        all.push(json!({ "id": 4000, "uuid": "4000", "status": self.open }));
        match format {
            "taskmaster" => json!({ "master": { "tasks": all } }).to_string(),
            "shrimp" | "tasks" => json!({ "tasks": all }).to_string(),
            _ => json!(all).to_string(),
        }
    }

    fn object(self, format: &str, item: &Item, parent: Option<&str>) -> Value {
        let mut object = item.raw.clone();
        if object.is_null() {
            object = json!({});
            let number = format!("n-{}", item.id);
            if !self.id.is_empty() {
                object[self.id] = if format == "taskmaster" { json!(item.id) } else { json!(number) };
            }
            match (format, parent) {
                ("beads", Some(parent)) => {
                    let link = json!({ "issue_id": number, "depends_on_id": parent, "type": "parent-child" });
                    object["dependencies"] = json!([link]);
                }
                (_, Some(parent)) => object["parent"] = json!(parent),
                (_, None) => {}
            }
        }
        object[self.text] = json!(item.text);
        if (object["status"] == self.done) != item.is_done || object["status"].is_null() {
            object["status"] = json!(if item.is_done { self.done } else { self.open });
        }
        object
    }
}

/// Returns the files with tasks, by name.
fn task_files(path: &Path) -> Vec<(String, String)> {
    let files = fs::read_dir(path.join("tasks")).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<(String, String)> = files
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Returns a field of the front matter.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.map(|value| value.trim_matches('\''))
}

fn items_of_folder(path: &Path) -> Vec<Item> {
    let files = task_files(path).into_iter().enumerate();
    let files = files.filter_map(|(place, (_, text))| {
        let title = field(&text, "title")?.to_owned();
        let id = field(&text, "id")?.to_owned();
        let parent = field(&text, "parent_task_id").map(str::to_owned);
        let is_done = field(&text, "status") == Some("Done");
        Some((id, parent, Item { is_done, raw: json!(text), ..Item::new(place + 1, title) }))
    });
    nested(files.collect())
}

fn write_folder(path: &Path, items: &[Item]) {
    let tasks = path.join("tasks");
    if tasks.exists() {
        fs::remove_dir_all(&tasks).unwrap();
    }
    fs::create_dir_all(&tasks).unwrap();
    fs::write(path.join("config.yml"), "statuses: [\"To Do\", \"Done\"]\ntask_prefix: \"task\"\n").unwrap();
    fs::write(tasks.join("task-4000 - faulty.md"), "---\nid: TASK-4000\n---\n").unwrap();
    for item in items {
        let above = file_of(item, None);
        let id = field(&above, "id").unwrap();
        let below = item.below.iter().map(|below| file_of(below, Some(id)));
        for text in below.chain([above.clone()]) {
            let id = field(&text, "id").unwrap().to_lowercase();
            fs::write(tasks.join(format!("{id} - x.md")), text).unwrap();
        }
    }
}

fn file_of(item: &Item, parent: Option<&str>) -> String {
    let word = if item.is_done { "Done" } else { "To Do" };
    let Some(raw) = item.raw.as_str() else {
        let parent = parent.map(|parent| format!("parent_task_id: {parent}\n")).unwrap_or_default();
        return format!("---\nid: TASK-{}\ntitle: {}\nstatus: {word}\n{parent}---\n", item.id, item.text);
    };
    let line = |line: &str| match line.split_once(": ") {
        Some(("title", _)) => format!("title: {}\n", item.text),
        Some(("status", _)) => format!("status: {word}\n"),
        _ => format!("{line}\n"),
    };
    raw.lines().map(line).collect::<Vec<_>>().concat()
}
