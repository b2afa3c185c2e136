//! A thread repeatedly swaps a directory of the project for a link, while tools work in the directory. The link leads
//! out of the project, or to a hidden directory in it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use taskpawl_tools::{Confinement, SandboxPlaces, SandboxSettings};

use crate::support::Project;

const ROUNDS: usize = 2_000;
const CHECKS: usize = 20_000;

/// Names that are swapped: the directory of the project, and the link beside it.
const NAMES: [&str; 2] = ["dir", "link"];

/// Project in which the link leads to `secrets`.
fn project(secrets: impl Fn(&Project) -> PathBuf) -> Project {
    let project = Project::new();
    project.write("dir/file", "inside");
    let secrets = secrets(&project);
    std::fs::create_dir(&secrets).unwrap();
    for name in ["file", "secret-key"] {
        std::fs::write(secrets.join(name), "secret").unwrap();
    }
    std::os::unix::fs::symlink(secrets, project.path("link")).unwrap();
    project
}

/// Runs `work` while the directory and the link are swapped.
fn while_swapping<T>(project: &Project, work: impl FnOnce() -> T) -> T {
    let [one, other] = NAMES.map(|name| project.path(name));
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        // The guard also stops the thread if `work` panics; it would run forever otherwise.
        let _over = Over(is_over);
        work()
    })
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns whether anything outside has changed.
fn has_changed(outside: &Path) -> bool {
    let names = std::fs::read_dir(outside).unwrap().count();
    names != 2 || std::fs::read(outside.join("file")).unwrap() != b"secret"
}

#[test]
fn no_file_tool_is_raced_out_of_the_project() {
    let project = project(|project| project.beside("secrets"));
    let real = project.path("").canonicalize().unwrap();
    println!("{}", race(&project, &project.beside("secrets"), |found| found.starts_with(&real)));
}

#[test]
fn no_file_tool_is_raced_to_a_hidden_file() {
    let mut project = project(|project| project.path(".env"));
    let places = SandboxPlaces { root: project.cx.root.clone(), ..SandboxPlaces::default() };
    project.cx.closed = Confinement::new(SandboxSettings::default(), places).plain().closed;
    let hidden = project.path(".env").canonicalize().unwrap();
    println!("{}", race(&project, &hidden, |found| !found.starts_with(&hidden)));
}

/// Races tools against the swap, then a control that checks a path with `is_fine` before opening it. Returns a summary.
fn race(project: &Project, secrets: &Path, is_fine: impl Fn(&Path) -> bool) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (done, refused) = while_swapping(project, || runtime.block_on(rounds(project)));
    assert!(!has_changed(secrets));
    assert!(done > 0, "every one of {refused} calls was refused: nothing was tried");
    let escapes = while_swapping(project, || escapes(project, is_fine));
    if escapes == 0 {
        return "SKIPPED the control: checking first never lost the race, so that on this machine the test shows nothing".to_owned();
    }
    format!(
        "{ROUNDS} calls: 0 escapes ({done} done, {refused} refused); check first, open then: {escapes} of {CHECKS}"
    )
}

/// Calls tools in turn; returns the numbers of successful and of refused calls.
async fn rounds(project: &Project) -> (usize, usize) {
    let (mut done, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        let (tool, args) = match round % 8 {
            0 => ("read_file", json!({"path": "dir/file"})),
            1 => ("write_file", json!({"path": "dir/file", "content": "inside"})),
            2 => ("write_file", json!({"path": "dir/new/file", "content": "inside"})),
            3 => ("write_file", json!({"path": "dir/log", "content": "inside", "append": true})),
            4 => ("edit_file", json!({"path": "dir/file", "old": "i", "new": "i!", "all": true})),
            5 => ("grep", json!({"pattern": "secret|nside"})),
            6 => ("glob", json!({"pattern": "**/*"})),
            _ => ("list_dir", json!({"path": "dir"})),
        };
        match project.call(tool, args).await {
            Ok(result) => {
                assert!(!result.to_string().contains("secret"), "{tool}: {result}");
                done += 1;
            }
            Err(error) => {
                assert!(
                    matches!(error.class(), "outside_root" | "protected" | "io" | "failed"),
                    "{tool}: {error}"
                );
                refused += 1;
            }
        }
    }
    (done, refused)
}

/// Control that does what the tools must not do: it checks the target of a path first and opens the path afterwards.
fn escapes(project: &Project, is_fine: impl Fn(&Path) -> bool) -> usize {
    let path = project.path("dir/file");
    let escapes = |_: &usize| {
        path.canonicalize().is_ok_and(|found| is_fine(&found))
            && std::fs::read(&path).is_ok_and(|content| content == b"secret")
    };
    (0..CHECKS).filter(escapes).count()
}
