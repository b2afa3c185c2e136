//! Files whose tasks did not change are written back byte for byte.

use serde_json::{Value, json};
use taskpawl_formats::{Files, Format, write};
use taskpawl_model::task::{Status, Task};

use crate::support::{files, over, reading, sample, samples};

/// Files in the form that programs or people write, each with details that a rewrite easily loses.
const AWKWARD: &[(Format, &str, &str)] = &[
    // No priority, type or times; blank lines, unusual spaces and escapes; mixed line endings, and none at the end.
    (
        Format::Beads,
        "i.jsonl",
        "{\"id\":\"a\",\"title\":\"A\"}\n\n{ \"title\" : \"B \\u00e9 \\/\", \"id\" : \"b\" }\r\n{\"id\":\"c\",\"title\":\"C\",\"status\":\"closed\"}",
    ),
    (
        Format::Beads,
        "i.jsonl",
        "{\"id\":\"a\",\"title\":\"A\",\"assignee\":null,\"labels\":[],\"estimated_minutes\":0,\"status\":\"closed\",\"started_at\":\"2026-01-01T00:00:00.120+02:00\",\"dependency_count\":0,\"comments\":[]}\n",
    ),
    (
        Format::Beads,
        "i.jsonl",
        "{\"id\":\"a\",\"title\":\"A\",\"dependencies\":[]}\n{\"id\":\"b\",\"title\":\"B\",\"parent\":\"a\",\"dependencies\":[{\"depends_on_id\":\"a\",\"type\":\"parent-child\"},{\"depends_on_id\":\"a\",\"type\":\"blocks\"},{\"depends_on_id\":\"a\"}]}\n",
    ),
    // One task per line, as some settings of Taskwarrior print it, with computed numbers.
    (
        Format::Taskwarrior,
        "w.json",
        "{\"id\":1,\"uuid\":\"b\",\"description\":\"B\",\"status\":\"pending\",\"urgency\":1.50},\n{\"id\":0,\"uuid\":\"a\",\"description\":\"A\",\"status\":\"completed\",\"depends\":\"b,zz\",\"tags\":\"x\",\"urgency\":0}\n",
    ),
    (
        Format::Taskwarrior,
        "w.json",
        "[{\"uuid\":\"b\",\"description\":\"A \\/ B\",\"entry\":\"20260101T000000Z\",\"tags\":[]},\r\n  {\"uuid\":\"a\",\"description\":\"A\",\"id\":7,\"status\":\"waiting\"}]",
    ),
    (Format::Taskwarrior, "w.json", "[]\n"),
    // Numbers and strings as ids, an indentation of four, tags not in alphabetical order, an empty list of subtasks, and none.
    (
        Format::Taskmaster,
        "t.json",
        "{\n    \"zeta\": {\"tasks\": [{\"id\": 2, \"title\": \"B\", \"dependencies\": [\"1\", 1, \"9\"]}, {\"id\": 1, \"title\": \"A\", \"subtasks\": [\n        {\"id\": \"1.2\", \"title\": \"S\", \"dependencies\": [1]}, {\"id\": 1, \"title\": \"T\", \"priority\": \"medium\"}]}]},\r\n    \"alpha\": {\"tasks\": []}\n}",
    ),
    (
        Format::Taskmaster,
        "t.json",
        "{\"tasks\": [{\"id\": 1, \"title\": \"A\"}, {\"id\": 2, \"title\": \"B\", \"status\": \"review\", \"dependencies\": [1], \"subtasks\": []}], \"meta\": 1}\n",
    ),
    // Without an active form, with one that equals the subject, and without the lists.
    (Format::Claude, "1.json", "{\"subject\":\"A\",\"id\":\"1\",\"status\":\"pending\"}"),
    (
        Format::Claude,
        "1.json",
        "{\n\t\"id\": 1,\n\t\"subject\": \"A\",\n\t\"activeForm\": \"A\",\n\t\"status\": \"in_progress\",\n\t\"owner\": null,\n\t\"blockedBy\": [9, \"8\"]\n}\r\n",
    ),
    (
        Format::Claude,
        "l.json",
        "[ {\"content\": \"A\", \"status\": \"pending\", \"id\": \"3\"},\n  {\"status\": \"completed\", \"content\": \"B\", \"activeForm\": \"B\", \"id\": \"1\"} ]\n",
    ),
    (
        Format::Markdown,
        "c.md",
        "# One  \r\n- [ ]  two  spaces \n\t- [X] tab\r\n- [ ]\n+ [~] odd <!--   taskpawl  status=in_progress -->\n\n- [!] last",
    ),
    (Format::Markdown, "c.md", "- [ ] a <!-- taskpawl priority=high   id=b -->   \n- [ ] a\n- [ ] a\n"),
    (Format::Markdown, "c.md", "\n\n"),
    (
        Format::Backlog,
        "tasks/task-a.md",
        "---\r\nid: TASK-1\r\ntitle: A\n\"a b\": 1\nstatus: To Do\r\n---\nText\r\nmore\n",
    ),
    (
        Format::Backlog,
        "tasks/task-a.md",
        "---\nid: task-1\ntitle: \"A\"\nassignee: @ana\nlabels: [ x ]\nupdated_date: 2026-01-02 03:04\n---",
    ),
    (
        Format::Tasks,
        "k.json",
        "[{\"name\":\"A\",\"id\":\"a\"},\n {\"id\":\"b\",\"name\":\"B\",\"status\":\"in_progress\",\"labels\":[\"x\"],\"subtasks\":[\"a\"]}]",
    ),
    (
        Format::Tasks,
        "k.json",
        "{\"schemaVersion\": 1, \"data\": [{\"id\": \"a\", \"name\": \"A\", \"dependencies\": [\"zz\"], \"attempt\": 2}], \"page\": {\"count\": 1}}\n",
    ),
];

