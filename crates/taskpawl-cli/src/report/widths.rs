//! A run with failures and its summary on terminals of 60, 80 and 120 columns.

use std::time::Duration;

use taskpawl::model::advice::Advice;
use taskpawl::model::task::Status;
use taskpawl::model::value::{RunId, TaskId};
use taskpawl::{CallFailure, FailedTask, FailureGroup, RunEvent, RunSummary, RunUsage, Waiting};

use super::lines::{Followed, line};
use super::{Ran, summary_text};
use crate::shown::Shown;
use crate::text::Paint;

const PLAIN: Paint = Paint { is_on: false };

fn at_widths(text: impl Fn(Option<usize>) -> Shown) -> String {
    let at = |width| {
        let text = text(Some(width));
        assert!(
            text.as_str().lines().all(|line| line.chars().count() <= width),
            "{width}: {}",
            text.as_str()
        );
        format!("── {width} columns\n{}", text.as_str())
    };
    [60, 80, 120].map(at).concat()
}

fn ended(id: &str, status: Status, error: Option<&str>, failure: Option<(i64, &str)>) -> Shown {
    let event = RunEvent::TaskEnded {
        task: TaskId::from(id),
        name: format!("The name of {id}, which says what the task is there for"),
        status,
        error: error.map(str::to_owned),
    };
    let failure = failure.map(|(code, output)| {
        let output = output.to_owned();
        Box::new(CallFailure {
            exit_code: Some(code),
            output,
            hint: Some("put the linter on PATH".to_owned()),
        })
    });
    let took = Some(Duration::from_millis(1_700));
    line(&event, &Followed { took, failure, is_cached: false }, PLAIN).unwrap()
}

#[test]
fn the_lines_of_a_run_fit_the_terminal() {
    let output = "src/main.rs:12:5: this function takes seven arguments, and a struct for them would be easier to read\n\
        \x20   fn run(one: usize, two: usize)\n\
        error: could not compile because of 1 previous error; run with --verbose to see the command line that was used";
    let lines = [
        ended("sources", Status::Done, None, None),
        ended("lint", Status::Failed, Some(&format!("call `c1` (shell): {output}")), Some((3, output))),
        ended(
            "fetch",
            Status::Failed,
            Some("call `c1` (read_file): failed to read `no/such/file.txt`: No such file or directory"),
            None,
        ),
        ended("publish", Status::Blocked, Some("cannot start because of `lint`"), None),
    ];
    let text = Shown::joined(lines, "");
    insta::assert_snapshot!(at_widths(|width| text.wrapped(width)));
}

fn summary() -> RunSummary {
    let failed = |task: &str, error: &str| FailedTask { task: TaskId::from(task), error: error.to_owned() };
    let group = |tool: &str, class: &str, tasks: Vec<FailedTask>, blocks| FailureGroup {
        tool: tool.to_owned(),
        class: class.to_owned(),
        count: tasks.len() as u64,
        tasks,
        blocks,
    };
    let counts = [("done", 15), ("failed", 3), ("blocked", 2), ("todo", 1)];
    RunSummary {
        run: RunId::from("run-1"),
        exit: 1,
        counts: counts.map(|(status, count)| (status.to_owned(), count)).into(),
        ended: [("done".to_owned(), 9), ("failed".to_owned(), 3)].into(),
        failures: vec![
            group(
                "shell",
                "exit_code",
                vec![failed("lint", "shown"), failed("unit-tests-of-the-command-line", "shown")],
                2,
            ),
            group(
                "read_file",
                "io",
                vec![failed(
                    "fetch",
                    "call `c1` (read_file): failed to read `no/such/file.txt`: No such file or directory",
                )],
                0,
            ),
        ],
        waiting: vec![Waiting {
            task: TaskId::from("sign"),
            name: "A person reads the changelog and says whether it is complete".to_owned(),
            reason: "a ready manual task".to_owned(),
            commands: Vec::new(),
        }],
        waiting_unlisted: 0,
        blocked: Vec::new(),
        blocked_unlisted: 0,
        not_run: Vec::new(),
        ended_early: Vec::new(),
        spent: RunUsage::default(),
        cached: 0,
        changed_beyond: Vec::new(),
        late_files: Vec::new(),
        observer_error: None,
        next_actions: vec![Advice::retry(&TaskId::from("lint")).into()],
    }
}

#[test]
fn the_summary_of_a_run_fits_the_terminal() {
    let shown = ["lint", "unit-tests-of-the-command-line"].map(TaskId::from).into();
    let ran = Ran { took: Duration::from_secs(34), shown, of_file: true };
    insta::assert_snapshot!(at_widths(|width| summary_text(&summary(), &ran, PLAIN, width)));
}

#[test]
fn a_run_that_did_nothing_says_so() {
    let (counts, ended) = ([("blocked".to_owned(), 2)].into(), [].into());
    let summary = RunSummary { counts, ended, failures: Vec::new(), ..summary() };
    let text = summary_text(&summary, &Ran::default(), PLAIN, None);
    assert!(text.as_str().starts_with("nothing ran, 2 blocked in 0 ms\n"), "{}", text.as_str());
}
