//! Fuzz tests: a dialect may refuse any arguments and files but must not panic, and a list file must stay valid.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use taskpawl_fuzz::Target;
use taskpawl_todo::{Dialect, Lists, ScopeRule, guide, plain_title, prompt_block};
use taskpawl_tools::{CallContext, Tool, ToolError};

use crate::support::TALK;

const ARGUMENTS: Target<'_> = Target {
    name: "arguments of dialects",
    corpus: &[
        r#"{"tool":"AddTask","args":{"title":"a","description":"b"}}"#,
        r#"{"tool":"CompleteTask","args":{"taskId":"a"}}"#,
        r#"{"tool":"manage_tasks","args":{"taskList":[{"id":1,"title":"**a** `b` [c](d)","status":"in-progress"},{"id":2.5,"title":"</taskList>","status":"completed"}],"operation":"write"}}"#,
        r#"{"tool":"manage_tasks","args":{"todoList":"[{\"id\":1,\"title\":\"a\",\"status\":\"not-started\"}]"}}"#,
        r#"{"tool":"todowrite","args":{"todos":[{"id":"a","content":"b","status":"pending","priority":"high"},{"content":"c","status":"cancelled","priority":"low"}]}}"#,
        r#"{"tool":"todoread","args":null}"#,
        r#"{"tool":"task","args":{"agent_id":"../a","operation":"rpush","item":"x"}}"#,
        r#"{"tool":"task","args":{"agent_id":"a","operation":"lpop","lease":"5m","receipt":"r"}}"#,
    ],
    words: &[
        "tool",
        "args",
        "ListTasks",
        "AddTask",
        "CompleteTask",
        "UncompleteTask",
        "DeleteTask",
        "manage_tasks",
        "todowrite",
        "todoread",
        "task",
        "title",
        "description",
        "taskId",
        "taskList",
        "todoList",
        "operation",
        "write",
        "read",
        "id",
        "status",
        "not-started",
        "in-progress",
        "completed",
        "pending",
        "in_progress",
        "cancelled",
        "todos",
        "content",
        "priority",
        "high",
        "medium",
        "low",
        "agent_id",
        "lpush",
        "rpush",
        "lpop",
        "rpop",
        "lpeek",
        "rpeek",
        "list",
        "count",
        "ack",
        "item",
        "lease",
        "5m",
        "1e308h",
        "receipt",
        "..",
        "/",
        "\u{0}",
        "\u{202e}",
        "**",
        "`",
        "[",
        "](",
        "</taskList>",
        "1e400",
        "-0.0",
        "null",
        "[]",
        "{}",
    ],
};

const FILES: Target<'_> = Target {
    name: "files of dialects",
    corpus: &[
        r#"{"tasks":[{"id":"a","title":"t","description":"d","done":true,"x":[1]}],"y":{}}"#,
        r#"{"items":["a","b"],"leased":[{"receipt":"r","item":"c","end":"front","until":"2026-01-02T03:04:05Z"}]}"#,
    ],
    words: &[
        "tasks",
        "items",
        "leased",
        "id",
        "title",
        "description",
        "done",
        "true",
        "receipt",
        "item",
        "end",
        "front",
        "back",
        "until",
        "2026-01-02T03:04:05Z",
        "9999-12-31T23:59:59Z",
        "a",
        "null",
        "[]",
        "{}",
        "1",
    ],
};

struct FuzzTarget {
    directory: tempfile::TempDir,
    lists: Lists,
    tools: BTreeMap<String, Arc<dyn Tool>>,
    runtime: tokio::runtime::Runtime,
}

impl FuzzTarget {
    fn new() -> Self {
        let directory = tempfile::tempdir_in(memory()).unwrap();
        let lists = Lists::builder().queue_root(directory.path()).scope(ScopeRule::fixed(TALK)).build();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let tools = Dialect::ALL.into_iter().flat_map(|dialect| lists.tools(dialect));
        let tools = tools.map(|tool| (tool.spec().name.clone(), tool)).collect();
        Self { directory, lists, tools, runtime }
    }

