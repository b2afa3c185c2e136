//! Exports over an existing file: derived states of parent tasks, and the positions of new tasks.

use serde_json::{Value, json};
use taskpawl_formats::{Files, Format, Reading, keep_states, read_back, without, write, write_over};
use taskpawl_model::task::{Status, Task};

use crate::support::{options, reading, task};

/// Returns the reading of a file, and its tasks as a store has them: with their subtasks and with derived states.
fn imported(format: Format, files: &Files) -> (Reading, Vec<Task>) {
    let there = reading(format, files);
    let mut tasks = there.tasks.clone();
    derive(&mut tasks);
    (there, tasks)
}

fn derive(tasks: &mut [Task]) {
    for number in (0..tasks.len()).rev() {
        let id = tasks[number].id.clone();
        let below: Vec<&Task> = tasks.iter().filter(|task| task.parent.as_ref() == Some(&id)).collect();
        let (subtasks, is_done) = (
            below.iter().map(|task| task.id.clone()).collect(),
            below.iter().all(|task| task.status == Status::Done),
        );
        if below.is_empty() {
            continue;
        }
        let task = &mut tasks[number];
        task.subtasks = subtasks;
        task.status = if is_done { Status::Done } else { Status::Todo };
        task.updated_at = "2031-01-01T00:00:00Z".parse().unwrap();
        task.finished_at = is_done.then_some(task.updated_at);
        task.claim = None;
    }
}

fn find<'t>(tasks: &'t mut [Task], id: &str) -> &'t mut Task {
    tasks.iter_mut().find(|task| task.id.as_str() == id).unwrap()
}

const PARENTS: &[(Format, &str, &str)] = &[
    (
        Format::Beads,
        "i.jsonl",
        "{\"id\":\"bd-1\",\"title\":\"Epic\",\"status\":\"open\",\"issue_type\":\"epic\",\"created_at\":\"2026-01-01T00:00:00Z\",\"updated_at\":\"2026-01-02T00:00:00Z\"}\n\
         {\"id\":\"bd-2\",\"title\":\"Child\",\"status\":\"closed\",\"created_at\":\"2026-01-01T00:00:00Z\",\"updated_at\":\"2026-01-02T00:00:00Z\",\"closed_at\":\"2026-01-02T00:00:00Z\",\"dependencies\":[{\"issue_id\":\"bd-2\",\"depends_on_id\":\"bd-1\",\"type\":\"parent-child\"}]}\n",
    ),
    (
        Format::Taskmaster,
        "t.json",
        "{\n  \"master\": {\n    \"tasks\": [\n      {\n        \"id\": 1,\n        \"title\": \"One\",\n        \"description\": \"\",\n        \"status\": \"pending\",\n        \"priority\": \"medium\",\n        \"dependencies\": [],\n        \"subtasks\": [\n          {\n            \"id\": 1,\n            \"title\": \"Sub\",\n            \"description\": \"\",\n            \"status\": \"done\",\n            \"dependencies\": [],\n            \"parentTaskId\": 1\n          }\n        ]\n      },\n      {\n        \"id\": 2,\n        \"title\": \"Two\",\n        \"description\": \"\",\n        \"status\": \"done\",\n        \"priority\": \"medium\",\n        \"dependencies\": [],\n        \"subtasks\": [\n          {\n            \"id\": 1,\n            \"title\": \"Sub\",\n            \"description\": \"\",\n            \"status\": \"pending\",\n            \"dependencies\": [],\n            \"parentTaskId\": 2\n          }\n        ]\n      }\n    ]\n  }\n}\n",
    ),
    (
        Format::Backlog,
        "tasks/task-1.md",
        "---\nid: TASK-1\ntitle: Parent\nstatus: In Progress\nassignee: []\ncreated_date: '2026-01-01'\nlabels: []\ndependencies: []\n---\n",
    ),
    (Format::Markdown, "c.md", "- [ ] Compile\n  - [x] deep\n- [x] Ship\n  - [ ] open\n"),
];

fn parents(format: Format, name: &str, text: &str) -> Files {
    let mut files = Files::single(name, text);
    if format == Format::Backlog {
        files.insert("config.yml", "statuses: [\"To Do\", \"In Progress\", \"Done\"]\n");
        let child = "---\nid: TASK-1.1\ntitle: Child\nstatus: Done\nassignee: []\ncreated_date: '2026-01-01'\nlabels: []\ndependencies: []\nparent_task_id: TASK-1\n---\n";
        files.insert("tasks/task-1.1.md", child);
    }
    files
}

