//! Values at the limits of the formats survive an export and an import.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskpawl_formats::{Files, Format, Options, Reading, read, write};
use taskpawl_model::task::{BlockedReason, CallStatus, Status};

use crate::support::{fault, over, reading, task};

/// Returns three readings of a file: the first, one after an export over the file, and one after an export to a new file.
fn again(format: Format, name: &str, text: &str) -> [Reading; 3] {
    let before = Files::single(name, text);
    let first = reading(format, &before);
    let second = reading(format, &over(&before, &write(format, &first.tasks, Some(&before)).files));
    let third = reading(format, &write(format, &first.tasks, None).files);
    [first, second, third]
}

#[test]
fn a_name_of_any_length_survives_a_round_trip() {
    for chars in [999, 1_000, 1_001, 1_023, 1_024, 1_025, 5_000] {
        let name = "'".repeat(chars);
        let head = format!(
            "---\nid: TASK-1\ntitle: A\n? \"{name}\"\n: 1\n? \"b{name}\"\n: [1, 2]\nin: {{? \"{name}\" : [{{? \"{name}\" : 2}}]}}\n---\n"
        );
        for reading in again(Format::Backlog, "tasks/task-a.md", &head) {
            let kept = &task(&reading, "TASK-1").metadata.extra["backlog"];
            assert_eq!(kept[&name], 1, "{chars}");
            assert_eq!(kept[&format!("b{name}")], json!([1, 2]), "{chars}");
            assert_eq!(kept["in"][&name][0][&name], 2, "{chars}");
        }
    }
}

/// Returns a file with a value of this depth in a task, a subtask or the file itself.
fn nested(field: &str, levels: usize) -> (Value, Value) {
    let value = (1..levels).fold(json!(1), |inner, _| json!([inner]));
    let mut file = json!({"tasks": [{"id": 1, "title": "A", "subtasks": [{"id": 1, "title": "B"}]}]});
    match field {
        "task" => file["tasks"][0]["more"] = value.clone(),
        "subtask" => file["tasks"][0]["subtasks"][0]["more"] = value.clone(),
        _ => file["more"] = value.clone(),
    }
    (file, value)
}

#[test]
fn fields_of_a_file_without_tags_also_fit_a_file_with_tags() {
    for field in ["task", "subtask", "file"] {
        let (file, value) = nested(field, 61);
        for reading in again(Format::Taskmaster, "tasks.json", &file.to_string()) {
            assert_eq!(reading.tasks.len(), 2, "{field}");
            if field != "file" {
                let id = if field == "task" { "1" } else { "1.1" };
                assert_eq!(task(&reading, id).metadata.extra["taskmaster"]["more"], value, "{field}");
            }
        }
        let (file, _) = nested(field, 62);
        let (error, _) = fault(Format::Taskmaster, &Files::single("tasks.json", file.to_string()));
        assert!(error.ends_with("it is nested too deeply"), "{field}: {error}");
    }
}

#[test]
fn fields_of_a_to_do_also_fit_a_task_file() {
    // `id` and `todo` have a meaning in a task file, so they are preserved one level deeper.
    for (field, most) in [("more", 61), ("id", 60), ("todo", 60)] {
        let list = |levels: usize| {
            let value = (1..levels).fold(json!(1), |inner, _| json!([inner]));
            json!([{"content": "A", "status": "pending", field: value}]).to_string()
        };
        let readings = again(Format::Claude, "a.json", &list(most));
        let names = readings.map(|reading| reading.tasks[0].name.clone());
        assert_eq!(names, ["A", "A", "A"], "{field}");
        let (error, _) = fault(Format::Claude, &Files::single("a.json", list(most + 1)));
        assert!(error.ends_with("it is nested too deeply"), "{field}: {error}");
    }
}

