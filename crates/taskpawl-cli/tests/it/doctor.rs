//! `doctor`: finds problems of a store, and repairs them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::harness::Cli;

/// Returns whether the last line says that the store has no fault, and whether it mentions the gaps of the sandbox above it.
fn is_sound(text: &str) -> bool {
    let has_gaps = !text.contains("it has no known gap");
    text.ends_with(if has_gaps { "\nno fault was found; the sandbox has gaps\n" } else { "\nall is well\n" })
}

#[test]
fn a_sound_store_is_well() {
    let cli = Cli::new();
    cli.run(&["create", "a", "--id", "a"]).ok();
    assert!(is_sound(&cli.run(&["doctor"]).ok().stdout));
    let found = cli.run(&["doctor", "--json"]).ok().json()["data"].clone();
    // The two notes are about the sandbox of this machine, not about the store.
    assert_eq!(found.as_array().unwrap().len(), 2, "{found}");
    for diagnostic in found.as_array().unwrap() {
        assert_eq!(
            (&diagnostic["check"], &diagnostic["severity"]),
            (&"sandbox".into(), &"note".into()),
            "{found}"
        );
    }
    assert!(found[0]["message"].as_str().unwrap().starts_with("they run in a sandbox of level "), "{found}");
    assert!(found[1]["message"].as_str().unwrap().starts_with("`--sandbox strict` is "), "{found}");
}

/// The kernel does not apply the limit of processes to root, unless it is set by a cgroup.
#[test]
fn that_nothing_limits_how_many_processes_there_are_is_told() {
    use std::os::unix::fs::MetadataExt;

    let cli = Cli::new();
    let found = cli.run(&["doctor", "--json"]).ok().json()["data"].clone();
    let remedy = found[0]["remedy"].as_str().unwrap();
    let is_told = remedy.contains("nothing but the machine limits how many processes they start");
    let has_mounts = found[0]["message"].as_str().unwrap().contains(", mounts");
    let is_administrator = fs::metadata("/proc/self").unwrap().uid() == 0;
    assert_eq!(is_told, is_administrator || !has_mounts, "{found}");
}

#[test]
fn what_strict_takes_is_told() {
    let cli = Cli::new().with("PATH", "/nowhere");
    let found = cli.run(&["doctor", "--json"]).ok().json()["data"].clone();
    let last = found.as_array().unwrap().last().unwrap();
    assert_eq!(last["message"], "`--sandbox strict` is not possible: `bwrap` is not in PATH");
    assert_eq!(last["remedy"], "install it (package `bubblewrap`), or use the sandbox without `strict`");
}

#[test]
fn a_store_in_memory_is_well() {
    let cli = Cli::without_store();
    let found = cli.run(&["--store", ":memory:", "doctor"]);
    assert!(is_sound(&found.ok().stdout));
}

#[test]
fn what_the_machine_can_enforce_is_told_before_there_is_a_project() {
    let cli = Cli::without_store();
    let found = cli.run(&["doctor", "--json"]).ok().json()["data"].clone();
    let checks: Vec<&str> =
        found.as_array().unwrap().iter().map(|diagnostic| diagnostic["check"].as_str().unwrap()).collect();
    assert_eq!(checks, ["project", "sandbox", "sandbox"]);
    assert!(found[1]["message"].as_str().unwrap().starts_with("they run in a sandbox of level "), "{found}");
    assert!(!is_sound(&cli.run(&["doctor"]).ok().stdout));
    // There is nothing to repair.
    assert_eq!(cli.run(&["doctor", "--fix"]).code, Some(8));
}

