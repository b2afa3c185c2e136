//! A fast replacement for `posix_spawn`. The child also shares the memory of the parent until `execve`, but
//! work that is the same for all programs is done only once: `posix_spawn` resets every signal and maps a
//! stack for each program.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

use super::signals;
use crate::spawn_spec::SpawnSpec;

/// Bytes of stack for the child.
const STACK: usize = 64 << 10;

/// Starts the programs of a supervisor, which is single-threaded.
#[derive(Debug)]
pub(super) struct Spawner {
    stack: Vec<u8>,
    /// `/dev/null`, the default standard input.
    null: File,
    /// The environment of this process, with the name of each variable.
    inherited: Vec<(OsString, CString)>,
    /// Landlock rules that each program applies to itself, so that calls cannot inspect each other.
    room: Option<OwnedFd>,
}

/// Pairs of name and value.
type Variables<'a> = [(&'a OsStr, &'a OsStr)];

/// The standard streams of a program.
#[derive(Debug)]
pub(super) struct Descriptors {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// All data of a child, prepared so that it does not allocate.
struct Order {
    file: *const c_char,
    argv: *const *const c_char,
    environment: *const *const c_char,
    cwd: *const c_char,
    streams: [RawFd; 3],
    /// Landlock rules, negative for none.
    room: RawFd,
    unblocked: libc::sigset_t,
    /// The error of the child, 0 for none.
    errno: c_int,
}

impl Spawner {
    pub(super) fn new(room: Option<OwnedFd>) -> io::Result<Self> {
        let text = |name: &OsStr, value: &OsStr| variable(name, value).ok();
        let inherited =
            std::env::vars_os().filter_map(|(name, value)| text(&name, &value).map(|text| (name, text)));
        let (stack, null) = (vec![0; STACK], File::open("/dev/null")?);
        Ok(Self { stack, null, inherited: inherited.collect(), room })
    }

    /// Starts a program as the leader of its own process group. The variables `more` are added to those of
    /// the recipe.
    pub(super) fn spawn(
        &mut self,
        spec: &SpawnSpec<'_>,
        more: &Variables<'_>,
        streams: &Descriptors,
    ) -> Result<Pid, Errno> {
        let own: Vec<CString> = own_variables(spec, more)?;
        let inherited =
            self.inherited.iter().filter(|(name, _)| spec.inherits && !is_changed(spec, more, name));
        let environment = pointers(inherited.map(|(_, text)| text).chain(&own));
        let arguments: Vec<CString> = spec.argv.iter().map(|word| text(word)).collect::<Result<_, _>>()?;
        let argv = pointers(arguments.iter());
        let (file, cwd) = (text(&spec.file)?, text(&spec.cwd)?);
        let stdin = streams.stdin.as_ref().map_or(self.null.as_raw_fd(), AsRawFd::as_raw_fd);
        let mut order = Order {
            file: file.as_ptr(),
            argv: argv.as_ptr(),
            environment: environment.as_ptr(),
            cwd: cwd.as_ptr(),
            streams: [stdin, streams.stdout.as_raw_fd(), streams.stderr.as_raw_fd()],
            room: self.room.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            unblocked: signals::none(),
            errno: 0,
        };
        let child = signals::while_blocked(|| self.start(&mut order))?;
        match order.errno {
            0 => Ok(child),
            errno => {
                // The child has failed before `execve`. Reap it here, because the caller does not learn its
                // pid.
                let _ = waitpid(Some(child), WaitOptions::empty());
                Err(Errno::from_raw_os_error(errno))
            }
        }
    }

    /// Starts the child. Returns after its `execve` or its failure.
    #[expect(unsafe_code, reason = "there is no safe way to start a process that borrows memory")]
    fn start(&mut self, order: &mut Order) -> Result<Pid, Errno> {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let top = self.stack.as_mut_ptr_range().end;
        let top = top.wrapping_sub(top.addr() % 16);
        // SAFETY: the calling thread, the only one, is suspended until the child has left this memory and its
        // stack, and the child only executes the calls in `become_program`.
        let id = unsafe { libc::clone(become_program, top.cast(), flags, ptr::from_mut(order).cast()) };
        if id < 0 {
            return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::AGAIN));
        }
        Pid::from_raw(id).ok_or(Errno::SRCH)
    }
}

/// Body of the child: executes the program, or stores the error.
#[expect(unsafe_code, reason = "a child that borrows memory may only make raw calls")]
extern "C" fn become_program(order: *mut c_void) -> c_int {
    // SAFETY: the order and all data behind its pointers outlive the child's use of them, lists end with a
    // null pointer, and no other thread accesses them now. Signal handlers and the signal mask are not shared
    // with the parent.
    unsafe {
        let order = &mut *order.cast::<Order>();
        if has_prepared(order) {
            libc::execve(order.file, order.argv, order.environment);
        }
        order.errno = *libc::__errno_location();
        // `_exit` and not `exit`: exit handlers would run on the memory of the parent.
        libc::_exit(127)
    }
}

/// Sets up streams, process group, directory, Landlock and signals in the child. Returns false on the first
/// error.
#[expect(unsafe_code, reason = "a child that borrows memory may only make raw calls")]
unsafe fn has_prepared(order: &Order) -> bool {
    // SAFETY: as in `become_program`. The source descriptors are above 2, so `dup2` overwrites none of them
    // before it is used.
    unsafe {
        let is_placed = |(target, source): (c_int, &RawFd)| libc::dup2(*source, target) == target;
        if !(0..).zip(&order.streams).all(is_placed)
            || libc::setpgid(0, 0) != 0
            || libc::chdir(order.cwd) != 0
        {
            return false;
        }
        if order.room >= 0 {
            // Landlock allows at most 16 nested rulesets. If they are used up, the program runs without this
            // one, as on a kernel without Landlock.
            libc::syscall(libc::SYS_landlock_restrict_self, order.room, 0);
        }
        // Rust ignores SIGPIPE in this process, but programs expect the default. Handlers are reset by
        // `execve`.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const order.unblocked, ptr::null_mut()) == 0
    }
}

fn own_variables(spec: &SpawnSpec<'_>, more: &Variables<'_>) -> Result<Vec<CString>, Errno> {
    let is_more = |name: &OsStr| more.iter().any(|(other, _)| *other == name);
    let set = spec.variables.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
    let set = set.filter(|(name, _)| !is_more(name));
    set.chain(more.iter().copied()).map(|(name, value)| variable(name, value)).collect()
}

/// Returns whether the program gets another value of an inherited variable, or none.
fn is_changed(spec: &SpawnSpec<'_>, more: &Variables<'_>, name: &OsStr) -> bool {
    let names = spec.variables.iter().map(|(changed, _)| *changed);
    names.chain(more.iter().map(|(changed, _)| *changed)).any(|changed| changed == name)
}

fn variable(name: &OsStr, value: &OsStr) -> Result<CString, Errno> {
    let mut text = Vec::with_capacity(name.len() + value.len() + 2);
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value.as_bytes());
    CString::new(text).map_err(|_| Errno::INVAL)
}

fn text(text: &OsStr) -> Result<CString, Errno> {
    CString::new(text.as_bytes()).map_err(|_| Errno::INVAL)
}

/// Returns a null-terminated list of pointers, as `execve` expects it.
fn pointers<'a>(texts: impl Iterator<Item = &'a CString>) -> Vec<*const c_char> {
    texts.map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}
