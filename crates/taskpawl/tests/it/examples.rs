//! The examples end as they say, also after `kill -9`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the program of an example, which `cargo test -p taskpawl` builds.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing: build it with `cargo build -p taskpawl --examples`",
        path.display()
    );
    path
}

fn agent(store: &Path, millis: &str) -> Command {
    let mut command = Command::new(example("agent"));
    command.arg(store).arg(millis).current_dir(store.parent().unwrap());
    command
}

fn output(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_smallest_embedding_prints_its_result() {
    assert_eq!(output(Command::new(example("own_tools"))), "42\n");
}

#[test]
fn an_agent_repairs_its_plan_and_continues_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("tasks.db");
    let mut killed = agent(&store, "60000").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(killed.stdout.take().unwrap()).lines().map(Result::unwrap);
    let seen: Vec<String> = lines.take_while(|line| line != "sum: adding").collect();
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(seen.iter().filter(|line| line.starts_with("faults")).count(), 2, "{seen:?}");
    let text = output(agent(&store, "1"));
    assert!(text.ends_with("all done\n10 words\n"), "{text}");
    assert!(text.contains("asked: Publish the number?\n"), "{text}");
    // Steps that were recorded before the kill do not run again.
    assert!(!text.contains("words: halfway"), "{text}");
    let again = output(agent(&store, "1"));
    assert!(again.ends_with("all done\n10 words\n"), "{again}");
    let published = std::fs::read_to_string(directory.path().join("tasks.db.published")).unwrap();
    assert_eq!(published, "10 words\n");
}
