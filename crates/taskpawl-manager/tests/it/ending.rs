//! Tasks that are cancelled while a run carries out their calls: no attempt starts before the last one has ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use taskpawl_manager::{ApplyOptions, Error, Liveness, Manager};
use taskpawl_model::{Command, Key, Round, RunId};

use crate::recovery::{recover, start_run};
use crate::support::{Desk, ids};

const APPLIED: &str =
    "tasks: [{id: a, mode: parallel, metadata: {toolCalls: [{toolName: t}, {toolName: t}]}}]";

/// A task of two calls, both of which run in `r1`, and that is cancelled.
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
fn nothing_starts_again_before_the_run_has_said_that_the_calls_have_ended() {
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
    assert_eq!(desk.calls("a"), "c1=cancelled/1 c2=cancelled/1", "nothing else comes of a late report");
    desk.accept(retry(&desk.manager));
    desk.start(&["a"]);
    assert_eq!(desk.task("a").attempt, 2);
}

#[test]
fn a_task_above_and_a_dependency_do_not_start_it_again_either() {
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
fn only_a_report_of_that_run_about_that_attempt_counts() {
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
fn what_has_no_call_that_runs_starts_again_at_once() {
    let desk = Desk::with(&["a calls=1"]);
    start_run(&desk, "r1");
    desk.start(&["a"]);
    desk.give_back("a");
    desk.accept(desk.manager.cancel(&ids(&["a"]), None));
    assert_eq!(desk.task("a").ended_by, None);
    desk.accept(retry(&desk.manager));
}

#[test]
fn nothing_of_a_run_lives_that_is_over() {
    let desk = cancelled();
    desk.as_run(Command::FinishRun { id: RunId::from("r1"), exit: 0, counts: BTreeMap::new() });
    desk.accept(retry(&desk.manager));
    let desk = cancelled();
    assert!(recover(&desk.manager, None, &[]).is_empty());
    recover(&desk.manager, None, &["r1"]);
    desk.accept(retry(&desk.manager));
}

/// Knows that every run is dead.
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
fn a_command_that_is_refused_for_a_dead_run_is_given_once_more() {
    let desk = cancelled();
    let manager = desk.manager.clone().with_liveness(Arc::new(AllDead));
    assert_eq!(manager.get("a").unwrap().ended_by, None, "nothing of it lives");
    desk.accept(retry(&manager));
    assert_eq!(desk.states(), "a=todo");
}
