//! Tests of environment variables that a run passes to its programs.

use crate::harness::Cli;

fn cli() -> Cli {
    Cli::new().with_programs().with("API_KEY", "value-of-key-0123").with("MODE", "fast")
}

#[test]
fn variables_hold_for_one_run_and_suggested_commands_repeat_their_names() {
    let cli = cli();
    cli.file("vars.env", "DB_URL=postgres://user@host\nLEVEL=debug # for now\nPIN_PASS=1234\n");
    cli.file(
        "plan.yaml",
        "name: p
tasks:
- {id: a, run: 'echo $MODE $OTHER $API_KEY $DB_URL $LEVEL $PIN_PASS'}
- {id: b, needs: a, run: 'test -z $API_KEY'}
",
    );
    let run = cli.run(&[
        "run-all-ready",
        "--plan",
        "plan.yaml",
        "--env",
        "MODE",
        "--env",
        "OTHER=a-value",
        "--secret-env",
        "API_KEY",
        "--env-file",
        "vars.env",
    ]);
    let text = format!("{}{}", run.stdout, run.stderr);
    assert!(
        text.contains(
            "variables of this run: API_KEY (redacted), DB_URL (redacted), LEVEL, MODE, OTHER, PIN_PASS (too short to be redacted)"
        ),
        "{text}"
    );
    let words = "--env-file vars.env --env MODE --env OTHER --secret-env API_KEY";
    assert!(text.contains(words), "{text}");
    assert!(!text.contains("a-value") && !text.contains("value-of-key"), "{text}");
    let logs = cli.run(&["logs", "a"]).ok().stdout;
    assert!(logs.contains("fast a-value [redacted:env.API_KEY] [redacted:env.DB_URL] debug 1234"), "{logs}");
    // Without the flags, the command misses what is set here.
    let again = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--fresh"]);
    let text = format!("{}{}", again.stdout, again.stderr);
    assert!(text.contains("the command uses `$API_KEY`, `$MODE`, set here but not passed to it"), "{text}");
    let result = cli.run(&["show", "a", "--json", "--fields", "result"]).ok().stdout;
    assert!(!result.contains("fast"), "{result}");
}

#[test]
fn a_variable_that_cannot_be_passed_is_a_usage_error() {
    let cli = cli();
    cli.file("bad.env", "A=1\nB 'hidden'\n");
    for (args, message) in [
        (["--env", "NOT_SET"], "--env: `NOT_SET` is not set"),
        (["--secret-env", "API_KEY=hidden"], "--secret-env: a value on the command line is visible"),
        (["--env", "A-B=1"], "`A-B` is not a name of a variable"),
        (["--env-file", "bad.env"], "line 2: expected NAME=VALUE"),
    ] {
        let run = cli.run(&["run-all-ready", args[0], args[1]]);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(message) && !run.stderr.contains("hidden"), "{}", run.stderr);
    }
}

