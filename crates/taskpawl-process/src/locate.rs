use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bounded::blocking_within;
use crate::error::SpawnError;
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

/// Finds the file of a program like `execvp`: a name without a slash in `path`, any other name relative to
/// `cwd`.
///
/// The standard library could do the lookup, but with a `PATH` that differs from its own it does not use
/// `posix_spawn`. Its error also names neither the program nor the searched directories.
pub(crate) fn locate(program: &str, cwd: &Path, path: Option<OsString>) -> Result<PathBuf, SpawnError> {
    if program.contains('/') {
        let file = cwd.join(program.trim_start_matches("./"));
        return runnable(file.clone()).map_err(|seen| refusal(seen, file));
    }
    // The default of `execvp` without a PATH.
    let path = path.unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let mut not_executable = None;
    for dir in std::env::split_paths(&path).filter(|_| !program.is_empty()) {
        let file = cwd.join(dir).join(program);
        match runnable(file.clone()) {
            Ok(file) => return Ok(file),
            Err(Seen::File) => not_executable = not_executable.or(Some(file)),
            Err(Seen::Nothing) => {}
        }
    }
    Err(match not_executable {
        Some(program) => SpawnError::NotExecutable { program },
        None => not_in_path(program, &path),
    })
}

#[derive(Clone, Copy)]
enum Seen {
    Nothing,
    File,
}

fn runnable(file: PathBuf) -> Result<PathBuf, Seen> {
    match access(&file, Access::EXEC_OK) {
        Ok(()) if file.is_file() => Ok(file),
        // Most directories of a PATH do not have the file, so do not spend a second system call on them.
        Err(Errno::NOENT | Errno::NOTDIR) => Err(Seen::Nothing),
        Ok(()) | Err(_) if file.exists() => Err(Seen::File),
        Ok(()) | Err(_) => Err(Seen::Nothing),
    }
}

fn refusal(seen: Seen, program: PathBuf) -> SpawnError {
    match seen {
        Seen::Nothing => SpawnError::NotFound { program },
        Seen::File => SpawnError::NotExecutable { program },
    }
}

fn not_in_path(program: &str, path: &OsStr) -> SpawnError {
    SpawnError::NotInPath { program: program.to_owned(), path: path.to_string_lossy().into_owned() }
}
