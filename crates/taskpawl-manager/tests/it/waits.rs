//! Durable waits and signals: times decide, and a waiting task has no holder.

use std::sync::Arc;

use serde_json::json;
use taskpawl_manager::{ApplyOptions, Ending};
use taskpawl_model::command::{Answer, Command, Round};
use taskpawl_model::insight::ForecastOptions;
use taskpawl_model::task::ActorKind;
use taskpawl_model::value::TaskId;

use crate::support::Fixture;

/// Claims tasks for the run `r1`, which gives those that wait to the store.
fn start(fixture: &Fixture, ids: &[&str]) -> Answer {
    let claims = ids.iter().map(|id| fixture.key(id)).collect();
    let tools = Arc::new(["t".to_owned(), "shell".to_owned(), "wait".to_owned()].into());
    fixture.round(Round { claims, tools, ..Round::default() })
}

fn waiting(plan: &str, ids: &[&str]) -> Fixture {
    let fixture = Fixture::new();
    fixture.apply(plan);
    start(&fixture, ids);
    fixture
}

fn signal(fixture: &Fixture, name: &str) -> Option<TaskId> {
    fixture.accept(fixture.manager.signal(name, json!(null), None)).1
}

fn wake(fixture: &Fixture, id: &str) {
    let tasks = vec![fixture.key(id)];
    fixture.accept(fixture.manager.command(Command::Wake { tasks }));
}

#[test]
fn a_signal_after_the_timeout_does_not_end_the_wait_and_goes_to_the_next() {
    let plan =
        "tasks: [{id: a, call: {wait: {signal: go, timeout: 10s}}}, {id: b, call: {wait: {signal: go}}}]";
    let fixture = waiting(plan, &["a", "b"]);
    fixture.pass(10);
    // Nothing has looked at the clock before the signal.
    assert_eq!(signal(&fixture, "go"), Some(TaskId::from("b")));
    let a = fixture.task("a");
    let class = a.metadata.tool_calls[0].error_class.clone();
    assert_eq!((a.status.as_str(), class.as_deref()), ("failed", Some("timeout")));
    assert_eq!(fixture.task("b").status.as_str(), "done");
}

#[test]
fn a_signal_before_the_timeout_counts_although_nothing_looked_in_time() {
    let plan = "tasks: [{id: a, needs: b, call: {wait: {signal: go, timeout: 10s}}}, {id: b}]";
    let fixture = Fixture::new();
    fixture.apply(plan);
    // It is kept from before the wait.
    assert_eq!(signal(&fixture, "go"), None);
    fixture.done("b");
    start(&fixture, &["a"]);
    assert_eq!(fixture.task("a").status.as_str(), "done");
}

#[test]
fn each_of_two_parallel_signals_wakes_the_task() {
    let plan = "tasks: [{id: a, mode: parallel, calls: [{wait: {signal: one}}, {wait: {signal: two, timeout: 1m}}]}]";
    for first in ["one", "two"] {
        let fixture = waiting(plan, &["a"]);
        let wait = fixture.task("a").progress.waiting_for.unwrap();
        assert_eq!((wait.signal.as_deref(), wait.also.len()), (Some("two"), 1), "the first end comes first");
        assert_eq!(wait.also[0].signal.as_deref(), Some("one"));
        assert_eq!((wait.time.is_some(), wait.also[0].time), (true, None), "the time belongs to one of them");
        assert_eq!(signal(&fixture, first), Some(TaskId::from("a")));
        assert_eq!(fixture.task("a").status.as_str(), "todo", "a run goes on with the other wait");
        start(&fixture, &["a"]);
        assert_eq!(signal(&fixture, if first == "one" { "two" } else { "one" }), Some(TaskId::from("a")));
        assert_eq!(fixture.task("a").status.as_str(), "done");
    }
}