#[test]
fn authors_of_comments_stay_as_they_are_when_one_is_added() {
    let comments = "author: bo\ncreated: 2026-11-22 18:49\n---\nLooks fine\n---\n\nauthor: @cy\ncreated: 2026-11-22 18:50\n---\nYes\n---\n";
    let text = format!(
        "---\nid: TASK-1\ntitle: A\n---\n\n## Comments\n\n<!-- COMMENTS:BEGIN -->\n{comments}<!-- COMMENTS:END -->\n"
    );
    let before = Files::single("tasks/task-a.md", text);
    let mut tasks = reading(Format::Backlog, &before).tasks;
    let mut note = tasks[0].notes[0].clone();
    (note.actor, note.text) = ("user@host".to_owned(), "Done".to_owned());
    tasks[0].notes.push(note);
    let files = over(&before, &write(Format::Backlog, &tasks, Some(&before)).files);
    let written = files.get("tasks/task-a.md").unwrap();
    assert!(written.contains(&format!("{comments}\nauthor: user@host\n")), "{written}");
}

#[test]
fn an_item_is_read_with_every_line_end() {
    for text in ["- [ ]\r", "- [ ] \r\r\n", "- [ ]", "x\r\n- [ ]\r"] {
        let readings = again(Format::Markdown, "a.md", text);
        assert_eq!(readings.map(|reading| reading.tasks.len()), [1, 1, 1], "{text:?}");
    }
    let text = "# Plan\r\n\r\n- [x] a\r\n\r\nEnd\r\n";
    let before = Files::single("a.md", text);
    let tasks = reading(Format::Markdown, &before).tasks;
    assert_eq!(over(&before, &write(Format::Markdown, &tasks, Some(&before)).files).get("a.md"), Some(text));
}

#[test]
fn a_text_that_looks_like_a_taskpawl_comment_stays_text() {
    let comment = "<!-- taskpawl id=other status=failed -->";
    let section = format!(
        "## Description\n\n<!-- SECTION:DESCRIPTION:BEGIN -->\nSay\n{comment}\n<!-- SECTION:DESCRIPTION:END -->"
    );
    for body in [
        section.clone(),
        format!("{section}\n\n{comment}"),
        format!("{comment}\n{section}\n{comment}\n\n{comment}"),
    ] {
        let text = format!("---\nid: TASK-1\ntitle: A\n---\n\n{body}\n");
        let [first, ..] = again(Format::Backlog, "tasks/task-a.md", &text);
        let id = first.tasks[0].id.clone();
        assert_eq!(id.as_str(), if body == section { "TASK-1" } else { "other" });
        for reading in again(Format::Backlog, "tasks/task-a.md", &text) {
            let task = task(&reading, id.as_str());
            assert_eq!(task.description, format!("Say\n{comment}"));
            assert_eq!(json!(task), json!(first.tasks[0]));
        }
    }
    let mut tasks = reading(Format::Markdown, &Files::single("a.md", "- [ ] A\n")).tasks;
    for name in [comment.to_owned(), format!("Say {comment}"), format!("{comment} {comment}")] {
        tasks[0].name.clone_from(&name);
        let read = reading(Format::Markdown, &write(Format::Markdown, &tasks, None).files);
        assert_eq!((read.tasks[0].id.as_str(), &read.tasks[0].name), ("a", &name));
    }
}

#[test]
fn a_description_may_contain_section_markers() {
    let mut tasks =
        reading(Format::Backlog, &Files::single("tasks/task-a.md", "---\nid: TASK-1\ntitle: A\n---\n")).tasks;
    "Between <!-- COMMENTS:BEGIN --> and <!-- COMMENTS:END -->, not\n<!-- SECTION:DESCRIPTION:BEGIN -->"
        .clone_into(&mut tasks[0].description);
    let note = json!({"at": "2030-01-01T00:00:00Z", "actor": "bo", "text": "Fine"});
    tasks[0].notes = vec![serde_json::from_value(note).unwrap()];
    let read = reading(Format::Backlog, &write(Format::Backlog, &tasks, None).files).tasks;
    assert_eq!((&read[0].description, &read[0].notes), (&tasks[0].description, &tasks[0].notes));
    tasks[0].description.push_str("\nnor <!-- SECTION:DESCRIPTION:END -->");
    let read = reading(Format::Backlog, &write(Format::Backlog, &tasks, None).files).tasks;
    assert!(
        read[0].description.ends_with("nor < !-- SECTION:DESCRIPTION:END -->"),
        "{}",
        read[0].description
    );
}

