//! `import` and `export`: files of other programs, in both directions.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Cli, Run};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../taskpawl-formats/tests/samples").join(name)
}

/// Every sample: its format, its file, and the number of its tasks.
const SAMPLES: &[(&str, &str, usize)] = &[
    ("beads", "beads.jsonl", 6),
    ("taskmaster", "taskmaster.json", 11),
    ("claude", "claude", 3),
    ("claude", "claude-todos.json", 3),
    ("taskwarrior", "taskwarrior.json", 9),
    ("backlog", "backlog", 8),
    ("markdown", "checklist.md", 8),
    ("tasks", "tasks.json", 3),
];

/// Copies a sample into the working directory.
fn place(cli: &Cli, name: &str) -> PathBuf {
    let to = cli.path("work").join(name);
    copy(&sample(name), &to);
    to
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

fn count(run: &Run, field: &str) -> usize {
    run.json()["data"][field].as_array().unwrap().len()
}

#[test]
fn every_format_comes_in_once_and_goes_back_unchanged() {
    for (format, name, tasks) in SAMPLES {
        let cli = Cli::new();
        place(&cli, name);
        let look = cli.run(&["import", name, "--dry-run", "--json"]).ok();
        assert_eq!(
            (look.json()["data"]["format"].as_str(), count(&look, "created")),
            (Some(*format), *tasks),
            "{look}"
        );
        assert_eq!(cli.run(&["list", "--json"]).ok().json()["data"], json!([]));
        let first = cli.run(&["import", format, name, "--json"]).ok();
        assert_eq!(count(&first, "created"), *tasks, "{first}");
        let before = cli.run(&["history", "--json", "--limit", "0"]).ok().stdout;
        let again = cli.run(&["import", name, "--json"]).ok();
        assert_eq!(
            (count(&again, "created"), count(&again, "changed"), count(&again, "kept")),
            (0, 0, 0),
            "{again}"
        );
        assert_eq!(again.json()["data"]["unchanged"].as_u64(), Some(*tasks as u64), "{again}");
        assert_eq!(cli.run(&["history", "--json", "--limit", "0"]).ok().stdout, before, "{name}");
        cli.run(&["export", format, name]).ok();
        let after = cli.run(&["import", name, "--json"]).ok();
        assert_eq!((count(&after, "created"), count(&after, "changed")), (0, 0), "{after}");
        cli.run(&["doctor"]).ok();
    }
}

/// Returns all files below a path with their content.
fn content(path: &Path) -> Vec<(PathBuf, String)> {
    if path.is_file() {
        return vec![(path.to_owned(), fs::read_to_string(path).unwrap())];
    }
    let mut names: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names.iter().flat_map(|name| content(name)).collect()
}

#[test]
fn an_export_after_an_import_changes_no_byte() {
    let own: &[(&str, &str, &str)] = &[
        (
            "beads",
            "i.jsonl",
            "{\"id\":\"e\",\"title\":\"E\",\"status\":\"open\",\"updated_at\":\"2026-01-02T00:00:00Z\"}\n{\"id\":\"c\",\"title\":\"C\",\"status\":\"closed\",\"close_reason\":\"failed: x\",\"dependencies\":[{\"depends_on_id\":\"e\",\"type\":\"parent-child\"}]}\n{\"id\":\"p\",\"title\":\"P\",\"status\":\"in_progress\",\"assignee\":\"bo\"}\n{\"id\":\"q\",\"title\":\"Q\",\"status\":\"closed\",\"closed_at\":\"2026-01-02T00:00:00Z\",\"dependencies\":[{\"depends_on_id\":\"p\",\"type\":\"blocks\"},{\"depends_on_id\":\"c\",\"type\":\"blocks\"}]}",
        ),
        (
            "taskmaster",
            "t.json",
            "{\"tasks\": [{\"id\": 2, \"title\": \"B\", \"dependencies\": [\"3\", 1]}, {\"id\": 3, \"title\": \"C\"}, {\"id\": 1, \"title\": \"A\", \"status\": \"in-progress\", \"subtasks\": [{\"id\": 1, \"title\": \"S\", \"status\": \"done\"}]}]}",
        ),
        (
            "claude",
            "l.json",
            "[ {\"content\": \"A\", \"status\": \"in_progress\"}, {\"content\": \"B\", \"status\": \"completed\", \"activeForm\": \"B\"} ]",
        ),
        (
            "taskwarrior",
            "w.json",
            "{\"uuid\":\"b\",\"id\":1,\"description\":\"B\",\"depends\":[\"c\",\"a\"]},\n{\"uuid\":\"a\",\"description\":\"A\",\"status\":\"completed\"}\n{\"uuid\":\"c\",\"description\":\"C\",\"urgency\":1.0}",
        ),
        ("backlog", "board/tasks/task-1.md", "---\r\nid: TASK-1\ntitle: A\n---\nText\n"),
        ("markdown", "m.md", "- [~]  a\r\n\t- [x] b \n- [ ]\n* [!] c"),
        (
            "tasks",
            "k.json",
            "[{\"name\":\"A\",\"id\":\"a\",\"status\":\"in_progress\"}, {\"id\":\"b\",\"name\":\"B\",\"labels\":[\"x\"],\"dependencies\":[\"a\"]}]",
        ),
    ];
    let own = own.iter().map(|(format, name, text)| (*format, *name, Some(*text)));
    for (format, name, text) in SAMPLES.iter().map(|(format, name, _)| (*format, *name, None)).chain(own) {
        let cli = Cli::new();
        match text {
            Some(text) => {
                fs::create_dir_all(cli.path("work").join(name).parent().unwrap()).unwrap();
                cli.file(name, text);
                if format == "backlog" {
                    cli.file("board/config.yml", "statuses: [\"To Do\", \"Done\"]\n");
                }
            }
            None => drop(place(&cli, name)),
        }
        let path = name.split('/').next().unwrap();
        let before = content(&cli.path("work").join(path));
        cli.run(&["import", format, path]).ok();
        for _ in 0..2 {
            let run = cli.run(&["export", format, path, "--json"]).ok();
            assert_eq!(content(&cli.path("work").join(path)), before, "{run}");
            assert_eq!((count(&run, "written"), count(&run, "overwritten")), (0, 0), "{run}");
        }
    }
}

/// For every format: an export names a deleted task, but removes it from the file only on demand.
#[test]
fn a_task_that_was_deleted_here_is_named_and_taken_out_on_demand() {
    const FILES: &[(&str, &str, &str, &str)] = &[
        (
            "beads",
            "i.jsonl",
            "{\"id\":\"a\",\"title\":\"A\"}\n{\"id\":\"b\",\"title\":\"B\"}\n",
            "{\"id\":\"a\",\"title\":\"A\"}\n",
        ),
        (
            "taskmaster",
            "t.json",
            "{\"tasks\":[{\"id\":1,\"title\":\"A\"},{\"id\":2,\"title\":\"B\"}]}",
            "{\"tasks\":[{\"id\":1,\"title\":\"A\"}]}",
        ),
        (
            "claude",
            "l.json",
            "[{\"content\":\"A\",\"status\":\"pending\"},{\"content\":\"B\",\"status\":\"pending\"}]",
            "[{\"content\":\"A\",\"status\":\"pending\"}]",
        ),
        (
            "taskwarrior",
            "w.json",
            "[\n{\"uuid\":\"a\",\"description\":\"A\"},\n{\"uuid\":\"b\",\"description\":\"B\"}\n]\n",
            "[\n{\"uuid\":\"a\",\"description\":\"A\"}\n]\n",
        ),
        ("markdown", "m.md", "- [ ] A\n- [ ] B\n  more of it\n\nEnd", "- [ ] A\n\nEnd"),
        (
            "tasks",
            "k.json",
            "[{\"id\":\"a\",\"name\":\"A\"},{\"id\":\"b\",\"name\":\"B\"}]",
            "[{\"id\":\"a\",\"name\":\"A\"}]",
        ),
    ];
    for (format, name, text, rest) in FILES {
        let cli = Cli::new();
        let path = cli.file(name, text);
        let run = cli.run(&["import", format, name, "--json"]).ok();
        let id = run.json()["data"]["created"][1].as_str().unwrap().to_owned();
        cli.run(&["delete", &id]).ok();
        let run = cli.run(&["export", format, name]).ok();
        assert!(run.stderr.contains(&format!("deleted here: {id}: it stays in the file")), "{run}");
        assert_eq!(fs::read_to_string(&path).unwrap(), *text, "{run}");
        let run = cli.run(&["export", format, name, "--take-out", "--json"]).ok();
        assert_eq!(run.json()["data"]["deletedHere"], json!([id]), "{run}");
        assert_eq!(fs::read_to_string(&path).unwrap(), *rest, "{run}");
    }
    for (format, name, id, file) in [
        ("claude", "claude", "3", "3.json"),
        ("backlog", "backlog", "TASK-4", "tasks/task-4 - Write-docs.md"),
    ] {
        let cli = Cli::new();
        let root = place(&cli, name);
        cli.run(&["import", format, name]).ok();
        cli.run(&["delete", id]).ok();
        let before = content(&root);
        let run = cli.run(&["export", format, name]).ok();
        assert!(run.stderr.contains(&format!("deleted here: {id}")) && root.join(file).exists(), "{run}");
        let run = cli.run(&["export", format, name, "--take-out", "--dry-run"]).ok();
        assert!(root.join(file).exists(), "{run}");
        let run = cli.run(&["export", format, name, "--take-out"]).ok();
        assert!(run.stderr.contains(&format!("removed: {id}")) && !root.join(file).exists(), "{run}");
        assert_eq!(content(&root).len() + 1, before.len(), "{run}");
    }
}

#[test]
fn a_state_goes_from_here_to_there_and_back() {
    let cli = Cli::new();
    let path = place(&cli, "checklist.md");
    cli.run(&["import", "checklist.md"]).ok();
    cli.run(&["done", "ship-it"]).ok();
    cli.run(&["export", "markdown", "checklist.md"]).ok();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("+ [x] Ship it") && text.contains("Some words before the list."), "{text}");
    fs::write(
        &path,
        text.replace("[/] Write the parser", "[ ] Write the parser")
            .replace("[ ] Handle errors <!--", "[x] Handle errors <!--"),
    )
    .unwrap();
    let run = cli.run(&["import", "checklist.md", "--json"]).ok();
    assert!(run.json()["data"]["changed"].as_array().unwrap().contains(&json!("errors")), "{run}");
    assert_eq!(cli.run(&["show", "errors", "--json"]).ok().json()["data"]["status"], "done");
    let history = cli.run(&["history", "errors"]).ok().stdout;
    assert!(history.contains("done by import, was todo: imported from markdown"), "{history}");
}

