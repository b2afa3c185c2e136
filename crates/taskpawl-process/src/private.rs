//! Directories and files with owner-only permissions under any umask. A umask can also remove permissions of
//! the owner, which would create directories that the run itself cannot use.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::beneath::PATH_ONLY;

/// The mode of directories.
const DIRECTORY: u32 = 0o700;

/// The mode of files.
const FILE: u32 = 0o600;

/// Creates a directory with mode 0700.
///
/// # Errors
/// The directory exists already, or cannot be created.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIRECTORY).create(path)?;
    // Open it once, without following links, and change the mode of that inode. A program may replace the
    // path at any time.
    let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if directory.metadata()?.permissions().mode() & DIRECTORY == DIRECTORY {
        return Ok(());
    }
    set_mode(&directory, Permissions::from_mode(DIRECTORY))
}

#[cfg(target_os = "linux")]
fn set_mode(directory: &File, mode: Permissions) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;

    // `fchmod` fails on an `O_PATH` descriptor, but its name in `/proc` works.
    std::fs::set_permissions(format!("/proc/self/fd/{}", directory.as_raw_fd()), mode)
}

#[cfg(not(target_os = "linux"))]
fn set_mode(directory: &File, mode: Permissions) -> io::Result<()> {
    directory.set_permissions(mode)
}

/// Creates a directory and its missing ancestors with mode 0700. Existing ones keep their mode.
///
/// # Errors
/// A directory cannot be created, or a path component is not a directory.
pub fn make_private_directories(path: &Path) -> io::Result<()> {
    match make_private_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = path.parent().filter(|above| !above.as_os_str().is_empty()).ok_or(error)?;
            make_private_directories(above)?;
            make_private_directories_again(path)
        }
        made => made,
    }
}

/// Second attempt of [`make_private_directories`], after the parent was created. Another process may have
/// created the directory.
fn make_private_directories_again(path: &Path) -> io::Result<()> {
    match make_private_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Restores the permissions of the owner on a new file, if the umask has removed them.
///
/// # Errors
/// The mode cannot be read or changed.
pub fn keep_owner_rights(file: &File) -> io::Result<()> {
    if file.metadata()?.permissions().mode() & FILE == FILE {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(FILE))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    /// The umask is a property of the whole process, so each one is tested in a process of its own.
    #[test]
    fn modes_do_not_depend_on_the_umask() {
        const VARIABLE: &str = "TASKPAWL_TEST_PRIVATE";
        if let Some(place) = std::env::var_os(VARIABLE) {
            let place = Path::new(&place);
            make_private_directories(&place.join("a/b")).unwrap();
            make_private_directories(&place.join("a/b")).unwrap();
            assert!(make_private_directory(&place.join("a")).is_err());
            let file = File::create(place.join("a/b/file")).unwrap();
            keep_owner_rights(&file).unwrap();
            return;
        }
        let test = "private::tests::modes_do_not_depend_on_the_umask";
        for umask in ["0000", "0022", "0177", "0777"] {
            let dir = tempfile::tempdir().unwrap();
            let run = format!("umask {umask}; exec \"$0\" --exact {test}");
            let mut shell = Command::new("sh");
            shell.args(["-c", &run]).arg(std::env::current_exe().unwrap()).env(VARIABLE, dir.path());
            let output = shell.output().unwrap();
            assert!(output.status.success(), "{umask}: {output:?}");
            for name in ["a", "a/b"] {
                assert_eq!(mode(&dir.path().join(name)), 0o700, "{umask}: {name}");
            }
            let file = mode(&dir.path().join("a/b/file"));
            assert_eq!(file & 0o700, 0o600, "{umask}");
        }
    }
}
