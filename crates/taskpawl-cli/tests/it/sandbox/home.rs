//! The home directory and the directories for temporary files, as programs see them.

use std::fs;

use super::{call, call_once, error, has_mounts, text};
use crate::harness::{Cli, Run};

#[test]
fn of_the_home_programs_see_tools_and_settings_alone() {
    let cli = Cli::new().with_programs();
    for name in [".local/share/app", ".cache/pip", ".config/git", "src/other"] {
        fs::create_dir_all(cli.path(name)).unwrap();
    }
    for name in ["notes", ".local/share/app/history", ".config/git/ignore", ".editorconfig", "src/other/f"] {
        fs::write(cli.path(name), "plain").unwrap();
    }
    let listed = call(&cli, "ls -A ~", &[]);
    if !has_mounts(&listed) {
        return;
    }
    let names: Vec<&str> = text(&listed, "stdout").lines().collect();
    assert!(
        [".cache", ".config", ".editorconfig", "work"].iter().all(|name| names.contains(name)),
        "{listed}"
    );
    assert!(!names.contains(&"notes") && !names.contains(&"src"), "{listed}");
    for name in [".config/git/ignore", ".editorconfig"] {
        assert_eq!(text(&call(&cli, &format!("cat ~/{name}"), &[]), "stdout"), "plain", "{name}");
    }
    for name in ["notes", ".local/share/app/history"] {
        let denied = call(&cli, &format!("cat ~/{name}"), &[]);
        assert!(error(&denied).contains("No such file"), "{denied}");
        let path = cli.path(name);
        let hint = format!("`--allow-read [HOME]/{name}` shows it");
        assert!(error(&denied).contains(&hint), "{denied}");
        let shown = call(&cli, &format!("cat ~/{name}"), &["--allow-read", path.to_str().unwrap()]);
        assert_eq!(text(&shown, "stdout"), "plain", "{name}");
    }
    // A directory that is named shows all of itself, the home, too, except secrets.
    fs::write(cli.path(".netrc"), "secret").unwrap();
    let home = cli.path("").to_str().unwrap().to_owned();
    let all = call(&cli, "cat ~/notes; cat ~/.netrc || true", &["--allow-read", &home]);
    assert_eq!(text(&all, "stdout"), "plain", "{all}");
}

#[test]
fn changes_to_caches_stay_in_a_layer_of_the_project() {
    let cli = Cli::new().with_programs();
    let files = [".npm/old", ".npm/removed", ".cache/pip/old", ".cache/other/notes"];
    for name in files {
        fs::create_dir_all(cli.path(name).parent().unwrap()).unwrap();
        fs::write(cli.path(name), "before").unwrap();
    }
    let writing = "set -e; printf new > ~/.npm/old; rm ~/.npm/removed; printf new > ~/.cache/pip/new
        mkdir -p ~/.cache/own ~/.m2/repository/a; printf new > ~/.cache/own/a";
    let written = call_once(&cli, writing);
    if !has_mounts(&written) {
        return;
    }
    assert_eq!(written["status"], "succeeded", "{written}");
    for name in files {
        assert_eq!(fs::read_to_string(cli.path(name)).unwrap(), "before", "{name}");
    }
    assert!(
        !cli.path(".cache/own").exists() && !cli.path(".m2").exists() && !cli.path(".cache/pip/new").exists()
    );
    assert!(written["result"]["sandbox"]["gaps"].is_null(), "{written}");
    let reading = "cat ~/.npm/old ~/.cache/pip/new ~/.cache/pip/old ~/.cache/own/a; ls -A ~/.npm ~/.cache ~/.m2/repository";
    let read = text(&call_once(&cli, reading), "stdout").to_owned();
    assert!(read.starts_with("newnewbeforenew"), "{read}");
    assert!(!read.contains("removed") && !read.contains("other"), "{read}");
    // A directory that is named is written itself.
    let npm = cli.path(".npm");
    let direct = call(&cli, "printf direct > ~/.npm/old", &["--allow-write", npm.to_str().unwrap()]);
    assert_eq!(direct["status"], "succeeded", "{direct}");
    assert_eq!(fs::read_to_string(cli.path(".npm/old")).unwrap(), "direct");
}

#[test]
fn a_link_in_the_layer_leads_nothing_elsewhere() {
    let cli = Cli::new().with_programs();
    fs::create_dir_all(cli.path(".cache/pip")).unwrap();
    fs::write(cli.path(".cache/pip/old"), "before").unwrap();
    // The next program's own view of `~/.cache/pip` would be mounted at the target of the link.
    let planted =
        call_once(&cli, "! rmdir ~/.cache/pip; ! mv ~/.cache/pip ~/.cache/x; ln -s /etc ~/.cache/yarn");
    if !has_mounts(&planted) {
        return;
    }
    assert_eq!(planted["status"], "succeeded", "{planted}");
    fs::create_dir_all(cli.path(".cache/yarn")).unwrap();
    let next = call_once(&cli, "cat ~/.cache/pip/old; ls /etc/passwd");
    assert_eq!(text(&next, "stdout"), "before/etc/passwd\n", "{next}");
    assert!(next["result"]["sandbox"]["gaps"].to_string().contains(".cache/yarn"), "{next}");
}

