//! Tests of `undo`, and of the history as a record of all changes and their actors.

use serde_json::Value;

use crate::harness::Cli;

fn cli() -> Cli {
    let cli = Cli::new().with_programs();
    for args in [
        &["create", "Build", "--id", "build", "--run", "true"][..],
        &["create", "Review", "--id", "review", "--needs", "build"],
        &["run-all-ready", "-q"],
        &["done", "review", "--actor", "ann@desk", "--note", "fine"],
    ] {
        cli.run(args);
    }
    cli
}

#[test]
fn undo_takes_back_what_was_done_last_and_tells_it() {
    insta::assert_snapshot!(cli().session(&[
        &["undo", "--dry-run"],
        &["undo", "--actor", "ann@desk", "--dry-run"],
        &["undo", "--actor", "ann@desk"],
        &["undo", "--actor", "ann@desk"],
        &["history", "review"],
        &["undo", "12"],
        &["cancel", "review"],
        &["create", "New", "--id", "new", "-q"],
        &["undo"],
        &["undo", "99"],
        &["undo", "4", "--json"],
        &["update", "review", "--name", "Look", "-q"],
        &["undo", "--json"],
        &["undo", "--dry-run", "--json", "19"],
    ]));
}

#[test]
fn the_history_is_a_record_for_auditors() {
    let cli = cli();
    insta::assert_snapshot!(cli.session(&[
        &["history", "--by", "ann@desk"],
        &["history", "--by", "ann@desk", "--limit", "1", "--json"],
        &["history", "--since", "2026-01-02", "--limit", "2"],
        &["history", "--since", "2027-01-02T00:00:00Z", "--json"],
        &["history", "--since", "yesterday"],
        &["history", "--run", "nobody"],
        &["history", "--format", "ndjson", "--limit", "2"],
        &["history", "--format", "ndjson", "--fields", "revision,type", "--limit", "0"],
        &["history", "--json", "--limit", "0", "--fields", "revision"],
        &["history", "--json", "--format", "ndjson"],
    ]));
    let runs = cli.run(&["runs", "--json"]).ok().json();
    let run = runs["data"][0]["id"].as_str().unwrap();
    let of_run = cli.run(&["history", "--run", &run[..6], "--limit", "0", "--json"]).ok().json();
    let events = of_run["data"].as_array().unwrap();
    assert!(events.len() >= 5 && events.iter().all(|event| event["run"] == run), "{of_run}");
}

#[test]
fn the_whole_history_is_exported_in_pieces() {
    let cli = Cli::new();
    let tasks: Vec<String> = (0..6000).map(|n| format!("{{\"id\": \"t{n}\"}}")).collect();
    let plan = cli.file("plan.json", &format!("{{\"tasks\": [{}]}}", tasks.join(",")));
    cli.run(&["apply", plan.to_str().unwrap(), "-q"]).ok();
    let lines = cli.run(&["history", "--format", "ndjson", "--limit", "0"]).ok().stdout;
    let revisions = lines.lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(event.get("ready").is_none() && event["actor"] == "user@host");
        event["revision"].as_u64().unwrap()
    });
    assert_eq!(revisions.collect::<Vec<_>>(), (1..=6001).collect::<Vec<_>>());
    let whole = cli.run(&["history", "--json", "--limit", "0"]).ok().json();
    assert_eq!(whole["data"].as_array().unwrap().len(), 6001);
    assert_eq!(whole["page"]["count"], 6001);
}

#[test]
fn deleted_tasks_keep_their_history() {
    let cli = cli();
    cli.run(&["create", "Draft", "--id", "draft"]).ok();
    cli.run(&["delete", "draft"]).ok();
    insta::assert_snapshot!(cli.session(&[&["history", "draft"], &["history", "draf"]]));
}
