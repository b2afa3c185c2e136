//! Errors contain the file, the line or record, the field, and a hint.

use taskpawl_formats::{Files, Format, read};

use crate::support::{fault, options};

#[test]
fn an_error_names_the_place_and_the_remedy() {
    let cases = [
        (
            Format::Beads,
            "i.jsonl",
            "{\"id\":\"a\",\"title\":\"A\"}\n{\"id\":\"b\",\"title\":\"B\",\"priority\":9}",
            "i.jsonl:2: b: priority: expected a number from 0 to 4, and it is `9`",
        ),
        (
            Format::Beads,
            "i.jsonl",
            "{\"id\":\"a\",\"title\":\"A\"}\n\n{\"id\":",
            "i.jsonl:3: line 3: it is no JSON (column 6): EOF while parsing a value",
        ),
        (
            Format::Beads,
            "i.jsonl",
            "{\"id\":\"a\",\"title\":\"A\"}\n{\"id\":\"a\",\"title\":\"A\"}",
            "i.jsonl:2: a: issue `a` is there twice, in lines 1 and 2; that of line 1 counts",
        ),
        (
            Format::Taskmaster,
            "t.json",
            "{\"master\":{\"tasks\":[{\"id\":1,\"title\":\"A\",\"status\":\"dne\"}]}}",
            "t.json:1: 1: status: expected one of pending, in-progress, review, done, completed, cancelled, blocked, deferred, and it is `\"dne\"`",
        ),
        (Format::Taskmaster, "t.json", "{\"master\":{}}", "t.json:1: tag master: tasks: it is missing"),
        (
            Format::Taskwarrior,
            "t.json",
            "[\n{\"uuid\":\"u\",\"description\":\"x\",\"due\":\"soon\"}]",
            "t.json:2: u: due: expected a time, and it is `\"soon\"`",
        ),
        (
            Format::Claude,
            "1.json",
            "{\"id\":\"1\",\"subject\":\"\",\"status\":\"pending\"}",
            "1.json: 1: subject: it is empty",
        ),
        (Format::Backlog, "tasks/task-a.md", "# no head", "tasks/task-a.md:1: it has no head"),
        (
            Format::Backlog,
            "tasks/task-a.md",
            "---\nid: TASK-1\ntitle: A\nlabels: 7\n---\n",
            "tasks/task-a.md: TASK-1: labels: expected a list of texts, and it is `7`",
        ),
        (
            Format::Tasks,
            "tasks.json",
            "[{\"id\":\"a\",\"name\":\"A\",\"metadata\":{\"toolCalls\":[3]}}]",
            "tasks.json:1: a: metadata.toolCalls: expected a list of objects, and it is `3`",
        ),
    ];
    for (format, name, text, expected) in cases {
        let (said, hint) = fault(format, &Files::single(name, text));
        assert_eq!(said, expected);
        assert!(!hint.is_empty(), "{expected}");
    }
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let text = format!("{{\"id\":\"a\",\"title\":\"A\",\"x\":{deep}}}");
    let (error, _) = fault(Format::Beads, &Files::single("i.jsonl", text));
    assert!(error.contains("nested too deeply"), "{error}");
    let deeper = format!("{{\"id\":\"a\",\"title\":\"A\",\"x\":{}", "[".repeat(100_000));
    let head = format!("---\nid: TASK-1\ntitle: A\nx: {}\n---\n", "[".repeat(10_000));
    for (format, name, text) in [(Format::Beads, "i", deeper), (Format::Backlog, "tasks/task-a.md", head)] {
        let reading = read(format, &Files::single(name, text), &options()).unwrap();
        assert_eq!((reading.tasks.len(), reading.faults().count()), (0, 1), "{}", format.name());
    }
}

#[test]
fn a_task_that_waits_for_the_one_above_it_loses_that_dependency() {
    let mut files = Files::single("tasks/task-a.md", "---\nid: TASK-1\ntitle: A\n---\n");
    files.insert(
        "tasks/task-b.md",
        "---\nid: TASK-1.1\ntitle: B\nparent_task_id: task-1\ndependencies: [task-1]\n---\n",
    );
    let reading = read(Format::Backlog, &files, &options()).unwrap();
    assert_eq!(reading.tasks.len(), 2);
    assert!(reading.tasks.iter().all(|task| task.dependencies.is_empty()));
    let left: Vec<&str> = reading.left_out.iter().map(|left| left.what.as_str()).collect();
    assert_eq!(left, ["TASK-1.1: dependencies"]);
}
