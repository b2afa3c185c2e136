//! Directory for the temporary files of a run: created at its start and removed at its end.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use taskpawl_model::value::RunId;
use taskpawl_tools::make_private_directory;

/// Length of the part of the name that is specific to the run. Short, because the path of a Unix socket in the
/// directory is limited to 107 bytes.
const NAME: usize = 10;

/// Creates the directory of a run below `base`. Its path is written to `lock`, the lock file of the run, before the
/// directory is created: a recovery that finds the lock of a dead run can then always find the directory.
pub(crate) fn make(base: &Path, lock: &mut File, lock_path: &Path, run: &RunId) -> io::Result<PathBuf> {
    let mut count = 0_u32;
    loop {
        // Run ids may be counted from one in every store, so the path of the lock file is part of the hash.
        let seed = format!("{}\0{run}\0{count}", lock_path.display());
        let name = format!("{:x}", Sha256::digest(seed));
        let path = base.join(format!("taskpawl-{}", &name[..NAME]));
        note(lock, &path)?;
        match make_private_directory(&path) {
            // The name is taken, possibly by an attacker, since `/tmp` is shared. A directory of another user must
            // never be used, so another name is tried.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && count < 100 => count += 1,
            made => return made.map(|()| path),
        }
    }
}

/// Removes the temporary directory that is recorded in the lock file of a run, if there is one.
pub(crate) fn remove_by(lock: &mut File) -> io::Result<()> {
    let mut path = Vec::new();
    lock.rewind()?;
    lock.read_to_end(&mut path)?;
    if path.is_empty() {
        return Ok(());
    }
    remove(Path::new(&std::ffi::OsString::from_vec(path)))?;
    // An empty lock file means that nothing is left to remove.
    lock.set_len(0)
}

/// Removes the directory of a run with all contents. Tools may have left directories without write permission.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let gone = |error: io::Error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) };
    fs::remove_dir_all(path).or_else(|error| {
        if error.kind() != io::ErrorKind::PermissionDenied {
            return gone(error);
        }
        unlock(path)?;
        fs::remove_dir_all(path).or_else(gone)
    })
}

/// Makes `path` and every directory below it writable for the owner. Does not follow symbolic links.
fn unlock(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            unlock(&entry.path())?;
        }
    }
    Ok(())
}

fn note(lock: &mut File, path: &Path) -> io::Result<()> {
    lock.rewind()?;
    lock.set_len(0)?;
    lock.write_all(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn the_lock_file_records_the_temporary_directory() {
        let dir = tempfile::tempdir().unwrap();
        let lock_path = dir.path().join("lock");
        let mut lock = OpenOptions::new().read(true).write(true).create_new(true).open(&lock_path).unwrap();
        let made = make(dir.path(), &mut lock, &lock_path, &RunId::from("r1".to_owned())).unwrap();
        assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir_all(made.join("a/b")).unwrap();
        fs::set_permissions(made.join("a"), fs::Permissions::from_mode(0o500)).unwrap();

        remove_by(&mut lock).unwrap();
        assert!(!made.exists());
        assert_eq!(lock.metadata().unwrap().len(), 0);
        remove_by(&mut lock).unwrap();
    }

    #[test]
    fn an_existing_directory_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let lock_path = dir.path().join("lock");
        let mut lock = OpenOptions::new().read(true).write(true).create_new(true).open(&lock_path).unwrap();
        let run = RunId::from("r1".to_owned());
        let first = make(dir.path(), &mut lock, &lock_path, &run).unwrap();
        let second = make(dir.path(), &mut lock, &lock_path, &run).unwrap();
        assert_ne!(first, second);
        remove_by(&mut lock).unwrap();
        assert!(first.exists() && !second.exists());
    }
}
