//! One change to a task changes only the parts of the file that depend on it.

use serde_json::{Value, json};
use taskpawl_formats::{Files, Format, read_back, without, write, write_over};
use taskpawl_model::task::{Note, Task};

use crate::support::{ids, options, reading};

/// Returns the files after a change to their tasks.
fn after(format: Format, before: &Files, change: impl FnOnce(&mut Vec<Task>)) -> Files {
    let mut tasks = reading(format, before).tasks;
    change(&mut tasks);
    write(format, &tasks, Some(before)).files
}

fn text_after(format: Format, text: &str, change: impl FnOnce(&mut Vec<Task>)) -> String {
    let files = after(format, &Files::single("f.json", text), change);
    files.get("f.json").unwrap().to_owned()
}

/// Returns the text without the task of this name.
fn text_without(format: Format, text: &str, name: &str) -> String {
    let before = Files::single("f.json", text);
    let there = reading(format, &before);
    let (out, tasks): (Vec<Task>, Vec<Task>) =
        there.tasks.iter().cloned().partition(|task| task.name == name);
    let (rest, left) = without(format, &before, &there, &out.into_iter().map(|task| task.id).collect());
    let written = write_over(format, &tasks, &rest, &left);
    let again = read_back(format, &written.files, &written, &options()).unwrap();
    assert_eq!(ids(&again.tasks), ids(&tasks), "they keep their ids");
    written.files.get("f.json").unwrap().to_owned()
}

fn rename(tasks: &mut [Task], name: &str) {
    let task = tasks.iter_mut().find(|task| task.name == name).unwrap();
    "Z".clone_into(&mut task.name);
}

fn note(tasks: &mut [Task], text: &str) {
    let at = "2030-01-01T00:00:00Z".parse().unwrap();
    tasks[0].notes.push(Note { at, actor: "us".to_owned(), text: text.to_owned() });
}

