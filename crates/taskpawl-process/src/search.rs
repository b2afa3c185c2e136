//! Lookup of programs that run outside the sandbox. It skips directories where sandboxed programs could have
//! put a file.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::SpawnError;
use crate::locate::locate;

/// The search path if there is no `PATH`, or if all of its directories are skipped.
const SYSTEM: &str = "/usr/bin:/bin";

/// A `PATH` for programs that run outside the sandbox, and for the programs that they start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath {
    path: OsString,
    /// The skipped directories of the original `PATH`.
    left_out: Vec<PathBuf>,
}

impl SearchPath {
    /// Returns the `PATH` of this process without relative directories, and without those inside `writable`,
    /// where sandboxed programs may write. Directories that only administrators can change are kept in any
    /// case.
    pub fn outside(writable: &[PathBuf]) -> Self {
        Self::of(std::env::var_os("PATH"), writable)
    }

    fn of(path: Option<OsString>, writable: &[PathBuf]) -> Self {
        let path = path.unwrap_or_else(|| SYSTEM.into());
        let writable: Vec<PathBuf> = writable.iter().map(|place| real(place)).collect();
        let is_safe = |directory: &PathBuf| {
            let real = real(directory);
            let is_open =
                writable.iter().any(|place| real.starts_with(place) || directory.starts_with(place));
            directory.is_absolute() && (!is_open || is_of_administrators(&real))
        };
        let (kept, left_out): (Vec<_>, Vec<_>) = std::env::split_paths(&path).partition(is_safe);
        // Cannot fail: the directories come from a valid list.
        let joined = std::env::join_paths(&kept).unwrap_or_default();
        let path = if joined.is_empty() { SYSTEM.into() } else { joined };
        Self { path, left_out }
    }

    /// Returns the value for the variable `PATH`.
    pub fn as_os_str(&self) -> &OsStr {
        &self.path
    }

    /// Finds a program. A name with a slash is used as a path.
    ///
    /// # Errors
    /// The program is in none of the directories. The error says so if it is in a skipped one.
    pub fn find(&self, program: &str) -> Result<PathBuf, SpawnError> {
        locate(program, Path::new("/"), Some(self.path.clone())).map_err(|error| {
            let planted = self.left_out.iter().map(|directory| directory.join(program));
            match planted.filter(|_| !program.contains('/')).find(|file| file.is_file()) {
                Some(file) => SpawnError::Planted { program: file },
                None => error,
            }
        })
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns whether only administrators can change a directory, and the current user is not root.
fn is_of_administrators(directory: &Path) -> bool {
    let is_theirs =
        |path: &Path| path.metadata().is_ok_and(|data| data.uid() == 0 && data.mode() & 0o022 == 0);
    !rustix::process::geteuid().is_root() && directory.ancestors().all(is_theirs)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_in_writable_directories_are_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["project/bin", "tools"] {
            fs::create_dir_all(at(name)).unwrap();
            fs::write(at(name).join("pass"), "#!/bin/sh\n").unwrap();
            fs::set_permissions(at(name).join("pass"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink(at("project/bin"), at("link")).unwrap();
        let path = |directories: &[PathBuf]| Some(std::env::join_paths(directories).unwrap());
        let planted = [at("project/bin"), at("link"), "project/bin".into(), "".into()];
        let all: Vec<PathBuf> = planted.iter().cloned().chain([at("tools")]).collect();
        let search = SearchPath::of(path(&all), &[at("project")]);
        assert_eq!(search.as_os_str(), at("tools"));
        assert_eq!(search.find("pass").unwrap(), at("tools/pass"));
        let nothing = SearchPath::of(path(&planted), &[at("project")]);
        assert_eq!(nothing.as_os_str(), SYSTEM);
        let error = nothing.find("pass").unwrap_err().to_string();
        assert!(error.contains("project/bin/pass` is writable by programs of plans"), "{error}");
        assert!(matches!(nothing.find("no-such-program"), Err(SpawnError::NotInPath { .. })));
        assert_eq!(SearchPath::of(path(&planted[..1]), &[]).find("pass").unwrap(), at("project/bin/pass"));
    }
}
