//! The files of imports and exports: folders of features, detection, files that moved, and records that are left out.

use std::fs;

use serde_json::{Value, json};

use crate::harness::Cli;

fn write(cli: &Cli, name: &str, text: &str) {
    fs::create_dir_all(cli.path("work").join(name).parent().unwrap()).unwrap();
    cli.file(name, text);
}

fn data(cli: &Cli, args: &[&str]) -> Value {
    cli.run(&[args, &["--json"]].concat()).ok().json()["data"].clone()
}

#[test]
fn a_folder_of_features_has_a_plan_for_each() {
    let cli = Cli::new();
    let text = "# Tasks\n\n## Phase 1\n\n- [ ] T001 Start\n- [ ] T002 [P] Left\n- [ ] T003 [P] Right\n\n## Phase 2\n\n- [ ] T004 [US1] End\n";
    for feature in ["001-albums", "002-search"] {
        write(&cli, &format!("specs/{feature}/tasks.md"), text);
        write(&cli, &format!("specs/{feature}/spec.md"), "# Spec\n");
    }
    let run = data(&cli, &["import", "specs"]);
    assert_eq!(run["format"], "spec-kit");
    assert_eq!(run["detected"], "it has folders with `tasks.md` and `spec.md`");
    assert_eq!(run["created"].as_array().unwrap().len(), 8, "{run}");
    let task = data(&cli, &["show", "002-search.T004"]);
    assert_eq!((&task["plan"], &task["labels"]), (&json!("002-search"), &json!(["US1"])), "{task}");
    assert_eq!(task["dependencies"], json!(["002-search.T002", "002-search.T003"]));
    assert_eq!(
        data(&cli, &["ready", "--fields", "id"]),
        json!([{"id": "001-albums.T001"}, {"id": "002-search.T001"}])
    );
    cli.run(&["done", "002-search.T001"]).ok();
    let run = data(&cli, &["export", "spec-kit", "specs"]);
    let of_files = |field: &str| -> Vec<Value> {
        run["files"].as_array().unwrap().iter().map(|file| file[field].clone()).collect()
    };
    assert_eq!(of_files("changed"), [json!([]), json!(["002-search.T001"])], "{run}");
    assert_eq!(of_files("notAdded"), [json!([]), json!([])], "{run}");
    let read =
        |feature: &str| fs::read_to_string(cli.path("work/specs").join(feature).join("tasks.md")).unwrap();
    assert_eq!(read("001-albums"), text);
    assert_eq!(read("002-search"), text.replace("[ ] T001", "[x] T001"));
    let again = data(&cli, &["import", "specs"]);
    assert_eq!(
        (&again["created"], &again["changed"], &again["unchanged"]),
        (&json!([]), &json!([]), &json!(8))
    );
    // One feature alone is the same source.
    assert_eq!(data(&cli, &["import", "specs/001-albums/tasks.md"])["unchanged"], 4);
}

#[test]
fn a_folder_of_features_mixes_no_tasks() {
    let cli = Cli::new();
    let texts = ["- [ ] 1.1 Form\n", "# Notes\n\nNo items yet.\n", "", "- [ ] 1.1 Search\n"];
    let name = |place: usize| format!("openspec/changes/c{place}/tasks.md");
    for (place, text) in texts.iter().enumerate() {
        write(&cli, &name(place), text);
    }
    data(&cli, &["import", "openspec"]);
    cli.run(&["create", "Other", "--id", "other"]).ok();
    let read = |place: usize| fs::read_to_string(cli.path("work").join(name(place))).unwrap();
    let now = || [0, 1, 2, 3].map(read);
    // A file without items is one of several features, and no new file for the whole store.
    data(&cli, &["export", "openspec", "openspec/changes"]);
    assert_eq!(now(), texts);
    for options in [&["--add-new"][..], &["--only", "other"]] {
        let run = cli.run(&[&["export", "openspec", "openspec/changes"], options].concat());
        let hint = "name its file: `taskpawl export openspec openspec/changes/c0/tasks.md`";
        assert!(run.code == Some(2) && run.stderr.contains(hint), "{run}");
        assert_eq!(now(), texts);
    }
    data(&cli, &["export", "openspec", &name(0), "--only", "other"]);
    assert!(read(0).contains("Other"), "{}", read(0));
}

