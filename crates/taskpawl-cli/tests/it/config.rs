//! The layers of the configuration.

use std::fs;

use crate::harness::Cli;

fn user_file(cli: &Cli, content: &str) {
    let dir = cli.path(".config/taskpawl");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), content).unwrap();
}

#[test]
fn each_layer_goes_over_the_one_before() {
    let cli = Cli::new().with("TASKPAWL_LEASE", "2h");
    insta::assert_snapshot!("defaults", cli.session(&[&["config", "list", "--origin"], &["config", "path"]]));
    cli.file(
        "taskpawl.toml",
        "# of the project\nactor = \"project\"\njobs = 4\nlease = \"10m\"\nlimit = 3\n",
    );
    user_file(&cli, "actor = \"ada\"\nlimit = 2\n");
    insta::assert_snapshot!(cli.session(&[
        &["config", "list", "--origin"],
        &["config", "list"],
        &["config", "list", "--actor", "eve", "--color", "never", "--json"],
        &["config", "get", "actor"],
        &["config", "get", "lease", "--json"],
        &["config", "get", "leese"],
        &["config", "get", "xyz"],
        &["config", "path", "--json"],
    ]));
    for name in ["a", "b", "c"] {
        cli.run(&["create", name, "--id", name]).ok();
    }
    assert_eq!(cli.run(&["list", "--fields", "id"]).ok().json()["data"].as_array().unwrap().len(), 2);
    let claim = cli.run(&["claim", "a", "--json"]).ok().json();
    assert_eq!(claim["data"]["claim"]["actor"], "ada");
    assert_eq!(claim["data"]["claim"]["leaseUntil"], "2026-01-02T05:04:05Z");
}

#[test]
fn a_wrong_file_is_refused_with_the_line() {
    for (content, what) in [
        ("\nactro = \"x\"\n", "misspelt"),
        ("lease = \"soon\"\n", "value"),
        ("jobs = \"4\"\n", "kind"),
        ("jobs = 0\n", "range"),
        ("actor = \n", "syntax"),
        ("colour = \"auto\"\n", "colour"),
    ] {
        let cli = Cli::new();
        cli.file("taskpawl.toml", content);
        insta::assert_snapshot!(what, cli.run(&["list"]));
    }
    let cli = Cli::new().with("TASKPAWL_COLOR", "pink");
    insta::assert_snapshot!("variable", cli.run(&["list", "--json"]));
}
