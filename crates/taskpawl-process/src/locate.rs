use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::error::SpawnError;

/// Finds the file of a program as `execvp` would: a name without slash in `path`, any other from `cwd`.
///
/// It is done here because the standard library leaves `posix_spawn` when it has to look up a name in a `PATH`
/// that differs from its own, and because the system's answer names neither the program nor what was searched.
pub(crate) fn locate(program: &str, cwd: &Path, path: Option<OsString>) -> Result<PathBuf, SpawnError> {
    if program.contains('/') {
        let file = cwd.join(program.trim_start_matches("./"));
        return runnable(file.clone()).map_err(|seen| refusal(seen, file));
    }
    // What `execvp` takes when there is no PATH.
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
        // As a rule most directories of a PATH do not have the file: one look at each has to do.
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
