use std::ffi::{CStr, CString};
use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxAttributes, StatxFlags, statx};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount,
    open_tree,
};

use super::layers;
use super::places::{Places, is_beneath};
use super::sockets::Sockets;
use crate::faults::{self, Fault};
use crate::profile::Substitute;

/// Directories that hold the sockets and files of other programs. Programs see an empty directory in their place, with only the paths of
/// the profile in it.
const SHARED: [&str; 2] = ["/run", "/tmp"];

/// Paths beneath the shared directories that programs need and that lead to no other program. They hold the configuration of name
/// resolution, and on some systems all installed software.
const KEPT: [&str; 5] = [
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/current-system",
    "/run/opengl-driver",
];

/// The directory for POSIX shared memory.
const MEMORY: &str = "/dev/shm";

/// The options of its file system. The kernel's default size would be half of all memory.
const SHARED_MEMORY: &CStr = c"mode=1777,size=2g";

/// The result of covering paths by mounts.
#[derive(Debug, Default)]
pub(super) struct Covered {
    /// Device paths that now belong to the programs alone.
    pub(super) devices: Vec<&'static str>,
    /// Directories of the programs alone, in place of shared ones, and those with private changes.
    pub(super) private: Vec<PathBuf>,
    /// Files that programs see in place of others.
    pub(super) copies: Vec<PathBuf>,
    /// Hidden paths that could not be covered by a mount.
    pub(super) bare: Vec<PathBuf>,
}

/// Stops mount propagation, so that later mounts of this process stay invisible to all other processes.
pub(super) fn make_private() -> io::Result<()> {
    if faults::is_on(Fault::NoMounts) {
        return Err(rustix::io::Errno::PERM.into());
    }
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Makes everything read-only except the writable paths, and covers hidden paths and the sockets of other programs.
///
/// Each path that should be covered and could not be is added to `gaps`. The error is for failures that leave the sandbox unsafe.
pub(super) fn cover(places: &Places, sockets: &Sockets, gaps: &mut Vec<String>) -> io::Result<Covered> {
    let shared = shared(places);
    // An emptied directory in a shared one is created anew there.
    let (inner, outer): (Vec<_>, Vec<_>) =
        places.emptied.iter().cloned().partition(|path| is_beneath(path, &shared));
    let shared = [shared, outer].concat();
    let copies = copies(places, gaps);
    let layered = layers::make(places, gaps);
    let changed: Vec<PathBuf> = layered.overlaid.iter().map(|(path, _)| path.clone()).collect();
    let attached = attached(places, &shared, layered.overlaid)?;
    let mut private = private(places, &attached)?;
    let own: Vec<PathBuf> = layered.own.iter().map(|(path, _)| path.clone()).collect();
    private.extend(layered.own.into_iter().map(|(path, tree)| Private { path, tree }));
    if !places.write.iter().any(|path| path == Path::new("/")) {
        // Landlock protects the contents of files; the read-only mount also protects their modes, times and owners.
        note(gaps, "file modes can be changed in", Path::new("/"), set_read_only(CWD, "/", true));
    }
    let is_private = |path: &PathBuf| private.iter().any(|private| private.path == *path);
    for directory in shared.iter().filter(|path| !is_private(path)) {
        mount_memory(directory, c"mode=755")?;
    }
    for directory in &private {
        make_place(&directory.path, true)?;
        attach(&directory.tree, &directory.path)?;
    }
    for directory in &inner {
        make_directory(directory)?;
    }
    // The paths were opened before the empty file systems were mounted over them, so that they can still be attached here.
    for (path, tree) in &attached {
        if let Some(private) = private.iter().find(|private| path.starts_with(&private.path)) {
            let attached = private.attach_in(tree, path);
            if own.contains(&private.path) {
                // Programs of earlier runs may have left something else in this place.
                note(gaps, "not visible", path, attached);
            } else {
                attached?;
            }
            continue;
        }
        if is_beneath(path, &shared) {
            make_place(path, is_directory(tree)?)?;
        }
        attach(tree, path)?;
    }
    let copies = attach_copies(copies, &shared, gaps);
    link(places, &shared);
    // Only after the mount points and links in them were created.
    for directory in shared.iter().filter(|path| !is_private(path)) {
        set_read_only(CWD, directory, false)?;
    }
    let devices = own_devices(places);
    protect(places, gaps)?;
    let empty = Empty::make(&devices);
    let mut bare = Vec::new();
    for path in places.hidden.iter().filter(|path| path.exists() && !copies.contains(path)) {
        let covered = pin_above(places, path).and_then(|()| empty.cover(path));
        if covered.is_err() {
            bare.push(path.clone());
        }
        note_unless_guarded(gaps, places, "not hidden", path, covered)?;
    }
    // Searched only now, because hidden directories are empty by now and need no search.
    let (reached, unsearched) = sockets.reached_at(&places.read, &places.write);
    gaps.extend(unsearched);
    for path in reached.iter().filter(|path| !places.is_written(path) && is_socket(path)) {
        note(gaps, "can be connected to", path, empty.cover(path));
    }
    empty.forget();
    let private = private.into_iter().map(|private| private.path).chain(changed).collect();
    Ok(Covered { devices, private, copies, bare })
}

/// A directory to mount in place of a shared one.
struct Private {
    path: PathBuf,
    tree: OwnedFd,
}

impl Private {
    /// Mounts a file or directory in this one.
    ///
    /// Programs of other runs of the project may change the directory meanwhile. So the mount point is opened name by name without
    /// following links, and the mount is attached to that descriptor.
    fn attach_in(&self, tree: &OwnedFd, path: &Path) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut point = rustix::fs::open(&self.path, flags | OFlags::DIRECTORY, Mode::empty())?;
        let mut names = path.strip_prefix(&self.path).map_err(io::Error::other)?.components().peekable();
        while let Some(name) = names.next() {
            let is_directory = names.peek().is_some() || is_directory(tree)?;
            let made = if is_directory {
                rustix::fs::mkdirat(&point, name.as_os_str(), Mode::RWXU)
            } else {
                let create = OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                rustix::fs::openat(&point, name.as_os_str(), create, Mode::RUSR).map(drop)
            };
            made.or_else(|error| if error == Errno::EXIST { Ok(()) } else { Err(error) })?;
            let kind = if is_directory { OFlags::DIRECTORY } else { OFlags::empty() };
            point = rustix::fs::openat(&point, name.as_os_str(), flags | kind, Mode::empty())?;
        }
        let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(move_mount(tree, "", point, "", both)?)
    }
}

