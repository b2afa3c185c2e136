//! Tests of `purge`: afterwards no file of the store has the bytes of the value.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::Cli;

const CANARY: &str = "canary+77/\"quoted\"";

/// Returns the forms of the canary that are searched for, as other programs write them.
fn forms() -> Vec<Vec<u8>> {
    let escaped = json!(CANARY).to_string();
    let forms = [
        CANARY.to_owned(),
        escaped[1..escaped.len() - 1].to_owned(),
        "Y2FuYXJ5Kzc3LyJxdW90ZWQi".to_owned(),
        "63616e6172792b37372f2271756f74656422".to_owned(),
        "canary%2B77%2F%22quoted%22".to_owned(),
    ];
    forms.into_iter().map(String::into_bytes).collect()
}

fn has(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap();
    forms().iter().any(|form| bytes.windows(form.len()).any(|window| window == form))
}

/// Returns all files beneath a directory, and those beside it that begin with its name.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            files(&path, found);
        } else if entry.file_type().unwrap().is_file() {
            found.push(path);
        }
    }
}

/// Returns the files of the store and of the state directory that have the canary.
fn with_canary(cli: &Cli) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&cli.path(""), &mut found);
    let work = cli.path("work");
    found.retain(|path| !path.starts_with(&work) && has(path));
    found
}

fn purge(cli: &Cli, value: &str) -> crate::harness::Run {
    cli.run_with(&["purge", "--value-from", "-", "--json"], value)
}

/// Puts the canary wherever a plan, an agent or a program can put a value.
fn spread(cli: &Cli) {
    let printed =
        format!("printf '%s\\n' '{CANARY}'; head -c 2097152 /dev/zero | tr '\\0' x; printf '%s' '{CANARY}'");
    let encoded =
        format!("printf '%s' '{CANARY}' | base64; printf '%s' '{CANARY}' | od -An -tx1 | tr -d ' \\n'");
    let plan = json!({"name": "p", "tasks": [
        {"id": "large", "name": format!("named {CANARY}"), "run": printed},
        {"id": "encoded", "run": encoded},
        {"id": "failed", "calls": [{"fail": {"message": CANARY}}]},
        {"id": "result", "calls": [{"write_file": {"path": "out", "content": CANARY}}]},
        {"id": "kept", "context": {"key": {"deep": [CANARY]}}, "run": format!("echo \"$X\" > /tmp/'{CANARY}'; true")},
    ]});
    cli.file("p.json", &plan.to_string());
    cli.run(&["run-all-ready", "--plan", "p.json", "--quiet"]);
    cli.run(&["create", "manual", "--id", "manual"]).ok();
    cli.run(&["note", "manual", CANARY]).ok();
    cli.run(&["done", "manual", "--result", &json!({"said": CANARY}).to_string()]).ok();
    // Deleted values stay in the undo snapshots and in free pages.
    cli.run(&["create", CANARY, "--id", "gone"]).ok();
    cli.run(&["delete", "gone"]).ok();
}

#[test]
fn no_file_of_the_store_has_the_value_afterwards() {
    for store in ["tasks.db", "json:tasks.json"] {
        let cli = Cli::without_store().with_programs();
        let (kind, name) = store.split_once(':').map_or(("", store), |(_, name)| ("json:", name));
        let store = format!("{kind}{}", cli.path(name).display());
        let cli = cli.with("TASKPAWL_STORE", &store);
        spread(&cli);
        assert!(!with_canary(&cli).is_empty());
        let purged = purge(&cli, &format!("{CANARY}\n"));
        assert_eq!(purged.code, Some(0), "{purged}");
        let data = purged.json()["data"].clone();
        assert!(data["texts"].as_u64() > Some(0) && data["files"].as_u64() > Some(0), "{data}");
        assert_eq!(data["left"], json!([]));
        assert_eq!(with_canary(&cli), Vec::<PathBuf>::new());
        // The store is whole: everything can be read, and has the mark.
        let shown = cli.run(&["show", "large", "--json"]).ok().json();
        assert_eq!(shown["data"]["name"], "named PURGED");
        assert!(cli.run(&["logs", "large", "--raw"]).ok().stdout.starts_with("PURGED\n"));
        let doctor = cli.run(&["doctor"]);
        assert_eq!(doctor.code, Some(0), "{doctor}");
        cli.run(&["history"]).ok();
        cli.run(&["undo"]);
        let again = purge(&cli, CANARY).json()["data"].clone();
        assert_eq!((&again["texts"], &again["files"]), (&json!(0), &json!(0)));
        let log = cli.run(&["audit", "--json"]).ok().stdout;
        assert!(log.contains("\"purge\"") && !log.contains("canary"), "{log}");
    }
}

#[test]
fn bad_input_changes_nothing() {
    let cli = Cli::new().with_programs();
    cli.run(&["create", "a task that is in progress", "--id", "a"]).ok();
    for (value, code) in [
        ("1234567\n", 2),
        ("", 2),
        // Words of the format would damage the store.
        ("createdAt", 0),
        ("in progress", 0),
    ] {
        let purged = purge(&cli, value);
        assert_eq!(purged.code, Some(code), "{value} {purged}");
    }
    assert_eq!(cli.run(&["purge", "--value-from", "missing"]).code, Some(2));
    assert_eq!(cli.run(&["purge"]).code, Some(2));
    cli.file("value", "no such value in it\n");
    let nowhere = cli.run(&["purge", "--value-from", "value"]).ok();
    assert!(nowhere.stdout.contains("was nowhere"), "{nowhere}");
    assert!(nowhere.stderr.contains("unused blocks of the disk"), "{nowhere}");
    let shown: Value = cli.run(&["show", "a", "--json"]).ok().json();
    assert_eq!(shown["data"]["name"], "a task that is PURGED");
}

#[test]
fn a_word_of_the_format_is_refused() {
    let cli = Cli::new().with_programs();
    cli.file("p.yaml", "tasks: [{id: a, run: echo x}]\n");
    cli.run(&["run-all-ready", "p.yaml", "--quiet"]).ok();
    let refused = purge(&cli, "succeeded");
    assert_ne!(refused.code, Some(0), "{refused}");
    let doctor = cli.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{doctor}");
    assert_eq!(cli.run(&["show", "a", "--fields", "status"]).ok().json()["data"]["status"], "done");
}

#[test]
fn agents_and_projects_at_work_are_refused() {
    let cli = Cli::new().with_programs().with_clock();
    cli.file("p.yaml", "tasks: [{id: a, run: 'touch started; sleep 5'}]\n");
    let mut run = cli.command(&cli.path("work"), &["run-all-ready", "p.yaml", "--quiet"]).spawn().unwrap();
    while !cli.path("work/started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let refused = purge(&cli, "touch started");
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(refused.code, Some(7), "{refused}");
    assert!(refused.stdout.contains("is at work"), "{refused}");
    let agent = cli.with("CLAUDECODE", "1");
    assert_eq!(purge(&agent, "touch started").code, Some(7));
}
