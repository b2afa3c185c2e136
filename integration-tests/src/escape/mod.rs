//! A program that tries to do what a tool must not be able to do, one way at a time.
//!
//! `taskpawl-escape WORLD WAY` prints what came of it and ends with 0 when it got out, with 1 when it was held, and with 2 when this
//! machine offers no such way at all.

mod files;
mod kernel;
mod network;
mod processes;
mod secrets;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

/// What lies around the project, for a tool to get at.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct World {
    /// The directory that tools work in.
    pub project: PathBuf,
    /// The home of the user, with secrets in it.
    pub home: PathBuf,
    /// A directory that is nobody's business.
    pub outside: PathBuf,
    /// The store.
    pub store: PathBuf,
    /// The user's own configuration of the program.
    pub config: PathBuf,
    /// Somebody listens there, on 127.0.0.1.
    pub tcp: u16,
    /// The same on `::1`; 0 where there is no such address.
    pub tcp6: u16,
    /// Somebody receives there, on 127.0.0.1.
    pub udp: u16,
    /// Somebody listens at this socket.
    pub socket: PathBuf,
    /// And at this abstract one.
    pub abstract_name: String,
    /// A file in the memory that all programs of the machine share.
    pub shared_memory: PathBuf,
    /// A process that has nothing to do with the run.
    pub bystander: i32,
}

/// Whether a way out is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It is closed, at every level.
    Held,
    /// It is closed where the system allows a mount namespace.
    HeldByMounts,
    /// It is closed; that something came of the attempt is no proof, but what the harness sees of it.
    SeenByHarness,
    /// It is closed at the default level; at the strict one it leads to something else.
    HeldByDefault,
    /// It is open, and said to be.
    Open,
}

/// Who gets out this way when there is no sandbox: what the control has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Everybody.
    Everybody,
    /// The superuser.
    Superuser,
    /// Depends on how the machine is set up.
    Depends,
}

/// One way out.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// What it is called.
    pub name: &'static str,
    /// Whether it is closed.
    pub promise: Promise,
    /// Who gets out without a sandbox.
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

/// Returns every way that is tried.
pub fn ways() -> Vec<Way> {
    [files::WAYS, secrets::WAYS, network::WAYS, processes::WAYS, kernel::WAYS].concat()
}

/// Tries the way that the arguments name.
///
/// # Panics
/// The arguments name none.
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

/// Says that this machine offers no such way.
fn no_such_way(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

/// Says that an attempt came to nothing.
fn held(why: &str) -> io::Error {
    io::Error::other(why)
}

fn out_if(is_out: bool, why_not: &str) -> io::Result<()> {
    if is_out { Ok(()) } else { Err(held(why_not)) }
}

/// Makes a system call as it is.
#[expect(unsafe_code, reason = "the ways out are system calls that no safe interface offers")]
fn system_call(number: libc::c_long, arguments: [i64; 5]) -> io::Result<i64> {
    // SAFETY: the attempts pass numbers, null, or pointers to what outlives the call.
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

/// The process that started the supervisor of this program.
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
