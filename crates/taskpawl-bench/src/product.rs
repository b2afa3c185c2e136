//! The program `taskpawl`, as people start it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// The program, with a home of its own.
#[derive(Debug, Clone)]
pub(crate) struct Product {
    program: PathBuf,
    home: PathBuf,
}

impl Product {
    /// Installs the program that lies beside this one, as `cargo install` does. What a linker has just written lies in the cache in
    /// smaller pieces than a file that was copied, and starts slower.
    pub(crate) fn find(scratch: &Path) -> Result<Self, Failure> {
        let built = std::env::current_exe()?.with_file_name("taskpawl");
        if !built.exists() {
            return Err(format!("{} is not built: `scripts/bench` builds it", built.display()).into());
        }
        let (home, program) = (scratch.join("home"), scratch.join("taskpawl"));
        std::fs::create_dir_all(&home)?;
        if !program.exists() {
            std::fs::copy(built, &program)?;
        }
        Ok(Self { program, home })
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns a command on a store that knows nothing of whoever starts it.
    pub(crate) fn command(&self, store: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.home).env("XDG_STATE_HOME", self.home.join("state"));
        command.env("TASKPAWL_STORE", store).args(args);
        command
    }
}