#[test]
fn a_waiting_task_has_no_holder_and_a_release_continues_the_same_wait() {
    let fixture = waiting("tasks: [{id: a, calls: [{wait: {for: 1h}}, {t: {}}]}]", &["a"]);
    let refused = fixture.refuse(|manager| manager.claim("a", std::time::Duration::from_secs(60)));
    assert!(refused.contains("is held by the store, because it waits until"), "{refused}");
    let end = fixture.task("a").progress.waiting_for.unwrap().time;
    fixture.pass(60);
    fixture.accept(fixture.manager.release(&["a".to_owned()]));
    assert_eq!(fixture.task("a").status.as_str(), "todo");
    start(&fixture, &["a"]);
    assert_eq!(fixture.task("a").progress.waiting_for.unwrap().time, end);
}

#[test]
fn commands_may_change_the_work_of_a_waiting_task_and_not_end_it() {
    let fixture = waiting("tasks: [{id: a, call: {wait: {for: 1h}}}, {id: b}]", &["a"]);
    let done = fixture.refuse(|manager| manager.done(&["a".to_owned()], Ending::default()));
    assert!(done.contains("is held by the store") && done.contains("`taskpawl explain a`"), "{done}");
    let skip = fixture.refuse(|manager| manager.skip(&["a".to_owned()], None));
    assert!(skip.contains("the allowed commands are: release, cancel"), "{skip}");
    let later = json!({"notBefore": "2990-01-01"});
    fixture.accept(fixture.manager.update("a", later.as_object().unwrap().clone(), None));
    assert_eq!(fixture.task("a").status.as_str(), "todo");
    let fixture = waiting("tasks: [{id: a, call: {wait: {for: 1h}}}, {id: b}]", &["a"]);
    // Descriptive fields leave the wait alone.
    let name = json!({"name": "other"});
    fixture.accept(fixture.manager.update("a", name.as_object().unwrap().clone(), None));
    assert_eq!(fixture.task("a").status.as_str(), "in_progress");
    fixture.accept(fixture.manager.add_dependency("a", "b"));
    assert_eq!(fixture.task("a").status.as_str(), "todo");
}

#[test]
fn a_plan_may_be_edited_while_its_tasks_wait() {
    let fixture = waiting("tasks: [{id: a, calls: [{wait: {for: 1h}}, {t: {x: 1}}]}]", &["a"]);
    let end = fixture.task("a").progress.waiting_for.unwrap().time;
    fixture.pass(60);
    // The wait did not change, so that it goes on.
    fixture.apply("tasks: [{id: a, calls: [{wait: {for: 1h}}, {t: {x: 2}}]}]");
    assert_eq!(fixture.task("a").status.as_str(), "todo");
    start(&fixture, &["a"]);
    assert_eq!(fixture.task("a").progress.waiting_for.unwrap().time, end);
    // The other wait starts over.
    fixture.apply("tasks: [{id: a, calls: [{wait: {for: 2h}}, {t: {x: 2}}]}]");
    start(&fixture, &["a"]);
    let later = fixture.task("a").progress.waiting_for.unwrap().time;
    assert!(later > end.map(|end| end + chrono::TimeDelta::minutes(60)), "{later:?}");
}

#[test]
fn waiting_items_follow_their_list() {
    let plan = |list: &str| {
        format!("tasks: [{{id: f, forEach: {{in: {list}}}, call: {{wait: {{for: '${{{{ item }}}}h'}}}}}}]")
    };
    let fixture = waiting(&plan("[1, 2, 3]"), &[]);
    start(&fixture, &["f.0", "f.1", "f.2"]);
    let end = fixture.task("f.0").progress.waiting_for;
    fixture.apply(&plan("[1, 5]"));
    assert_eq!(fixture.task("f.0").progress.waiting_for, end, "it did not change");
    assert_eq!(fixture.task("f.1").status.as_str(), "todo", "another element starts over");
    assert_eq!(fixture.task("f.2").status.as_str(), "skipped");
}

