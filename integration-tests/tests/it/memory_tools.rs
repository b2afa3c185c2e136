//! Large files and directories in the project do not make the tools of the engine's own process grow.

use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Figures, Home, scale, until};

/// Limit for the growth of the engine, in KiB. The largest input that is valid, 10,000 tasks of a server, takes 15 to 18 MiB, depending on the
/// optimization; an input that is not bounded takes more than a hundred.
pub(crate) const MAX_GROWTH_KIB: u64 = 24 * 1024;

#[test]
fn tools_do_not_grow_with_the_project() {
    let mut figures = Figures::of("tools_do_not_grow_with_the_project", 0);
    let count = scale(100_000, 1_000_000);
    // On the disk, not in `/dev/shm`: programs in the sandbox have a private `/dev` without the project.
    let home = Home::new();
    fill(&home, count);
    let quiet = quiet_memory(&home);
    let cases = [
        ("list_dir of all files", json!({"list_dir": {"path": "many"}}), "done"),
        ("glob of all files", json!({"glob": {"pattern": "**"}}), "done"),
        ("grep of all files", json!({"grep": {"pattern": "x", "limit": 10_000}}), "done"),
        ("grep of a line of 100 MB", json!({"grep": {"pattern": "x", "path": "line"}}), "done"),
        ("read_file of a line of 100 MB", json!({"read_file": {"path": "line"}}), "done"),
        ("read_file behind it", json!({"read_file": {"path": "line", "offset": 2}}), "done"),
        ("edit_file of it", json!({"edit_file": {"path": "line", "old": "x", "new": "y"}}), "failed"),
        (
            "edit_file that multiplies",
            json!({"edit_file": {"path": "small", "old": "x", "new": "y".repeat(1000), "all": true}}),
            "failed",
        ),
        ("glob below an ignore file of 50 MB", json!({"glob": {"pattern": "ignored/**"}}), "done"),
        ("an own tool that prints 50 MB", json!({"flood": {}}), "done"),
    ];
    for (number, (label, call, end)) in cases.into_iter().enumerate() {
        let growth = most_memory(&home, &format!("t{number}"), &call, end).saturating_sub(quiet);
        figures.add(format!("{growth} KiB for {label}"));
        assert!(growth < MAX_GROWTH_KIB, "the engine grew by {growth} KiB for {label}");
    }
    let large = json!({"write_file": {"path": "out", "content": "x".repeat(30_000_000)}});
    let growth = most_memory(&home, "large", &large, "done").saturating_sub(quiet);
    figures.add(format!("control: {growth} KiB for a plan of 30 MB"));
    assert!(growth > MAX_GROWTH_KIB, "the control");
}

fn fill(home: &Home, count: usize) {
    let work = home.path("work");
    std::fs::create_dir_all(work.join("many")).unwrap();
    for number in 0..count {
        std::fs::write(work.join(format!("many/a-file-with-quite-a-long-name-{number}")), "x\n").unwrap();
    }
    let mut line = File::create(work.join("line")).unwrap();
    for _ in 0..100 {
        line.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    std::fs::write(work.join("small"), "x".repeat(1 << 20)).unwrap();
    std::fs::create_dir_all(work.join("ignored")).unwrap();
    let mut ignored = File::create(work.join("ignored/.gitignore")).unwrap();
    for number in 0..50 {
        ignored.write_all(format!("some-name-{number}*?[a-z]\n").repeat(40_000).as_bytes()).unwrap();
    }
    home.user_config("[tools.flood]\ndescription = \"Prints a lot.\"\nargv = [\"head\", \"-c\", \"50000000\", \"/dev/zero\"]\n");
}

/// Returns the most memory in KiB of a run with a call that does nothing, of several such runs: they are short, and reading their
/// memory may miss the end.
pub(crate) fn quiet_memory(home: &Home) -> u64 {
    let quiet =
        |number| most_memory(home, &format!("quiet{number}"), &json!({"log": {"message": "quiet"}}), "done");
    (0..5).map(quiet).max().unwrap_or_default()
}

/// Returns the peak memory of an engine that makes a call, in KiB, in its short or its long form. `end` is the expected status of
/// its task.
pub(crate) fn most_memory(home: &Home, id: &str, call: &Value, end: &str) -> u64 {
    let task = match call.get("toolName") {
        Some(_) => json!({"id": id, "toolCalls": [call]}),
        None => json!({"id": id, "call": call}),
    };
    home.apply(&json!({"name": id, "tasks": [task]}).to_string());
    let mut run = home.program(&["run-all-ready", "--only", id]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut most = 0;
    until("the run has ended", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        most = most.max(line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse().unwrap()));
        run.try_wait().unwrap()
    });
    let task = home.manager().get(id).unwrap();
    assert_eq!(task.status.as_str(), end, "{call}: {:?}", task.error);
    most
}
