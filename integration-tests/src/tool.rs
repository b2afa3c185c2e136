//! Program that leaves processes behind in several ways, and records its starts and ends.
//!
//! `taskpawl-tool work DIR MILLIS` holds a lock on `DIR/TASK.lock` as long as any of its descendants lives. Another attempt that
//! starts meanwhile finds the lock taken. `DIR/marks` gets a line for each start, end and overlap.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};

/// The ways in which a left-behind process hides.
const WAYS: [&str; 4] = ["plain", "session", "orphan", "stranger"];

/// Runs the subcommand of the arguments.
///
/// # Panics
/// The arguments have no known subcommand.
pub fn main() {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    match *args {
        ["work", directory, millis] => work(Path::new(directory), millis.parse().expect("a number")),
        ["effect", directory] => effect(Path::new(directory)),
        ["stay", ..] => stay(),
        ["leave", way, mark] => leave(way, mark),
        _ => panic!("usage: work DIR MILLIS"),
    }
}

fn work(directory: &Path, millis: u64) {
    let (task, attempt) = (variable("TASKPAWL_TASK"), variable("TASKPAWL_ATTEMPT"));
    let lock = File::create(directory.join(format!("{task}.lock"))).expect("a lock file");
    if lock.try_lock().is_err() {
        mark(directory, &format!("overlap {task} {attempt}"));
    }
    // Without close-on-exec, the descendants inherit the descriptor, and with it the lock.
    fcntl_setfd(lock.as_fd(), FdFlags::empty()).expect("a descriptor");
    mark(directory, &format!("start {task} {attempt}"));
    let number: usize = task.bytes().map(usize::from).sum();
    let way = WAYS[number % WAYS.len()];
    start(&["leave", way, &directory.to_string_lossy()], way);
    std::thread::sleep(Duration::from_millis(millis));
    mark(directory, &format!("end {task} {attempt}"));
}

/// Records the key of the call, and does not return while a file `hang` exists.
fn effect(directory: &Path) {
    mark(
        directory,
        &format!("effect {} {}", variable("TASKPAWL_TASK"), variable("TASKPAWL_IDEMPOTENCY_KEY")),
    );
    if directory.join("hang").exists() {
        stay();
    }
}

fn leave(way: &str, mark: &str) {
    if way != "plain" {
        // `setsid` fails for a process group leader, which this child is not.
        rustix::process::setsid().expect("a session");
    }
    if matches!(way, "orphan" | "stranger") {
        start(&["stay", mark], way);
    } else {
        stay();
    }
}

/// Sleeps until it is killed. `park` may return early, hence the loop.
fn stay() {
    loop {
        std::thread::park();
    }
}

/// Starts this program again, without the standard streams of its parent; a stranger also without the environment, which has the
/// marker.
#[expect(clippy::zombie_processes, reason = "they are to be left behind")]
fn start(args: &[&str], way: &str) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(args);
    if way != "plain" {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    }
    if way == "stranger" {
        command.env_clear();
    }
    command.spawn().expect("a process");
}

fn mark(directory: &Path, line: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(directory.join("marks")).expect("marks");
    // One write: `O_APPEND` keeps lines of several processes apart only within a single write.
    file.write_all(format!("{line}\n").as_bytes()).expect("a mark");
}

fn variable(name: &str) -> String {
    let value = std::env::var_os(name).unwrap_or_default();
    value.to_string_lossy().into_owned()
}
