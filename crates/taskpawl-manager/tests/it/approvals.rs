//! Tasks that wait for a decision: the actors that may decide, and the result when nobody decides in time.

use serde_json::{Value, json};
use taskpawl_manager::{ApplyOptions, Approving, Manager};
use taskpawl_model::{
    Answer, ApprovalRequest, BlockedReason, Cause, Command, EventKind, Origin, RunId, Timestamp, parse_plan,
    recovery,
};
use taskpawl_store::{Location, open};

use crate::support::{Desk, error_text, fields, ids, refusal};

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

fn desk(plan: &str) -> Desk {
    let desk = Desk::new();
    desk.apply(plan);
    desk
}

/// Returns a desk with a task that asks for a colour.
fn colour(on_expiry: &str) -> Desk {
    let desk = desk(&COLOUR.replace("ON", on_expiry));
    desk.start(&["paint"]);
    desk
}

fn approve(
    manager: &Manager,
    id: &str,
    answer: Option<&str>,
) -> Result<Vec<taskpawl_model::TaskId>, taskpawl_manager::Error> {
    let answer = answer.map(|answer| json!(answer));
    manager.approve(&ids(&[id]), Approving { answer, ..Approving::default() })
}

fn asked(desk: &Desk, id: &str) -> ApprovalRequest {
    desk.manager.approval_request(id).unwrap().expect("the task has no approval request")
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
    let desk = desk(DEPLOY);
    assert_eq!(started(&desk.start(&["deploy"])), [r#"build {"what":"all"}"#]);
    let answer = desk.report("deploy", "build", "ok");
    assert_eq!((started(&answer), answer.asked), (Vec::new(), vec![desk.key("deploy")]));
    assert_eq!(desk.states(), "deploy=blocked{approval}");

    let request = asked(&desk, "deploy");
    let call = &request.calls[0];
    assert_eq!((request.calls.len(), call.call.as_str(), call.tool.as_str()), (1, "push", "t"));
    assert_eq!((Value::Object(call.args.clone()), request.hash.len()), (json!({"to": "prod"}), 64));

    desk.accept(approve(&desk.manager, "deploy", None));
    assert_eq!((desk.states().as_str(), desk.ready()), ("deploy=todo", ids(&["deploy"])));
    assert_eq!(desk.task("deploy").metadata.context["approval"], json!(true));
    assert_eq!(started(&desk.start(&["deploy"])), [r#"push {"to":"prod"}"#]);
    desk.report("deploy", "push", "ok");
    desk.report("deploy", "tell", "ok");
    assert_eq!(desk.states(), "deploy=done");
    assert_eq!(desk.calls("deploy"), "build=succeeded/1 push=succeeded/1 tell=succeeded/1");
    insta::assert_snapshot!(desk.refuse(|manager| approve(manager, "deploy", None)), @r#"
    task `deploy` does not wait for a decision: it is `done` (approved by ann at 2025-06-15T15:06:40Z)
      hint: `taskpawl show deploy` shows how it stands
    "#);
}

#[test]
fn an_answer_must_be_one_of_the_options() {
    let desk = colour("reject");
    insta::assert_snapshot!(desk.refuse(|manager| approve(manager, "paint", None)), @r#"
    an answer is needed to the question of task `paint`
      hint: the answers are `blue`, `green`: `taskpawl approve paint --answer ANSWER`
    "#);
    insta::assert_snapshot!(desk.refuse(|manager| approve(manager, "paint", Some("Geen"))), @r#"
    `Geen` is none of the answers to the question of task `paint`
      hint: did you mean `green`? The answers are `blue`, `green`
    "#);
    insta::assert_snapshot!(desk.refuse(|manager| approve(manager, "paint", Some("yes"))), @r#"
    `yes` is none of the answers to the question of task `paint`
      hint: the answers are `blue`, `green`: `taskpawl approve paint --answer ANSWER`
    "#);
    desk.accept(approve(&desk.manager, "paint", Some("green")));
    assert_eq!(desk.task("paint").metadata.context["approval"], json!("green"));
    let granted = desk.task("paint").metadata.tool_calls[0].granted.clone().unwrap();
    assert_eq!((granted.by.as_str(), granted.answer), ("ann", Some(json!("green"))));
    desk.run("paint");
}

#[test]
fn an_approval_with_an_outdated_hash_is_refused() {
    let desk = colour("reject");
    let hash = asked(&desk, "paint").hash;
    let with = |hash: &str| Approving {
        answer: Some(json!("blue")),
        hash: Some(hash.to_owned()),
        ..Approving::default()
    };
    for stale in ["", "1234567", &hash[..7], &hash[1..]] {
        let error = desk.manager.approve(&ids(&["paint"]), with(stale)).unwrap_err();
        assert!(matches!(refusal(error), taskpawl_model::Refusal::StaleHash { .. }), "{stale}");
    }
    desk.accept(desk.manager.approve(&ids(&["paint"]), with(&hash[..8])));
}

const FLOW: &str = "
tasks:
- id: find
- id: paint
  needs: [find]
  calls: [{id: c, toolName: t, args: {what: '${{ tasks.find.result.what }}'}, approval: required}]
";

fn find(desk: &Desk, what: &str) {
    let result = Some(json!({ "what": what }));
    let ending = taskpawl_manager::Ending { result, ..Default::default() };
    desk.accept(desk.manager.done(&ids(&["find"]), ending));
}

#[test]
fn changed_work_needs_a_new_approval() {
    let desk = desk(FLOW);
    find(&desk, "wall");
    desk.start(&["paint"]);
    let before = asked(&desk, "paint");
    assert_eq!(Value::Object(before.calls[0].args.clone()), json!({"what": "wall"}));
    desk.accept(approve(&desk.manager, "paint", None));
    desk.accept(desk.manager.reopen(&ids(&["find"]), false));
    find(&desk, "floor");
    assert_eq!(started(&desk.start(&["paint"])), Vec::<String>::new());
    let after = asked(&desk, "paint");
    assert_ne!(after.hash, before.hash);
    assert_eq!(Value::Object(after.calls[0].args.clone()), json!({"what": "floor"}));
    let task = desk.task("paint");
    assert!(!task.metadata.context.contains_key("approval") && task.metadata.tool_calls[0].granted.is_none());
    // Unchanged work needs no second decision.
    desk.accept(approve(&desk.manager, "paint", None));
    desk.accept(desk.manager.reopen(&ids(&["find"]), false));
    find(&desk, "floor");
    assert_eq!(started(&desk.start(&["paint"])), [r#"c {"what":"floor"}"#]);
}

#[test]
fn an_approval_of_a_whole_task_shows_all_known_calls() {
    let plan = FLOW.replace("approval: required}]", "}, {id: d, toolName: t, args: {also: '${{ context.c }}', n: 1}}]\n  approval: {ask: Really?, options: [yes, maybe]}");
    let desk = desk(&plan);
    assert_eq!(desk.states(), "find=todo paint=todo", "it does not ask before its dependencies are done");
    find(&desk, "wall");
    assert_eq!(desk.states(), "find=done paint=blocked{approval}");
    let request = asked(&desk, "paint");
    let calls: Vec<Value> =
        request.calls.iter().map(|call| json!([call.call, call.args, call.unknown])).collect();
    assert_eq!(
        json!(calls),
        json!([["c", {"what": "wall"}, []], ["d", {"also": "${{ context.c }}", "n": 1}, ["also"]]])
    );
    assert_eq!((request.call, request.ask.as_deref()), (None, Some("Really?")));

    // The reviewed work changes while the question is open, so a new question replaces it.
    desk.accept(desk.manager.reopen(&ids(&["find"]), false));
    assert_eq!(desk.states(), "find=todo paint=blocked{approval}");
    find(&desk, "floor");
    let anew = asked(&desk, "paint");
    assert_ne!(anew.hash, request.hash);
    let stale = Approving { answer: Some(json!("maybe")), hash: Some(request.hash), ..Approving::default() };
    assert!(desk.manager.approve(&ids(&["paint"]), stale).is_err());
    desk.accept(approve(&desk.manager, "paint", Some("maybe")));
    assert_eq!(desk.ready(), ids(&["paint"]));
    assert_eq!(desk.task("paint").metadata.context["approval"], json!("maybe"));

    // The same holds after an approval.
    desk.accept(desk.manager.reopen(&ids(&["find"]), false));
    find(&desk, "roof");
    assert_eq!(desk.states(), "find=done paint=blocked{approval}");
    desk.accept(approve(&desk.manager, "paint", Some("yes")));
    desk.accept(desk.manager.reopen(&ids(&["find"]), false));
    find(&desk, "roof");
    assert_eq!(desk.states(), "find=done paint=todo");
    desk.run("paint");
}

#[test]
fn a_plan_change_before_the_start_needs_a_new_approval() {
    let plan = "tasks: [{id: a, calls: [{id: c, toolName: t, args: {n: 1}}], approval: required}]";
    let desk = desk(plan);
    let first = asked(&desk, "a").hash;
    desk.apply(&plan.replace("n: 1", "n: 2"));
    let second = asked(&desk, "a");
    assert_ne!(second.hash, first);
    desk.accept(approve(&desk.manager, "a", None));
    desk.apply(&plan.replace("n: 1", "n: 3"));
    assert_eq!(desk.states(), "a=blocked{approval}");
    desk.accept(approve(&desk.manager, "a", None));
    assert_eq!(started(&desk.start(&["a"])), [r#"c {"n":3}"#]);
}

#[test]
fn tasks_without_calls_can_require_approval() {
    let desk = desk(
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
        desk.states(),
        "manual=blocked{approval} join=blocked{approval} above=blocked{approval} below=todo beside=todo after=todo"
    );
    assert!(desk.ready().is_empty());
    let calls = asked(&desk, "above").calls;
    assert_eq!((calls.len(), calls[0].task.as_str()), (1, "below"));
    desk.accept(desk.manager.approve(&ids(&["manual", "join", "above"]), Approving::default()));
    assert_eq!(desk.states(), "manual=todo join=done above=todo below=todo beside=todo after=done");
    assert_eq!(desk.ready(), ids(&["manual", "below"]));
    desk.run("below");
    desk.done("beside");
    desk.done("manual");
    assert_eq!(desk.task("above").status.as_str(), "done");

    let desk = Desk::new();
    desk.apply(
        "tasks: [{id: above, approval: required, subtasks: [{id: below}]}, {id: after, needs: [above]}]",
    );
    desk.accept(desk.manager.reject(&ids(&["above"]), Some("no".to_owned())));
    assert_eq!(desk.states(), "above=cancelled below=cancelled after=blocked{dependency above}");
    desk.accept(desk.manager.retry(&ids(&["above"]), false));
    assert_eq!(desk.states(), "above=blocked{approval} below=todo after=todo");
}

#[test]
fn a_for_each_is_approved_once_before_it_expands() {
    let desk = desk(
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
    desk.accept(desk.manager.done(&ids(&["find"]), ending));
    assert_eq!(desk.states(), "find=done each=blocked{approval}");
    let request = asked(&desk, "each");
    assert_eq!(
        (request.items, request.calls[0].unknown.clone()),
        (Some(vec![json!(5), json!(6)]), ids(&["n"]))
    );
    let args = Some(fields(json!({"n": 1})));
    insta::assert_snapshot!(desk.refuse(|manager| manager.approve(&ids(&["each"]), Approving { args: args.clone(), ..Approving::default() })), @r#"
    task `each` asks about 2 calls, and arguments can be given for one
      hint: leave the arguments out, or change the calls in the plan and apply it
    "#);
    desk.accept(approve(&desk.manager, "each", None));
    assert_eq!(desk.states(), "find=done each=todo each.0=todo each.1=todo");
    assert_eq!(started(&desk.start(&["each.0", "each.1"])), [r#"c {"n":5}"#, r#"c {"n":6}"#]);
}

#[test]
fn a_task_of_one_call_may_be_approved_with_other_arguments() {
    let desk = desk("tasks: [{id: a, calls: [{id: c, toolName: t, args: {n: 1}}], approval: required}]");
    let args = Some(fields(json!({"n": 2})));
    desk.accept(desk.manager.approve(&ids(&["a"]), Approving { args, ..Approving::default() }));
    assert_eq!(started(&desk.start(&["a"])), [r#"c {"n":2}"#]);
    desk.report("a", "c", "ok");
    assert_eq!(desk.task("a").metadata.tool_calls[0].evaluated_args, Some(fields(json!({"n": 2}))));
}

#[test]
fn replacement_arguments_apply_only_to_the_approved_call() {
    let plan = |approval: &str, n: u32| {
        format!("tasks: [{{id: a, calls: [{{id: c, toolName: t, args: {{n: {n}}}}}]{approval}}}]")
    };
    let edited = || {
        let desk = desk(&plan(", approval: required", 1));
        let args = Some(fields(json!({"n": 2})));
        desk.accept(desk.manager.approve(&ids(&["a"]), Approving { args, ..Approving::default() }));
        desk
    };
    let desk = edited();
    desk.accept(desk.manager.update("a", fields(json!({"approval": null})), None));
    assert_eq!(desk.task("a").progress.approval, None);
    assert_eq!(
        started(&desk.start(&["a"])),
        [r#"c {"n":1}"#],
        "no question was asked, and no arguments were approved"
    );
    let desk = edited();
    desk.accept(desk.manager.update("a", fields(json!({"approval": null})), None));
    desk.accept(desk.manager.update("a", fields(json!({"approval": "required"})), None));
    assert_eq!(desk.states(), "a=blocked{approval}");
    let desk = edited();
    desk.apply(&plan("", 3));
    assert_eq!(started(&desk.start(&["a"])), [r#"c {"n":3}"#]);
    let desk = edited();
    desk.apply(&plan(", approval: required", 3));
    assert_eq!(desk.states(), "a=blocked{approval}");
    desk.accept(approve(&desk.manager, "a", None));
    assert_eq!(started(&desk.start(&["a"])), [r#"c {"n":3}"#]);
}

#[test]
fn replacement_arguments_end_with_their_approval() {
    let plan = |approval: &str, n: u32| {
        format!("tasks: [{{id: a, calls: [{{id: c, toolName: t, args: {{n: {n}}}{approval}}}]}}]")
    };
    let desk = desk(&plan(", approval: required", 1));
    desk.start(&["a"]);
    let args = Some(fields(json!({"n": 2})));
    desk.accept(desk.manager.approve(&ids(&["a"]), Approving { args, ..Approving::default() }));
    assert_eq!(started(&desk.start(&["a"])), [r#"c {"n":2}"#]);
    desk.report("a", "c", "bad");
    desk.accept(desk.manager.reopen(&ids(&["a"]), false));
    desk.apply(&plan("", 3));
    assert_eq!(started(&desk.start(&["a"])), [r#"c {"n":3}"#]);
}

#[test]
fn an_approval_of_a_whole_task_can_be_undone_until_a_call_runs() {
    let desk = desk("tasks: [{id: a, approval: required, subtasks: [{id: b, calls: [{toolName: t}]}]}]");
    desk.accept(approve(&desk.manager, "a", None));
    assert_eq!(desk.ready(), ids(&["b"]));
    desk.accept(desk.manager.undo(None));
    assert_eq!((desk.states().as_str(), desk.ready()), ("a=blocked{approval} b=todo", Vec::new()));
    desk.accept(approve(&desk.manager, "a", None));
    desk.run("b");
    assert_eq!(desk.states(), "a=done b=done");
}

#[test]
fn arguments_may_use_the_answer_to_their_own_question() {
    for (of_task, of_call) in [("approval: QUESTION", ""), ("", ", approval: QUESTION")] {
        let plan = format!(
            "tasks: [{{id: a, calls: [{{id: c, toolName: t, args: {{to: '${{{{ context.approval }}}}'}}{of_call}}}], {of_task}}}]"
        );
        let desk = desk(&plan.replace("QUESTION", "{ask: Where to?, options: [here, there]}"));
        if of_task.is_empty() {
            desk.start(&["a"]);
        }
        let request = asked(&desk, "a");
        assert_eq!(
            (request.calls[0].unknown.clone(), desk.states().as_str()),
            (ids(&["to"]), "a=blocked{approval}")
        );
        desk.accept(approve(&desk.manager, "a", Some("there")));
        assert_eq!(started(&desk.start(&["a"])), [r#"c {"to":"there"}"#]);
    }
}

#[test]
fn approving_a_call_keeps_the_answer_to_an_earlier_question() {
    let desk = desk(
        "
tasks:
- id: a
  approval: {ask: Where to?, options: [here, there]}
  calls: [{id: c, toolName: t, args: {to: '${{ context.approval }}'}, approval: required}]
",
    );
    desk.accept(approve(&desk.manager, "a", Some("there")));
    desk.start(&["a"]);
    assert_eq!(Value::Object(asked(&desk, "a").calls[0].args.clone()), json!({"to": "there"}));
    desk.accept(approve(&desk.manager, "a", None));
    assert_eq!(started(&desk.start(&["a"])), [r#"c {"to":"there"}"#]);
}

#[test]
fn parallel_calls_are_approved_one_by_one() {
    let desk = desk("
tasks:
- id: a
  mode: parallel
  calls: [{id: c, toolName: t}, {id: d, toolName: t, approval: required}, {id: e, toolName: t, approval: required}]
");
    assert_eq!(started(&desk.start(&["a"])), ["c {}"]);
    desk.report("a", "c", "ok");
    assert_eq!(asked(&desk, "a").call.unwrap().as_str(), "d");
    desk.accept(approve(&desk.manager, "a", None));
    assert_eq!(started(&desk.start(&["a"])), ["d {}"]);
    desk.report("a", "d", "ok");
    assert_eq!(asked(&desk, "a").call.unwrap().as_str(), "e");
    desk.accept(approve(&desk.manager, "a", None));
    desk.run("a");
    assert_eq!(desk.calls("a"), "c=succeeded/1 d=succeeded/1 e=succeeded/1");
}

#[test]
fn replacement_arguments_replace_the_reviewed_ones() {
    let desk = desk(DEPLOY);
    desk.start(&["deploy"]);
    desk.report("deploy", "build", "ok");
    let before = desk.revision();
    let args = Some(fields(json!({"to": "staging"})));
    desk.accept(desk.manager.approve(&ids(&["deploy"]), Approving { args, ..Approving::default() }));
    assert_eq!(desk.events(before), ["updated deploy", "status deploy"]);
    let changed = desk.manager.history(None, before, 1).unwrap().pop().unwrap();
    let shown = serde_json::to_value(&changed.kind).unwrap();
    assert_eq!(
        shown["fields"],
        json!({"toolCalls.push.args": {"from": {"to": "prod"}, "to": {"to": "staging"}}})
    );
    assert_eq!(started(&desk.start(&["deploy"])), [r#"push {"to":"staging"}"#]);
}

#[test]
fn a_rejected_task_is_cancelled_and_asks_again_after_a_retry() {
    let desk = colour("reject");
    desk.accept(desk.manager.reject(&ids(&["paint"]), Some("too bright".to_owned())));
    assert_eq!(
        (desk.states().as_str(), desk.task("paint").error.as_deref()),
        ("paint=cancelled", Some("too bright"))
    );
    insta::assert_snapshot!(desk.refuse(|manager| manager.reject(&ids(&["paint"]), None)), @r#"
    task `paint` does not wait for a decision: it is `cancelled`
      hint: `taskpawl show paint` shows how it stands
    "#);
    for again in [Manager::retry, Manager::reopen] {
        desk.accept(again(&desk.manager, &ids(&["paint"]), false));
        desk.start(&["paint"]);
        assert_eq!(desk.states(), "paint=blocked{approval}");
        desk.accept(desk.manager.reject(&ids(&["paint"]), None));
    }
}

#[test]
fn a_failed_task_asks_again_after_a_retry() {
    let desk = colour("reject");
    desk.accept(approve(&desk.manager, "paint", Some("blue")));
    desk.start(&["paint"]);
    desk.report("paint", "c", "bad");
    desk.accept(desk.manager.retry(&ids(&["paint"]), false));
    desk.start(&["paint"]);
    assert_eq!(desk.states(), "paint=blocked{approval}");
}

#[test]
fn a_decision_survives_a_run_that_stops_before_the_call() {
    let desk = colour("reject");
    desk.accept(approve(&desk.manager, "paint", Some("blue")));
    desk.start(&["paint"]);
    desk.give_back("paint");
    assert_eq!(desk.start(&["paint"]).started.len(), 1);
    desk.report("paint", "c", "cut");
    assert_eq!(desk.states(), "paint=in_progress");
}

#[test]
fn an_expired_question_follows_the_on_expiry_setting() {
    for (on_expiry, state, answer) in
        [("reject", "paint=cancelled", None), ("green", "paint=todo", Some(json!("green")))]
    {
        let desk = colour(on_expiry);
        desk.pass(599);
        let tasks = vec![desk.key("paint")];
        desk.accept(desk.manager.command(Command::ExpireApprovals { tasks: tasks.clone() }));
        assert_eq!(
            (desk.states().as_str(), desk.task("paint").question_over),
            ("paint=blocked{approval}", false)
        );
        desk.pass(1);
        assert!(desk.task("paint").question_over, "a read shows the expiry without a change");
        let error = approve(&desk.manager, "paint", Some("blue")).unwrap_err();
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"the time to decide about task `paint` ended at 2025-06-15T15:16:40Z");
        }
        assert!(error_text(&error).contains(if answer.is_some() {
            "lets it go on"
        } else {
            "taskpawl retry paint"
        }));
        desk.accept(desk.manager.command(Command::ExpireApprovals { tasks: tasks.clone() }));
        assert_eq!(desk.states(), state);
        assert_eq!(desk.task("paint").metadata.context.get("approval"), answer.as_ref());
        let before = desk.revision();
        desk.accept(desk.manager.command(Command::ExpireApprovals { tasks }));
        assert_eq!(desk.revision(), before, "the expiry is recorded once");
        if answer.is_some() {
            desk.run("paint");
        } else {
            let text = desk.task("paint").error.unwrap();
            assert_eq!(text, "nobody decided until 2025-06-15T15:16:40Z");
        }
    }
}

#[test]
fn any_command_on_the_task_records_the_expiry() {
    let desk = colour("reject");
    desk.pass(601);
    desk.accept(desk.manager.note("paint", "late"));
    assert_eq!(desk.states(), "paint=cancelled");
    let desk = colour("reject");
    desk.pass(601);
    desk.accept(desk.manager.retry(&ids(&["paint"]), false));
    assert_eq!(desk.states(), "paint=todo", "retry asks again");
}

#[test]
fn on_expiry_approve_approves_an_expired_question() {
    let desk = desk(
        "
tasks:
- id: a
  calls: [{id: c, toolName: t, approval: {ask: Go?, expires: 1s, onExpiry: approve}}]
",
    );
    desk.start(&["a"]);
    desk.pass(1);
    let plan = desk.manager.read(|view| {
        let now = Timestamp::from_timestamp(1_750_000_001, 0).unwrap();
        Ok(recovery::Plan::new(view, None, &|_| true, &|_| true, now)?)
    });
    let plan = plan.unwrap();
    assert_eq!(plan.summary().undecided, [taskpawl_model::TaskId::from("a")]);
    for (_, command) in plan.commands() {
        desk.accept(desk.manager.command(command));
    }
    assert_eq!(desk.task("a").metadata.context["approval"], json!(true));
    assert_eq!(desk.task("a").metadata.tool_calls[0].granted.as_ref().unwrap().by, "onExpiry");
    desk.run("a");
}

#[test]
fn an_approval_can_be_undone_until_a_call_runs() {
    let desk = colour("reject");
    let question = asked(&desk, "paint");
    desk.accept(approve(&desk.manager, "paint", Some("blue")));
    desk.accept(desk.manager.undo(None));
    assert_eq!(asked(&desk, "paint"), question);
    assert!(!desk.task("paint").metadata.context.contains_key("approval"));
    desk.accept(approve(&desk.manager, "paint", Some("blue")));
    desk.run("paint");
    let refused = desk.refuse(|manager| manager.undo(None));
    assert!(refused.contains("cannot be undone"), "{refused}");

    let desk = colour("reject");
    desk.accept(desk.manager.reject(&ids(&["paint"]), None));
    desk.accept(desk.manager.undo(None));
    assert_eq!(desk.states(), "paint=blocked{approval}");
}

#[test]
fn a_run_never_decides_about_tasks() {
    let desk = colour("reject");
    let run = desk.manager.clone().with_run(RunId::from("r1"));
    let refused = error_text(&approve(&run, "paint", Some("blue")).unwrap_err());
    insta::assert_snapshot!(refused, @r#"
    a run cannot decide about tasks: `approve` is for people and approvers
      hint: ask a person
    "#);
    assert!(run.reject(&ids(&["paint"]), None).is_err());
}

#[test]
fn a_task_waiting_for_approval_is_neither_unblocked_nor_marked_done() {
    let desk = colour("reject");
    insta::assert_snapshot!(desk.refuse(|manager| manager.unblock(&ids(&["paint"]))), @r#"
    task `paint` is `blocked` (approval) and cannot become `todo` by `unblock`
      hint: from `blocked` it allows: skip, cancel, approve, reject
    "#);
    desk.refuse(|manager| manager.done(&ids(&["paint"]), taskpawl_manager::Ending::default()));
    desk.accept(desk.manager.skip(&ids(&["paint"]), None));
}

#[test]
fn arguments_and_hashes_are_allowed_for_one_task_only() {
    let desk = desk(
        "tasks: [{id: a, calls: [{id: c, toolName: t, approval: required}]}, {id: b, calls: [{id: c, toolName: t, approval: required}]}]",
    );
    desk.start(&["a", "b"]);
    let args = Some(fields(json!({})));
    insta::assert_snapshot!(desk.refuse(|manager| manager.approve(&ids(&["a", "b"]), Approving { args: args.clone(), ..Approving::default() })), @"field `args`: it is about one task, and several are named");
    desk.accept(desk.manager.approve(&ids(&["a", "b"]), Approving::default()));
    assert_eq!(desk.states(), "a=todo b=todo");
}

#[test]
fn a_value_without_quotes_in_a_command_line_asks() {
    let desk = desk(
        "tasks: [{id: a, calls: [{id: c, shell: {command: \"ls ${{ context.flags | raw }}\"}}], context: {flags: -l}}]",
    );
    let tools = std::sync::Arc::new(["shell".to_owned()].into());
    let claims = vec![desk.key("a")];
    desk.round(taskpawl_model::Round { claims, tools, ..taskpawl_model::Round::default() });
    let reason = desk.task("a").blocked_reason;
    assert!(matches!(reason, Some(BlockedReason::Approval { call: Some(_), .. })), "{reason:?}");
}

#[test]
fn concurrent_approvals_start_each_task_once() {
    let directory = tempfile::tempdir().unwrap();
    let manager = Manager::new(open(&Location::Sqlite(directory.path().join("tasks.db"))), "ann");
    let task = |n: i32| format!("- {{id: t{n}, calls: [{{id: c, toolName: t, approval: required}}]}}\n");
    let plan: Vec<String> = (0..100).map(task).collect();
    let plan = taskpawl_model::parse_plan(&format!("tasks:\n{}", plan.concat())).unwrap();
    manager.apply(plan, "p", taskpawl_manager::ApplyOptions::default()).unwrap();
    let claims = manager
        .store()
        .view(|view| (0..100).map(|n| view.key(&format!("t{n}"))).collect::<Result<Vec<_>, _>>())
        .unwrap();
    let claims: Vec<_> = claims.into_iter().flatten().collect();
    let tools = std::sync::Arc::new(["t".to_owned()].into());
    let round = taskpawl_model::Round { claims: claims.clone(), tools, ..taskpawl_model::Round::default() };
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
            let plan = taskpawl_model::parse_plan(plan).unwrap();
            manager.apply(plan, "p", taskpawl_manager::ApplyOptions::default()).unwrap();
        }
        manager
    };
    let manager = at(Some(&COLOUR.replace("ON", "green")));
    let claims = vec![manager.store().view(|view| view.key("paint")).unwrap().unwrap()];
    let round = taskpawl_model::Round {
        claims,
        tools: std::sync::Arc::new(["t".to_owned()].into()),
        ..taskpawl_model::Round::default()
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
    let desk = desk("tasks: [{id: a, call: {t: {}}, approval: {ask: 'Delete it?'}}]");
    for answer in ["no", "purple"] {
        let refused = desk.refuse(|manager| approve(manager, "a", Some(answer)));
        assert!(refused.contains("`taskpawl reject a` says no"), "{refused}");
    }
    desk.accept(approve(&desk.manager, "a", Some("Yes")));
    assert_eq!(desk.task("a").metadata.context["approval"], json!(true));
}

#[test]
fn a_manually_retried_task_asks_again() {
    let desk = desk("tasks: [{id: a, call: {t: {n: 1}}, approval: required}]");
    let args = Some(fields(json!({"n": 2})));
    desk.accept(desk.manager.approve(&ids(&["a"]), Approving { args, ..Approving::default() }));
    assert_eq!(started(&desk.start(&["a"])), [r#"c1 {"n":2}"#]);
    desk.report("a", "c1", "bad");
    assert_eq!(desk.states(), "a=failed");
    desk.accept(desk.manager.retry(&ids(&["a"]), false));
    assert_eq!(desk.states(), "a=blocked{approval}");
    desk.accept(approve(&desk.manager, "a", None));
    assert_eq!(
        started(&desk.start(&["a"])),
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
    let by_update = |desk: &Desk| {
        for id in ["a", "b"] {
            desk.accept(desk.manager.update(id, fields(json!({"approval": null})), None));
        }
    };
    let by_apply = |desk: &Desk| drop(desk.apply(&plan("")));
    for strip in [&by_update as &dyn Fn(&Desk), &by_apply] {
        let desk = desk(&plan(", approval: required"));
        assert_eq!(desk.states(), "a=blocked{approval} b=blocked{approval}");
        strip(&desk);
        assert_eq!(desk.states(), "a=todo b=todo b.0=todo b.1=todo");
        let texts = desk.manager.history(Some("a"), 0, 0).unwrap();
        let is_reported = texts.iter().any(|event| {
            matches!(&event.kind, EventKind::Status { cause: Cause::Withdraw, text: Some(text), .. }
                if text == "nothing asks for a decision any more")
        });
        assert!(is_reported, "{texts:#?}");
        assert_eq!(started(&desk.start(&["a"])), ["c {}"]);
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
    let desk = desk(&plan(required, required, required));
    let loose = [
        plan("", required, required),
        plan(required, "", required),
        plan(required, required, ""),
        plan(question, required, required),
        plan(required, question, required),
    ];
    let agents = [Origin::Mcp, Origin::Agent].map(|origin| desk.manager.clone().with_origin(origin));
    let run = desk.manager.clone().with_run(RunId::from("r1"));
    let within = ApplyOptions { keeps_approvals: true, ..ApplyOptions::default() };
    let expected = "the approval that task `a` waits for would go or change";
    for manager in agents.iter().chain([&run]) {
        for plan in &loose {
            let apply = || manager.apply(parse_plan(plan).unwrap(), "p", ApplyOptions::default());
            let text = desk.refuse(|_| apply());
            assert!(text.contains("would go or change"), "{text}");
        }
        for approval in [json!(null), json!({"ask": "?", "expires": "1s", "onExpiry": "approve"})] {
            let text = desk.refuse(|_| manager.update("a", fields(json!({"approval": approval})), None));
            assert!(text.contains(expected), "{text}");
        }
    }
    for plan in &loose {
        let text = desk.refuse(|manager| manager.apply(parse_plan(plan).unwrap(), "p", within));
        assert!(text.contains("would go or change"), "{text}");
    }
    // A change that keeps the approvals, or adds one, is not a decision.
    let agent = &agents[1];
    desk.accept(agent.update("a", fields(json!({"name": "other"})), None));
    desk.accept(agent.update("d", fields(json!({"approval": "required"})), None));
    let harmless = plan(required, required, required).replace("name: n", "name: m");
    desk.accept(agent.apply(parse_plan(&harmless).unwrap(), "p", within));
    assert_eq!(desk.states(), "a=blocked{approval} d=todo b=todo");
}

#[test]
fn actors_that_may_not_decide_cannot_undo_an_added_approval() {
    let desk = desk("tasks: [{id: a, calls: [{toolName: t}]}]");
    desk.accept(desk.manager.update("a", fields(json!({"approval": "required"})), None));
    let agent = desk.manager.clone().with_origin(Origin::Agent);
    assert!(desk.refuse(|_| agent.undo(None)).contains("would go or change"));
    assert_eq!(desk.states(), "a=blocked{approval}");
    desk.accept(desk.manager.undo(None));
    assert_eq!(desk.states(), "a=todo");
}