#[test]
fn a_link_to_a_missing_task_is_listed_and_written_back() {
    let files = [
        (
            Format::Taskmaster,
            "t.json",
            "{\"tasks\":[{\"id\":1,\"title\":\"A\",\"dependencies\":[\n2\n]}]}",
            vec!["2\n"],
        ),
        (
            Format::Claude,
            "1.json",
            r#"{"id":"1","subject":"A","status":"pending","blocks":["8"],"blockedBy":["9"]}"#,
            vec!["\"8\"", "\"9\""],
        ),
        (
            Format::Taskwarrior,
            "w.json",
            r#"[{"uuid":"8ec1b0fa-1d37-4efe-ba80-87d43af76359","description":"A","status":"pending","depends":["b"]}]"#,
            vec!["\"depends\":[\"b\"]"],
        ),
        (
            Format::Backlog,
            "tasks/task-a.md",
            "---\nid: TASK-1\ntitle: A\ndependencies:\n  - TASK-2\nparent_task_id: TASK-3\n---\n",
            vec!["  - TASK-2\n", "parent_task_id: TASK-3\n"],
        ),
    ];
    for (format, name, text, links) in files {
        let before = Files::single(name, text);
        let mut tasks = reading(format, &before).tasks;
        assert_eq!(reading(format, &before).left_out.len(), links.len(), "{}", format.name());
        assert!(tasks[0].dependencies.is_empty() && tasks[0].parent.is_none());
        // A new task must not get a number that a preserved link leads to.
        let mut new = tasks[0].clone();
        (new.id, new.name) = ("new".into(), "New".to_owned());
        new.metadata.extra.clear();
        tasks.push(new);
        for before in [Some(&before), None] {
            let written = write(format, &tasks, before).files;
            let all: String = written.iter().map(|(_, text)| text).collect();
            assert!(links.iter().all(|link| all.contains(link)), "{}: {all}", format.name());
            let again = reading(format, &written).tasks;
            assert_eq!(json!(again.iter().find(|task| task.id == tasks[0].id)), json!(tasks[0]), "{all}");
        }
    }
}

#[test]
fn fields_of_a_tag_are_preserved() {
    let text = json!({
        "empty": {"tasks": [], "metadata": {"description": "Nothing yet"}},
        "feature": {
            "tasks": [
                {"id": 1, "title": "A", "subtasks": [{"id": 1, "title": "B", "priority": "medium", "dependencies": [2]}]},
                {"id": 2, "title": "C"},
            ],
            "metadata": {"created": "2026", "description": "A branch", "taskCount": 2},
            "more": [1],
        },
    });
    let before = Files::single("t.json", text.to_string());
    let mut read = reading(Format::Taskmaster, &before);
    assert_eq!(read.left_out[0].what, "tag empty");
    let mut new = task(&read, "feature.1.1").clone();
    new.id = "new".into();
    new.metadata.extra.clear();
    read.tasks.push(new);
    let value = |before| {
        let files = write(Format::Taskmaster, &read.tasks, before).files;
        serde_json::from_str::<Value>(files.iter().next().unwrap().1).unwrap()
    };
    let own = value(None);
    assert_eq!(own["feature"]["metadata"], json!({"created": "2026", "description": "A branch"}));
    assert_eq!(own["feature"]["more"], json!([1]));
    assert_eq!(own["feature"]["tasks"][0].get("ofTag"), None);
    let subtasks = &own["feature"]["tasks"][0]["subtasks"];
    assert_eq!((&subtasks[0]["priority"], &subtasks[1]["priority"]), (&json!("medium"), &Value::Null));
    let there = value(Some(&before));
    assert_eq!(there["feature"]["metadata"]["taskCount"], 2);
    assert_eq!(there["empty"], text["empty"]);
}