#[test]
fn what_can_be_mended_is_mended() {
    let cli = Cli::new();
    cli.run(&["create", "a", "--id", "a"]).ok();
    cli.run(&["claim", "a", "--ttl", "1s"]).ok();
    let store = cli.path("tasks.db");
    fs::set_permissions(&store, Permissions::from_mode(0o644)).unwrap();
    let runs = cli.path("tasks.db.files").join("runs");
    fs::create_dir_all(&runs).unwrap();
    fs::write(runs.join("r1.lock"), "").unwrap();
    let later = cli.with("TASKPAWL_TEST_NOW", "2026-01-02T03:04:07Z");
    let found = later.run(&["doctor"]);
    assert_eq!(found.code, Some(1), "{found}");
    insta::assert_snapshot!(without_sandbox(&found));
    insta::assert_snapshot!(without_sandbox(&later.run(&["doctor", "--fix"]).ok()));
    let after = later.run(&["doctor"]).ok();
    assert!(is_sound(&after.stdout), "{after}");
    assert_eq!(later.run(&["show", "a", "--json"]).ok().json()["data"]["status"], "todo");
}

/// Removes the lines about the sandbox, which differ between machines.
fn without_sandbox(run: &crate::harness::Run) -> String {
    let text = run.to_string();
    let mut lines = text.lines();
    let mut kept = String::new();
    while let Some(line) = lines.next() {
        if line.starts_with("note     programs: ") {
            lines.next();
        } else if !["all is well", "no fault was found; the sandbox has gaps"].contains(&line) {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

#[test]
fn damage_is_said_with_what_to_do() {
    let cli = Cli::new();
    cli.run(&["create", "a", "--id", "a"]).ok();
    let store = cli.path("tasks.db");
    fs::remove_file(cli.path("tasks.db-wal")).unwrap();
    fs::write(&store, "this is no database, however long it may be").unwrap();
    let found = cli.run(&["doctor", "--fix"]);
    assert_eq!(found.code, Some(8), "{found}");
    assert!(found.stdout.contains("is not a taskpawl store"), "{found}");
    assert_eq!(fs::read(&store).unwrap(), b"this is no database, however long it may be");
}

/// Covers every file that the program creates, under a umask that removes no permissions.
#[test]
fn only_the_owner_may_use_what_is_made() {
    let cli = Cli::without_store();
    let place = cli.path("place");
    fs::create_dir(&place).unwrap();
    let store = place.join("tasks.db");
    let plan = cli
        .file("plan.yaml", "tasks: [{id: b, run: 'echo x'}, {id: c, run: 'echo out; echo err >&2; exit 1'}]");
    let program = env!("CARGO_BIN_EXE_taskpawl");
    let script = format!(
        "umask 0; cd {place}; t() {{ {program} --store \"$STORE\" \"$@\" >/dev/null 2>&1; true; }}; \
         for STORE in {store} json:{place}/plan.json; do export STORE; t create a --id a; \
         t apply {plan}; t run-all-ready; t list; t doctor --fix; done; mkdir p; cd p; {program} init >/dev/null",
        place = place.display(),
        store = store.display(),
        plan = plan.display(),
    );
    let home = cli.path("home");
    let status = std::process::Command::new("sh")
        .args(["-c", &script])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(std::env::var_os("TMPDIR").map(|directory| ("TMPDIR", directory)))
        .env("HOME", &home)
        .status();
    assert!(status.unwrap().success());
    let mut wide = Vec::new();
    let mut seen = Vec::new();
    let own = ["tasks.db", "plan.json"].map(|name| place.join(name));
    for path in below(&place).into_iter().chain(below(&home)) {
        let name = path.strip_prefix(cli.path("")).unwrap().to_owned();
        let is_ours = own.iter().any(|own| path.to_string_lossy().starts_with(&*own.to_string_lossy()))
            || name.to_string_lossy().contains("taskpawl");
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        seen.push(name);
        if is_ours && mode & 0o077 != 0 {
            wide.push(format!("{mode:o} {}", path.display()));
        }
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
    for name in ["tasks.db", "tasks.db-wal", "tasks.db.lock", "plan.json", "tasks.db.files/output"] {
        assert!(seen.contains(&Path::new("place").join(name)), "{name} was not made: {seen:?}");
    }
}

fn below(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path));
        }
        found.push(path);
    }
    found
}
