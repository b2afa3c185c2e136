//! Bypass cases: access to other processes.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, test_kill_process};

use super::{
    Control, Promise, Way, address, close, engine, held, no_such_way, out_if, supervisor, system_call,
};

pub(super) const WAYS: &[Way] = &[
    // Signal 0: the kernel checks the permission and delivers nothing.
    Way::held("signal-engine", |_| signal(engine()?)).promised(Promise::HeldBySignalRules),
    Way::held("signal-bystander", |world| signal(world.bystander)).promised(Promise::HeldBySignalRules),
    Way::held("signal-bystander-by-descriptor", |world| {
        let process = pidfd_open(pid(world.bystander)?, PidfdFlags::empty())?;
        let null = [process.as_fd().as_raw_fd().into(), 0, 0, 0, 0];
        system_call(libc::SYS_pidfd_send_signal, null).map(drop)
    })
    .promised(Promise::HeldBySignalRules),
    Way::held("signal-first", |_| match supervisor()? {
        1 => Err(held("it is the supervisor, in a process namespace of the run")),
        _ => signal(1),
    })
    .promised(Promise::HeldBySignalRules)
    .open_to(Control::Superuser),
    Way::held("signal-supervisor", |_| signal(supervisor()?)).promised(Promise::Open),
    // A stopped supervisor would not end the call that it cannot stop: the harness would see a time-out.
    Way::held("stop-supervisor", |_| match supervisor()? {
        1 => {
            let _ = kill_process(pid(1)?, Signal::STOP);
            let _ = kill_process(pid(1)?, Signal::KILL);
            let status = fs::read_to_string("/proc/1/status")?;
            out_if(status.contains("\nState:\tT"), "it goes on")
        }
        _ => signal(supervisor()?),
    })
    .promised(Promise::HeldByProcesses),
    Way::held("see-bystander", |world| {
        fs::read_to_string(format!("/proc/{}/status", world.bystander)).map(drop)
    })
    .promised(Promise::HeldByProcesses),
    Way::held("trace-bystander", |world| trace(world.bystander)).open_to(Control::Depends),
    Way::held("trace-engine", |_| trace(engine()?)).open_to(Control::Depends),
    Way::held("trace-supervisor", |_| trace(supervisor()?)).open_to(Control::Depends),
    Way::held("take-descriptor-of-engine", |_| take_descriptor(engine()?)).open_to(Control::Depends),
    Way::held("take-descriptor-of-supervisor", |_| take_descriptor(supervisor()?)).open_to(Control::Depends),
    Way::held("read-memory-of-bystander", |world| {
        let mut buffer = [0_u8; 8];
        let local = [std::ptr::from_mut(&mut buffer) as i64, 8];
        // Address 0 is not mapped: with permission the call fails with EFAULT instead of EPERM.
        let remote = [8_i64, 8];
        match system_call(
            libc::SYS_process_vm_readv,
            [world.bystander.into(), address(&local), 1, address(&remote), 1],
        ) {
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(()),
            other => other.map(drop),
        }
    })
    .open_to(Control::Depends),
    Way::held("write-memory-of-supervisor", |_| {
        OpenOptions::new().write(true).open(format!("/proc/{}/mem", supervisor()?)).map(drop)
    })
    .open_to(Control::Depends),
    Way::held("oom-score-of-bystander", |world| {
        OpenOptions::new()
            .write(true)
            .open(format!("/proc/{}/oom_score_adj", world.bystander))?
            .write_all(b"500")
    }),
    Way::held("limits-of-bystander", |world| {
        let new = [1_u64 << 40, 1_u64 << 40];
        system_call(libc::SYS_prlimit64, [world.bystander.into(), 4, address(&new), 0, 0]).map(drop)
    })
    .open_to(Control::Depends),
    Way::held("capabilities", |_| {
        out_if(has_capabilities(&["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"])?, "none is left")
    })
    .open_to(Control::Superuser),
    // Only a user with rights over it can empty this set. Without new privileges no program gains anything from it.
    Way::held("bounding-capabilities", |_| out_if(has_capabilities(&["CapBnd:"])?, "none is left"))
        .promised(Promise::HeldByMounts),
    Way::held("new-privileges", |_| {
        let status = fs::read_to_string("/proc/self/status")?;
        out_if(status.contains("NoNewPrivs:\t0"), "no new ones can be had")
    }),
];

fn has_capabilities(sets: &[&str]) -> io::Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let is_full = |line: &str| !line.ends_with("0000000000000000");
    Ok(status.lines().any(|line| sets.iter().any(|set| line.starts_with(set)) && is_full(line)))
}

fn pid(number: i32) -> io::Result<Pid> {
    Pid::from_raw(number).ok_or_else(|| held("no such process"))
}

fn signal(number: i32) -> io::Result<()> {
    Ok(test_kill_process(pid(number)?)?)
}

/// Attaches, and detaches at once so that the target continues.
fn trace(process: i32) -> io::Result<()> {
    const SEIZE: i64 = 0x4206;
    const DETACH: i64 = 17;
    system_call(libc::SYS_ptrace, [SEIZE, process.into(), 0, 0, 0])?;
    let _ = system_call(libc::SYS_ptrace, [DETACH, process.into(), 0, 0, 0]);
    Ok(())
}

fn take_descriptor(process: i32) -> io::Result<()> {
    let process = pidfd_open(pid(process)?, PidfdFlags::empty())?;
    let taken = system_call(libc::SYS_pidfd_getfd, [process.as_raw_fd().into(), 0, 0, 0, 0]);
    match taken {
        Ok(descriptor) => {
            close(descriptor);
            Ok(())
        }
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Err(no_such_way("no such system call")),
        Err(error) => Err(error),
    }
}
