//! Policy decisions on calls: approvals that no plan asks for, and denied calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use taskpawl_manager::Approving;
use taskpawl_model::command::{Answer, Command, Round, RunRules};
use taskpawl_model::insight::ForecastOptions;
use taskpawl_model::rules::{Means, approval_request};
use taskpawl_model::run::recovery;
use taskpawl_model::task::{BlockedReason, Origin};
use taskpawl_model::task::{PolicyDecision, PolicyHook, ProposedCall};

use crate::support::{Fixture, fields, ids};

/// Asks if the arguments contain `ask`, denies if they contain `deny`, and asks for additional sandbox
/// permissions.
#[derive(Debug)]
struct Words(&'static str);

impl PolicyHook for Words {
    fn authorize(&self, call: &ProposedCall<'_>) -> PolicyDecision {
        let text = Value::Object(call.args.clone()).to_string();
        if text.contains("deny") {
            return PolicyDecision::Deny { why: "rule 2 denies it".to_owned() };
        }
        let asks = text.contains("ask") || call.sandbox.is_some() || call.origin == Origin::Agent;
        if asks { PolicyDecision::Ask { why: "rule 1 asks".to_owned() } } else { PolicyDecision::Allow }
    }

    fn version(&self) -> &'static str {
        self.0
    }
}

/// Allows every call.
#[derive(Debug)]
struct Open;

impl PolicyHook for Open {
    fn authorize(&self, _: &ProposedCall<'_>) -> PolicyDecision {
        PolicyDecision::Allow
    }

    fn version(&self) -> &'static str {
        "open"
    }
}

/// Counts its evaluations.
#[derive(Debug, Default)]
struct Counting(AtomicU32);

impl PolicyHook for Counting {
    fn authorize(&self, _: &ProposedCall<'_>) -> PolicyDecision {
        self.0.fetch_add(1, Ordering::Relaxed);
        PolicyDecision::Allow
    }

    fn version(&self) -> &'static str {
        "counting"
    }
}

fn fixture(plan: &str) -> Fixture {
    let fixture = Fixture::new().judged_by(Arc::new(Words("v1")));
    fixture.apply(plan);
    fixture
}

fn approve(fixture: &Fixture, id: &str) {
    fixture.accept(fixture.manager.approve(&ids(&[id]), Approving::default()));
}

fn started(answer: &Answer) -> Vec<String> {
    let call = |call: &taskpawl_model::command::StartedCall| {
        format!("{} {}", call.task, Value::Object(call.args.clone()))
    };
    answer.started.iter().map(call).collect()
}

fn reason(fixture: &Fixture, id: &str) -> BlockedReason {
    fixture.task(id).blocked_reason.expect("the task is not blocked")
}

fn why(fixture: &Fixture, id: &str) -> Option<String> {
    let BlockedReason::Approval { why, .. } = reason(fixture, id) else {
        panic!("the task does not wait for an approval")
    };
    why
}