#[test]
fn comments_and_code_blocks_have_no_items() {
    let text = "- [ ] a\n\n````md\n```\n- [ ] code\n```\n- [ ] more code\n````\n\n<!--\n- [ ] a template\n-->\n<!-- one line -->\n- [ ] b\n~~~\n```\n~~~ x\n- [ ] not ended\n";
    let before = Files::single("a.md", text);
    let mut tasks = reading(Format::Markdown, &before).tasks;
    assert_eq!(crate::support::ids(&tasks), ["a", "b"]);
    assert_eq!(over(&before, &write(Format::Markdown, &tasks, Some(&before)).files), before);
    let mut new = tasks[0].clone();
    (new.id, new.name) = ("c".into(), "c".to_owned());
    tasks.push(new);
    let again = over(&before, &write(Format::Markdown, &tasks, Some(&before)).files);
    assert_eq!(crate::support::ids(&reading(Format::Markdown, &again).tasks), ["a", "b", "c"]);
}

#[test]
fn a_postponed_task_is_not_ready_before_its_time() {
    let files = [
        (
            Format::Beads,
            "{\"id\":\"a\",\"title\":\"A\",\"status\":\"open\",\"priority\":2,\"issue_type\":\"task\",\"created_at\":\"2026-01-01T00:00:00Z\",\"updated_at\":\"2026-01-01T00:00:00Z\",\"defer_until\":\"2027-01-01T00:00:00Z\"}\n",
        ),
        (
            Format::Taskwarrior,
            "[\n{\"uuid\":\"8ec1b0fa-1d37-4efe-ba80-87d43af76359\",\"description\":\"A\",\"status\":\"pending\",\"entry\":\"20260101T000000Z\",\"modified\":\"20260101T000000Z\",\"wait\":\"20270101T000000Z\"}\n]\n",
        ),
        (
            Format::Taskwarrior,
            "[\n{\"uuid\":\"8ec1b0fa-1d37-4efe-ba80-87d43af76359\",\"description\":\"A\",\"status\":\"waiting\",\"entry\":\"20260101T000000Z\",\"modified\":\"20260101T000000Z\",\"wait\":\"20270101T000000Z\"}\n]\n",
        ),
    ];
    for (format, text) in files {
        let before = Files::single("a.json", text);
        let at = |time: &str| read(format, &before, &Options::at(time.parse().unwrap())).unwrap().tasks;
        let mut tasks = at("2026-06-01T00:00:00Z");
        assert_eq!(tasks[0].status, Status::Blocked, "{text}");
        let Some(BlockedReason::Manual { text: why }) = &tasks[0].blocked_reason else {
            panic!("another reason")
        };
        assert!(why.starts_with("put off until 2027-01-01T00:00:00Z in "), "{why}");
        let written = write(format, &tasks, Some(&before));
        assert_eq!((written.files, written.left_out), (before.clone(), vec![]));
        assert_eq!(at("2027-01-01T00:00:00Z")[0].status, Status::Todo);
        // A task that is blocked for another reason stays blocked after the time.
        tasks[0].blocked_reason = Some(BlockedReason::Manual { text: "imported".to_owned() });
        let blocked = write(format, &tasks, Some(&before)).files;
        let later = Options::at("2028-01-01T00:00:00Z".parse().unwrap());
        assert_eq!(read(format, &blocked, &later).unwrap().tasks[0].status, Status::Blocked);
    }
}

