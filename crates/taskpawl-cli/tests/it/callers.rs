//! Callers: a person, a program or an agent, and the commands that each may give.

use std::process::Stdio;

use crate::harness::{Cli, Run, may_decide};

const MARKERS: &str = include_str!("../../src/agent-markers.txt");

/// Returns a store with a task `deploy` that waits for a decision, and a project file that waits for trust.
fn asking() -> Cli {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", "tasks: [{id: deploy, approval: {ask: 'Now?'}, call: {log: {message: x}}}]");
    cli.run(&["run-all-ready", "--plan", "plan.yaml"]);
    cli.file("taskpawl.toml", "[tools.mine]\ndescription = \"x\"\nargv = [\"true\"]\n");
    cli
}

const DECISIONS: [&[&str]; 5] =
    [&["approve", "deploy"], &["reject", "deploy"], &["trust", "--yes"], &["pin", "set"], &["pin", "remove"]];

/// Asserts that a decision was refused with exit code 7 because of `sign`, and that it changed nothing.
fn refused(cli: &Cli, run: &Run, sign: &str) {
    assert_eq!(run.code, Some(7), "{run}");
    assert!(run.stderr.contains(sign), "{sign}: {run}");
    assert!(cli.run(&["show", "deploy"]).stdout.contains("waits for"), "{run}");
}

#[test]
fn an_agent_decides_nothing_also_at_a_terminal() {
    if !may_decide() {
        return;
    }
    let signs: [(&str, &[&str], &str); 3] = [
        ("CLAUDECODE", &[], "`CLAUDECODE` is set"),
        ("TASKPAWL_ACTOR", &[], "`TASKPAWL_ACTOR` gives the command to an agent"),
        ("NOTHING", &["--actor", "user@host"], "`--actor` gives the command to an agent"),
    ];
    for (variable, flags, sign) in signs {
        let cli = asking().with(variable, "1");
        for decision in DECISIONS {
            refused(&cli, &cli.by_person(&[decision, flags].concat()), sign);
        }
    }
    let cli = asking();
    cli.by_person(&["approve", "deploy"]).ok();
}

#[test]
fn a_program_without_a_terminal_decides_nothing() {
    let cli = asking();
    for decision in DECISIONS {
        let sign = if may_decide() { "is for a person at a terminal" } else { "a run cannot decide" };
        refused(&cli, &cli.run(decision), sign);
    }
}

#[test]
fn each_marker_makes_an_agent() {
    let markers =
        MARKERS.lines().filter_map(|line| line.split(['#', ' ']).next()).filter(|name| !name.is_empty());
    let mut count = 0;
    for marker in markers {
        let cli = Cli::new().with(marker, "1");
        cli.run(&["create", "a", "--id", "a"]).ok();
        let kind = cli.run(&["claim", "a", "--json"]).ok().json()["data"]["claim"]["kind"].clone();
        assert_eq!(kind, "agent", "{marker}");
        count += 1;
    }
    assert_eq!(count, 12);
    let empty = Cli::new().with("CLAUDECODE", "");
    empty.run(&["create", "a", "--id", "a"]).ok();
    let kind = empty.run(&["claim", "a", "--json"]).ok().json()["data"]["claim"]["kind"].clone();
    assert_eq!(kind, if may_decide() { "program" } else { "agent" });
}

/// The command clears its own environment, but that of its parent shell still has the marker.
#[test]
fn an_agent_is_known_by_the_processes_above() {
    if !may_decide() {
        return;
    }
    let cli = asking();
    for decision in DECISIONS {
        let inner = cli.command(&cli.path("work"), decision);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "env -u GEMINI_CLI \"$@\"; exit $?", "sh"]).arg(inner.get_program());
        shell.args(inner.get_args()).current_dir(cli.path("work")).env_clear().env("GEMINI_CLI", "1");
        shell.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let run = Run::of(&decision.join(" "), shell.stdin(Stdio::null()).output().unwrap());
        refused(&cli, &run, "`GEMINI_CLI` is set in process ");
    }
}

#[test]
fn a_run_that_an_agent_starts_at_a_terminal_asks_nobody() {
    if !may_decide() {
        return;
    }
    let cli = asking().with("TERM", "xterm").with("AI_AGENT", "x");
    let run = cli.by_person(&["run-all-ready"]);
    assert_eq!(run.code, Some(3), "{run}");
}

