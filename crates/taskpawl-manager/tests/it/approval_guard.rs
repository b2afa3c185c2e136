//! Actors that may not decide can neither remove an approval nor start anything that waits for one.

use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl_manager::{ApplyOptions, Approving, Ending, Error, Manager};
use taskpawl_model::plan::parse_plan;
use taskpawl_model::task::EventKind;
use taskpawl_model::task::{Origin, Status};
use taskpawl_model::task::{PolicyDecision, PolicyHook, ProposedCall};
use taskpawl_model::value::RunId;
use taskpawl_testkit::Random;

use crate::support::{Fixture, error_text, fields, ids};

/// A task that needs an approval, tasks that wait for it in every way, and one that does not.
const PLAN: &str = "
name: p
tasks:
- {id: free}
- {id: gate, approval: required}
- {id: push, calls: [{id: build, toolName: t}, {id: send, toolName: t, approval: required}]}
- {id: between, needs: [gate]}
- {id: deploy, needs: [gate], calls: [{toolName: t}]}
- {id: last, needs: [between], calls: [{toolName: t}]}
- {id: after, needs: [push], calls: [{toolName: t}]}
- {id: either, needs: [gate], trigger: any_done, calls: [{toolName: t}]}
- {id: clean, needs: [gate], trigger: all_finished}
- {id: undone, approval: required, needs: [free], trigger: any_failed}
- {id: beside, needs: [undone], calls: [{toolName: t}]}
- {id: whole, approval: required, subtasks: [{id: part, calls: [{toolName: t}]}]}
- id: parent
  calls: [{toolName: t}]
  subtasks: [{id: check, approval: required}, {id: behind, needs: [gate]}]
- id: loop
  when: ${{ true }}
  forEach: {in: [1, 2]}
  approval: required
  calls: [{toolName: t}]
- {id: end, needs: [loop], calls: [{toolName: t}]}
";

/// The tasks that start only after the approval.
const HELD: &[&str] = &["between", "deploy", "last", "after", "either", "part", "parent", "behind", "end"];

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.apply(PLAN);
    fixture
}

/// Returns managers for all kinds of actors that may not decide.
fn kept(fixture: &Fixture) -> Vec<Manager> {
    let mut managers: Vec<Manager> =
        [Origin::Mcp, Origin::Agent].map(|origin| fixture.manager.clone().with_origin(origin)).into();
    managers.push(fixture.manager.clone().with_run(RunId::from("r1")));
    managers
}

type Tried = Result<(), Error>;

/// Tries a command that would bypass the approval: it is refused for all actors that may not decide, and
/// accepted from a person.
#[track_caller]
fn is_for_people(command: impl Fn(&Manager) -> Tried, about: &str) {
    let fixture = fixture();
    for manager in kept(&fixture) {
        let text = fixture.refuse(|_| command(&manager));
        assert!(text.contains("people and approvers may"), "{text}");
        assert!(text.contains(about), "{text}");
    }
    fixture.accept(command(&fixture.manager));
}

fn none<T>(result: Result<T, Error>) -> Tried {
    result.map(drop)
}

fn update(manager: &Manager, id: &str, change: Value) -> Tried {
    none(manager.update(id, fields(change), None))
}

fn apply(manager: &Manager, plan: &str, prune: bool) -> Tried {
    let options = ApplyOptions { prune, ..ApplyOptions::default() };
    none(manager.apply(parse_plan(plan).unwrap_or_else(|errors| panic!("{errors}")), "p", options))
}

#[test]
fn a_task_with_an_approval_is_not_deleted() {
    is_for_people(|manager| none(manager.delete(&ids(&["whole", "part"]))), "task `whole`");
    is_for_people(|manager| none(manager.delete(&ids(&["check"]))), "task `check`");
    is_for_people(|manager| none(manager.delete(&ids(&["push", "after"]))), "task `push`");
    is_for_people(|manager| none(manager.delete(&ids(&["behind"]))), "task `parent`");
}