#[test]
fn a_file_in_another_encoding_refuses_only_itself() {
    let cli = Cli::new();
    let task = |id: u32| format!("---\nid: task-{id}\ntitle: Task {id}\nstatus: To Do\n---\n");
    write(&cli, "backlog/tasks/task-1 - a.md", &task(1));
    write(&cli, "specs/001-a/tasks.md", "- [ ] T001 Start\n");
    write(&cli, "specs/001-a/spec.md", "# Spec\n");
    let name = |folder: &str| cli.path("work").join(folder);
    fs::write(name("backlog/tasks/task-2 - b.md"), b"---\nid: task-2\ntitle: caf\xe9\n---\n").unwrap();
    fs::create_dir_all(name("specs/002-b")).unwrap();
    fs::write(name("specs/002-b/tasks.md"), b"- [ ] T001 caf\xe9\n").unwrap();
    for (folder, file) in [("backlog", "tasks/task-2 - b.md"), ("specs", "specs/002-b/tasks.md")] {
        let strict = cli.run(&["import", folder, "--strict"]);
        assert!(strict.code == Some(7) && strict.stderr.contains("not UTF-8"), "{strict}");
        let run = data(&cli, &["import", folder]);
        assert_eq!(run["created"].as_array().unwrap().len(), 1, "{run}");
        assert_eq!((&run["leftOut"][0]["file"], run["leftOut"].as_array().unwrap().len()), (&json!(file), 1));
    }
    // The export writes the others, and gives none of the new tasks the file that cannot be read.
    cli.run(&["done", "task-1"]).ok();
    cli.run(&["create", "New", "--id", "new"]).ok();
    let run = data(&cli, &["export", "backlog", "backlog", "--add-new"]);
    assert_eq!((&run["changed"], &run["added"]), (&json!(["task-1"]), &json!(["T001", "new"])), "{run}");
    assert!(name("backlog/tasks/task-4 - New.md").exists());
    assert_eq!(
        fs::read(name("backlog/tasks/task-2 - b.md")).unwrap(),
        b"---\nid: task-2\ntitle: caf\xe9\n---\n"
    );
}

#[test]
fn a_feature_in_a_conflict_refuses_only_itself() {
    let cli = Cli::new();
    let conflict = "<<<<<<< ours\n- [ ] 1.1 Ours\n=======\n- [ ] 1.1 Theirs\n>>>>>>> theirs\n";
    for (format, folder) in [("spec-kit", "specs"), ("openspec", "openspec/changes"), ("kiro", ".kiro/specs")]
    {
        let name = |feature: &str| format!("{folder}/{format}-{feature}/tasks.md");
        write(&cli, &name("a"), "- [ ] 1.1 Form\n");
        write(&cli, &name("b"), conflict);
        let run = data(&cli, &["import", format, folder]);
        let id = run["created"][0].as_str().unwrap().to_owned();
        assert_eq!(run["created"].as_array().unwrap().len(), 1, "{run}");
        assert_eq!((&run["leftOut"][0]["file"], &run["leftOut"][0]["line"]), (&json!(name("b")), &json!(1)));
        cli.run(&["done", &id]).ok();
        data(&cli, &["export", format, folder]);
        let read = |feature: &str| fs::read_to_string(cli.path("work").join(name(feature))).unwrap();
        assert_eq!((read("a").as_str(), read("b").as_str()), ("- [x] 1.1 Form\n", conflict));
        let alone = cli.run(&["import", format, &name("b")]);
        assert!(alone.code == Some(7) && alone.stderr.contains("unresolved git conflict"), "{alone}");
    }
}

