//! Views on terminals of 60, 80 and 120 columns.

use crate::harness::Cli;
use crate::terminal::on_terminal;

const PLAN: &str = r#"
name: release
tasks:
  - {id: sources, run: "echo ok"}
  - id: lint
    name: Check the style of all sources
    run: |
      echo "error: could not compile because of 1 previous error; run with --verbose to see the command line" >&2
      exit 3
  - {id: unit-tests-of-the-command-line, needs: sources, call: {fail: {message: "2 of 340 tests failed, and both of them are about the width of a terminal"}}}
  - id: all-tests
    name: Run the tests of all crates on a machine of their own
    needs: [unit-tests-of-the-command-line, lint]
    run: "true"
  - {id: sign, name: A person reads the changelog and says whether it is complete, needs: sources}
  - {id: publish, needs: [all-tests, sign], run: "true"}
"#;

/// Returns what a command shows at each width. No line may be wider, unless one word is.
fn at_widths(cli: &Cli, args: &[&str]) -> String {
    let at = |width: usize| {
        let text = on_terminal(cli, &width.to_string(), args);
        for line in text.lines() {
            let is_one_word = !line.trim().contains(' ');
            assert!(line.chars().count() <= width || is_one_word, "{width}: {line}");
        }
        format!("── {width} columns\n{text}")
    };
    [60, 80, 120].map(at).concat()
}

#[test]
fn views_fit_the_terminal() {
    let cli = Cli::new().with_programs().with("NO_COLOR", "1");
    cli.file("plan.yaml", PLAN);
    // One task at a time, so that the history has one order.
    cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet", "--jobs", "1"]);
    let id = cli.run(&["runs", "--json"]).ok().json()["data"][0]["id"].as_str().unwrap().to_owned();
    cli.run(&["claim", "sign"]).ok();
    let views: [(&str, &[&str]); 8] = [
        ("runs", &["runs"]),
        ("run", &["runs", &id]),
        ("history", &["history"]),
        ("graph", &["graph"]),
        ("status", &["status"]),
        ("show", &["show", "unit-tests-of-the-command-line"]),
        ("list", &["list"]),
        ("explain", &["explain", "publish"]),
    ];
    for (name, args) in views {
        insta::assert_snapshot!(name, at_widths(&cli, args));
    }
}

const DECISIONS: &str = r#"
name: release
tasks:
  - {id: sources, run: "echo ok"}
  - {id: test, name: Test on each system, needs: sources, idempotent: true, forEach: {in: [linux, macos, windows]}, run: "test ${{ item }} != macos"}
  - {id: upload, name: Upload to the registry, needs: sources, approval: {ask: "Upload version 2 to the registry of all customers?"}, run: "true"}
  - {id: sign, name: A person reads the changelog and says whether it is complete, needs: sources}
  - {id: publish, needs: [test, sign], run: "true"}
  - {id: cleanup, needs: publish, trigger: all_finished, run: "true"}
"#;

#[test]
fn views_of_items_and_decisions_fit_the_terminal() {
    let cli = Cli::new().with_programs().with("NO_COLOR", "1");
    cli.file("plan.yaml", DECISIONS);
    cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet", "--jobs", "1"]);
    cli.file("plan.yaml", &DECISIONS.replace("!= macos", "!= plan9"));
    cli.run(&["apply", "plan.yaml"]).ok();
    let views: [(&str, &[&str]); 6] = [
        ("decisions-status", &["status"]),
        ("decisions-list", &["list"]),
        ("decisions-ready", &["ready"]),
        ("decisions-explain", &["explain", "upload"]),
        ("decisions-history", &["history", "test.1"]),
        ("decisions-graph", &["graph"]),
    ];
    for (name, args) in views {
        insta::assert_snapshot!(name, at_widths(&cli, args));
    }
    // The question of the policy is longer than a line.
    let reason =
        "what is made public cannot be taken back, so a person looks at each of these programs first";
    cli.file(
        "taskpawl-policy.toml",
        &format!("[[rules]]\ndecision = \"ask\"\ntool = \"shell\"\nreason = \"{reason}\"\n"),
    );
    // Its hash and the path of the policy differ each time.
    let questions = at_widths(&cli, &["approve", "--only", "plan:release", "--dry-run"]);
    assert!(questions.contains("  because ") && questions.contains("\n    "), "{questions}");
}
