//! Directories and files for their owner alone, whatever the umask of the caller: one that takes rights from the owner would make
//! directories that the run itself cannot use.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// The mode of such a directory.
const DIRECTORY: u32 = 0o700;

/// The mode of such a file.
const FILE: u32 = 0o600;

/// Makes a directory for its owner alone.
///
/// # Errors
/// It is there already, or cannot be made.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIRECTORY).create(path)?;
    // Opened by its name once, so that what a program puts in its place keeps its own mode.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if directory.metadata()?.permissions().mode() & DIRECTORY == DIRECTORY {
        return Ok(());
    }
    // Such a descriptor has no permissions to change but by its name in `/proc`.
    let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
    std::fs::set_permissions(name, Permissions::from_mode(DIRECTORY))
}

/// Makes a directory with those above it that are missing, each for its owner alone; those that are there stay as they are.
///
/// # Errors
/// One of them cannot be made, or is no directory.
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

/// As [`make_private_directories`], once what is above is there: another process may have made it meanwhile.
fn make_private_directories_again(path: &Path) -> io::Result<()> {
    match make_private_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Gives the owner of a file that was just made the rights that the umask took.
///
/// # Errors
/// Its mode cannot be read or changed.
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

    /// The umask belongs to the whole process, so each is tried in a process of its own.
    #[test]
    fn no_umask_changes_them() {
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
        let test = "private::tests::no_umask_changes_them";
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