#[test]
fn a_record_that_became_faulty_is_not_written_a_second_time() {
    const CONFLICT: &str = "<<<<<<< HEAD\nA\n=======\nB\n>>>>>>> other\n";
    let cli = Cli::new();
    let record =
        |id: &str, status: &str| format!("{{\"id\":\"{id}\",\"title\":\"{id}\",\"status\":\"{status}\"}}\n");
    let task = "---\nid: task-1\ntitle: Task 1\nstatus: To Do\n---\n";
    let files = [
        ("beads", "i.jsonl", "i.jsonl", record("a", "open") + &record("b", "open"), "b"),
        ("markdown", "list.md", "list.md", "- [ ] One\n- [ ] Two\n".to_owned(), "two"),
        ("backlog", "backlog", "backlog/tasks/task-1 - Task-1.md", task.to_owned(), "task-1"),
    ];
    for (format, path, name, text, id) in files {
        write(&cli, name, &text);
        if format == "backlog" {
            write(&cli, "backlog/tasks/task-2 - Other.md", &task.replace('1', "2"));
        }
        cli.run(&["import", format, path]).ok();
        let kept = text.lines().next().unwrap();
        let broken = format!("{kept}\n{CONFLICT}");
        write(&cli, name, &broken);
        cli.run(&["done", id]).ok();
        let run = data(&cli, &["export", format, path]);
        assert_eq!((&run["gone"], &run["writtenAgain"]), (&json!([id]), &json!([])), "{run}");
        assert_eq!(fs::read_to_string(cli.path("work").join(name)).unwrap(), broken);
        if format == "backlog" {
            // A whole file is at stake here.
            let run = cli.run(&["export", format, path, "--again"]);
            assert!(run.code == Some(7) && run.stderr.contains("unresolved git conflict"), "{run}");
            assert_eq!(fs::read_to_string(cli.path("work").join(name)).unwrap(), broken);
        }
        // Once it is resolved, the record leads to its task, and the change here is written.
        write(&cli, name, &text);
        assert_eq!(data(&cli, &["import", format, path])["created"], json!([]));
        let run = data(&cli, &["export", format, path]);
        assert_eq!((&run["changed"], &run["added"]), (&json!([id]), &json!([])), "{run}");
    }
}

#[test]
fn equal_records_of_two_files_are_two_tasks() {
    let cli = Cli::new();
    write(&cli, "a.md", "- [ ] Write tests\n");
    write(&cli, "b.md", "- [ ] Write tests\n");
    cli.run(&["import", "markdown", "a.md"]).ok();
    let run = cli.run(&["import", "markdown", "b.md"]);
    assert!(run.code == Some(7) && run.stderr.contains("was not imported from this source"), "{run}");
    cli.run(&["import", "markdown", "b.md", "--prefix", "b"]).ok();
    cli.run(&["done", "write-tests"]).ok();
    for name in ["a.md", "b.md"] {
        cli.run(&["export", "markdown", name]).ok();
    }
    let read = |name: &str| fs::read_to_string(cli.path("work").join(name)).unwrap();
    assert_eq!((read("a.md"), read("b.md")), ("- [x] Write tests\n".into(), "- [ ] Write tests\n".into()));
    // A task of two files, one of which is moved over the other, is one task.
    cli.run(&["import", "markdown", "a.md", "--prefix", "b", "--adopt"]).ok();
    cli.run(&["import", "markdown", "--moved", "b.md", "a.md"]).ok();
}

#[test]
fn a_project_is_asked_for_its_features() {
    let cli = Cli::new();
    write(&cli, "openspec/changes/add-login/tasks.md", "## 1. Code\n\n- [x] 1.1 Form\n- [ ] 1.2 Session\n");
    write(&cli, "openspec/changes/add-login/proposal.md", "# Why\n");
    write(&cli, "openspec/changes/archive/2026-01-02-old/tasks.md", "- [x] 1.1 Old\n");
    let run = data(&cli, &["import", "openspec/changes"]);
    assert_eq!(
        (&run["format"], &run["detected"]),
        (&json!("openspec"), &json!("it lies below `openspec/changes`"))
    );
    assert_eq!(run["created"].as_array().unwrap().len(), 2, "{run}");
    // An inserted item takes no status from those behind it, although their numbers change.
    write(
        &cli,
        "openspec/changes/add-login/tasks.md",
        "## 1. Code\n\n- [ ] 1.1 Schema\n- [x] 1.2 Form\n- [ ] 1.3 Session\n",
    );
    // The folder above is the same source.
    let run = data(&cli, &["import", "openspec", "openspec"]);
    assert_eq!((run["created"].as_array().unwrap().len(), &run["gone"]), (1, &json!([])), "{run}");
    write(&cli, ".kiro/specs/login/tasks.md", "- [x] 1. Set up\n- [ ]* 2. Write tests\n- [-] 3. Session\n");
    assert_eq!(data(&cli, &["import", ".kiro", "--dry-run"])["format"], "kiro");
    let run = data(&cli, &["import", "kiro"]);
    let ids = run["created"].as_array().unwrap();
    let optional = data(&cli, &["show", ids[1].as_str().unwrap()]);
    assert_eq!(
        (&optional["labels"], &optional["plan"]),
        (&json!(["optional"]), &json!("login")),
        "{optional}"
    );
    assert_eq!(data(&cli, &["show", ids[2].as_str().unwrap()])["status"], "in_progress");
}

