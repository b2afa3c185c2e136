//! A program that makes one attempt and reports the result: this test binary, executed in a sandbox.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::races;

/// The environment variable with the attempt.
pub(crate) const ATTEMPT: &str = "TASKPAWL_PROCESS_TEST_ATTEMPT";

/// Makes the attempt of the environment. Without the variable, as in a normal test run, does nothing.
#[test]
fn makes_the_attempt_of_the_environment() {
    let Some(attempt) = std::env::var_os(ATTEMPT) else { return };
    let attempt = attempt.into_string().unwrap();
    let words: Vec<&str> = attempt.split(' ').collect();
    match attempt_of(words[0], words.get(1).copied().unwrap_or_default(), words.get(2).copied()) {
        Ok(text) => println!("WORKED {text}"),
        Err(error) => println!("FAILED {error}"),
    }
}

fn attempt_of(verb: &str, what: &str, more: Option<&str>) -> io::Result<String> {
    let done = |result: io::Result<()>| result.map(|()| String::new());
    match verb {
        "read" => fs::read_to_string(what),
        "follow" => Ok(fs::read_link(what)?.display().to_string()),
        "list" => Ok(fs::read_dir(what)?.count().to_string()),
        "write" => done(fs::write(what, "written")),
        "append" => {
            done(fs::OpenOptions::new().append(true).open(what).and_then(|mut file| file.write_all(b"x")))
        }
        "remove" => done(fs::remove_file(what)),
        "rename" => done(fs::rename(what, more.unwrap())),
        "link" => done(fs::hard_link(what, more.unwrap())),
        "chmod" => done(fs::set_permissions(what, fs::Permissions::from_mode(0o777))),
        "set-id" => done(fs::set_permissions(what, fs::Permissions::from_mode(0o6755))),
        "connect" => {
            done(TcpStream::connect_timeout(&what.parse().unwrap(), Duration::from_secs(3)).map(drop))
        }
        "unix" => done(UnixStream::connect(what).map(drop)),
        "abstract" => done(UnixStream::connect_addr(&SocketAddr::from_abstract_name(what)?).map(drop)),
        "family" => done(socket(what.parse().unwrap())),
        "serve" => serve(Path::new(what)),
        "call" => call(Path::new(what)),
        "signal" => Ok(kill_process(pid(what), Signal::CONT).map(|()| String::new())?),
        "ptrace" => done(attach(pid(what))),
        "setuid" => done(become_other()),
        "system" => done(system_call(what)),
        "schedule" => done(schedule(what, more.unwrap().parse().unwrap())),
        "terminal" => terminal(),
        "many" => many(what.parse().unwrap()),
        "race-address" => races::address(Path::new(what), Path::new(more.unwrap())),
        "race-descriptor" => races::descriptor(Path::new(what)),
        "time-connect" => races::time(Path::new(what)),
        other => panic!("unknown attempt: `{other}`"),
    }
}

fn pid(text: &str) -> Pid {
    Pid::from_raw(text.parse().unwrap()).unwrap()
}

/// Answers one connection on the loopback interface, at a port that it writes to `file`.
fn serve(file: &Path) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let partial = file.with_extension("partial");
    fs::write(&partial, listener.local_addr()?.to_string())?;
    fs::rename(partial, file)?;
    listener.accept()?.0.write_all(b"hello")?;
    Ok(String::new())
}

