//! Round trips of arbitrary tasks: every field that a format has is the same afterwards.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use taskpawl_formats::{Files, Format, LeftOut, Options, read, write};
use taskpawl_model::task::{Priority, Status, Task};

use crate::support::{options, reading, writable};

#[derive(Debug, Clone)]
struct Plan {
    name: String,
    description: String,
    status: usize,
    priority: usize,
    labels: BTreeSet<String>,
    assignee: Option<String>,
    due: Option<i64>,
    note: Option<String>,
    needs: Vec<usize>,
    parent: Option<usize>,
    minutes: i64,
}

fn text() -> impl Strategy<Value = String> {
    "[A-Za-z][A-Za-z0-9äß:#'\"@,.!&*-]{0,10}( [A-Za-z0-9:#'\"@,{}|>%-]{1,8}){0,3}"
}

fn plan() -> impl Strategy<Value = Plan> {
    let one = (text(), option::of(text()), 0..Status::ALL.len(), 0..Priority::ALL.len());
    let two = (
        btree_set("[a-z]{1,6}", 0..3),
        option::of("[a-z]{1,8}"),
        option::of(0_i64..20_000),
        option::of(text()),
    );
    let three = (vec(0_usize..8, 0..3), option::of(0_usize..8), 0_i64..1_000_000);
    (one, two, three).prop_map(|(one, two, three)| Plan {
        name: one.0,
        description: one.1.unwrap_or_default(),
        status: one.2,
        priority: one.3,
        labels: two.0,
        assignee: two.1,
        due: two.2,
        note: two.3,
        needs: three.0,
        parent: three.1,
        minutes: three.2,
    })
}

/// Returns tasks that refer only to earlier ones. Subtasks have one level, because Task Master has no more.
fn tasks(plans: &[Plan]) -> Vec<Task> {
    let id = |number: usize| format!("t{number}-x");
    let mut list: Vec<Value> = Vec::new();
    for (number, plan) in plans.iter().enumerate() {
        let at = chrono::DateTime::from_timestamp(60 * plan.minutes, 0).unwrap();
        let parent = plan.parent.filter(|parent| *parent < number && list[*parent]["parent"].is_null());
        // Tasks after the parent may depend on it, so a dependency on them could close a cycle.
        let may_need = |on: usize| {
            on < number && parent.is_none_or(|parent| on < parent || list[on]["parent"] == id(parent))
        };
        let needs: BTreeSet<String> =
            plan.needs.iter().filter(|on| may_need(**on)).map(|on| id(*on)).collect();
        let parent = parent.map(id);
        let mut task = json!({
            "id": id(number), "name": plan.name, "description": plan.description, "status": Status::ALL[plan.status],
            "priority": Priority::ALL[plan.priority], "dependencies": needs, "parent": parent, "createdAt": at, "updatedAt": at,
            "metadata": {}, "labels": plan.labels, "assignee": plan.assignee,
        });
        if let Some(due) = plan.due {
            task["dueDate"] = json!(chrono::DateTime::from_timestamp(86_400 * due, 0).unwrap());
        }
        if let Some(note) = &plan.note {
            task["notes"] = json!([{ "at": at, "actor": "ana", "text": note }]);
        }
        list.push(task);
    }
    list.into_iter().map(|task| serde_json::from_value(task).unwrap()).collect()
}

/// Returns the fields of tasks in a form that can be compared.
fn said(tasks: &[Task], fields: &[String], format: Format, left_out: &[LeftOut]) -> Value {
    let mut all = Map::new();
    for task in tasks {
        let Value::Object(map) = serde_json::to_value(task).unwrap() else { panic!("no object") };
        let mut out = Map::new();
        for field in fields.iter().filter(|field| !field.starts_with("metadata") && !field.ends_with("At")) {
            let value = match (field.as_str(), map.get(field)) {
                ("dependencies", Some(Value::Array(list))) => {
                    json!(list.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>())
                }
                ("notes", Some(Value::Array(list))) => list.iter().map(|note| note["text"].clone()).collect(),
                // The text of an error belongs to a status that most formats do not have.
                ("error", _) => continue,
                ("labels", Some(Value::Array(list))) if list.is_empty() => Value::Null,
                ("description" | "name", Some(Value::String(text))) => json!(text.trim()),
                (_, value) => value.cloned().unwrap_or_default(),
            };
            out.insert(field.clone(), value);
        }
        if format == Format::Markdown || format == Format::Claude {
            out.remove("priority");
        }
        if format == Format::Markdown || format.has_features() {
            // Of these, a checklist has only those that its conventions give.
            out.remove("labels");
            out.remove("dependencies");
        }
        // In a subtask of Task Master, a number leads to a subtask beside it before it leads to a task.
        let is_said = |left: &LeftOut| left.what == format!("{}: dependencies", task.id);
        if format == Format::Taskmaster && left_out.iter().any(is_said) {
            out.remove("dependencies");
        }
        all.insert(task.id.to_string(), Value::Object(out));
    }
    Value::Object(all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_supported_field_survives_a_round_trip(plans in vec(plan(), 1..8)) {
        let all = tasks(&plans);
        for format in writable() {
            let mut tasks = all.clone();
            if format == Format::TodoTxt {
                // Words such as `@home` are labels there, and are never part of a name that was read.
                for task in &mut tasks {
                    task.name = task.name.replace(['@', '+'], "a");
                }
            }
            let written = write(format, &tasks, None);
            let reading = reading(format, &written.files);
            // `tasks.json` leaves these fields out on purpose.
            let fields: Vec<String> = reading.fields.iter().filter(|field| format != Format::Tasks || !matches!(field.as_str(), "labels" | "assignee" | "dueDate" | "notes")).cloned().collect();
            prop_assert_eq!(said(&reading.tasks, &fields, format, &written.left_out), said(&tasks, &fields, format, &written.left_out), "{}: {:?}", format.name(), written.files);
            // A second export over the files changes nothing.
            let again = write(format, &reading.tasks, Some(&written.files));
            prop_assert_eq!(&again.files, &merged(&written.files, &again.files), "{}", format.name());
        }
    }

    #[test]
    fn any_text_is_refused_or_read(text in ".{0,200}") {
        for format in Format::ALL.iter().copied() {
            let files = Files::single("tasks/task-x.md", text.clone());
            let prefixed = Options { prefix: Some("p".to_owned()), ..options() };
            let _ = read(format, &files, &prefixed);
        }
    }
}

/// Returns the files of `before` that have the names in `names`.
fn merged(before: &Files, names: &Files) -> Files {
    let mut files = Files::default();
    for (name, _) in names.iter() {
        files.insert(name, before.get(name).unwrap_or_default());
    }
    files
}
