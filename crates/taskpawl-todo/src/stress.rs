//! Concurrency test: several processes change one file at the same time, and no change may be lost or duplicated.
//!
//! Each process is this test binary, started again to run the test `worker`. That test does nothing unless environment
//! variables tell it what to do.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use taskpawl_tools::CallContext;

use crate::{Dialect, Lists, ScopeRule, folder};

const TALK: &str = "0B2F6C1E-9A4D-4C55-8A39-2F6F0F5F7F10";
const PROCESSES: usize = 4;
const EACH: usize = 60;

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(format!("TASKPAWL_STRESS_{name}"))
}

/// The operation that a process repeats.
#[derive(Clone, Copy)]
enum Work {
    Add,
    Delete,
    Push,
    Pop,
}

const WORKS: [(&str, Work); 4] =
    [("add", Work::Add), ("delete", Work::Delete), ("push", Work::Push), ("pop", Work::Pop)];

#[test]
fn worker() {
    let (Some(work), Some(directory)) = (variable("WORK"), variable("DIRECTORY")) else { return };
    let (_, work) = WORKS.into_iter().find(|(word, _)| work == *word).unwrap();
    if variable("UNLOCKED").is_some() {
        folder::faults::unlock();
    }
    let name = variable("NAME").unwrap().into_string().unwrap();
    let calls = Calls::of(Path::new(&directory));
    wait_for_start(Path::new(&directory));
    for said in calls.run(work, &name) {
        println!("SAID {said}");
    }
}

/// Waits for the start file, so that all processes start at the same time.
fn wait_for_start(directory: &Path) {
    while !directory.join("start").exists() {
        std::thread::yield_now();
    }
}

struct Calls {
    lists: Lists,
    directory: std::path::PathBuf,
}

impl Calls {
    fn of(directory: &Path) -> Self {
        let lists = Lists::builder().base(directory).queue_root(directory).scope(ScopeRule::fixed(TALK));
        Self { lists: lists.build(), directory: directory.to_owned() }
    }

