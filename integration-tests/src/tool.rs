//! A program that leaves processes behind in every way there is, and writes down when it starts and ends.
//!
//! `taskpawl-tool work DIR MILLIS` holds a lock on `DIR/TASK.lock` as long as anything lives that it started: another attempt that
//! starts meanwhile finds it taken. `DIR/marks` gets a line for each start, end and overlap.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};

/// How a process that is left behind hides.
const WAYS: [&str; 4] = ["plain", "session", "orphan", "stranger"];

/// Does what the arguments say.
///
/// # Panics
/// They say nothing.
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
    // What is left behind holds the lock, too.
    fcntl_setfd(lock.as_fd(), FdFlags::empty()).expect("a descriptor");
    mark(directory, &format!("start {task} {attempt}"));
    let number: usize = task.bytes().map(usize::from).sum();
    let way = WAYS[number % WAYS.len()];
    start(&["leave", way, &directory.to_string_lossy()], way);
    std::thread::sleep(Duration::from_millis(millis));
    mark(directory, &format!("end {task} {attempt}"));
}

/// Writes down the key of the call, and does not end while there is a file `hang`.
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
        // It fails where the process leads a group; it does not here.
        rustix::process::setsid().expect("a session");
    }
    if matches!(way, "orphan" | "stranger") {
        start(&["stay", mark], way);
    } else {
        stay();
    }
}

/// Until it is killed.
fn stay() {
    loop {
        std::thread::park();
    }
}

/// Starts this program again, without the descriptors that it was given; a stranger also without the environment.
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
    // One write, so that lines of several processes do not mix.
    file.write_all(format!("{line}\n").as_bytes()).expect("a mark");
}

fn variable(name: &str) -> String {
    let value = std::env::var_os(name).unwrap_or_default();
    value.to_string_lossy().into_owned()
}
