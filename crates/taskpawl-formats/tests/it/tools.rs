//! The original programs read the exports, where they are installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use taskpawl_formats::{Files, Format, write};
use taskpawl_model::task::Status;

use crate::support::{reading, sample};

/// Runs a program from `PATH` in a folder of its own. Prints a notice and returns `None` if it is not installed.
fn run(program: &str, folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env("HOME", folder).stdin(Stdio::null());
    command.envs(variables.iter().copied());
    match command.output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                output.status.success(),
                "{program} {args:?}\n{text}{}",
                String::from_utf8_lossy(&output.stderr)
            );
            Some(text)
        }
        Err(error) => {
            taskpawl_fuzz::skip(program, "reading the export with the program of the format", error);
            None
        }
    }
}

fn put(files: &Files, folder: &Path) {
    for (name, text) in files.iter() {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn reviewer(task: &taskpawl_model::task::Task) -> Option<&Value> {
    task.metadata.extra.get("taskwarrior")?.get("reviewer")
}

#[test]
fn taskwarrior_reads_an_export() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(
        path.join("taskrc"),
        "data.location=data\nconfirmation=off\nuda.reviewer.type=string\nuda.estimate.type=duration\nuda.points.type=numeric\nuda.checked.type=date\n",
    )
    .unwrap();
    fs::create_dir(path.join("data")).unwrap();
    let before = sample(Format::Taskwarrior);
    let mut tasks = reading(Format::Taskwarrior, &before).tasks;
    let parser = tasks.iter_mut().find(|task| task.name == "Write the parser").unwrap();
    parser.status = Status::Done;
    put(&write(Format::Taskwarrior, &tasks, None).files, path);
    let rc = format!("rc:{}", path.join("taskrc").display());
    let data = format!("rc.data.location:{}", path.join("data").display());
    let words = [rc.as_str(), data.as_str(), "import", "taskwarrior.json"];
    if run("task", path, &[], &words).is_none() {
        return;
    }
    let text = run("task", path, &[], &[&rc, &data, "rc.verbose:nothing", "export"]).unwrap();
    let again = reading(Format::Taskwarrior, &Files::single("t.json", text));
    assert_eq!(again.tasks.len(), tasks.len());
    for task in &tasks {
        let other = again.tasks.iter().find(|other| other.id == task.id).unwrap();
        assert_eq!((&other.name, other.status, other.priority), (&task.name, task.status, task.priority));
        let (mut one, mut two) = (task.dependencies.clone(), other.dependencies.clone());
        one.sort();
        two.sort();
        assert_eq!(one, two);
        assert_eq!(other.options.get("labels"), task.options.get("labels"));
        assert_eq!(other.options.get("dueDate"), task.options.get("dueDate"));
        assert_eq!(reviewer(other), reviewer(task));
    }
}

#[test]
fn backlog_reads_an_export() {
    let folder = tempfile::tempdir().unwrap();
    let before = sample(Format::Backlog);
    let mut tasks = reading(Format::Backlog, &before).tasks;
    let release = tasks.iter_mut().find(|task| task.name == "Release").unwrap();
    release.status = Status::InProgress;
    "Ship it: all of it".clone_into(&mut release.description);
    let mut new = tasks[0].clone();
    new.id = "new-one".into();
    "A new one".clone_into(&mut new.name);
    new.metadata.extra.clear();
    new.status = Status::Todo;
    tasks.push(new);
    let written = write(Format::Backlog, &tasks, Some(&before)).files;
    put(&before, &folder.path().join("backlog"));
    put(&written, &folder.path().join("backlog"));
    let off = [("BACKLOG_CWD", folder.path().to_str().unwrap())];
    let Some(list) = run("backlog", folder.path(), &off, &["task", "list", "--plain"]) else { return };
    for task in tasks.iter().filter(|task| task.name != "Old work") {
        assert!(list.contains(&task.name), "{} is not in\n{list}", task.name);
    }
    let one = run("backlog", folder.path(), &off, &["task", "TASK-3", "--plain"]).unwrap();
    assert!(one.contains("Ship it: all of it") && one.contains("In Progress") && one.contains("v1"), "{one}");
    let edited = run("backlog", folder.path(), &off, &["task", "edit", "TASK-7", "-s", "Done"]);
    assert!(edited.is_some());
    let files = crate::support::files(Format::Backlog, &folder.path().join("backlog"));
    let again = reading(Format::Backlog, &files);
    // The task id survives an edit by the program.
    assert_eq!(crate::support::task(&again, "new-one").status, Status::Done);
}

#[test]
fn task_master_reads_an_export() {
    let folder = tempfile::tempdir().unwrap();
    let before = sample(Format::Taskmaster);
    let mut tasks = reading(Format::Taskmaster, &before).tasks;
    tasks.iter_mut().find(|task| task.id.as_str() == "2.1").unwrap().status = Status::Done;
    let written = write(Format::Taskmaster, &tasks, Some(&before)).files;
    let text = written.iter().next().unwrap().1;
    let path = folder.path().join(".taskmaster/tasks");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("tasks.json"), text).unwrap();
    fs::write(folder.path().join(".taskmaster/state.json"), "{\"currentTag\":\"master\"}").unwrap();
    fs::write(folder.path().join(".taskmaster/config.json"), "{}").unwrap();
    let args = ["list", "--json", "--with-subtasks"];
    let Some(list) = run("task-master", folder.path(), &[], &args) else { return };
    // The program prints other text before and after the JSON.
    let values = serde_json::Deserializer::from_str(&list[list.find('{').unwrap()..]);
    let value: Value = values.into_iter().next().unwrap().unwrap();
    let list = value["tasks"].as_array().unwrap();
    assert_eq!(list.len(), 6, "{value:#}");
    let two = list.iter().find(|task| task["title"] == "Write the parser").unwrap();
    assert_eq!(two["subtasks"][0]["status"], "done", "{two:#}");
    assert_eq!(two["subtasks"].as_array().unwrap().len(), 2);
}