#[test]
fn what_a_person_holds_is_the_persons_whatever_name_others_give() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new();
    for id in ["a", "b"] {
        cli.run(&["create", id, "--id", id]).ok();
    }
    cli.by_person(&["claim", "a"]).ok();
    cli.run(&["claim", "b", "--actor", "user@host"]).ok();
    let attempts: [&[&str]; 4] = [&["done", "a"], &["fail", "a"], &["release", "a"], &["cancel", "a"]];
    let marked = cli.with("OPENCODE", "1");
    for attempt in attempts {
        for actor in [&[][..], &["--actor", "user@host"], &["--actor", "eve"]] {
            let run = marked.run(&[attempt, actor].concat());
            assert_eq!(run.code, Some(7), "{run}");
            assert!(run.stderr.contains("task `a` is held by"), "{run}");
        }
    }
    assert!(marked.run(&["done", "a"]).stderr.contains("held by the person `user@host`"));
    // Claimed under the same actor name, but by an agent.
    marked.run(&["done", "b"]).ok();
    let history = marked.run(&["history"]).ok().stdout;
    for line in ["user@host (program)  a  created", "user@host (person)  a  claimed, attempt 1"] {
        assert!(history.contains(line), "{line}: {history}");
    }
    assert!(history.contains("user@host (agent)  b  done"), "{history}");
}

/// Such tasks need no approval, because the sandbox restricts their programs.
#[test]
fn plans_and_calls_that_an_agent_gives_on_the_command_line_keep_their_origin() {
    let cli = Cli::new().with_programs().with("CLAUDECODE", "1");
    cli.file("plan.yaml", "params: {p: {type: string}}\ntasks: [{id: a, run: 'echo ${{ params.p }}'}]");
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--param", "p=1"]).ok();
    assert!(!run.stdout.contains("approve"), "{run}");
    cli.run(&["create", "b", "--id", "b"]).ok();
    cli.run(&["add-tool-call", "b", "--tool", "log", "--args", r#"{"message": "x"}"#]).ok();
    for (id, origin) in [("a", "plan"), ("b", "cli")] {
        let task = cli.run(&["show", id, "--json"]).ok().json();
        assert_eq!(task["data"]["metadata"]["toolCalls"][0]["origin"], origin, "{task:#}");
    }
}

#[test]
fn decisions_ask_for_the_pin_once_it_is_set() {
    if !may_decide() {
        return;
    }
    let cli = asking().at_a_terminal();
    let typed = |args: &[&str], input: &str| cli.run_in(&cli.path("work"), args, input);
    assert_eq!(typed(&["pin", "set"], "12\n12\n").code, Some(2), "too short");
    assert_eq!(typed(&["pin", "set"], "1234\n1235\n").code, Some(2), "not the same");
    typed(&["pin", "set"], "1234\n1234\n").ok();
    assert!(typed(&["pin"], "").ok().stdout.contains("a PIN is set"));
    for decision in DECISIONS {
        let run = typed(decision, "0000\n");
        assert_eq!(run.code, Some(7), "{run}");
        assert!(run.stderr.contains("wrong PIN"), "{run}");
        // The right PIN in between resets the count: five wrong PINs in a row would lock it.
        typed(&["pin", "set"], "1234\n1234\n1234\n").ok();
    }
    assert!(typed(&["approve", "deploy"], "\n").stderr.contains("none was typed"));
    typed(&["approve", "deploy"], "1234\n").ok();
    assert!(!typed(&["list"], "").stdout.contains("1234"));
    typed(&["pin", "remove"], "1234\n").ok();
    assert!(typed(&["pin"], "").ok().stdout.contains("no PIN is set"));
}

#[test]
fn a_policy_may_require_a_pin() {
    if !may_decide() {
        return;
    }
    let cli = asking();
    cli.policy("[decisions]\npin = \"required\"\n");
    let run = cli.by_person(&["approve", "deploy"]);
    refused(&cli, &run, "policy.toml` line 2 requires one, and none is set");
    assert!(cli.run(&["policy", "list"]).ok().stdout.contains("a PIN is required"));
    cli.policy("[decisions]\npin = \"optional\"\n");
    cli.by_person(&["approve", "deploy"]).ok();
    cli.policy("[decisions]\npin = \"requird\"\n");
    assert_eq!(cli.by_person(&["list"]).code, Some(2));
}
