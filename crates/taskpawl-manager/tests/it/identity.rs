//! Permissions on tasks held by another actor: every kind of holder, every kind of actor, and every command
//! that could end a claim.

use std::path::Path;

use taskpawl_manager::{Ending, Error, Manager};
use taskpawl_model::command::{NewTask, Refusal};
use taskpawl_model::task::EventKind;
use taskpawl_model::task::{Actor, ActorKind, Claim, Status, TaskSpec};
use taskpawl_model::value::Map;
use taskpawl_model::view::Query;
use taskpawl_store::{Location, open};

use crate::support::{LEASE, ids};

const HOLDERS: [ActorKind; 4] = [ActorKind::Person, ActorKind::Agent, ActorKind::Program, ActorKind::Unknown];
const ACTORS: [ActorKind; 3] = [ActorKind::Person, ActorKind::Agent, ActorKind::Program];

/// An attempt of an actor to change the task `a` below `p`, which another actor holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Claim,
    Renew,
    Done,
    Fail,
    Release,
    /// Reports the holder's attempt after the task was released.
    LateReport,
    Cancel,
    CancelAbove,
    UndoClaim,
}

impl Attempt {
    const ALL: [Self; 9] = [
        Self::Claim,
        Self::Renew,
        Self::Done,
        Self::Fail,
        Self::Release,
        Self::LateReport,
        Self::Cancel,
        Self::CancelAbove,
        Self::UndoClaim,
    ];

    fn carry_out(self, holder: &Manager, actor: &Manager, claimed_at: u64) -> Result<(), Error> {
        let a = ids(&["a"]);
        match self {
            Self::Claim => actor.claim("a", LEASE).map(drop),
            Self::Renew => actor.renew("a", LEASE).map(drop),
            Self::Done => actor.done(&a, Ending::default()).map(drop),
            Self::Fail => actor.fail(&a, Ending::default()).map(drop),
            Self::Release => actor.release(&a).map(drop),
            Self::LateReport => {
                holder.release(&a).unwrap();
                actor.done(&a, Ending { attempt: Some(1), ..Ending::default() }).map(drop)
            }
            Self::Cancel => actor.cancel(&a, None).map(drop),
            Self::CancelAbove => actor.cancel(&ids(&["p"]), None).map(drop),
            Self::UndoClaim => actor.undo(Some(claimed_at)).map(drop),
        }
    }

    /// Returns the expected permission, stated independently of the rules.
    fn is_promised(self, holder: ActorKind, actor: ActorKind, is_same_name: bool) -> bool {
        let is_own = is_same_name && (holder == actor || holder == ActorKind::Unknown);
        match self {
            Self::Claim | Self::Renew => is_own,
            Self::Done | Self::Fail | Self::Release | Self::LateReport => {
                is_own || actor == ActorKind::Person
            }
            Self::Cancel | Self::CancelAbove | Self::UndoClaim => {
                holder != ActorKind::Person || actor == ActorKind::Person
            }
        }
    }
}

fn new_task(id: &str, parent: Option<&str>) -> NewTask {
    let spec = TaskSpec { name: id.to_owned(), ..TaskSpec::default() };
    NewTask {
        id: id.into(),
        spec,
        context: Map::new(),
        calls: vec![],
        dependencies: vec![],
        parent: parent.map(str::to_owned),
        plan: None,
    }
}

/// Returns all data that a refusal must not change.
fn state(manager: &Manager) -> (Vec<(Status, Option<Claim>)>, u64) {
    let tasks = manager.list(&Query::default()).unwrap().tasks;
    let revision = manager.revision().unwrap();
    (tasks.into_iter().map(|task| (task.status, task.claim)).collect(), revision)
}

