//! The tables of `docs/formats.md` match the code.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use taskpawl_formats::{Files, Format, read, write};
use taskpawl_model::task::{Priority, Status, Task};

use crate::support::{options, reading, sample, writable};
use crate::unsupported::{self, FIELDS};

/// Formats with status words.
const WITH_WORDS: &[Format] = &[
    Format::Beads,
    Format::Taskmaster,
    Format::Claude,
    Format::Taskwarrior,
    Format::Backlog,
    Format::Markdown,
    Format::TodoTxt,
    Format::Shrimp,
];

/// The status words of a format that the tables list.
fn words(format: Format) -> &'static [&'static str] {
    match format {
        Format::Beads => &["open", "in_progress", "hooked", "blocked", "deferred", "pinned", "closed"],
        Format::Taskmaster => {
            &["pending", "in-progress", "review", "done", "completed", "cancelled", "blocked", "deferred"]
        }
        Format::Claude => &["pending", "in_progress", "completed"],
        Format::Taskwarrior => &["pending", "waiting", "completed", "deleted", "recurring"],
        Format::Backlog => &["To Do", "In Progress", "Done", "Blocked"],
        Format::Markdown => &[" ", "x", "/", "~", "-", "!"],
        Format::TodoTxt => &["text", "x text"],
        Format::Shrimp => &["pending", "in_progress", "completed", "blocked"],
        Format::SpecKit | Format::OpenSpec | Format::Kiro | Format::GitHub | Format::Tasks => &[],
    }
}

fn input(format: Format, word: &str) -> Files {
    let text = match format {
        Format::Beads => json!({ "id": "a", "title": "A", "status": word }).to_string(),
        Format::Taskmaster => {
            json!({ "master": { "tasks": [{ "id": 1, "title": "A", "status": word }] } }).to_string()
        }
        Format::Claude => json!({ "id": "1", "subject": "A", "status": word }).to_string(),
        Format::Taskwarrior => json!([{ "uuid": "u", "description": "A", "status": word }]).to_string(),
        Format::Backlog => format!("---\nid: TASK-1\ntitle: A\nstatus: {word}\n---\n"),
        Format::Markdown => format!("- [{word}] A\n"),
        Format::TodoTxt => format!("{word}\n"),
        Format::Shrimp => json!({ "tasks": [{ "id": "a", "name": "A", "status": word }] }).to_string(),
        Format::SpecKit | Format::OpenSpec | Format::Kiro | Format::GitHub | Format::Tasks => String::new(),
    };
    Files::single(if format == Format::Backlog { "tasks/task-a.md" } else { "a" }, text)
}

fn one(status: Status, priority: Priority) -> Task {
    serde_json::from_value(json!({
        "id": "a", "name": "A", "status": status, "priority": priority, "metadata": {}, "error": "why",
        "createdAt": "2030-01-01T00:00:00Z", "updatedAt": "2030-01-01T00:00:00Z",
    }))
    .unwrap()
}

/// Returns the value that a format writes into a field for a task.
fn written(format: Format, task: &Task, field: &str) -> String {
    let files = write(format, std::slice::from_ref(task), None).files;
    let text = files.iter().find(|(name, _)| *name != "config.yml").unwrap().1.to_owned();
    let value: Value = match format {
        Format::Markdown => return text.lines().next().unwrap()[2..5].to_owned(),
        Format::Backlog => {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}: ")));
            return line.unwrap_or("–").to_owned();
        }
        Format::Taskmaster => serde_json::from_str::<Value>(&text).unwrap()["master"]["tasks"][0].clone(),
        Format::Taskwarrior => serde_json::from_str::<Value>(&text).unwrap()[0].clone(),
        Format::TodoTxt => {
            let words = text.split(' ').filter(|word| match field {
                "priority" => word.starts_with('('),
                _ => *word == "x" || word.starts_with("taskpawl:"),
            });
            let words: Vec<&str> = words.map(str::trim_end).collect();
            return if words.is_empty() { "–".to_owned() } else { words.join(" ") };
        }
        Format::Shrimp => serde_json::from_str::<Value>(&text).unwrap()["tasks"][0].clone(),
        Format::SpecKit | Format::OpenSpec | Format::Kiro | Format::GitHub => return "–".to_owned(),
        Format::Beads | Format::Claude | Format::Tasks => serde_json::from_str(&text).unwrap(),
    };
    let word = |name: &str| {
        value[name].as_str().map(str::to_owned).or_else(|| value[name].as_u64().map(|n| n.to_string()))
    };
    match (word(field), word("close_reason"), word("start")) {
        (Some(word), Some(reason), _) if field == "status" => format!("{word} ({reason})"),
        (Some(word), _, Some(_)) if field == "status" => format!("{word}, with `start`"),
        (Some(word), ..) => word,
        (None, ..) => "–".to_owned(),
    }
}

