//! The examples do what their READMEs promise, and end the same on every backend.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use taskpawl::model::task::Status;
use taskpawl::model::view::Query;
use taskpawl::{Ending, RunOptions, Supervision, Taskpawl};

use crate::harness::Cli;

/// A copy of an example with a store, and a way to run its commands.
enum Place {
    /// Real processes, on a store in a file.
    Processes(Box<Cli>),
    /// The library, because a store in memory ends with its process.
    Memory { plans: Box<Taskpawl>, directory: tempfile::TempDir },
}

impl Place {
    /// Returns a copy of the example for each backend.
    fn all(example: &str) -> Vec<(&'static str, Self)> {
        let sqlite = Cli::new().with_programs();
        let json = Cli::without_store().with_programs();
        let store = format!("json:{}", json.path("tasks.json").display());
        let json = json.with("TASKPAWL_STORE", &store);
        let directory = tempfile::tempdir().unwrap();
        let supervisor = Supervision::Binary(env!("CARGO_BIN_EXE_taskpawl").into());
        let plans = Taskpawl::builder(":memory:").root(directory.path()).supervision(supervisor).open();
        let plans = plans.map(Box::new).unwrap();
        let places = vec![
            ("sqlite", Self::Processes(Box::new(sqlite))),
            ("json", Self::Processes(Box::new(json))),
            ("memory", Self::Memory { plans, directory }),
        ];
        for (_, place) in &places {
            copy(&source(example), &place.path(""));
        }
        places
    }

    fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Processes(cli) => cli.path("work").join(name),
            Self::Memory { directory, .. } => directory.path().join(name),
        }
    }

    /// Applies and runs the plan; returns the exit code.
    fn run_plan(&self) -> u8 {
        match self {
            Self::Processes(cli) => code(cli, &["run-all-ready", "--plan", "plan.yaml"]),
            Self::Memory { plans, .. } => {
                plans
                    .blocking()
                    .apply_text(&fs::read_to_string(self.path("plan.yaml")).unwrap(), "plan")
                    .unwrap();
                run(plans)
            }
        }
    }

    /// Runs the ready tasks; returns the exit code.
    fn run(&self) -> u8 {
        match self {
            Self::Processes(cli) => code(cli, &["run-all-ready"]),
            Self::Memory { plans, .. } => run(plans),
        }
    }

    fn retry_failed(&self) {
        match self {
            Self::Processes(cli) => drop(cli.run(&["retry", "--failed"]).ok()),
            Self::Memory { plans, .. } => {
                let failed = plans.manager().select(&[], &[Status::Failed]).unwrap();
                plans.manager().retry(&failed, false).unwrap();
            }
        }
    }

    fn done(&self, id: &str, note: Option<&str>, result: Option<Value>) {
        match self {
            Self::Processes(cli) => {
                let result = result.map(|result| result.to_string());
                let mut args = vec!["done", id];
                args.extend(note.into_iter().flat_map(|note| ["--note", note]));
                args.extend(result.as_deref().into_iter().flat_map(|result| ["--result", result]));
                cli.run(&args).ok();
            }
            Self::Memory { plans, .. } => {
                let note = note.map(str::to_owned);
                plans.manager().done(&[id.to_owned()], Ending { result, note, attempt: None }).unwrap();
            }
        }
    }

    /// Returns one line for each task.
    fn state(&self) -> String {
        let tasks = match self {
            Self::Processes(cli) => cli.run(&["list", "--limit", "0", "--json"]).ok().json()["data"].take(),
            Self::Memory { plans, .. } => json!(plans.blocking().list_tasks(&Query::default()).unwrap()),
        };
        tasks.as_array().unwrap().iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn line(task: &Value) -> String {
    let mut line = format!("{} {}", task["id"].as_str().unwrap(), task["status"].as_str().unwrap());
    if task["attempt"] != 0 {
        line = format!("{line}, attempt {}", task["attempt"]);
    }
    for field in ["blockedReason", "error", "notes", "result"] {
        let value = &task[field];
        // Only the output of programs is compared; exit code and durations are left out.
        let value = value.get("stdout").unwrap_or(value);
        let value = value.get(0).and_then(|note| note.get("text")).unwrap_or(value);
        if !value.is_null() && value != "" {
            line = format!("{line}\n    {field}: {value}");
        }
    }
    line
}

fn code(cli: &Cli, args: &[&str]) -> u8 {
    let run = cli.run(args);
    run.code.and_then(|code| u8::try_from(code).ok()).unwrap_or_else(|| panic!("{run}"))
}

fn run(plans: &Taskpawl) -> u8 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(plans.run_all_ready(RunOptions::default())).unwrap().exit
}