/// Returns the directories that take the place of shared ones.
///
/// Left out are those with a writable or hidden path deep inside: it is covered by its path, and programs of other runs could
/// rename the directories above it meanwhile.
fn private(places: &Places, attached: &[(PathBuf, OwnedFd)]) -> io::Result<Vec<Private>> {
    let fits = |private: &&Substitute| {
        let is_open = places.is_written(&private.path)
            || places.whole_read().any(|path| private.path.starts_with(path));
        let has_link = places.links.iter().any(|(name, _)| name.starts_with(&private.path));
        let mut inner = attached.iter().map(|(path, _)| path).filter(|path| path.starts_with(&private.path));
        let is_safe = |path: &PathBuf| {
            let is_direct = path.parent() == Some(&private.path);
            (is_direct || !places.is_written(path))
                && !places.hidden.iter().any(|hidden| hidden.starts_with(path))
        };
        !is_open && !has_link && inner.all(is_safe)
    };
    let made = places
        .private
        .iter()
        .filter(fits)
        .map(|private| Ok(Private { path: private.path.clone(), tree: copy(&private.source)? }));
    made.collect()
}

/// Opens the files that take the place of others.
fn copies(places: &Places, gaps: &mut Vec<String>) -> Vec<(PathBuf, OwnedFd)> {
    let mut opened = Vec::new();
    for Substitute { path, source } in &places.copies {
        let tree = copy(source).and_then(|tree| set_read_only(&tree, "", false).map(|()| tree));
        match tree {
            Ok(tree) => opened.push((path.clone(), tree)),
            Err(error) => note(gaps, "not visible", path, Err(error)),
        }
    }
    opened
}

/// Mounts the files that take the place of others. Returns the paths for which that succeeded.
fn attach_copies(
    copies: Vec<(PathBuf, OwnedFd)>,
    shared: &[PathBuf],
    gaps: &mut Vec<String>,
) -> Vec<PathBuf> {
    let mut attached = Vec::new();
    for (path, tree) in copies {
        let place = if is_beneath(&path, shared) { make_place(&path, false) } else { Ok(()) };
        match place.and_then(|()| attach(&tree, &path)) {
            Ok(()) => attached.push(path),
            Err(error) => note(gaps, "not visible", &path, Err(error)),
        }
    }
    attached
}

fn note(gaps: &mut Vec<String>, what: &str, path: &Path, result: io::Result<()>) {
    if let Err(error) = result {
        gaps.push(format!("{what}: `{}`: {error}", path.display()));
    }
}

/// Like [`note`], but fails for a guarded path: without its protection no program may start.
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

/// Returns the shared directories of this machine that are not open as a whole by the profile.
fn shared(places: &Places) -> Vec<PathBuf> {
    let is_open =
        |path: &Path| places.is_written(path) || places.whole_read().any(|other| path.starts_with(other));
    let real = SHARED.iter().filter_map(|path| Path::new(path).canonicalize().ok());
    real.filter(|path| path != Path::new("/") && !is_open(path)).collect()
}

