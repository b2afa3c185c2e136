//! The home directory and the directories for temporary files, as programs see them.

use std::fs;

use super::{call, error, has_mounts, text};
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
    assert_eq!(text(&listed, "stdout"), ".cache\n.config\n.editorconfig\nwork\n", "{listed}");
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
