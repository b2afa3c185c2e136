//! Idempotency keys and attempts as tools see them: a call has one key in its store, and another one in every other store.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use taskpawl::model::task::Status;
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};
use taskpawl::{Observer, RunEvent, RunOptions, Taskpawl, async_trait};

/// The start of a call: its key, its attempt, the claim of its task.
type Start = (String, u32, u32);

/// A tool that records its starts, and fails.
#[derive(Debug)]
struct Witness(ToolSpec, Arc<Mutex<Vec<Start>>>);

#[async_trait]
impl Tool for Witness {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, cx: CallContext, _: Value) -> Result<Value, ToolError> {
        let start = (cx.idempotency_key, cx.attempt, cx.claim);
        self.1.lock().unwrap_or_else(PoisonError::into_inner).push(start);
        Err(ToolError::failed("again"))
    }
}

/// Opens `store` with the tool, retries or creates `pay`, and returns the starts of its calls.
async fn starts(store: &str) -> Vec<Start> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tool = Witness(ToolSpec::new("pay", "Pays", json!({"type": "object"})), Arc::clone(&seen));
    let plans = Taskpawl::builder(store).tool(Arc::new(tool)).open().unwrap();
    match plans.blocking().get_task("pay").map(|task| task.status) {
        Ok(Status::Failed) => plans.manager().retry(&["pay".to_owned()], false).map(drop).unwrap(),
        Ok(_) => {}
        Err(_) => drop(plans.blocking().apply_text("tasks: [{id: pay, call: {pay: {}}}]", "p").unwrap()),
    }
    plans.run_all_ready(RunOptions::default()).await.unwrap();
    let starts = seen.lock().unwrap().clone();
    assert!(!starts.is_empty(), "the call has started");
    starts
}

async fn key(store: &str) -> String {
    starts(store).await.remove(0).0
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test]
async fn a_call_has_one_key_under_every_name_of_its_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.db");
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let first = key(&shown(&path)).await;
    let dotted = directory.path().join(".").join("t.db");
    for name in [&path, &dotted, &link] {
        assert_eq!(key(&shown(name)).await, first);
    }
    assert!(first.ends_with("/pay/c1/0") && !first.contains("t.db"), "{first}");
}

#[tokio::test]
async fn two_stores_share_no_key() {
    let directory = tempfile::tempdir().unwrap();
    let mut keys = Vec::new();
    for name in ["a", "b"] {
        let project = directory.path().join(name);
        std::fs::create_dir(&project).unwrap();
        keys.push(key(&shown(&project.join("tasks.db"))).await);
        keys.push(key(&format!("json:{}", shown(&project.join("tasks.json")))).await);
        keys.push(key(":memory:").await);
    }
    let different: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(different.len(), keys.len(), "{keys:?}");
}

/// The two kinds of stores in files. A database has several files, so each store has its own directory here.
const KINDS: [&str; 2] = ["", "json:"];

