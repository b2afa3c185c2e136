//! A process namespace for the programs of a run.

use std::ffi::CStr;
use std::io::{self, PipeReader, PipeWriter, Read, Write};

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, Signal, WaitOptions, getpid, set_parent_process_death_signal, setsid, waitpid};

use crate::faults::{self, Fault};

/// Continues in the first process of a new process namespace, whose `/proc` shows only that namespace.
///
/// The programs of a run can then neither see nor signal any other process. They cannot end their supervisor: the kernel delivers no
/// signal to the first process of a namespace from inside, except those that it handles. When it ends, for whatever reason, the kernel
/// kills all other processes of the namespace first.
///
/// On success this returns in the new process. The calling process stays outside, waits for the new one, and exits with it. On an error
/// this returns in the calling process, which has changed nothing. It must have one thread and its own mount namespace.
pub(super) fn enter() -> io::Result<()> {
    if faults::is_on(Fault::SharedProcesses) {
        return Err(Errno::NOSYS.into());
    }
    // Inside `bwrap` the namespace is there already.
    if getpid().as_raw_pid() == 1 {
        return Ok(());
    }
    let (reader, writer) = io::pipe()?;
    match fork()? {
        None => {
            drop(reader);
            begin(writer);
            Ok(())
        }
        Some(child) => {
            drop(writer);
            stay_outside(child, reader)
        }
    }
}

/// The first steps of the new process. Tells the one outside whether it works, and ends if it does not.
fn begin(mut outside: PipeWriter) {
    // If the process outside is killed, this one must not go on: the engine would take it for ended.
    let begun = set_parent_process_death_signal(Some(Signal::KILL))
        .and_then(|()| setsid())
        .and_then(|_| mount_own_proc());
    let errno = begun.map_or_else(Errno::raw_os_error, |()| 0);
    // An error means that the process outside was killed before it could be named in the first step.
    let told = outside.write_all(&errno.to_ne_bytes());
    if errno != 0 || told.is_err() {
        exit(0);
    }
}

/// Mounts a `/proc` of the current process namespace.
///
/// The kernel refuses it to user namespaces in which parts of the `/proc` above are covered, as in many containers: a new one would show
/// these parts.
fn mount_own_proc() -> Result<(), Errno> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None::<&CStr>)
}

/// Waits for the new process and exits with its exit code, or returns its error.
fn stay_outside(child: Pid, mut inside: PipeReader) -> io::Result<()> {
    let mut errno = [0; 4];
    let told = inside.read_exact(&mut errno);
    let errno = i32::from_ne_bytes(errno);
    if told.is_ok() && errno == 0 {
        exit(end_of(child));
    }
    end_of(child);
    told?;
    Err(io::Error::from_raw_os_error(errno))
}

/// Waits for the end of a child, and returns its exit code.
fn end_of(child: Pid) -> i32 {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return status.exit_status().unwrap_or(1),
            Err(Errno::INTR) | Ok(None) => {}
            Err(_) => return 1,
        }
    }
}

#[expect(clippy::exit, clippy::disallowed_methods, reason = "one of the two processes must not go on")]
fn exit(code: i32) -> ! {
    std::process::exit(code)
}

/// Duplicates this process into a new process namespace. Returns `None` in the new process.
///
/// The raw call and not `unshare` followed by `fork`: after an `unshare` whose first process has failed, this process could start no
/// other one.
#[expect(unsafe_code, reason = "there is no safe way to duplicate a process")]
fn fork() -> io::Result<Option<Pid>> {
    let flags = libc::CLONE_NEWPID | libc::SIGCHLD;
    // SAFETY: this process has one thread, so no lock is held that the new process would wait for. It gets a copy of all memory, with
    // the stack that a null pointer leaves it on. The C library does not learn the new thread id, which it needs only for locks and
    // signals between threads.
    let id = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match libc::pid_t::try_from(id) {
        Ok(id) if id >= 0 => Ok(Pid::from_raw(id)),
        Ok(_) | Err(_) => Err(io::Error::last_os_error()),
    }
}
