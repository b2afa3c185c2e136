//! The digest reports the status of a plan in short lists, with next actions.

use std::path::Path;

use serde_json::{Value, json};
use taskpawl::digest::Action;
use taskpawl::model::rules::Means;
use taskpawl::model::task::Status;
use taskpawl::{Digest, Ending, RunOptions, SandboxSettings, Supervision, Taskpawl};

use crate::support::{Count, block_on, memory, with_plan};

fn actions(digest: &Digest) -> Vec<String> {
    digest.next_actions.iter().map(|next| next.command.to_string()).collect()
}

#[test]
fn an_empty_store_has_an_empty_digest() {
    let digest = memory().open().unwrap().blocking().digest(10).unwrap();
    assert_eq!((digest.total, digest.finished(), actions(&digest)), (0, 0, vec![]));
    assert!(digest.runs.is_empty() && digest.last_run.is_none());
}

/// Runs a plan with every kind of end and wait that a task can have.
fn eventful() -> Taskpawl {
    let plans = memory().tool(Count::new()).open().unwrap();
    let text = "tasks: [
        {id: good, call: {count: {}}},
        {id: bad, call: {fail: {message: no such luck}}},
        {id: worse, call: {fail: {message: nor here}}},
        {id: behind, needs: bad, call: {count: {}}},
        {id: asks, approval: {ask: 'Publish?'}, call: {count: {}}},
        {id: colour, approval: {ask: 'Which?', options: [red, blue]}, call: {count: {}}},
        {id: look, name: Look at it}, {id: taken}, {id: theirs, assignee: another actor}, {id: stuck}]";
    plans.blocking().apply_text(text, "plan").unwrap();
    let manager = plans.manager();
    manager.claim("taken", std::time::Duration::from_secs(60)).unwrap();
    manager.note("taken", "half done").unwrap();
    manager.block(&["stuck".to_owned()], "the key is lost").unwrap();
    block_on(plans.run_all_ready(RunOptions::default())).unwrap();
    plans
}

#[test]
fn it_lists_claims_waits_failures_and_next_actions() {
    let digest = eventful().blocking().digest(10).unwrap();
    let ids = |value: &Value| -> Vec<String> {
        let items = value["items"].as_array().unwrap();
        items.iter().map(|item| item["task"].as_str().unwrap().to_owned()).collect()
    };
    let json = serde_json::to_value(&digest).unwrap();
    assert_eq!(json["counts"], json!({"done": 1, "failed": 2, "blocked": 4, "todo": 2, "in_progress": 1}));
    assert_eq!(digest.mine.items[0].note.as_deref(), Some("half done"));
    assert_eq!(ids(&json["mine"]), ["taken"]);
    assert_eq!(ids(&json["ready"]), ["look"], "tasks of another assignee are not for this actor");
    assert_eq!(ids(&json["onHold"]), ["asks", "colour", "stuck"]);
    let failed = &digest.failed.items;
    assert_eq!((failed.len(), failed[0].tool.as_str(), failed[0].count), (1, "fail", 2));
    assert_eq!(digest.last_run.as_ref().unwrap().exit, Some(1));
    assert_eq!(
        actions(&digest),
        [
            "taskpawl done taken",
            "taskpawl approve asks",
            "taskpawl show colour",
            "taskpawl show stuck",
            "taskpawl logs bad",
            "taskpawl run-all-ready --retry-failed",
            "taskpawl claim look",
        ]
    );
}

#[test]
fn another_actor_sees_its_own_claims() {
    let plans = eventful();
    let digest =
        Digest::gather(&plans.manager().clone().with_actor("another actor"), 10, &Means::default()).unwrap();
    assert!(digest.mine.is_empty());
    assert_eq!(digest.held.items[0].actor, "library");
    let ready: Vec<_> = digest.ready.items.iter().map(|ready| ready.task.as_str()).collect();
    assert_eq!(ready, ["look", "theirs"]);
}