#[test]
fn a_call_that_the_policy_asks_about_waits_with_a_reason() {
    let fixture =
        fixture("tasks: [{id: a, calls: [{toolName: t, args: {n: 1}}, {toolName: t, args: {n: ask}}]}]");
    assert_eq!(started(&fixture.start(&["a"])), [r#"a {"n":1}"#]);
    fixture.report("a", "c1", "ok");
    assert_eq!(fixture.states(), "a=blocked{approval}");
    assert_eq!(why(&fixture, "a").as_deref(), Some("rule 1 asks"));
    let request = fixture.manager.approval_request("a").unwrap().unwrap();
    assert_eq!(request.why.as_deref(), Some("rule 1 asks"));
    let explained = fixture.manager.explain("a", &Means::default()).unwrap();
    insta::assert_snapshot!(explained.first_cause.text, @"call `c2` waits for an approval: rule 1 asks");
    approve(&fixture, "a");
    assert_eq!(started(&fixture.start(&["a"])), [r#"a {"n":"ask"}"#]);
}

#[test]
fn the_policy_is_evaluated_once_per_start() {
    let counting = Arc::new(Counting::default());
    let fixture = Fixture::new().judged_by(Arc::clone(&counting) as Arc<dyn PolicyHook>);
    fixture.apply("tasks: [{id: a, calls: [{toolName: t}]}, {id: b, mode: parallel, calls: [{toolName: t}, {toolName: t}]}]");
    assert_eq!(started(&fixture.start(&["a"])).len(), 1);
    assert_eq!(counting.0.load(Ordering::Relaxed), 1);
    assert_eq!(started(&fixture.start(&["b"])).len(), 2);
    assert_eq!(counting.0.load(Ordering::Relaxed), 3);
}

#[test]
fn a_denied_call_fails_without_a_retry() {
    let fixture = fixture(
        "tasks: [{id: a, retry: {attempts: 3}, calls: [{toolName: t, args: {n: deny}, approval: required}]}]",
    );
    assert!(started(&fixture.start(&["a"])).is_empty());
    assert_eq!((fixture.states().as_str(), fixture.calls("a").as_str()), ("a=failed", "c1=failed/0"));
    let call = &fixture.task("a").metadata.tool_calls[0];
    assert_eq!(call.error_class.as_deref(), Some("denied"));
    assert_eq!(call.error.as_deref(), Some("rule 2 denies it"));
}

#[test]
fn requested_sandbox_permissions_are_part_of_an_approval() {
    let fixture = fixture("tasks: [{id: a, sandbox: {net: true}, calls: [{toolName: t}]}]");
    fixture.start(&["a"]);
    let request = fixture.manager.approval_request("a").unwrap().unwrap();
    assert!(request.calls[0].sandbox.as_ref().is_some_and(|sandbox| sandbox.net));
    approve(&fixture, "a");
    fixture.accept(fixture.manager.update(
        "a",
        fields(json!({"sandbox": {"net": true, "write": ["/"]}})),
        None,
    ));
    assert!(started(&fixture.start(&["a"])).is_empty());
    assert_eq!(fixture.states(), "a=blocked{approval}");
    approve(&fixture, "a");
    assert_eq!(started(&fixture.start(&["a"])).len(), 1);
}

#[test]
fn a_list_is_approved_once_for_all_elements() {
    let fixture = fixture(
        "tasks: [{id: each, forEach: {in: [1, ask, 3]}, calls: [{toolName: t, args: {n: '${{ item }}'}}, {toolName: t, args: {m: '${{ context.c1 }}'}}]}]",
    );
    assert_eq!(fixture.states(), "each=blocked{approval}");
    let request = fixture.manager.approval_request("each").unwrap().unwrap();
    assert_eq!((request.items.map(|items| items.len()), request.calls.len()), (Some(3), 2));
    approve(&fixture, "each");
    assert_eq!(fixture.states(), "each=todo each.0=todo each.1=todo each.2=todo");
    let answer = fixture.start(&["each.0", "each.1", "each.2"]);
    assert_eq!(started(&answer), [r#"each.0 {"n":1}"#, r#"each.1 {"n":"ask"}"#, r#"each.2 {"n":3}"#]);
    // An argument that was unknown at the list approval is decided when it is known.
    fixture.accept(fixture.try_report(
        "each.1",
        "c1",
        taskpawl_model::command::CallEnd::Succeeded(json!("ask")),
        true,
    ));
    assert_eq!(why(&fixture, "each.1").as_deref(), Some("rule 1 asks"));
}

#[test]
fn changed_elements_need_a_new_approval() {
    let fixture = fixture(
        "tasks: [{id: find}, {id: each, needs: find, forEach: {in: '${{ tasks.find.result }}'}, calls: [{toolName: t, args: {n: '${{ item }}'}}]}]",
    );
    let end = |result: Value| {
        let ending = taskpawl_manager::Ending { result: Some(result), ..Default::default() };
        fixture.accept(fixture.manager.done(&ids(&["find"]), ending));
    };
    end(json!(["ask 1"]));
    approve(&fixture, "each");
    fixture.accept(fixture.manager.reopen(&ids(&["find"]), true));
    end(json!(["ask 1"]));
    assert_eq!(fixture.states(), "find=done each=todo each.0=todo");
    fixture.accept(fixture.manager.reopen(&ids(&["find"]), true));
    end(json!(["ask 1", "ask 2"]));
    assert_eq!(reason(&fixture, "each").kind(), "approval");
}

#[test]
fn a_list_needs_another_approval_under_a_changed_policy() {
    let fixture = fixture(
        "tasks: [{id: each, forEach: {in: [ask 0, ask 1, ask 2, ask 3]}, calls: [{toolName: t, args: {n: '${{ item }}'}}, {toolName: t, args: {n: 'ask ${{ index }}'}}]}]",
    );
    approve(&fixture, "each");
    assert_eq!(started(&fixture.start(&["each.0", "each.1"])).len(), 2);
    fixture.report("each.0", "c1", "ok");
    fixture.report("each.0", "c2", "ok");

    let later = fixture.judged_by(Arc::new(Words("v2")));
    assert!(started(&later.start(&["each.2", "each.3"])).is_empty());
    assert_eq!(
        later.states(),
        "each=blocked{approval} each.0=done each.1=in_progress each.2=todo each.3=todo"
    );
    assert_eq!(why(&later, "each").as_deref(), Some("rule 1 asks"));
    // A running item continues. It also waits for the list approval when it reaches a call that the policy
    // asks about.
    later.report("each.1", "c1", "ok");
    assert_eq!(later.states(), "each=blocked{approval} each.0=done each.1=todo each.2=todo each.3=todo");
    approve(&later, "each");
    assert_eq!(later.states(), "each=todo each.0=done each.1=todo each.2=todo each.3=todo");
    let answer = later.start(&["each.1", "each.2", "each.3"]);
    assert_eq!(
        started(&answer),
        [r#"each.1 {"n":"ask 1"}"#, r#"each.2 {"n":"ask 2"}"#, r#"each.3 {"n":"ask 3"}"#]
    );
}

#[test]
fn changed_items_ask_individually_under_a_changed_policy() {
    let fixture = fixture(
        "tasks: [{id: each, forEach: {in: [ask 0, ask 1]}, calls: [{toolName: t, args: {n: '${{ item }}'}}]}]",
    );
    approve(&fixture, "each");
    fixture.accept(fixture.manager.update("each.1", fields(json!({"sandbox": {"net": true}})), None));
    let later = fixture.judged_by(Arc::new(Words("v2")));
    assert!(started(&later.start(&["each.0"])).is_empty());
    assert_eq!(later.states(), "each=todo each.0=blocked{approval} each.1=todo");
}

#[test]
fn arguments_unknown_in_the_list_approval_ask_when_known_under_a_changed_policy() {
    let fixture = fixture(
        "tasks: [{id: each, forEach: {in: [ask, 1]}, calls: [{toolName: t, args: {n: 1}}, {toolName: t, args: {m: '${{ context.c1 }}'}}]}]",
    );
    let later = fixture.judged_by(Arc::new(Words("v2")));
    later.start(&["each.0"]);
    later.accept(later.try_report(
        "each.0",
        "c1",
        taskpawl_model::command::CallEnd::Succeeded(json!("ask")),
        true,
    ));
    assert_eq!(later.states(), "each=todo each.0=blocked{approval} each.1=todo");
}

#[test]
fn an_item_changed_after_the_list_approval_asks_individually() {
    let fixture = fixture(
        "tasks: [{id: each, forEach: {in: [ask]}, calls: [{toolName: t, args: {n: '${{ item }}'}}]}]",
    );
    approve(&fixture, "each");
    let more = fields(json!({"sandbox": {"net": true}}));
    fixture.accept(fixture.manager.update("each.0", more, None));
    assert!(started(&fixture.start(&["each.0"])).is_empty());
    assert_eq!(reason(&fixture, "each.0").kind(), "approval");
}

#[test]
fn the_approval_of_a_task_covers_only_the_calls_it_showed() {
    let fixture = fixture(
        "tasks: [{id: a, approval: required, calls: [{toolName: t, args: {n: ask}}], subtasks: [{id: b, calls: [{toolName: t, args: {n: ask}}]}]}]",
    );
    approve(&fixture, "a");
    assert_eq!(started(&fixture.start(&["b"])), [r#"b {"n":"ask"}"#]);
    fixture.report("b", "c1", "ok");
    assert_eq!(started(&fixture.start(&["a"])), [r#"a {"n":"ask"}"#]);
}

#[test]
fn expiry_never_approves_calls_that_the_policy_asks_about() {
    let ask = "approval: {ask: Go?, expires: 10s, onExpiry: approve}";
    let fixture = fixture(&format!(
        "tasks: [{{id: call, calls: [{{toolName: t, args: {{n: ask}}, {ask}}}]}}, {{id: task, {ask}, calls: [{{toolName: t, args: {{n: ask}}}}]}}, {{id: mild, calls: [{{toolName: t, {ask}}}]}}]"
    ));
    fixture.start(&["call", "mild"]);
    fixture.pass(20);
    let tasks = ["call", "task", "mild"].map(|id| fixture.key(id)).into();
    fixture.accept(fixture.manager.command(Command::ExpireApprovals { tasks }));
    assert_eq!(fixture.states(), "call=cancelled task=todo mild=todo");
    // The task may start, but its call has no approval.
    assert!(started(&fixture.start(&["task"])).is_empty());
    assert_eq!(why(&fixture, "task").as_deref(), Some("rule 1 asks"));
    assert_eq!(started(&fixture.start(&["mild"])), ["mild {}"]);
}

/// Starts a task in a run in which the variable `X` has a value with this digest.
fn start_with(fixture: &Fixture, id: &str, digest: &str) -> Answer {
    let variables = Arc::new(BTreeMap::from([("X".to_owned(), digest.to_owned())]));
    let rules = Arc::new(RunRules { variables, ..RunRules::default() });
    let tools = Arc::new(["t".to_owned()].into());
    fixture.round(Round { claims: vec![fixture.key(id)], tools, rules, ..Round::default() })
}

#[test]
fn an_approval_holds_for_the_value_of_a_variable() {
    let plans = [
        "tasks: [{id: a, calls: [{toolName: t, args: {n: 'ask ${{ env.X }}'}}]}]",
        "tasks: [{id: a, approval: required, calls: [{toolName: t, args: {n: 'ask ${{ env.X }}'}}]}]",
    ];
    for plan in plans {
        let fixture = fixture(plan);
        start_with(&fixture, "a", "one");
        let hash = fixture.manager.approval_request("a").unwrap().unwrap().hash;
        // The command of the person knows no variables.
        approve(&fixture, "a");
        // Another value needs another approval.
        assert_eq!(started(&start_with(&fixture, "a", "two")), [""; 0], "{plan}");
        let request = fixture.manager.approval_request("a").unwrap().expect(plan);
        assert_ne!(request.hash, hash, "{plan}");
        approve(&fixture, "a");
        let call = r#"a {"n":"ask ${secret:env.X}"}"#;
        assert_eq!(started(&start_with(&fixture, "a", "two")), [call], "{plan}");
    }
}

#[test]
fn an_approval_ends_with_the_policy_version() {
    let fixture = fixture("tasks: [{id: a, calls: [{toolName: t, args: {n: ask}}]}]");
    fixture.start(&["a"]);
    approve(&fixture, "a");
    let later = fixture.judged_by(Arc::new(Words("v2")));
    assert!(started(&later.start(&["a"])).is_empty());
    assert_eq!(later.states(), "a=blocked{approval}");
    approve(&later, "a");
    assert_eq!(started(&later.start(&["a"])).len(), 1);
}

#[test]
fn a_changed_policy_decides_waiting_calls_again() {
    let fixture = fixture(
        "tasks: [{id: a, calls: [{toolName: t, args: {n: ask}}]}, {id: b, approval: required, calls: [{toolName: t}]}]",
    );
    fixture.start(&["a"]);
    assert_eq!(fixture.states(), "a=blocked{approval} b=blocked{approval}");
    let waiting = |version: &str| {
        fixture.manager.store().view(|view| recovery::questions_of_policy(view, version)).unwrap()
    };
    // The policy does not decide questions that the author asked.
    assert_eq!(waiting("v1"), [fixture.key("a")]);
    let tasks = waiting("open");
    assert_eq!(tasks.len(), 2);
    let open = fixture.judged_by(Arc::new(Open));
    open.accept(open.manager.command(Command::PolicyKnown { tasks }));
    assert_eq!(open.states(), "a=todo b=blocked{approval}");
    assert!(
        fixture.manager.store().view(|view| recovery::questions_of_policy(view, "open")).unwrap().is_empty()
    );
}

#[test]
fn actors_without_the_policy_keep_its_questions() {
    let plain = Fixture::new();
    let judged = plain.judged_by(Arc::new(Words("v1")));
    judged.apply("tasks: [{id: a, calls: [{toolName: t, args: {n: ask}}]}]");
    judged.start(&["a"]);
    let before = reason(&judged, "a");
    plain.accept(plain.manager.command(Command::Settle));
    plain.accept(plain.manager.note("a", "seen"));
    assert_eq!(reason(&plain, "a"), before);
}

#[test]
fn replacement_arguments_are_checked_by_the_policy() {
    let fixture = fixture("tasks: [{id: a, calls: [{toolName: t, args: {n: ask}}]}]");
    fixture.start(&["a"]);
    let with = |word: &str| Approving { args: Some(fields(json!({ "n": word }))), ..Approving::default() };
    fixture.accept(fixture.manager.approve(&ids(&["a"]), with("ask for less")));
    assert_eq!(started(&fixture.start(&["a"])), [r#"a {"n":"ask for less"}"#]);
    fixture.report("a", "c1", "bad");
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    fixture.start(&["a"]);
    fixture.accept(fixture.manager.approve(&ids(&["a"]), with("deny")));
    assert!(started(&fixture.start(&["a"])).is_empty());
    assert_eq!(fixture.states(), "a=failed");
}

#[test]
fn emitted_tasks_have_origin_agent() {
    let fixture = fixture("tasks: [{id: a, calls: [{toolName: t, emit: true}]}]");
    fixture.start(&["a"]);
    let result = json!({"tasks": [{"id": "new", "calls": [{"toolName": "t"}]}]});
    fixture.accept(fixture.try_report("a", "c1", taskpawl_model::command::CallEnd::Succeeded(result), true));
    assert!(started(&fixture.start(&["new"])).is_empty());
    assert_eq!(why(&fixture, "new").as_deref(), Some("rule 1 asks"));
    let key = fixture.key("new");
    let request = fixture.manager.store().view(|view| Ok(approval_request(view, key).unwrap())).unwrap();
    assert_eq!(request.unwrap().calls[0].origin, Origin::Agent);
}

#[test]
fn a_parallel_call_asks_after_the_running_ones_have_ended() {
    let fixture = fixture(
        "tasks: [{id: a, mode: parallel, calls: [{toolName: t, args: {n: 1}}, {toolName: t, args: {n: ask}}]}]",
    );
    assert_eq!(started(&fixture.start(&["a"])), [r#"a {"n":1}"#]);
    assert_eq!(fixture.states(), "a=in_progress");
    fixture.report("a", "c1", "ok");
    assert_eq!(fixture.states(), "a=blocked{approval}");
}

#[test]
fn a_forecast_predicts_approvals_and_denials() {
    let fixture = fixture(
        "tasks: [{id: a, calls: [{toolName: t, args: {n: ask}}]}, {id: b, calls: [{toolName: t, args: {n: deny}}]}, {id: c, needs: b, calls: [{toolName: t}]}, {id: d, calls: [{toolName: t}]}]",
    );
    let forecast =
        fixture.manager.forecast(&ForecastOptions { jobs: 2, ..ForecastOptions::default() }).unwrap();
    assert_eq!(forecast.exit, 1);
    insta::assert_snapshot!(format!("{:#}", json!([forecast.approvals, forecast.failures])), @r#"
    [
      [
        {
          "call": "c1",
          "task": "a",
          "why": "rule 1 asks"
        }
      ],
      [
        {
          "reason": "call `c1` (t): rule 2 denies it",
          "task": "b"
        }
      ]
    ]
    "#);
    assert_eq!(forecast.counts.get("blocked"), Some(&1));
}
