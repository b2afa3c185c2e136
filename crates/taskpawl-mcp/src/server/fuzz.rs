//! Hostile arguments for every tool.

use serde_json::Value;
use taskpawl::{SandboxSettings, Taskpawl};
use taskpawl_fuzz::Target;

use super::answer::{Answer, MAX_BYTES};
use super::caller::Caller;
use super::core::Core;
use super::options::ServerOptions;
use super::refusal::Refused;
use super::tools::run_ready;

/// Each input is a list of a tool's name and its arguments.
const ARGUMENTS: Target<'_> = Target {
    name: "arguments over MCP",
    corpus: &[
        r#"["plan_show", {"status": ["todo", "failed"], "plan": "p", "label": ["x"], "text": "a", "limit": 2, "offset": 1, "agent": "ann"}]"#,
        r#"["plan_write", {"plan": {"params": {"n": {"type": "integer", "default": 1}}, "tasks": [{"id": "c", "needs": ["a"], "call": {"log": {"message": "${{ params.n }}"}}}]}, "name": "q", "merge": true, "dry_run": true, "request_id": "r"}]"#,
        r#"["plan_write", {"plan": "tasks: [{id: d, run: echo}]", "name": "r"}]"#,
        r#"["task_add", {"name": "n", "description": "d", "needs": ["a"], "parent": "b", "priority": "high", "run": "x", "labels": ["l"], "request_id": null}]"#,
        r#"["task_get", {"id": "a", "part": "description", "offset": 3, "limit": 4}]"#,
        r#"["task_get", {"id": "b", "part": "result", "call": "c"}]"#,
        r#"["task_update", {"id": "a", "fields": {"name": "x", "priority": null, "context": {"a": 1}}, "if_version": 1, "note": "n"}]"#,
        r#"["task_update", {"id": "b", "action": "claim", "ttl": "2h", "agent": "bob"}]"#,
        r#"["task_update", {"id": "b", "action": "done", "result": {"a": [1]}, "note": "n", "attempt": 1, "agent": "bob"}]"#,
        r#"["task_delete", {"ids": ["a"], "agent": "ann"}]"#,
        r#"["ready_list", {"only": ["plan:p", "label:x", "a"], "limit": 3}]"#,
        r#"["ready_list", {"claim": true, "only": ["plan:p"]}]"#,
        r#"["run_ready", {"only": ["a"], "jobs": 2, "wait_s": 45}]"#,
        r#"["run_ready", {"run_id": "x", "cancel": true}]"#,
    ],
    words: &[
        "id",
        "ids",
        "plan",
        "tasks",
        "needs",
        "agent",
        "request_id",
        "only",
        "claim",
        "part",
        "offset",
        "limit",
        "fields",
        "action",
        "done",
        "fail",
        "retry",
        "reopen",
        "cascade",
        "ttl",
        "-1",
        "18446744073709551615",
        "null",
        "\u{0}",
        "${{",
        "}}",
        "plan:",
        "label:",
    ],
};

fn plans() -> Taskpawl {
    let plans = Taskpawl::builder(":memory:").sandbox(SandboxSettings::off()).open().unwrap();
    let plan =
        "{name: p, tasks: [{id: a, description: é, labels: [x]}, {id: b, name: 'B', subtasks: [{id: e}]}]}";
    plans.blocking().apply_text(plan, "p").unwrap();
    plans
}

/// Calls a tool like the handler, except for starting runs. Returns whether the arguments could be parsed.
fn call(plans: &Taskpawl, text: &str) -> bool {
    let options = ServerOptions::default();
    let Ok((name, Value::Object(mut arguments))) = serde_json::from_str::<(String, Value)>(text) else {
        return false;
    };
    let Some(tool) = Core::named(&name, &options) else { return false };
    let caller = Caller::of(plans, &options, &name, &mut arguments);
    let max_bytes = caller.as_ref().map_or(MAX_BYTES, |caller| caller.max_bytes);
    let answer: Result<Answer, Refused> = caller.and_then(|caller| {
        if tool == Core::RunReady {
            return run_ready::Arguments::read(arguments).map(|_| Answer::default());
        }
        tool.call(&caller, &options, arguments)
    });
    let is_understood = !matches!(answer, Err(Refused::Argument { .. }));
    let refused = |refused: Refused| {
        let advice = refused.advice();
        refused.into_answer(None, &options.line, &advice)
    };
    let bytes = answer.unwrap_or_else(refused).up_to(max_bytes).into_json().to_string().len();
    assert!(bytes <= max_bytes, "{bytes} bytes are answered");
    is_understood
}

#[test]
fn arguments_that_are_known_are_understood() {
    ARGUMENTS.corpus(|text| call(&plans(), text));
}

#[test]
fn no_arguments_panic_or_get_a_long_answer() {
    let plans = plans();
    ARGUMENTS.fuzz_part(5, |text| call(&plans, text));
}
