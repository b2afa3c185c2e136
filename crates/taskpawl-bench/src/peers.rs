//! Other programs that run graphs, as installed by `scripts/bench`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::group::Subject;
use crate::measure::reported_by;

/// Directory of the peers: programs in `bin`, Python in `venv/bin`. Programs of the system are found in `PATH`.
#[derive(Debug, Clone)]
pub(crate) struct Peers(PathBuf);

impl Peers {
    pub(crate) fn at(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Returns the path of a program, if it is installed.
    pub(crate) fn find(&self, program: &str) -> Option<PathBuf> {
        let own = [self.0.join("bin"), self.0.join("venv/bin")];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = own.into_iter().chain(std::env::split_paths(&path));
        places.map(|place| place.join(program)).find(|path| path.is_file())
    }

    /// Returns the path of a Python program for the comparison.
    pub(crate) fn script(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/python").join(name)
    }

    /// Returns a subject that measures itself, or a missing one if the program is not installed.
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
            // Python must not write `__pycache__` into the source tree.
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            prepare(&mut command);
            reported_by(&mut command)
        })
    }
}
