//! Tasks that are cancelled while a run executes their calls: no attempt starts before the previous one has
//! ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use taskpawl_manager::{ApplyOptions, Error, Liveness, Manager};
use taskpawl_model::{Command, Key, Round, RunId};

use crate::recovery::{recover, start_run};
use crate::support::{Desk, ids};

const APPLIED: &str =
    "tasks: [{id: a, mode: parallel, metadata: {toolCalls: [{toolName: t}, {toolName: t}]}}]";

/// Returns a cancelled task whose two calls are still running in `r1`.
fn cancelled() -> Desk {
    let desk = Desk::new();
    desk.apply(APPLIED);
    start_run(&desk, "r1");
    desk.start(&["a"]);
    desk.accept(desk.manager.cancel(&ids(&["a"]), None));
    desk
}

fn retry(manager: &Manager) -> Result<(), Error> {
    manager.retry(&ids(&["a"]), true).map(drop)
}

#[test]
fn a_cancelled_task_cannot_restart_before_its_calls_have_ended() {
    let desk = cancelled();
    assert_eq!(desk.task("a").ended_by, Some(RunId::from("r1")));
    insta::assert_snapshot!(desk.refuse(retry), @r"
    run `r1` still ends a call of task `a`, which was cancelled
      hint: ask again in a moment
    ");
    desk.refuse(|manager| manager.reopen(&ids(&["a"]), true));
    desk.refuse(|manager| manager.delete(&ids(&["a"])));
    desk.refuse(|_| desk.try_apply(APPLIED, ApplyOptions { fresh: true, ..ApplyOptions::default() }));
    desk.refuse(|manager| manager.undo(None));
    desk.report("a", "c1", "cut");
    desk.refuse(retry);
    desk.report("a", "c2", "ok");
    assert_eq!(desk.task("a").ended_by, None);
    assert_eq!(desk.calls("a"), "c1=cancelled/1 c2=cancelled/1", "a late report has no other effect");
    desk.accept(retry(&desk.manager));
    desk.start(&["a"]);
    assert_eq!(desk.task("a").attempt, 2);
}

#[test]
fn neither_a_parent_nor_a_dependency_restarts_an_ending_task() {
    let desk = Desk::with(&["p", "a calls=1 in=p", "b calls=1 in=p"]);
    start_run(&desk, "r1");
    desk.start(&["a"]);
    desk.accept(desk.manager.cancel(&ids(&["p"]), None));
    desk.refuse(|manager| manager.retry(&ids(&["p"]), true));
    desk.refuse(|manager| manager.reopen(&ids(&["p"]), true));
    desk.accept(desk.manager.retry(&ids(&["b"]), false));
    desk.report("a", "c1", "cut");
    desk.accept(desk.manager.retry(&ids(&["p"]), true));
}

#[test]
fn only_a_report_of_the_same_run_and_attempt_counts() {
    let desk = cancelled();
    start_run(&desk, "r2");
    let round = |run: &str, attempt| {
        let releases = vec![(desk.key("a"), attempt)];
        let round = Round { releases, ..Round::default() };
        let manager = desk.manager.clone().with_run(RunId::from(run));
        desk.accept(manager.command(Command::Round(Box::new(round))));
    };
    round("r2", 1);
    round("r1", 2);
    desk.refuse(retry);
    round("r1", 1);
    desk.accept(retry(&desk.manager));
}

#[test]
fn a_task_without_running_calls_restarts_at_once() {
    let desk = Desk::with(&["a calls=1"]);
    start_run(&desk, "r1");
    desk.start(&["a"]);
    desk.give_back("a");
    desk.accept(desk.manager.cancel(&ids(&["a"]), None));
    assert_eq!(desk.task("a").ended_by, None);
    desk.accept(retry(&desk.manager));
}

#[test]
fn a_finished_run_has_no_running_calls() {
    let desk = cancelled();
    desk.as_run(Command::FinishRun { id: RunId::from("r1"), exit: 0, counts: BTreeMap::new() });
    desk.accept(retry(&desk.manager));
    let desk = cancelled();
    assert!(recover(&desk.manager, None, &[]).is_empty());
    recover(&desk.manager, None, &["r1"]);
    desk.accept(retry(&desk.manager));
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
    let desk = cancelled();
    let manager = desk.manager.clone().with_liveness(Arc::new(AllDead));
    assert_eq!(manager.get("a").unwrap().ended_by, None, "no process of the run is alive");
    desk.accept(retry(&manager));
    assert_eq!(desk.states(), "a=todo");
}
