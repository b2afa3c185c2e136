//! Tests of `prune`, and of the hints of other commands about pruned data.

use crate::harness::Cli;

fn cli() -> Cli {
    let cli = Cli::new().with_programs();
    cli.run(&["create", "Build", "--id", "build", "--run", "echo built"]).ok();
    cli.run(&["run-all-ready", "-q"]).ok();
    cli
}

#[test]
fn prune_says_what_goes_and_others_say_what_is_gone() {
    let cli = cli();
    let mut session = cli.session(&[
        &["prune"],
        &["prune", "--older-than", "soon"],
        &["prune", "--older-than", "30d"],
        &["prune", "--quota", "1GiB"],
        &["prune", "--quota", "0", "--dry-run"],
        &["prune", "--quota", "0"],
        &["logs", "build"],
        &["logs", "build", "--raw", "-q"],
        &["runs", "--fields", "exit,outputPrunedAt"],
    ]);
    let run = cli.run(&["runs", "--json"]).json()["data"][0]["id"].as_str().unwrap().to_owned();
    let cli = cli.with("TASKPAWL_TEST_NOW", "2026-03-04T05:06:07Z");
    session.push_str(&cli.session(&[
        &["prune", "--older-than", "30d", "--json"],
        &["prune", "--older-than", "30d"],
        &["runs"],
        &["logs", "build"],
        &["undo", "1"],
    ]));
    let history = cli.run(&["history", "--run", &run[..8]]).to_string();
    insta::assert_snapshot!((session + &history).replace(&run, "[RUN]").replace(&run[..8], "[RUN]"));
}

#[test]
fn a_quota_in_the_configuration_holds_at_the_end_of_each_run() {
    let cli = cli();
    cli.file("taskpawl.toml", "[output]\nquota = \"4B\"\n");
    cli.run(&["create", "Second", "--id", "second", "--run", "echo x"]).ok();
    insta::assert_snapshot!(cli.session(&[
        &["config", "get", "output.quota"],
        &["run-all-ready", "-q", "--color", "never"],
        &["history", "-n", "1"],
        &["logs", "second"],
    ]));
    cli.run(&["create", "Third", "--id", "third", "--run", "echo three"]).ok();
    let said = cli.run(&["run-all-ready", "--format", "plain"]).stderr;
    let last = said.lines().find(|line| line.starts_with("removed"));
    assert!(last.is_some_and(|line| line.ends_with(": the quota is 4 bytes")), "{said}");
    for (text, problem) in [
        ("[output]\nquota = \"much\"", "quota"),
        ("[output]\nsize = 1", "output.size"),
        ("output = 1", "output"),
    ] {
        cli.file("taskpawl.toml", text);
        let error = cli.run(&["config", "list"]);
        assert!(error.code == Some(2) && error.stderr.contains(problem), "{error}");
    }
}

#[test]
fn changes_to_caches_are_named_and_removed() {
    let cli = cli();
    let caches = cli.path("tasks.db.files/private/caches/0/cache/changes");
    std::fs::create_dir_all(&caches).unwrap();
    std::fs::write(caches.join("package"), vec![1; 2 << 20]).unwrap();
    let noted = cli.run(&["doctor"]).to_string();
    assert!(noted.contains("of at most 8.0 GiB"), "{noted}");
    let dry = cli.run(&["prune", "--caches", "--dry-run", "--json"]).ok().json()["data"]["caches"].clone();
    assert!(dry["bytes"].as_u64() >= Some(2 << 20) && dry["isRemoved"] == false, "{dry}");
    assert!(caches.exists());
    let removed = cli.run(&["prune", "--caches"]).ok();
    assert!(removed.stderr.contains("of changes to caches") && !caches.exists(), "{removed}");
    assert!(!cli.run(&["doctor"]).to_string().contains("of at most 8.0 GiB"));
}
