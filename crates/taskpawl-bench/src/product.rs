//! The program `taskpawl`, started as by users.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// The program, with its own home directory.
#[derive(Debug, Clone)]
pub(crate) struct Product {
    program: PathBuf,
    home: PathBuf,
}

impl Product {
    /// Copies the program next to this one to the scratch directory, as `cargo install` does. A file that the linker
    /// has just written is cached in smaller pieces than a copied one, and starts more slowly.
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

    /// Returns a command on a store, isolated from the environment of this process.
    pub(crate) fn command(&self, store: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.home).env("XDG_STATE_HOME", self.home.join("state"));
        command.env("TASKPAWL_STORE", store).args(args);
        command
    }
}
