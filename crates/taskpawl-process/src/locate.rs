use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::error::SpawnError;

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