    fn call(&self, tool: &str, args: Value) -> Value {
        let dialect = if tool == "task" { Dialect::Queue } else { Dialect::Conversation };
        let tool = self.lists.tools(dialect).into_iter().find(|known| known.spec().name == tool).unwrap();
        let cx = CallContext::new(&self.directory, &self.directory);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let said = runtime.block_on(tool.call(cx, args));
        let text = said.map_or_else(|error| error.to_string(), |said| said.as_str().unwrap().to_owned());
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    fn task(&self, operation: &str, item: Option<&str>) -> Value {
        self.call("task", json!({"agent_id": "a", "operation": operation, "item": item}))
    }

    fn run(&self, work: Work, name: &str) -> Vec<String> {
        (0..EACH).filter_map(|count| self.one(work, &format!("{name}-{count}"))).collect()
    }

    fn one(&self, work: Work, item: &str) -> Option<String> {
        let said = match work {
            Work::Add => self.call("AddTask", json!({"title": item}))["id"].clone(),
            Work::Delete => {
                let id = self.call("AddTask", json!({"title": item}))["id"].clone();
                assert_eq!(self.call("DeleteTask", json!({"taskId": id})), json!({"ok": true}));
                id
            }
            Work::Push => self.task(if item.len().is_multiple_of(2) { "lpush" } else { "rpush" }, Some(item)),
            Work::Pop => self.task("lpop", None)["item"].clone(),
        };
        said.as_str().map(str::to_owned)
    }
}

fn start(directory: &Path, work: &str, name: &str, is_unlocked: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["stress::worker", "--exact", "--nocapture"]);
    command.env("TASKPAWL_STRESS_WORK", work).env("TASKPAWL_STRESS_NAME", name);
    command.env("TASKPAWL_STRESS_DIRECTORY", directory);
    if is_unlocked {
        command.env("TASKPAWL_STRESS_UNLOCKED", "1");
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs one process for each element of `works` at the same time, and returns their output. Returns `None` if a process
/// failed.
fn stress(directory: &Path, works: &[&str], is_unlocked: bool) -> Option<Vec<String>> {
    let start = |(index, work): (usize, &&str)| start(directory, work, &format!("p{index}"), is_unlocked);
    let children: Vec<Child> = works.iter().enumerate().map(start).collect();
    std::fs::write(directory.join("start"), "").unwrap();
    let ended: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let mut output_lines = Vec::new();
    for process_output in &ended {
        let text = String::from_utf8_lossy(&process_output.stdout);
        // The test harness prints the name of the test in front of the first line.
        output_lines.extend(
            text.lines().filter_map(|line| line.split_once("SAID ")).map(|(_, word)| word.to_owned()),
        );
    }
    ended.iter().all(|process_output| process_output.status.success()).then_some(output_lines)
}

#[test]
fn concurrent_adds_are_not_lost() {
    let directory = tempfile::tempdir().unwrap();
    let said = stress(directory.path(), &["add"; PROCESSES], false).unwrap();
    let all = Calls::of(directory.path()).call("ListTasks", json!({}));
    let ids = |tasks: &Value| {
        let ids =
            tasks["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned());
        ids.collect::<BTreeSet<_>>()
    };
    assert_eq!(ids(&all), said.iter().cloned().collect());
    assert_eq!(ids(&all).len(), PROCESSES * EACH);
    println!("P3 conversation: {PROCESSES} processes x {EACH} AddTask, 0 lost");
}

#[test]
fn ids_are_unique_under_concurrent_adds_and_deletes() {
    let directory = tempfile::tempdir().unwrap();
    let said = stress(directory.path(), &["add", "delete", "add", "delete"], false).unwrap();
    let unique: BTreeSet<_> = said.iter().collect();
    assert_eq!((said.len(), unique.len()), (PROCESSES * EACH, PROCESSES * EACH));
    let left = Calls::of(directory.path()).call("ListTasks", json!({}));
    assert_eq!(left["tasks"].as_array().unwrap().len(), 2 * EACH);
}

#[test]
fn concurrent_pushes_are_not_lost() {
    let directory = tempfile::tempdir().unwrap();
    stress(directory.path(), &["push"; PROCESSES], false).unwrap();
    let calls = Calls::of(directory.path());
    assert_eq!(calls.task("count", None), json!({"count": PROCESSES * EACH}));
    let all = calls.task("list", None);
    let unique: BTreeSet<_> = all["items"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(unique.len(), PROCESSES * EACH);
    println!("P3 queue: {PROCESSES} processes x {EACH} pushes, 0 lost");
}

#[test]
fn concurrent_pops_never_return_the_same_item() {
    let directory = tempfile::tempdir().unwrap();
    let calls = Calls::of(directory.path());
    let said = stress(directory.path(), &["push", "pop", "push", "pop"], false).unwrap();
    let left = calls.task("list", None);
    let left = left["items"].as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned());
    let all: Vec<String> = said.into_iter().chain(left).collect();
    let unique: BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), unique.len()), (2 * EACH, 2 * EACH));
}

/// Positive control: without the lock, items are lost or a process fails. Several rounds, because a race need not
/// happen in one.
#[test]
fn without_the_lock_the_test_detects_lost_changes() {
    let is_sound = |work: &str, count: &dyn Fn(&Calls) -> usize| {
        let directory = tempfile::tempdir().unwrap();
        let said = stress(directory.path(), &[work; PROCESSES], true);
        said.is_some() && count(&Calls::of(directory.path())) == PROCESSES * EACH
    };
    let tasks = |calls: &Calls| calls.call("ListTasks", json!({}))["tasks"].as_array().map_or(0, Vec::len);
    let items = |calls: &Calls| calls.task("list", None)["items"].as_array().map_or(0, Vec::len);
    assert!((0..5).any(|_| !is_sound("add", &tasks)), "adding tasks without the lock should lose some");
    assert!((0..5).any(|_| !is_sound("push", &items)), "pushing items without the lock should lose some");
}