fn tables() -> String {
    let mut out = String::from("| their word | the state here |\n| --- | --- |\n");
    for format in WITH_WORDS {
        for word in words(*format) {
            let reading = read(*format, &input(*format, word), &options()).unwrap();
            let status = reading.tasks[0].status;
            let _ = writeln!(
                out,
                "| {}: `{}` | `{status}` |",
                format.name(),
                if *format == Format::Markdown { format!("[{word}]") } else { (*word).to_owned() }
            );
        }
    }
    let header: Vec<&str> = WITH_WORDS.iter().map(|format| format.name()).collect();
    let rule = "| --- ".repeat(WITH_WORDS.len() + 1) + "|\n";
    let _ = write!(out, "\n| state | {} |\n{rule}", header.join(" | "));
    for status in Status::ALL {
        let cells: Vec<String> = WITH_WORDS
            .iter()
            .map(|format| written(*format, &one(*status, Priority::Medium), "status"))
            .collect();
        let _ = writeln!(out, "| `{status}` | {} |", cells.join(" | "));
    }
    let _ = write!(out, "\n| priority | {} |\n{rule}", header.join(" | "));
    for priority in Priority::ALL {
        let cell = |format: &Format| {
            let has_none = matches!(format, Format::Markdown | Format::Claude | Format::Shrimp);
            if has_none {
                "–".to_owned()
            } else {
                written(*format, &one(Status::Todo, *priority), "priority")
            }
        };
        let cells: Vec<String> = WITH_WORDS.iter().map(cell).collect();
        let _ = writeln!(out, "| `{priority}` | {} |", cells.join(" | "));
    }
    out.push_str(&fates());
    let _ = write!(out, "\n| format | fields of a task |\n| --- | --- |\n");
    for format in Format::ALL {
        let fields = reading(*format, &sample(*format)).fields;
        let fields: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
        let _ = writeln!(out, "| {} | {} |", format.name(), fields.join(", "));
    }
    out
}

/// Returns the table of the effect that an export has on a value, for each field and format.
fn fates() -> String {
    let header: Vec<&str> = writable().map(Format::name).collect();
    let mut out = format!("\n| field | {} |\n{}|\n", header.join(" | "), "| --- ".repeat(header.len() + 1));
    for name in FIELDS.iter().filter(|name| **name != "metadata.own") {
        let cells: Vec<&str> = writable().map(|format| fate(format, name)).collect();
        let _ = writeln!(out, "| `{name}` | {} |", cells.join(" | "));
    }
    out
}

fn fate(format: Format, name: &str) -> &'static str {
    let tasks = unsupported::tasks();
    let written = write(format, &tasks, None);
    // Other programs ignore these fields: a value that is lost without them has no field of the format.
    let mut plain = Files::default();
    for (file, text) in written.files.iter() {
        plain.insert(file, text.replace("taskpawl", "other"));
    }
    let value = |all: &[Task]| {
        let names = |id: &Value| {
            all.iter()
                .find(|task| id == task.id.as_str())
                .map(|task| task.name.split(' ').next().unwrap_or_default().to_owned())
        };
        let full = all.iter().find(|task| task.name.starts_with("full"))?;
        let value = unsupported::field(full, name);
        Some(match (name, value.as_array()) {
            ("dependencies", Some(list)) => list.iter().map(names).collect(),
            ("parent", _) => json!(names(&value)),
            _ => value,
        })
    };
    let there = value(&tasks);
    if written.left_out.iter().any(|left| left.what == format!("full: {name}")) {
        "listed"
    } else if value(&reading(format, &plain).tasks) == there || name == "name" {
        "kept"
    } else {
        assert_eq!(value(&reading(format, &written.files).tasks), there, "{} {name}", format.name());
        "mapped"
    }
}

#[test]
fn the_tables_of_the_documentation_are_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let text = std::fs::read_to_string(path).unwrap();
    let said = text.split("<!-- tables -->").nth(1).unwrap_or_default();
    assert_eq!(said.trim(), tables().trim(), "the tables are\n\n{}", tables());
}
