//! Methods of the facade.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl::model::command::NewTask;
use taskpawl::model::task::EventKind;
use taskpawl::model::task::{CallSpec, NewCall, Priority, Status, TaskSpec};
use taskpawl::model::value::Map;
use taskpawl::model::value::TaskId;
use taskpawl::model::view::Query;
use taskpawl::tools::{ConfiguredSecrets, SecretFrom};
use taskpawl::{ApplyOptions, Ending, Error, RunOptions, StatusChange, Taskpawl};

use crate::support::{block_on, memory, with_plan};

fn new_task(id: &str) -> NewTask {
    let spec = TaskSpec { name: format!("The task {id}"), ..TaskSpec::default() };
    NewTask { id: TaskId::from(id.to_owned()), spec, ..NewTask::default() }
}

fn with_call(id: &str, tool: &str, args: Value) -> NewTask {
    let Value::Object(args) = args else { panic!("arguments are an object") };
    let spec = CallSpec { tool_name: tool.to_owned(), args, ..CallSpec::default() };
    NewTask { calls: vec![NewCall { id: None, spec: spec.into() }], ..new_task(id) }
}

fn map(value: Value) -> Map {
    let Value::Object(map) = value else { panic!("fields are an object") };
    map
}

fn ids(plans: &Taskpawl, filter: &Query) -> Vec<String> {
    plans.blocking().list_tasks(filter).unwrap().into_iter().map(|task| task.id.to_string()).collect()
}

#[test]
fn tasks_are_made_read_listed_changed_and_deleted() {
    let plans = memory().open().unwrap();
    let made = plans.blocking().create_task(new_task("write")).unwrap();
    assert_eq!((made.id.as_str(), made.status, made.version), ("write", Status::Todo, 1));
    let unnamed = plans.blocking().create_task(NewTask { id: TaskId::default(), ..new_task("x") }).unwrap();
    assert_eq!(unnamed.id.as_str(), "the-task-x", "a task without an id gets one from its name");
    assert_eq!(plans.blocking().get_task("wri").unwrap(), made, "a unique prefix is enough");

    let changed = plans
        .blocking()
        .update_task("write", map(json!({"name": "Write it", "priority": "high", "labels": ["text"]})))
        .unwrap();
    assert_eq!((changed.name.as_str(), changed.priority, changed.version), ("Write it", Priority::High, 2));
    assert_eq!(ids(&plans, &Query { labels: vec!["text".to_owned()], ..Query::default() }), ["write"]);
    assert_eq!(ids(&plans, &Query { text: Some("IT".to_owned()), ..Query::default() }), ["write"]);
    assert_eq!(ids(&plans, &Query::default()), ["write", unnamed.id.as_str()]);

    assert_eq!(plans.blocking().delete_task("write").unwrap().as_str(), "write");
    let gone = plans.blocking().get_task("write").unwrap_err();
    assert_eq!(gone.to_string(), "no task `write`");
    let again = plans.blocking().create_task(new_task("write")).unwrap_err();
    assert_eq!(again.to_string(), "id `write` is taken by a deleted task: ids are not reused");
}

#[test]
fn metadata_is_merged() {
    let plans = memory().open().unwrap();
    plans.blocking().create_task(new_task("a")).unwrap();
    plans.blocking().update_task_metadata("a", map(json!({"team": "core", "cost": 3}))).unwrap();
    let task = plans.blocking().update_task_metadata("a", map(json!({"cost": null, "ticket": 12}))).unwrap();
    assert_eq!(Value::Object(task.metadata.extra), json!({"team": "core", "ticket": 12}));
}

#[test]
fn dependencies_come_and_go_and_never_close_a_cycle() {
    let plans = memory().open().unwrap();
    for id in ["a", "b"] {
        plans.blocking().create_task(new_task(id)).unwrap();
    }
    assert_eq!(
        plans.blocking().add_dependency("b", "a").unwrap().dependencies,
        [TaskId::from("a".to_owned())]
    );
    let cycle = plans.blocking().add_dependency("a", "b").unwrap_err();
    insta::assert_snapshot!(cycle, @"this would close a cycle: `a` → `b` → `a`");
    assert_eq!(plans.blocking().remove_dependency("b", "a").unwrap().dependencies, []);
    plans.blocking().add_dependency("a", "b").unwrap();
}