#[test]
fn a_derived_status_does_not_rewrite_the_file() {
    for (format, name, text) in PARENTS {
        let files = parents(*format, name, text);
        let (there, mut tasks) = imported(*format, &files);
        let as_there = write(*format, &there.tasks, Some(&files)).files;
        assert_ne!(
            write(*format, &tasks, Some(&files)).files.get(name),
            as_there.get(name),
            "{}",
            format.name()
        );
        assert!(keep_states(&mut tasks, &there).is_empty());
        assert_eq!(
            write(*format, &tasks, Some(&files)).files.get(name),
            as_there.get(name),
            "{}",
            format.name()
        );
    }
}

#[test]
fn a_derived_status_is_written_after_a_change_below() {
    let files = Files::single(
        "c.md",
        "- [ ] Compile\n  - [x] deep\n  - [ ] last\n- [x] Ship\n  - [ ] open\n  - [ ] other\n",
    );
    let (there, mut tasks) = imported(Format::Markdown, &files);
    find(&mut tasks, "last").status = Status::Done;
    find(&mut tasks, "other").status = Status::Done;
    derive(&mut tasks);
    let overwritten = keep_states(&mut tasks, &there);
    // `Ship` is done in the file although its subtasks are open. A subtask changed, so the derived state replaces that.
    assert_eq!(overwritten.iter().map(taskpawl_model::value::TaskId::as_str).collect::<Vec<_>>(), ["ship"]);
    let text = write(Format::Markdown, &tasks, Some(&files)).files.get("c.md").unwrap().to_owned();
    assert_eq!(text, "- [x] Compile\n  - [x] deep\n  - [x] last\n- [ ] Ship\n  - [ ] open\n  - [x] other\n");
}

fn added(text: &str, id: &str, change: impl FnOnce(&mut Task)) -> String {
    let files = Files::single("c.md", text);
    let mut tasks = reading(Format::Markdown, &files).tasks;
    let one = reading(Format::Markdown, &Files::single("n.md", format!("- [ ] {id}\n"))).tasks.remove(0);
    tasks.push(one);
    change(tasks.last_mut().unwrap());
    let written = write(Format::Markdown, &tasks, Some(&files)).files;
    let again = reading(Format::Markdown, &written);
    for task in &tasks {
        let read = crate::support::task(&again, task.id.as_str());
        assert_eq!((&read.parent, &read.name), (&task.parent, &task.name));
    }
    written.get("c.md").unwrap().to_owned()
}

#[test]
fn a_new_subtask_is_written_after_its_last_sibling() {
    let below = |task: &mut Task| task.parent = Some("build".into());
    let text = added("# P\n\n- [ ] Build\n  - [ ] a\n- [ ] Ship\n", "sub here", below);
    assert_eq!(text, "# P\n\n- [ ] Build\n  - [ ] a\n  - [ ] sub here\n- [ ] Ship\n");
    // Numbered lists continue, and text below an item stays with it.
    let text = added("1. [ ] Build\n   some words\n\n   more words\n2. [ ] Ship\n", "sub", below);
    assert_eq!(text, "1. [ ] Build\n   some words\n\n   more words\n   - [ ] sub\n2. [ ] Ship\n");
    let text = added("- [ ] Build\n\t1. [ ] a\n\t\t- [ ] deep\n", "sub", below);
    assert_eq!(text, "- [ ] Build\n\t1. [ ] a\n\t\t- [ ] deep\n\t2. [ ] sub\n");
}

#[test]
fn a_new_item_with_an_equal_text_does_not_take_over_an_id() {
    let text = added("- [ ] Build\n- [ ] sub\n", "sub", |task| {
        task.id = "sub-9".into();
        task.parent = Some("build".into());
    });
    assert_eq!(text, "- [ ] Build\n  - [ ] sub <!-- taskpawl id=sub-9 -->\n- [ ] sub\n");
}

#[test]
fn a_heading_is_written_once() {
    let section = |name: &'static str| {
        move |task: &mut Task| {
            task.metadata.extra.insert("markdown".to_owned(), json!({ "section": name }));
        }
    };
    let text = added("## One\n\n- [ ] a\n\n## Two\n", "b", section("Two"));
    assert_eq!(text, "## One\n\n- [ ] a\n\n## Two\n- [ ] b\n");
    let text = added("## One\n\n- [ ] a\n\n## Two\n\n* [ ] c\n", "b", section("One"));
    assert_eq!(text, "## One\n\n- [ ] a\n- [ ] b\n\n## Two\n\n* [ ] c\n");
    let text = added("## One\n\nWords.\n\n## Two\n\n* [ ] c\n", "b", section("One"));
    assert_eq!(text, "## One\n\nWords.\n\n- [ ] b\n\n## Two\n\n* [ ] c\n");
    let text = added("- [ ] a\n", "b", section("New"));
    assert_eq!(text, "- [ ] a\n\n## New\n\n- [ ] b\n");
}

