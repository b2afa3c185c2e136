//! Releasing the claims of other agents.

use serde_json::json;
use taskpawl_manager::{Ending, Manager};
use taskpawl_model::task::ActorKind;

use crate::support::{Fixture, LEASE, ids, new_task};

const NOTE: &str = "ann does not answer";

/// Returns a fixture with the task `a` of the agent `boss`, which the agent `ann` has claimed.
fn claimed() -> Fixture {
    let fixture = Fixture::new();
    fixture.accept(agent(&fixture, "boss").create(new_task("a")));
    fixture.accept(agent(&fixture, "ann").claim("a", LEASE));
    fixture
}

fn agent(fixture: &Fixture, name: &str) -> Manager {
    fixture.manager.clone().with_actor(name).with_kind(ActorKind::Agent)
}

/// Returns whether the manager's actor may release `a` with a note.
fn may_release(manager: &Manager) -> bool {
    manager.release_with_note(&ids(&["a"]), NOTE).is_ok()
}

#[test]
fn an_agent_releases_its_task_from_a_silent_holder() {
    let fixture = claimed();
    let boss = agent(&fixture, "boss");
    fixture.pass(29);
    assert!(!may_release(&boss), "the holder may be at work");
    fixture.pass(1);
    assert!(boss.release(&ids(&["a"])).is_err(), "without a note");
    assert!(boss.release_with_note(&ids(&["a"]), " ").is_err(), "the note is empty");
    fixture.accept(boss.release_with_note(&ids(&["a"]), NOTE));
    assert_eq!(fixture.states(), "a=todo");
    let notes = fixture.task("a").notes;
    assert_eq!((notes[0].actor.as_str(), notes[0].text.as_str()), ("boss", NOTE));
    fixture.accept(agent(&fixture, "bob").claim("a", LEASE));
    let late = agent(&fixture, "ann")
        .done(&ids(&["a"]), Ending { attempt: Some(1), ..Ending::default() })
        .unwrap_err();
    assert!(late.to_string().starts_with("task `a` is held by `bob`"), "{late}");
}

#[test]
fn any_command_of_the_holder_counts() {
    let fixture = claimed();
    let (boss, ann) = (agent(&fixture, "boss"), agent(&fixture, "ann"));
    // More than half of the lease is left, so this does not renew it.
    fixture.pass(20);
    fixture.accept(ann.note("a", "half of it is done"));
    fixture.pass(20);
    assert!(!may_release(&boss), "20 seconds after a command");
    fixture.pass(9);
    assert!(!may_release(&boss), "29 seconds after a command");
    fixture.pass(1);
    assert!(may_release(&boss), "30 seconds after a command");
}

#[test]
fn others_do_not_release_the_claim_of_a_silent_holder() {
    let fixture = claimed();
    fixture.pass(59);
    assert!(!may_release(&agent(&fixture, "bob")), "another agent");
    let program = fixture.manager.clone().with_actor("boss").with_kind(ActorKind::Program);
    assert!(!may_release(&program), "a program of the same name");
    let fields = json!({"assignee": "bob"}).as_object().cloned().unwrap();
    agent(&fixture, "boss").update("a", fields, None).unwrap();
    assert!(may_release(&agent(&fixture, "bob")), "the assignee");
}

#[test]
fn an_agent_does_not_release_the_claim_of_a_person() {
    let fixture = Fixture::new();
    let boss = agent(&fixture, "boss");
    fixture.accept(boss.create(new_task("a")));
    fixture.accept(fixture.manager.clone().with_actor("eve").with_kind(ActorKind::Person).claim("a", LEASE));
    fixture.pass(59);
    assert!(!may_release(&boss));
}

#[test]
fn the_note_of_a_release_is_kept_once() {
    let fixture = claimed();
    let ann = agent(&fixture, "ann");
    for _ in 0..2 {
        fixture.accept(ann.release_with_note(&ids(&["a"]), "the key is missing"));
    }
    assert_eq!(fixture.task("a").notes.len(), 1);
}
