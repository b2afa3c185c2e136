//! Fields that a format cannot express are reported: no field is lost silently.

use serde_json::{Value, json};
use taskpawl_formats::{Files, Format, write};
use taskpawl_model::task::Task;

use crate::support::{reading, sample, task, writable};

/// Fields that users can set.
pub(crate) const FIELDS: &[&str] = &[
    "name",
    "description",
    "status",
    "priority",
    "dueDate",
    "labels",
    "assignee",
    "estimate",
    "notes",
    "links",
    "dependencies",
    "parent",
    "retry",
    "metadata.toolCalls",
    "metadata.context",
    "metadata.own",
    "blockedReason",
];

/// Returns a task with every field, after the two that it refers to.
pub(crate) fn tasks() -> Vec<Task> {
    let at = "2030-01-01T00:00:00Z";
    let blank = |id: &str| json!({"id": id, "name": id, "status": "todo", "metadata": {}, "createdAt": at, "updatedAt": at});
    let mut full = blank("full");
    let said = json!({
        "description": "Long", "priority": "high", "dueDate": at, "labels": ["x"], "assignee": "ana", "estimate": "1h",
        "notes": [{"at": at, "actor": "ana", "text": "Fine"}], "links": {"relatesTo": ["other"]}, "dependencies": ["other"],
        "parent": "above", "retry": {"attempts": 3}, "status": "blocked", "blockedReason": {"type": "manual", "text": "Bo decides"},
        "metadata": {
            "context": {"a": 1}, "own": {"x": 1},
            "toolCalls": [{"id": "c1", "toolName": "shell", "args": {"command": "true"}, "status": "pending", "origin": "agent"}],
        },
    });
    full.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
    let list = [blank("above"), blank("other"), full];
    list.into_iter().map(|task| serde_json::from_value(task).unwrap()).collect()
}

/// Returns the value of a field, without the parts that only some formats have.
pub(crate) fn field(task: &Task, field: &str) -> Value {
    let value = serde_json::to_value(task).unwrap();
    let value = match field.strip_prefix("metadata.") {
        Some(member) => value["metadata"][member].clone(),
        None => value[field].clone(),
    };
    match field {
        // Not every format has seconds, or the time of day.
        "notes" => {
            value.as_array().into_iter().flatten().map(|note| json!([note["actor"], note["text"]])).collect()
        }
        "dueDate" => json!(value.as_str().map(|text| text[..10].to_owned())),
        _ => value,
    }
}

#[test]
fn every_field_survives_or_is_listed_as_left_out() {
    let tasks = tasks();
    let to_dos = Files::single("to-dos.json", "[]");
    let forms = writable().map(|format| (format, None)).chain([(Format::Claude, Some(&to_dos))]);
    for (format, before) in forms {
        let written = write(format, &tasks, before);
        let reading = reading(format, &written.files);
        let back = task(&reading, "full");
        for name in FIELDS {
            let comes_back = field(back, name) == field(&tasks[2], name);
            let is_said = written.left_out.iter().any(|left| left.what == format!("full: {name}"));
            assert!(
                comes_back != is_said,
                "{}: {name}: {comes_back}, {is_said}\n{:?}",
                format.name(),
                written.files
            );
        }
    }
}

/// Returns the parts that an export to a new file leaves out, with the reasons.
fn left_out(format: Format, tasks: &[Task]) -> Vec<(String, String)> {
    let left_out = write(format, tasks, None).left_out;
    left_out.into_iter().map(|left| (left.what, left.why)).collect()
}

#[test]
fn the_plan_of_the_tasks_is_listed_once() {
    let mut tasks = tasks();
    for task in &mut tasks[..2] {
        task.plan = Some("release".to_owned());
    }
    // The plan of a feature is its folder.
    for format in writable().filter(|format| !format.has_features()) {
        let said = left_out(format, &tasks);
        let plans: Vec<_> = said.iter().filter(|(what, _)| what == "plan: release").collect();
        assert_eq!(plans.len(), 1, "{}: {said:?}", format.name());
        assert!(plans[0].1.ends_with(": 2 tasks came with it"), "{said:?}");
    }
    let list =
        json!([{"id": "a", "name": "A", "plan": "release"}, {"id": "b", "name": "B", "plan": "release"}]);
    let read = reading(Format::Tasks, &Files::single("tasks.json", list.to_string()));
    assert_eq!((read.tasks[0].plan.as_ref(), read.left_out.len()), (None, 1));
    assert_eq!(read.left_out[0].what, "plan: release");
}

#[test]
fn fields_preserved_for_another_format_are_listed() {
    let tasks = reading(Format::Beads, &sample(Format::Beads)).tasks;
    for format in [Format::Markdown, Format::Taskmaster, Format::Taskwarrior, Format::Backlog, Format::Claude]
    {
        let said = left_out(format, &tasks);
        assert!(
            said.iter().any(|(what, _)| what == "bd-a1b2.2: metadata.beads"),
            "{}: {said:?}",
            format.name()
        );
    }
    assert_eq!(left_out(Format::Beads, &tasks), [], "what a word of it means comes back");
}

#[test]
fn lines_that_were_probably_meant_as_items_are_listed() {
    let text = "-\t[ ] tab\n> - [ ] quoted\n>> 1. [x] twice\n> quote\n-[ ] near\n[x] bare\n- [] empty\n[x](link)\n[ ]: link\n```\n-[ ] code\n```\n";
    let read = reading(Format::Markdown, &Files::single("t.md", text));
    assert_eq!(crate::support::ids(&read.tasks), ["tab"]);
    let lines: Vec<Option<u32>> = read.left_out.iter().map(|left| left.line).collect();
    assert_eq!(lines, [2, 3, 5, 6, 7].map(Some), "{:?}", read.left_out);
}