#[test]
fn subtasks_hold_their_parent_open() {
    let plans = memory().open().unwrap();
    plans.blocking().create_task(new_task("whole")).unwrap();
    let part = plans.blocking().add_subtask("whole", new_task("part")).unwrap();
    assert_eq!(part.parent.as_ref().map(TaskId::as_str), Some("whole"));
    assert_eq!(plans.blocking().get_task("whole").unwrap().subtasks, [part.id]);
    plans.blocking().update_task_status("part", Status::Done, StatusChange::default()).unwrap();
    assert_eq!(plans.blocking().get_task("whole").unwrap().status, Status::Done);
}

#[test]
fn update_task_status_reaches_every_status() {
    let plans = memory().open().unwrap();
    plans.blocking().create_task(new_task("a")).unwrap();
    let mut steps = Vec::new();
    for to in [
        Status::InProgress,
        Status::Todo,
        Status::Blocked,
        Status::Todo,
        Status::Skipped,
        Status::Todo,
        Status::Cancelled,
        Status::Todo,
        Status::Failed,
        Status::Todo,
        Status::Done,
        Status::Todo,
    ] {
        let change = StatusChange { reason: Some(format!("to {to}")), result: None };
        let task = plans.blocking().update_task_status("a", to, change).unwrap();
        assert_eq!(task.status, to);
        let reason = task.blocked_reason.map(|reason| serde_json::to_string(&reason).unwrap());
        steps.push(format!("{to}: {}", reason.or(task.error).unwrap_or_default()));
    }
    insta::assert_snapshot!(steps.join("\n"), @r#"
    in_progress: 
    todo: 
    blocked: {"type":"manual","text":"to blocked"}
    todo: 
    skipped: to skipped
    todo: 
    cancelled: to cancelled
    todo: 
    failed: to failed
    todo: 
    done: 
    todo:
    "#);

    plans.blocking().update_task_status("a", Status::Done, StatusChange::default()).unwrap();
    let refused =
        plans.blocking().update_task_status("a", Status::Failed, StatusChange::default()).unwrap_err();
    insta::assert_snapshot!(format!("{refused}\n{}", refused.hint().unwrap_or_default()), @r#"
    task `a` is `done` and cannot become `failed` by `fail`
    from `done`, the allowed commands are: retry, reopen
    "#);
}

#[test]
fn a_result_that_is_reported_stays_with_the_task() {
    let plans = memory().open().unwrap();
    plans.blocking().create_task(new_task("a")).unwrap();
    let change = StatusChange { reason: Some("looks good".to_owned()), result: Some(json!({"score": 3})) };
    let task = plans.blocking().update_task_status("a", Status::Done, change).unwrap();
    assert_eq!(task.result, Some(json!({"score": 3})));
    assert_eq!(task.notes[0].text, "looks good");
}

#[test]
fn plans_are_applied_as_text_and_as_data() {
    let plans = memory().open().unwrap();
    let text = "{name: two, tasks: [{id: a, run: echo a}, {id: b, needs: a}]}";
    let report = plans.blocking().apply_text(text, "unused").unwrap();
    assert_eq!((report.plan.as_str(), report.created.len()), ("two", 2));
    assert_eq!(plans.blocking().apply_text(text, "unused").unwrap().unchanged, 2);

    let plan = taskpawl::model::plan::parse_plan("tasks: [{id: c}]").unwrap();
    let report = plans.manager().apply(plan, "one", ApplyOptions::default()).unwrap();
    assert_eq!((report.plan.as_str(), report.created.len()), ("one", 1));
    assert_eq!(
        taskpawl::Blocking::expand_text(text).unwrap()["tasks"][0]["metadata"]["toolCalls"][0]["toolName"],
        "shell"
    );

    let wrong =
        plans.blocking().apply_text("tasks: [{id: a, needs: b}, {id: b, needs: a}]", "wrong").unwrap_err();
    assert!(matches!(wrong, Error::Invalid(_)), "{wrong}");
}

#[test]
fn one_task_runs_alone_or_is_blocked_with_the_reason() {
    let plans =
        with_plan("tasks: [{id: a, run: 'true'}, {id: b, needs: a, run: 'true'}, {id: c, run: 'true'}]");
    let status = |id: &str| plans.blocking().get_task(id).unwrap().status;
    let summary = block_on(plans.execute_task("b", RunOptions::default())).unwrap();
    assert_eq!((summary.exit, status("b")), (4, Status::Blocked));
    insta::assert_snapshot!(summary.blocked[0].reason, @"waits for `a`");

    let summary = block_on(plans.execute_task("a", RunOptions::default())).unwrap();
    assert_eq!((summary.exit, status("a"), status("c")), (0, Status::Done, Status::Todo));
    assert_eq!(status("b"), Status::Todo, "its reason is gone");
}

#[test]
fn all_ready_tasks_run() {
    let plans = memory().open().unwrap();
    plans.blocking().create_task(with_call("first", "shell", json!({"command": "echo one"}))).unwrap();
    let second = NewTask {
        dependencies: vec!["first".to_owned()],
        ..with_call("second", "log", json!({"message": "two"}))
    };
    plans.blocking().create_task(second).unwrap();
    let summary = block_on(plans.run_all_ready(RunOptions::default())).unwrap();
    assert_eq!((summary.exit, summary.counts["done"]), (0, 2));
    assert_eq!(plans.blocking().get_task("first").unwrap().result.unwrap()["stdout"], "one\n");
}

#[test]
fn a_task_is_returned_as_its_own_change_left_it() {
    let plans = memory().open().unwrap();
    plans.blocking().create_task(new_task("a")).unwrap();
    let change = |number: u32| {
        let task = plans.blocking().update_task_metadata("a", map(json!({"number": number}))).unwrap();
        assert_eq!(task.metadata.extra["number"], number, "no other thread has changed it");
        task.version
    };
    let mut versions: Vec<u64> = std::thread::scope(|scope| {
        let change = &change;
        let threads = [0, 1000, 2000, 3000]
            .map(|first| scope.spawn(move || (first..first + 200).map(change).collect::<Vec<_>>()));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    versions.sort_unstable();
    assert!(versions.iter().copied().eq(2..=801), "each leaves a version of its own");
}

#[test]
fn events_are_waited_for() {
    let plans = memory().open().unwrap();
    assert_eq!(plans.blocking().wait_events(0, Duration::ZERO).unwrap(), []);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| plans.blocking().wait_events(0, Duration::from_secs(60)).unwrap());
        plans.blocking().create_task(new_task("a")).unwrap();
        let events = waiting.join().unwrap();
        assert!(matches!(&events[0].kind, EventKind::Created(created) if created.name == "The task a"));
    });
}

#[test]
fn reports_are_stored_without_secrets() {
    let secrets = [(
        "PASSWORD",
        SecretFrom::Variable { name: "V".to_owned(), value: Some("correct-horse".to_owned()) },
    )];
    let never = SecretFrom::Command { argv: vec!["/no/such/program".to_owned()], directory: "/".into() };
    let secrets = secrets.into_iter().chain([("ASKED", never)]).map(|(name, from)| (name.to_owned(), from));
    let plans = memory().secrets(Arc::new(ConfiguredSecrets::new(secrets.collect(), ""))).open().unwrap();
    for id in ["done", "failed", "skipped", "cancelled", "blocked", "noted"] {
        plans.blocking().create_task(new_task(id)).unwrap();
    }
    let token = format!("ghp_{}", "aB3dE6gH9".repeat(4));
    let said = format!("it is correct-horse, and {token}");
    let ids = |id: &str| vec![id.to_owned()];
    let ending = Ending { result: Some(json!({"a": [said]})), note: Some(said.clone()), attempt: None };
    let manager = plans.manager();
    manager.done(&ids("done"), ending.clone()).unwrap();
    manager.fail(&ids("failed"), ending).unwrap();
    manager.skip(&ids("skipped"), Some(said.clone())).unwrap();
    manager.cancel(&ids("cancelled"), Some(said.clone())).unwrap();
    manager.block(&ids("blocked"), said.clone()).unwrap();
    let request = manager.clone().with_request("r", "d");
    request.note("noted", said).unwrap();

    let done = plans.blocking().get_task("done").unwrap();
    let clean = "it is [redacted:PASSWORD], and [redacted:github-token]";
    assert_eq!(done.result, Some(json!({"a": [clean]})));
    let kept = ["done", "failed", "skipped", "cancelled", "blocked", "noted"].map(|id| {
        let task = serde_json::to_string(&plans.blocking().get_task(id).unwrap()).unwrap();
        assert!(task.contains("[redacted:PASSWORD]"), "{task}");
        task
    });
    let events = format!("{:?}", manager.history(None, 0, 1000).unwrap());
    for text in kept.iter().chain([&events]) {
        assert!(!text.contains("correct-horse") && !text.contains(&token), "{text}");
    }
}