/// A file for every format, in the form that its own program writes.
#[test]
fn a_name_that_changed_here_and_there_stays_as_it_is_here() {
    const FILES: &[(&str, &str, &str)] = &[
        ("beads", "i.jsonl", "{\"id\":\"a\",\"title\":\"First\"}\n"),
        ("taskmaster", "t.json", "{\"master\":{\"tasks\":[{\"id\":1,\"title\":\"First\"}]}}"),
        ("claude", "c.json", "{\"id\":\"1\",\"subject\":\"First\",\"status\":\"pending\"}"),
        ("taskwarrior", "w.json", "[{\"uuid\":\"a\",\"description\":\"First\",\"status\":\"pending\"}]"),
        ("backlog", "board/tasks/task-1.md", "---\nid: TASK-1\ntitle: First\n---\n"),
        ("markdown", "m.md", "- [ ] First <!-- taskpawl id=a -->\n"),
        ("tasks", "k.json", "{\"tasks\":[{\"id\":\"a\",\"name\":\"First\"}]}"),
    ];
    for (format, name, text) in FILES {
        let cli = Cli::new();
        fs::create_dir_all(cli.path("work/board/tasks")).unwrap();
        cli.file(name, text);
        let path = name.split('/').next().unwrap();
        let created = cli.run(&["import", format, path, "--json"]).ok().json()["data"]["created"].clone();
        let id = created[0].as_str().unwrap();
        cli.run(&["update", id, "--name", "Here renamed"]).ok();
        cli.file(name, &text.replace("First", "There renamed"));
        let export = cli.run(&["export", format, path]);
        assert!(
            export.code == Some(7) && export.stderr.contains("1 of its tasks is changed on both sides"),
            "{export}"
        );
        let run = cli.run(&["import", format, path, "--json"]).ok();
        assert_eq!(run.json()["data"]["kept"][0]["field"], "name", "{run}");
        assert_eq!(cli.run(&["show", id, "--json"]).ok().json()["data"]["name"], "Here renamed", "{format}");
        // Both names are reported until an export overwrites the file.
        let again = cli.run(&["import", format, path]).ok();
        assert!(again.stdout.contains("`There renamed` there, `Here renamed` here"), "{format}: {again}");
        let look = cli.run(&["export", format, path, "--dry-run", "--json"]).ok();
        let apart = json!([{"task": id, "field": "name", "here": "Here renamed", "there": "There renamed"}]);
        assert_eq!(look.json()["data"]["overwritten"], apart, "{format}: {look}");
        let said = format!("overwritten: {id}: name: `There renamed` there, `Here renamed` here");
        let export = cli.run(&["export", format, path]).ok();
        assert!(export.stderr.contains(&said), "{format}: {export}");
        assert!(
            fs::read_to_string(cli.path("work").join(name)).unwrap().contains("Here renamed"),
            "{format}"
        );
        let export = cli.run(&["export", format, path]).ok();
        assert!(!export.stderr.contains("overwritten"), "{format}: {export}");
    }
}

