//! Every class of error: its message, hint and exit code.

use std::fs;

use crate::harness::Cli;

#[test]
fn ids() {
    let cli = Cli::new();
    cli.run(&["create", "One", "--id", "build-lib"]).ok();
    cli.run(&["create", "Two", "--id", "build-app"]).ok();
    insta::assert_snapshot!(cli.session(&[
        &["show", "biuld-lib"],
        &["show", "zzz"],
        &["show", "build"],
        &["show", "build", "--json"],
        &["done", "build-app", "build-lob"],
        &["create", "Three", "--id", "build-lib"],
        &["create", "Three", "--id", "a/b"],
        &["create", "Three", "--needs", "nothing"],
        &["show", ""],
        &["show", "build-l"],
    ]));
}

#[test]
fn refusals() {
    let cli = Cli::new();
    for args in [
        &["create", "A", "--id", "a"][..],
        &["create", "B", "--id", "b", "--needs", "a"],
        &["create", "C", "--id", "c", "--needs", "b"],
        &["create", "Run", "--id", "run", "--run", "true"],
    ] {
        cli.run(args).ok();
    }
    insta::assert_snapshot!(cli.session(&[
        &["done", "b"],
        &["unblock", "a"],
        &["retry", "a"],
        &["done", "run"],
        &["add-dependency", "a", "c"],
        &["add-dependency", "b", "a"],
        &["remove-dependency", "a", "b"],
        &["delete", "a"],
        &["claim", "a", "--actor", "ada"],
        &["done", "a"],
        &["claim", "--next"],
        &["done", "a", "--actor", "ada", "--attempt", "7"],
        &["done", "a", "--actor", "ada", "--json"],
        &["done", "a"],
        &["reopen", "a", "--json"],
        &["create", "D", "--trigger", "any_done"],
        &["update", "b", "--set", "tiemout=\"5m\""],
        &["update", "b", "--timeout", "5 minutes"],
        &["update", "b", "--set", "status=\"done\"", "--json"],
        &["create", "D", "--due", "tomorrow"],
    ]));
}