fn source(example: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example)
}

/// Copies a directory without the files that running the example in place creates.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if name == "out" || name == "target" || name == ".taskpawl" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(name));
        } else {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

#[test]
fn site_report() {
    for (backend, place) in Place::all("site-report") {
        assert_eq!(place.run_plan(), 0, "{backend}");
        insta::assert_snapshot!("site-report", place.state());
        insta::assert_snapshot!("site-report-file", fs::read_to_string(place.path("out/report.md")).unwrap());
    }
}

#[test]
fn failing_branch() {
    for (backend, place) in Place::all("failing-branch") {
        assert_eq!(place.run_plan(), 1, "{backend}");
        insta::assert_snapshot!("failing-branch-failed", place.state());
        fs::copy(place.path("prices.csv"), place.path("out/prices.csv")).unwrap();
        place.retry_failed();
        assert_eq!(place.run(), 0, "{backend}");
        insta::assert_snapshot!("failing-branch-mended", place.state());
        assert_eq!(fs::read_to_string(place.path("out/offer.txt")).unwrap(), "pears for 5, 42 in stock\n");
    }
}

#[test]
fn sign_off() {
    for (backend, place) in Place::all("sign-off") {
        assert_eq!(place.run_plan(), 3, "{backend}");
        place.done("review", Some("looks good"), None);
        assert_eq!(place.run(), 3, "{backend}");
        place.done("notes", None, Some(json!({"text": "faster, and blue"})));
        assert_eq!(place.run(), 0, "{backend}");
        insta::assert_snapshot!("sign-off", place.state());
        assert!(fs::read_to_string(place.path("out/published.txt")).unwrap().starts_with("release 1.0\n"));
    }
}

/// Returns the plan that `plan.sh` generates for a workspace.
fn release_plan(workspace: &Path) -> String {
    let output = Command::new("sh")
        .arg(source("release-check/plan.sh"))
        .arg(workspace)
        .env("PATH", with_cargo())
        .env("CARGO_NET_OFFLINE", "true")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns a `PATH` that starts with the toolchain of this test, because rustup finds none in the home of the
/// example.
fn with_cargo() -> String {
    let toolchain = Path::new(env!("CARGO")).parent().unwrap().to_str().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    format!("{toolchain}:{}", path.to_str().unwrap())
}

#[test]
fn release_check() {
    let cli = Cli::without_store();
    // Programs in the sandbox get no `CARGO_TARGET_DIR`, so cargo builds into the workspace.
    let target = cli.path("work/target");
    copy(&source("release-check/fixture"), &cli.path("work"));
    let plan = release_plan(&cli.path("work"));
    insta::assert_snapshot!("release-check-plan", plan);
    let cli = cli.with("PATH", &with_cargo()).with("CARGO_NET_OFFLINE", "true");
    // The first backend builds everything; the later ones reuse it.
    let json = format!("json:{}", cli.path("tasks.json").display());
    for store in [cli.path("tasks.db").to_str().unwrap(), &json] {
        let run = cli.run_with(&["--store", store, "run-all-ready", "--plan", "-"], &plan);
        assert_eq!(run.code, Some(0), "{run}");
        let tasks = cli.run(&["--store", store, "list", "--json"]).ok().json()["data"].take();
        let state: Vec<String> = tasks.as_array().unwrap().iter().map(line).collect();
        insta::assert_snapshot!("release-check", state.join("\n"));
    }
    let run = cli.run_with(&["--store", ":memory:", "run-all-ready", "--plan", "-"], &plan);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "9 ran in 0 ms: all 9 tasks are done\n"), "{run}");
    let summary = fs::read_to_string(target.join("release-check/summary.txt")).unwrap();
    assert_eq!(summary, "report: 1 tests passed\nwords: 2 tests passed\nexamples: 1 tests passed\n");
}

#[test]
fn the_plan_for_this_workspace_is_what_the_script_makes() {
    let made = release_plan(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let kept = fs::read_to_string(source("release-check/plan.yaml")).unwrap();
    assert_eq!(made, kept, "run `sh examples/release-check/plan.sh > examples/release-check/plan.yaml`");
}