/// Receives the answer of another program.
fn call(file: &Path) -> io::Result<String> {
    let address = loop {
        match fs::read_to_string(file) {
            Ok(address) => break address,
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let mut text = String::new();
    TcpStream::connect(address)?.read_to_string(&mut text)?;
    Ok(text)
}

fn checked(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[expect(unsafe_code, reason = "only the raw call can be attempted")]
fn socket(family: i32) -> io::Result<()> {
    // SAFETY: the call takes only numbers.
    checked(unsafe { libc::socket(family, libc::SOCK_STREAM, 0) }.into())
}

#[expect(unsafe_code, reason = "only the raw call can be attempted")]
fn attach(process: Pid) -> io::Result<()> {
    // SAFETY: the call reads and writes no memory.
    checked(unsafe { libc::ptrace(libc::PTRACE_SEIZE, process.as_raw_pid(), 0, 0) })
}

#[expect(unsafe_code, reason = "only the raw call can be attempted")]
fn become_other() -> io::Result<()> {
    let other = rustix::process::getuid().is_root().into();
    // SAFETY: the call takes only a number.
    checked(unsafe { libc::setuid(other) }.into())
}

#[expect(unsafe_code, reason = "only raw calls can be attempted")]
fn system_call(name: &str) -> io::Result<()> {
    let none = std::ptr::null::<u8>();
    // SAFETY: the arguments are flags and null-terminated paths, and a child of the call exits at once.
    let result = unsafe {
        match name {
            "mount" => {
                libc::syscall(libc::SYS_mount, c"none".as_ptr(), c"/tmp".as_ptr(), c"tmpfs".as_ptr(), 0, none)
            }
            "unmount" => libc::syscall(libc::SYS_umount2, c"/tmp".as_ptr(), libc::MNT_DETACH),
            "chroot" => libc::syscall(libc::SYS_chroot, c"/tmp".as_ptr()),
            "unshare" => libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER),
            "clone" => {
                match libc::syscall(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0) {
                    0 => libc::_exit(0),
                    result => result,
                }
            }
            "clone3" => libc::syscall(libc::SYS_clone3, none, 0),
            "bpf" => libc::syscall(libc::SYS_bpf, 0, none, 0),
            "keyctl" => libc::syscall(libc::SYS_keyctl, 0, -3, 0),
            "openat2" => libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, c"/".as_ptr(), none, 0),
            "ring" => libc::syscall(libc::SYS_io_uring_setup, 1, none),
            // `open_tree_attr`, which the `libc` crate does not name yet.
            "tree" => libc::syscall(467, libc::AT_FDCWD, c"/".as_ptr(), 0, none, 0),
            "type" => libc::syscall(libc::SYS_ioctl, 0, libc::TIOCSTI, c"x".as_ptr()),
            "short" => libc::syscall(0x4000_0000 + libc::SYS_getpid),
            other => panic!("unknown attempt: `{other}`"),
        }
    };
    checked(result)
}

/// Changes the scheduling priority of a process or of the user.
#[expect(unsafe_code, reason = "only raw calls can be attempted")]
fn schedule(by: &str, process: libc::pid_t) -> io::Result<()> {
    const BATCH: u32 = 3;
    const IDLE: libc::c_int = 3 << 13;
    const ALL: [u64; 16] = [u64::MAX; 16];
    let (parameters, attributes) = ([0u32; 4], [48u32, BATCH, 0, 0, 19, 0, 0, 0, 0, 0, 0, 0]);
    // SAFETY: the pointers are valid, and the buffers are as long as the kernel reads.
    let result = unsafe {
        match by {
            "priority" => libc::syscall(libc::SYS_setpriority, 0, process, 19),
            "user" => libc::syscall(libc::SYS_setpriority, 2, process, 19),
            "disk" => libc::syscall(libc::SYS_ioprio_set, 1, process, IDLE),
            "disk-user" => libc::syscall(libc::SYS_ioprio_set, 3, process, IDLE),
            "scheduler" => libc::syscall(libc::SYS_sched_setscheduler, process, BATCH, parameters.as_ptr()),
            "parameters" => libc::syscall(libc::SYS_sched_setparam, process, parameters.as_ptr()),
            "attributes" => libc::syscall(libc::SYS_sched_setattr, process, attributes.as_ptr(), 0),
            "processors" => {
                libc::syscall(libc::SYS_sched_setaffinity, process, size_of_val(&ALL), ALL.as_ptr())
            }
            other => panic!("unknown attempt: schedule by `{other}`"),
        }
    };
    checked(result)
}

/// Opens a new pseudoterminal.
#[expect(unsafe_code, reason = "only the raw call can be attempted")]
fn terminal() -> io::Result<String> {
    // SAFETY: the calls get an open descriptor.
    unsafe {
        let terminal = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY);
        checked(terminal.into())?;
        checked(libc::grantpt(terminal).into())?;
        checked(libc::unlockpt(terminal).into())?;
    }
    Ok(String::new())
}

/// Starts threads that do not end.
fn many(threads: usize) -> io::Result<String> {
    for _ in 0..threads {
        std::thread::Builder::new().spawn(std::thread::park)?;
    }
    Ok(String::new())
}