/// Returns whether the actor was permitted, or describes a wrong answer.
fn tried(
    location: &Location,
    recorded: ActorKind,
    actor: (ActorKind, &str),
    attempt: Attempt,
) -> Result<bool, String> {
    let setup = Manager::new(open(location), "setup");
    for (id, parent) in [("p", None), ("a", Some("p"))] {
        setup.create(new_task(id, parent)).unwrap();
    }
    let holder = setup.clone().with_actor("ann").with_kind(recorded);
    holder.claim("a", LEASE).unwrap();
    let claimed_at = state(&setup).1;
    // A separate handle, as in another process, reads the stored data.
    let store = if *location == Location::Memory { setup.store().clone() } else { open(location) };
    let actor = Manager::new(store, actor.1).with_kind(actor.0);
    let before = state(&setup);
    match attempt.carry_out(&holder, &actor, claimed_at) {
        Ok(()) => Ok(true),
        Err(Error::Refused(refusal)) => {
            let is_late = attempt == Attempt::LateReport;
            let is_right = if is_late {
                matches!(*refusal, Refusal::ForeignAttempt { .. })
            } else {
                matches!(*refusal, Refusal::HeldByOther { .. }) && state(&setup) == before
            };
            if is_right { Ok(false) } else { Err(format!("refused otherwise: {refusal:?}")) }
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Tests all combinations on one kind of store. Returns their number, and the combinations with a wrong
/// result. `recorded` maps the kind of the holder to the one that the claim is stored with.
fn play(mut place: impl FnMut() -> Location, recorded: fn(ActorKind) -> ActorKind) -> (usize, Vec<String>) {
    let (mut count, mut broken) = (0, Vec::new());
    for holder in HOLDERS {
        for kind in ACTORS {
            for name in ["ann", "bob"] {
                for attempt in Attempt::ALL {
                    count += 1;
                    let expected = Ok(attempt.is_promised(holder, kind, name == "ann"));
                    let found = tried(&place(), recorded(holder), (kind, name), attempt);
                    if found != expected {
                        broken.push(format!("{attempt:?} by {kind} {name} of {holder} ann: {found:?}"));
                    }
                }
            }
        }
    }
    (count, broken)
}

fn numbered(directory: &Path, kind: fn(std::path::PathBuf) -> Location) -> impl FnMut() -> Location {
    let (directory, mut number) = (directory.to_owned(), 0);
    move || {
        number += 1;
        kind(directory.join(number.to_string()))
    }
}

#[test]
fn each_kind_of_actor_changes_only_permitted_tasks_on_every_store() {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = play(numbered(directory.path(), Location::Sqlite), |kind| kind);
    let json_directory = tempfile::tempdir().unwrap();
    let json = play(numbered(json_directory.path(), Location::Json), |kind| kind);
    let memory = play(|| Location::Memory, |kind| kind);
    assert_eq!([sqlite, json, memory], [(216, vec![]), (216, vec![]), (216, vec![])]);
}

/// Positive control: if claims record only a name, the matrix must report it.
#[test]
fn the_matrix_detects_claims_that_compare_only_names() {
    let (_, broken) = play(|| Location::Memory, |_| ActorKind::Unknown);
    println!("identity control: {} of 216 combinations are found", broken.len());
    assert_eq!(broken.len(), 40, "{broken:#?}");
    assert!(broken.contains(&"Done by agent ann of person ann: Ok(true)".to_owned()), "{broken:#?}");
}

#[test]
fn an_agent_may_claim_a_task_after_the_lease_of_a_person_expired() {
    let fixture = crate::support::Fixture::with(&["a"]);
    let person = fixture.manager.clone().with_kind(ActorKind::Person);
    let agent = fixture.manager.clone().with_actor("bot").with_kind(ActorKind::Agent);
    fixture.accept(person.claim("a", LEASE));
    fixture.pass(61);
    fixture.accept(agent.cancel(&ids(&["a"]), None));
}

#[test]
fn a_refusal_to_an_actor_of_the_same_name_says_which_kind_holds_the_task() {
    let fixture = crate::support::Fixture::with(&["a"]);
    fixture.accept(fixture.manager.clone().with_kind(ActorKind::Person).claim("a", LEASE));
    let agent = fixture.manager.clone().with_kind(ActorKind::Agent);
    let refused = agent.done(&ids(&["a"]), Ending::default()).unwrap_err().to_string();
    assert!(refused.starts_with("task `a` is held by the person `ann` until"), "{refused}");
}

#[test]
fn commands_of_an_agent_renew_no_lease_of_a_person_with_its_name() {
    let fixture = crate::support::Fixture::with(&["a", "b"]);
    fixture.accept(fixture.manager.clone().with_kind(ActorKind::Person).claim("a", LEASE));
    let until = fixture.task("a").claim.unwrap().lease_until;
    fixture.pass(40);
    fixture.accept(fixture.manager.clone().with_kind(ActorKind::Agent).note("b", "at work"));
    assert_eq!(fixture.task("a").claim.unwrap().lease_until, until);
    fixture.accept(fixture.manager.clone().with_kind(ActorKind::Person).note("b", "at work"));
    assert_ne!(fixture.task("a").claim.unwrap().lease_until, until);
}

#[test]
fn events_and_claims_record_the_kind_of_their_actor() {
    let fixture = crate::support::Fixture::with(&["a"]);
    let person = fixture.manager.clone().with_kind(ActorKind::Person);
    fixture.accept(person.claim("a", LEASE));
    let last = fixture.manager.read(|view| Ok(view.events(0, None, 0)?)).unwrap().pop().unwrap();
    assert!(matches!(last.kind, EventKind::Status { to: Status::InProgress, .. }));
    assert_eq!(
        (last.kind_of_actor(), serde_json::to_value(&last).unwrap()["actorKind"].clone()),
        (ActorKind::Person, serde_json::json!("person"))
    );
    let claim = fixture.task("a").claim.unwrap();
    assert!(claim.is_of(Actor { kind: ActorKind::Person, name: "ann" }));
    assert!(!claim.is_of(Actor { kind: ActorKind::Agent, name: "ann" }));
}