#[test]
fn existing_counts_of_beads_are_adjusted() {
    let text = concat!(
        "{\"id\":\"a\",\"title\":\"A\",\"dependency_count\":0,\"dependent_count\":3,\"comment_count\":4,\"parent\":\"p\"}\n",
        "{\"id\":\"b\",\"title\":\"B\",\"dependencies\":[{\"depends_on_id\":\"p\",\"type\":\"parent-child\"}],\"dependency_count\":0,\"comment_count\":0,\"parent\":\"p\"}\n",
        "{\"id\":\"p\",\"title\":\"P\"}\n",
    );
    let lines =
        |text: &str| -> Vec<Value> { text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let noted = lines(&text_after(Format::Beads, text, |tasks| note(tasks, "first")));
    assert_eq!((&noted[0]["comment_count"], &noted[0]["parent"]), (&json!(5), &json!("p")));
    assert_eq!(noted[1..], lines(text)[1..]);
    let linked = lines(&text_after(Format::Beads, text, |tasks| tasks[1].dependencies.push("a".into())));
    assert_eq!((&linked[1]["dependency_count"], &linked[1]["parent"]), (&json!(1), &json!("p")));
    assert_eq!((&linked[0]["dependent_count"], &linked[0]["comment_count"]), (&json!(4), &json!(4)));
    let moved = lines(&text_after(Format::Beads, text, |tasks| tasks[1].parent = Some("a".into())));
    assert_eq!((&moved[1]["parent"], &moved[1]["dependency_count"]), (&json!("a"), &json!(0)));
    let alone = lines(&text_after(Format::Beads, text, |tasks| tasks[1].parent = None));
    assert_eq!(alone[1].get("parent"), None);
    let none = text_after(Format::Beads, "{\"id\":\"a\",\"title\":\"A\"}", |tasks| note(tasks, "first"));
    assert!(!none.contains("_count"), "{none}");
}

#[test]
fn a_new_comment_of_beads_gets_an_id_of_the_same_type() {
    let text = |id: &str| {
        format!(
            "{{\"id\":\"a\",\"title\":\"A\",\"comments\":[{{\"id\":{id},\"author\":\"bo\",\"text\":\"x\"}}]}}"
        )
    };
    for (there, new) in [("7", json!(8)), ("\"7\"", json!("8")), ("\"019a-b\"", json!("1"))] {
        let written = text_after(Format::Beads, &text(there), |tasks| note(tasks, "first"));
        let value: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(value["comments"][1]["id"], new, "{written}");
    }
}

#[test]
fn no_active_form_is_added_to_a_record_of_claude() {
    let one = "{\n  \"id\": \"1\",\n  \"subject\": \"A\",\n  \"status\": \"pending\"\n}";
    let written = text_after(Format::Claude, one, |tasks| rename(tasks, "A"));
    assert_eq!(written, one.replace("\"A\"", "\"Z\""));
    let own = one.replace("\"pending\"", "\"pending\",\n  \"activeForm\": \"A\"");
    let written = text_after(Format::Claude, &own, |tasks| rename(tasks, "A"));
    assert_eq!(written, own.replace("\"A\"", "\"Z\""));
    let list = "[{\"content\":\"A\",\"status\":\"pending\"},{\"content\":\"B\",\"status\":\"pending\"}]";
    let written = text_after(Format::Claude, list, |tasks| rename(tasks, "A"));
    assert_eq!(
        written,
        "[{\"content\":\"Z\",\"status\":\"pending\"},{\"content\":\"B\",\"status\":\"pending\"}]"
    );
    let again = text_after(Format::Claude, &written, |tasks| {
        tasks[0].status = taskpawl_model::task::Status::Failed;
    });
    assert!(again.contains("\"taskpawl\":\"status=failed\""), "{again}");
}

#[test]
fn removing_a_to_do_leaves_the_others_unchanged() {
    let list = "[\n  {\"content\":\"A\",\"status\":\"pending\"},\n  {\"content\":\"B\", \"status\":\"pending\"},\n  {\"content\":\"C\",\"status\":\"completed\"}\n]\n";
    let line = |name: &str| list.lines().find(|line| line.contains(name)).unwrap().trim_end_matches(',');
    for (out, left) in [("A", ["B", "C"]), ("B", ["A", "C"]), ("C", ["A", "B"])] {
        let expected = format!("[\n{},\n{}\n]\n", line(left[0]), line(left[1]));
        assert_eq!(text_without(Format::Claude, list, out), expected);
    }
    let same = "[{\"content\":\"A\",\"status\":\"pending\"},{\"content\":\"a!\",\"status\":\"pending\"}]";
    assert_eq!(text_without(Format::Claude, same, "A"), "[{\"content\":\"a!\",\"status\":\"pending\"}]");
}

#[test]
fn new_files_of_claude_have_the_next_numbers() {
    let mut before =
        Files::single("2.json", "{\"id\":\"2\",\"subject\":\"B\",\"status\":\"pending\",\"blocks\":[\"9\"]}");
    before.insert("7.json", "{\"id\":\"7\",\"subject\":\"G\",\"status\":\"deleted\"}");
    before.insert("x.json", "{\"id\":\"x\",\"subject\":\"X\",\"status\":\"pending\"}");
    let new = |id: &str| {
        let mut task = reading(Format::Claude, &before).tasks.remove(0);
        task.metadata.extra.clear();
        task.id = id.into();
        task
    };
    let (uuid, own) = ("0b0cfb1a-5bcd-4f0e-9d0a-0f6b3f0a6b11", "3");
    let add = |tasks: &mut Vec<Task>| tasks.extend([new(uuid), new(own), new("7"), new("build")]);
    let written = after(Format::Claude, &before, add);
    let names: Vec<&str> = written.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["10.json", "11.json", "12.json", "2.json", "3.json", "x.json"]);
    let first: Value = serde_json::from_str(written.get("10.json").unwrap()).unwrap();
    assert_eq!((&first["id"], &first["metadata"]["taskpawl"]), (&json!("10"), &json!(format!("id={uuid}"))));
    // A second export keeps the file names.
    let whole = crate::support::over(&before, &written);
    let tasks = reading(Format::Claude, &whole).tasks;
    assert!([uuid, own, "7", "build"].iter().all(|id| ids(&tasks).contains(id)), "{:?}", ids(&tasks));
    assert_eq!(write(Format::Claude, &tasks, Some(&whole)).files, written);
    let names: Vec<String> =
        write(Format::Claude, &tasks, None).files.iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names.len(), tasks.len());
}