#[test]
fn a_run_without_a_required_variable_starts_nothing() {
    let cli = cli();
    let plan = "name: p\nrequires: {env: [MODE, NOT_SET]}\ntasks:\n- {id: a, run: 'echo $MODE > out'}\n";
    cli.file("plan.yaml", plan);
    let check = cli.run(&["plan", "check", "plan.yaml"]);
    assert_eq!(check.code, Some(7));
    assert!(
        check.stdout.contains("plan.yaml:2:11") && check.stdout.contains("`NOT_SET` is not set"),
        "{}",
        check.stdout
    );
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--env", "NOT_SET=1"]);
    assert_eq!(run.code, Some(7), "{}", run.stderr);
    assert!(
        run.stderr.contains("plan `p` requires `MODE`, which its programs do not have"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("--env MODE"), "{}", run.stderr);
    assert!(!cli.path("work/out").exists());
    cli.run(&["run-all-ready", "--env", "NOT_SET=1", "--env", "MODE"]).ok();
    assert!(cli.path("work/out").exists());
    // Nothing is left to run, so nothing is required.
    cli.run(&["run-all-ready"]).ok();
}

#[test]
fn checks_and_dry_runs_know_the_variables_of_the_run() {
    let cli = cli();
    let plan = "name: p\nrequires: {env: [NOT_SET]}\ntasks:\n- {id: a, run: 'echo $NOT_SET'}\n";
    cli.file("plan.yaml", plan);
    cli.file("vars.env", "NOT_SET=1\n");
    let ways: [&[&str]; 2] = [&["plan", "check", "plan.yaml"], &["run-all-ready", "plan.yaml", "--dry-run"]];
    for args in ways {
        let refused = cli.run(args);
        assert_eq!(refused.code, Some(7), "{args:?}: {}", refused.stderr);
        assert!(refused.stdout.contains("`NOT_SET` is not set"), "{}", refused.stdout);
        for more in [["--env", "NOT_SET=1"], ["--env-file", "vars.env"]] {
            cli.run(&[args, &more].concat()).ok();
        }
        let faulty = cli.run(&[args, &["--secret-env", "ALSO_NOT_SET"]].concat());
        assert_eq!(faulty.code, Some(2), "{}", faulty.stderr);
    }
    // A variable that is set here has to be passed: a dry run says what the run would say.
    cli.file("plan.yaml", &plan.replace("NOT_SET", "MODE"));
    cli.run(&["plan", "check", "plan.yaml"]).ok();
    let refused = cli.run(&["run-all-ready", "plan.yaml", "--dry-run"]);
    assert_eq!(refused.code, Some(7), "{}", refused.stdout);
    assert!(refused.stderr.contains("plan `p` requires `MODE`"), "{}", refused.stderr);
    cli.run(&["apply", "plan.yaml"]).ok();
    assert_eq!(cli.run(&["run-all-ready", "--dry-run"]).code, Some(7));
    cli.run(&["run-all-ready", "--dry-run", "--env", "MODE"]).ok();
}

#[test]
fn a_faulty_flag_of_a_run_changes_nothing() {
    let cli = cli();
    cli.file("plan.yaml", "name: p\ntasks:\n- {id: a, run: 'true'}\n");
    let flags: [&[&str]; 5] = [
        &["--env", "NOT_SET"],
        &["--secret-env", "NOT_SET"],
        &["--env-file", "missing.env"],
        &["--format", "bar"],
        &["--format", "ndjson", "--json"],
    ];
    for flags in flags {
        for command in ["run-all-ready", "run"] {
            let run = cli.run(&[&[command, "plan.yaml"], flags].concat());
            assert_eq!(run.code, Some(2), "{command} {flags:?}: {}", run.stderr);
            let list = cli.run(&["list"]);
            assert!(!list.stdout.contains('a'), "{command} {flags:?}: {}", list.stdout);
        }
    }
}

#[test]
fn a_dry_run_refuses_what_the_check_refuses() {
    let cli = cli();
    let plan = "name: p\ntasks:\n- {id: a, run: 'true'}\n- {id: b, needs: a, call: {log: {message: '${{ tasks.a.result.stdot }}'}}}\n";
    cli.file("plan.yaml", plan);
    let run = cli.run(&["run-all-ready", "plan.yaml", "--dry-run"]);
    assert_eq!(run.code, Some(7), "{}", run.stdout);
    assert!(
        run.stdout.contains("has no field `stdot`") && !run.stdout.contains("ends with"),
        "{}",
        run.stdout
    );
    let check = cli.run(&["plan", "check", "plan.yaml"]);
    assert_eq!(run.stdout, check.stdout);
}

const REFERENCES: &str = "name: p
tasks:
- {id: a, call: {exec: {argv: [printf, '%s|', 'x ${{ env.API_KEY }}', '${{ env.MODE }}']}}}
- {id: b, run: 'printf %s ${{ env.MODE }} \"<${{ env.MODE }}>\" && test ${{ env.API_KEY }} = \"value-of-\"key-0123'}
- {id: c, call: {write_file: {path: out, content: 'mode=${{ env.MODE }}'}}}
";

#[test]
fn references_to_variables_are_stored_and_values_are_not() {
    let cli = cli().with("MODE", "fa'st $HOME");
    cli.file("plan.yaml", REFERENCES);
    let check = cli.run(&["plan", "check", "plan.yaml"]).ok();
    assert!(!check.stdout.contains("error"), "{}", check.stdout);
    let refused = cli.run(&["run-all-ready", "plan.yaml", "--env", "MODE"]);
    assert_eq!(refused.code, Some(7), "{}", refused.stderr);
    assert!(refused.stderr.contains("plan `p` requires `API_KEY`"), "{}", refused.stderr);
    assert!(!cli.path("work/out").exists());
    let run = cli.run(&["run-all-ready", "plan.yaml", "--env", "MODE", "--secret-env", "API_KEY"]).ok();
    assert!(!run.stdout.contains("value-of-key"), "{}", run.stdout);
    let logs = cli.run(&["logs", "a"]).ok().stdout;
    assert!(logs.contains("x [redacted:env.API_KEY]|fa'st $HOME|"), "{logs}");
    let logs = cli.run(&["logs", "b"]).ok().stdout;
    assert!(logs.contains("fa'st $HOME<fa'st $HOME>"), "{logs}");
    let text = std::fs::read_to_string(cli.path("work/out")).unwrap();
    assert_eq!(text, "mode=fa'st $HOME");
    for id in ["a", "b", "c"] {
        let args = cli.run(&["show", id, "--json", "--fields", "metadata.toolCalls"]).ok().stdout;
        assert!(
            args.contains("env.MODE") && !args.contains("mode=fa") && !args.contains("value-of-key"),
            "{args}"
        );
    }
    let history = cli.run(&["history", "--json"]).ok().stdout;
    assert!(!history.contains("fa'st") && !history.contains("value-of-key"), "{history}");
}

#[test]
fn a_plan_that_names_an_unset_variable_is_refused_where_it_stands() {
    let cli = cli();
    let plan = "name: p\ntasks:\n- id: a\n  call: {log: {message: 'on ${{ env.NOT_SET }}'}}\n";
    cli.file("plan.yaml", plan);
    let check = cli.run(&["plan", "check", "plan.yaml"]);
    assert_eq!(check.code, Some(7));
    assert!(
        check.stdout.contains("plan.yaml:4:16") && check.stdout.contains("`NOT_SET` is not set"),
        "{}",
        check.stdout
    );
    cli.run(&["plan", "check", "plan.yaml", "--env", "NOT_SET=1"]).ok();
    let run = cli.run(&["run-all-ready", "plan.yaml"]);
    assert_eq!(run.code, Some(7));
    assert!(
        run.stderr.contains("requires `NOT_SET`") && run.stderr.contains("--env NOT_SET"),
        "{}",
        run.stderr
    );
    for (text, message) in [
        ("when: '${{ env.MODE == 1 }}', run: ls", "`env.MODE` must be the whole expression"),
        ("when: '${{ env.MODE }}', run: ls", "`env.MODE` is only allowed in the arguments of a call"),
        (
            "forEach: {in: ['${{ env.MODE }}']}, run: ls",
            "`env.MODE` is only allowed in the arguments of a call",
        ),
        ("call: {log: {message: '${{ env.MODE | upper }}'}}", "`env.MODE` must be the whole expression"),
        ("run: 'echo ${{ env.MODE | raw }}'", "`env.MODE` must be the whole expression"),
        ("call: {log: {message: '${secret:env.MODE}'}}", "write `${{ env.MODE }}`"),
        ("call: {log: {message: '${{ env[\"A-B\"] }}'}}", "is not a name of an environment variable"),
    ] {
        cli.file("bad.yaml", &format!("tasks:\n- {{id: a, {text}}}\n"));
        let check = cli.run(&["plan", "check", "bad.yaml"]);
        assert_eq!(check.code, Some(7), "{text}: {}", check.stdout);
        assert!(check.stdout.contains(message), "{text}: {}", check.stdout);
    }
}

#[test]
fn cached_results_hold_for_the_value_of_a_variable() {
    let cli = cli();
    cli.file("in", "1");
    let plan = "name: p\ntasks:\n- {id: a, cache: {inputs: [in]}, run: 'echo ${{ env.MODE }} >> out'}\n";
    cli.file("plan.yaml", plan);
    let lines = || std::fs::read_to_string(cli.path("work/out")).unwrap();
    for (mode, expected) in [("slow", "slow\n"), ("slow", "slow\n"), ("fast", "slow\nfast\n")] {
        let env = format!("MODE={mode}");
        cli.run(&["run-all-ready", "plan.yaml", "--fresh", "--env", &env]).ok();
        assert_eq!(lines(), expected);
    }
}

#[test]
fn names_of_items_do_not_show_the_secrets_of_the_run() {
    // The elements come with the plan, out of a result, and put together from two results that show nothing by themselves.
    let plan = "\
name: p
tasks:
- {id: literal, name: Deploy, forEach: {in: [value-of-key-0123, other]}, run: 'true'}
- {id: hosts, run: 'echo $API_KEY; echo open'}
- {id: read, name: Visit, needs: hosts, forEach: {in: '${{ tasks.hosts.result.stdout | lines }}'}, run: 'true'}
- {id: a, run: 'echo first-half-'}
- {id: b, run: 'echo second-half'}
- id: joined
  name: Join
  needs: [a, b]
  forEach: {in: ['${{ tasks.a.result.stdout | trim }}${{ tasks.b.result.stdout | trim }}']}
  run: 'true'
";
    let names = |flags: &[&str]| {
        let cli = cli().with("PARTS", "first-half-second-half");
        cli.file("plan.yaml", plan);
        let run = cli.run(&[&["run-all-ready", "--plan", "plan.yaml"], flags].concat());
        let views = ["list", "ready", "graph", "history", "runs", "status"];
        let views = views.map(|view| cli.run(&[view]).ok().stdout).concat();
        let all = ["literal.0", "read.0", "read.1", "joined.0"].map(|id| {
            let task = cli.run(&["show", id, "--json"]).ok().json();
            task["data"]["name"].as_str().unwrap().to_owned()
        });
        (format!("{run}{views}"), all)
    };
    // The control: without the flag the elements are no secrets.
    let (_, open) = names(&[]);
    assert_eq!(
        (open[0].as_str(), open[3].as_str()),
        ("Deploy [value-of-key-0123]", "Join [first-half-second-half]")
    );
    let (text, redacted) = names(&["--secret-env", "API_KEY", "--secret-env", "PARTS"]);
    assert_eq!(
        redacted,
        [
            "Deploy [[redacted:env.API_KEY]]",
            "Visit [[redacted:env.API_KEY]]",
            "Visit [open]",
            "Join [[redacted:env.PARTS]]"
        ]
    );
    assert!(!text.contains("value-of-key") && !text.contains("first-half-second"), "{text}");
}
