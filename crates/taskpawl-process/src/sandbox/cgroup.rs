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
    let fill = || {
        for (file, limit) in [("pids.max", limits.processes), ("memory.max", limits.memory)] {
            if let Some(limit) = limit {
                write(&cgroup.join(file), limit)?;
            }
        }
        write(&cgroup.join("cgroup.procs"), std::process::id().into())
    };
    fill().inspect_err(|_| leave(cgroup))
}

/// Writes a file that has to be there: the kernel makes those of the controllers that were handed down.
fn write(file: &Path, number: u64) -> io::Result<()> {
    use io::Write;

    std::fs::OpenOptions::new().write(true).open(file)?.write_all(number.to_string().as_bytes())
}
