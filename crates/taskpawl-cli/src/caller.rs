//! The caller of a command: a person, a program or an agent.
//!
//! The kind follows from how the command was started, because the name that a caller gives proves nothing. This tells
//! honest callers apart. It does not stop a program that hides its origin: that takes a sandbox, and a PIN for
//! decisions.

use std::fmt;
use std::fs::File;
use std::io::Read as _;

use taskpawl::model::task::ActorKind;

use crate::environment::{Environment, has_controlling_terminal};

/// The environment variables by which coding agents mark their commands, each with the source of this knowledge.
const MARKERS: &str = include_str!("agent-markers.txt");

/// The maximum number of ancestors that are searched for markers.
const MAX_ANCESTORS: usize = 64;

/// The maximum bytes read from an ancestor's environment. Linux starts no program with more than 6 MiB.
const MAX_ENVIRONMENT: u64 = 8 << 20;

/// The caller of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A person: the process has a controlling terminal and no sign of an agent.
    Person,
    /// A program without a terminal, such as a job of CI or cron.
    Program,
    /// An agent, with the sign that shows it.
    Agent(AgentSign),
}

/// A sign that an agent gives the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentSign {
    /// A run started the program that gives the command.
    Call,
    /// `--actor` names an agent.
    Flag,
    /// `TASKPAWL_ACTOR` names an agent.
    Variable,
    /// The environment of the command has the marker of a coding agent.
    Marker(&'static str),
    /// The environment of an ancestor process has the marker; with its process id.
    Above(&'static str, u32),
}

impl fmt::Display for AgentSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call => f.write_str("a task runs the program that gives this command"),
            Self::Flag => f.write_str("`--actor` gives the command to an agent"),
            Self::Variable => f.write_str("`TASKPAWL_ACTOR` gives the command to an agent"),
            Self::Marker(name) => write!(f, "a coding agent gives this command: `{name}` is set"),
            Self::Above(name, process) => {
                write!(f, "a coding agent gives this command: `{name}` is set in process {process} above it")
            }
        }
    }
}

impl AgentSign {
    /// Returns the next step for a person whom the sign misjudges.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Call => "leave that to a person",
            Self::Flag => "leave `--actor` out",
            Self::Variable => "give the command without `TASKPAWL_ACTOR`",
            Self::Marker(_) | Self::Above(..) => {
                "a person gives the command in a terminal that no agent has started"
            }
        }
    }
}

impl Caller {
    /// Determines the caller. `is_call` says that a run started this program, `has_flag` that `--actor` is given.
    pub(crate) fn find(environment: &Environment, is_call: bool, has_flag: bool) -> Self {
        let by_name = || {
            let has_variable = environment.text("TASKPAWL_ACTOR").is_some();
            has_flag.then_some(AgentSign::Flag).or(has_variable.then_some(AgentSign::Variable))
        };
        let here = || {
            let is_set = |name: &&str| environment.text(name).is_some();
            markers().find(is_set).map(AgentSign::Marker)
        };
        // The search through the ancestors reads many files, so it comes last.
        let sign = is_call.then_some(AgentSign::Call).or_else(by_name).or_else(here).or_else(above);
        match sign {
            Some(sign) => Self::Agent(sign),
            None if has_controlling_terminal() => Self::Person,
            None => Self::Program,
        }
    }

    /// Returns the actor kind of the caller.
    pub(crate) fn kind(&self) -> ActorKind {
        match self {
            Self::Person => ActorKind::Person,
            Self::Program => ActorKind::Program,
            Self::Agent(_) => ActorKind::Agent,
        }
    }
}

/// Returns the names of the marker variables.
fn markers() -> impl Iterator<Item = &'static str> {
    let lines = MARKERS.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|name| !name.is_empty())
}

/// Searches the environments of the ancestors for markers: a command that clears its own environment still descends
/// from the agent. Skips ancestors of other users, whose environments cannot be read.
fn above() -> Option<AgentSign> {
    let mut process = rustix::process::getppid()?.as_raw_nonzero().get().unsigned_abs();
    for _ in 0..MAX_ANCESTORS {
        if let Some(name) = read(process, "environ").and_then(|environment| marker_in(&environment)) {
            return Some(AgentSign::Above(name, process));
        }
        process = parent_in(&read(process, "status")?).filter(|parent| *parent > 1)?;
    }
    None
}

fn read(process: u32, file: &str) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let file = File::open(format!("/proc/{process}/{file}")).ok()?;
    file.take(MAX_ENVIRONMENT).read_to_end(&mut content).ok()?;
    Some(content)
}

/// Returns the first marker that is set. `environment` has the form of `/proc/PID/environ`: entries that end in a
/// zero byte.
fn marker_in(environment: &[u8]) -> Option<&'static str> {
    let has_value = |variable: &[u8], name: &str| {
        let rest = variable.strip_prefix(name.as_bytes());
        rest.and_then(|rest| rest.strip_prefix(b"=")).is_some_and(|value| !value.is_empty())
    };
    let is_set = |name: &str| environment.split(|byte| *byte == 0).any(|variable| has_value(variable, name));
    markers().find(|name| is_set(name))
}

/// Returns the parent's process id from `/proc/PID/status`.
fn parent_in(status: &[u8]) -> Option<u32> {
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"PPid:"))?;
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{MARKERS, marker_in, markers, parent_in};

    #[test]
    fn each_marker_is_a_variable_with_its_source() {
        let names: Vec<&str> = markers().collect();
        assert!(names.is_sorted() && names.contains(&"CLAUDECODE"), "{names:?}");
        for line in MARKERS.lines().filter(|line| !line.starts_with('#')) {
            let (name, source) = line.split_once(" # ").expect("each has a source");
            assert!(name.trim().bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{line}");
            assert!(source.len() > 20, "{line}");
        }
    }

    #[test]
    fn a_marker_counts_where_it_has_a_value() {
        for (environment, expected) in [
            (&b"PATH=/bin\0CLAUDECODE=1\0"[..], Some("CLAUDECODE")),
            (b"CLAUDECODE=\0GEMINI_CLI=1\0", Some("GEMINI_CLI")),
            (b"NOT_CLAUDECODE=1\0CLAUDECODES=1\0X=CLAUDECODE=1\0", None),
            (b"\xff\xfe=1\0OPENCODE=\xff\0", Some("OPENCODE")),
            (b"", None),
        ] {
            assert_eq!(marker_in(environment), expected);
        }
    }

    #[test]
    fn the_parent_of_a_process_is_read_from_its_status() {
        assert_eq!(parent_in(b"Name:\tPPid: 7\nPid:\t9\nPPid:\t42\nTracerPid:\t0\n"), Some(42));
        assert_eq!(parent_in(b"Name:\tx\n"), None);
    }
}