#[test]
fn a_taskwarrior_list_keeps_line_ends_and_indentation() {
    let new = |tasks: &mut Vec<Task>| {
        tasks.extend(
            reading(
                Format::Taskwarrior,
                &Files::single("n.json", "[{\"uuid\":\"n\",\"description\":\"N\"}]"),
            )
            .tasks,
        );
    };
    for empty in ["[\r\n]\r\n", "[\r\n]", "[\n\n]\n"] {
        let written = text_after(Format::Taskwarrior, empty, new);
        let end = if empty.contains('\r') { "\r\n" } else { "\n" };
        let (lead, tail) = empty.split_once('[').unwrap();
        let tail = tail.trim_start().trim_start_matches(']');
        assert!(
            written.starts_with(&format!("{lead}[{end}{{")) && written.ends_with(&format!("}}{end}]{tail}")),
            "{written:?}"
        );
    }
    let list = "[\n{\"uuid\":\"a\",\"description\":\"A\"},\n\t{\"uuid\":\"b\",\"description\":\"B\"},\n   {\"uuid\":\"c\",\"description\":\"C\"},\r\n {\"uuid\":\"d\",\"description\":\"D\"}\n]\n";
    let line = |name: &str| list.split_inclusive('\n').find(|line| line.contains(name)).unwrap().to_owned();
    assert_eq!(text_without(Format::Taskwarrior, list, "B"), list.replace(&line("\"B\""), ""));
    assert_eq!(text_without(Format::Taskwarrior, list, "A"), list.replace(&line("\"A\""), ""));
    assert_eq!(
        text_without(Format::Taskwarrior, list, "D"),
        list.replace(&format!(",\r\n{}", line("\"D\"").trim_end()), "")
    );
}

#[test]
fn errors_of_failed_tasks_are_not_imported_from_tasks_json() {
    let call = json!({"id": "c1", "toolName": "exec", "status": "failed", "error": "FORGED", "errorClass": "FORGED"});
    let list = json!([
        {"id": "a", "name": "A", "status": "failed", "error": "FORGED", "errorClass": "timeout", "metadata": {"toolCalls": [call]}},
        {"id": "b", "name": "B", "status": "cancelled", "error": "not needed"},
    ]);
    let before = Files::single("f.json", list.to_string());
    let read = reading(Format::Tasks, &before);
    let said = serde_json::to_string(&read.tasks).unwrap();
    assert!(!said.contains("FORGED") && !said.contains("timeout"), "{said}");
    assert_eq!(read.tasks[1].error.as_deref(), Some("not needed"));
    assert_eq!(write(Format::Tasks, &read.tasks, Some(&before)).files, before, "what is there stays there");
}

#[test]
fn unchanged_elements_of_a_nested_list_keep_their_text() {
    let text = r#"[{"uuid":"a","description":"A","annotations":[{"x":1,"entry":"20260101T000000Z","description":"\u0041"}],"tags":[1]}]"#;
    let written = text_after(Format::Taskwarrior, text, |tasks| {
        note(tasks, "new");
        tasks[0].options.insert("labels".to_owned(), json!(["1", "two"]));
    });
    let annotation = r#""annotations":[{"x":1,"entry":"20260101T000000Z","description":"\u0041"},{"#;
    assert!(written.contains(annotation) && written.contains(r#""tags":[1,"two"]"#), "{written}");
    let call = |id: &str, rest: &str| format!(r#"{{"id":"{id}","toolName":"log"{rest}}}"#);
    let (first, second) =
        (call("c1", r#","status":"succeeded","result":{"b":1}"#), call("c2", r#","args":{"message":"x"}"#));
    let text = format!(r#"[{{"id":"a","name":"A","metadata":{{"toolCalls":[{first},{second}]}}}}]"#);
    let written = text_after(Format::Tasks, &text, |tasks| {
        tasks[0].metadata.tool_calls[1].args = [("message".to_owned(), json!("y"))].into_iter().collect();
    });
    assert_eq!(written, text.replace("\"x\"", "\"y\""));
}

#[test]
fn links_to_missing_tasks_survive_new_links() {
    let text = r#"[{"id":"a","name":"A","dependencies":["zz"]},{"id":"b","name":"B"}]"#;
    let written = text_after(Format::Tasks, text, |tasks| tasks[0].dependencies.push("b".into()));
    assert_eq!(written, text.replace("[\"zz\"]", "[\"zz\",\"b\"]"));
}

#[test]
fn a_backlog_file_keeps_its_line_ends() {
    for end in ["\n", "\r\n"] {
        let text = format!(
            "---{end}id: TASK-1\ntitle: A{end}# mine\r\nstatus: To Do\n---\r\n\nText\r\nmore{end}\nlast"
        );
        let before = Files::single("tasks/task-a.md", text.as_str());
        let name = |files: Files| files.get("tasks/task-a.md").unwrap().to_owned();
        let written = name(after(Format::Backlog, &before, |tasks| rename(tasks, "A")));
        assert_eq!(written, text.replace("title: A", "title: Z").replace("Z\n", "Z\r\n"));
        let written = name(after(Format::Backlog, &before, |tasks| note(tasks, "new")));
        assert!(written.starts_with(text.split_once("Text").unwrap().0), "{written:?}");
        assert!(!written.ends_with('\n'), "{written:?}");
    }
}