#[test]
fn tasks_without_a_heading_get_none() {
    let mut tasks = reading(Format::Markdown, &Files::single("c.md", "## One\n\n- [ ] a\n")).tasks;
    tasks.extend(reading(Format::Markdown, &Files::single("d.md", "- [ ] b\n")).tasks);
    let text = write(Format::Markdown, &tasks, None).files.get("tasks.md").unwrap().to_owned();
    assert_eq!(text, "- [ ] b\n\n## One\n\n- [ ] a\n");
}

#[test]
fn a_new_comment_of_beads_is_last_with_the_next_number() {
    let text = "{\"id\":\"bd-1\",\"title\":\"A\",\"comments\":[{\"id\":7,\"issue_id\":\"bd-1\",\"author\":\"bo\",\"text\":\"later\",\"created_at\":\"2026-01-03T00:00:00Z\"}]}\n\
        {\"id\":\"bd-2\",\"title\":\"B\",\"comments\":[{\"id\":9,\"issue_id\":\"bd-2\",\"author\":\"bo\",\"text\":\"other\",\"created_at\":\"2026-01-03T00:00:00Z\"}]}\n";
    let files = Files::single("i.jsonl", text);
    let mut tasks = reading(Format::Beads, &files).tasks;
    let note = |text: &str| taskpawl_model::task::Note {
        at: "2026-01-01T00:00:00Z".parse().unwrap(),
        actor: "us".to_owned(),
        text: text.to_owned(),
    };
    tasks[0].notes.insert(0, note("first"));
    tasks[1].notes.push(note("second"));
    let written = write(Format::Beads, &tasks, Some(&files)).files;
    let comments: Vec<Value> = written
        .get("i.jsonl")
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["comments"].clone())
        .collect();
    let said = |list: &Value| -> Vec<(Option<i64>, String)> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|one| (one["id"].as_i64(), one["text"].as_str().unwrap().to_owned()))
            .collect()
    };
    assert_eq!(said(&comments[0]), [(Some(7), "later".to_owned()), (Some(10), "first".to_owned())]);
    assert_eq!(said(&comments[1]), [(Some(9), "other".to_owned()), (Some(11), "second".to_owned())]);
    let again = reading(Format::Beads, &written);
    assert_eq!(task(&again, "bd-1").notes.len(), 2);
    // A second export changes nothing.
    assert_eq!(write(Format::Beads, &tasks, Some(&written)).files, written);
}

#[test]
fn links_of_task_master_keep_their_order() {
    let record = |id: u64, on: Value, below: Value| {
        json!({
            "id": id, "title": "T", "description": "", "details": "", "testStrategy": "", "status": "pending", "priority": "medium",
            "dependencies": on, "subtasks": below,
        })
    };
    let below = json!([{"id": 1, "title": "S", "status": "pending", "dependencies": []}]);
    let three = record(3, json!([99, "2.1", 2]), json!([]));
    let tasks = [record(1, json!([]), json!([])), record(2, json!([]), below), three];
    let files = Files::single("t.json", json!({"master": {"tasks": tasks}}).to_string());
    let mut tasks = reading(Format::Taskmaster, &files).tasks;
    let last = find(&mut tasks, "3");
    last.dependencies = vec!["1".into(), "2".into(), "2.1".into()];
    let written = write(Format::Taskmaster, &tasks, Some(&files)).files;
    let value: Value = serde_json::from_str(written.get("t.json").unwrap()).unwrap();
    assert_eq!(value["master"]["tasks"][2]["dependencies"], json!([99, "2.1", 2, 1]));
}

#[test]
fn no_times_are_added_to_a_backlog_file_without_them() {
    let text = "---\nid: TASK-1\ntitle: A\nstatus: To Do\n# mine\nassignee: [ann]\nlabels: [a, b]\n\ndependencies: []\n---\n\nText\n";
    let mut files = Files::single("tasks/task-1 - A.md", text);
    files.insert("config.yml", "statuses: [\"To Do\", \"Done\"]\n");
    let tasks = reading(Format::Backlog, &files).tasks;
    assert_eq!(write(Format::Backlog, &tasks, Some(&files)).files.get("tasks/task-1 - A.md"), Some(text));
}

