use std::ffi::{CStr, CString};
use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, StatxAttributes, StatxFlags, statx};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount,
    open_tree,
};

use super::places::{Places, is_beneath};
use super::sockets::Sockets;

/// Directories full of what other programs can be reached by. Programs see an empty one with the places of the profile in it.
const SHARED: [&str; 2] = ["/run", "/tmp"];

/// What programs look for in there that leads to nobody: names of hosts, and systems that keep all programs there.
const KEPT: [&str; 5] = [
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/current-system",
    "/run/opengl-driver",
];

/// Where programs share memory.
const MEMORY: &str = "/dev/shm";

/// What mounts have done.
#[derive(Debug, Default)]
pub(super) struct Covered {
    /// The devices that are the programs' own.
    pub(super) devices: Vec<&'static str>,
    /// Hidden places that could not be covered.
    pub(super) bare: Vec<PathBuf>,
}

/// Makes the mounts of this process its own, so that what it mounts is seen by nobody else.
pub(super) fn make_private() -> io::Result<()> {
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Makes everything read-only but the places that may be written, and covers what is hidden, or leads to other programs.
///
/// What must be covered and could not be is added to `gaps`.
pub(super) fn cover(places: &Places, sockets: &Sockets, gaps: &mut Vec<String>) -> io::Result<Covered> {
    let shared = shared(places);
    let attached = attached(places, &shared)?;
    if !places.write.iter().any(|path| path == Path::new("/")) {
        // Landlock keeps the contents; this keeps modes, times and owners too.
        note(gaps, "modes of files can be changed beneath", Path::new("/"), set_read_only(CWD, "/", true));
    }
    for directory in &shared {
        mount_memory(directory, c"mode=755")?;
    }
    for (path, tree) in &attached {
        if is_beneath(path, &shared) {
            make_place(path, is_directory(tree)?)?;
        }
        attach(tree, path)?;
    }
    link(places, &shared);
    for directory in &shared {
        set_read_only(CWD, directory, false)?;
    }
    let devices = own_devices(places);
    protect(places, gaps)?;
    let empty = Empty::make(&devices);
    let mut bare = Vec::new();
    for path in places.hidden.iter().filter(|path| path.exists()) {
        let covered = pin_above(places, path).and_then(|()| empty.cover(path));
        if covered.is_err() {
            bare.push(path.clone());
        }
        note_unless_guarded(gaps, places, "not hidden", path, covered)?;
    }
    // Only now: what programs do not see needs no search.
    let (reached, unsearched) = sockets.reached_at(&places.read, &places.write);
    gaps.extend(unsearched);
    for path in reached.iter().filter(|path| !places.is_written(path) && is_socket(path)) {
        note(gaps, "can be connected to", path, empty.cover(path));
    }
    empty.forget();
    Ok(Covered { devices, bare })
}

fn note(gaps: &mut Vec<String>, what: &str, path: &Path, result: io::Result<()>) {
    if let Err(error) = result {
        gaps.push(format!("{what}: `{}`: {error}", path.display()));
    }
}

/// As [`note`], but without what has to stay as it is no program may start.
fn note_unless_guarded(
    gaps: &mut Vec<String>,
    places: &Places,
    what: &str,
    path: &Path,
    result: io::Result<()>,
) -> io::Result<()> {
    match result {
        Err(error) if places.guarded.iter().any(|guarded| guarded == path) => {
            Err(io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))
        }
        result => {
            note(gaps, what, path, result);
            Ok(())
        }
    }
}

fn is_directory(tree: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode) == FileType::Directory)
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Returns the shared directories of this machine that no place of the profile takes in.
fn shared(places: &Places) -> Vec<PathBuf> {
    let is_open = |path: &Path| is_beneath(path, &places.write) || is_beneath(path, &places.read);
    let real = SHARED.iter().filter_map(|path| Path::new(path).canonicalize().ok());
    real.filter(|path| path != Path::new("/") && !is_open(path)).collect()
}

/// Returns what is mounted where it was: places that may be written, on top of what becomes read-only, and those that lie in
/// directories that become empty. Outer ones come first.
fn attached(places: &Places, shared: &[PathBuf]) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
    let mut attached = Vec::new();
    for path in places.outermost_written().filter(|path| *path != Path::new("/")) {
        attached.push((path.clone(), copy(path)?));
    }
    let kept = KEPT.iter().map(PathBuf::from).filter(|path| path.exists() && !path.is_symlink());
    let read = places.read.iter().cloned().chain(kept);
    // What lies in a place that is mounted anyway is there, and as writable as that.
    let is_inner = |path: &PathBuf| {
        places.is_written(path) || places.read.iter().any(|other| other != path && path.starts_with(other))
    };
    let is_missing = |path: &PathBuf| is_beneath(path, shared) && !places.is_hidden(path) && !is_inner(path);
    for path in read.filter(is_missing) {
        let tree = copy(&path)?;
        set_read_only(&tree, "", true)?;
        attached.push((path, tree));
    }
    attached.sort_by(|one, other| one.0.cmp(&other.0));
    attached.dedup_by(|one, other| one.0 == other.0);
    Ok(attached)
}