#[test]
fn undo_after_a_signal_names_the_command_before_it() {
    let fixture = waiting("tasks: [{id: a, call: {wait: {signal: go}}}]", &["a"]);
    fixture.create("x");
    let created = fixture.revision();
    signal(&fixture, "go");
    let refused = fixture.refuse(|manager| manager.undo(None));
    assert!(refused.contains("it sent a signal, which is not taken back"), "{refused}");
    assert!(
        refused.contains(&format!("`taskpawl undo {created}` undoes the command before it")),
        "{refused}"
    );
    let named = fixture.refuse(|manager| manager.undo(Some(created + 1)));
    assert!(named.contains("it sent a signal, which is not taken back"), "{named}");
    fixture.accept(fixture.manager.undo(Some(created)));
    fixture.create("y");
    fixture.accept(fixture.manager.undo(None));
}

#[test]
fn an_agent_is_told_whose_task_it_may_not_signal() {
    let plan = "tasks: [{id: a, assignee: bo, call: {wait: {signal: go}}}]";
    let fixture = waiting(plan, &["a"]);
    let agent = fixture.manager.clone().with_kind(ActorKind::Agent);
    let refused = agent.signal("go", json!(null), Some("a")).unwrap_err().to_string();
    assert!(refused.contains("the assignee of task `a` is `bo`"), "{refused}");
    assert!(
        fixture
            .acting_as("bo")
            .manager
            .with_kind(ActorKind::Agent)
            .signal("go", json!(null), Some("a"))
            .is_ok()
    );
}

#[test]
fn impossible_waits_are_refused_when_they_are_written() {
    let fixture = Fixture::new();
    for args in
        ["until: tomorrow", "signal: go, for: 1s", "for: 99999999999h", "signal: go, timeout: 99999999999h"]
    {
        let plan = format!("tasks: [{{id: a, call: {{wait: {{{args}}}}}}}]");
        let refused = fixture.try_apply(&plan, ApplyOptions::default()).unwrap_err().to_string();
        assert!(refused.contains("toolCalls.args"), "{args}: {refused}");
    }
    fixture.apply("tasks: [{id: a, context: {at: x}, call: {wait: {until: '${{ context.at }}'}}}]");
}

#[test]
fn a_claim_and_a_forecast_name_the_time() {
    let fixture = waiting(
        "tasks: [{id: soak, call: {wait: {for: 1h}}}, {id: late, notBefore: 2990-01-01}, {id: after, needs: soak},
          {id: next, call: {wait: {signal: go}}}]",
        &["soak"],
    );
    let refused = fixture.refuse(|manager| manager.claim("late", std::time::Duration::from_secs(60)));
    assert!(refused.contains("is not ready: it waits until 2990-01-01"), "{refused}");
    let forecast =
        fixture.manager.forecast(&ForecastOptions { jobs: 2, ..ForecastOptions::default() }).unwrap();
    let left: Vec<String> =
        forecast.left.iter().map(|left| format!("{}: {}", left.task, left.reason)).collect();
    assert_eq!(forecast.exit, 3, "{left:?}");
    assert_eq!(left[1], "late: waits until 2990-01-01T00:00:00Z");
    assert_eq!(left[3], "next: waits for the signal `go`");
    assert!(
        left[0].starts_with("soak: waits until ") && left[2].starts_with("after: waits until "),
        "{left:?}"
    );
    // The wait is over: the run would go on.
    fixture.pass(3600);
    let forecast =
        fixture.manager.forecast(&ForecastOptions { jobs: 2, ..ForecastOptions::default() }).unwrap();
    assert!(forecast.left.iter().all(|left| left.task.as_str() != "soak"), "{forecast:?}");
    wake(&fixture, "soak");
    assert_eq!(fixture.task("soak").status.as_str(), "done");
}

#[test]
fn a_read_shows_that_a_wait_is_over_without_a_change() {
    let fixture = waiting("tasks: [{id: a, call: {wait: {for: 1h}}}]", &["a"]);
    assert!(!fixture.task("a").wait_over);
    fixture.pass(3600);
    assert!(fixture.task("a").wait_over);
    assert_eq!(fixture.task("a").status.as_str(), "in_progress");
}
