//! A cgroup for the limits that all programs of a supervisor share.
//!
//! The new cgroup is a sibling of the supervisor's cgroup if the system allows that (`systemd-run --user --scope`). Otherwise it is a
//! child. A child takes more work if processes are still directly in the supervisor's cgroup: the kernel passes the memory controller on to
//! children only while the cgroup has no processes of its own. If the cgroup is delegated, they are moved into a leaf first.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::profile::ResourceLimits;

/// The leaf for processes that were directly in a delegated cgroup. It is never removed here: the engine itself is in it, so it goes with
/// the delegated cgroup.
const LEAF: &str = "taskpawl";

/// Rounds of moving the processes out of a cgroup. They can start further processes during a round, so one round may not be enough.
const ROUNDS: usize = 5;

/// Attempts to get the lock on a cgroup directory, and the pause between them. The lock is normally held for milliseconds.
const TURNS: usize = 200;
const TURN: Duration = Duration::from_millis(10);

/// Set once this process is in a cgroup that it created.
static HAS_OWN: AtomicBool = AtomicBool::new(false);

/// Creates a cgroup with the limits, as a sibling or as a child of the current one, and moves this process into it.
///
/// Returns the path of the new cgroup, which the caller removes at the end. The error is a reason for the list of gaps.
pub(super) fn enter(limits: &ResourceLimits) -> Result<PathBuf, String> {
    let place = Place::of_this_process().ok_or("there is no cgroup of version 2")?;
    let entered = place.enter(limits, std::process::id());
    if entered.is_ok() {
        HAS_OWN.store(true, Ordering::Relaxed);
    }
    // An error is a gap and no refusal: many systems delegate no cgroup.
    entered.map_err(|error| format!("no cgroup is delegated ({error})"))
}

pub(super) fn has_own() -> bool {
    HAS_OWN.load(Ordering::Relaxed)
}

/// Removes a cgroup that has no processes any more.
pub(crate) fn leave(cgroup: &Path) {
    // If the removal fails, an empty cgroup stays behind, which limits no process.
    let _ = std::fs::remove_dir(cgroup);
}

/// The position of a process in the cgroup tree.
struct Place {
    /// The root of the cgroup file system.
    top: PathBuf,
    /// The directory of the cgroup that the process is in.
    own: PathBuf,
}