#[test]
fn a_task_with_a_missing_tool_is_no_work_for_runs() {
    let unknown: Vec<Value> = (0..20)
        .map(|n| json!({"id": format!("u{n}"), "call": {"nonsense": {}}, "priority": "high"}))
        .collect();
    let plans = memory().tool(Count::new()).open().unwrap();
    plans.blocking().apply_text(&json!({ "tasks": unknown }).to_string(), "unknown").unwrap();
    let digest = plans.blocking().digest(5).unwrap();
    assert!(digest.ready_to_run.is_empty(), "{digest:?}");
    assert_eq!(digest.unrunnable.items[0].missing_tool.as_deref(), Some("nonsense"));
    assert_eq!((digest.unrunnable.items.len(), digest.unrunnable.truncated), (5, true));
    let explain = |n: usize| format!("taskpawl explain u{n}");
    assert_eq!(actions(&digest), [explain(0), explain(1), explain(2)]);
    // A later task that can run is found behind it.
    plans.blocking().apply_text("tasks: [{id: known, call: {count: {}}}]", "known").unwrap();
    let digest = plans.blocking().digest(5).unwrap();
    assert_eq!(digest.ready_to_run.items[0].task.as_str(), "known");
    assert_eq!(actions(&digest)[0], "taskpawl run-all-ready");
}

#[test]
fn lists_are_truncated_and_counts_are_complete() {
    let tasks: Vec<Value> = (0..300).map(|number| json!({"id": format!("t{number}")})).collect();
    let plans = with_plan(&json!({ "tasks": tasks }).to_string());
    let digest = plans.blocking().digest(5).unwrap();
    assert_eq!((digest.ready.items.len(), digest.ready.truncated), (5, true));
    assert_eq!((digest.count(Status::Todo), digest.ready_to_run.truncated), (300, false));
    let next: Vec<Action> = digest.next_actions.iter().map(|next| next.action).collect();
    assert_eq!(next, [Action::Claim]);
}

/// Returns the number of bytes that this thread has read from files so far; `None` if the system does not count them.
fn read_so_far() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

/// Returns the number of bytes that `look` reads from a store that was not opened before.
fn read_by(path: &Path, look: impl FnOnce(&Taskpawl)) -> Option<u64> {
    let builder = Taskpawl::builder(path.to_str().unwrap());
    let plans = builder.supervision(Supervision::Off).sandbox(SandboxSettings::off()).tool(Count::new());
    let plans = plans.open().unwrap();
    let before = read_so_far()?;
    look(&plans);
    Some(read_so_far()? - before)
}

/// Creates a store with `number` tasks. Of ten tasks one fails, one is blocked by it, and the others are ready, by hand or for
/// runs.
fn fill(path: &Path, number: usize) {
    let task = |n: usize| match n % 10 {
        0 => json!({"id": format!("t{n}"), "call": {"count": {}}}),
        1 => json!({"id": format!("t{n}"), "needs": [format!("t{}", n + 1)]}),
        _ => json!({"id": format!("t{n}")}),
    };
    // The last task calls a missing tool, so a search from the front would read all others.
    let lost = json!({"id": "lost", "call": {"nonsense": {}}, "priority": "low"});
    let tasks: Vec<Value> = (0..number).map(task).chain([lost]).collect();
    let fails: Vec<String> = (2..number).step_by(10).map(|n| format!("t{n}")).collect();
    read_by(path, |plans| {
        plans.blocking().apply_text(&json!({ "tasks": tasks }).to_string(), "plan").unwrap();
        plans.manager().fail(&fails, Ending::default()).unwrap();
    });
}

/// `taskpawl prime` and `plan_show` read the digest at the start of every session, so its cost must not grow with the plan.
#[test]
fn reads_of_a_digest_do_not_grow_with_the_plan() {
    let digest_of = |path: &Path| {
        read_by(path, |plans| {
            let digest = plans.blocking().digest(10).unwrap();
            assert_eq!((digest.next_actions.len(), digest.ready_to_run.items.len()), (5, 10));
            let unrunnable: Vec<_> = digest.unrunnable.items.iter().map(|task| task.task.as_str()).collect();
            assert_eq!((unrunnable, digest.unrunnable.truncated), (vec!["lost"], false));
        })
    };
    let directory = tempfile::tempdir().unwrap();
    let (small, large) = (directory.path().join("small.db"), directory.path().join("large.db"));
    fill(&small, 1_000);
    fill(&large, 100_000);
    let (Some(of_small), Some(of_large)) = (digest_of(&small), digest_of(&large)) else {
        taskpawl_fuzz::skip("io counters", "reads of a digest", "the system does not count them");
        return;
    };
    println!("read for a digest: {of_small} bytes of 1,000 tasks, {of_large} bytes of 100,000");
    assert!(of_small > 0 && of_large < 3 * of_small, "{of_small} {of_large}");
    // The control: reading every task is visible in the byte count.
    let look = |plans: &Taskpawl| drop(plans.manager().explain_ready(&[], 5, &Means::default()).unwrap());
    let (few, many) = (read_by(&small, look).unwrap(), read_by(&large, look).unwrap());
    assert!(many > 20 * few, "{few} {many}");
}