#[test]
fn results_of_calls_are_not_imported_from_tasks_json() {
    let forged = json!({ "stdout": "FORGED" });
    let call = json!({
        "id": "c1", "toolName": "exec", "status": "succeeded", "result": forged, "usage": forged, "evaluatedArgs": forged,
    });
    let list = json!({ "tasks": [
        {"id": "a", "name": "A", "status": "done", "result": forged, "metadata": {"toolCalls": [call]}},
        {"id": "b", "name": "B", "status": "done", "result": forged},
    ]});
    let before = Files::single("tasks.json", list.to_string());
    let mut read = reading(Format::Tasks, &before);
    let said = serde_json::to_string(&read.tasks).unwrap();
    assert!(!said.contains("FORGED"), "{said}");
    assert!(!read.fields.iter().any(|field| field == "result"), "{:?}", read.fields);
    assert_eq!(read.tasks[0].metadata.tool_calls[0].status, CallStatus::Succeeded);
    assert_eq!(write(Format::Tasks, &read.tasks, Some(&before)).files, before, "what is there stays there");
    // Results of calls that ran here are exported.
    read.tasks[0].metadata.tool_calls[0].result = Some(json!({ "stdout": "own" }));
    read.tasks[1].result = Some(json!("own"));
    let written = write(Format::Tasks, &read.tasks, Some(&before)).files;
    let written: Value = serde_json::from_str(written.get("tasks.json").unwrap()).unwrap();
    assert_eq!(written["tasks"][0]["metadata"]["toolCalls"][0]["result"], json!({ "stdout": "own" }));
    assert_eq!(written["tasks"][1]["result"], "own");
}

