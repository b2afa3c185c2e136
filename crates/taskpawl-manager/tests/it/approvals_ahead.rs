//! Questions of the policy that are answered before the run asks them.

use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl_model::task::{PolicyDecision, PolicyHook, ProposedCall};
use taskpawl_model::value::Selector;

use crate::support::{Fixture, fields};

/// Asks if the arguments contain `ask`.
#[derive(Debug)]
struct Words(&'static str);

impl PolicyHook for Words {
    fn authorize(&self, call: &ProposedCall<'_>) -> PolicyDecision {
        if Value::Object(call.args.clone()).to_string().contains("ask") {
            PolicyDecision::Ask { why: "rule 1 asks".to_owned() }
        } else {
            PolicyDecision::Allow
        }
    }

    fn version(&self) -> &'static str {
        self.0
    }
}

const PLAN: &str = "
name: p
tasks:
- {id: first, calls: [{toolName: t, args: {n: 1}}]}
- {id: known, needs: [first], calls: [{toolName: t, args: {n: ask}}, {toolName: t, args: {n: 2}}]}
- {id: open, needs: [first], calls: [{toolName: t, args: {n: '${{ tasks.first.result }}', m: ask}}]}
- {id: list, needs: [first], forEach: {in: [a, b]}, calls: [{toolName: t, args: {n: 'ask ${{ item }}'}}]}
- {id: late, needs: [first], forEach: {in: '${{ tasks.first.result }}'}, calls: [{toolName: t, args: {n: ask}}]}
- {id: gate, needs: [first], approval: required, calls: [{toolName: t, args: {n: 3}}]}
";

fn fixture() -> Fixture {
    let fixture = Fixture::new().judged_by(Arc::new(Words("v1")));
    fixture.apply(PLAN);
    fixture
}

fn of_plan() -> [Selector; 1] {
    [Selector::Plan("p".to_owned())]
}

/// Returns the tasks whose questions can be answered now.
fn asked(fixture: &Fixture) -> Vec<String> {
    let found = fixture.manager.approvals_ahead(&of_plan()).unwrap();
    found.requests.iter().map(|request| request.task.to_string()).collect()
}

fn approve_all(fixture: &Fixture) {
    for request in fixture.manager.approvals_ahead(&of_plan()).unwrap().requests {
        fixture.accept(fixture.manager.approve_ahead(&request));
    }
}

/// Changes the argument of the first call of `known`.
fn change(fixture: &Fixture, to: &str) {
    let calls = json!({"calls": [{"id": "c1", "t": {"n": to}}]});
    fixture.accept(fixture.manager.update("known", fields(calls), None));
}

#[test]
fn questions_that_are_known_can_be_answered_before_the_run() {
    let fixture = fixture();
    assert_eq!(asked(&fixture), ["known", "list"]);
    let later = fixture.manager.approvals_ahead(&of_plan()).unwrap().later;
    let later: Vec<String> = later.iter().map(|later| format!("{}: {}", later.task, later.reason)).collect();
    let expected = [
        "open: not known yet: n",
        "late: its list is not known yet",
        "gate: its author wants a decision when it starts",
    ];
    assert_eq!(later, expected);
    approve_all(&fixture);
    assert_eq!(asked(&fixture), Vec::<String>::new());
    fixture.start(&["first"]);
    fixture.report("first", "c1", "ok");
    // Both start without a question; the others ask.
    assert_eq!(fixture.start(&["known"]).started.len(), 1);
    fixture.start(&["list"]);
    assert_eq!(fixture.start(&["list.0", "list.1"]).started.len(), 2);
    assert!(fixture.start(&["open"]).started.is_empty());
    assert_eq!(fixture.task("open").status.as_str(), "blocked");
    assert_eq!(fixture.task("gate").status.as_str(), "blocked");
}

#[test]
fn a_call_that_changes_after_the_approval_asks() {
    let fixture = fixture();
    approve_all(&fixture);
    change(&fixture, "ask more");
    assert_eq!(asked(&fixture), ["known"]);
    fixture.start(&["first"]);
    fixture.report("first", "c1", "ok");
    assert!(fixture.start(&["known"]).started.is_empty());
    assert_eq!(fixture.task("known").status.as_str(), "blocked");
}

#[test]
fn an_approval_ahead_holds_for_its_policy_only() {
    let fixture = fixture();
    approve_all(&fixture);
    let fixture = fixture.judged_by(Arc::new(Words("v2")));
    assert_eq!(asked(&fixture), ["known", "list"]);
}

#[test]
fn an_outdated_question_is_refused() {
    let fixture = fixture();
    let mut request = fixture.manager.approvals_ahead(&of_plan()).unwrap().requests.remove(0);
    request.hash = "0".repeat(64);
    let refusal = fixture.refuse(|manager| manager.approve_ahead(&request));
    assert!(refusal.contains("known"), "{refusal}");
    change(&fixture, "harmless");
    let refusal = fixture.refuse(|manager| manager.approve_ahead(&request));
    assert!(refusal.starts_with("task `known` does not wait for a decision"), "{refusal}");
}
