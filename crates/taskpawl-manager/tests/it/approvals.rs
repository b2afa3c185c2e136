//! Tasks that wait for a decision: the actors that may decide, and the result when nobody decides in time.

use serde_json::{Value, json};
use taskpawl_manager::{ApplyOptions, Approving, Manager};
use taskpawl_model::command::{Answer, Command};
use taskpawl_model::plan::parse_plan;
use taskpawl_model::run::recovery;
use taskpawl_model::task::EventKind;
use taskpawl_model::task::{ApprovalRequest, BlockedReason, Cause, Origin};
use taskpawl_model::value::RunId;
use taskpawl_model::value::Timestamp;
use taskpawl_store::{Location, open};

use crate::support::{Fixture, error_text, fields, ids, refusal};

const DEPLOY: &str = "
tasks:
- id: deploy
  calls:
  - {id: build, t: {what: all}}
  - {id: push, toolName: t, args: {to: prod}, approval: required}
  - {id: tell, t: {}}
";

const COLOUR: &str = "
tasks:
- id: paint
  calls:
  - {id: c, toolName: t, args: {what: wall}, approval: {ask: Which colour?, options: [blue, green], expires: 10m, onExpiry: ON}}
";

fn fixture(plan: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.apply(plan);
    fixture
}

/// Returns a desk with a task that asks for a colour.
fn colour(on_expiry: &str) -> Fixture {
    let fixture = fixture(&COLOUR.replace("ON", on_expiry));
    fixture.start(&["paint"]);
    fixture
}

fn approve(
    manager: &Manager,
    id: &str,
    answer: Option<&str>,
) -> Result<Vec<taskpawl_model::value::TaskId>, taskpawl_manager::Error> {
    let answer = answer.map(|answer| json!(answer));
    manager.approve(&ids(&[id]), Approving { answer, ..Approving::default() })
}

fn asked(fixture: &Fixture, id: &str) -> ApprovalRequest {
    fixture.manager.approval_request(id).unwrap().expect("the task has no approval request")
}

fn started(answer: &Answer) -> Vec<String> {
    answer
        .started
        .iter()
        .map(|call| format!("{} {}", call.call.id, Value::Object(call.args.clone())))
        .collect()
}

