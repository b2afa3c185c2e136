//! Refusals that belong to no other module.

use std::collections::BTreeMap;

use taskpawl_model::command::Command;
use taskpawl_model::value::RunId;

use crate::support::{Fixture, error_text};

#[test]
fn an_unknown_run_is_refused() {
    let fixture = Fixture::new();
    let finish = Command::FinishRun { id: RunId::from("r9"), exit: 0, counts: BTreeMap::new() };
    insta::assert_snapshot!(fixture.refuse(|m| m.command(finish)), @"
    no run `r9`
      hint: `taskpawl runs` shows the runs
    ");
    insta::assert_snapshot!(error_text(&fixture.manager.run(&RunId::from("r9")).unwrap_err()), @"
    no run `r9`
      hint: `taskpawl runs` shows the runs
    ");
}

#[test]
fn a_report_on_a_call_that_is_not_running_is_refused() {
    let fixture = Fixture::with(&["a calls=2"]);
    fixture.start(&["a"]);
    for (call, status) in [("c2", "pending"), ("c9", "unknown")] {
        let before = fixture.dump();
        let error = fixture.try_report("a", call, crate::support::end("ok"), true).unwrap_err();
        assert_eq!(fixture.dump(), before);
        let wanted = format!(
            "call `{call}` of task `a` is `{status}`, not `running`\n  hint: `taskpawl show a` shows its calls"
        );
        assert_eq!(error_text(&error), wanted);
    }
}

#[test]
fn run_one_waits_for_dependencies_and_tools() {
    let fixture = Fixture::with(&["x", "a calls=1 needs=x", "by-hand"]);
    let run = |id: &str, missing: Option<&str>| Command::RunOne {
        id: id.to_owned(),
        missing_tool: missing.map(str::to_owned),
    };
    fixture.accept(fixture.manager.command(run("a", None)));
    assert_eq!(fixture.states(), "x=todo a=blocked{waiting x} by-hand=todo");
    let before = fixture.revision();
    fixture.accept(fixture.manager.command(run("a", None)));
    assert_eq!(fixture.revision(), before, "asking again changes nothing");
    let lines = [
        fixture.refuse(|m| m.command(run("by-hand", None))),
        fixture.refuse(|m| m.unblock(&["a".to_owned()])),
    ];
    insta::assert_snapshot!(lines.join("\n"), @"
    task `by-hand` has neither tool calls nor subtasks, so `run` does not apply to it
      hint: an agent or a person must end it: `taskpawl done by-hand` or `taskpawl fail by-hand`
    task `a` is `blocked` (waiting) and cannot become `todo` by `unblock`
      hint: it opens automatically when its dependencies are finished
    ");
    fixture.done("x");
    assert_eq!(fixture.states(), "x=done a=todo by-hand=todo", "the task is unblocked automatically");
    fixture.accept(fixture.manager.command(run("a", Some("t"))));
    assert_eq!(fixture.states(), "x=done a=blocked{missing_tool} by-hand=todo");
    fixture.accept(
        fixture.manager.command(Command::ToolsKnown { tasks: vec![fixture.key("a"), fixture.key("x")] }),
    );
    assert_eq!(fixture.states(), "x=done a=todo by-hand=todo");
}

#[test]
fn a_waiting_task_is_blocked_when_its_dependency_fails() {
    let fixture = Fixture::with(&["x", "a calls=1 needs=x"]);
    fixture.accept(fixture.manager.command(Command::RunOne { id: "a".to_owned(), missing_tool: None }));
    fixture.fail("x");
    assert_eq!(fixture.states(), "x=failed a=blocked{dependency x}");
    insta::assert_snapshot!(fixture.refuse(|m| m.claim("x", crate::support::LEASE)), @"
    task `x` is `failed` and cannot become `in_progress` by `claim`
      hint: from `failed`, the allowed commands are: skip, cancel, retry, reopen
    ");
}