fn all() -> Vec<(Format, Files)> {
    let samples = Format::ALL.iter().map(|format| (*format, sample(*format)));
    let to_dos = files(Format::Claude, &samples_of("claude-todos.json"));
    let awkward = AWKWARD.iter().map(|(format, name, text)| (*format, Files::single(*name, *text)));
    samples.chain([(Format::Claude, to_dos)]).chain(awkward).collect()
}

fn samples_of(name: &str) -> std::path::PathBuf {
    samples().join(name)
}

/// Writes tasks over the files that they were read from, and checks that these stay the same.
fn assert_same(format: Format, before: &Files, tasks: &[Task]) {
    let mut after = over(before, &write(format, tasks, Some(before)).files);
    if before.get("config.yml").is_none() {
        // A folder without a configuration file gets one.
        after = before.iter().map(|(name, _)| (name.to_owned(), after.get(name).unwrap().to_owned())).fold(
            Files::default(),
            |mut files, (name, text)| {
                files.insert(name, text);
                files
            },
        );
    }
    assert_eq!(&after, before, "{}", format.name());
}

#[test]
fn a_file_without_changes_keeps_every_byte() {
    for (format, before) in all() {
        assert_same(format, &before, &reading(format, &before).tasks);
    }
}

#[test]
fn the_order_of_tasks_here_does_not_reorder_the_file() {
    for (format, before) in all() {
        let mut tasks = reading(format, &before).tasks;
        tasks.reverse();
        assert_same(format, &before, &tasks);
        tasks.sort_by(|one, other| one.name.cmp(&other.name));
        assert_same(format, &before, &tasks);
    }
}

/// A store sets the import time, the subtasks, and the end of finished tasks. None of them counts as a change.
#[test]
fn fields_added_by_the_store_are_not_written() {
    for (format, before) in all() {
        let mut tasks = reading(format, &before).tasks;
        let later = "2031-02-03T04:05:06Z".parse().unwrap();
        let above: Vec<_> = tasks.iter().map(|task| (task.parent.clone(), task.id.clone())).collect();
        for task in &mut tasks {
            let below = above.iter().filter(|(parent, _)| parent.as_ref() == Some(&task.id));
            task.subtasks = below.map(|(_, id)| id.clone()).collect();
            if task.created_at == crate::support::options().now {
                (task.created_at, task.updated_at) = (later, later);
            }
            if task.status == Status::Done && task.finished_at.is_none() {
                task.finished_at = Some(later);
            }
            if task.status == Status::InProgress && task.started_at.is_none() && format == Format::Beads {
                task.started_at = Some(later);
            }
        }
        assert_same(format, &before, &tasks);
    }
}

