//! Errors contain the file, the line or record, the field, and a hint.

use taskpawl_formats::{Files, Format, FormatError, read};

use crate::support::options;

fn error(format: Format, name: &str, text: &str) -> FormatError {
    read(format, &Files::single(name, text), &options()).unwrap_err()
}

#[test]
fn an_error_names_the_place_and_the_remedy() {
    let cases = [
        (
            Format::Beads,
            "i.jsonl",
            "{\"id\":\"a\",\"title\":\"A\"}\n{\"id\":\"b\",\"title\":\"B\",\"priority\":9}",
            "i.jsonl:2: `b`: `priority`: expected a number from 0 to 4, and it is `9`",
        ),
        (
            Format::Beads,
            "i.jsonl",
            "{\"id\":\"a\",\"title\":\"A\"}\n\n{\"id\":",
            "i.jsonl:3: it is no JSON (column 6): EOF while parsing a value",
        ),
        (
            Format::Beads,
            "i.jsonl",
            "{\"id\":\"a\",\"title\":\"A\"}\n{\"id\":\"a\",\"title\":\"A\"}",
            "i.jsonl:2: `a`: `id`: issue `a` is there twice, the second time in line 2",
        ),
        (
            Format::Taskmaster,
            "t.json",
            "{\"master\":{\"tasks\":[{\"id\":1,\"title\":\"A\",\"status\":\"dne\"}]}}",
            "t.json: `1`: `status`: expected one of pending, in-progress, review, done, completed, cancelled, blocked, deferred, and it is `\"dne\"`",
        ),
        (Format::Taskmaster, "t.json", "{\"master\":{}}", "t.json: `tag master`: `tasks`: it is missing"),
        (
            Format::Taskwarrior,
            "t.json",
            "[\n{\"uuid\":\"u\",\"description\":\"x\",\"due\":\"soon\"}]",
            "t.json: `u`: `due`: expected a time, and it is `\"soon\"`",
        ),
        (
            Format::Claude,
            "1.json",
            "{\"id\":\"1\",\"subject\":\"\",\"status\":\"pending\"}",
            "1.json: `1`: `subject`: it is empty",
        ),
        (Format::Backlog, "tasks/a.md", "# no head", "tasks/a.md:1: it has no head"),
        (
            Format::Backlog,
            "tasks/a.md",
            "---\nid: TASK-1\ntitle: A\nlabels: 7\n---\n",
            "tasks/a.md: `TASK-1`: `labels`: expected a list of texts, and it is `7`",
        ),
        (
            Format::Tasks,
            "tasks.json",
            "[{\"id\":\"a\",\"name\":\"A\",\"metadata\":{\"toolCalls\":[3]}}]",
            "tasks.json: `a`: `metadata.toolCalls`: expected a list of objects, and it is `3`",
        ),
    ];
    for (format, name, text, expected) in cases {
        let error = error(format, name, text);
        assert_eq!(error.to_string(), expected);
        assert!(!error.hint.is_empty(), "{expected}");
    }
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let text = format!("{{\"id\":\"a\",\"title\":\"A\",\"x\":{deep}}}");
    let error = error(Format::Beads, "i.jsonl", &text);
    assert!(error.to_string().contains("nested too deeply"), "{error}");
    let deeper = format!("{{\"id\":\"a\",\"title\":\"A\",\"x\":{}", "[".repeat(100_000));
    assert!(read(Format::Beads, &Files::single("i", deeper), &options()).is_err());
    let head = format!("---\nid: TASK-1\ntitle: A\nx: {}\n---\n", "[".repeat(10_000));
    assert!(read(Format::Backlog, &Files::single("tasks/a.md", head), &options()).is_err());
}

#[test]
fn a_task_that_waits_for_the_one_above_it_is_named_with_its_file() {
    let mut files = Files::single("tasks/a.md", "---\nid: TASK-1\ntitle: A\n---\n");
    files.insert(
        "tasks/b.md",
        "---\nid: TASK-1.1\ntitle: B\nparent_task_id: task-1\ndependencies: [task-1]\n---\n",
    );
    let error = read(Format::Backlog, &files, &options()).unwrap_err();
    assert_eq!((error.file.as_str(), error.field.as_str()), ("tasks/b.md", "dependencies"));
    assert!(error.hint.to_string().contains("take `TASK-1` out of `dependencies`"), "{}", error.hint);
}
