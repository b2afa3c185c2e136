//! Bypass cases: files with a set-user-ID or set-group-ID bit, which give the user's rights to others of the machine.
//!
//! Each case looks at the file afterwards: a call that succeeds without the bit is no escape.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Control, Way, World, address, c_path, close, no_such_way, out_if, system_call};

const HERE: i64 = libc::AT_FDCWD as i64;
const CREATE: i64 = (libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY) as i64;
const BOTH: i64 = 0o6755;

/// Has this number on every architecture.
const FCHMODAT2: libc::c_long = 452;

pub(super) const WAYS: &[Way] = &[
    #[cfg(target_arch = "x86_64")]
    Way::held("set-id-chmod", |world| {
        changed(world, "chmod", |path, _| call(libc::SYS_chmod, [path, BOTH, 0, 0]))
    }),
    Way::held("set-id-fchmod", |world| {
        changed(world, "fchmod", |_, file| call(libc::SYS_fchmod, [file, BOTH, 0, 0]))
    }),
    Way::held("set-id-fchmod-user-alone", |world| {
        changed(world, "user-alone", |_, file| call(libc::SYS_fchmod, [file, 0o4755, 0, 0]))
    }),
    Way::held("set-id-fchmod-group-alone", |world| {
        changed(world, "group-alone", |_, file| call(libc::SYS_fchmod, [file, 0o2755, 0, 0]))
    }),
    Way::held("set-id-fchmodat", |world| {
        changed(world, "fchmodat", |path, _| call(libc::SYS_fchmodat, [HERE, path, BOTH, 0]))
    }),
    Way::held("set-id-fchmodat2", |world| {
        changed(world, "fchmodat2", |path, _| match call(FCHMODAT2, [HERE, path, BOTH, 0]) {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Err(no_such_way("an older kernel")),
            result => result,
        })
    })
    .open_to(Control::Depends),
    Way::held("set-id-directory", |world| {
        let path = fresh(world, "directory");
        fs::create_dir(&path)?;
        let name = c_path(&path)?;
        call(libc::SYS_fchmodat, [HERE, address(name.as_c_str().to_bytes()), BOTH, 0])?;
        has_bits(&path)
    }),
    #[cfg(target_arch = "x86_64")]
    Way::held("set-id-open", |world| {
        made(world, "open", |path| call(libc::SYS_open, [path, CREATE, BOTH, 0]))
    }),
    Way::held("set-id-openat", |world| {
        made(world, "openat", |path| call(libc::SYS_openat, [HERE, path, CREATE, BOTH]))
    }),
    Way::held("set-id-openat-group-alone", |world| {
        made(world, "openat-group", |path| call(libc::SYS_openat, [HERE, path, CREATE, 0o2755]))
    }),
    Way::held("set-id-openat2", |world| {
        // The kernel's `struct open_how`: flags, mode, resolve.
        let how = [CREATE, BOTH, 0];
        made(world, "openat2", |path| call(libc::SYS_openat2, [HERE, path, address(&how), 24]))
    }),
    Way::held("set-id-unnamed", unnamed),
    #[cfg(target_arch = "x86_64")]
    Way::held("set-id-creat", |world| made(world, "creat", |path| call(libc::SYS_creat, [path, BOTH, 0, 0]))),
    #[cfg(target_arch = "x86_64")]
    Way::held("set-id-mknod", |world| {
        made(world, "mknod", |path| call(libc::SYS_mknod, [path, i64::from(libc::S_IFREG) | BOTH, 0, 0]))
    }),
    Way::held("set-id-mknodat", |world| {
        made(world, "mknodat", |path| {
            call(libc::SYS_mknodat, [HERE, path, i64::from(libc::S_IFREG) | BOTH, 0])
        })
    }),
    // The kernel itself ignores the bits in these.
    #[cfg(target_arch = "x86_64")]
    Way::held("set-id-mkdir", |world| made(world, "mkdir", |path| call(libc::SYS_mkdir, [path, BOTH, 0, 0])))
        .open_to(Control::Depends),
    Way::held("set-id-mkdirat", |world| {
        made(world, "mkdirat", |path| call(libc::SYS_mkdirat, [HERE, path, BOTH, 0]))
    })
    .open_to(Control::Depends),
    Way::held("set-id-queue", |_| {
        let name = b"taskpawl-escape-queue\0";
        system_call(libc::SYS_mq_unlink, [address(name), 0, 0, 0, 0]).or(Ok::<i64, io::Error>(0))?;
        let flags = i64::from(libc::O_CREAT | libc::O_RDWR);
        let queue = system_call(libc::SYS_mq_open, [address(name), flags, BOTH, 0, 0])?;
        close(queue);
        system_call(libc::SYS_mq_unlink, [address(name), 0, 0, 0, 0]).map(drop)
    })
    .open_to(Control::Depends),
];

/// Makes a call, and closes the descriptor that it may return.
fn call(number: libc::c_long, arguments: [i64; 4]) -> io::Result<()> {
    let [first, second, third, fourth] = arguments;
    let result = system_call(number, [first, second, third, fourth, 0])?;
    if result > 2 {
        close(result);
    }
    Ok(())
}

/// A path in the project at which nothing is.
fn fresh(world: &World, name: &str) -> PathBuf {
    let path = world.project.join(format!("set-id-{name}"));
    let _ = fs::remove_file(&path);
    let _ = fs::remove_dir(&path);
    path
}

fn has_bits(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    out_if(mode & 0o6000 != 0, "the file has no such bit")
}

/// Changes an existing file. The call gets the address of the path, and a descriptor.
fn changed(world: &World, name: &str, change: impl FnOnce(i64, i64) -> io::Result<()>) -> io::Result<()> {
    let path = fresh(world, name);
    let file = File::create(&path)?;
    let text = c_path(&path)?;
    change(address(text.as_bytes()), file.as_raw_fd().into())?;
    has_bits(&path)
}

/// Creates a file. The call gets the address of the path.
fn made(world: &World, name: &str, make: impl FnOnce(i64) -> io::Result<()>) -> io::Result<()> {
    let path = fresh(world, name);
    let text = c_path(&path)?;
    make(address(text.as_bytes()))?;
    has_bits(&path)
}

/// Creates a file without a name, and gives it one.
fn unnamed(world: &World) -> io::Result<()> {
    let path = fresh(world, "unnamed");
    let (directory, name) = (c_path(&world.project)?, c_path(&path)?);
    let flags = i64::from(libc::O_TMPFILE | libc::O_WRONLY);
    let file = system_call(libc::SYS_openat, [HERE, address(directory.as_bytes()), flags, BOTH, 0])?;
    let own = c_path(Path::new(&format!("/proc/self/fd/{file}")))?;
    let follow = i64::from(libc::AT_SYMLINK_FOLLOW);
    let linked = system_call(
        libc::SYS_linkat,
        [HERE, address(own.as_bytes()), HERE, address(name.as_bytes()), follow],
    );
    close(file);
    linked?;
    has_bits(&path)
}
