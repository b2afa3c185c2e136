use std::ffi::OsString;
use std::path::PathBuf;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bounded::blocking_within;
use crate::error::SpawnError;
use crate::locate::locate;
use crate::program::Program;

/// The file of a program and the directory that it runs in, both absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) file: PathBuf,
    pub(crate) cwd: PathBuf,
}

impl Located {
    /// Finds a program on a thread that may block. Its directory, or one in its `PATH`, may be on a file system that does
    /// not answer, and the dispatcher's thread serves all calls of a run.
    pub(crate) async fn of(
        program: &Program,
        cancel: &CancellationToken,
        deadline: Option<Instant>,
    ) -> Result<Self, SpawnError> {
        let name = program.argv.first().ok_or(SpawnError::EmptyCommand)?.clone();
        let (cwd, path) = (program.cwd.clone(), program.environment.path());
        let found = blocking_within(cancel, deadline, {
            let name = name.clone();
            move || Self::find(&name, cwd, path)
        });
        found.await.unwrap_or_else(|why| Err(SpawnError::NotFoundInTime { program: name, why }))
    }

    fn find(name: &str, cwd: PathBuf, path: Option<OsString>) -> Result<Self, SpawnError> {
        let absolute = if cwd.is_dir() { std::path::absolute(&cwd).ok() } else { None };
        let Some(absolute) = absolute else { return Err(SpawnError::WorkingDirectory { path: cwd }) };
        Ok(Self { file: locate(name, &absolute, path)?, cwd: absolute })
    }
}
