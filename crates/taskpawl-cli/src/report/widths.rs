//! A run with failures and its summary on terminals of 60, 80 and 120 columns.

use std::time::Duration;

use serde_json::json;
use taskpawl::model::advice::Advice;
use taskpawl::model::task::Status;
use taskpawl::model::value::TaskId;
use taskpawl::{CallFailure, RunEvent, RunSummary};

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
        Box::new(CallFailure::new(Some(code), output, Some("put the linter on PATH".to_owned())))
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
    let group = |tool: &str, class: &str, tasks: &[(&str, &str)], blocks: u64| {
        let failed = |(task, error): &(&str, &str)| json!({"task": task, "error": error});
        let listed: Vec<_> = tasks.iter().map(failed).collect();
        json!({"tool": tool, "class": class, "count": tasks.len(), "tasks": listed, "blocks": blocks})
    };
    let missing = "call `c1` (read_file): failed to read `no/such/file.txt`: No such file or directory";
    let summary = json!({
        "run": "run-1",
        "exit": 1,
        "counts": {"done": 15, "failed": 3, "blocked": 2, "todo": 1},
        "ended": {"done": 9, "failed": 3},
        "failures": [
            group("shell", "exit_code", &[("lint", "shown"), ("unit-tests-of-the-command-line", "shown")], 2),
            group("read_file", "io", &[("fetch", missing)], 0),
        ],
        "waiting": [{
            "task": "sign",
            "name": "A person reads the changelog and says whether it is complete",
            "reason": "a ready manual task",
        }],
        "blocked": [],
        "notRun": [],
        "spent": {"calls": 0, "millis": 0},
    });
    let mut summary: RunSummary = serde_json::from_value(summary).unwrap();
    summary.next_actions = vec![Advice::retry(&TaskId::from("lint")).into()];
    summary
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
    let mut summary = summary();
    (summary.counts, summary.ended, summary.failures) = (counts, ended, Vec::new());
    let text = summary_text(&summary, &Ran::default(), PLAIN, None);
    assert!(text.as_str().starts_with("nothing ran, 2 blocked in 0 ms\n"), "{}", text.as_str());
}