#[test]
fn a_task_with_an_approval_is_not_skipped() {
    for id in ["gate", "push", "check", "whole", "loop"] {
        is_for_people(|manager| none(manager.skip(&ids(&[id]), None)), &format!("task `{id}`"));
    }
    is_for_people(|manager| none(manager.skip(&ids(&["between"]), None)), "task `last`");
    is_for_people(|manager| none(manager.skip(&ids(&["parent"]), None)), "task `check`");
    // No task waits for `last`, and nobody is asked about it.
    let fixture = fixture();
    fixture.accept(fixture.manager.clone().with_origin(Origin::Agent).skip(&ids(&["last"]), None));
}

#[test]
fn cancelling_never_starts_a_task_that_waits_for_an_approval() {
    is_for_people(|manager| none(manager.cancel(&ids(&["check"]), None)), "task `parent`");
    is_for_people(|manager| none(manager.cancel(&ids(&["behind"]), None)), "task `parent`");
    let fixture = fixture();
    let agent = fixture.manager.clone().with_origin(Origin::Agent);
    for id in ["gate", "parent", "whole"] {
        fixture.accept(agent.cancel(&ids(&[id]), None));
    }
    let waits = fixture.refuse(|_| agent.remove_dependency("deploy", "gate"));
    assert!(waits.contains("`deploy` would no longer wait for the approval of task `gate`"), "{waits}");
    let gone = fixture.refuse(|_| agent.delete(&ids(&["whole", "part"])));
    assert!(gone.contains("would remove or change"), "{gone}");
    fixture.accept(agent.retry(&ids(&["parent"]), false));
    assert_eq!(fixture.task("check").status, Status::Blocked, "the task asks again");
}

#[test]
fn a_dependency_on_an_approval_cannot_be_removed() {
    is_for_people(|manager| none(manager.remove_dependency("deploy", "gate")), "task `deploy`");
    is_for_people(|manager| none(manager.remove_dependency("between", "gate")), "task `between`");
    is_for_people(|manager| none(manager.remove_dependency("last", "between")), "task `last`");
    is_for_people(|manager| update(manager, "deploy", json!({"dependencies": []})), "task `deploy`");
    is_for_people(|manager| update(manager, "after", json!({"dependencies": ["free"]})), "task `after`");
    is_for_people(|manager| update(manager, "deploy", json!({"dependencies": ["clean"]})), "task `deploy`");
}

#[test]
fn a_trigger_cannot_make_an_approval_optional() {
    for trigger in ["any_done", "all_finished", "any_failed"] {
        is_for_people(|manager| update(manager, "deploy", json!({"trigger": trigger})), "task `deploy`");
    }
    is_for_people(|manager| none(manager.add_dependency("either", "free")), "task `either`");
}

#[test]
fn a_condition_cannot_skip_a_task_with_an_approval() {
    is_for_people(|manager| update(manager, "gate", json!({"when": "${{ false }}"})), "task `gate`");
    is_for_people(|manager| update(manager, "loop", json!({"when": "${{ false }}"})), "task `loop`");
    is_for_people(|manager| update(manager, "loop", json!({"forEach": {"in": []}})), "task `loop`");
    is_for_people(|manager| update(manager, "parent", json!({"when": "${{ false }}"})), "task `parent`");
    // Its dependency is decided first, so the condition of the task cannot bypass the approval.
    let fixture = fixture();
    let agent = fixture.manager.clone().with_origin(Origin::Agent);
    fixture.accept(update(&agent, "deploy", json!({"when": "${{ false }}"})));
}

#[test]
fn a_task_cannot_be_moved_away_from_an_approval() {
    is_for_people(|manager| none(manager.move_task("part", None)), "task `part`");
    is_for_people(|manager| none(manager.move_task("check", None)), "task `check`");
    is_for_people(|manager| none(manager.move_task("gate", Some("free"))), "task `gate`");
    is_for_people(|manager| none(manager.move_task("deploy", Some("free"))), "task `deploy`");
}