/// Returns the file after a change to the task of this name.
fn changed(format: Format, name: &str, text: &str, task: &str, change: fn(&mut Task)) -> String {
    let before = Files::single(name, text);
    let mut tasks = reading(format, &before).tasks;
    change(tasks.iter_mut().find(|other| other.name == task).unwrap());
    write(format, &tasks, Some(&before)).files.get(name).unwrap().to_owned()
}

/// Format, file, text before, change, text after.
type Case = (Format, &'static str, &'static str, fn(&mut Task), &'static str);

#[test]
fn only_changed_fields_are_rewritten() {
    let rename: fn(&mut Task) = |task| "Z".clone_into(&mut task.name);
    let label: fn(&mut Task) = |task| drop(task.options.insert("labels".to_owned(), json!(["x"])));
    let cases: &[Case] = &[
        (
            Format::Beads,
            "i.jsonl",
            "{\"id\":\"a\", \"title\":\"A\"}\n{ \"id\":\"b\" , \"title\":\"\\u0042\" }",
            rename,
            "{\"id\":\"a\", \"title\":\"A\"}\n{ \"id\":\"b\" , \"title\":\"Z\" }",
        ),
        (
            Format::Beads,
            "i.jsonl",
            "{\"id\":\"b\", \"title\":\"B\"}",
            label,
            "{\"id\":\"b\", \"title\":\"B\", \"labels\":[\"x\"]}",
        ),
        (
            Format::Taskwarrior,
            "w.json",
            "[\n{\"id\":1,\"description\":\"B\",\"uuid\":\"b\",\"urgency\":6.90}\n]",
            rename,
            "[\n{\"id\":1,\"description\":\"Z\",\"uuid\":\"b\",\"urgency\":6.90}\n]",
        ),
        (
            Format::Taskwarrior,
            "w.json",
            "{\"uuid\":\"b\",\"description\":\"B\"},\r\n{\"uuid\":\"a\",\"description\":\"A\"}",
            label,
            "{\"uuid\":\"b\",\"description\":\"B\",\"tags\":[\"x\"]},\r\n{\"uuid\":\"a\",\"description\":\"A\"}",
        ),
        (
            Format::Claude,
            "1.json",
            "{\n    \"id\": \"1\",\n    \"subject\": \"B\",\n    \"status\": \"pending\"\n}\n",
            |task| task.status = Status::Done,
            "{\n    \"id\": \"1\",\n    \"subject\": \"B\",\n    \"status\": \"completed\"\n}\n",
        ),
        (
            Format::Claude,
            "1.json",
            "{\n    \"id\": \"1\",\n    \"subject\": \"B\",\n    \"status\": \"pending\"\n}\n",
            |task| "New".clone_into(&mut task.description),
            "{\n    \"id\": \"1\",\n    \"subject\": \"B\",\n    \"status\": \"pending\",\n    \"description\": \"New\"\n}\n",
        ),
        (
            Format::Taskmaster,
            "t.json",
            "{\"tasks\": [\n  {\"id\": 1, \"title\": \"A\"},\n  {\"id\": 2, \"title\": \"B\", \"dependencies\": [1]}]}",
            |task| task.status = Status::Done,
            "{\"tasks\": [\n  {\"id\": 1, \"title\": \"A\"},\n  {\"id\": 2, \"title\": \"B\", \"dependencies\": [1], \"status\": \"done\"}]}",
        ),
        (
            Format::Markdown,
            "c.md",
            "- [ ]  A \r\n* [ ]  B  \n- [x] C",
            |task| task.status = Status::Done,
            "- [ ]  A \r\n* [x]  B  \n- [x] C",
        ),
        (Format::Markdown, "c.md", "- [ ]  A \r\n* [ ]  B", rename, "- [ ]  A \r\n* [ ] Z"),
        (
            Format::Tasks,
            "k.json",
            "[{\"id\":\"b\",  \"name\":\"B\"}]",
            |task| task.status = Status::Done,
            "[{\"id\":\"b\",  \"name\":\"B\",  \"status\":\"done\"}]",
        ),
    ];
    for (format, name, text, change, wanted) in cases {
        assert_eq!(changed(*format, name, text, "B", *change), *wanted, "{}", format.name());
    }
}

#[test]
fn new_parts_take_the_layout_of_their_neighbours() {
    let four = "{\r\n    \"master\": {\r\n        \"tasks\": [\r\n            {\r\n                \"id\": 1,\r\n                \"title\": \"A\"\r\n            }\r\n        ]\r\n    }\r\n}";
    let before = Files::single("t.json", four);
    let mut tasks = reading(Format::Taskmaster, &before).tasks;
    let mut new = tasks[0].clone();
    (new.id, new.name) = ("new".into(), "New".to_owned());
    new.metadata.extra.clear();
    tasks.push(new);
    let text = write(Format::Taskmaster, &tasks, Some(&before)).files.get("t.json").unwrap().to_owned();
    let end = "\r\n            }\r\n        ]\r\n    }\r\n}";
    assert!(
        text.starts_with(&format!(
            "{},\r\n            {{\r\n                \"",
            four.strip_suffix("\r\n        ]\r\n    }\r\n}").unwrap()
        )),
        "{text}"
    );
    assert!(text.ends_with(end) && !text.replace("\r\n", "").contains('\n'), "{text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["master"]["tasks"][1]["title"], "New");
}

#[test]
fn the_number_of_the_parent_never_means_the_parent() {
    let file = |below: Value| {
        let tasks = json!([{"id": 1, "title": "A", "subtasks": below}, {"id": 2, "title": "C"}]);
        Files::single("t.json", json!({ "tasks": tasks }).to_string())
    };
    let on = |below: Value, id: &str| {
        let read = reading(Format::Taskmaster, &file(below));
        let task = read.tasks.iter().find(|task| task.id.as_str() == id).unwrap();
        (task.dependencies.iter().map(ToString::to_string).collect::<Vec<_>>(), read.left_out.len())
    };
    for number in [json!(1), json!("1")] {
        let first = json!({"id": 1, "title": "S"});
        let second = json!({"id": 2, "title": "T", "dependencies": [number]});
        assert_eq!(on(json!([first, second]), "1.2"), (vec!["1.1".to_owned()], 0));
        // Without the sibling, the number leads nowhere.
        assert_eq!(on(json!([second]), "1.2"), (vec![], 1));
    }
    let alone = json!([{"id": 1, "title": "S", "dependencies": [1]}]);
    assert_eq!(on(alone, "1.1"), (vec![], 1), "no task waits for itself");
    let before = json!([{"id": 1, "title": "S", "dependencies": [2, "2"]}]);
    // There is no such sibling: both mean the top-level task.
    assert_eq!(on(before, "1.1"), (vec!["2".to_owned()], 0));
}

#[test]
fn unchanged_dependencies_keep_their_spelling() {
    let tasks = json!([
        {"id": 1, "title": "A"},
        {"id": 2, "title": "B", "dependencies": ["1"], "subtasks": [
            {"id": 1, "title": "S"}, {"id": 2, "title": "T", "dependencies": [1, "2.3"]}, {"id": 3, "title": "U"},
        ]},
        {"id": 3, "title": "C"}, {"id": 4, "title": "D"},
    ]);
    let before = Files::single("t.json", json!({"master": {"tasks": tasks}}).to_string());
    let mut tasks = reading(Format::Taskmaster, &before).tasks;
    for task in &mut tasks {
        match task.id.as_str() {
            "2" => task.dependencies.push("3".into()),
            "2.2" => task.dependencies.extend(["4".into(), "1".into()]),
            _ => {}
        }
    }
    let written = write(Format::Taskmaster, &tasks, Some(&before));
    // There is a subtask 2.1, so nothing that a subtask of 2 says leads to 1.
    assert_eq!(
        written.left_out.iter().map(|left| left.what.as_str()).collect::<Vec<_>>(),
        ["2.2: dependencies"]
    );
    let value: Value = serde_json::from_str(written.files.get("t.json").unwrap()).unwrap();
    let two = &value["master"]["tasks"][1];
    assert_eq!(two["dependencies"], json!(["1", 3]));
    assert_eq!(two["subtasks"][1]["dependencies"], json!([1, "2.3", "4"]));
    // A link to a removed task is removed, too.
    tasks.retain(|task| task.id.as_str() != "2.1");
    for task in &mut tasks {
        task.dependencies.retain(|on| on.as_str() != "2.1");
    }
    let written = write(Format::Taskmaster, &tasks, Some(&before)).files;
    let value: Value = serde_json::from_str(written.get("t.json").unwrap()).unwrap();
    assert_eq!(value["master"]["tasks"][1]["subtasks"][0]["dependencies"], json!(["2.3", "4", "1"]));
}

#[test]
fn taskwarrior_tasks_with_the_same_number_stay_distinct() {
    let line = |uuid: &str, status: &str| {
        format!(
            "{{\"status\":\"{status}\", \"id\":0,\"uuid\":\"{uuid}\",\"description\":\"{uuid} \\/\",\"entry\":\"20260101T000000Z\"}}"
        )
    };
    let text = |of_b: &str| {
        format!("[\n{},\n{},\n{}\n]\n", line("a", "completed"), line("b", of_b), line("c", "deleted"))
    };
    let before = Files::single("w.json", text("completed"));
    let mut tasks = reading(Format::Taskwarrior, &before).tasks;
    (tasks[1].status, tasks[1].finished_at) = (Status::Todo, None);
    let written = write(Format::Taskwarrior, &tasks, Some(&before)).files;
    assert_eq!(written.get("w.json"), Some(text("pending").as_str()));
}

#[test]
fn a_byte_order_mark_stays() {
    for (format, mut files) in all() {
        let (name, text) =
            files.iter().next().map(|(name, text)| (name.to_owned(), text.to_owned())).unwrap();
        let mut tasks = reading(format, &files).tasks;
        files.insert(name.as_str(), format!("\u{feff}{text}"));
        assert_eq!(reading(format, &files).tasks, tasks, "{}: {text}", format.name());
        assert_same(format, &files, &tasks);
        if let Some(task) = tasks.first_mut() {
            task.name = "Another name".to_owned();
        }
        let written = write(format, &tasks, Some(&files)).files;
        let first = written.get(&name).unwrap();
        assert_eq!(first.matches('\u{feff}').count(), 1, "{}: {first}", format.name());
        assert!(first.starts_with('\u{feff}'), "{}: {first}", format.name());
    }
}

/// Samples that the programs themselves wrote, with more of their fields than the samples of the other tests.
const BY_PROGRAMS: &[(Format, &str)] = &[
    (Format::Taskmaster, "taskmaster.json"),
    (Format::Backlog, "backlog"),
    (Format::Shrimp, "shrimp.json"),
    (Format::Taskwarrior, "taskwarrior.json"),
];

#[test]
fn files_made_by_programs_change_in_the_edited_task_alone() {
    for (format, path) in BY_PROGRAMS {
        let before = files(*format, &samples().join("programs").join(path));
        let there = reading(*format, &before);
        assert_eq!(there.faults().count(), 0, "{:?}", there.left_out);
        assert_eq!(over(&before, &write(*format, &there.tasks, Some(&before)).files), before, "{path}");
        for place in 0..there.tasks.len() {
            let mut tasks = there.tasks.clone();
            tasks[place].status =
                if tasks[place].status == Status::Done { Status::Todo } else { Status::Done };
            tasks[place].claim = None;
            let after = over(&before, &write(*format, &tasks, Some(&before)).files);
            let again = reading(*format, &after).tasks;
            assert_eq!(again.len(), tasks.len(), "{path}");
            for (number, (one, other)) in again.iter().zip(&there.tasks).enumerate() {
                if number == place {
                    assert_eq!((one.status, &one.name), (tasks[place].status, &other.name), "{path}");
                } else {
                    assert_eq!(one, other, "{path}");
                }
            }
        }
    }
}
