use std::io;
use std::path::{Path, PathBuf};

use taskpawl_manager::{Source as _, SystemSource};
use taskpawl_tools::make_private_directory;

/// A directory for the files of a store in memory, which is removed with its last handle.
///
/// The crate `tempfile` would bring three more crates into programs that need nothing else of it.
#[derive(Debug)]
pub(crate) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Creates a directory that only this user can read. Its random name is not taken: a directory that exists is an error.
    pub(crate) fn make() -> io::Result<Self> {
        // Not the ids of the store, which tests make repeatable.
        let path = std::env::temp_dir().join(format!("taskpawl-{}", SystemSource.new_id()));
        make_private_directory(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // The system removes leftovers, as after a crash.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_directory_is_for_this_user_alone_and_goes_with_its_handle() {
        let (one, other) = (TemporaryDirectory::make().unwrap(), TemporaryDirectory::make().unwrap());
        let mode = one.path().metadata().unwrap().permissions().mode();
        assert_eq!((mode & 0o777, one.path() == other.path()), (0o700, false));
        std::fs::write(one.path().join("file"), "x").unwrap();
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }
}