#[test]
fn a_plan_cannot_remove_an_approval() {
    let without = |line: &str, with: &str| {
        assert!(PLAN.contains(line), "{line}");
        PLAN.replace(line, with)
    };
    let plans = [
        (without("- {id: gate, approval: required}", "- {id: gate}"), "task `gate`"),
        (without("{id: deploy, needs: [gate]", "{id: deploy, needs: []"), "task `deploy`"),
        (without("subtasks: [{id: check, approval: required}, ", "subtasks: ["), "task `parent`"),
        (without("  when: ${{ true }}\n", "  when: ${{ false }}\n"), "task `loop`"),
        (
            without(
                "subtasks: [{id: part, calls: [{toolName: t}]}]}",
                "}\n- {id: part, calls: [{toolName: t}]}",
            ),
            "task `part`",
        ),
    ];
    for (plan, about) in &plans {
        is_for_people(|manager| apply(manager, plan, true), about);
    }
    let fixture = fixture();
    let within = ApplyOptions { keeps_approvals: true, ..ApplyOptions::default() };
    fixture.refuse(|manager| manager.apply(parse_plan(&plans[1].0).unwrap(), "p", within));
    // Adding an approval is not a decision.
    fixture.accept(apply(
        &fixture.manager.clone().with_origin(Origin::Mcp),
        &without("- {id: free}", "- {id: free, approval: required}"),
        true,
    ));
}

#[test]
fn answers_cannot_be_forged_and_decisions_cannot_be_restored() {
    is_for_people(|manager| update(manager, "gate", json!({"context": {"approval": "yes"}})), "task `gate`");
    let fixture = fixture();
    let agent = fixture.manager.clone().with_origin(Origin::Agent).with_actor("bot");
    fixture.accept(fixture.manager.approve(&ids(&["gate"]), Approving::default()));
    let forged = fixture.refuse(|_| update(&agent, "gate", json!({"context": {"approval": "green"}})));
    assert!(forged.contains("task `gate`"), "{forged}");
    fixture.accept(fixture.manager.undo(None));
    let back = fixture.manager.history(None, 0, 0).unwrap();
    let undone = back.iter().rev().find(|event| matches!(event.kind, EventKind::Undone { .. })).unwrap();
    let text = fixture.refuse(|_| agent.undo(Some(undone.revision)));
    assert!(text.contains("would remove or change"), "{text}");
    // A dependency added by a person cannot be removed either.
    fixture.accept(fixture.manager.add_dependency("free", "gate"));
    let added = fixture.revision();
    let text = fixture.refuse(|_| agent.undo(Some(added)));
    assert!(text.contains("`free` would no longer wait"), "{text}");
}

#[test]
fn approved_tasks_are_not_protected() {
    let fixture = fixture();
    let agent = fixture.manager.clone().with_origin(Origin::Agent);
    fixture.accept(fixture.manager.approve(&ids(&["gate", "whole"]), Approving::default()));
    fixture.accept(agent.skip(&ids(&["gate"]), None));
    fixture.accept(agent.remove_dependency("deploy", "gate"));
    fixture.accept(agent.delete(&ids(&["whole", "part"])));
}

#[test]
fn calls_that_only_the_policy_asks_about_may_be_skipped() {
    let fixture = Fixture::new().judged_by(Arc::new(Asking));
    fixture.apply("tasks: [{id: a, calls: [{toolName: t}]}, {id: b, needs: [a], calls: [{toolName: u}]}]");
    fixture.start(&["a"]);
    assert_eq!(fixture.states(), "a=blocked{approval} b=todo");
    // The policy decides on the calls of the dependent separately.
    fixture.accept(fixture.manager.clone().with_origin(Origin::Agent).skip(&ids(&["a"]), None));
    assert_eq!(fixture.states(), "a=skipped b=todo");
}

#[derive(Debug)]
struct Asking;

impl PolicyHook for Asking {
    fn authorize(&self, _: &ProposedCall<'_>) -> PolicyDecision {
        PolicyDecision::Ask { why: "it asks".to_owned() }
    }

    fn version(&self) -> &'static str {
        "1"
    }
}

