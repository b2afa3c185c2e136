//! What the process was started with, read once: nothing else in this crate looks at the environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::PathBuf;

/// Variables, directory and streams as they were at the start.
#[derive(Debug)]
pub(crate) struct Environment {
    variables: BTreeMap<OsString, OsString>,
    /// The directory that the program was started in.
    pub(crate) directory: PathBuf,
    /// The streams.
    pub(crate) terminal: Terminal,
}

/// Which streams a person sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// Somebody can be asked.
    pub(crate) stdin: bool,
    /// Data goes to eyes.
    pub(crate) stdout: bool,
    /// Remarks go to eyes.
    pub(crate) stderr: bool,
    /// How many columns standard output has; `None` where it is no terminal.
    pub(crate) width: Option<usize>,
}

impl Environment {
    /// Reads what the process was started with.
    pub(crate) fn read() -> Self {
        // A directory that is gone is found to be so by the first command that needs it.
        let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let variables: BTreeMap<_, _> = std::env::vars_os().collect();
        let columns = variables.get(OsStr::new("COLUMNS")).and_then(|text| text.to_str()?.parse().ok());
        Self { terminal: Terminal::look(columns), variables, directory }
    }

    /// Returns the same, started in another directory.
    pub(crate) fn in_directory(&self, directory: PathBuf) -> Self {
        Self { variables: self.variables.clone(), directory, terminal: self.terminal }
    }

    /// Returns a variable that says something; one with nothing in it counts as absent. So does a relative `HOME`: it would name another
    /// place in each directory, for the store one inside of the project.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        let path = self.variables.get(OsStr::new(name)).filter(|value| !value.is_empty()).map(PathBuf::from);
        path.filter(|path| name != "HOME" || path.is_absolute())
    }

    /// Returns a variable that says something, as text; what is no text in it is replaced.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsStr::new(name)).filter(|value| !value.is_empty())?;
        Some(value.to_string_lossy().into_owned())
    }

    /// Returns whether a stream has colours about which nobody said anything.
    pub(crate) fn has_colours(&self, is_terminal: bool) -> bool {
        let is_dumb = self.text("TERM").is_none_or(|term| term == "dumb");
        is_terminal && !is_dumb && self.text("NO_COLOR").is_none()
    }

    /// Returns what says by which descriptor the plan of the call is reached that this process belongs to.
    pub(crate) fn plan_descriptor(&self) -> Option<String> {
        self.text(taskpawl::tools::PLAN_VARIABLE)
    }

    /// Returns all of them, for what names variables by itself.
    pub(crate) fn variables(&self) -> BTreeMap<OsString, OsString> {
        self.variables.clone()
    }

    /// Returns in whose name commands are given when nobody says so: user@host.
    pub(crate) fn user_at_host(&self) -> String {
        let user = self.text("USER").or_else(|| self.text("LOGNAME"));
        let user = user.unwrap_or_else(|| format!("uid{}", rustix::process::getuid().as_raw()));
        format!("{user}@{}", self.host())
    }

    /// Returns the name of the machine.
    pub(crate) fn host(&self) -> String {
        // For tests, beside `TASKPAWL_TEST_NOW` and `TASKPAWL_TEST_SEED`: snapshots show the host.
        let test = self.text("TASKPAWL_TEST_HOST");
        test.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
    }
}

impl Terminal {
    fn look(columns: Option<usize>) -> Self {
        let stdout = std::io::stdout();
        let is_terminal = stdout.is_terminal();
        let measured = || rustix::termios::tcgetwinsize(&stdout).ok().map(|size| usize::from(size.ws_col));
        let width = columns.or_else(measured).filter(|width| is_terminal && *width > 0);
        Self {
            stdin: std::io::stdin().is_terminal(),
            stdout: is_terminal,
            stderr: std::io::stderr().is_terminal(),
            width,
        }
    }

    /// Returns whether somebody can be asked: who answers has to see the question, and a process in the background would be
    /// stopped when it reads from the terminal.
    pub(crate) fn can_ask(self) -> bool {
        self.stdin && self.stderr && is_in_foreground()
    }
}

/// Returns whether this process has a controlling terminal: somebody started it by hand, and not a program in the background,
/// whatever its streams are.
pub(crate) fn has_controlling_terminal() -> bool {
    std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty").is_ok()
}

/// Returns whether this process may read from its terminal now; where there is none, nothing stands against it.
pub(crate) fn is_in_foreground() -> bool {
    let foreground = rustix::termios::tcgetpgrp(std::io::stdin());
    foreground.map_or(true, |group| group == rustix::process::getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_home_counts_as_absent() {
        let home = |value: &str| {
            let variables = BTreeMap::from([("HOME".into(), value.into())]);
            Environment { variables, directory: PathBuf::from("/"), terminal: Terminal::look(None) }
                .path("HOME")
        };
        assert_eq!(home("/home/ann"), Some(PathBuf::from("/home/ann")));
        for value in ["home/ann", ".", ""] {
            assert_eq!(home(value), None, "{value:?}");
        }
    }
}
