//! Records that leave a file: everything else keeps its meaning, and links to them go, too.

use taskpawl_formats::{Files, Format, read_back, without, write_over};

use crate::support::{ids, options, over, reading};

/// Returns the files after the task of this id was deleted and taken out.
fn taken_out(format: Format, before: &Files, id: &str) -> Files {
    let there = reading(format, before);
    let (rest, left) = without(format, before, &there, &[id.into()].into());
    let mut tasks = there.tasks;
    tasks.retain(|task| task.id.as_str() != id);
    for task in &mut tasks {
        task.dependencies.retain(|on| on.as_str() != id);
    }
    let written = write_over(format, &tasks, &rest, &left);
    let files = over(&rest, &written.files);
    let again = read_back(format, &files, &written, &options()).unwrap();
    assert_eq!(ids(&again.tasks), ids(&tasks));
    assert!(again.left_out.is_empty(), "{:?}", again.left_out);
    let twice = write_over(format, &tasks, &files, &again);
    assert_eq!(over(&files, &twice.files), files, "one export is enough");
    files
}

#[test]
fn links_to_a_removed_file_of_claude_go_in_both_directions() {
    let one = |id: &str, rest: &str| {
        format!(r#"{{"id":"{id}","subject":"S{id}","description":"","status":"pending",{rest}}}"#)
    };
    let mut before = Files::single("1.json", one("1", r#""blocks":["2","3"],"blockedBy":[]"#));
    before.insert("2.json", one("2", r#""blocks":["3"],"blockedBy":["1"]"#));
    before.insert("3.json", one("3", r#""blocks":[],"blockedBy":["1","2"]"#));
    let files = taken_out(Format::Claude, &before, "2");
    assert_eq!(files.get("1.json"), Some(one("1", r#""blocks":["3"],"blockedBy":[]"#).as_str()));
    assert_eq!(files.get("2.json"), None);
    assert_eq!(files.get("3.json"), Some(one("3", r#""blocks":[],"blockedBy":["1"]"#).as_str()));
}

#[test]
fn of_two_files_with_one_id_the_first_is_written() {
    let one = |subject: &str| format!(r#"{{"id":"1","subject":"{subject}","status":"pending"}}"#);
    let mut before = Files::single("1.json", one("A"));
    before.insert("other.json", one("B"));
    let there = reading(Format::Claude, &before);
    let mut tasks = there.tasks.clone();
    tasks[0].name = "New".to_owned();
    let written = write_over(Format::Claude, &tasks, &before, &there);
    let texts: Vec<(&str, &str)> = written.files.iter().collect();
    assert_eq!(texts, [("1.json", one("New").as_str())]);
    let (rest, _) = without(Format::Claude, &before, &there, &["1".into()].into());
    assert_eq!(rest.iter().collect::<Vec<_>>(), [("other.json", one("B").as_str())]);
}

#[test]
fn links_to_a_removed_file_of_backlog_go() {
    let one = |id: &str, rest: &str| {
        format!("---\nid: {id}\ntitle: A\nstatus: To Do\ncreated_date: 2026-01-01\n{rest}---\n")
    };
    let mut before = Files::single("tasks/task-1 - a.md", one("TASK-1", ""));
    before.insert("tasks/task-2 - a.md", one("TASK-2", "dependencies:\n  - TASK-1\n  - TASK-3\n"));
    before.insert("tasks/task-3 - a.md", one("TASK-3", ""));
    let files = taken_out(Format::Backlog, &before, "TASK-1");
    let left = one("TASK-2", "dependencies:\n  - TASK-3\n");
    assert_eq!(files.get("tasks/task-2 - a.md"), Some(left.as_str()));
}

#[test]
fn lines_of_todo_txt_without_a_task_do_not_count() {
    let before =
        Files::single("todo.txt", "a\n\nx 2026-01-01\nb\n<<<<<<< x\nq\n=======\nr\n>>>>>>> y\nc\nd\n");
    let there = reading(Format::TodoTxt, &before);
    let (rest, left) = without(Format::TodoTxt, &before, &there, &["b".into()].into());
    assert_eq!(rest.get("todo.txt"), before.get("todo.txt").map(|text| text.replace("b\n", "")).as_deref());
    let mut tasks = left.tasks.clone();
    tasks.iter_mut().find(|task| task.name == "c").unwrap().name = "new".to_owned();
    let written = write_over(Format::TodoTxt, &tasks, &rest, &left);
    let expected = rest.get("todo.txt").map(|text| text.replace("c\n", "new\n"));
    assert_eq!(written.files.get("todo.txt"), expected.as_deref());
}

#[test]
fn new_files_take_no_name_of_a_file_that_cannot_be_read() {
    let mut claude = Files::single("1.json", r#"{"id":"1","subject":"A","status":"pending"}"#);
    claude.insert("2.json", "no JSON");
    claude.insert_unread("3.json");
    let mut backlog =
        Files::single("tasks/task-1 - a.md", "---\nid: TASK-1\ntitle: A\ncreated_date: 2026-01-01\n---\n");
    backlog.insert("tasks/task-2 - B.md", "no head");
    backlog.insert_unread("tasks/task-3 - C.md");
    for (format, before, name) in
        [(Format::Claude, claude, "4.json"), (Format::Backlog, backlog, "tasks/task-4 - New.md")]
    {
        let there = reading(format, &before);
        let mut tasks = there.tasks.clone();
        let mut new = tasks[0].clone();
        (new.id, new.name) = ("new".into(), "New".to_owned());
        new.metadata.extra.clear();
        tasks.push(new);
        let written = write_over(format, &tasks, &before, &there);
        let names: Vec<&str> = written.files.iter().map(|(name, _)| name).collect();
        assert!(names.contains(&name), "{names:?}");
        assert!(!names.iter().any(|name| name.contains('2') || name.contains('3')), "{names:?}");
    }
}