impl Place {
    fn of_this_process() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
        let top = mounts.into_iter().find(|mount| mount.join("cgroup.controllers").exists())?;
        let own = if path.is_empty() { top.clone() } else { top.join(path) };
        Some(Self { top, own })
    }

    /// Creates a cgroup for `process` and moves the process into it.
    fn enter(&self, limits: &ResourceLimits, process: u32) -> io::Result<PathBuf> {
        // Without the lock, another supervisor that empties this cgroup could move this process out of the new cgroup again.
        let _turn = self.turn()?;
        let name = format!("taskpawl-{process}");
        if let Some(beside) = self.beside().map(|parent| parent.join(&name))
            && make(&beside, limits, process).is_ok()
        {
            return Ok(beside);
        }
        let within = self.own.join(&name);
        match make(&within, limits, process) {
            // The files of a controller exist only if the parent has enabled it for its children; `NotFound` therefore means that it has
            // not.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.hand_down(limits, process)?;
                make(&within, limits, process)?;
            }
            made => made?,
        }
        Ok(within)
    }

    fn beside(&self) -> Option<&Path> {
        // The root cgroup has no parent directory in which a sibling could be created.
        if self.own == self.top { None } else { self.own.parent() }
    }

    /// Locks the directory against other processes that create cgroups in it.
    ///
    /// The wait is bounded: any process that can open the directory can hold the lock for ever.
    fn turn(&self) -> io::Result<File> {
        let directory = File::open(&self.own)?;
        for _ in 0..TURNS {
            match directory.try_lock() {
                Ok(()) => return Ok(directory),
                Err(TryLockError::WouldBlock) => std::thread::sleep(TURN),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process holds it"))
    }

    /// Enables the controllers of the limits for the children of this cgroup, after its processes have moved into a leaf.
    ///
    /// The kernel requires an empty cgroup only for the memory controller. With `pids` alone it would accept processes, but would turn the
    /// cgroup into a threaded domain, and other controllers cannot be enabled in one.
    fn hand_down(&self, limits: &ResourceLimits, process: u32) -> io::Result<()> {
        let controls = self.own.join("cgroup.subtree_control");
        let wanted = [("+memory", limits.memory), ("+pids", limits.processes)];
        let wanted: Vec<_> = wanted.into_iter().filter_map(|(name, limit)| limit.map(|_| name)).collect();
        let wanted = wanted.join(" ");
        self.empty(process)?;
        for _ in 0..ROUNDS {
            // `ResourceBusy` means that a process was started in the cgroup after it had been emptied.
            match write(&controls, &wanted) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => self.empty(process)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let problem = format!("`{}` has no controllers for that", self.own.display());
                    return Err(io::Error::new(error.kind(), problem));
                }
                handed_down => return handed_down,
            }
        }
        write(&controls, &wanted)
    }

    /// Moves all processes of the cgroup into its leaf.
    fn empty(&self, process: u32) -> io::Result<()> {
        if !self.is_delegated()? {
            let problem = format!("`{}` belongs to another user", self.own.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        let leaf = self.own.join(LEAF);
        match std::fs::create_dir(&leaf) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let (from, to) = (self.own.join("cgroup.procs"), leaf.join("cgroup.procs"));
        for other in std::fs::read_to_string(from)?.lines() {
            let moved = write(&to, other);
            if other == process.to_string() {
                moved?;
            }
            // Another process may have ended meanwhile, so its error is ignored. A process that stays is moved in the next round, or makes
            // the last round fail.
        }
        Ok(())
    }

    /// Returns whether this user may rearrange the cgroup.
    ///
    /// That is so if the cgroup belongs to an ordinary user, who is the current one, or if it is the top of a cgroup namespace. File
    /// permissions do not answer this for root, who may write the cgroups of all services and that of the machine. The cgroup of the
    /// machine is recognized by its missing `cgroup.type`.
    fn is_delegated(&self) -> io::Result<bool> {
        if self.own == self.top {
            return Ok(self.own.join("cgroup.type").exists());
        }
        let owner = std::fs::metadata(self.own.join("cgroup.procs"))?.uid();
        Ok(owner != 0 && owner == rustix::process::geteuid().as_raw())
    }
}

fn make(cgroup: &Path, limits: &ResourceLimits, process: u32) -> io::Result<()> {
    // An engine that was killed leaves its cgroup behind, and the number of its supervisor may be in use again.
    leave(cgroup);
    std::fs::create_dir(cgroup)?;
    let enter = || {
        limit(cgroup, limits)?;
        write(&cgroup.join("cgroup.procs"), &process.to_string())
    };
    enter().inspect_err(|_| leave(cgroup))
}

fn limit(cgroup: &Path, limits: &ResourceLimits) -> io::Result<()> {
    for (file, limit) in [("pids.max", limits.processes), ("memory.max", limits.memory)] {
        if let Some(limit) = limit {
            write(&cgroup.join(file), &limit.to_string())?;
        }
    }
    let swap = cgroup.join("memory.swap.max");
    // Without this the kernel would swap the memory beyond the limit out instead of enforcing the limit. Kernels without swap have no such
    // file.
    if limits.memory.is_some() && swap.exists() { write(&swap, "0") } else { Ok(()) }
}

/// Writes to an existing file. The file is never created: the kernel makes the files of enabled controllers, and `NotFound` tells the
/// caller that a controller is not enabled.
fn write(file: &Path, text: &str) -> io::Result<()> {
    use io::Write;

    File::options().write(true).open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ResourceLimits =
        ResourceLimits { open_files: 1024, file_size: 1 << 34, processes: Some(40), memory: Some(1 << 30) };

    /// Creates a directory with the files that the kernel would make in a cgroup.
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
        make(&cgroup, &LIMITS, 1).unwrap_err();
        assert!(!cgroup.exists());
    }

    /// Creates a substitute for a delegated cgroup that lists `processes` as its members.
    fn delegated(processes: &str) -> (tempfile::TempDir, Place) {
        let directory = directory(&["cgroup.subtree_control", "cgroup.type"]);
        std::fs::write(directory.path().join("cgroup.procs"), processes).unwrap();
        std::fs::create_dir(directory.path().join(LEAF)).unwrap();
        std::fs::write(directory.path().join(LEAF).join("cgroup.procs"), "").unwrap();
        let place = Place { top: directory.path().to_owned(), own: directory.path().to_owned() };
        (directory, place)
    }

    #[test]
    fn the_controllers_of_the_limits_are_handed_down() {
        let (directory, place) = delegated("7\n");
        place.hand_down(&LIMITS, 7).unwrap();
        let controls = || std::fs::read_to_string(directory.path().join("cgroup.subtree_control")).unwrap();
        assert_eq!(controls(), "+memory +pids");
        let (directory, place) = delegated("7\n");
        place.hand_down(&ResourceLimits { memory: None, ..LIMITS }, 7).unwrap();
        let controls = std::fs::read_to_string(directory.path().join("cgroup.subtree_control")).unwrap();
        assert_eq!(controls, "+pids");
    }

    #[test]
    fn who_is_in_a_delegated_cgroup_moves_into_a_leaf() {
        // A real file keeps the last write only and does not truncate the previous one, so the longest number has to be the last one.
        let (directory, place) = delegated("7\n12\n345\n");
        place.empty(7).unwrap();
        let moved = std::fs::read_to_string(directory.path().join(LEAF).join("cgroup.procs")).unwrap();
        assert_eq!(moved, "345");
    }

    #[test]
    fn the_cgroup_of_somebody_else_is_left_alone() {
        let (directory, mut place) = delegated("7\n");
        place.top = "/".into();
        let is_ours = directory.path().join("cgroup.procs").metadata().unwrap().uid() != 0;
        assert_eq!(place.is_delegated().unwrap(), is_ours);
        assert_eq!(place.empty(7).is_ok(), is_ours);
        let moved = std::fs::read_to_string(directory.path().join(LEAF).join("cgroup.procs")).unwrap();
        assert_eq!(moved, if is_ours { "7" } else { "" });
    }

    #[test]
    fn the_cgroup_of_the_whole_machine_is_not_divided() {
        let (directory, place) = delegated("7\n");
        std::fs::remove_file(directory.path().join("cgroup.type")).unwrap();
        place.hand_down(&LIMITS, 7).unwrap_err();
        let controls = std::fs::read_to_string(directory.path().join("cgroup.subtree_control")).unwrap();
        assert_eq!(controls, "");
    }

    #[test]
    fn one_at_a_time_makes_cgroups() {
        let (_directory, place) = delegated("");
        let turn = place.turn().unwrap();
        assert!(matches!(File::open(&place.own).unwrap().try_lock(), Err(TryLockError::WouldBlock)));
        drop(turn);
        place.turn().unwrap();
    }
}
