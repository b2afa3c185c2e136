//! Facts about the machine on which the figures were taken.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::measure::output;

/// Arguments that print the version of a program, by its name.
const VERSIONS: [(&str, &[&str]); 11] = [
    ("rustc", &["--version"]),
    ("make", &["--version"]),
    ("ninja", &["--version"]),
    ("n2", &["--version"]),
    ("just", &["--version"]),
    ("xargs", &["--version"]),
    ("parallel", &["--version"]),
    ("pueue", &["--version"]),
    ("doit", &["--version"]),
    ("python", &["--version"]),
    ("strace", &["--version"]),
];

/// Returns the facts by name. Unknown facts are left out.
pub(crate) fn facts(context: &Context) -> Map<String, Value> {
    let mut facts = Map::new();
    let mut add = |name: &str, fact: Option<String>| {
        if let Some(fact) = fact {
            facts.insert(name.to_owned(), json!(fact));
        }
    };
    add("processor", field("/proc/cpuinfo", "model name"));
    add("cores", std::thread::available_parallelism().ok().map(|cores| cores.to_string()));
    add("memory", field("/proc/meminfo", "MemTotal"));
    add("kernel", first_line(Command::new("uname").arg("-sr")));
    add("fileSystem", first_line(Command::new("stat").args(["-f", "-c", "%T"]).arg(context.scratch())));
    add("load", std::fs::read_to_string("/proc/loadavg").ok().map(|load| load.trim().to_owned()));
    add("commit", commit());
    add("SQLite", Some(rusqlite::version().to_owned()));
    for (program, args) in VERSIONS {
        let path = context.peers().find(program);
        add(program, path.and_then(|path| first_line(Command::new(path).args(args))));
    }
    for package in ["dask", "langgraph"] {
        let ask = format!("import importlib.metadata as m; print(m.version('{package}'))");
        let python = context.peers().find("python");
        add(package, python.and_then(|path| first_line(Command::new(path).arg("-c").arg(ask))));
    }
    add("dagrs", context.peers().find("dagrs-peer").and_then(|_| dagrs()));
    facts
}

/// Returns the facts as one paragraph.
pub(crate) fn in_words(facts: &Map<String, Value>) -> String {
    let words = facts.iter().map(|(name, fact)| format!("{name}: {}", fact.as_str().unwrap_or_default()));
    words.collect::<Vec<_>>().join(" · ")
}

fn commit() -> Option<String> {
    let git =
        |args: &[&str]| output(Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR"))).ok();
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?.trim().to_owned();
    let is_changed =
        git(&["status", "--porcelain", "--untracked-files=no"])?.lines().any(|line| line.contains(".rs"));
    Some(if is_changed { format!("{commit}, with changes") } else { commit })
}

/// Returns the version of dagrs in the lock file of the peer.
fn dagrs() -> Option<String> {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/dagrs/Cargo.lock");
    let text = std::fs::read_to_string(lock).ok()?;
    let after = text.split_once("name = \"dagrs\"\nversion = \"")?.1;
    Some(after.split_once('"')?.0.to_owned())
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn first_line(command: &mut Command) -> Option<String> {
    Some(output(command).ok()?.lines().next()?.trim().to_owned())
}