    /// Returns the files that calls of the corpus change.
    fn files(&self) -> [PathBuf; 2] {
        let talk = format!(".agents/tasks/{}.json", TALK.replace('-', ""));
        [talk, "system/agents/a/tasks.json".to_owned()].map(|file| self.directory.path().join(file))
    }

    fn call(&self, name: &str, args: Value) -> Option<Result<String, String>> {
        let tool = self.tools.get(name)?;
        let cx = CallContext::new(self.directory.path(), self.directory.path());
        Some(match self.runtime.block_on(tool.call(cx, args)) {
            Ok(said) => Ok(said.as_str().unwrap().to_owned()),
            Err(ToolError::Answered { message, .. }) => Err(message),
            Err(other) => panic!("{other}"),
        })
    }

    /// Makes a call and returns whether it succeeded. In any case the answer is JSON or one line, and the lists stay
    /// readable.
    fn take(&self, input: &str) -> bool {
        let Ok(call) = serde_json::from_str::<Value>(input) else { return false };
        let Some(said) = call["tool"].as_str().and_then(|tool| self.call(tool, call["args"].clone())) else {
            return false;
        };
        // Keeps the files small, so that calls do not get slower and slower.
        for file in self.files() {
            if std::fs::metadata(&file).is_ok_and(|data| data.len() > 10_000) {
                std::fs::remove_file(&file).unwrap();
            }
        }
        let text = said.as_ref().unwrap_or_else(|text| text);
        let is_json = serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
        assert!(is_json || (text.starts_with("Error: ") && !text.contains('\n')), "{text}");
        for item in self.lists.items(Dialect::Checklist, TALK).unwrap() {
            assert!(!plain_title(&item.title).contains(char::is_control));
        }
        let block = self.lists.prompt_block(TALK);
        assert!(block.matches("</taskList>").count() <= 1 && !block.contains('\u{0}'), "{block}");
        said.is_ok()
    }
}

/// Returns a directory in memory if there is one, because the test writes many files.
fn memory() -> &'static Path {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared } else { Path::new("/tmp") }
}

#[test]
fn hostile_arguments_cause_no_panic_and_no_other_files() {
    let target = FuzzTarget::new();
    ARGUMENTS.fuzz(|input| target.take(input));
    for entry in std::fs::read_dir(target.directory.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!([".agents", "system"].contains(&name.as_str()), "{name}");
    }
    assert!(target.call("ListTasks", Value::Null).unwrap().is_ok());
}

#[test]
fn hostile_files_cause_no_panic_and_refused_files_stay_unchanged() {
    let target = FuzzTarget::new();
    let files = target.files();
    for file in &files {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    }
    let pop = serde_json::json!({"agent_id": "a", "operation": "lpop"});
    let add = serde_json::json!({"title": "a"});
    FILES.fuzz(|input| {
        for file in &files {
            std::fs::write(file, input).unwrap();
        }
        let said = [target.call("AddTask", add.clone()).unwrap(), target.call("task", pop.clone()).unwrap()];
        for (file, said) in files.iter().zip(&said) {
            let content = std::fs::read_to_string(file).unwrap();
            assert!(said.is_ok() || content == input);
            assert!(said.is_err() || serde_json::from_str::<Value>(&content).is_ok());
        }
        said.iter().any(Result::is_ok)
    });
}

#[test]
fn a_planted_panic_is_found() {
    let target = FuzzTarget::new();
    let found = ARGUMENTS.search(20_000, 1, |input| {
        let is_taken = target.take(input);
        let list = target.lists.items(Dialect::Checklist, TALK).unwrap();
        assert!(list.len() < 2, "planted");
        is_taken
    });
    assert!(found.unwrap().message.contains("planted"));
    assert!(guide(Dialect::Queue).len() > 100 && prompt_block(&[]).is_empty());
}