/// Returns the subtrees to mount again at their own paths, sorted so that outer ones come first.
///
/// These are writable paths, on top of the tree that becomes read-only, those in `layered`, and paths in directories that become empty.
fn attached(
    places: &Places,
    shared: &[PathBuf],
    layered: Vec<(PathBuf, OwnedFd)>,
) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
    let mut attached = layered;
    for path in places.outermost_written().filter(|path| *path != Path::new("/")) {
        attached.push((path.clone(), copy(path)?));
    }
    let kept = KEPT.iter().map(PathBuf::from).filter(|path| path.exists() && !path.is_symlink());
    let read = places.whole_read().cloned().chain(kept);
    // A path in a subtree that is mounted anyway is visible there, with the access of that subtree.
    let is_inner = |path: &PathBuf| {
        places.is_written(path) || places.whole_read().any(|other| other != path && path.starts_with(other))
    };
    let is_missing = |path: &PathBuf| is_beneath(path, shared) && !places.is_hidden(path) && !is_inner(path);
    for path in read.filter(is_missing) {
        let tree = copy(&path)?;
        set_read_only(&tree, "", true)?;
        attached.push((path, tree));
    }
    // A path may be both readable and kept or overlaid, or be listed twice; a second mount of the same path would hide the first.
    attached.sort_by(|one, other| one.0.cmp(&other.0));
    attached.dedup_by(|one, other| one.0 == other.0);
    Ok(attached)
}

/// Recreates the links in emptied directories by which the profile names its paths.
fn link(places: &Places, shared: &[PathBuf]) {
    for (name, real) in places.links.iter().filter(|(name, _)| is_beneath(name, shared)) {
        let made = name.parent().is_some_and(|parent| make_directory(parent).is_ok());
        // The error is ignored: programs can still use the real path.
        let _ = made.then(|| symlink(real, name));
    }
}

/// Gives programs terminals and shared memory of their own. Returns the device paths for which that succeeded.
fn own_devices(places: &Places) -> Vec<&'static str> {
    let mut own = Vec::new();
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    if Path::new("/dev/pts").is_dir() && mount("devpts", "/dev/pts", "devpts", flags, options).is_ok() {
        own.extend(["/dev/pts", "/dev/ptmx"]);
    }
    let memory = Path::new(MEMORY);
    if memory.is_dir() && !places.is_written(memory) && mount_memory(memory, SHARED_MEMORY).is_ok() {
        own.push(MEMORY);
    }
    own
}

/// Makes paths beneath a writable directory read-only, and the links that lead to them irreplaceable.
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
        note_unless_guarded(gaps, places, "can be replaced, because it is a link", link, covered)?;
    }
    for path in &places.read_only {
        note_unless_guarded(gaps, places, "not read-only", path, cover(path, copy(path)))?;
    }
    Ok(())
}

/// Pins the directory that contains `path`.
fn pin_above(places: &Places, path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |above| pin(places, above))
}

/// Mounts a directory, and each directory between it and the writable one, on itself.
///
/// The kernel refuses to rename or remove a mount point. Without this, a program could rename a directory above a protected path and create
/// an unprotected one in its place.
fn pin(places: &Places, directory: &Path) -> io::Result<()> {
    let inner = directory
        .ancestors()
        .take_while(|path| places.is_written(path) && !places.outermost_written().any(|root| root == path));
    let mut inner: Vec<_> = inner.collect();
    // Outer directories first: a mount on an outer directory would hide one that was made beneath it before.
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

/// The covers for hidden paths.
struct Empty {
    /// An empty file without any permission bits, whose name is removed before programs start.
    ///
    /// A read of it fails, even for programs of root, because programs have no capabilities. A program that reads an empty file instead
    /// would take the hidden file for an empty one and go on. `None` falls back to `/dev/null`.
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
        // With a name, the file would be visible in the programs' `/dev/shm`.
        let _ = self.file.map(std::fs::remove_file);
    }
}

fn make_unreadable(path: &Path) -> io::Result<()> {
    File::create_new(path)?.set_permissions(Permissions::from_mode(0o0))
}

/// Mounts an empty file system in memory (`tmpfs`).
pub(super) fn mount_memory(path: &Path, options: &CStr) -> io::Result<()> {
    Ok(mount("tmpfs", path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options)?)
}

/// Creates a file or directory to mount something on. An existing path is not touched: it may be the user's own file, in a subtree that was
/// attached before.
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

/// Returns a copy of the mounts at and below a path, which is not attached anywhere yet.
pub(super) fn copy(path: &Path) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(CWD, path, flags)?)
}

/// Returns a copy of a link itself, for a mount on the same link: the link keeps its target and cannot be replaced.
fn copy_link(path: &Path) -> io::Result<OwnedFd> {
    // `AT_SYMLINK_NOFOLLOW` makes the kernel clone the link instead of its target.
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(open_tree(CWD, path, flags)?)
}

pub(super) fn attach(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Makes a mount read-only, and with `is_recursive` all mounts below it. An empty path means the mount that `directory` refers to.
#[expect(unsafe_code, reason = "there is no safe way to make mounts read-only")]
pub(super) fn set_read_only(
    directory: impl AsFd,
    path: impl AsRef<Path>,
    is_recursive: bool,
) -> io::Result<()> {
    /// The kernel's `struct mount_attr`.
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
    // SAFETY: the path and the attributes live until the call returns, and the size is that of the attributes.
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