fn in_directory(kind: &str, directory: &Path) -> String {
    format!("{kind}{}", shown(&directory.join("store")))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[tokio::test]
async fn a_moved_store_keeps_its_keys() {
    for kind in KINDS {
        let directory = tempfile::tempdir().unwrap();
        let (before, after) = (directory.path().join("a"), directory.path().join("b"));
        std::fs::create_dir(&before).unwrap();
        let first = key(&in_directory(kind, &before)).await;
        std::fs::rename(&before, &after).unwrap();
        let name = in_directory(kind, &after);
        assert_eq!(key(&name).await, first);
        Taskpawl::open(&name).unwrap().manager().reopen(&["pay".to_owned()], false).unwrap();
        assert_eq!(key(&name).await.split('/').next(), first.split('/').next(), "the id moves along");
    }
}

#[tokio::test]
async fn a_copied_store_keeps_the_keys_of_started_calls_only() {
    for kind in KINDS {
        let directory = tempfile::tempdir().unwrap();
        let (original, other) = (directory.path().join("a"), directory.path().join("b"));
        std::fs::create_dir(&original).unwrap();
        let names = [in_directory(kind, &original), in_directory(kind, &other)];
        let first = key(&names[0]).await;
        copy(&original, &other);
        // A host may have seen the key already, from either of the two stores.
        assert_eq!(key(&names[1]).await, first);
        assert_eq!(key(&names[0]).await, first);
        for name in &names {
            Taskpawl::open(name).unwrap().manager().reopen(&["pay".to_owned()], false).unwrap();
        }
        let (of_original, of_copy) = (key(&names[0]).await, key(&names[1]).await);
        assert_ne!(of_original, of_copy, "a reopened call is another one in each store");
        assert_eq!(of_original.rsplit('/').next(), Some("1"));
        assert_eq!(key(&names[1]).await, of_copy, "a copy is settled once");
    }
}

#[tokio::test]
async fn started_calls_keep_a_key_made_from_the_name_of_their_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.json");
    let name = format!("json:{}", shown(&path));
    key(&name).await;
    // The state of a store from a version that recorded no id.
    let mut document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert!(document.as_object_mut().unwrap().remove("keySpace").is_some());
    std::fs::write(&path, serde_json::to_vec(&document).unwrap()).unwrap();
    let expected = format!("{name}/pay/c1/0");
    assert_eq!(key(&name).await, expected);
    assert_eq!(key(&name).await, expected);
    let plans = Taskpawl::builder(&name).open().unwrap();
    plans.manager().reopen(&["pay".to_owned()], false).unwrap();
    assert!(!key(&name).await.contains("t.json"), "a reopened call takes the id of the store");
}

#[tokio::test]
async fn the_id_of_a_project_takes_precedence_over_that_of_its_store() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tool = Witness(ToolSpec::new("pay", "Pays", json!({"type": "object"})), Arc::clone(&seen));
    let plans = Taskpawl::builder(":memory:").project_id("shop").tool(Arc::new(tool)).open().unwrap();
    plans.blocking().apply_text("tasks: [{id: pay, call: {pay: {}}}]", "p").unwrap();
    plans.run_all_ready(RunOptions::default()).await.unwrap();
    assert_eq!(seen.lock().unwrap()[0].0, "shop/pay/c1/0");
}

/// Records the attempts and claims of starting calls.
#[derive(Debug, Default)]
struct Attempts(Mutex<Vec<(u32, u32)>>);

impl Observer for Attempts {
    fn event(&self, event: &RunEvent) {
        if let RunEvent::CallStarted { attempt, claim, .. } = event {
            self.0.lock().unwrap().push((*attempt, *claim));
        }
    }
}

#[tokio::test]
async fn tools_and_observers_see_the_number_of_the_start() {
    let (seen, observer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Attempts::default()));
    let tool = Witness(ToolSpec::new("pay", "Pays", json!({"type": "object"})), Arc::clone(&seen));
    let plans = Taskpawl::builder(":memory:").tool(Arc::new(tool)).open().unwrap();
    let plan = "tasks: [{id: pay, retry: {attempts: 3, delay: 1ms}, call: {pay: {}}}]";
    plans.blocking().apply_text(plan, "p").unwrap();
    let options = || RunOptions { observer: Some(observer.clone()), ..RunOptions::default() };
    plans.run_all_ready(options()).await.unwrap();
    plans.manager().retry(&["pay".to_owned()], false).unwrap();
    plans.run_all_ready(options()).await.unwrap();
    assert_eq!(plans.blocking().get_task("pay").unwrap().status, Status::Failed);
    let expected = [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2)];
    let told: Vec<(u32, u32)> =
        seen.lock().unwrap().iter().map(|(_, attempt, claim)| (*attempt, *claim)).collect();
    assert_eq!(told, expected);
    assert_eq!(*observer.0.lock().unwrap(), expected);
}
