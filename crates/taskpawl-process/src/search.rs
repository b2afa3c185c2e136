//! Where programs are looked up that run outside of the sandbox: never where those inside may have put one.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::SpawnError;
use crate::locate::locate;

/// What is searched where there is no `PATH`, or nothing of it is left.
const SYSTEM: &str = "/usr/bin:/bin";

/// A `PATH` for programs that run outside of the sandbox, and for what they start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath {
    path: OsString,
    /// Directories of the `PATH` that are left out.
    left_out: Vec<PathBuf>,
}

impl SearchPath {
    /// Returns the `PATH` of this process without directories in which programs inside the sandbox may write, which are those
    /// beneath `writable`, and without relative ones. Directories that only administrators change stay, whatever is writable.
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
        // They come from such a list, so they can be one again.
        let joined = std::env::join_paths(&kept).unwrap_or_default();
        let path = if joined.is_empty() { SYSTEM.into() } else { joined };
        Self { path, left_out }
    }

    /// Returns the value for the variable `PATH`.
    pub fn as_os_str(&self) -> &OsStr {
        &self.path
    }

    /// Finds a program by its name. One that is named with its place is taken from there.
    ///
    /// # Errors
    /// It is in none of the directories; the error says so if it is in one that was left out.
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

/// Returns whether only administrators change what is in a directory, and the user is none.
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
    fn programs_are_not_taken_from_where_others_may_put_them() {
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
        assert!(error.contains("project/bin/pass` is where programs of plans may write"), "{error}");
        assert!(matches!(nothing.find("no-such-program"), Err(SpawnError::NotInPath { .. })));
        assert_eq!(SearchPath::of(path(&planted[..1]), &[]).find("pass").unwrap(), at("project/bin/pass"));
    }
}