#[test]
fn a_folder_stands_for_the_usual_file_in_it() {
    let cli = Cli::new();
    let beads = ".beads/issues.jsonl";
    write(&cli, beads, "{\"id\":\"a\",\"title\":\"A\",\"status\":\"open\"}\n");
    let run = data(&cli, &["import", "."]);
    assert_eq!((&run["format"], &run["created"]), (&json!("beads"), &json!(["a"])), "{run}");
    for args in [&["import", ".beads"][..], &["import", "beads", ".beads"], &["import", "beads", "."]] {
        assert_eq!(data(&cli, args)["unchanged"], 1);
    }
    cli.run(&["done", "a"]).ok();
    assert_eq!(data(&cli, &["export", "beads", ".beads"])["changed"], json!(["a"]));
    // Backlog.md has a folder `tasks`, too.
    let tasks = json!({"master": {"tasks": [{"id": 1, "title": "One", "status": "pending"}]}});
    write(&cli, ".taskmaster/tasks/tasks.json", &tasks.to_string());
    for folder in [".taskmaster", ".taskmaster/tasks"] {
        let run = data(&cli, &["import", folder]);
        assert_eq!(
            (&run["format"], &run["source"]),
            (&json!("taskmaster"), &json!("taskmaster .taskmaster/tasks/tasks.json"))
        );
    }
    let run = cli.run(&["import", "."]);
    assert!(run.code == Some(2) && run.stderr.contains("several files with tasks"), "{run}");
}

#[test]
fn issues_of_github_are_read_and_never_written() {
    let cli = Cli::new();
    cli.file(
        "issues.json",
        r#"[{"number": 7, "title": "Read it", "state": "OPEN", "labels": [{"name": "bug"}], "assignees": [{"login": "ana"}]},
            {"number": 6, "title": "Drop it", "state": "CLOSED", "stateReason": "NOT_PLANNED"}, {"number": 5, "state": "OPEN"}]"#,
    );
    let run = data(&cli, &["import", "issues.json"]);
    assert_eq!((&run["format"], &run["created"]), (&json!("github"), &json!(["7", "6"])), "{run}");
    assert_eq!(run["leftOut"][0]["line"], 2, "{run}");
    assert_eq!(data(&cli, &["show", "6"])["status"], "cancelled");
    let task = data(&cli, &["show", "7"]);
    assert_eq!((&task["labels"], &task["assignee"]), (&json!(["bug"]), &json!("ana")));
    let export = cli.run(&["export", "github", "issues.json"]);
    assert!(export.code == Some(2) && export.stderr.contains("`github` is only read"), "{export}");
}

#[test]
fn a_file_that_moved_keeps_its_tasks() {
    let cli = Cli::new();
    let text = "- [ ] First\n- [x] Second\n";
    let path = cli.file("list.md", text);
    cli.run(&["import", "list.md"]).ok();
    write(&cli, "docs/todo.md", text);
    fs::remove_file(path).unwrap();
    let run = cli.run(&["import", "--moved", "nowhere.md", "docs/todo.md"]);
    assert!(run.code == Some(2) && run.stderr.contains("no task remembers `nowhere.md`"), "{run}");
    let run = data(&cli, &["import", "--moved", "list.md", "docs/todo.md"]);
    assert_eq!((&run["created"], &run["unchanged"]), (&json!([]), &json!(2)), "{run}");
    cli.run(&["done", "first"]).ok();
    cli.run(&["export", "markdown", "docs/todo.md"]).ok();
    let text = fs::read_to_string(cli.path("work/docs/todo.md")).unwrap();
    assert_eq!(text, "- [x] First\n- [x] Second\n");
}