#[test]
fn a_change_of_a_backlog_file_adds_and_removes_no_other_field() {
    for rest in [
        "",
        "status: null\ncreated_date: null\nupdated_date: ''\ndue_date: ''\nassignee:\ndependencies: null\nparent_task_id:\n",
    ] {
        let text = format!("---\nid: TASK-1\ntitle: A\n{rest}---\n\nText\n");
        let files = Files::single("tasks/task-1 - A.md", text.as_str());
        let mut tasks = reading(Format::Backlog, &files).tasks;
        tasks[0].name = "B".to_owned();
        let written = write(Format::Backlog, &tasks, Some(&files));
        assert_eq!(
            written.files.get("tasks/task-1 - A.md"),
            Some(text.replace("title: A", "title: B").as_str())
        );
        tasks[0].status = Status::Done;
        let written = write(Format::Backlog, &tasks, Some(&files)).files;
        assert!(written.get("tasks/task-1 - A.md").unwrap().contains("\nstatus: Done\n"), "{written:?}");
    }
}

#[test]
fn removing_an_item_spares_another_with_the_same_text() {
    let list = "- [ ] Login\n  - [ ] code\n  - [ ] tests\n- [ ] Logout\n  - [ ] code\n  - [ ] tests\n";
    let flat = "- [ ] same\n- [ ] same\n- [ ] same\n";
    let cases = [
        (list, "tests", "- [ ] Login\n  - [ ] code\n- [ ] Logout\n  - [ ] code\n  - [ ] tests\n"),
        (list, "tests-2", "- [ ] Login\n  - [ ] code\n  - [ ] tests\n- [ ] Logout\n  - [ ] code\n"),
        (flat, "same", "- [ ] same\n- [ ] same\n"),
        (flat, "same-2", "- [ ] same\n- [ ] same\n"),
        (flat, "same-3", "- [ ] same\n- [ ] same\n"),
    ];
    for (text, out, expected) in cases {
        let before = Files::single("T.md", text);
        let (there, mut tasks) = imported(Format::Markdown, &before);
        tasks.retain(|task| task.id.as_str() != out);
        let (rest, left) = without(Format::Markdown, &before, &there, &[out.into()].into());
        let written = write_over(Format::Markdown, &tasks, &rest, &left);
        assert_eq!(written.files.get("T.md"), Some(expected), "{out}");
        let again = read_back(Format::Markdown, &written.files, &written, &options()).unwrap();
        let above = |tasks: &[Task]| -> Vec<_> {
            tasks.iter().map(|task| (task.id.clone(), task.parent.clone())).collect()
        };
        assert_eq!(above(&again.tasks), above(&tasks), "{out}");
    }
}

#[test]
fn equal_names_keep_their_ids_in_another_order() {
    for format in [Format::Markdown, Format::TodoTxt, Format::Kiro] {
        let text =
            if format == Format::TodoTxt { "a\na!\nA\nb\n" } else { "- [ ] a\n- [ ] a!\n- [ ] A\n- [ ] b\n" };
        let mut tasks = reading(format, &Files::single("list", text)).tasks;
        for (task, id) in tasks.iter_mut().zip(["a-3", "a", "a-4", "b"]) {
            task.id = id.into();
            task.metadata.extra.clear();
        }
        let again = reading(format, &write(format, &tasks, None).files).tasks;
        assert_eq!(crate::support::ids(&again), ["a-3", "a", "a-4", "b"], "{}", format.name());
    }
}

#[test]
fn a_new_task_of_shrimp_gets_an_id_that_its_tools_accept() {
    let files = Files::single(
        "tasks.json",
        r#"{"tasks":[{"id":"b7477963-86ab-4f4e-aeab-da27d3230370","name":"A","status":"pending","dependencies":[]}]}"#,
    );
    let mut tasks = reading(Format::Shrimp, &files).tasks;
    let new = Task { id: "new-one".into(), dependencies: vec![tasks[0].id.clone()], ..tasks[0].clone() };
    tasks.push(Task { metadata: taskpawl_model::task::Metadata::default(), ..new });
    let written = write(Format::Shrimp, &tasks, Some(&files)).files;
    let value: Value = serde_json::from_str(written.get("tasks.json").unwrap()).unwrap();
    let id = value["tasks"][1]["id"].as_str().unwrap();
    let parts: Vec<&str> = id.split('-').collect();
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
    assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "{id}");
    assert_eq!(value["tasks"][0]["id"], "b7477963-86ab-4f4e-aeab-da27d3230370");
    assert_eq!(task(&reading(Format::Shrimp, &written), "new-one").dependencies, [tasks[0].id.clone()]);
}