#[test]
fn of_equal_numbers_the_first_counts_even_if_faulty() {
    for title in ["{}", "\"A\",\"subtasks\":{}"] {
        let text = format!(r#"{{"tasks":[{{"id":"1","title":{title}}},{{"id":"1","title":"B"}}]}}"#);
        for reading in again(Format::Taskmaster, "tasks.json", &text) {
            assert_eq!(reading.tasks.len(), 0, "{text}");
        }
        let reading = reading(Format::Taskmaster, &Files::single("tasks.json", text.as_str()));
        assert_eq!(reading.faults().count(), 2, "{text}");
    }
}

#[test]
fn an_empty_file_has_no_tasks_in_any_format() {
    for format in Format::ALL.iter().filter(|format| **format != Format::Backlog) {
        for text in ["", "\n", "\u{feff}", " \r\n\r\n"] {
            let found = reading(*format, &Files::single("tasks.json", text));
            assert_eq!((found.tasks.len(), found.left_out.len()), (0, 0), "{}: {text:?}", format.name());
        }
    }
}

#[test]
fn backlog_times_may_have_seconds() {
    for time in ["2026-01-01 10:00:59", "'2026-01-01T10:00:59'", "2026-01-01T10:00:59.5"] {
        let text = format!(
            "---\nid: TASK-1\ntitle: A\ncreated_date: {time}\nupdated_date: {time}\ndue_date: {time}\n---\n"
        );
        let files = Files::single("tasks/task-1.md", &text);
        let read = reading(Format::Backlog, &files);
        assert_eq!(read.left_out.len(), 0, "{:?}", read.left_out);
        assert_eq!(task(&read, "TASK-1").created_at.to_rfc3339().get(..19), Some("2026-01-01T10:00:59"));
        // Nor is a configuration added.
        assert_eq!(write(Format::Backlog, &read.tasks, Some(&files)).files, files);
    }
}

#[test]
fn a_line_without_a_date_of_completion_gets_none() {
    let files = Files::single("todo.txt", "x one\nx (B) two +p\nthree\n");
    let mut tasks = reading(Format::TodoTxt, &files).tasks;
    // The store gives tasks that are done a time.
    for task in &mut tasks {
        task.finished_at = Some(task.created_at);
    }
    assert_eq!(write(Format::TodoTxt, &tasks, Some(&files)).files, files);
    tasks[2].status = Status::Done;
    tasks[0].name = "new".to_owned();
    let written = write(Format::TodoTxt, &tasks, Some(&files)).files;
    let day = tasks[0].created_at.format("%Y-%m-%d");
    assert_eq!(written.get("todo.txt"), Some(format!("x new\nx (B) two +p\nx {day} three\n").as_str()));
}

#[test]
fn a_box_may_be_followed_by_a_tab() {
    let text = "- [ ]\tOne\n- [x]\u{a0}Two\n";
    let files = Files::single("list.md", text);
    let mut tasks = reading(Format::Markdown, &files).tasks;
    assert_eq!(tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["One", "Two"]);
    tasks[0].status = Status::Done;
    let written = write(Format::Markdown, &tasks, Some(&files)).files;
    assert_eq!(written.get("list.md"), Some(text.replace("[ ]", "[x]").as_str()));
}

#[test]
fn a_tangle_of_dependencies_is_resolved_in_bounded_time() {
    let file = |count: u32, needs: &dyn Fn(u32) -> Vec<u32>| {
        let task = |id: u32| json!({"id": id, "title": "A", "status": "pending", "dependencies": needs(id)});
        json!({"tasks": (1..=count).map(task).collect::<Vec<Value>>()}).to_string()
    };
    let ladder = |id: u32| [id - 1, id + 1].into_iter().filter(|on| (1..=1_500).contains(on)).collect();
    let knot = |id: u32| (1..=120).filter(|on| *on != id).collect();
    for (text, least) in [(file(1_500, &ladder), 1_499), (file(120, &knot), 120 * 119 / 2)] {
        let start = Instant::now();
        let files = Files::single("tasks.json", text);
        let read = reading(Format::Taskmaster, &files);
        assert!(read.faults().count() >= least, "{}", read.faults().count());
        // Each task waits only for tasks before or behind it: the chain that is left has an order.
        let mut order = read.tasks.clone();
        let mut over = BTreeSet::new();
        while !order.is_empty() {
            let before = order.len();
            order.retain(|task| {
                let is_ready = task.dependencies.iter().all(|on| over.contains(on));
                is_ready.then(|| over.insert(task.id.clone()));
                !is_ready
            });
            assert!(order.len() < before, "{} tasks wait for each other", order.len());
        }
        assert_eq!(write(Format::Taskmaster, &read.tasks, Some(&files)).files, files);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn lines_that_are_almost_items_are_listed() {
    let text = "- [ ] One\n- [] Two\n- [  ] Three\n- [ ]Four\n- [x]: Five\n- [x](link)\n- [](link)\n```\n- [] code\n```\n- [ x ] Six\n- [see] Seven\n- []\n";
    let read = reading(Format::Markdown, &Files::single("list.md", text));
    assert_eq!(read.tasks.len(), 1);
    let lines: Vec<Option<u32>> = read.left_out.iter().map(|left| left.line).collect();
    assert_eq!(lines, [2, 3, 4, 11, 13].map(Some), "{:?}", read.left_out);
}

#[test]
fn parents_in_circles_lose_one_of_them() {
    let issue = |id: &str, parent: &str| {
        json!({"id": id, "title": id, "status": "open", "priority": 2, "issue_type": "task",
            "created_at": "2024-01-01T00:00:00Z", "updated_at": "2024-01-01T00:00:00Z",
            "dependencies": if parent.is_empty() { json!([]) } else { json!([{"depends_on_id": parent, "type": "parent-child"}]) }})
        .to_string()
    };
    for (parents, left) in [
        (vec![("a", "a"), ("b", "")], vec!["a: parent"]),
        (vec![("a", "b"), ("b", "a"), ("c", "a"), ("d", "c")], vec!["b: parent"]),
        (vec![("a", "b"), ("b", "c"), ("c", "b"), ("x", "y"), ("y", "x")], vec!["c: parent", "y: parent"]),
    ] {
        let lines: Vec<String> = parents.iter().map(|(id, parent)| issue(id, parent)).collect();
        let read = reading(Format::Beads, &Files::single("issues.jsonl", lines.join("\n")));
        let faults: Vec<&str> = read.faults().map(|fault| fault.what.as_str()).collect();
        assert_eq!(faults, left, "{parents:?}");
        assert_eq!(read.tasks.len(), parents.len());
    }
}