#[test]
fn settings_are_seen_without_their_secrets() {
    let cli = Cli::new().with_programs();
    fs::create_dir_all(cli.path(".config/pip")).unwrap();
    fs::write(cli.path(".npmrc"), "ignore-scripts=true\n//npm.example.org/:_authToken=s3cret\n").unwrap();
    fs::write(cli.path(".config/pip/pip.conf"), "[global]\nindex-url=https://a:s3cret@pip.example.org\n")
        .unwrap();
    let seen = call(&cli, "cat ~/.npmrc ~/.config/pip/pip.conf", &[]);
    if !has_mounts(&seen) {
        return;
    }
    assert_eq!(
        text(&seen, "stdout"),
        "ignore-scripts=true\n[global]\nindex-url=https://pip.example.org\n",
        "{seen}"
    );
    let kept = call(&cli, "echo x >> ~/.npmrc", &[]);
    assert_eq!(kept["status"], "failed", "{kept}");
    let npmrc = cli.path(".npmrc");
    let named = call(&cli, "cat ~/.npmrc", &["--allow-read", npmrc.to_str().unwrap()]);
    // The value itself is redacted in results nowhere: the person named the file.
    assert!(text(&named, "stdout").contains("_authToken=s3cret"), "{named}");
}

/// A directory that is in no directory for temporary files; `None` if this machine has none.
fn outside_of_tmp() -> Option<tempfile::TempDir> {
    let candidates = [Some(env!("CARGO_TARGET_TMPDIR").into()), std::env::home_dir()];
    let is_outside = |path: &std::path::PathBuf| !path.starts_with("/tmp") && !path.starts_with("/var/tmp");
    candidates.into_iter().flatten().filter(is_outside).find_map(|path| tempfile::tempdir_in(path).ok())
}

#[test]
fn programs_of_a_project_share_a_directory_for_temporary_files() {
    let cli = Cli::new().with_programs();
    let Some(project) = outside_of_tmp() else {
        return taskpawl_fuzz::skip("mounts", "a private /tmp", "every directory here is in /tmp");
    };
    let name = format!("taskpawl-test-{}", std::process::id());
    let run = |command: &str| {
        let plan = serde_json::json!({"tasks": [{"id": "a", "run": command}]}).to_string();
        fs::write(project.path().join("plan.json"), plan).unwrap();
        let args = ["run-all-ready", "--plan", "plan.json", "--json", "--redo-changed"];
        let run = Run::of("run", cli.command(project.path(), &args).output().unwrap());
        let call = cli.command(project.path(), &["show", "a", "--json"]).output().unwrap();
        let call = Run::of("show", call).json()["data"]["metadata"]["toolCalls"][0].clone();
        (run, call)
    };
    // The task fails, so its files stay for the next run.
    let both =
        format!("echo x > /tmp/{name}; echo y > /var/tmp/{name}; ls -A /tmp | grep -v taskpawl-; exit 3");
    let (failed, call) = run(&both);
    if !has_mounts(&call) {
        return;
    }
    assert_eq!(call["result"]["exitCode"], 3, "{failed}");
    for tmp in ["/tmp", "/var/tmp"] {
        assert!(!std::path::Path::new(tmp).join(&name).exists(), "{tmp} of the machine was written");
    }
    let (done, call) = run(&format!("cat /tmp/{name} /var/tmp/{name}"));
    assert_eq!((done.code, text(&call, "stdout")), (Some(0), "x\ny\n"), "{done}");
    // A second plan is not finished: its run may still need the files.
    fs::write(
        project.path().join("other.json"),
        r#"{"name": "other", "tasks": [{"id": "b", "run": "false"}]}"#,
    )
    .unwrap();
    cli.command(project.path(), &["apply", "other.json"]).output().unwrap();
    let (done, _) = run(&format!("echo x > /tmp/{name}"));
    assert_eq!(done.code, Some(0), "{done}");
    let (_, call) = run(&format!("cat /tmp/{name}"));
    assert_eq!(text(&call, "stdout"), "x\n", "{call}");
    cli.command(project.path(), &["delete", "b"]).output().unwrap();
    run("true");
    // All tasks are done: nothing is left.
    let (_, call) = run(&format!("ls /tmp/{name} || echo none"));
    assert_eq!(text(&call, "stdout"), "none\n", "{call}");
}
