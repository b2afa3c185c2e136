//! Tasks that are cancelled while a run executes their calls: no attempt starts before the previous one has
//! ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use taskpawl_manager::{ApplyOptions, Error, Liveness, Manager};
use taskpawl_model::command::{Command, Round};
use taskpawl_model::value::{Key, RunId};

use crate::recovery::{recover, start_run};
use crate::support::{Fixture, ids};

const APPLIED: &str =
    "tasks: [{id: a, mode: parallel, metadata: {toolCalls: [{toolName: t}, {toolName: t}]}}]";

/// Returns a cancelled task whose two calls are still running in `r1`.
fn cancelled() -> Fixture {
    let fixture = Fixture::new();
    fixture.apply(APPLIED);
    start_run(&fixture, "r1");
    fixture.start(&["a"]);
    fixture.accept(fixture.manager.cancel(&ids(&["a"]), None));
    fixture
}

fn retry(manager: &Manager) -> Result<(), Error> {
    manager.retry(&ids(&["a"]), true).map(drop)
}

#[test]
fn a_cancelled_task_cannot_restart_before_its_calls_have_ended() {
    let fixture = cancelled();
    assert_eq!(fixture.task("a").ended_by, Some(RunId::from("r1")));
    insta::assert_snapshot!(fixture.refuse(retry), @r"
    run `r1` is still ending a call of the cancelled task `a`
      hint: retry in a moment
    ");
    fixture.refuse(|manager| manager.reopen(&ids(&["a"]), true));
    fixture.refuse(|manager| manager.delete(&ids(&["a"])));
    fixture.refuse(|_| fixture.try_apply(APPLIED, ApplyOptions { fresh: true, ..ApplyOptions::default() }));
    fixture.refuse(|manager| manager.undo(None));
    fixture.report("a", "c1", "cut");
    fixture.refuse(retry);
    fixture.report("a", "c2", "ok");
    assert_eq!(fixture.task("a").ended_by, None);
    assert_eq!(fixture.calls("a"), "c1=cancelled/1 c2=cancelled/1", "a late report has no other effect");
    fixture.accept(retry(&fixture.manager));
    fixture.start(&["a"]);
    assert_eq!(fixture.task("a").attempt, 2);
}

#[test]
fn neither_a_parent_nor_a_dependency_restarts_an_ending_task() {
    let fixture = Fixture::with(&["p", "a calls=1 in=p", "b calls=1 in=p"]);
    start_run(&fixture, "r1");
    fixture.start(&["a"]);
    fixture.accept(fixture.manager.cancel(&ids(&["p"]), None));
    fixture.refuse(|manager| manager.retry(&ids(&["p"]), true));
    fixture.refuse(|manager| manager.reopen(&ids(&["p"]), true));
    fixture.accept(fixture.manager.retry(&ids(&["b"]), false));
    fixture.report("a", "c1", "cut");
    fixture.accept(fixture.manager.retry(&ids(&["p"]), true));
}

#[test]
fn only_a_report_of_the_same_run_and_attempt_counts() {
    let fixture = cancelled();
    start_run(&fixture, "r2");
    let round = |run: &str, attempt| {
        let releases = vec![(fixture.key("a"), attempt)];
        let round = Round { releases, ..Round::default() };
        let manager = fixture.manager.clone().with_run(RunId::from(run));
        fixture.accept(manager.command(Command::Round(Box::new(round))));
    };
    round("r2", 1);
    round("r1", 2);
    fixture.refuse(retry);
    round("r1", 1);
    fixture.accept(retry(&fixture.manager));
}

#[test]
fn a_task_without_running_calls_restarts_at_once() {
    let fixture = Fixture::with(&["a calls=1"]);
    start_run(&fixture, "r1");
    fixture.start(&["a"]);
    fixture.give_back("a");
    fixture.accept(fixture.manager.cancel(&ids(&["a"]), None));
    assert_eq!(fixture.task("a").ended_by, None);
    fixture.accept(retry(&fixture.manager));
}

#[test]
fn a_finished_run_has_no_running_calls() {
    let fixture = cancelled();
    fixture.as_run(Command::FinishRun { id: RunId::from("r1"), exit: 0, counts: BTreeMap::new() });
    fixture.accept(retry(&fixture.manager));
    let fixture = cancelled();
    assert!(recover(&fixture.manager, None, &[]).is_empty());
    recover(&fixture.manager, None, &["r1"]);
    fixture.accept(retry(&fixture.manager));
}

/// Reports every run as dead.
#[derive(Debug)]
struct AllDead;

impl Liveness for AllDead {
    fn is_alive(&self, _: &RunId) -> bool {
        false
    }

    fn recover(&self, manager: &Manager, tasks: &[Key]) -> Result<(), Error> {
        recover(manager, Some(tasks), &["r1"]);
        Ok(())
    }
}

#[test]
fn a_command_refused_because_of_a_dead_run_is_repeated() {
    let fixture = cancelled();
    let manager = fixture.manager.clone().with_liveness(Arc::new(AllDead));
    assert_eq!(manager.get("a").unwrap().ended_by, None, "no process of the run is alive");
    fixture.accept(retry(&manager));
    assert_eq!(fixture.states(), "a=todo");
}