#[test]
fn usage() {
    let cli = Cli::new();
    insta::assert_snapshot!(cli.session(&[
        &["lsit"],
        &["show"],
        &["list", "--stauts", "todo"],
        &["list", "--status", "dnoe"],
        &["list", "--limit", "many", "--json"],
        &["claim", "a", "--next"],
        &["claim", "a", "--ttl", "soon"],
        &["create", "A", "--context", "nothing"],
        &["create", "A", "--set", "retry={"],
        &["done", "a", "b", "--attempt", "1"],
        &["add-subtask", "a"],
        &["add-subtask", "a", "--existing", "b", "--priority", "low"],
        &["list", "--store"],
        &["list", "--color", "sometimes"],
        &["block", "a"],
    ]));
    let run = Cli::without_store().run(&[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("\nRun:\n"));
    for (name, right) in [("add", "create NAME"), ("ps", "runs"), ("start", "run-all-ready")] {
        let run = cli.run(&[name]);
        assert!(run.code == Some(2) && run.stderr.contains(&format!("hint: `taskpawl {right}`")), "{run}");
    }
}

#[test]
fn stores_that_cannot_be_used() {
    let cli = Cli::new();
    // A commit of this size triggers a checkpoint at once, so the database file is complete without its write-ahead
    // log.
    let tasks: Vec<String> =
        (0..4000).map(|number| format!("{{id: task-{number}, name: {}}}", "x".repeat(400))).collect();
    cli.file("many.yaml", &format!("tasks: [{}]", tasks.join(", ")));
    cli.run(&["apply", "many.yaml"]).ok();
    let whole = fs::read(cli.path("tasks.db")).unwrap();
    let file = |name: &str, content: &[u8]| fs::write(cli.path("work").join(name), content).unwrap();
    file("text.db", b"this is no database, but it is long enough to have a header of one hundred bytes ........................");

    let mut damaged = whole.clone();
    for byte in &mut damaged[4096..] {
        *byte = 0xa5;
    }
    file("damaged.db", &damaged);
    file("truncated.db", &whole[..whole.len() / 2]);
    // Bytes 60 to 63 of an SQLite file are its user version, which holds the version of the schema.
    let mut newer = whole.clone();
    newer[60..64].copy_from_slice(&9999_u32.to_be_bytes());
    file("newer.db", &newer);
    file("whole.db", &whole);
    assert_eq!(
        cli.run(&["list", "--store", "whole.db", "-n", "1", "--json"]).ok().json()["page"]["total"],
        4000
    );
    insta::assert_snapshot!(cli.session(&[
        &["list", "--store", "text.db"],
        &["create", "B", "--store", "text.db"],
        &["list", "--store", "damaged.db"],
        &["list", "--store", "truncated.db"],
        &["create", "B", "--store", "truncated.db"],
        &["list", "--store", "newer.db"],
        &["create", "B", "--store", "newer.db", "--json"],
        &["list", "--store", "absent.db"],
        &["list", "--store", "absent.db", "--json"],
        &["show", "a", "--store", "absent.db"],
        &["list", "--store", "text.db/below.db"],
        &["create", "B", "--store", "text.db/below.db"],
        // The kernel creates no files in `/proc`, not even for root.
        &["create", "B", "--store", "/proc/tasks.db"],
        &["list", "--store", "."],
    ]));
    assert!(fs::read(cli.path("work/newer.db")).unwrap() == newer, "a newer store is left as it is");
    assert!(fs::read(cli.path("work/damaged.db")).unwrap() == damaged, "a damaged store is left as it is");
    assert!(!cli.path("work/absent.db").exists(), "reading makes no store");
}

#[test]
fn the_first_of_many_problems_are_shown_and_the_rest_counted() {
    let cli = Cli::new();
    let wrong = |count: usize, word: fn(usize) -> String| {
        let tasks = (0..count).map(|number| format!("  - {{id: t{number}, priority: {}}}\n", word(number)));
        format!("tasks:\n{}", tasks.collect::<String>())
    };
    let each = |number: usize| format!("soon{number}");
    cli.file("many.yaml", &wrong(400, each));
    let run = cli.run(&["apply", "many.yaml"]);
    let places = |run: &str| run.lines().filter(|line| line.contains("many.yaml:")).count();
    assert_eq!((run.code, places(&run.stderr)), (Some(7), 5), "{run}");
    assert_eq!(run.stderr.lines().last(), Some("  … and 395 more: `--json` lists all of them"), "{run}");
    let all = cli.run(&["apply", "many.yaml", "--json"]).json();
    assert_eq!(all["error"]["problems"].as_array().map(Vec::len), Some(400));
    cli.file("many.yaml", &wrong(5, each));
    let run = cli.run(&["apply", "many.yaml"]);
    assert_eq!((places(&run.stderr), run.stderr.contains("more")), (5, false), "{run}");
    cli.file("many.yaml", &wrong(400, |_| "soon".to_owned()));
    let run = cli.run(&["apply", "many.yaml"]);
    assert_eq!(places(&run.stderr), 1, "{run}");
    assert!(run.stderr.contains("unknown priority `soon`, 400 times"), "{run}");
}

#[test]
fn options_that_would_be_passed_over_are_refused() {
    let cli = Cli::new();
    cli.run(&["create", "A", "--id", "a"]).ok();
    for args in [
        &["explain", "a", "--only", "label:x"][..],
        &["explain", "a", "--limit", "1"],
        &["create", "B", "--run", "true", "--args", "{}"],
        &["policy", "check", "ls", "--args", "{}"],
        &["run-all-ready", "--only", "a", "--fresh"],
        &["approve", "a", "--dry-run"],
    ] {
        let run = cli.run(args);
        assert!(run.code == Some(2) && run.stderr.contains("cannot be used with"), "{run}");
    }
}

#[test]
fn bad_input_is_told_what_where_and_what_next() {
    let cli = Cli::new();
    cli.run(&["create", "A", "--id", "a"]).ok();
    fs::create_dir(cli.path("work/folder")).unwrap();
    fs::write(cli.path("work/latin.yaml"), b"tasks:\n  - {id: a, name: \"\xff\"}\n").unwrap();
    cli.file("empty.yaml", "");
    cli.file("file", "");
    let huge = "99999999999999999999";
    insta::assert_snapshot!(cli.session(&[
        &["apply", "folder"],
        &["apply", "latin.yaml"],
        &["plan", "check", "latin.yaml", "--json"],
        &["apply", "empty.yaml"],
        &["run-all-ready", "--jobs", huge],
        &["list", "--limit", huge],
        &["done", "a", "--attempt", huge],
        &["undo", "last"],
        &["create", "B", "--tool", ""],
        &["policy", "check", ""],
        &["man", "--dir", "file"],
        &["todo", "guide", "session", "--write", "folder"],
        &["todo", "promote", "nothing"],
        &["todo-list", "--agent", "a", "--root", "file"],
    ]));
    assert_eq!(cli.run(&["list", "--json"]).ok().json()["page"]["total"], 1, "nothing was made");
}

#[test]
fn a_run_of_what_is_not_there_leaves_no_record() {
    let cli = Cli::new();
    cli.run(&["create", "A", "--id", "a"]).ok();
    for only in ["nobody", "label:nothing", "plan:nothing"] {
        assert_eq!(cli.run(&["run-all-ready", "--only", only]).code, Some(6), "{only}");
    }
    assert_eq!(cli.run(&["runs", "--json"]).ok().json()["data"], serde_json::json!([]));
    assert_eq!(cli.run(&["history", "--json"]).ok().json()["page"]["count"], 1, "only the task was made");
}
