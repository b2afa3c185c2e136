//! The environment of the process, read once. No other module reads variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::PathBuf;

/// Variables, directory and streams at the start of the process.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    variables: BTreeMap<OsString, OsString>,
    /// The working directory at the start.
    pub(crate) directory: PathBuf,
    /// The standard streams.
    pub(crate) terminal: Terminal,
}

/// The standard streams that are terminals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// True if standard input is a terminal.
    pub(crate) stdin: bool,
    /// True if standard output is a terminal.
    pub(crate) stdout: bool,
    /// True if standard error is a terminal.
    pub(crate) stderr: bool,
    /// The columns of standard output; `None` if it is no terminal.
    pub(crate) width: Option<usize>,
}

impl Environment {
    /// Reads the environment of the process.
    pub(crate) fn read() -> Self {
        // A deleted directory is no error here; the first command that uses it reports it.
        let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let variables: BTreeMap<_, _> = std::env::vars_os().collect();
        let columns = variables.get(OsStr::new("COLUMNS")).and_then(|text| text.to_str()?.parse().ok());
        Self { terminal: Terminal::look(columns), variables, directory }
    }

    /// Returns the same environment with another directory.
    pub(crate) fn in_directory(&self, directory: PathBuf) -> Self {
        Self { variables: self.variables.clone(), directory, terminal: self.terminal }
    }

    /// Returns a variable as a path. An empty variable counts as unset. So does a relative `HOME`, which would put
    /// the store at another path in each directory.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        let path = self.variables.get(OsStr::new(name)).filter(|value| !value.is_empty()).map(PathBuf::from);
        path.filter(|path| name != "HOME" || path.is_absolute())
    }

    /// Returns a variable as text, with invalid UTF-8 replaced. An empty variable counts as unset.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsStr::new(name)).filter(|value| !value.is_empty())?;
        Some(value.to_string_lossy().into_owned())
    }

    /// Returns whether a stream gets colours by default.
    pub(crate) fn has_colours(&self, is_terminal: bool) -> bool {
        let is_dumb = self.text("TERM").is_none_or(|term| term == "dumb");
        is_terminal && !is_dumb && self.text("NO_COLOR").is_none()
    }

    /// Returns the number of the descriptor that leads to the plan of the surrounding call, if there is one.
    pub(crate) fn plan_descriptor(&self) -> Option<String> {
        self.text(taskpawl::tools::PLAN_VARIABLE)
    }

    /// Returns all variables.
    pub(crate) fn variables(&self) -> BTreeMap<OsString, OsString> {
        self.variables.clone()
    }

    /// Returns the default actor, `USER@HOST`.
    pub(crate) fn user_at_host(&self) -> String {
        let user = self.text("USER").or_else(|| self.text("LOGNAME"));
        let user = user.unwrap_or_else(|| format!("uid{}", rustix::process::getuid().as_raw()));
        format!("{user}@{}", self.host())
    }

    /// Returns the name of the machine.
    pub(crate) fn host(&self) -> String {
        // For tests, like `TASKPAWL_TEST_NOW` and `TASKPAWL_TEST_SEED`: snapshots contain the host.
        let test = self.text("TASKPAWL_TEST_HOST");
        test.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
    }
}

impl Terminal {
    fn look(columns: Option<usize>) -> Self {
        let stdout = std::io::stdout();
        let is_terminal = stdout.is_terminal();
        let measured = || rustix::termios::tcgetwinsize(&stdout).ok().map(|size| usize::from(size.ws_col));
        // Some terminals report 0 columns, for example a new pseudo-terminal.
        let width = columns.or_else(measured).filter(|width| is_terminal && *width > 0);
        Self {
            stdin: std::io::stdin().is_terminal(),
            stdout: is_terminal,
            stderr: std::io::stderr().is_terminal(),
            width,
        }
    }

    /// Returns whether a question can be asked. The person has to see it, and the kernel stops a background process
    /// that reads from the terminal.
    pub(crate) fn can_ask(self) -> bool {
        self.stdin && self.stderr && is_in_foreground()
    }
}

/// Returns whether the process has a controlling terminal. Unlike a check of the streams, this also finds a person
/// whose streams are redirected. Background services have none.
pub(crate) fn has_controlling_terminal() -> bool {
    std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty").is_ok()
}

/// Returns whether the process may read from its terminal now. Without a terminal nothing prevents it.
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
