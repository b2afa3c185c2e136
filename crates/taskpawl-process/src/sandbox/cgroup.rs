use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::profile::ResourceLimits;

/// Whether this process has entered a cgroup of its own.
static HAS_OWN: AtomicBool = AtomicBool::new(false);

/// Makes a cgroup with the limits and enters it, where one may be made: beside that of this process or in it.
pub(super) fn enter(limits: &ResourceLimits) -> Result<PathBuf, String> {
    let name = format!("taskpawl-{}", std::process::id());
    let own = own().ok_or("there is no cgroup of version 2")?;
    let mut problem = "no cgroup is delegated".to_owned();
    for parent in [own.parent(), Some(&*own)].into_iter().flatten() {
        match make(&parent.join(&name), limits) {
            Ok(()) => {
                HAS_OWN.store(true, Ordering::Relaxed);
                return Ok(parent.join(&name));
            }
            Err(error) => problem = format!("no cgroup is delegated ({error})"),
        }
    }
    Err(problem)
}

pub(super) fn has_own() -> bool {
    HAS_OWN.load(Ordering::Relaxed)
}

/// Removes a cgroup whose processes are gone.
pub(crate) fn leave(cgroup: &Path) {
    // One that stays behind is empty and limits nobody.
    let _ = std::fs::remove_dir(cgroup);
}

/// Returns the directory of the cgroup that this process is in.
fn own() -> Option<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
    mounts.into_iter().find(|mount| mount.join("cgroup.controllers").exists()).map(|mount| mount.join(path))
}

fn make(cgroup: &Path, limits: &ResourceLimits) -> io::Result<()> {
    std::fs::create_dir(cgroup)?;
    let enter = || {
        limit(cgroup, limits)?;
        write(&cgroup.join("cgroup.procs"), std::process::id().into())
    };
    enter().inspect_err(|_| leave(cgroup))
}

fn limit(cgroup: &Path, limits: &ResourceLimits) -> io::Result<()> {
    for (file, limit) in [("pids.max", limits.processes), ("memory.max", limits.memory)] {
        if let Some(limit) = limit {
            write(&cgroup.join(file), limit)?;
        }
    }
    let swap = cgroup.join("memory.swap.max");
    // What is beyond the limit is not to go to the disk instead. Kernels without swap have no such file.
    if limits.memory.is_some() && swap.exists() { write(&swap, 0) } else { Ok(()) }
}

/// Writes a file that has to be there: the kernel makes those of the controllers that were handed down.
fn write(file: &Path, number: u64) -> io::Result<()> {
    use io::Write;

    std::fs::OpenOptions::new().write(true).open(file)?.write_all(number.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ResourceLimits =
        ResourceLimits { open_files: 1024, processes: Some(40), memory: Some(1 << 30) };

    /// A directory with the files that the kernel would make.
    fn directory(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(directory.path().join(file), "").unwrap();
        }
        directory
    }

    #[test]
    fn limits_are_written_where_the_controllers_are() {
        let text = |directory: &tempfile::TempDir, file: &str| {
            std::fs::read_to_string(directory.path().join(file)).unwrap()
        };
        let whole = directory(&["pids.max", "memory.max", "memory.swap.max"]);
        limit(whole.path(), &LIMITS).unwrap();
        let written = ["pids.max", "memory.max", "memory.swap.max"].map(|file| text(&whole, file));
        assert_eq!(written, ["40", "1073741824", "0"]);

        let without_swap = directory(&["pids.max", "memory.max"]);
        limit(without_swap.path(), &LIMITS).unwrap();
        assert_eq!(text(&without_swap, "memory.max"), "1073741824");
    }

    #[test]
    fn a_limit_that_cannot_be_set_is_an_error_and_leaves_nothing() {
        let without_memory = directory(&["pids.max"]);
        assert_eq!(limit(without_memory.path(), &LIMITS).unwrap_err().kind(), io::ErrorKind::NotFound);
        let place = tempfile::tempdir().unwrap();
        let cgroup = place.path().join("taskpawl-1");
        make(&cgroup, &LIMITS).unwrap_err();
        assert!(!cgroup.exists());
    }
}