#[test]
fn a_tag_that_was_renamed_keeps_its_tasks() {
    let cli = Cli::new();
    let file = |tag: &str| {
        let tasks =
            json!([{"id": 1, "title": "One", "status": "pending", "dependencies": [], "subtasks": []}]);
        json!({ "master": {"tasks": tasks}, tag: {"tasks": tasks} }).to_string()
    };
    write(&cli, "tasks.json", &file("old"));
    cli.run(&["import", "taskmaster", "tasks.json"]).ok();
    cli.run(&["done", "old.1"]).ok();
    write(&cli, "tasks.json", &file("new"));
    let wrong = cli.run(&["import", "taskmaster", "tasks.json", "--moved-tag", "other=new"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("no task remembers the tag `other`"), "{wrong}");
    let run = data(&cli, &["import", "taskmaster", "tasks.json", "--moved-tag", "old=new"]);
    assert_eq!((&run["created"], &run["gone"]), (&json!([]), &json!([])), "{run}");
    assert_eq!(data(&cli, &["show", "old.1"])["status"], "done");
    cli.run(&["export", "taskmaster", "tasks.json"]).ok();
    let text = fs::read_to_string(cli.path("work/tasks.json")).unwrap();
    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(written["new"]["tasks"][0]["status"], "done", "{text}");
    assert_eq!(written["master"]["tasks"][0]["status"], "pending", "{text}");
    // The new name is stored: without the option nothing changes.
    let run = data(&cli, &["import", "taskmaster", "tasks.json"]);
    assert_eq!((&run["created"], &run["gone"]), (&json!([]), &json!([])), "{run}");
}

#[test]
fn faulty_records_are_left_out_unless_the_import_is_strict() {
    let cli = Cli::new();
    let text = "{\"id\":\"a\",\"title\":\"A\"}\n<<<<<<< ours\n{\"id\":\"b\",\"title\":\"B\"}\n=======\n{\"id\":\"b\",\"title\":\"C\"}\n>>>>>>> theirs\n{\"id\":\"d\",\"title\":\"\"}\n";
    let path = cli.file("i.jsonl", text);
    let strict = cli.run(&["import", "i.jsonl", "--strict"]);
    assert!(strict.code == Some(7) && strict.stderr.contains("i.jsonl:7"), "{strict}");
    assert_eq!(data(&cli, &["list"]), json!([]));
    let run = cli.run(&["import", "i.jsonl"]).ok();
    assert!(run.stderr.contains("git conflict, lines 2 to 6"), "{run}");
    assert_eq!(run.stderr.matches("warning:").count(), 1, "{run}");
    assert_eq!(data(&cli, &["list", "--fields", "id"]), json!([{"id": "a"}]));
    // What was left out stays in the file.
    cli.run(&["done", "a"]).ok();
    cli.run(&["export", "beads", "i.jsonl"]).ok();
    let written = fs::read_to_string(path).unwrap();
    assert_eq!(
        written.lines().skip(1).collect::<Vec<_>>(),
        text.lines().skip(1).collect::<Vec<_>>(),
        "{written}"
    );
}

#[test]
fn folders_that_backlog_does_not_read_are_listed() {
    let cli = Cli::new();
    write(&cli, "backlog/tasks/task-1 - A.md", "---\nid: TASK-1\ntitle: A\n---\n");
    write(&cli, "backlog/tasks/epics/task-2 - B.md", "---\nid: TASK-2\ntitle: B\n---\n");
    let run = data(&cli, &["import", "backlog"]);
    assert_eq!(
        (&run["created"], &run["leftOut"][0]["file"]),
        (&json!(["TASK-1"]), &json!("tasks/epics")),
        "{run}"
    );
    cli.run(&["import", "backlog", "--strict"]).ok();
}

#[test]
fn tasks_of_backlog_come_in_without_readable_settings() {
    let cli = Cli::new();
    let task = "---\nid: TASK-1\ntitle: A\nstatus: Offen\n---\n";
    write(&cli, "backlog/tasks/task-1 - A.md", task);
    let config = "statuses: [\"Offen\", \"Fertig\"]\n";
    write(&cli, "backlog/config.yml", &format!("<<<<<<< ours\n{config}=======\n>>>>>>> theirs\n"));
    let run = data(&cli, &["import", "backlog"]);
    assert_eq!(run["created"], json!(["TASK-1"]));
    let left = run["leftOut"].as_array().unwrap().iter().find(|left| left["file"] == "config.yml").unwrap();
    assert!(left["why"].as_str().unwrap().contains("unresolved git conflict"), "{run}");
    let strict = cli.run(&["import", "backlog", "--strict"]);
    assert_eq!(strict.code, Some(7), "{strict}");
    // Which word a status has is not known either: nothing is written.
    cli.run(&["unblock", "TASK-1"]).ok();
    cli.run(&["done", "TASK-1"]).ok();
    let run = cli.run(&["export", "backlog", "backlog"]);
    assert!(run.code == Some(7) && run.stderr.contains("config.yml"), "{run}");
    let read = || fs::read_to_string(cli.path("work/backlog/tasks/task-1 - A.md")).unwrap();
    assert_eq!(read(), task);
    write(&cli, "backlog/config.yml", config);
    data(&cli, &["import", "backlog"]);
    cli.run(&["export", "backlog", "backlog"]).ok();
    assert!(read().contains("status: Fertig\n"), "{}", read());
}

#[test]
fn new_subtasks_of_a_finished_task_are_skipped_or_reopen_it() {
    let cli = Cli::new();
    let path = cli.file("list.md", "- [x] By hand\n- [ ] Derived\n  - [x] First\n- [/] Started\n");
    cli.run(&["import", "list.md"]).ok();
    let text = "- [x] By hand\n  - [ ] Late\n- [ ] Derived\n  - [x] First\n  - [ ] Second\n- [/] Started\n  - [ ] Part\n";
    fs::write(&path, text).unwrap();
    let run = data(&cli, &["import", "list.md"]);
    assert_eq!(run["created"], json!(["late", "second", "part"]), "{run}");
    assert_eq!(run["skipped"][0]["task"], "late", "{run}");
    let status = |id: &str| data(&cli, &["show", id])["status"].clone();
    let all = ["by-hand", "late", "derived", "second", "part"].map(status);
    assert_eq!(all, ["done", "skipped", "todo", "todo", "todo"]);
    // The file keeps its words, and a second import changes nothing.
    cli.run(&["export", "markdown", "list.md"]).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let run = data(&cli, &["import", "list.md"]);
    assert_eq!((&run["changed"], &run["skipped"]), (&json!([]), &json!([])), "{run}");
    let run = data(&cli, &["import", "list.md", "--reopen"]);
    assert_eq!(run["changed"], json!(["late"]), "{run}");
    assert_eq!((status("by-hand"), status("late")), (json!("todo"), json!("todo")));
}

#[test]
fn a_skipped_subtask_follows_its_file() {
    let cli = Cli::new();
    let path = cli.file("list.md", "- [x] Above\n  - [ ] Forgotten\n");
    let run = data(&cli, &["import", "list.md"]);
    assert_eq!(run["skipped"][0]["task"], "forgotten", "{run}");
    fs::write(&path, "- [x] Above\n  - [x] Forgotten\n").unwrap();
    let run = data(&cli, &["import", "list.md"]);
    assert_eq!((&run["changed"], &run["kept"]), (&json!(["forgotten"]), &json!([])), "{run}");
    assert_eq!(data(&cli, &["show", "forgotten"])["status"], "done");
}

#[test]
fn a_status_of_the_file_survives_a_move_of_the_subtasks() {
    let cli = Cli::new();
    let path = cli.file("list.md", "- [ ] Parent\n  - [ ] Part\n- [ ] Other\n");
    cli.run(&["import", "list.md"]).ok();
    let text = "- [x] Parent\n- [ ] Other\n  - [ ] Part\n";
    fs::write(&path, text).unwrap();
    cli.run(&["import", "list.md"]).ok();
    assert_eq!(data(&cli, &["show", "parent"])["status"], "done");
    cli.run(&["export", "markdown", "list.md"]).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_skipped_subtask_that_left_the_file_stays_out_of_it() {
    let cli = Cli::new();
    let path = cli.file("list.md", "- [x] Above\n  - [ ] Forgotten\n- [ ] Other\n");
    cli.run(&["import", "list.md"]).ok();
    fs::write(&path, "- [ ] Other\n").unwrap();
    cli.run(&["import", "list.md"]).ok();
    let run = data(&cli, &["export", "markdown", "list.md"]);
    assert_eq!((&run["writtenAgain"], &run["gone"]), (&json!([]), &json!(["above", "forgotten"])), "{run}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "- [ ] Other\n");
}
