//! The long form is equal to its plan.

use proptest::prelude::*;
use serde_json::{Value, json};
use taskpawl_model::plan::expand_plan;

use super::plan;

/// Checks that the long form parses to the same plan, and that expanding it again changes nothing.
#[track_caller]
fn assert_round_trip(text: &str) {
    let first = plan(text);
    let expanded = expand_plan(&first);
    for written in [expanded.to_string(), serde_json::to_string_pretty(&expanded).expect("JSON is text")] {
        let second = plan(&written);
        assert_eq!(first, second, "{written}");
        assert_eq!(expanded, expand_plan(&second));
    }
}

#[test]
fn long_form_parses_to_the_same_plan() {
    assert_round_trip("[]");
    assert_round_trip(r"
name: all
description: of it
params: {dir: {type: string, default: .}, n: {type: integer}}
defaults: {priority: high, retry: 2, labels: x, trigger: any_failed, timeout: 5m, resources: gpu, x-colour: blue}
resources: {gpu: 2}
timeout: 1h
requires: {env: [DATABASE_URL, _x]}
budget: {calls: 10, duration: 1.5s, cost: 0.25}
x-owner: me
tasks:
- a name
- {id: b, needs: [a name, outside], labels: [], timeout: null, trigger: null, resources: {}, x-colour: null}
- {id: c, needs: b, priority: medium, dueDate: 2026-05-31, milestone: true, trigger: all_done}
- name: parent
  subtasks: [b, {name: child, run: x, metadata: {k: [1.5, null]}, context: {v: -1}}]
- {id: d, calls: [{id: x, run: [a, b], saveAs: y, emit: true, planAccess: add, idempotent: false}, {log: {}, x-extra: {}}], sandbox: {}}
".replace(", {log: {}, x-extra: {}}", ", {toolName: log, x-extra: {}}").as_str());
}

#[test]
fn long_form_has_every_common_field() {
    let expanded = expand_plan(&plan("- {id: a, run: x}"));
    let task = json!({
        "id": "a", "name": "a", "description": "", "priority": "medium", "dependencies": [], "subtasks": [],
        "metadata": {"toolCalls": [{"toolName": "shell", "args": {"command": "x", "shell": "sh"}}], "context": {}},
    });
    assert_eq!(expanded, json!({"version": 1, "tasks": [task]}));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1_000_000_i32..1_000_000).prop_map(|n| Value::from(f64::from(n) / 64.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|fields| fields.into_iter().collect::<Value>()),
        ]
    })
}

/// Generates a task with some of the fields, which refers to earlier tasks.
fn any_task(number: usize) -> impl Strategy<Value = Value> {
    let references = proptest::collection::vec(0..number.max(1), 0..3);
    let context = proptest::collection::vec((any::<String>(), any_value()), 0..3);
    (any::<[bool; 6]>(), references, context, any::<String>()).prop_map(
        move |(has, references, context, text)| {
            // Escaped, because an expression in the arguments would have to be valid.
            let text = text.replace("${{", "$${{");
            let mut task = json!({"name": format!("task {number}"), "description": text});
            if has[0] {
                task["id"] = format!("t{number}").into();
            }
            if number > 0 {
                task["needs"] = references.iter().map(|number| format!("task {number}")).collect();
            }
            if has[1] {
                task["call"] =
                    json!({"log": {"message": text}, "when": "attempt == 1", "idempotent": has[5]});
            }
            if has[2] {
                task["retry"] = json!({"attempts": 3, "delay": "250ms", "factor": 1.5});
            }
            if has[3] {
                task["timeout"] = Value::Null;
            }
            if has[4] {
                task["subtasks"] = json!([{"name": format!("child of {number}"), "run": ["x", text]}]);
            }
            task["context"] = context.into_iter().collect();
            task
        },
    )
}

fn any_plan() -> impl Strategy<Value = Value> {
    let tasks: Vec<_> = (0..6).map(any_task).collect();
    (tasks, any::<bool>()).prop_map(|(tasks, defaults)| {
        let defaults = if defaults { json!({"timeout": "5m", "priority": "low"}) } else { json!({}) };
        json!({"defaults": defaults, "tasks": tasks})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn long_form_of_any_plan_parses_to_the_same_plan(value in any_plan()) {
        assert_round_trip(&value.to_string());
    }

    #[test]
    fn json_values_are_parsed_exactly(value in any_value()) {
        let text = json!([{"id": "a", "context": {"value": value}}]);
        for written in [text.to_string(), serde_json::to_string_pretty(&text).unwrap()] {
            prop_assert_eq!(&plan(&written).tasks[0].context["value"], &value, "{}", written);
        }
    }
}