#[test]
fn a_call_waiting_for_approval_keeps_the_results_of_earlier_calls() {
    let fixture = fixture(DEPLOY);
    assert_eq!(started(&fixture.start(&["deploy"])), [r#"build {"what":"all"}"#]);
    let answer = fixture.report("deploy", "build", "ok");
    assert_eq!((started(&answer), answer.asked), (Vec::new(), vec![fixture.key("deploy")]));
    assert_eq!(fixture.states(), "deploy=blocked{approval}");

    let request = asked(&fixture, "deploy");
    let call = &request.calls[0];
    assert_eq!((request.calls.len(), call.call.as_str(), call.tool.as_str()), (1, "push", "t"));
    assert_eq!((Value::Object(call.args.clone()), request.hash.len()), (json!({"to": "prod"}), 64));

    fixture.accept(approve(&fixture.manager, "deploy", None));
    assert_eq!((fixture.states().as_str(), fixture.ready()), ("deploy=todo", ids(&["deploy"])));
    assert_eq!(fixture.task("deploy").metadata.context["approval"], json!(true));
    assert_eq!(started(&fixture.start(&["deploy"])), [r#"push {"to":"prod"}"#]);
    fixture.report("deploy", "push", "ok");
    fixture.report("deploy", "tell", "ok");
    assert_eq!(fixture.states(), "deploy=done");
    assert_eq!(fixture.calls("deploy"), "build=succeeded/1 push=succeeded/1 tell=succeeded/1");
    insta::assert_snapshot!(fixture.refuse(|manager| approve(manager, "deploy", None)), @r#"
    task `deploy` does not wait for a decision: it is `done` (approved by ann at 2025-06-15T15:06:40Z)
      hint: `taskpawl show deploy` shows its status
    "#);
}

#[test]
fn an_answer_must_be_one_of_the_options() {
    let fixture = colour("reject");
    insta::assert_snapshot!(fixture.refuse(|manager| approve(manager, "paint", None)), @r#"
    an answer is required for the question of task `paint`
      hint: the answers are `blue`, `green`: `taskpawl approve paint --answer ANSWER`
    "#);
    insta::assert_snapshot!(fixture.refuse(|manager| approve(manager, "paint", Some("Geen"))), @r#"
    `Geen` is not an option of the question of task `paint`
      hint: did you mean `green`? The answers are `blue`, `green`
    "#);
    insta::assert_snapshot!(fixture.refuse(|manager| approve(manager, "paint", Some("yes"))), @r#"
    `yes` is not an option of the question of task `paint`
      hint: the answers are `blue`, `green`: `taskpawl approve paint --answer ANSWER`
    "#);
    fixture.accept(approve(&fixture.manager, "paint", Some("green")));
    assert_eq!(fixture.task("paint").metadata.context["approval"], json!("green"));
    let granted = fixture.task("paint").metadata.tool_calls[0].granted.clone().unwrap();
    assert_eq!((granted.by.as_str(), granted.answer), ("ann", Some(json!("green"))));
    fixture.run("paint");
}

#[test]
fn an_approval_with_an_outdated_hash_is_refused() {
    let fixture = colour("reject");
    let hash = asked(&fixture, "paint").hash;
    let with = |hash: &str| Approving {
        answer: Some(json!("blue")),
        hash: Some(hash.to_owned()),
        ..Approving::default()
    };
    for stale in ["", "1234567", &hash[..7], &hash[1..]] {
        let error = fixture.manager.approve(&ids(&["paint"]), with(stale)).unwrap_err();
        assert!(matches!(refusal(error), taskpawl_model::command::Refusal::StaleHash { .. }), "{stale}");
    }
    fixture.accept(fixture.manager.approve(&ids(&["paint"]), with(&hash[..8])));
}

const FLOW: &str = "
tasks:
- id: find
- id: paint
  needs: [find]
  calls: [{id: c, toolName: t, args: {what: '${{ tasks.find.result.what }}'}, approval: required}]
";

fn find(fixture: &Fixture, what: &str) {
    let result = Some(json!({ "what": what }));
    let ending = taskpawl_manager::Ending { result, ..Default::default() };
    fixture.accept(fixture.manager.done(&ids(&["find"]), ending));
}

#[test]
fn changed_work_needs_a_new_approval() {
    let fixture = fixture(FLOW);
    find(&fixture, "wall");
    fixture.start(&["paint"]);
    let before = asked(&fixture, "paint");
    assert_eq!(Value::Object(before.calls[0].args.clone()), json!({"what": "wall"}));
    fixture.accept(approve(&fixture.manager, "paint", None));
    fixture.accept(fixture.manager.reopen(&ids(&["find"]), false));
    find(&fixture, "floor");
    assert_eq!(started(&fixture.start(&["paint"])), Vec::<String>::new());
    let after = asked(&fixture, "paint");
    assert_ne!(after.hash, before.hash);
    assert_eq!(Value::Object(after.calls[0].args.clone()), json!({"what": "floor"}));
    let task = fixture.task("paint");
    assert!(!task.metadata.context.contains_key("approval") && task.metadata.tool_calls[0].granted.is_none());
    // Unchanged work needs no second decision.
    fixture.accept(approve(&fixture.manager, "paint", None));
    fixture.accept(fixture.manager.reopen(&ids(&["find"]), false));
    find(&fixture, "floor");
    assert_eq!(started(&fixture.start(&["paint"])), [r#"c {"what":"floor"}"#]);
}

#[test]
fn an_approval_of_a_whole_task_shows_all_known_calls() {
    let plan = FLOW.replace("approval: required}]", "}, {id: d, toolName: t, args: {also: '${{ context.c }}', n: 1}}]\n  approval: {ask: Really?, options: [yes, maybe]}");
    let fixture = fixture(&plan);
    assert_eq!(fixture.states(), "find=todo paint=todo", "it does not ask before its dependencies are done");
    find(&fixture, "wall");
    assert_eq!(fixture.states(), "find=done paint=blocked{approval}");
    let request = asked(&fixture, "paint");
    let calls: Vec<Value> =
        request.calls.iter().map(|call| json!([call.call, call.args, call.unknown])).collect();
    assert_eq!(
        json!(calls),
        json!([["c", {"what": "wall"}, []], ["d", {"also": "${{ context.c }}", "n": 1}, ["also"]]])
    );
    assert_eq!((request.call, request.ask.as_deref()), (None, Some("Really?")));

    // The reviewed work changes while the question is open, so a new question replaces it.
    fixture.accept(fixture.manager.reopen(&ids(&["find"]), false));
    assert_eq!(fixture.states(), "find=todo paint=blocked{approval}");
    find(&fixture, "floor");
    let anew = asked(&fixture, "paint");
    assert_ne!(anew.hash, request.hash);
    let stale = Approving { answer: Some(json!("maybe")), hash: Some(request.hash), ..Approving::default() };
    assert!(fixture.manager.approve(&ids(&["paint"]), stale).is_err());
    fixture.accept(approve(&fixture.manager, "paint", Some("maybe")));
    assert_eq!(fixture.ready(), ids(&["paint"]));
    assert_eq!(fixture.task("paint").metadata.context["approval"], json!("maybe"));

    // The same holds after an approval.
    fixture.accept(fixture.manager.reopen(&ids(&["find"]), false));
    find(&fixture, "roof");
    assert_eq!(fixture.states(), "find=done paint=blocked{approval}");
    fixture.accept(approve(&fixture.manager, "paint", Some("yes")));
    fixture.accept(fixture.manager.reopen(&ids(&["find"]), false));
    find(&fixture, "roof");
    assert_eq!(fixture.states(), "find=done paint=todo");
    fixture.run("paint");
}

#[test]
fn a_plan_change_before_the_start_needs_a_new_approval() {
    let plan = "tasks: [{id: a, calls: [{id: c, toolName: t, args: {n: 1}}], approval: required}]";
    let fixture = fixture(plan);
    let first = asked(&fixture, "a").hash;
    fixture.apply(&plan.replace("n: 1", "n: 2"));
    let second = asked(&fixture, "a");
    assert_ne!(second.hash, first);
    fixture.accept(approve(&fixture.manager, "a", None));
    fixture.apply(&plan.replace("n: 1", "n: 3"));
    assert_eq!(fixture.states(), "a=blocked{approval}");
    fixture.accept(approve(&fixture.manager, "a", None));
    assert_eq!(started(&fixture.start(&["a"])), [r#"c {"n":3}"#]);
}

#[test]
fn tasks_without_calls_can_require_approval() {
    let fixture = fixture(
        "
tasks:
- {id: manual, approval: required}
- {id: join, milestone: true, approval: {ask: Is it all there?}}
- id: above
  approval: required
  subtasks:
  - {id: below, calls: [{id: c, toolName: t, args: {n: 1}}]}
  - {id: beside, needs: [below]}
- {id: after, needs: [join], milestone: true}
",
    );
    assert_eq!(
        fixture.states(),
        "manual=blocked{approval} join=blocked{approval} above=blocked{approval} below=todo beside=todo after=todo"
    );
    assert!(fixture.ready().is_empty());
    let calls = asked(&fixture, "above").calls;
    assert_eq!((calls.len(), calls[0].task.as_str()), (1, "below"));
    fixture.accept(fixture.manager.approve(&ids(&["manual", "join", "above"]), Approving::default()));
    assert_eq!(fixture.states(), "manual=todo join=done above=todo below=todo beside=todo after=done");
    assert_eq!(fixture.ready(), ids(&["manual", "below"]));
    fixture.run("below");
    fixture.done("beside");
    fixture.done("manual");
    assert_eq!(fixture.task("above").status.as_str(), "done");

    let fixture = Fixture::new();
    fixture.apply(
        "tasks: [{id: above, approval: required, subtasks: [{id: below}]}, {id: after, needs: [above]}]",
    );
    fixture.accept(fixture.manager.reject(&ids(&["above"]), Some("no".to_owned())));
    assert_eq!(fixture.states(), "above=cancelled below=cancelled after=blocked{dependency above}");
    fixture.accept(fixture.manager.retry(&ids(&["above"]), false));
    assert_eq!(fixture.states(), "above=blocked{approval} below=todo after=todo");
}

#[test]
fn a_for_each_is_approved_once_before_it_expands() {
    let fixture = fixture(
        "
tasks:
- {id: find}
- id: each
  needs: [find]
  forEach: {in: '${{ tasks.find.result.what }}'}
  approval: required
  calls: [{id: c, toolName: t, args: {n: '${{ item }}'}}]
",
    );
    let ending = taskpawl_manager::Ending { result: Some(json!({"what": [5, 6]})), ..Default::default() };
    fixture.accept(fixture.manager.done(&ids(&["find"]), ending));
    assert_eq!(fixture.states(), "find=done each=blocked{approval}");
    let request = asked(&fixture, "each");
    assert_eq!(
        (request.items, request.calls[0].unknown.clone()),
        (Some(vec![json!(5), json!(6)]), ids(&["n"]))
    );
    let args = Some(fields(json!({"n": 1})));
    insta::assert_snapshot!(fixture.refuse(|manager| manager.approve(&ids(&["each"]), Approving { args: args.clone(), ..Approving::default() })), @r#"
    task `each` asks about 2 calls, but arguments can be given for only one
      hint: leave the arguments out, or change the calls in the plan and apply it
    "#);
    fixture.accept(approve(&fixture.manager, "each", None));
    assert_eq!(fixture.states(), "find=done each=todo each.0=todo each.1=todo");
    assert_eq!(started(&fixture.start(&["each.0", "each.1"])), [r#"c {"n":5}"#, r#"c {"n":6}"#]);
}

#[test]
fn a_task_of_one_call_may_be_approved_with_other_arguments() {
    let fixture =
        fixture("tasks: [{id: a, calls: [{id: c, toolName: t, args: {n: 1}}], approval: required}]");
    let args = Some(fields(json!({"n": 2})));
    fixture.accept(fixture.manager.approve(&ids(&["a"]), Approving { args, ..Approving::default() }));
    assert_eq!(started(&fixture.start(&["a"])), [r#"c {"n":2}"#]);
    fixture.report("a", "c", "ok");
    assert_eq!(fixture.task("a").metadata.tool_calls[0].evaluated_args, Some(fields(json!({"n": 2}))));
}

#[test]
fn replacement_arguments_apply_only_to_the_approved_call() {
    let plan = |approval: &str, n: u32| {
        format!("tasks: [{{id: a, calls: [{{id: c, toolName: t, args: {{n: {n}}}}}]{approval}}}]")
    };
    let edited = || {
        let fixture = fixture(&plan(", approval: required", 1));
        let args = Some(fields(json!({"n": 2})));
        fixture.accept(fixture.manager.approve(&ids(&["a"]), Approving { args, ..Approving::default() }));
        fixture
    };
    let fixture = edited();
    fixture.accept(fixture.manager.update("a", fields(json!({"approval": null})), None));
    assert_eq!(fixture.task("a").progress.approval, None);
    assert_eq!(
        started(&fixture.start(&["a"])),
        [r#"c {"n":1}"#],
        "no question was asked, and no arguments were approved"
    );
    let fixture = edited();
    fixture.accept(fixture.manager.update("a", fields(json!({"approval": null})), None));
    fixture.accept(fixture.manager.update("a", fields(json!({"approval": "required"})), None));
    assert_eq!(fixture.states(), "a=blocked{approval}");
    let fixture = edited();
    fixture.apply(&plan("", 3));
    assert_eq!(started(&fixture.start(&["a"])), [r#"c {"n":3}"#]);
    let fixture = edited();
    fixture.apply(&plan(", approval: required", 3));
    assert_eq!(fixture.states(), "a=blocked{approval}");
    fixture.accept(approve(&fixture.manager, "a", None));
    assert_eq!(started(&fixture.start(&["a"])), [r#"c {"n":3}"#]);
}

#[test]
fn replacement_arguments_end_with_their_approval() {
    let plan = |approval: &str, n: u32| {
        format!("tasks: [{{id: a, calls: [{{id: c, toolName: t, args: {{n: {n}}}{approval}}}]}}]")
    };
    let fixture = fixture(&plan(", approval: required", 1));
    fixture.start(&["a"]);
    let args = Some(fields(json!({"n": 2})));
    fixture.accept(fixture.manager.approve(&ids(&["a"]), Approving { args, ..Approving::default() }));
    assert_eq!(started(&fixture.start(&["a"])), [r#"c {"n":2}"#]);
    fixture.report("a", "c", "bad");
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), false));
    fixture.apply(&plan("", 3));
    assert_eq!(started(&fixture.start(&["a"])), [r#"c {"n":3}"#]);
}

#[test]
fn an_approval_of_a_whole_task_can_be_undone_until_a_call_runs() {
    let fixture =
        fixture("tasks: [{id: a, approval: required, subtasks: [{id: b, calls: [{toolName: t}]}]}]");
    fixture.accept(approve(&fixture.manager, "a", None));
    assert_eq!(fixture.ready(), ids(&["b"]));
    fixture.accept(fixture.manager.undo(None));
    assert_eq!((fixture.states().as_str(), fixture.ready()), ("a=blocked{approval} b=todo", Vec::new()));
    fixture.accept(approve(&fixture.manager, "a", None));
    fixture.run("b");
    assert_eq!(fixture.states(), "a=done b=done");
}

#[test]
fn arguments_may_use_the_answer_to_their_own_question() {
    for (of_task, of_call) in [("approval: QUESTION", ""), ("", ", approval: QUESTION")] {
        let plan = format!(
            "tasks: [{{id: a, calls: [{{id: c, toolName: t, args: {{to: '${{{{ context.approval }}}}'}}{of_call}}}], {of_task}}}]"
        );
        let fixture = fixture(&plan.replace("QUESTION", "{ask: Where to?, options: [here, there]}"));
        if of_task.is_empty() {
            fixture.start(&["a"]);
        }
        let request = asked(&fixture, "a");
        assert_eq!(
            (request.calls[0].unknown.clone(), fixture.states().as_str()),
            (ids(&["to"]), "a=blocked{approval}")
        );
        fixture.accept(approve(&fixture.manager, "a", Some("there")));
        assert_eq!(started(&fixture.start(&["a"])), [r#"c {"to":"there"}"#]);
    }
}

#[test]
fn approving_a_call_keeps_the_answer_to_an_earlier_question() {
    let fixture = fixture(
        "
tasks:
- id: a
  approval: {ask: Where to?, options: [here, there]}
  calls: [{id: c, toolName: t, args: {to: '${{ context.approval }}'}, approval: required}]
",
    );
    fixture.accept(approve(&fixture.manager, "a", Some("there")));
    fixture.start(&["a"]);
    assert_eq!(Value::Object(asked(&fixture, "a").calls[0].args.clone()), json!({"to": "there"}));
    fixture.accept(approve(&fixture.manager, "a", None));
    assert_eq!(started(&fixture.start(&["a"])), [r#"c {"to":"there"}"#]);
}

#[test]
fn parallel_calls_are_approved_one_by_one() {
    let fixture = fixture("
tasks:
- id: a
  mode: parallel
  calls: [{id: c, toolName: t}, {id: d, toolName: t, approval: required}, {id: e, toolName: t, approval: required}]
");
    assert_eq!(started(&fixture.start(&["a"])), ["c {}"]);
    fixture.report("a", "c", "ok");
    assert_eq!(asked(&fixture, "a").call.unwrap().as_str(), "d");
    fixture.accept(approve(&fixture.manager, "a", None));
    assert_eq!(started(&fixture.start(&["a"])), ["d {}"]);
    fixture.report("a", "d", "ok");
    assert_eq!(asked(&fixture, "a").call.unwrap().as_str(), "e");
    fixture.accept(approve(&fixture.manager, "a", None));
    fixture.run("a");
    assert_eq!(fixture.calls("a"), "c=succeeded/1 d=succeeded/1 e=succeeded/1");
}

#[test]
fn replacement_arguments_replace_the_reviewed_ones() {
    let fixture = fixture(DEPLOY);
    fixture.start(&["deploy"]);
    fixture.report("deploy", "build", "ok");
    let before = fixture.revision();
    let args = Some(fields(json!({"to": "staging"})));
    fixture.accept(fixture.manager.approve(&ids(&["deploy"]), Approving { args, ..Approving::default() }));
    assert_eq!(fixture.events(before), ["updated deploy", "status deploy"]);
    let changed = fixture.manager.history(None, before, 1).unwrap().pop().unwrap();
    let shown = serde_json::to_value(&changed.kind).unwrap();
    assert_eq!(
        shown["fields"],
        json!({"toolCalls.push.args": {"from": {"to": "prod"}, "to": {"to": "staging"}}})
    );
    assert_eq!(started(&fixture.start(&["deploy"])), [r#"push {"to":"staging"}"#]);
}

#[test]
fn a_rejected_task_is_cancelled_and_asks_again_after_a_retry() {
    let fixture = colour("reject");
    fixture.accept(fixture.manager.reject(&ids(&["paint"]), Some("too bright".to_owned())));
    assert_eq!(
        (fixture.states().as_str(), fixture.task("paint").error.as_deref()),
        ("paint=cancelled", Some("too bright"))
    );
    insta::assert_snapshot!(fixture.refuse(|manager| manager.reject(&ids(&["paint"]), None)), @r#"
    task `paint` does not wait for a decision: it is `cancelled`
      hint: `taskpawl show paint` shows its status
    "#);
    for again in [Manager::retry, Manager::reopen] {
        fixture.accept(again(&fixture.manager, &ids(&["paint"]), false));
        fixture.start(&["paint"]);
        assert_eq!(fixture.states(), "paint=blocked{approval}");
        fixture.accept(fixture.manager.reject(&ids(&["paint"]), None));
    }
}

#[test]
fn a_failed_task_asks_again_after_a_retry() {
    let fixture = colour("reject");
    fixture.accept(approve(&fixture.manager, "paint", Some("blue")));
    fixture.start(&["paint"]);
    fixture.report("paint", "c", "bad");
    fixture.accept(fixture.manager.retry(&ids(&["paint"]), false));
    fixture.start(&["paint"]);
    assert_eq!(fixture.states(), "paint=blocked{approval}");
}

#[test]
fn a_decision_survives_a_run_that_stops_before_the_call() {
    let fixture = colour("reject");
    fixture.accept(approve(&fixture.manager, "paint", Some("blue")));
    fixture.start(&["paint"]);
    fixture.give_back("paint");
    assert_eq!(fixture.start(&["paint"]).started.len(), 1);
    fixture.report("paint", "c", "cut");
    assert_eq!(fixture.states(), "paint=in_progress");
}

#[test]
fn an_expired_question_follows_the_on_expiry_setting() {
    for (on_expiry, state, answer) in
        [("reject", "paint=cancelled", None), ("green", "paint=todo", Some(json!("green")))]
    {
        let fixture = colour(on_expiry);
        fixture.pass(599);
        let tasks = vec![fixture.key("paint")];
        fixture.accept(fixture.manager.command(Command::ExpireApprovals { tasks: tasks.clone() }));
        assert_eq!(
            (fixture.states().as_str(), fixture.task("paint").question_over),
            ("paint=blocked{approval}", false)
        );
        fixture.pass(1);
        assert!(fixture.task("paint").question_over, "a read shows the expiry without a change");
        let error = approve(&fixture.manager, "paint", Some("blue")).unwrap_err();
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"the approval of task `paint` expired at 2025-06-15T15:16:40Z");
        }
        assert!(error_text(&error).contains(if answer.is_some() {
            "approves it by default"
        } else {
            "taskpawl retry paint"
        }));
        fixture.accept(fixture.manager.command(Command::ExpireApprovals { tasks: tasks.clone() }));
        assert_eq!(fixture.states(), state);
        assert_eq!(fixture.task("paint").metadata.context.get("approval"), answer.as_ref());
        let before = fixture.revision();
        fixture.accept(fixture.manager.command(Command::ExpireApprovals { tasks }));
        assert_eq!(fixture.revision(), before, "the expiry is recorded once");
        if answer.is_some() {
            fixture.run("paint");
        } else {
            let text = fixture.task("paint").error.unwrap();
            assert_eq!(text, "no decision was made by 2025-06-15T15:16:40Z");
        }
    }
}

#[test]
fn any_command_on_the_task_records_the_expiry() {
    let fixture = colour("reject");
    fixture.pass(601);
    fixture.accept(fixture.manager.note("paint", "late"));
    assert_eq!(fixture.states(), "paint=cancelled");
    let fixture = colour("reject");
    fixture.pass(601);
    fixture.accept(fixture.manager.retry(&ids(&["paint"]), false));
    assert_eq!(fixture.states(), "paint=todo", "retry asks again");
}

#[test]
fn on_expiry_approve_approves_an_expired_question() {
    let fixture = fixture(
        "
tasks:
- id: a
  calls: [{id: c, toolName: t, approval: {ask: Go?, expires: 1s, onExpiry: approve}}]
",
    );
    fixture.start(&["a"]);
    fixture.pass(1);
    let plan = fixture.manager.read(|view| {
        let now = Timestamp::from_timestamp(1_750_000_001, 0).unwrap();
        Ok(recovery::Plan::new(view, None, &|_| true, &|_| true, now)?)
    });
    let plan = plan.unwrap();
    assert_eq!(plan.summary().undecided, [taskpawl_model::value::TaskId::from("a")]);
    for (_, command) in plan.commands() {
        fixture.accept(fixture.manager.command(command));
    }
    assert_eq!(fixture.task("a").metadata.context["approval"], json!(true));
    assert_eq!(fixture.task("a").metadata.tool_calls[0].granted.as_ref().unwrap().by, "onExpiry");
    fixture.run("a");
}

#[test]
fn an_approval_can_be_undone_until_a_call_runs() {
    let fixture = colour("reject");
    let question = asked(&fixture, "paint");
    fixture.accept(approve(&fixture.manager, "paint", Some("blue")));
    fixture.accept(fixture.manager.undo(None));
    assert_eq!(asked(&fixture, "paint"), question);
    assert!(!fixture.task("paint").metadata.context.contains_key("approval"));
    fixture.accept(approve(&fixture.manager, "paint", Some("blue")));
    fixture.run("paint");
    let refused = fixture.refuse(|manager| manager.undo(None));
    assert!(refused.contains("cannot be undone"), "{refused}");

    let fixture = colour("reject");
    fixture.accept(fixture.manager.reject(&ids(&["paint"]), None));
    fixture.accept(fixture.manager.undo(None));
    assert_eq!(fixture.states(), "paint=blocked{approval}");
}

#[test]
fn a_run_never_decides_about_tasks() {
    let fixture = colour("reject");
    let run = fixture.manager.clone().with_run(RunId::from("r1"));
    let refused = error_text(&approve(&run, "paint", Some("blue")).unwrap_err());
    insta::assert_snapshot!(refused, @r#"
    a run cannot decide about tasks: only people and approvers may `approve`
      hint: ask a person
    "#);
    assert!(run.reject(&ids(&["paint"]), None).is_err());
}

#[test]
fn a_task_waiting_for_approval_is_neither_unblocked_nor_marked_done() {
    let fixture = colour("reject");
    insta::assert_snapshot!(fixture.refuse(|manager| manager.unblock(&ids(&["paint"]))), @r#"
    task `paint` is `blocked` (approval) and cannot become `todo` by `unblock`
      hint: from `blocked`, the allowed commands are: skip, cancel, approve, reject
    "#);
    fixture.refuse(|manager| manager.done(&ids(&["paint"]), taskpawl_manager::Ending::default()));
    fixture.accept(fixture.manager.skip(&ids(&["paint"]), None));
}

#[test]
fn arguments_and_hashes_are_allowed_for_one_task_only() {
    let fixture = fixture(
        "tasks: [{id: a, calls: [{id: c, toolName: t, approval: required}]}, {id: b, calls: [{id: c, toolName: t, approval: required}]}]",
    );
    fixture.start(&["a", "b"]);
    let args = Some(fields(json!({})));
    insta::assert_snapshot!(fixture.refuse(|manager| manager.approve(&ids(&["a", "b"]), Approving { args: args.clone(), ..Approving::default() })), @"field `args`: it applies to one task, and several were given");
    fixture.accept(fixture.manager.approve(&ids(&["a", "b"]), Approving::default()));
    assert_eq!(fixture.states(), "a=todo b=todo");
}

#[test]
fn a_value_without_quotes_in_a_command_line_asks() {
    let fixture = fixture(
        "tasks: [{id: a, calls: [{id: c, shell: {command: \"ls ${{ context.flags | raw }}\"}}], context: {flags: -l}}]",
    );
    let tools = std::sync::Arc::new(["shell".to_owned()].into());
    let claims = vec![fixture.key("a")];
    fixture.round(taskpawl_model::command::Round {
        claims,
        tools,
        ..taskpawl_model::command::Round::default()
    });
    let reason = fixture.task("a").blocked_reason;
    assert!(matches!(reason, Some(BlockedReason::Approval { call: Some(_), .. })), "{reason:?}");
}

#[test]
fn concurrent_approvals_start_each_task_once() {
    let directory = tempfile::tempdir().unwrap();
    let manager = Manager::new(open(&Location::Sqlite(directory.path().join("tasks.db"))), "ann");
    let task = |n: i32| format!("- {{id: t{n}, calls: [{{id: c, toolName: t, approval: required}}]}}\n");
    let plan: Vec<String> = (0..100).map(task).collect();
    let plan = taskpawl_model::plan::parse_plan(&format!("tasks:\n{}", plan.concat())).unwrap();
    manager.apply(plan, "p", taskpawl_manager::ApplyOptions::default()).unwrap();
    let claims = manager
        .store()
        .view(|view| (0..100).map(|n| view.key(&format!("t{n}"))).collect::<Result<Vec<_>, _>>())
        .unwrap();
    let claims: Vec<_> = claims.into_iter().flatten().collect();
    let tools = std::sync::Arc::new(["t".to_owned()].into());
    let round = taskpawl_model::command::Round {
        claims: claims.clone(),
        tools,
        ..taskpawl_model::command::Round::default()
    };
    let run = manager.clone().with_run(RunId::from("r1"));
    run.command(Command::Round(Box::new(round.clone()))).unwrap();

    // Two people approve each task at the same time, and one of them is first.
    let accepted: usize = std::thread::scope(|scope| {
        let people: Vec<_> = (0..200)
            .map(|n| {
                let manager = manager.clone().with_actor(format!("p{n}"));
                scope.spawn(move || approve(&manager, &format!("t{}", n / 2), None).is_ok())
            })
            .collect();
        people.into_iter().map(|person| usize::from(person.join().unwrap())).sum()
    });
    assert_eq!(accepted, 100);
    assert_eq!(run.command(Command::Round(Box::new(round))).unwrap().started.len(), 100);
}

#[test]
fn a_json_store_keeps_questions_and_decisions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.json");
    let at = |plan: Option<&str>| {
        let manager = Manager::new(open(&Location::Json(path.clone())), "ann");
        if let Some(plan) = plan {
            let plan = taskpawl_model::plan::parse_plan(plan).unwrap();
            manager.apply(plan, "p", taskpawl_manager::ApplyOptions::default()).unwrap();
        }
        manager
    };
    let manager = at(Some(&COLOUR.replace("ON", "green")));
    let claims = vec![manager.store().view(|view| view.key("paint")).unwrap().unwrap()];
    let round = taskpawl_model::command::Round {
        claims,
        tools: std::sync::Arc::new(["t".to_owned()].into()),
        ..taskpawl_model::command::Round::default()
    };
    manager.clone().with_run(RunId::from("r1")).command(Command::Round(Box::new(round))).unwrap();
    let (task, question) = (manager.get("paint").unwrap(), manager.approval_request("paint").unwrap());
    let again = at(None);
    assert_eq!(again.get("paint").unwrap(), task);
    assert_eq!(again.approval_request("paint").unwrap(), question);
    approve(&again, "paint", Some("blue")).unwrap();
    assert_eq!(at(None).get("paint").unwrap(), again.get("paint").unwrap());
}

#[test]
fn a_question_without_options_accepts_only_yes() {
    let fixture = fixture("tasks: [{id: a, call: {t: {}}, approval: {ask: 'Delete it?'}}]");
    for answer in ["no", "purple"] {
        let refused = fixture.refuse(|manager| approve(manager, "a", Some(answer)));
        assert!(refused.contains("`taskpawl reject a` rejects"), "{refused}");
    }
    fixture.accept(approve(&fixture.manager, "a", Some("Yes")));
    assert_eq!(fixture.task("a").metadata.context["approval"], json!(true));
}

#[test]
fn a_manually_retried_task_asks_again() {
    let fixture = fixture("tasks: [{id: a, call: {t: {n: 1}}, approval: required}]");
    let args = Some(fields(json!({"n": 2})));
    fixture.accept(fixture.manager.approve(&ids(&["a"]), Approving { args, ..Approving::default() }));
    assert_eq!(started(&fixture.start(&["a"])), [r#"c1 {"n":2}"#]);
    fixture.report("a", "c1", "bad");
    assert_eq!(fixture.states(), "a=failed");
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(fixture.states(), "a=blocked{approval}");
    fixture.accept(approve(&fixture.manager, "a", None));
    assert_eq!(
        started(&fixture.start(&["a"])),
        [r#"c1 {"n":1}"#],
        "the replacement arguments were approved only for the first attempt"
    );
}

#[test]
fn a_question_is_withdrawn_with_its_approval_setting() {
    let plan = |approval: &str| {
        format!(
            "tasks: [{{id: a, calls: [{{id: c, toolName: t}}]{approval}}}, {{id: b, forEach: {{in: [1, 2]}}, calls: [{{toolName: t}}]{approval}}}]"
        )
    };
    let by_update = |fixture: &Fixture| {
        for id in ["a", "b"] {
            fixture.accept(fixture.manager.update(id, fields(json!({"approval": null})), None));
        }
    };
    let by_apply = |fixture: &Fixture| drop(fixture.apply(&plan("")));
    for strip in [&by_update as &dyn Fn(&Fixture), &by_apply] {
        let fixture = fixture(&plan(", approval: required"));
        assert_eq!(fixture.states(), "a=blocked{approval} b=blocked{approval}");
        strip(&fixture);
        assert_eq!(fixture.states(), "a=todo b=todo b.0=todo b.1=todo");
        let texts = fixture.manager.history(Some("a"), 0, 0).unwrap();
        let is_reported = texts.iter().any(|event| {
            matches!(&event.kind, EventKind::Status { cause: Cause::Withdraw, text: Some(text), .. }
                if text == "a decision is no longer needed")
        });
        assert!(is_reported, "{texts:#?}");
        assert_eq!(started(&fixture.start(&["a"])), ["c {}"]);
    }
}

#[test]
fn actors_that_may_not_decide_cannot_remove_an_approval() {
    let plan = |of_a: &str, of_call: &str, of_b: &str| {
        let a = format!("{{id: a, name: n, calls: [{{id: c, toolName: t}}]{of_a}}}");
        let call = format!("{{id: d, needs: [a], calls: [{{id: c, toolName: t{of_call}}}]}}");
        format!("tasks: [{a}, {call}, {{id: b, needs: [a], calls: [{{toolName: t}}]{of_b}}}]")
    };
    let (required, question) =
        (", approval: required", ", approval: {ask: Now?, expires: 1s, onExpiry: approve}");
    let fixture = fixture(&plan(required, required, required));
    let loose = [
        plan("", required, required),
        plan(required, "", required),
        plan(required, required, ""),
        plan(question, required, required),
        plan(required, question, required),
    ];
    let agents = [Origin::Mcp, Origin::Agent].map(|origin| fixture.manager.clone().with_origin(origin));
    let run = fixture.manager.clone().with_run(RunId::from("r1"));
    let within = ApplyOptions { keeps_approvals: true, ..ApplyOptions::default() };
    let expected = "would remove or change the approval that task `a` waits for";
    for manager in agents.iter().chain([&run]) {
        for plan in &loose {
            let apply = || manager.apply(parse_plan(plan).unwrap(), "p", ApplyOptions::default());
            let text = fixture.refuse(|_| apply());
            assert!(text.contains("would remove or change"), "{text}");
        }
        for approval in [json!(null), json!({"ask": "?", "expires": "1s", "onExpiry": "approve"})] {
            let text = fixture.refuse(|_| manager.update("a", fields(json!({"approval": approval})), None));
            assert!(text.contains(expected), "{text}");
        }
    }
    for plan in &loose {
        let text = fixture.refuse(|manager| manager.apply(parse_plan(plan).unwrap(), "p", within));
        assert!(text.contains("would remove or change"), "{text}");
    }
    // A change that keeps the approvals, or adds one, is not a decision.
    let agent = &agents[1];
    fixture.accept(agent.update("a", fields(json!({"name": "other"})), None));
    fixture.accept(agent.update("d", fields(json!({"approval": "required"})), None));
    let harmless = plan(required, required, required).replace("name: n", "name: m");
    fixture.accept(agent.apply(parse_plan(&harmless).unwrap(), "p", within));
    assert_eq!(fixture.states(), "a=blocked{approval} d=todo b=todo");
}

#[test]
fn actors_that_may_not_decide_cannot_undo_an_added_approval() {
    let fixture = fixture("tasks: [{id: a, calls: [{toolName: t}]}]");
    fixture.accept(fixture.manager.update("a", fields(json!({"approval": "required"})), None));
    let agent = fixture.manager.clone().with_origin(Origin::Agent);
    assert!(fixture.refuse(|_| agent.undo(None)).contains("would remove or change"));
    assert_eq!(fixture.states(), "a=blocked{approval}");
    fixture.accept(fixture.manager.undo(None));
    assert_eq!(fixture.states(), "a=todo");
}
