//! The process tree: descendants, and the traces that a process carries in its environment and its open
//! files.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::Timespec;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use super::bwrap::are_of_supervisor;

/// The environment marker that identifies the call of a process. A nested supervisor appends its own marker
/// to that of the outer one, so that the outer supervisor still recognizes all of its processes.
pub(super) const MARK: &str = "TASKPAWL_PROCESS";

/// The identity of a file, independent of its path: device and inode.
pub(super) type FileId = (u64, u64);

/// The children of this process, which is single-threaded.
#[derive(Debug)]
pub(super) struct Children(Option<File>);

impl Children {
    pub(super) fn new() -> Self {
        Self(File::open("/proc/thread-self/children").ok())
    }

    /// Returns all children, including zombies. The list is exact, because a child leaves it only when this
    /// process reaps it.
    pub(super) fn list(&self) -> Vec<Pid> {
        let Some(file) = &self.0 else { return children_by_scan(getpid()) };
        let (mut text, mut length) = (vec![0; 4096], 0);
        loop {
            match rustix::io::pread(file, &mut text[length..], length as u64) {
                Ok(0) | Err(_) => break,
                Ok(read) => length += read,
            }
            if length == text.len() {
                text.resize(length * 2, 0);
            }
        }
        parse_ids(&text[..length])
    }
}

fn parse_ids(text: &[u8]) -> Vec<Pid> {
    let text = String::from_utf8_lossy(text);
    text.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
}

/// Returns the children of another process. The list may be incomplete while that process runs.
fn children_of(parent: Pid) -> Vec<Pid> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_pid())) else {
        return Vec::new();
    };
    let mut children = Vec::new();
    for task in tasks.flatten() {
        match std::fs::read(task.path().join("children")) {
            Ok(text) => children.extend(parse_ids(&text)),
            // The kernel was built without `CONFIG_PROC_CHILDREN`, or the thread has just ended.
            Err(_) => return children_by_scan(parent),
        }
    }
    children
}

fn children_by_scan(parent: Pid) -> Vec<Pid> {
    all().into_iter().filter(|child| parent_of(*child) == Some(parent)).collect()
}

/// Returns all visible processes.
fn all() -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| Pid::from_raw(name.to_str()?.parse().ok()?)).collect()
}

pub(super) fn parent_of(process: Pid) -> Option<Pid> {
    let [parent] = fields_of(&format!("/proc/{}/stat", process.as_raw_pid()), [4])?;
    Pid::from_raw(parent.parse().ok()?)
}

/// Returns whether an ancestor of this process is a supervisor, so that this process belongs to a program of
/// a run. A program cannot hide that by clearing its environment or by double forking, because the supervisor
/// adopts orphans.
pub fn is_below_supervisor() -> bool {
    let mut process = getpid();
    while let Some(parent) = parent_of(process) {
        if is_supervisor(parent) {
            return true;
        }
        process = parent;
    }
    false
}

/// Returns whether a process is a supervisor, by its command line.
pub(super) fn is_supervisor(process: Pid) -> bool {
    let line = std::fs::read(format!("/proc/{}/cmdline", process.as_raw_pid())).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).map(|word| OsStr::from_bytes(word).to_owned());
    are_of_supervisor(words, || true)
}

/// A process together with its parent at the time of discovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descendant {
    pub(super) process: Pid,
    parent: Pid,
}

impl Descendant {
    /// Signals the process, unless its pid was reused in the meantime.
    pub(super) fn signal(self, signal: Signal) {
        // Open the pidfd before the check. If the pid is reused later, the signal still goes to the old
        // process and fails.
        let Ok(descriptor) = pidfd_open(self.process, PidfdFlags::empty()) else { return };
        if parent_of(self.process).is_some_and(|parent| parent == self.parent || parent == getpid()) {
            // Errors mean that the process is gone or belongs to another user.
            let _ = pidfd_send_signal(&descriptor, signal);
        }
    }
}

/// Returns all descendants of a process, parents before children.
pub(super) fn descendants(root: Pid) -> Vec<Descendant> {
    let mut found = Vec::new();
    let (mut parent, mut next) = (root, 0);
    loop {
        found.extend(children_of(parent).into_iter().map(|process| Descendant { process, parent }));
        let Some(descendant) = found.get(next) else { return found };
        parent = descendant.process;
        next += 1;
    }
}

/// Returns the environment marker of a process.
pub(super) fn marker_of(process: Pid) -> Option<String> {
    let environment = environment_of(process)?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(value.to_owned()).ok()
}

