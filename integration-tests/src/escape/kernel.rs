//! Bypass cases: parts of the kernel that no tool needs.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io;

use super::{Control, Way, address, close, held, network::join, no_such_way, system_call};

pub(super) const WAYS: &[Way] = &[
    Way::held("mount", |world| {
        let (kind, place) = (c("tmpfs")?, super::c_path(&world.project.join("mount"))?);
        std::fs::create_dir_all(world.project.join("mount"))?;
        system_call(libc::SYS_mount, [text(&kind), text(&place), text(&kind), 0, 0])?;
        system_call(libc::SYS_umount2, [text(&place), 2, 0, 0, 0]).map(drop)
    })
    .open_to(Control::Superuser),
    Way::held("new-mount-interface", |_| {
        let kind = c("tmpfs")?;
        system_call(libc::SYS_fsopen, [text(&kind), 0, 0, 0, 0]).map(close)
    })
    .open_to(Control::Superuser),
    Way::held("unshare-user", |_| unshare(libc::CLONE_NEWUSER)).open_to(Control::Depends),
    Way::held("unshare-mounts", |_| unshare(libc::CLONE_NEWNS)).open_to(Control::Superuser),
    Way::held("clone-user", |_| clone_into(libc::CLONE_NEWUSER)).open_to(Control::Depends),
    Way::held("clone3-user", |_| clone3_into(libc::CLONE_NEWUSER)).open_to(Control::Depends),
    Way::held("join-mounts", |_| join("mnt")).open_to(Control::Superuser),
    Way::held("chroot", |world| std::os::unix::fs::chroot(&world.project)).open_to(Control::Superuser),
    Way::held("bpf", |_| {
        // `BPF_MAP_CREATE` of an array with one element of eight bytes.
        let attributes = [2_u32, 4, 8, 1, 0, 0, 0, 0];
        system_call(libc::SYS_bpf, [0, address(&attributes), 32, 0, 0]).map(close)
    })
    .open_to(Control::Depends),
    Way::held("performance-events", |_| {
        let mut attributes = [0_u8; 128];
        attributes[..4].copy_from_slice(&1_u32.to_ne_bytes());
        attributes[4..8].copy_from_slice(&128_u32.to_ne_bytes());
        system_call(libc::SYS_perf_event_open, [address(&attributes), 0, -1, -1, 0]).map(close)
    })
    .open_to(Control::Depends),
    Way::held("user-faults", |_| system_call(libc::SYS_userfaultfd, [1, 0, 0, 0, 0]).map(close))
        .open_to(Control::Depends),
    Way::held("io-uring", |_| {
        let parameters = [0_u8; 120];
        system_call(libc::SYS_io_uring_setup, [4, address(&parameters), 0, 0, 0]).map(close)
    })
    .open_to(Control::Depends),
    Way::held("keyring", |_| {
        let (kind, name, value) = (c("user")?, c("taskpawl-escape")?, c("x")?);
        system_call(libc::SYS_add_key, [text(&kind), text(&name), text(&value), 1, -3]).map(drop)
    })
    .open_to(Control::Depends),
    // With an invalid descriptor nothing is loaded: a caller with the right gets EBADF, all others EPERM.
    Way::held("load-module", |_| reached(libc::SYS_finit_module, [-1, 0, 0, 0, 0], libc::EBADF))
        .open_to(Control::Depends),
    Way::held("host-name", |_| {
        let name = rustix::system::uname();
        let length = i64::try_from(name.nodename().to_bytes().len()).map_err(|_| held("a long name"))?;
        system_call(libc::SYS_sethostname, [address(name.nodename().to_bytes()), length, 0, 0, 0]).map(drop)
    })
    .open_to(Control::Superuser),
    Way::held("kernel-settings", |_| {
        OpenOptions::new().write(true).open("/proc/sys/kernel/core_pattern").map(drop)
    })
    .open_to(Control::Superuser),
    Way::held("devices", |world| {
        use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
        let place = world.project.join("device");
        let _ = std::fs::remove_file(&place);
        Ok(mknodat(CWD, place, FileType::CharacterDevice, Mode::RUSR, makedev(1, 1))?)
    })
    .open_to(Control::Superuser),
];

fn c(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| held("a text with NUL"))
}

fn text(text: &CString) -> i64 {
    text.as_ptr() as i64
}

/// Makes a call with an invalid argument. The error `code` means that the call passed the filter and reached the kernel's argument
/// check.
fn reached(number: libc::c_long, arguments: [i64; 5], code: i32) -> io::Result<()> {
    match system_call(number, arguments) {
        Err(error) if error.raw_os_error() == Some(code) => Ok(()),
        other => other.map(drop),
    }
}

fn unshare(namespace: i32) -> io::Result<()> {
    system_call(libc::SYS_unshare, [namespace.into(), 0, 0, 0, 0]).map(drop)
}

fn clone_into(namespace: i32) -> io::Result<()> {
    finish(system_call(libc::SYS_clone, [i64::from(namespace | libc::SIGCHLD), 0, 0, 0, 0])?)
}

fn clone3_into(namespace: i32) -> io::Result<()> {
    let mut arguments = [0_u64; 8];
    arguments[0] = u64::try_from(namespace).map_err(|_| no_such_way("no such namespace"))?;
    arguments[4] = 17;
    finish(system_call(libc::SYS_clone3, [address(&arguments), 64, 0, 0, 0])?)
}

/// Ends the child, and waits for it in the parent. Raw system calls only: after a raw clone, libc's state does not match the
/// process.
fn finish(child: i64) -> io::Result<()> {
    if child == 0 {
        system_call(libc::SYS_exit_group, [0, 0, 0, 0, 0]).map(drop)
    } else {
        system_call(libc::SYS_wait4, [child, 0, 0, 0, 0]).map(drop)
    }
}
