//! Plans as data: built, checked, and with serde.

use serde_json::{Value, json};
use taskpawl::prelude::*;
use taskpawl::{CheckError, PlanCheck};

use crate::support::memory;

/// Doubles a number.
#[tool(read_only)]
async fn double(number: i64) -> Result<i64, ToolError> {
    Ok(number * 2)
}

fn open() -> Taskpawl {
    memory().tool(double).open().unwrap()
}

async fn faults(plan: impl Into<Plan>) -> PlanCheck {
    match open().check(plan).await {
        Err(CheckError::Faults(found)) => found,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_plan_file_includes_others_and_a_text_does_not() {
    let plans = open();
    let directory = tempfile::tempdir().unwrap();
    let part = "{params: {n: {type: integer}}, tasks: [{id: d, call: {double: {number: '${{ params.n }}'}}}], returns: '${{ tasks.d.result }}'}";
    std::fs::write(directory.path().join("part.yaml"), part).unwrap();
    let text = "{name: p, tasks: [{id: two, include: {file: part.yaml, with: {n: 21}}}]}";
    let path = directory.path().join("plan.yaml");
    std::fs::write(&path, text).unwrap();
    let plan = plans.check(Plan::from_file(&path).unwrap()).await.unwrap();
    plans.apply(plan).await.unwrap();
    assert_eq!(plans.run().await.unwrap().exit, 0);
    assert_eq!(plans.get_task("two").await.unwrap().result_as::<i64>().unwrap(), 42);
    assert_eq!(faults(text).await.to_json()[0]["code"], "include");
    assert!(plans.apply(text).await.is_err());
    std::fs::write(directory.path().join("part.yaml"), part.replace("double", "doubel")).unwrap();
    let found = faults(Plan::from_file(&path).unwrap()).await.to_json();
    assert_eq!(found[0]["code"], "unknown_tool", "{found}");
    assert!(found[0]["path"].as_str().unwrap().contains("part.yaml:1:"), "{found}");
}

#[tokio::test]
async fn a_checked_plan_takes_further_tasks_and_runs() {
    let plans = open();
    let proposed = json!({"name": "p", "tasks": [{"id": "one", "call": {"double": {"number": 1}}}]});
    let plan = plans.check(&proposed).await.unwrap();
    let plan = plan
        .task("two", |t| t.needs("one").call(double::with(21)).retry(2).label("x"))
        .task("all", |t| t.needs("two").subtask("hand", |t| t.manual("Look at it.").name("Look")));
    assert_eq!(plans.apply(plan).await.unwrap().created.len(), 4);
    assert_eq!(plans.run().await.unwrap().exit, 3);
    let two = plans.get_task("two").await.unwrap();
    assert_eq!((two.result_as::<i64>().unwrap(), &two.options["labels"]), (42, &json!(["x"])));
    let hand = plans.get_task("hand").await.unwrap();
    assert_eq!((hand.name.as_str(), hand.description.as_str()), ("Look", "Look at it."));
}

#[tokio::test]
async fn text_json_and_built_plans_have_the_same_faults() {
    let text = "{name: p, tasks: [{id: a, needs: [b], calls: [{toolName: doubel, args: {number: 1}}]}]}";
    let built = Plan::new("p").task("a", |t| {
        t.needs("b").call(double::with(1).map(|mut call| {
            let mut spec = (*call.spec).clone();
            spec.tool_name = "doubel".to_owned();
            call.spec = spec.into();
            call
        }))
    });
    let value = serde_json::to_value(&built).unwrap();
    let codes = |found: PlanCheck| {
        let mut codes: Vec<_> = found.problems.iter().map(|problem| problem.code).collect();
        codes.sort_unstable();
        codes
    };
    let expected = codes(faults(text).await);
    assert_eq!(expected.len(), 2, "{expected:?}");
    assert_eq!(codes(faults(&value).await), expected);
    assert_eq!(codes(faults(built).await), expected);
}

#[tokio::test]
async fn an_expression_may_become_any_value_but_names_hold() {
    let plan = |args: Value| json!({"name": "p", "tasks": [{"id": "a", "call": {"double": args}}]});
    open().check(&plan(json!({"number": "${{ params.n }}"}))).await.unwrap_err();
    let mut good = plan(json!({"number": "${{ params.n }}"}));
    good["params"] = json!({"n": {"type": "integer"}});
    open().check(&good).await.unwrap();
    good["tasks"][0]["call"]["double"]["numbr"] = json!(1);
    let found = faults(&good).await.to_json();
    assert_eq!((&found[0]["code"], &found[0]["severity"]), (&json!("invalid_args"), &json!("error")));
}

#[tokio::test]
async fn a_plan_without_a_name_is_refused_with_a_hint() {
    let error = open().apply(Plan::default().task("a", |t| t)).await.unwrap_err();
    assert_eq!(error.to_string(), "a plan needs name\n  hint: `Plan::named` sets it");
}

#[test]
fn a_plan_survives_serde() {
    let plan = Plan::from("name: p\ntasks: [{id: a}]").task("b", |t| t.when("true"));
    let value = serde_json::to_value(&plan).unwrap();
    assert_eq!(value, json!({"name": "p", "tasks": [{"id": "a"}, {"id": "b", "when": "true"}]}));
    let again: Plan = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&again).unwrap(), value);
}

#[tokio::test]
async fn arguments_that_are_no_json_are_a_fault_of_the_plan() {
    let bad = serde_json::to_value(std::collections::BTreeMap::from([((1, 2), 3)])).unwrap_err();
    let found = faults(Plan::new("p").task("a", |t| t.call(Err(bad)))).await;
    assert_eq!(found.problems[0].path, "tasks[0]");
}
