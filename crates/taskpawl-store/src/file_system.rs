//! Detects network file systems, which other machines may write to as well.

use std::path::Path;

/// The kind of the file system that a file is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSystemKind {
    /// Only this machine writes to it.
    Local,
    /// Other machines may write to it. Shared memory does not work across machines, and locks are only as
    /// good as the server.
    Remote(&'static str),
}

impl FileSystemKind {
    /// Returns the file system kind of `path`, which need not exist yet. An unknown file system counts as
    /// local.
    pub(crate) fn of(path: &Path) -> Self {
        let existing = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
        let existing = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
        probe(existing)
    }

    /// Returns a warning for the user, if the file system needs one.
    pub(crate) fn warning(self, path: &Path) -> Option<String> {
        let Self::Remote(kind) = self else { return None };
        Some(format!(
            "`{}` is on a network file system ({kind}): use it from one machine at a time, because locks may not reach other machines; `--store` sets another path",
            path.display()
        ))
    }
}

#[cfg(target_os = "linux")]
fn probe(path: &Path) -> FileSystemKind {
    match rustix::fs::statfs(path) {
        Ok(found) => classify(u64::try_from(found.f_type).unwrap_or(0) & 0xFFFF_FFFF, || fuse_name(path)),
        Err(_) => FileSystemKind::Local,
    }
}

#[cfg(not(target_os = "linux"))]
fn probe(_: &Path) -> FileSystemKind {
    FileSystemKind::Local
}

/// Classifies a file system by its magic number, from `statfs(2)` and the kernel's `magic.h`.
#[cfg(target_os = "linux")]
fn classify(magic: u64, fuse_name: impl FnOnce() -> Option<String>) -> FileSystemKind {
    const FUSE: u64 = 0x6573_5546;
    const REMOTE: [(u64, &str); 13] = [
        (0x6969, "NFS"),
        (0x517B, "SMB"),
        (0xFF53_4D42, "CIFS"),
        (0xFE53_4D42, "SMB"),
        (0x0102_1997, "9P"),
        (0x00C3_6400, "Ceph"),
        (0x5346_414F, "AFS"),
        (0x6B41_4653, "AFS"),
        (0x7375_7245, "Coda"),
        (0x0116_1970, "GFS2"),
        (0x7461_636F, "OCFS2"),
        (0x0BD0_0BD0, "Lustre"),
        (0x4750_4653, "GPFS"),
    ];
    if magic == FUSE {
        // Most FUSE file systems reach another machine or do not share memory between processes. Both break
        // the WAL of SQLite.
        let is_local = fuse_name().is_some_and(|name| name == "fuseblk" || name == "fuse.fuse-overlayfs");
        return if is_local { FileSystemKind::Local } else { FileSystemKind::Remote("FUSE") };
    }
    REMOTE
        .iter()
        .find(|(known, _)| *known == magic)
        .map_or(FileSystemKind::Local, |(_, name)| FileSystemKind::Remote(name))
}

/// Returns the type of the mount that `path` is on, from the mount table of the kernel.
#[cfg(target_os = "linux")]
fn fuse_name(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(path).ok()?.dev();
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        (mount.split(' ').nth(2)? == device).then(|| kind.split(' ').next().map(str::to_owned))?
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_detected_by_magic_number() {
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(classify(0x6969, || None), FileSystemKind::Remote("NFS"));
        assert_eq!(classify(0xFF53_4D42, || None), FileSystemKind::Remote("CIFS"));
        assert_eq!(classify(0xEF53, || None), FileSystemKind::Local);
        assert_eq!(classify(0x6573_5546, || name("fuse.sshfs")), FileSystemKind::Remote("FUSE"));
        assert_eq!(classify(0x6573_5546, || None), FileSystemKind::Remote("FUSE"));
        assert_eq!(classify(0x6573_5546, || name("fuseblk")), FileSystemKind::Local);
    }

    #[test]
    fn a_missing_path_has_the_kind_of_its_nearest_ancestor() {
        assert_eq!(FileSystemKind::of(Path::new("/proc/no/such/file")), FileSystemKind::Local);
        assert_eq!(FileSystemKind::of(Path::new("no-such-file")), FileSystemKind::of(Path::new(".")));
        if Path::new("/dev/shm").is_dir() {
            assert_eq!(FileSystemKind::of(Path::new("/dev/shm/none/tasks.db")), FileSystemKind::Local);
        }
    }
}
