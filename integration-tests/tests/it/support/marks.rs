//! The marks that the programs of calls write, and the processes that they leave.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use super::home::Home;

/// The lines of `marks`, counted.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) starts: BTreeMap<String, usize>,
    pub(crate) ends: BTreeMap<String, usize>,
    pub(crate) overlaps: Vec<String>,
    /// The number of effects for each key.
    pub(crate) keys: BTreeMap<String, Vec<String>>,
}

impl Marks {
    /// Reads the current marks.
    pub(crate) fn of(home: &Home) -> Self {
        let text = std::fs::read_to_string(home.path("work/marks")).unwrap_or_default();
        let mut marks = Self::default();
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let words: Vec<&str> = line.trim_end().split(' ').collect();
            match *words {
                ["start", task, _] => *marks.starts.entry(task.to_owned()).or_default() += 1,
                ["end", task, _] => *marks.ends.entry(task.to_owned()).or_default() += 1,
                ["effect", task, key] => marks.keys.entry(key.to_owned()).or_default().push(task.to_owned()),
                _ => marks.overlaps.push(line.trim_end().to_owned()),
            }
        }
        marks
    }

    pub(crate) fn started(&self) -> usize {
        self.starts.values().sum()
    }

    /// Returns the number of starts so far. Cheap, because a harness that waits for starts would take the CPU from its programs.
    pub(crate) fn started_in(home: &Home) -> usize {
        let text = std::fs::read_to_string(home.path("work/marks")).unwrap_or_default();
        let lines = text.split_inclusive('\n');
        lines.filter(|line| line.starts_with("start ") && line.ends_with('\n')).count()
    }
}

/// Returns the `argv` of a call to the program that is hard to kill.
pub(crate) fn work(home: &Home, millis: u64) -> [String; 4] {
    let directory = home.path("work").to_str().unwrap().to_owned();
    [env!("CARGO_BIN_EXE_taskpawl-tool").to_owned(), "work".to_owned(), directory, millis.to_string()]
}

/// Returns the command lines of all processes of this home, which is recognised by its path in their arguments.
pub(crate) fn survivors(home: &Home) -> Vec<String> {
    processes_of(home).into_iter().map(|(_, line)| line).collect()
}

/// Kills the processes that a fault has left alive.
pub(crate) fn end_survivors(home: &Home) {
    for (pid, _) in processes_of(home) {
        // It may have exited in the meantime.
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn processes_of(home: &Home) -> Vec<(Pid, String)> {
    let mark = home.path("work").to_str().unwrap().to_owned();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = processes.filter_map(|process| command_line(&process.path()));
    lines.filter(|(_, line)| line.contains(&mark)).collect()
}

fn command_line(process: &Path) -> Option<(Pid, String)> {
    let pid = Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?)?;
    let line = std::fs::read(process.join("cmdline")).ok()?;
    Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
}
