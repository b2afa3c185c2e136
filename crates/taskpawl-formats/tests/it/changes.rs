//! Changes to tasks of an existing file: each is in the file after an export, or the export lists it.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use serde_json::{Value, json};
use taskpawl_formats::{read_back, write};
use taskpawl_model::task::{Priority, Status, Task};

use crate::support::{options, over, reading, sample, task, writable};

/// Texts with parts that mean something in some format.
const TEXTS: &[&str] = &[
    "plain",
    "two lines\nof text",
    "## Heading\n\ntext",
    "---\ntext\n---",
    "<!-- SECTION:DESCRIPTION:BEGIN -->",
    "<!-- SECTION:DESCRIPTION:END --> more",
    "<!-- COMMENTS:BEGIN -->\nx\n<!-- COMMENTS:END -->",
    "<!-- taskpawl id=x status=done -->",
    "- [ ] item\n- [x] item",
    "\"quotes\" and 'others' and \\ and {{ x }}",
    "tab\there, emoji 🚀, \u{e9}",
];

#[derive(Debug, Clone)]
enum Change {
    Status(usize),
    Priority(usize),
    Labels(BTreeSet<String>),
    Assignee(String),
    Due(i64),
    Description(&'static str),
    Needs(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0..Status::ALL.len()).prop_map(Change::Status),
        (0..Priority::ALL.len()).prop_map(Change::Priority),
        btree_set("[a-z@+][a-z ]{0,4}[a-z]", 0..3).prop_map(Change::Labels),
        "[a-z]{1,6}".prop_map(Change::Assignee),
        (0_i64..20_000).prop_map(Change::Due),
        prop::sample::select(TEXTS).prop_map(Change::Description),
        (0_usize..30).prop_map(Change::Needs),
    ]
}

/// Makes a change. Returns the name of the field.
fn apply(change: &Change, tasks: &mut [Task], place: usize) -> &'static str {
    let other =
        if let Change::Needs(other) = change { Some(tasks[other % tasks.len()].id.clone()) } else { None };
    let task = &mut tasks[place];
    match change {
        Change::Status(status) => {
            task.status = Status::ALL[*status];
            task.blocked_reason = None;
            task.error = None;
            "status"
        }
        Change::Priority(priority) => {
            task.priority = Priority::ALL[*priority];
            "priority"
        }
        Change::Labels(labels) => {
            task.options.insert("labels".to_owned(), json!(labels));
            "labels"
        }
        Change::Assignee(name) => {
            task.options.insert("assignee".to_owned(), json!(name));
            "assignee"
        }
        Change::Due(days) => {
            let at = chrono::DateTime::from_timestamp(86_400 * days, 0).unwrap();
            task.options.insert("dueDate".to_owned(), json!(at));
            "dueDate"
        }
        Change::Description(text) => {
            (*text).clone_into(&mut task.description);
            "description"
        }
        Change::Needs(_) => {
            // A dependency that closes a circle is listed by the next import.
            let on = other.filter(|on| *on != task.id && !task.dependencies.contains(on));
            task.dependencies.extend(on);
            "dependencies"
        }
    }
}

/// Returns the value of a field in a form that can be compared.
fn value(task: &Task, field: &str) -> Value {
    let whole = serde_json::to_value(task).unwrap();
    match whole.get(field) {
        Some(Value::Array(list)) => json!(list.iter().map(Value::to_string).collect::<BTreeSet<_>>()),
        Some(Value::String(text)) => json!(text.trim()),
        Some(Value::Null) | None if field == "labels" || field == "dependencies" => json!([]),
        Some(Value::Null) | None if field == "description" => json!(""),
        other => other.cloned().unwrap_or_default(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_change_is_written_or_listed(changes in vec((0_usize..30, change()), 1..4)) {
        for format in writable() {
            let before = sample(format);
            let mut tasks = reading(format, &before).tasks;
            let mut fields = BTreeSet::new();
            for (place, change) in &changes {
                let place = place % tasks.len();
                let field = apply(change, &mut tasks, place);
                fields.insert((tasks[place].id.clone(), field));
            }
            let written = write(format, &tasks, Some(&before));
            let files = over(&before, &written.files);
            let again = read_back(format, &files, &written, &options());
            let again = again.unwrap_or_else(|error| panic!("{}: {error}: {files:?}", format.name()));
            for (id, field) in fields {
                let (here, there) = (task_of(&tasks, id.as_str()), task(&again, id.as_str()));
                let listed = format!("{id}: {field}");
                let is_listed = written.left_out.iter().chain(&again.left_out).any(|left| left.what == listed);
                let (here, there) = (value(here, field), value(there, field));
                prop_assert!(here == there || is_listed, "{}: {}: {} became {}: {:?}", format.name(), listed, here, there, files);
            }
            // The present entries of the file stay there.
            let twice = write(format, &again.tasks, Some(&files));
            prop_assert_eq!(over(&files, &twice.files), files, "{}", format.name());
        }
    }
}

fn task_of<'t>(tasks: &'t [Task], id: &str) -> &'t Task {
    tasks.iter().find(|task| task.id.as_str() == id).unwrap()
}
