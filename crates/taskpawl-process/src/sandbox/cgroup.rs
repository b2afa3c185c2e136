//! A cgroup for the limits that all programs of a supervisor share.
//!
//! It is made beside that of this process, where that may be (`systemd-run --user --scope`), else in it. The second takes more where
//! the system has delegated that cgroup and everybody is still right in it: the kernel hands memory down only from a cgroup without
//! processes of its own, so they move into a leaf first.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::profile::ResourceLimits;

/// The leaf for those who were in a delegated cgroup. The engine is in it, so it goes when the cgroup itself does.
const LEAF: &str = "taskpawl";

/// How often those who are in a cgroup are moved: meanwhile they may start others.
const ROUNDS: usize = 5;

/// How often somebody else's turn is waited for, and how long each time: a turn takes milliseconds.
const TURNS: usize = 200;
const TURN: Duration = Duration::from_millis(10);

/// Whether this process has entered a cgroup of its own.
static HAS_OWN: AtomicBool = AtomicBool::new(false);

/// Makes a cgroup with the limits and enters it, where one may be made: beside that of this process or in it.
pub(super) fn enter(limits: &ResourceLimits) -> Result<PathBuf, String> {
    let place = Place::of_this_process().ok_or("there is no cgroup of version 2")?;
    let entered = place.enter(limits, std::process::id());
    if entered.is_ok() {
        HAS_OWN.store(true, Ordering::Relaxed);
    }
    entered.map_err(|error| format!("no cgroup is delegated ({error})"))
}

pub(super) fn has_own() -> bool {
    HAS_OWN.load(Ordering::Relaxed)
}

/// Removes a cgroup whose processes are gone.
pub(crate) fn leave(cgroup: &Path) {
    // One that stays behind is empty and limits nobody.
    let _ = std::fs::remove_dir(cgroup);
}

/// Where a process is among cgroups.
struct Place {
    /// The directory of all of them.
    top: PathBuf,
    /// That of the cgroup which the process is in.
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

    /// Makes a cgroup for a process and puts it in there.
    fn enter(&self, limits: &ResourceLimits, process: u32) -> io::Result<PathBuf> {
        // Another supervisor that empties the cgroup must not take this process out of the one it has just entered.
        let _turn = self.turn()?;
        let name = format!("taskpawl-{process}");
        if let Some(beside) = self.beside().map(|parent| parent.join(&name))
            && make(&beside, limits, process).is_ok()
        {
            return Ok(beside);
        }
        let within = self.own.join(&name);
        match make(&within, limits, process) {
            // The kernel makes the files of those controllers alone that are handed down.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.hand_down(limits, process)?;
                make(&within, limits, process)?;
            }
            made => made?,
        }
        Ok(within)
    }

    fn beside(&self) -> Option<&Path> {
        if self.own == self.top { None } else { self.own.parent() }
    }

    /// Waits until nobody else makes cgroups here. Not for ever: whoever can see the directory can keep others waiting.
    fn turn(&self) -> io::Result<File> {
        let directory = File::open(&self.own)?;
        for _ in 0..TURNS {
            match directory.try_lock() {
                Ok(()) => return Ok(directory),
                Err(TryLockError::WouldBlock) => std::thread::sleep(TURN),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "somebody else holds it"))
    }

    /// Hands the controllers of the limits down, after everybody in the cgroup has moved into a leaf. The kernel insists on that for
    /// memory alone; with processes it would take the cgroup as one for threads, in which nothing else can be limited.
    fn hand_down(&self, limits: &ResourceLimits, process: u32) -> io::Result<()> {
        let controls = self.own.join("cgroup.subtree_control");
        let wanted = [("+memory", limits.memory), ("+pids", limits.processes)];
        let wanted: Vec<_> = wanted.into_iter().filter_map(|(name, limit)| limit.map(|_| name)).collect();
        let wanted = wanted.join(" ");
        self.empty(process)?;
        for _ in 0..ROUNDS {
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

    /// Moves whoever is in the cgroup into a leaf of it.
    fn empty(&self, process: u32) -> io::Result<()> {
        if !self.is_delegated()? {
            let problem = format!("`{}` belongs to somebody else", self.own.display());
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
            // Of the others somebody may have ended; who stays is moved in the next round, or makes the last one fail.
        }
        Ok(())
    }

    /// Returns whether the cgroup is left to those who are in it: to an ordinary user, who is this one, or by whoever made a namespace
    /// with it at the top. The administrator may write those of all services, and the one of the whole machine, which alone has no type.
    fn is_delegated(&self) -> io::Result<bool> {
        if self.own == self.top {
            return Ok(self.own.join("cgroup.type").exists());
        }
        let owner = std::fs::metadata(self.own.join("cgroup.procs"))?.uid();
        Ok(owner != 0 && owner == rustix::process::geteuid().as_raw())
    }
}

fn make(cgroup: &Path, limits: &ResourceLimits, process: u32) -> io::Result<()> {
    // Left behind by an engine that was killed, whose supervisor had the same number.
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
    // What is beyond the limit is not to go to the disk instead. Kernels without swap have no such file.
    if limits.memory.is_some() && swap.exists() { write(&swap, "0") } else { Ok(()) }
}

/// Writes a file that has to be there: the kernel makes those of the controllers that were handed down.
fn write(file: &Path, text: &str) -> io::Result<()> {
    use io::Write;

    File::options().write(true).open(file)?.write_all(text.as_bytes())
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
        make(&cgroup, &LIMITS, 1).unwrap_err();
        assert!(!cgroup.exists());
    }

    /// A stand-in for a cgroup that was delegated, with whom it says to be in it.
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
        // A file keeps what was written last, and begins anew nowhere: longer numbers come last.
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
