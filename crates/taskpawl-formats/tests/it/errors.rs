//! Errors contain the file, the line or record, the field, and a hint.

use serde_json::json;
use taskpawl_formats::{Files, Format, read, write};

use crate::support::{fault, options};

#[test]
fn an_error_has_a_position_and_a_hint() {
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
            "i.jsonl:3: line 3: invalid JSON (column 6): EOF while parsing a value",
        ),
        (
            Format::Beads,
            "i.jsonl",
            "{\"id\":\"a\",\"title\":\"A\"}\n{\"id\":\"a\",\"title\":\"A\"}",
            "i.jsonl:2: a: issue `a` occurs twice, in lines 1 and 2; that of line 1 counts",
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
        (Format::Backlog, "tasks/task-a.md", "# no head", "tasks/task-a.md:1: it has no front matter"),
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
fn of_records_with_one_id_both_places_are_named() {
    let files = [
        (
            Format::Taskwarrior,
            "[\n{\"uuid\":\"a\",\"description\":\"A\"},\n{\"uuid\":\"a\",\"description\":\"B\"}]",
        ),
        (
            Format::Taskwarrior,
            "\n{\"uuid\":\"a\",\"description\":\"A\"}\n{\"uuid\":\"a\",\"description\":\"B\"}\n",
        ),
        (Format::GitHub, "[\n{\"number\":1,\"title\":\"A\"},\n{\"number\":1,\"title\":\"B\"}]"),
        (Format::Shrimp, "{\"tasks\":[\n{\"id\":\"a\",\"name\":\"A\"},\n{\"id\":\"a\",\"name\":\"B\"}]}"),
        (Format::Taskmaster, "{\"tasks\":[\n{\"id\":1,\"title\":\"A\"},\n{\"id\":\"1\",\"title\":\"B\"}]}"),
        (Format::Tasks, "[\n{\"id\":\"a\",\"name\":\"A\"},\n{\"id\":\"a\",\"name\":\"B\"}]"),
    ];
    for (format, text) in files {
        let reading = read(format, &Files::single("t.json", text), &options()).unwrap();
        assert_eq!(reading.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["A"]);
        let faults: Vec<_> = reading.faults().map(|left| (left.line, left.why.as_str())).collect();
        assert!(
            matches!(faults.as_slice(), [(Some(3), why)] if why.ends_with("; the first one in line 2 counts")),
            "{}: {faults:?}",
            format.name()
        );
    }
}

#[test]
fn a_record_that_is_no_exact_json_is_the_only_one_left_out() {
    const FAULTS: &[(&str, &str)] = &[
        ("\"x\":1,\"x\":2", ""),
        ("\"x\":{\"y\":18446744073709551616}", ": x.y"),
        ("\"x\":[{\"y\":1,\"y\":2}]", ": x[0]"),
    ];
    for (fault, field) in FAULTS {
        let files = [
            (
                Format::Taskwarrior,
                format!(
                    "[{{\"uuid\":\"a\",\"description\":\"A\"}},\n{{\"uuid\":\"b\",\"description\":\"B\",{fault}}}]"
                ),
            ),
            (
                Format::GitHub,
                format!("[{{\"number\":1,\"title\":\"A\"}},\n{{\"number\":2,\"title\":\"B\",{fault}}}]"),
            ),
            (
                Format::Shrimp,
                format!(
                    "{{\"tasks\":[{{\"id\":\"a\",\"name\":\"A\"}},\n{{\"id\":\"b\",\"name\":\"B\",{fault}}}]}}"
                ),
            ),
            (
                Format::Taskmaster,
                format!(
                    "{{\"x y\":{{\"tasks\":[{{\"id\":1,\"title\":\"A\"}},\n{{\"id\":2,\"title\":\"B\",{fault}}}]}}}}"
                ),
            ),
            (
                Format::Tasks,
                format!("[{{\"id\":\"a\",\"name\":\"A\"}},\n{{\"id\":\"b\",\"name\":\"B\",{fault}}}]"),
            ),
            (
                Format::Claude,
                format!(
                    "[{{\"content\":\"A\",\"status\":\"pending\"}},\n{{\"content\":\"B\",\"status\":\"pending\",{fault}}}]"
                ),
            ),
            (
                Format::Beads,
                format!("{{\"id\":\"a\",\"title\":\"A\"}}\n{{\"id\":\"b\",\"title\":\"B\",{fault}}}\n"),
            ),
        ];
        for (format, text) in files {
            let before = Files::single("t.json", text);
            let reading = read(format, &before, &options()).unwrap();
            let names: Vec<&str> = reading.tasks.iter().map(|task| task.name.as_str()).collect();
            assert_eq!(names, ["A"], "{}: {fault}", format.name());
            let left: Vec<_> = reading.faults().map(|left| (left.line, left.what.as_str())).collect();
            assert!(
                matches!(left.as_slice(), [(Some(2), what)] if what.ends_with(field)),
                "{}: {left:?}",
                format.name()
            );
            assert_eq!(write(format, &reading.tasks, Some(&before)).files, before, "{}", format.name());
        }
    }
    // A faulty subtask does not affect the others either.
    let text = "{\"tasks\":[{\"id\":1,\"title\":\"A\",\"subtasks\":[{\"id\":1,\"title\":\"B\"},{\"id\":2,\"title\":\"C\",\"title\":\"D\"}]}]}";
    let reading = read(Format::Taskmaster, &Files::single("t.json", text), &options()).unwrap();
    assert_eq!((reading.tasks.len(), reading.faults().count()), (2, 1));
    // A fault outside of all records makes the whole file unreadable, even in a field that is named like an element of a list.
    for text in [
        "{\"tasks\":[],\"tasks\":[{\"id\":1,\"title\":\"A\"}]}",
        "{\"tasks\":[{\"id\":1,\"title\":\"A\"}],\"x\":1,\"x\":2}",
        "{\"tasks\":[{\"id\":1,\"title\":\"A\"}],\"[0]\":{\"x\":1,\"x\":2}}",
    ] {
        assert!(read(Format::Taskmaster, &Files::single("t.json", text), &options()).is_err(), "{text}");
    }
}

#[test]
fn a_fault_belongs_to_its_own_tag_among_tags_with_the_same_beginning() {
    let tag = |end: &str, fault: &str| {
        let name = format!("{}{end}", "release plan ".repeat(4));
        format!("{}:{{\"tasks\":[{{\"id\":1,\"title\":\"{end}\"{fault}}}]}}", json!(name))
    };
    let text = format!("{{{},{}}}", tag("spring", ""), tag("autumn", ",\"x\":1,\"x\":2"));
    let reading = read(Format::Taskmaster, &Files::single("t.json", text), &options()).unwrap();
    let names: Vec<&str> = reading.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!((names, reading.faults().count()), (vec!["spring"], 1));
}

#[test]
fn deep_nesting_is_refused() {
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
fn a_dependency_on_the_parent_is_dropped() {
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

#[test]
fn a_dependency_that_closes_a_circle_is_left_out_and_stays_in_the_file() {
    let issue = |id: &str, on: &str, status: &str| {
        format!(
            "{{\"id\":\"{id}\",\"title\":\"T\",\"status\":\"{status}\",\"dependencies\":[{{\"issue_id\":\"{id}\",\"depends_on_id\":\"{on}\",\"type\":\"blocks\"}}]}}\n"
        )
    };
    let subtask = |id: u64, on: u64, status: &str| json!({ "id": id, "title": "T", "status": status, "dependencies": [on] });
    for (word, end, is_fault) in [("closed", "done", false), ("open", "pending", true)] {
        let beads =
            [issue("a", "b", word), issue("b", "c", word), issue("c", "a", word), issue("d", "c", word)];
        let subtasks = [subtask(1, 2, end), subtask(2, 3, end), subtask(3, 1, end), subtask(4, 3, end)];
        let tasks = json!({ "master": { "tasks": [{ "id": 7, "title": "A", "subtasks": subtasks }] } });
        let files = [
            (Format::Beads, Files::single("i.jsonl", beads.concat()), 3),
            (Format::Taskmaster, Files::single("t.json", tasks.to_string()), 3),
        ];
        for (format, files, count) in files {
            let reading = read(format, &files, &options()).unwrap();
            let kept: usize = reading.tasks.iter().map(|task| task.dependencies.len()).sum();
            assert_eq!(kept, count, "{}: {:?}", format.name(), reading.left_out);
            assert_eq!(reading.left_out.len(), 1, "{:?}", reading.left_out);
            assert_eq!(reading.faults().count(), usize::from(is_fault), "{:?}", reading.left_out);
            let written = write(format, &reading.tasks, Some(&files)).files;
            assert_eq!(written, files, "{}", format.name());
        }
    }
}