/// Returns the initial environment of a process. During an `execve` the kernel shows an empty one, so wait
/// until it is set up.
fn environment_of(process: Pid) -> Option<Vec<u8>> {
    let file = format!("/proc/{}/environ", process.as_raw_pid());
    for _ in 0..1000 {
        let environment = std::fs::read(&file).ok()?;
        if !environment.is_empty() || has_empty_environment(process) {
            return Some(environment);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    None
}

/// Returns whether an environment that was read as empty is really empty. Either the process has no memory,
/// like a kernel thread or a zombie. Or its program is loaded, and the environment area has no length
/// (`proc_pid_stat(5)`, fields 23, 26, 50, 51).
fn has_empty_environment(process: Pid) -> bool {
    let numbers = [23, 26, 50, 51];
    let Some([memory, code, from, to]) = fields_of(&format!("/proc/{}/stat", process.as_raw_pid()), numbers)
    else {
        return true;
    };
    memory == "0" || (code != "0" && from == to)
}

/// Returns fields of a `stat` file by their numbers in `proc_pid_stat(5)`, from 3 on; `None` if the file does
/// not exist.
fn fields_of<const N: usize>(file: &str, numbers: [usize; N]) -> Option<[String; N]> {
    let stat = std::fs::read_to_string(file).ok()?;
    // The process name may contain spaces and parentheses, so parse after the last parenthesis.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(numbers.map(|number| fields.get(number - 3).copied().unwrap_or_default().to_owned()))
}

/// Returns whether an unreaped process is exiting: none of its threads has memory, so it executes no more
/// code. Its environment is no longer readable, and soon its files are not either. Returns false for a
/// process that may not be inspected.
pub(super) fn is_ending(process: Pid) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_pid())) else { return false };
    threads.flatten().all(|thread| {
        let stat = thread.path().join("stat");
        // A thread that has just ended has no `stat` file any more.
        fields_of(&stat.to_string_lossy(), [23]).is_none_or(|[memory]| memory == "0")
    })
}

/// Returns the open files of a process.
pub(super) fn open_files(process: Pid) -> Vec<FileId> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{}/fd", process.as_raw_pid())) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let file = std::fs::metadata(entry.path()).ok()?;
            Some((file.dev(), file.ino()))
        })
        .collect()
}

/// Returns whether a process has one of the sockets with these inodes open.
pub(super) fn holds_socket(process: Pid, inodes: &[String]) -> bool {
    let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let Ok(entries) = std::fs::read_dir(format!("/proc/{}/fd", process.as_raw_pid())) else { return false };
    entries.flatten().any(|entry| {
        std::fs::read_link(entry.path())
            .is_ok_and(|link| links.iter().any(|socket| link == Path::new(socket)))
    })
}

/// Returns the process of a thread.
pub(super) fn process_of(thread: Pid) -> Option<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", thread.as_raw_pid())).ok()?;
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    Pid::from_raw(group.trim().parse().ok()?)
}

/// Returns the file of a descriptor.
pub(super) fn file_of(descriptor: impl AsFd) -> Option<FileId> {
    let status = rustix::fs::fstat(descriptor).ok()?;
    Some((status.st_dev, status.st_ino))
}

/// Kills every process of this user whose marker begins with `mark`: the processes of a supervisor that was
/// itself killed. Returns after all of them have ended.
pub(super) fn kill_with_marker(mark: &str) {
    let bears_mark = |process: Pid| marker_of(process).is_some_and(|of| of.starts_with(mark));
    loop {
        let mut killed = 0;
        for process in all().into_iter().filter(|process| bears_mark(*process)) {
            let Ok(descriptor) = pidfd_open(process, PidfdFlags::empty()) else { continue };
            // The pid may have been reused before the pidfd was opened, so check the marker again.
            if bears_mark(process) && pidfd_send_signal(&descriptor, Signal::KILL).is_ok() {
                wait_for_end(descriptor);
                killed += 1;
            }
        }
        if killed == 0 {
            return;
        }
    }
}

fn wait_for_end(pidfd: impl AsFd) {
    use rustix::event::{PollFd, PollFlags, poll};

    // A process that hangs in the kernel must not block the recovery.
    let patience = Timespec { tv_sec: 1, tv_nsec: 0 };
    let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&patience));
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    #[test]
    fn traces_of_a_child_can_be_read() {
        let file = tempfile::tempfile().unwrap();
        let mut command = Command::new("sleep");
        command.arg("1000").env(MARK, "some/mark").stdout(file.try_clone().unwrap()).stderr(Stdio::null());
        // Repeated, because a process that was just started may still be in `execve`.
        for _ in 0..200 {
            let mut child = command.spawn().unwrap();
            let id = Pid::from_child(&child);
            assert_eq!(marker_of(id).as_deref(), Some("some/mark"));
            assert!(
                descendants(getpid()).iter().any(|found| found.process == id && found.parent == getpid())
            );
            assert!(children_by_scan(getpid()).contains(&id));
            assert!(open_files(id).contains(&file_of(&file).unwrap()));
            assert!(!is_ending(id));
            child.kill().unwrap();
            waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
            // A zombie.
            assert!(is_ending(id) && marker_of(id).is_none() && parent_of(id) == Some(getpid()));
            child.wait().unwrap();
            assert!(parent_of(id).is_none());
        }
    }

    #[test]
    fn an_empty_environment_is_recognized() {
        let mut child = Command::new("sleep")
            .arg("1000")
            .env_clear()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert_eq!(environment_of(Pid::from_child(&child)), Some(Vec::new()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
