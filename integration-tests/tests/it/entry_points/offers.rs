//! Executes suggested next actions, each on a copy of the store.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::{Value, json};

use super::plan;
use crate::support::{Home, McpClient, Run};

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) accepted: usize,
    /// Texts which say that a person decides.
    pub(super) asked: usize,
    pub(super) refused: Vec<String>,
}

/// Executes every action that is suggested for a task, each on a copy of the store.
pub(super) fn check(home: &Home, actor: &str, id: &str, counts: &mut Counts) {
    let summed_up = ["run-all-ready", "--json", "--quiet", "--actor", actor];
    let copy = home.with_copied_store("summary.db");
    for command in offered_by_cli(home, actor, id) {
        take_command(home, &command, counts);
    }
    // The summary of a run suggests actions for the store that the run leaves, not for the original.
    for command in offers_of(&copy.run(&summed_up).stdout) {
        take_command(&copy, &command, counts);
    }
    let answer =
        McpClient::start(home.program(&["mcp"])).call("task_get", &json!({"id": id, "agent": actor}));
    take_calls(home, &answer["structuredContent"], counts);
    // A refusal has suggestions, too.
    let copy = home.with_copied_store("refused.db");
    let update = json!({"id": id, "action": "done", "agent": actor});
    let answer = McpClient::start(copy.program(&["mcp"])).call("task_update", &update);
    if answer["isError"] == true {
        take_calls(home, &answer["structuredContent"], counts);
    }
}

fn offered_by_cli(home: &Home, actor: &str, id: &str) -> Vec<String> {
    let run = home.run(&["explain", id, "--json", "--actor", actor]).ok();
    offers_of(&run.stdout)
}

fn offers_of(json: &str) -> Vec<String> {
    let answer: Value = serde_json::from_str(json).unwrap();
    let actions = answer["data"]["nextActions"].as_array().cloned().unwrap_or_default();
    actions.iter().map(|action| action.as_str().unwrap().to_owned()).collect()
}

/// Commands for people only.
const DECISIONS: [&str; 5] = [" approve ", " reject ", " trust", " allow ", " policy "];

fn take_command(home: &Home, command: &str, counts: &mut Counts) {
    let copy = home.with_copied_store("offer.db");
    let program = home.path("bin/taskpawl");
    if !program.exists() {
        std::fs::create_dir_all(home.path("bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_taskpawl-under-test"), &program).unwrap();
    }
    let path = std::env::join_paths([home.path("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
    // A run that waits for another actor would wait here for ever.
    let mut shell = Command::new("timeout");
    let most = if command.contains("--wait") { "1" } else { "20" };
    shell.args([most, "sh", "-c", command]);
    copy.prepare(&mut shell);
    let run = Run::of(shell.env("PATH", path));
    match run.code {
        // The exit code of a run is the state of the plan, so 1, 3 and 4 count as accepted.
        Some(0 | 1 | 3 | 4) => counts.accepted += 1,
        Some(7) if DECISIONS.iter().any(|word| format!("{command} ").contains(word)) => counts.asked += 1,
        // With `--wait` a run continues until another actor finishes the held task, so it was accepted.
        Some(124) if command.contains("--wait") => counts.accepted += 1,
        _ => counts.refused.push(format!("`{command}`: {:?}: {}", run.code, run.stderr)),
    }
}

fn take_calls(home: &Home, answer: &Value, counts: &mut Counts) {
    for action in answer["nextActions"].as_array().cloned().unwrap_or_default() {
        let Some(tool) = action["tool"].as_str() else {
            counts.asked += 1;
            continue;
        };
        let copy = home.with_copied_store("offer.db");
        let taken = McpClient::start(copy.program(&["mcp"])).call(tool, &action["arguments"]);
        if taken["isError"] == true {
            counts.refused.push(format!("{action}: {}", taken["structuredContent"]["error"]));
        } else {
            counts.accepted += 1;
        }
    }
    counts.asked += usize::from(answer.get("askPersonToRun").is_some());
}

/// A fault that is put into suggestions; the control has to find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoilt {
    /// None: the suggestions stay as they are.
    Nothing,
    /// Another agent in the call or the command.
    Actor,
    /// Another task, which is done already.
    Id,
}

/// Returns the refused suggestions of a claim by MCP and of `explain` on the command line, with a fault in each.
pub(super) fn control(spoilt: Spoilt) -> Vec<String> {
    let home = Home::new();
    home.apply(&plan());
    home.run(&["done", "two", "--actor", "ann"]).ok();
    let mut counts = Counts::default();
    // The answer to a claim suggests to finish the task in the name of its holder.
    let claim = json!({"id": "one", "action": "claim", "agent": "ann"});
    let answer = McpClient::start(home.program(&["mcp"])).call("task_update", &claim);
    let mut offered = answer["structuredContent"].clone();
    for action in offered["nextActions"].as_array_mut().unwrap() {
        match spoilt {
            Spoilt::Nothing => {}
            Spoilt::Actor => action["arguments"]["agent"] = "another".into(),
            Spoilt::Id => action["arguments"]["id"] = "two".into(),
        }
    }
    take_calls(&home, &offered, &mut counts);
    for command in offered_by_cli(&home, "ann", "four") {
        let command = match spoilt {
            Spoilt::Nothing | Spoilt::Actor => command,
            Spoilt::Id => command.replace("four", "two"),
        };
        take_command(&home, &command, &mut counts);
    }
    assert!(counts.accepted + counts.refused.len() > 2, "too little is offered: {counts:?}");
    counts.refused
}
