//! Program of a tool call that tries the bypass cases of the sandbox, one at a time.
//!
//! `taskpawl-escape WORLD WAY` prints the outcome. Exit codes: 0 the case succeeded, 1 it was blocked, 2 this machine does not
//! support the case.

mod connect;
mod files;
mod kernel;
mod network;
mod processes;
mod secrets;
mod set_id;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

/// Targets around the project for a bypass case, passed in JSON by the harness.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct World {
    /// The project directory.
    pub project: PathBuf,
    /// The home of the user, with secrets in it.
    pub home: PathBuf,
    /// A directory that no tool may access.
    pub outside: PathBuf,
    /// The store.
    pub store: PathBuf,
    /// The user's own configuration directory of taskpawl.
    pub config: PathBuf,
    /// Port of a TCP listener of another process, on 127.0.0.1.
    pub tcp: u16,
    /// Port of a TCP listener on `::1`; 0 if the machine has no such address.
    pub tcp6: u16,
    /// Port of a UDP receiver of another process, on 127.0.0.1.
    pub udp: u16,
    /// Path of a listening Unix socket.
    pub socket: PathBuf,
    /// Name of a listening abstract Unix socket.
    pub abstract_name: String,
    /// Path of a file in `/dev/shm`, which all programs of the machine share.
    pub shared_memory: PathBuf,
    /// Id of a process outside of the run.
    pub bystander: i32,
}

impl World {
    /// The file in the project by which a case asks the harness for a socket there.
    pub const WANTS_LATE: &'static str = "wants-late";

    /// That socket, at which the harness listens then.
    pub const LATE: &'static str = "late";
}

/// The promise of the sandbox about a bypass case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Blocked at every level.
    Held,
    /// Blocked if the system allows a mount namespace.
    HeldByMounts,
    /// Blocked if the system allows a process namespace.
    HeldByProcesses,
    /// Blocked if the system allows a process namespace, or Landlock has rules for signals (Linux 6.12).
    HeldBySignalRules,
    /// Blocked, but the exit code of the attempt proves nothing: only the harness can see the effect.
    SeenByHarness,
    /// Open, and documented as open.
    Open,
}

/// Users that succeed without the sandbox. The control has to see exactly these successes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Every user.
    Everybody,
    /// The superuser only.
    Superuser,
    /// Depends on the configuration of the machine, so the control does not check it.
    Depends,
}

/// One bypass case.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The name, as an argument of the program.
    pub name: &'static str,
    /// The promise of the sandbox.
    pub promise: Promise,
    /// The users that succeed without the sandbox.
    pub control: Control,
    attempt: fn(&World) -> io::Result<()>,
}

impl Way {
    const fn held(name: &'static str, attempt: fn(&World) -> io::Result<()>) -> Self {
        Self { name, promise: Promise::Held, control: Control::Everybody, attempt }
    }

    const fn promised(mut self, promise: Promise) -> Self {
        self.promise = promise;
        self
    }

    const fn open_to(mut self, control: Control) -> Self {
        self.control = control;
        self
    }
}

/// Returns all bypass cases.
pub fn ways() -> Vec<Way> {
    [files::WAYS, secrets::WAYS, network::WAYS, connect::WAYS, processes::WAYS, kernel::WAYS, set_id::WAYS]
        .concat()
}

/// Tries the case that the arguments name.
///
/// # Panics
/// The arguments name no case.
#[expect(clippy::print_stdout, reason = "it is a program")]
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let [_, world, name] = &args[..] else { panic!("usage: taskpawl-escape WORLD WAY") };
    let world = std::fs::read_to_string(Path::new(world)).expect("the world can be read");
    let world: World = serde_json::from_str(&world).expect("the world is JSON");
    let way = ways().into_iter().find(|way| way.name == name.as_str()).expect("a way that there is");
    match (way.attempt)(&world) {
        Ok(()) => {
            println!("{name}: out");
            ExitCode::SUCCESS
        }
        Err(error) if error.kind() == io::ErrorKind::Unsupported && error.raw_os_error().is_none() => {
            println!("{name}: {error}");
            ExitCode::from(2)
        }
        Err(error) => {
            println!("{name}: held: {error}");
            ExitCode::from(1)
        }
    }
}

/// Returns the error for a case that this machine does not support.
fn no_such_way(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

/// Returns the error for a blocked attempt.
fn held(why: &str) -> io::Error {
    io::Error::other(why)
}

fn out_if(is_out: bool, why_not: &str) -> io::Result<()> {
    if is_out { Ok(()) } else { Err(held(why_not)) }
}

/// Makes a raw system call, so that no libc check hides the answer of the kernel.
#[expect(unsafe_code, reason = "bypass cases need system calls without a safe wrapper")]
fn system_call(number: libc::c_long, arguments: [i64; 5]) -> io::Result<i64> {
    // SAFETY: all callers pass numbers, null, or pointers to objects that outlive the call.
    let result = unsafe {
        libc::syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4])
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn address<T: ?Sized>(value: &T) -> i64 {
    std::ptr::from_ref(value).cast::<u8>() as i64
}

fn close(descriptor: i64) {
    let _ = system_call(libc::SYS_close, [descriptor, 0, 0, 0, 0]);
}

fn c_path(path: &Path) -> io::Result<std::ffi::CString> {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|_| held("a path with NUL"))
}

/// Returns the process that started the supervisor of this program.
fn engine() -> io::Result<i32> {
    let supervisor = parent_of(std::process::id())?;
    parent_of(supervisor.unsigned_abs())
}

fn supervisor() -> io::Result<i32> {
    parent_of(std::process::id())
}

fn parent_of(process: u32) -> io::Result<i32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let parent = line.and_then(|line| line.trim().parse().ok()).filter(|parent| *parent > 0);
    parent.ok_or_else(|| held("no parent is to be seen"))
}
