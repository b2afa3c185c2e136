//! The directory for the temporary files of a run: made when it starts, gone when it has ended.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use taskpawl_model::RunId;
use taskpawl_tools::make_private_directory;

/// How long the part of the name is that tells runs apart: sockets in the directory have paths of 107 bytes at most.
const NAME: usize = 10;

/// Makes the directory of a run beneath `base`. `lock`, which is the run's, knows its name before it exists, so that whoever finds
/// the lock of a dead run finds the directory too.
pub(crate) fn make(base: &Path, lock: &mut File, lock_path: &Path, run: &RunId) -> io::Result<PathBuf> {
    let mut count = 0_u32;
    loop {
        // Ids of runs may be counted from one; the path of the lock belongs to one store.
        let known = format!("{}\0{run}\0{count}", lock_path.display());
        let name = format!("{:x}", Sha256::digest(known));
        let path = base.join(format!("taskpawl-{}", &name[..NAME]));
        note(lock, &path)?;
        match make_private_directory(&path) {
            // Somebody was there first. A directory of somebody else's must not be used, whatever it looks like.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && count < 100 => count += 1,
            made => return made.map(|()| path),
        }
    }
}

/// Removes the directory of the run whose lock this is, if it has one that is left.
pub(crate) fn remove_by(lock: &mut File) -> io::Result<()> {
    let mut path = Vec::new();
    lock.rewind()?;
    lock.read_to_end(&mut path)?;
    if path.is_empty() {
        return Ok(());
    }
    remove(Path::new(&std::ffi::OsString::from_vec(path)))?;
    lock.set_len(0)
}

/// Removes the directory of a run with everything in it. Tools may have left directories that nothing can be removed from.
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

/// Lets every directory beneath `path` be changed by its owner. Links are not followed.
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
    fn the_lock_of_a_run_leads_to_its_directory() {
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
    fn what_stands_there_already_is_not_used() {
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
