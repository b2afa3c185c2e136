//! Words of other programs: any case is read, and a word without a known meaning is listed.

use serde_json::json;
use taskpawl_formats::{Files, Format, write};

use crate::support::reading;

/// Returns the text of a file with one task.
fn one(format: Format, status: &str, priority: &str) -> (Files, &'static str) {
    let (name, text) = match format {
        Format::Beads => ("i.jsonl", json!({"id": "a", "title": "A", "status": status})),
        Format::Taskwarrior => {
            ("t.json", json!([{"uuid": "a", "description": "A", "status": status, "priority": priority}]))
        }
        Format::Taskmaster => {
            let task = json!({"id": 1, "title": "A", "status": status, "priority": priority});
            ("t.json", json!({"master": {"tasks": [task]}}))
        }
        Format::Claude => ("1.json", json!({"id": "1", "subject": "A", "status": status})),
        Format::Shrimp => ("t.json", json!({"tasks": [{"id": "a", "name": "A", "status": status}]})),
        Format::Backlog => {
            let head = format!(
                "---\nid: TASK-1\ntitle: A\nstatus: '{status}'\npriority: '{priority}'\ncreated_date: 2026-01-01\n---\n"
            );
            return (Files::single("tasks/task-1.md", head), "tasks/task-1.md");
        }
        Format::Markdown
        | Format::SpecKit
        | Format::OpenSpec
        | Format::Kiro
        | Format::TodoTxt
        | Format::GitHub
        | Format::Tasks => panic!("{} has no words", format.name()),
    };
    (Files::single(name, text.to_string()), name)
}

#[test]
fn words_are_read_in_any_case_and_stay_as_they_are() {
    let words = [
        (Format::Beads, "Open", "todo"),
        (Format::Beads, "IN_PROGRESS", "in_progress"),
        (Format::Beads, "Hooked", "in_progress"),
        (Format::Beads, "Blocked", "blocked"),
        (Format::Beads, "Deferred", "blocked"),
        (Format::Beads, "CLOSED", "done"),
        (Format::Taskwarrior, "Pending", "todo"),
        (Format::Taskwarrior, "COMPLETED", "done"),
        (Format::Taskwarrior, "Deleted", "cancelled"),
        (Format::Taskmaster, "In-Progress", "in_progress"),
        (Format::Claude, "Completed", "done"),
        (Format::Shrimp, "Completed", "done"),
        (Format::Backlog, "DONE", "done"),
        (Format::Backlog, "on HOLD", "blocked"),
    ];
    for (format, word, status) in words {
        let (files, name) = one(format, word, if format == Format::Taskwarrior { "h" } else { "High" });
        let read = reading(format, &files);
        assert_eq!(read.left_out, [], "{}: {word}", format.name());
        assert_eq!(read.tasks[0].status.as_str(), status, "{}: {word}", format.name());
        if matches!(format, Format::Taskwarrior | Format::Taskmaster | Format::Backlog) {
            assert_eq!(read.tasks[0].priority.as_str(), "high", "{}", format.name());
        }
        let written = write(format, &read.tasks, Some(&files));
        assert_eq!(written.files.get(name), files.get(name), "{}: {word}", format.name());
    }
}

#[test]
fn words_without_a_known_meaning_are_listed() {
    let listed = |format: Format, status: &str, priority: &str| {
        let (files, _) = one(format, status, priority);
        let read = reading(format, &files);
        let list: Vec<String> =
            read.left_out.iter().map(|left| format!("{}: {}", left.what, left.why)).collect();
        list.join("; ")
    };
    let why = |word: &str, meaning: &str| format!("the word `{word}` is not known, and counts as {meaning}");
    assert_eq!(listed(Format::Beads, "Triage", ""), format!("a: status: {}", why("Triage", "blocked")));
    assert_eq!(listed(Format::Beads, "pinned", ""), "");
    assert_eq!(listed(Format::Taskwarrior, "pending", "X"), format!("a: priority: {}", why("X", "medium")));
    assert_eq!(
        listed(Format::Backlog, "Triage", "P9"),
        format!("TASK-1: status: {}; TASK-1: priority: {}", why("Triage", "blocked"), why("P9", "medium"))
    );
    assert!(listed(Format::Taskwarrior, "triage", "").contains("expected one of"));
}

#[test]
fn ids_of_task_master_that_are_no_numbers_are_written_as_they_stand() {
    let text = r#"{"master":{"tasks":[{"id":"abc","title":"A","status":"pending","dependencies":[]},{"id":1.0,"title":"B","status":"pending","dependencies":["abc"],"subtasks":[{"id":"x","title":"X","status":"pending"},{"id":2.0,"title":"Y","status":"pending","dependencies":["x"]}]},{"id":"01","title":"C","status":"pending"},{"id":-1,"title":"D","status":"pending"},{"id":"2.5","title":"E","status":"pending"}]}}"#;
    let before = Files::single("t.json", text);
    let mut tasks = reading(Format::Taskmaster, &before).tasks;
    let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["abc", "1", "1.x", "1.2", "01", "-1", "2.5"]);
    let written = write(Format::Taskmaster, &tasks, Some(&before));
    assert_eq!(written.files, before);
    for task in &mut tasks {
        task.name += "!";
    }
    let mut new = tasks[2].clone();
    (new.id, new.name) = ("new".into(), "New".to_owned());
    new.metadata.extra.clear();
    tasks.push(new);
    let written = write(Format::Taskmaster, &tasks, Some(&before));
    let read = reading(Format::Taskmaster, &written.files);
    let names = |tasks: &[taskpawl_model::task::Task]| -> Vec<String> {
        let mut names: Vec<String> = tasks.iter().map(|task| format!("{} {}", task.id, task.name)).collect();
        names.sort();
        names
    };
    assert_eq!(names(&read.tasks), names(&tasks), "{:?}", written.files);
}