/// Makes the links again by which places are named.
fn link(places: &Places, shared: &[PathBuf]) {
    for (name, real) in places.links.iter().filter(|(name, _)| is_beneath(name, shared)) {
        let made = name.parent().is_some_and(|parent| make_directory(parent).is_ok());
        // Who does not find the place by this name finds it by the other.
        let _ = made.then(|| symlink(real, name));
    }
}

/// Gives programs terminals and shared memory of their own; returns which of them they have.
fn own_devices(places: &Places) -> Vec<&'static str> {
    let mut own = Vec::new();
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    if Path::new("/dev/pts").is_dir() && mount("devpts", "/dev/pts", "devpts", flags, options).is_ok() {
        own.extend(["/dev/pts", "/dev/ptmx"]);
    }
    let memory = Path::new(MEMORY);
    if memory.is_dir() && !places.is_written(memory) && mount_memory(memory, c"mode=1777").is_ok() {
        own.push(MEMORY);
    }
    own
}

/// Makes places read-only that lie beneath one that may be written, and the links that lead to such.
fn protect(places: &Places, gaps: &mut Vec<String>) -> io::Result<()> {
    for directory in &places.pinned {
        note_unless_guarded(gaps, places, "can be renamed", directory, pin(places, directory))?;
    }
    let cover = |path: &Path, tree: io::Result<OwnedFd>| {
        pin_above(places, path)?;
        let tree = tree?;
        set_read_only(&tree, "", true)?;
        attach(&tree, path)
    };
    for link in &places.held {
        let covered = cover(link, copy_link(link));
        note_unless_guarded(gaps, places, "can be replaced, since it is a link", link, covered)?;
    }
    for path in &places.read_only {
        note_unless_guarded(gaps, places, "not read-only", path, cover(path, copy(path)))?;
    }
    Ok(())
}

/// Pins the directory that a place is in.
fn pin_above(places: &Places, path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |above| pin(places, above))
}

/// Mounts a directory and those above it on themselves, up to the one that may be written: what is mounted cannot be renamed, and
/// with a directory of another name all in it would be somewhere else.
fn pin(places: &Places, directory: &Path) -> io::Result<()> {
    let inner = directory
        .ancestors()
        .take_while(|path| places.is_written(path) && !places.outermost_written().any(|root| root == path));
    let mut inner: Vec<_> = inner.collect();
    inner.reverse();
    for directory in inner {
        if !is_mounted(directory)? {
            attach(&copy(directory)?, directory)?;
        }
    }
    Ok(())
}

fn is_mounted(path: &Path) -> io::Result<bool> {
    let status = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty())?;
    Ok(status.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// What covers that which is hidden.
struct Empty {
    /// An empty file, which has no name any more when programs start. Programs have no capabilities, so that those of the administrator
    /// cannot read it either: a program that reads nothing and goes on would take a hidden file for an empty one.
    file: Option<PathBuf>,
}

impl Empty {
    fn make(own: &[&str]) -> Self {
        let file = own.contains(&MEMORY).then(|| Path::new(MEMORY).join("empty"));
        Self { file: file.filter(|file| make_unreadable(file).is_ok()) }
    }

    fn cover(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            mount_memory(path, c"mode=555")?;
            return set_read_only(CWD, path, false);
        }
        let tree = copy(self.file.as_deref().unwrap_or(Path::new("/dev/null")))?;
        set_read_only(&tree, "", false)?;
        attach(&tree, path)
    }

    fn forget(self) {
        // With the name it would only be something that programs wonder about.
        let _ = self.file.map(std::fs::remove_file);
    }
}

fn make_unreadable(path: &Path) -> io::Result<()> {
    File::create_new(path)?.set_permissions(Permissions::from_mode(0o0))
}

/// Mounts an empty file system that lives in memory.
fn mount_memory(path: &Path, options: &CStr) -> io::Result<()> {
    Ok(mount("tmpfs", path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options)?)
}

/// Makes what something can be mounted on that is a file or a directory. What is there already is not touched: it may be the
/// user's own, in a place that is mounted above.
fn make_place(path: &Path, is_directory: bool) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if is_directory {
        return make_directory(path);
    }
    path.parent().map_or(Ok(()), make_directory)?;
    File::create_new(path).map(drop)
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Returns the mounts at and below a path once more, not mounted anywhere yet.
fn copy(path: &Path) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(CWD, path, flags)?)
}

/// Returns a link itself as something that can be mounted: on itself it leads where it led before, and cannot be replaced.
fn copy_link(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(open_tree(CWD, path, flags)?)
}

fn attach(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Makes a mount read-only, and those below it if it `is_recursive`. An empty path is the mount itself.
#[expect(unsafe_code, reason = "there is no safe way to make mounts read-only")]
fn set_read_only(directory: impl AsFd, path: impl AsRef<Path>, is_recursive: bool) -> io::Result<()> {
    /// `struct mount_attr` of the system.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }

    let attributes = Attributes { set: libc::MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, user_namespace: 0 };
    let path = CString::new(path.as_ref().as_os_str().as_bytes())?;
    let mut flags = 0;
    if path.is_empty() {
        flags |= libc::AT_EMPTY_PATH;
    }
    if is_recursive {
        flags |= libc::AT_RECURSIVE;
    }
    // SAFETY: path and attributes live until the call is over, and the size is that of the attributes.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory.as_fd().as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
