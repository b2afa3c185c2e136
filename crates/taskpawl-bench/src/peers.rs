//! Other programs that run graphs, where `scripts/bench` has put them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::group::Subject;
use crate::measure::reported_by;

/// Where the peers are: programs in `bin` and, of Python, in `venv/bin`; those of the system are found by name.
#[derive(Debug, Clone)]
pub(crate) struct Peers(PathBuf);

impl Peers {
    pub(crate) fn at(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Returns where a program is, if it is installed.
    pub(crate) fn find(&self, program: &str) -> Option<PathBuf> {
        let own = [self.0.join("bin"), self.0.join("venv/bin")];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = own.into_iter().chain(std::env::split_paths(&path));
        places.map(|place| place.join(program)).find(|path| path.is_file())
    }

    /// Returns a program written for the comparison, in Python.
    pub(crate) fn script(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/python").join(name)
    }

    /// Returns a subject that measures itself, or one that is missing.
    pub(crate) fn subject(
        &self,
        name: &str,
        program: &str,
        count: usize,
        prepare: impl Fn(&mut Command) + 'static,
    ) -> Subject {
        let Some(path) = self.find(program) else {
            return Subject::missing(name, format!("`{program}` is not installed"));
        };
        Subject::new(name, count, move || {
            let mut command = Command::new(&path);
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            prepare(&mut command);
            reported_by(&mut command)
        })
    }
}
