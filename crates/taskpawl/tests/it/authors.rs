//! The library refuses the same fields and values as plan files, with the same messages.

use std::time::Duration;

use serde_json::{Value, json};
use taskpawl::Taskpawl;
use taskpawl::model::command::NewTask;
use taskpawl::model::task::{Approval, CallSpec, ForEach, NewCall, Question, Repeat, Retry, TaskSpec};
use taskpawl::model::value::Map;
use taskpawl::model::value::Period;

fn plans() -> Taskpawl {
    Taskpawl::builder(":memory:").open().unwrap()
}

fn call(spec: CallSpec) -> NewCall {
    NewCall { id: None, spec: spec.into() }
}

fn log() -> CallSpec {
    let args = Map::from_iter([("message".to_owned(), json!("x"))]);
    CallSpec { tool_name: "log".to_owned(), args, ..CallSpec::default() }
}

fn question(options: &[&str], on_expiry: &str) -> Question {
    Question {
        ask: "q".to_owned(),
        after: false,
        options: options.iter().map(|&option| option.to_owned()).collect(),
        expires: Some(Period(Duration::from_millis(20))),
        on_expiry: Some(on_expiry.to_owned()),
    }
}

fn retry(attempts: u32, factor: Option<f64>) -> Retry {
    Retry { attempts, delay: None, factor, max_delay: None, jitter: None, retry_on: Vec::new() }
}

fn named() -> TaskSpec {
    TaskSpec { name: "a".to_owned(), ..TaskSpec::default() }
}

/// Tries to create a task, and returns the reason of the refusal.
fn refused(spec: TaskSpec, calls: Vec<NewCall>) -> String {
    let plans = plans();
    let task = NewTask { id: "a".into(), spec, calls, ..NewTask::default() };
    let text = plans.blocking().create_task(task).expect_err("it is refused").to_string();
    assert!(plans.blocking().get_task("a").is_err(), "it is not there");
    text
}

#[test]
fn a_task_of_a_program_is_checked_as_one_of_a_file() {
    let extra = |field: &str| Map::from_iter([(field.to_owned(), json!(1))]);
    let none = || Repeat { until: "true".to_owned(), max: 0, delay: None };
    let said = [
        refused(TaskSpec { approval: Some(Approval::Question(question(&["a"], "zzz"))), ..named() }, vec![]),
        refused(
            TaskSpec { approval: Some(Approval::Question(question(&["a"], "approve"))), ..named() },
            vec![],
        ),
        refused(TaskSpec::default(), vec![call(log())]),
        refused(TaskSpec { name: " ".to_owned(), ..named() }, vec![]),
        refused(named(), vec![call(CallSpec { tool_name: String::new(), ..log() })]),
        refused(TaskSpec { retry: Some(retry(0, None)), ..named() }, vec![]),
        refused(TaskSpec { retry: Some(retry(2, Some(f64::NAN))), ..named() }, vec![]),
        refused(named(), vec![call(CallSpec { retry: Some(retry(2, Some(0.5))), ..log() })]),
        refused(TaskSpec { repeat: Some(none()), ..named() }, vec![call(log())]),
        refused(TaskSpec { repeat: Some(Repeat { max: 1, ..none() }), ..named() }, vec![]),
        refused(
            TaskSpec { for_each: Some(ForEach { list: json!(5), concurrency: None }), ..named() },
            vec![call(log())],
        ),
        refused(TaskSpec { timeout: Some(Period(Duration::ZERO)), ..named() }, vec![]),
        refused(TaskSpec { resources: [("gpu".to_owned(), 0)].into_iter().collect(), ..named() }, vec![]),
        refused(TaskSpec { extra: extra("priorty"), ..named() }, vec![]),
        refused(TaskSpec { extra: extra("dependsOn"), ..named() }, vec![]),
        refused(named(), vec![call(CallSpec { extra: extra("timeuot"), ..log() })]),
        refused(named(), vec![call(CallSpec { save_as: Some("a b".to_owned()), ..log() })]),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn the_last_call_that_is_added_is_checked_too() {
    let plans = plans();
    plans.blocking().apply_text("tasks: [{id: a}]", "p").unwrap();
    let text = plans
        .manager()
        .add_tool_call("a", call(CallSpec { tool_name: " ".to_owned(), ..log() }))
        .unwrap_err();
    assert_eq!(text.to_string(), "field `toolCalls.toolName`: must not be empty");
}

#[test]
fn a_misspelt_field_of_an_update_is_refused_with_what_was_meant() {
    let plans = plans();
    plans.blocking().apply_text("tasks: [{id: a}]", "p").unwrap();
    let update = |fields: Value| plans.blocking().update_task("a", fields.as_object().unwrap().clone());
    update(json!({"priority": "high", "retry": 3})).unwrap();
    assert_eq!(
        plans.blocking().get_task("a").unwrap().options["retry"]["attempts"],
        3,
        "short forms are read as in a file"
    );
    let said = [
        json!({"priorty": "high"}),
        json!({"priority": "urgent"}),
        json!({"retry": {"attempts": 0}}),
        json!({"retry": {"atempts": 2}}),
        json!({"timeout": "soon"}),
        json!({"approval": {"ask": "q", "options": ["a"], "onExpiry": "b"}}),
        json!({"name": ""}),
    ];
    let said = said.map(|fields| update(fields).unwrap_err().to_string());
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn unknown_fields_of_an_older_store_are_accepted_from_an_unchanged_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tasks.json");
    let open = || Taskpawl::open(&format!("json:{}", file.display())).unwrap();
    let plan =
        |a: &str, b: &str| format!("tasks: [{{id: a, {a} call: {{log: {{message: x}}}}}}, {{id: b, {b}}}]");
    open().blocking().apply_text(&plan("", ""), "p").unwrap();
    // Version 0.1 accepted such a field.
    let mut store: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let tasks = store["tasks"].as_array_mut().unwrap();
    tasks.iter_mut().find(|task| task["id"] == "a").unwrap()["ticket"] = json!(1);
    std::fs::write(&file, store.to_string()).unwrap();
    let plans = open();
    for _ in 0..2 {
        plans.blocking().apply_text(&plan("ticket: 1,", ""), "p").unwrap();
        assert_eq!(plans.blocking().get_task("a").unwrap().options["ticket"], 1);
    }
    assert_eq!(
        plans.blocking().apply_text(&plan("ticket: 1,", "priority: high"), "p").unwrap().changed,
        ["b".into()]
    );
    for (a, b) in [("ticket: 2,", ""), ("ticket: 1,", "ticket: 1"), ("ticket: 1, number: 1,", "")] {
        let refused = plans.blocking().apply_text(&plan(a, b), "p").unwrap_err().to_string();
        assert_eq!(refused.matches("unknown field").count(), 1, "{refused}");
        assert!(refused.starts_with("line 1, column "), "{refused}");
    }
    let update =
        |id: &str| plans.blocking().update_task(id, Map::from_iter([("ticket".to_owned(), json!(3))]));
    assert_eq!(update("a").unwrap().options["ticket"], 3, "it may change where it is");
    update("b").unwrap_err();
}