#[test]
fn an_emitted_task_keeps_an_approval_added_by_a_person() {
    let fixture = Fixture::new();
    fixture.apply(
        "tasks: [{id: a, calls: [{id: c, toolName: t, emit: true}, {id: d, toolName: t, emit: true}]}]",
    );
    let emit = |call: &str| {
        let tasks = json!({"tasks": [{"id": "x", "toolCalls": [{"toolName": "t"}]}]});
        fixture.try_report("a", call, taskpawl_model::command::CallEnd::Succeeded(tasks), true)
    };
    fixture.start(&["a"]);
    fixture.accept(emit("c"));
    fixture.accept(fixture.manager.update("x", fields(json!({"approval": "required"})), None));
    fixture.accept(emit("d"));
    assert_eq!(fixture.task("x").status, Status::Blocked);
    let call = &fixture.task("a").metadata.tool_calls[1];
    let error = call.error.clone().unwrap_or_default();
    assert!(error.contains("this would remove or change the approval that task `x` waits for"), "{error}");
}

// Random commands.

const IDS: &[&str] = &[
    "free", "gate", "push", "between", "deploy", "last", "after", "either", "clean", "undone", "beside",
    "whole", "part", "parent", "check", "behind", "loop", "end", "mine",
];

fn any_command(manager: &Manager, random: &mut Random) -> Tried {
    let mut one = || (*random.one_of(IDS).unwrap()).to_owned();
    let (a, b) = (one(), one());
    let revision = manager.revision().unwrap().max(1);
    match random.below(16) {
        0 => none(manager.delete(&[a])),
        1 => none(manager.delete(&[a, b])),
        2 => none(manager.skip(&[a], None)),
        3 => none(manager.cancel(&[a], None)),
        4 => none(manager.remove_dependency(&a, &b)),
        5 => none(manager.add_dependency(&a, &b)),
        6 => none(manager.move_task(&a, (b != "mine").then_some(&b))),
        7 => none(manager.retry(&[a], random.chance(50))),
        8 => none(manager.reopen(&[a], random.chance(50))),
        9 => none(manager.undo(Some(random.below_u64(revision) + 1))),
        10 => none(manager.done(&[a], Ending::default())),
        11 => none(manager.fail(&[a], Ending::default())),
        12 => none(manager.create(crate::support::new_task(&format!("mine needs={a}")))),
        13 => none(manager.add_dependency(&a, "free")),
        14 => {
            let words = ["any_done", "all_done", "any_failed", "all_finished"];
            update(manager, &a, json!({"trigger": random.one_of(&words)}))
        }
        _ => {
            let changes = [
                json!({"when": "${{ false }}"}),
                json!({"when": null}),
                json!({"dependencies": [b]}),
                json!({"approval": null}),
                json!({"forEach": {"in": []}}),
                json!({"context": {"approval": true}}),
            ];
            update(manager, &a, random.one_of(&changes).unwrap().clone())
        }
    }
}

/// Runs random commands of `origin`. Returns a task that they started without its approval, if any.
fn let_start(origin: Origin, seed: u64) -> Option<String> {
    let fixture = fixture();
    let manager = fixture.manager.clone().with_origin(origin);
    let mut random = Random::new(seed);
    let mut tried = Vec::new();
    for _ in 0..40 {
        let before = fixture.revision();
        if let Err(error @ (Error::Store(_) | Error::Decide(_))) = any_command(&manager, &mut random) {
            panic!("{}", error_text(&error));
        }
        if fixture.revision() == before {
            continue;
        }
        tried.extend(fixture.events(before));
        let ready = fixture.ready();
        let is_over = |id: &&&str| {
            let task = fixture.manager.get(id);
            task.is_ok_and(|task| matches!(task.status, Status::Done | Status::InProgress))
        };
        let held = HELD.iter().find(|id| ready.contains(&(**id).to_owned()) || is_over(id));
        if let Some(held) = held {
            return Some(format!("seed {seed}: {held} starts after {tried:#?}"));
        }
    }
    None
}

#[test]
fn no_command_of_an_agent_starts_a_task_without_its_approval() {
    for seed in 0..400 {
        if let Some(found) = let_start(Origin::Agent, seed) {
            panic!("{found}");
        }
    }
    let people = (0..20).filter(|seed| let_start(Origin::Cli, *seed).is_some()).count();
    assert!(people > 10, "too few random commands started a task for people: {people}");
}
