//! Decisions on a terminal: requests for approval, questions and answers.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::harness::{Cli, Run, may_decide, unhashed};
use crate::terminal::terminal;

const PLAN: &str = "
name: release
tasks:
- id: deploy
  calls:
  - {id: build, shell: {command: 'true'}}
  - {id: push, toolName: exec, args: {argv: [echo, \"to \\e[2Jprod\"]}, approval: required}
- id: paint
  approval: {ask: Which colour?, options: [blue, light green], expires: 10m, onExpiry: blue}
  calls: [{id: c, shell: {command: 'echo ${{ context.approval }}'}}]
";

fn asking() -> Cli {
    let cli = Cli::new().with_programs().at_a_terminal();
    cli.file("release.yaml", PLAN);
    assert_eq!(cli.run(&["run-all-ready", "--plan", "release.yaml", "--quiet"]).code, Some(3));
    cli
}

#[test]
fn without_a_terminal_nobody_decides() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs();
    cli.file("release.yaml", PLAN);
    cli.run(&["run-all-ready", "--plan", "release.yaml", "--quiet"]);
    let refused = cli.session(&[&["approve", "deploy"], &["reject", "deploy", "--json"], &["trust"]]);
    insta::assert_snapshot!(refused, @r#"
    $ taskpawl approve deploy
    ! error: `approve` is for a person at a terminal, and there is none here
    ! hint: give the command in a terminal; a program that embeds taskpawl decides by an `Approver`
    [exit 7]

    $ taskpawl reject deploy --json
    {
      "error": {
        "code": 7,
        "hint": "give the command in a terminal; a program that embeds taskpawl decides by an `Approver`",
        "kind": "refused",
        "message": "`reject` is for a person at a terminal, and there is none here"
      },
      "schemaVersion": 1
    }
    [exit 7]

    $ taskpawl trust
    ! error: `trust` is for a person at a terminal, and there is none here
    ! hint: give the command in a terminal; a program that embeds taskpawl decides by an `Approver`
    [exit 7]
    "#);
    // `--dry-run` decides nothing, so it needs no person. A terminal as a stream is not enough; it has to be the
    // controlling terminal.
    cli.run(&["approve", "--only", "plan:release", "--dry-run"]).ok();
    // For a named task these options are refused, so that a preview cannot be mistaken for an approval.
    for option in ["--dry-run", "--yes"] {
        assert_eq!(cli.run(&["approve", "deploy", option]).code, Some(2), "{option}");
    }
    let waits = cli.run(&["show", "deploy", "--json", "--fields", "status"]).ok().json();
    assert_eq!(waits["data"]["status"], "blocked");
    let (_person, program) = terminal();
    let mut command = cli.command(&cli.path("work"), &["approve", "deploy"]);
    command.stdin(program.try_clone().unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(7));
    assert_eq!(cli.by_person(&["approve", "deploy"]).code, Some(0));
}

#[test]
fn what_waits_is_shown_with_the_commands_that_decide() {
    let cli = Cli::new().with_programs();
    cli.file("release.yaml", PLAN);
    let summary = cli.run(&["run-all-ready", "--plan", "release.yaml", "--quiet"]);
    insta::assert_snapshot!(unhashed(&format!(
        "{summary}\n{}",
        cli.session(&[&["list"], &["ready"], &["show", "deploy"], &["show", "paint"], &["explain", "paint"]])
    )));
}

#[test]
fn a_decision_lets_a_task_go_on() {
    if !may_decide() {
        return;
    }
    let cli = asking();
    insta::assert_snapshot!(unhashed(&cli.session(&[
        &["approve", "paint"],
        &["approve", "paint", "--answer", "lightgreen"],
        &["approve", "deploy", "--hash", "00000000"],
        &["approve", "deploy", "--args", "[1]"],
        &["approve", "deploy", "--args", "{\"argv\": [\"echo\", \"staging\"]}"],
        &["reject", "paint", "--reason", "no paint"],
        &["run-all-ready", "--quiet"],
        &["approve", "deploy"],
        &["history", "deploy"],
        &["show", "deploy", "--fields", "status,result.stdout,metadata.context"],
    ])));
}

#[test]
fn many_are_shown_before_they_are_approved() {
    if !may_decide() {
        return;
    }
    let cli = asking();
    insta::assert_snapshot!(unhashed(&cli.session(&[
        &["approve", "--only", "plan:release"],
        &["approve", "--only", "plan:release", "--dry-run"],
        &["approve", "--only", "plan:release", "--yes"],
        &["approve", "--only", "plan:release", "--yes"],
        &["approve", "--only", "plan:release", "--answer", "blue", "--yes", "--quiet"],
    ])));
    assert_eq!(cli.run(&["run-all-ready", "--quiet"]).code, Some(0));
}

/// Questions of the policy whose calls are known do not stop the run.
#[test]
fn questions_of_the_policy_are_answered_before_the_run() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs().at_a_terminal();
    cli.file(
        "taskpawl-policy.toml",
        "[[rules]]\ndecision = \"ask\"\ntool = \"shell\"\nreason = \"it is new\"\n",
    );
    cli.file(
        "p.yaml",
        "
name: p
tasks:
- {id: first, call: {write_file: {path: a.txt, content: x}}}
- {id: known, needs: first, run: echo known}
- {id: open, needs: first, run: 'echo ${{ tasks.first.result.bytes }}'}
",
    );
    insta::assert_snapshot!(unhashed(&cli.session(&[
        &["apply", "p.yaml", "--quiet"],
        &["approve", "--only", "plan:p", "--dry-run"],
        &["approve", "--only", "plan:p", "--yes"],
        &["history", "known"],
        &["run-all-ready", "--quiet"],
        &["list", "--fields", "id,status"],
    ])));
}

#[test]
fn a_run_of_another_process_goes_on_when_somebody_decides() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs();
    cli.file("release.yaml", PLAN);
    let mut command = cli.command(
        &cli.path("work"),
        &["run-all-ready", "--plan", "release.yaml", "--wait", "--format", "ndjson"],
    );
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let (mut text, mut buffer, mut decided) = (String::new(), [0; 4096], false);
    while let Ok(count @ 1..) = stdout.read(&mut buffer) {
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        if text.matches("\"type\":\"asked\"").count() == 2 && !decided {
            decided = true;
            cli.by_person(&["approve", "deploy"]).ok();
            cli.by_person(&["approve", "paint", "--answer", "blue"]).ok();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    assert!(cli.run(&["list", "--status", "done", "-q"]).stdout.contains("paint"));
}

#[test]
fn a_person_at_the_terminal_is_asked() {
    let cli = Cli::new().with_programs().with("TERM", "xterm").with("NO_COLOR", "1").at_a_terminal();
    cli.file("release.yaml", PLAN);
    let (mut person, program) = terminal();
    let mut command = cli.command(&cli.path("work"), &["run-all-ready", "--plan", "release.yaml"]);
    command.stdin(program.try_clone().unwrap()).stdout(Stdio::null()).stderr(program);
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut text, mut buffer, mut answered) = (String::new(), [0; 4096], 0);
    while let Ok(count @ 1..) = person.read(&mut buffer) {
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        // Answers each question after it appears. The first answer is invalid, which makes the run ask again.
        let questions = text.matches("[?] show: ").count();
        if questions > answered {
            answered = questions;
            let is_about_paint = text.rfind("Which colour?") > text.rfind("push  exec");
            let line: &[u8] = match (is_about_paint, questions) {
                (_, 1) => b"maybe\n",
                (true, _) => b"2\n",
                (false, _) => b"a\n",
            };
            person.write_all(line).unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    assert!(text.contains("unknown choice") && !text.contains("\u{1b}[2Jprod"), "{text}");
    let shown = cli.run(&["show", "paint", "--fields", "result.stdout"]);
    assert!(shown.stdout.contains("light green"), "{shown}");
}

#[test]
fn a_person_is_told_what_the_choices_do() {
    let cli = Cli::new().with_programs().with("TERM", "xterm").with("NO_COLOR", "1").at_a_terminal();
    cli.file("release.yaml", "tasks: [{id: ask, approval: required, run: echo}]");
    let (mut person, program) = terminal();
    let mut command = cli.command(&cli.path("work"), &["run-all-ready", "--plan", "release.yaml"]);
    command.stdin(program.try_clone().unwrap()).stdout(Stdio::null()).stderr(program);
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut text, mut buffer, mut answered) = (String::new(), [0; 4096], 0);
    while let Ok(count @ 1..) = person.read(&mut buffer) {
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let questions = text.matches("[?] show: ").count();
        if questions > answered {
            answered = questions;
            person.write_all(if questions == 1 { b"?\n" } else { b"r not today\n" }).unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    for line in [
        "  the whole question is above",
        "  r         cancels it; text after `r` is the reason",
        "  s         skips the task: tasks that depend on it may start",
        "  l         leaves it open, for a later run or for `taskpawl approve ask`",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(cli.run(&["show", "ask"]).stdout.contains("not today"));
}

/// The kernel would stop a background process that reads from its terminal.
#[test]
fn a_run_in_the_background_asks_nobody() {
    let cli = Cli::new().with_programs().with("TERM", "xterm").with("NO_COLOR", "1");
    cli.file("release.yaml", PLAN);
    let (mut person, program) = terminal();
    let run = cli.command(&cli.path("work"), &[]);
    let mut session = Command::new("setsid");
    session
        .args(["--ctty", "sh", "-mc", "\"$@\" & wait $!; echo code $?", "sh"])
        .arg(env!("CARGO_BIN_EXE_taskpawl"));
    session.args(["run-all-ready", "--plan", "release.yaml"]).current_dir(cli.path("work")).env_clear();
    session.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    session.stdin(program.try_clone().unwrap()).stdout(Stdio::piped()).stderr(program);
    let child = session.spawn().unwrap();
    drop(session);
    let mut text = Vec::new();
    // Linux reports the end of a pseudo-terminal as an error (EIO), not as the end of file.
    drop(person.read_to_end(&mut text));
    let run = Run::of("run-all-ready", child.wait_with_output().unwrap());
    let text = String::from_utf8_lossy(&text);
    assert!(run.stdout.ends_with("code 3\n"), "{run}\n{text}");
    assert!(!text.contains("[?] show"), "{text}");
}

#[test]
fn a_person_says_yes_to_everything_that_was_shown() {
    if !may_decide() {
        return;
    }
    let cli = asking();
    let (mut person, program) = terminal();
    let args = ["approve", "--only", "plan:release", "--answer", "blue"];
    let mut command = cli.command(&cli.path("work"), &args);
    command.stdin(program.try_clone().unwrap()).stdout(Stdio::piped()).stderr(program);
    let child = command.spawn().unwrap();
    drop(command);
    person.write_all(b"yes\n").unwrap();
    let run = Run::of("approve", child.wait_with_output().unwrap());
    assert!(run.stdout.contains("Which colour?") && run.stdout.contains("todo"), "{run}");
    assert_eq!(cli.run(&["run-all-ready", "--quiet"]).code, Some(0));
}

#[test]
fn the_configuration_names_who_is_told() {
    let cli = Cli::new().with_programs();
    std::fs::create_dir_all(cli.path(".config/taskpawl")).unwrap();
    let tell = "[run]\nnotify = [\"sh\", \"-c\", \"cat > said-$TASKPAWL_EVENT\"]\n";
    std::fs::write(cli.path(".config/taskpawl/config.toml"), tell).unwrap();
    cli.file("release.yaml", PLAN);
    cli.run(&["run-all-ready", "--plan", "release.yaml", "--quiet"]);
    let said = |event: &str| std::fs::read_to_string(cli.path("work").join(format!("said-{event}"))).unwrap();
    assert!(said("waiting").contains("\"event\":\"waiting\"") && said("finished").contains("\"exit\":3"));
    cli.file("taskpawl.toml", "[run]\nnotify = \"sh\"\n");
    insta::assert_snapshot!(cli.run(&["create", "x"]));
}

/// A plan may name a program that is notified. It runs with the plan, so a review of the plan must show it.
#[test]
fn the_program_that_a_plan_tells_is_seen_before_it_runs() {
    let cli = Cli::new();
    cli.file(
        "plan.yaml",
        "name: told\nnotify: [sh, -c, 'cat > said']\ntasks: [{id: a, call: {log: {message: x}}}]",
    );
    let line = "sh -c 'cat > said' (`notify` of plan `told`, written by `plan`)";
    let dry = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--dry-run"]).ok();
    assert!(dry.stdout.contains(&format!("tells by a program\n  {line}\n")), "{dry}");
    cli.run(&["apply", "plan.yaml"]).ok();
    cli.run(&["create", "other", "--id", "other"]).ok();
    let dry = cli.run(&["run-all-ready", "--dry-run"]).ok();
    assert!(dry.stdout.contains(line), "{dry}");
    let json = cli.run(&["run-all-ready", "--dry-run", "--json"]).ok().json();
    assert_eq!(json["data"]["notify"][0]["argv"][2], "cat > said", "{json}");
    assert_eq!(json["data"]["waves"][0]["tasks"][0]["task"], "a", "{json}");
    let shown = cli.run(&["show", "a"]).ok();
    assert!(shown.stdout.contains(&format!("tells       {line}\n")), "{shown}");
    assert!(!cli.run(&["show", "other"]).ok().stdout.contains("tells"));
    let shown = cli.run(&["show", "a", "--json"]).ok().json();
    assert_eq!(
        (&shown["data"]["id"], &shown["data"]["notify"]),
        (&serde_json::json!("a"), &json["data"]["notify"])
    );
    assert!(cli.run(&["show", "other", "--json"]).ok().json()["data"].get("notify").is_none());
    let history = cli.run(&["history"]).ok();
    let applied = "plan told applied: 1 created, 0 changed, 0 pruned, tells sh -c 'cat > said'\n";
    assert!(history.stdout.contains(applied), "{history}");
    let changed = cli.run(&["history", "--json"]).ok().json();
    let is_applied = |event: &&serde_json::Value| event["type"] == "applied";
    let found = changed["data"].as_array().unwrap().iter().find(is_applied).unwrap();
    assert_eq!(found["notify"], serde_json::json!(["sh", "-c", "cat > said"]), "{found}");
    cli.run(&["done", "other"]).ok();
    cli.policy("[[rules]]\ndecision = \"deny\"\nargv = \"sh\"\n");
    let dry = cli.run(&["run-all-ready", "--dry-run"]).ok();
    assert!(dry.stdout.contains(", which is not run: ") && dry.stdout.contains("denies `sh`"), "{dry}");
    // The caller has already applied the plan, so that advice would be useless.
    let run = cli.run(&["run-all-ready"]).ok();
    let way = "remove it from the plan, or set it as `run.notify` in your own configuration";
    assert!(run.stderr.contains("`notify` of plan `told` is not run") && run.stderr.contains(way), "{run}");
    assert!(!run.stderr.contains("if a person applies"), "{run}");
}

#[test]
fn a_program_that_a_task_runs_does_not_decide() {
    let cli = asking().with("TASKPAWL_TASK", "other");
    for verb in ["approve", "reject"] {
        let run = cli.run(&[verb, "paint"]);
        assert_eq!(run.code, Some(7), "{run}");
        assert!(run.stderr.contains("a run cannot decide about tasks"), "{run}");
    }
}

#[test]
fn a_program_that_a_task_runs_takes_no_approval_away() {
    let cli = asking().with("TASKPAWL_TASK", "other");
    cli.file("stripped.yaml", "name: release\ntasks: [{id: paint, run: 'true'}]");
    let ways: [&[&str]; 3] = [
        &["update", "paint", "--unset", "approval"],
        &["apply", "stripped.yaml", "--moved"],
        &["run-all-ready", "--plan", "stripped.yaml", "--moved"],
    ];
    for way in ways {
        let run = cli.run(way);
        assert_eq!(run.code, Some(7), "{run}");
        assert!(run.stderr.contains("leave every `approval` as it is, or ask a person"), "{run}");
    }
}

#[test]
fn a_program_that_a_task_runs_lets_nothing_start_without_its_approval() {
    let cli = asking();
    cli.file("after.yaml", "name: after\ntasks: [{id: tell, needs: [deploy], run: 'true'}, {id: other}]");
    cli.run(&["apply", "after.yaml"]).ok();
    let within = cli.with("TASKPAWL_TASK", "other");
    let ways: [&[&str]; 5] = [
        &["skip", "deploy"],
        &["delete", "deploy", "tell"],
        &["remove-dependency", "tell", "deploy"],
        &["update", "tell", "--trigger", "all_finished"],
        &["add-subtask", "other", "--existing", "tell"],
    ];
    for way in ways {
        let run = within.run(way);
        assert_eq!(run.code, Some(7), "{run}");
        assert!(run.stderr.contains("only people and approvers may"), "{run}");
    }
    within.run(&["cancel", "deploy"]).ok();
    assert_eq!(within.run(&["remove-dependency", "tell", "deploy"]).code, Some(7));
}

/// The check follows the ancestors of the process, which cleaning the environment does not change.
#[test]
fn a_program_that_hides_where_it_comes_from_does_not_decide() {
    let cli = asking();
    let program = env!("CARGO_BIN_EXE_taskpawl");
    let hidden = format!("env -i HOME=$HOME setsid {program} approve paint --answer blue");
    cli.file("hidden.yaml", &format!("tasks: [{{id: sly, run: '{hidden}'}}]"));
    cli.run(&["run-all-ready", "--plan", "hidden.yaml"]);
    let said = cli.run(&["logs", "sly"]);
    assert!(said.stdout.contains("a run cannot decide about tasks"), "{said}");
}

#[test]
fn arguments_that_the_tool_would_refuse_are_not_approved() {
    if !may_decide() {
        return;
    }
    let cli = asking();
    let run = cli.run(&["approve", "deploy", "--args", r#"{"argw": ["echo"]}"#]);
    assert_eq!(run.code, Some(7), "{run}");
    assert!(run.stderr.contains("argw"), "{run}");
}