#[test]
fn what_is_gone_there_stays_so_unless_it_changed_here_or_that_is_asked_for() {
    let cli = Cli::new();
    let path = cli.file("c.md", "## One\n\n- [ ] a\n\n## Two\n\n- [ ] b\n");
    cli.run(&["import", "c.md"]).ok();
    let without = "## One\n\n- [ ] a\n\n## Two\n";
    fs::write(&path, without).unwrap();
    cli.run(&["import", "c.md"]).ok();
    let look = cli.run(&["export", "markdown", "c.md", "--json"]).ok();
    let data = &look.json()["data"];
    assert_eq!((&data["gone"], &data["writtenAgain"]), (&json!(["b"]), &json!([])), "{look}");
    assert_eq!(fs::read_to_string(&path).unwrap(), without);
    let run = cli.run(&["export", "markdown", "c.md"]).ok();
    assert!(run.stderr.contains("gone: b: it was removed from the file"), "{run}");
    let look = cli.run(&["export", "markdown", "c.md", "--again", "--dry-run", "--json"]).ok();
    assert_eq!(look.json()["data"]["writtenAgain"], json!(["b"]), "{look}");
    cli.run(&["done", "b"]).ok();
    let run = cli.run(&["export", "markdown", "c.md"]).ok();
    assert!(run.stderr.contains("written again: b: it was removed from the file"), "{run}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "## One\n\n- [ ] a\n\n## Two\n- [x] b\n");
    assert!(!cli.run(&["export", "markdown", "c.md"]).ok().stderr.contains("written again"));
}

#[test]
fn several_tasks_are_not_written_to_the_file_of_one() {
    let cli = Cli::new();
    let path = cli.file("list/1.json", r#"{"id":"1","subject":"First","status":"pending"}"#);
    cli.run(&["import", "claude", "list/1.json"]).ok();
    cli.run(&["create", "Second"]).ok();
    let before = fs::read(&path).unwrap();
    cli.run(&["export", "claude", "list/1.json"]).ok();
    assert_eq!(fs::read(&path).unwrap(), before);
    let run = cli.run(&["export", "claude", "list/1.json", "--add-new"]);
    assert!(run.code == Some(2) && run.stderr.contains("`taskpawl export claude list`"), "{run}");
    assert_eq!(fs::read(&path).unwrap(), before);
    cli.run(&["export", "claude", "list/1.json", "--only", "1"]).ok();
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn what_is_above_a_change_comes_back_with_it() {
    let cli = Cli::new();
    let path = cli.file("c.md", "- [ ] a\n- [ ] p\n  - [ ] q\n  - [ ] r\n");
    cli.run(&["import", "c.md"]).ok();
    fs::write(&path, "- [ ] a\n").unwrap();
    cli.run(&["import", "c.md"]).ok();
    cli.run(&["update", "q", "--name", "q now"]).ok();
    let run = cli.run(&["export", "markdown", "c.md", "--json"]).ok();
    assert_eq!(run.json()["data"]["gone"], json!(["r"]), "{run}");
    assert_eq!(run.json()["data"]["writtenAgain"].as_array().unwrap().len(), 2, "{run}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("- [ ] p\n  - [ ] q now"), "{text}");
}

#[test]
fn an_exported_list_of_tasks_is_a_store() {
    let cli = Cli::new();
    cli.run(&["create", "First", "--id", "first"]).ok();
    cli.run(&["create", "Second", "--id", "second", "--needs", "first"]).ok();
    cli.run(&["export", "tasks", "t.json"]).ok();
    let run = cli.run(&["--store", "json:t.json", "list", "--json", "--fields", "id,dependencies"]).ok();
    let there = json!([{"id": "first", "dependencies": []}, {"id": "second", "dependencies": ["first"]}]);
    assert_eq!(run.json()["data"], there, "{run}");
    cli.run(&["--store", "json:t.json", "done", "first"]).ok();
    assert!(cli.path("work/t.json.v0.bak").is_file());
    let run = cli.run(&["--store", "json:t.json", "ready", "--json", "--fields", "id"]).ok();
    assert_eq!(run.json()["data"], json!([{"id": "second"}]), "{run}");
}

#[test]
fn an_export_leaves_the_state_of_a_parent_that_nobody_changed() {
    let cli = Cli::new();
    let text = "- [ ] Compile\n  - [x] deep\n- [x] Ship\n  - [ ] open\n  - [ ] other\n";
    let path = cli.file("c.md", text);
    cli.run(&["import", "c.md"]).ok();
    assert_eq!(cli.run(&["show", "compile", "--json"]).ok().json()["data"]["status"], "done");
    let run = cli.run(&["export", "markdown", "c.md", "--json"]).ok();
    assert_eq!((count(&run, "overwritten"), count(&run, "written")), (0, 0), "{run}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    cli.run(&["import", "c.md"]).ok();
    cli.run(&["export", "markdown", "c.md"]).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(cli.run(&["show", "open", "--json"]).ok().json()["data"]["status"], "skipped");
    let run = cli.run(&["import", "c.md", "--reopen"]).ok();
    assert!(run.stdout.contains("changed        2  open, other"), "{run}");
    cli.run(&["done", "open"]).ok();
    let run = cli.run(&["export", "markdown", "c.md"]).ok();
    assert!(run.stderr.contains("overwritten: ship: status: `done` there, `todo` here"), "{run}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("- [ ] Compile\n  - [x] deep\n- [ ] Ship\n  - [x] open"), "{text}");
}

#[test]
fn a_file_without_tasks_is_said_to_be_one() {
    let cli = Cli::new();
    cli.file("prose.md", "# Notes\n\nNothing to tick.\n");
    let run = cli.run(&["import", "markdown", "prose.md"]).ok();
    assert!(
        run.stderr.contains("there are no tasks of the format `markdown` in `prose.md`: an item"),
        "{run}"
    );
    let path = cli.file("todos.json", "\n");
    let run = cli.run(&["import", "claude", "todos.json"]).ok();
    assert!(run.stderr.contains("there are no tasks of the format `claude` in `todos.json`"), "{run}");
    let run = cli.run(&["import", "todos.json"]);
    assert!(run.code == Some(2) && run.stderr.contains("an empty file"), "{run}");
    // An export over it is one into a new file: a list.
    cli.run(&["create", "One"]).ok();
    cli.run(&["create", "Two"]).ok();
    cli.run(&["export", "claude", "todos.json"]).ok();
    let list: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(list.as_array().map(Vec::len), Some(2), "{list}");
}

#[test]
fn a_file_with_news_is_not_written_over() {
    let cli = Cli::new();
    let path = place(&cli, "checklist.md");
    cli.run(&["create", "Ours"]).ok();
    let before = fs::read_to_string(&path).unwrap();
    let run = cli.run(&["export", "markdown", "checklist.md"]);
    assert_eq!(run.code, Some(7), "{run}");
    assert!(
        run.stderr.contains("8 of its tasks are new") && run.stderr.contains("taskpawl import markdown"),
        "{run}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    let broken = cli.file("broken.jsonl", "{\"id\":\n");
    assert_eq!(cli.run(&["export", "beads", "broken.jsonl"]).code, Some(7));
    cli.run(&["export", "beads", "broken.jsonl", "--force"]).ok();
    assert!(fs::read_to_string(broken).unwrap().contains("\"Ours\""));
    // An edit by another program after the export is detected.
    cli.run(&["import", "checklist.md"]).ok();
    cli.run(&["export", "markdown", "checklist.md", "--add-new"]).ok();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("- [ ] Ours", "- [x] Ours")).unwrap();
    let run = cli.run(&["export", "markdown", "checklist.md"]);
    assert!(run.stderr.contains("1 of its tasks is other than here"), "{run}");
    let run = cli.run(&["import", "checklist.md", "--json"]).ok();
    assert_eq!(count(&run, "changed"), 1, "{run}");
}

#[test]
fn errors_name_the_file_the_place_and_the_remedy() {
    let cli = Cli::new();
    cli.file("i.jsonl", "{\"id\":\"a\",\"title\":\"A\"}\n{\"id\":\"b\",\"title\":\"B\",\"priority\":9}\n");
    cli.file("circle.jsonl", "{\"id\":\"x\",\"title\":\"X\",\"dependencies\":[{\"depends_on_id\":\"y\",\"type\":\"blocks\"}]}\n{\"id\":\"y\",\"title\":\"Y\",\"dependencies\":[{\"depends_on_id\":\"x\",\"type\":\"blocks\"}]}\n");
    cli.file("odd.txt", "hello\n");
    cli.file("bytes.json", "x");
    cli.file("cut.json", "{\"master\": {\"tasks\": [");
    place(&cli, "tasks.json");
    fs::write(cli.path("work/bytes.json"), [0x5b, 0xff, 0xfe]).unwrap();
    let text = cli.session(&[
        &["import", "i.jsonl"],
        &["import", "beads", "circle.jsonl"],
        &["import", "odd.txt"],
        &["import", "beds", "i.jsonl"],
        &["import", "bytes.json"],
        &["import", "cut.json"],
        &["import", "beads", "tasks.json"],
        &["import", "taskmaster"],
        &["import", "nothing.json"],
        &["import", "i.jsonl", "--prefix", "a/b"],
        &["export", "claude"],
        &["list"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn the_same_numbers_of_two_projects_go_into_one_store() {
    let cli = Cli::new();
    place(&cli, "taskmaster.json");
    fs::copy(sample("taskmaster.json"), cli.path("work/other.json")).unwrap();
    let text =
        fs::read_to_string(cli.path("work/other.json")).unwrap().replace("Design the parser", "Another task");
    fs::write(cli.path("work/other.json"), text).unwrap();
    cli.run(&["import", "taskmaster.json"]).ok();
    let run = cli.run(&["import", "other.json"]);
    assert_eq!(run.code, Some(7), "{run}");
    assert!(
        run.stderr
            .contains("exists in the store and was not imported from this source, the same for 10 more")
            && run.stderr.contains("--prefix"),
        "{run}"
    );
    cli.run(&["import", "other.json", "--prefix", "other"]).ok();
    assert_eq!(cli.run(&["show", "other.1", "--json"]).ok().json()["data"]["name"], "Another task");
    cli.run(&["export", "taskmaster", "other.json", "--prefix", "other", "--only", "other.1"]).ok();
    let value: Value =
        serde_json::from_str(&fs::read_to_string(cli.path("work/other.json")).unwrap()).unwrap();
    assert_eq!(value["master"]["tasks"].as_array().unwrap().len(), 6, "{value:#}");
    assert_eq!(value["feature"]["metadata"]["description"], "A branch");
}

#[test]
fn links_pipes_and_too_much_are_refused() {
    let cli = Cli::new();
    let path = place(&cli, "backlog");
    let secret = cli.file("secret.md", "---\nid: TASK-9\ntitle: Secret\n---\n");
    symlink(&secret, path.join("tasks/task-9 - Secret.md")).unwrap();
    fs::remove_dir_all(path.join("drafts")).unwrap();
    symlink(path.join("tasks"), path.join("drafts")).unwrap();
    let odd = path.join("tasks").join(std::ffi::OsStr::from_bytes(b"task-8 - \xff.md"));
    fs::write(&odd, "---\nid: TASK-8\ntitle: Odd\n---\n").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, path.join("tasks/task-7.md"), rustix::fs::Mode::RWXU).unwrap();
    // Files that other systems leave behind are no tasks.
    fs::write(path.join("tasks/._task-1 - A.md"), b"\0\xff").unwrap();
    // Each refuses only itself.
    let strict = cli.run(&["import", "backlog", "--strict"]);
    assert_eq!(strict.code, Some(7), "{strict}");
    let found = cli.run(&["import", "backlog", "--dry-run", "--json"]).ok().json();
    let why = |file: &str| {
        let list = found["data"]["leftOut"].as_array().unwrap();
        list.iter().find(|left| left["file"] == file).map(|left| left["why"].clone())
    };
    let link = json!("it is a symbolic link, and links in such a folder are not followed");
    assert_eq!(why("tasks/task-9 - Secret.md"), Some(link.clone()), "{found:#}");
    assert_eq!(why("drafts"), Some(link));
    assert_eq!(why("tasks/task-8 - \u{fffd}.md"), Some(json!("its name is not UTF-8")));
    assert_eq!(why("tasks/task-7.md"), Some(json!("it is no regular file")));
    assert_eq!(why("tasks/._task-1 - A.md"), None);
    assert!(!found.to_string().contains("Secret\""), "{found:#}");
    rustix::fs::mkfifoat(rustix::fs::CWD, cli.path("work/pipe"), rustix::fs::Mode::RWXU).unwrap();
    let run = cli.run(&["import", "beads", "pipe"]);
    assert!(run.code == Some(2) && run.stderr.contains("is not a file"), "{run}");
    let large = fs::File::create(cli.path("work/large.jsonl")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    let run = cli.run(&["import", "beads", "large.jsonl"]);
    assert!(run.code == Some(2) && run.stderr.contains("exceeds 64 MiB"), "{run}");
    symlink(cli.path("work/secret.md"), cli.path("work/out.md")).unwrap();
    cli.run(&["create", "Ours"]).ok();
    let run = cli.run(&["export", "markdown", "out.md"]);
    assert!(run.code == Some(2) && run.stderr.contains("is a symbolic link"), "{run}");
    assert_eq!(
        cli.run(&["list", "--json", "--fields", "name"]).ok().json()["data"],
        json!([{"name": "Ours"}])
    );
}

#[test]
fn imported_calls_ask_before_they_run() {
    let cli = Cli::new();
    let path = place(&cli, "tasks.json");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("\"blocked\"", "\"done\"")
        .replace("[\"true\"]", "[\"touch\", \"ran\"]");
    fs::write(&path, text).unwrap();
    cli.run(&["import", "tasks.json"]).ok();
    let run = cli.run(&["run-all-ready"]);
    assert_eq!(run.code, Some(3), "{run}");
    assert_eq!(
        cli.run(&["show", "write", "--json"]).ok().json()["data"]["blockedReason"]["type"],
        "approval"
    );
    assert!(!cli.path("work/ran").exists());
}

#[test]
fn standard_input_and_output_are_files_too() {
    let cli = Cli::new();
    let text = fs::read_to_string(sample("taskwarrior.json")).unwrap();
    cli.run_with(&["import", "taskwarrior", "-"], &text).ok();
    let run = cli.run(&["export", "taskwarrior"]).ok();
    let list: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(list.len(), 9);
    let other = Cli::new();
    let again = other.run_with(&["import", "-", "--json"], &run.stdout).ok();
    assert_eq!((again.json()["data"]["format"].as_str(), count(&again, "created")), (Some("taskwarrior"), 9));
    let held = cli.run(&[
        "done",
        list.iter().find(|task| task.get("start").is_some()).unwrap()["uuid"].as_str().unwrap(),
    ]);
    assert!(held.code == Some(0) || held.stderr.contains("--actor"), "{held}");
}

#[test]
fn what_a_format_has_no_place_for_is_said() {
    let cli = Cli::new();
    cli.run(&["create", "First", "--id", "first", "--description", "Long"]).ok();
    cli.run(&["create", "Second", "--id", "second", "--needs", "first"]).ok();
    insta::assert_snapshot!(cli.session(&[
        &["export", "markdown"],
        &["export", "tasks", "out.json", "--dry-run"],
        &["export", "backlog", "board"],
        &["export", "backlog", "board"],
        &["import", "board"],
    ]));
}

#[test]
fn what_somebody_was_at_elsewhere_is_held_without_an_end() {
    let cli = Cli::new();
    cli.file("t.md", "- [/] Write the parser\n");
    let created = cli.run(&["import", "t.md", "--json"]).ok().json()["data"]["created"].clone();
    let shown = cli.run(&["show", created[0].as_str().unwrap()]).ok().stdout;
    assert!(shown.contains(", by a claim that does not end by itself\n"), "{shown}");
    assert!(!shown.contains("until"), "{shown}");
}
