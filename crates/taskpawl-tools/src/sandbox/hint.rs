//! Guesses from the output of a failed program and its profile which denial of the sandbox made it fail.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taskpawl_process::{
    HostGrant, Network, Outcome, Profile, Program, RefusedAccess, Sandbox, SpawnError, powerful_server,
};

use super::closed::{ClosedPlaces, Unopened};
use super::excluded_paths::{is_within, plain};
use crate::context::CallContext;
use crate::scan::ScanBounds;

/// The longest time to look at files for a hint.
const MAX_LOOK: Duration = Duration::from_secs(1);

/// The number of last lines of a program's output that are searched.
const LINES: usize = 40;

// Error names such as `EACCES` are compared with their case; all other phrases without.

const DENIED: [&str; 6] = [
    "permission denied",
    "read-only file system",
    "operation not permitted",
    "EACCES",
    "EROFS",
    "access is denied",
];
/// Errors of programs that replace a file which a mount covers, as `git config` does.
const COVERED: [&str; 2] = ["device or resource busy", "EBUSY"];
/// Errors of programs that write to a path which a mount protects.
const READ_ONLY: [&str; 2] = ["read-only file system", "EROFS"];
/// Errors of programs that connect to a covered socket.
const REFUSED: [&str; 2] = ["connection refused", "ECONNREFUSED"];
/// The error of a shell that creates a file in a missing directory.
const NO_DIRECTORY: [&str; 1] = ["directory nonexistent"];
const MISSING: [&str; 3] = ["no such file", "ENOENT", "cannot find module"];
/// Errors of programs that cannot start another process.
const TOO_MANY: [&str; 3] = ["resource temporarily unavailable", "cannot fork", "EAGAIN"];
/// Errors of programs that cannot write more to a file.
const TOO_LARGE: [&str; 3] = ["file too large", "file size limit exceeded", "EFBIG"];
/// Errors of programs that cannot open another file.
const TOO_MANY_FILES: [&str; 2] = ["too many open files", "EMFILE"];
const UNREACHABLE: [&str; 20] = [
    "network is unreachable",
    "could not resolve host",
    "could not resolve hostname",
    "could not resolve proxy",
    "couldn't resolve host",
    "couldn't resolve proxy",
    "couldn't connect to server",
    "unable to resolve host address",
    "temporary failure resolving",
    "temporary failure in name resolution",
    "name or service not known",
    "failed to lookup address",
    "dns error",
    "address family not supported",
    "ENETUNREACH",
    "EAI_AGAIN",
    "ENOTFOUND",
    "no address associated with hostname",
    "all connection attempts failed",
    "fetch failed",
];

/// Errors of connections that began and were refused, reset or not made in time.
const CONNECTING: [&str; 12] = [
    "connection refused",
    "ECONNREFUSED",
    "connection reset",
    "ECONNRESET",
    "connection closed",
    "connection aborted",
    "connection error",
    "failed to connect",
    "could not connect",
    "unable to connect",
    "network error",
    "timed out",
];

/// Words in the errors of programs that create files, or open them for writing.
const MAKES: [&str; 16] = [
    "copy",
    "create",
    "creating",
    "ENOENT",
    "FileNotFoundError",
    "link",
    "make",
    "mkdir",
    "move",
    "open",
    "opening",
    "rename",
    "tee",
    "touch",
    "write",
    "writing",
];

/// Those of them that no program uses that only reads.
const CREATES: [&str; 5] = ["cannot create", "can't create", "mkdir", "tee", "touch"];

/// Words before a file name in the errors of shells and other programs.
const MADE: [&str; 7] =
    ["cannot create ", "cannot open ", "can't create ", "can't open ", "open ", "mkdir ", "remove "];

/// Exit codes of `curl` for a host or proxy that cannot be resolved or reached. `curl --silent` prints no error.
const CURL: [i32; 3] = [5, 6, 7];

/// Added to the number of the signal that ended a program, in the exit code of a shell.
const SIGNALLED: i32 = 128;

/// The exit code after `SIGKILL`, of the program itself or beneath a shell.
const KILLED: i32 = 137;

/// The setting that would probably let a failed call succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hint {
    /// The restriction that the call met, and the way to lift it, for people.
    pub text: String,
    /// The way to lift it by an option of the run; `None` if no option does, or if what it opens may hold secrets or is obeyed by
    /// other programs. Such a path has to be typed by a person.
    pub grant: Option<Grant>,
}

/// A way to widen the sandbox of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grant {
    /// Programs may use the network.
    Network,
    /// Programs may reach a host, in the syntax of `HostGrant`.
    Host(String),
    /// Programs may connect to a port of this machine.
    Port(u16),
    /// Programs may read a path.
    Read(PathBuf),
    /// Programs may read and write a path.
    Write(PathBuf),
}

impl Hint {
    /// Makes a hint with a way to open a path.
    ///
    /// The path comes from the output of a program, which can name any. So the grant is left out if it would open the home, or a
    /// directory above the project: a reader may run the suggested command without checking it.
    fn opening(place: &Path, grant: fn(PathBuf) -> Grant, text: String) -> Self {
        let around = [std::env::home_dir(), std::env::current_dir().ok()];
        let hint = Self { text, grant: Some(grant(place.to_owned())) };
        around.into_iter().flatten().fold(hint, |hint, inner| hint.without_grant_around(&inner))
    }

    /// Drops a grant that would open `inner`, and with it everything beside it.
    fn without_grant_around(mut self, inner: &Path) -> Self {
        self.grant = self.grant.filter(|grant| match grant {
            Grant::Read(path) | Grant::Write(path) => !inner.starts_with(path),
            Grant::Network | Grant::Host(_) | Grant::Port(_) => true,
        });
        self
    }

    /// Drops a grant of a dot file in a home directory: a program can print any path, and these are private.
    fn without_private_grant(mut self, homes: &[PathBuf]) -> Self {
        let is_private = |path: &Path| {
            let names = homes.iter().filter_map(|home| path.strip_prefix(home).ok()?.components().next());
            names.into_iter().any(|name| name.as_os_str().as_encoded_bytes().starts_with(b"."))
        };
        self.grant = self.grant.filter(|grant| match grant {
            Grant::Read(path) | Grant::Write(path) => !is_private(path),
            Grant::Network | Grant::Host(_) | Grant::Port(_) => true,
        });
        self
    }

    /// Widens a grant to read a path into one that also lets programs write it.
    fn for_writing(mut self) -> Self {
        self.grant =
            self.grant.map(|grant| if let Grant::Read(path) = grant { Grant::Write(path) } else { grant });
        self
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self { text, grant: None }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const NO_NETWORK: &str = "programs have no network in the sandbox; `--allow-net` enables it";

/// The restrictions of a failed program.
#[derive(Clone, Copy)]
struct DenialContext<'a> {
    profile: &'a Profile,
    cwd: &'a Path,
    unopened: &'a Unopened,
}

/// Returns a hint if a failed program met a restriction of its sandbox: the restriction, and the way to lift it.
pub(crate) fn hint(program: &Program, outcome: &Outcome, closed: &ClosedPlaces) -> Option<Hint> {
    let Sandbox::On(profile) = &program.sandbox else { return None };
    if outcome.signal == Some(rustix::process::Signal::SYS.as_raw()) {
        return Some("it used a system call that the sandbox forbids".to_owned().into());
    }
    if let Some(said) = of_memory(profile, outcome) {
        return Some(said.into());
    }
    let too_large = rustix::process::Signal::XFSZ.as_raw();
    if outcome.signal == Some(too_large) || outcome.code == SIGNALLED + too_large {
        return Some(of_file_size(profile).into());
    }
    let context = DenialContext { profile, cwd: &program.cwd, unopened: &closed.unopened() };
    let hint = of_lines(context, &outcome.stderr.text).or_else(|| {
        let is_curl = program.argv.iter().any(|word| word.contains("curl")) && CURL.contains(&outcome.code);
        (is_curl && profile.network == Network::None).then(no_network)
    });
    // A refused name explains an error of the network better than its text. Not other errors: many programs ask for names that they can
    // do without.
    match hint {
        Some(hint) if hint.grant != Some(Grant::Network) => Some(hint),
        other => {
            let is_known = other.is_some();
            let explaining: Vec<_> = outcome
                .refused
                .iter()
                .filter(|access| is_known || may_explain(access, &outcome.stderr.text))
                .cloned()
                .collect();
            of_refused(&explaining).or(other)
        }
    }
}

/// Returns whether refused access may be the cause of the errors that a program wrote: it wrote none, or they name the host, the port or
/// a failed connection.
fn may_explain(access: &RefusedAccess, errors: &str) -> bool {
    let mut lines = errors.lines().rev().take(LINES);
    let named = match access {
        RefusedAccess::Host { name } | RefusedAccess::TooManyNames { name, .. } => name.clone(),
        RefusedAccess::Address { host, .. } | RefusedAccess::ServerName { host, .. } => host.clone(),
        RefusedAccess::Port { port } => port.to_string(),
        RefusedAccess::Socket { path } => path.to_string_lossy().to_lowercase(),
        RefusedAccess::Further | _ => return false,
    };
    errors.trim().is_empty()
        || lines.any(|line| {
            says(line, &UNREACHABLE) || says(line, &CONNECTING) || has_words(&line.to_lowercase(), &named)
        })
}

/// Returns a hint for the network access that was refused: the flag for the first name that is not granted, or the reason why a granted
/// one was not reached.
fn of_refused(refused: &[RefusedAccess]) -> Option<Hint> {
    let hosts = refused.iter().filter_map(|access| {
        let RefusedAccess::Host { name } = access else { return None };
        // Only what the flag accepts: a name in a question can be any text.
        name.parse::<HostGrant>().ok().map(|_| name.as_str())
    });
    let hosts: Vec<&str> = hosts.collect();
    if let Some(first) = hosts.first() {
        let more = match hosts.len() - 1 {
            0 => String::new(),
            count => format!(" (and {count} more, in `sandbox.refused` of the result)"),
        };
        let text = format!(
            "programs looked up `{first}`{more}, which is not granted; `--allow-host {first}` lets them reach it, if you trust this name; `taskpawl allow` remembers it"
        );
        return Some(Hint { text, grant: Some(Grant::Host((*first).to_owned())) });
    }
    let of_port = || refused.iter().find_map(port_hint);
    let of_socket = || refused.iter().find_map(socket_hint);
    refused.iter().find_map(reason_at_granted).map(Hint::from).or_else(of_port).or_else(of_socket)
}

/// Returns a hint for a socket at which a program of this machine listens. It names no flag to copy: the clients of some such programs can
/// do everything.
fn socket_hint(access: &RefusedAccess) -> Option<Hint> {
    let RefusedAccess::Socket { path } = access else { return None };
    let path = path.display();
    let text = format!(
        "programs tried the socket `{path}` of another program; `taskpawl allow` shows it, and `taskpawl allow --socket {path}` opens it to the programs of a plan"
    );
    Some(text.into())
}

/// Returns a hint for a port at which a server of this machine listens.
fn port_hint(access: &RefusedAccess) -> Option<Hint> {
    let RefusedAccess::Port { port } = access else { return None };
    if let Some(server) = powerful_server(*port) {
        let text = format!(
            "programs tried port {port} of this machine, that of {server}, whose clients can do everything; only `--sandbox off` reaches it"
        );
        return Some(text.into());
    }
    let text = format!(
        "programs tried port {port} of this machine, where a server listens outside of the sandbox; `--allow-port {port}` lets them reach it, `taskpawl allow --port {port}` for later runs as well"
    );
    Some(Hint { text, grant: Some(Grant::Port(*port)) })
}

/// Explains why a granted name was not reached.
fn reason_at_granted(access: &RefusedAccess) -> Option<String> {
    Some(match access {
        RefusedAccess::Address { host, address, reason } => {
            format!("the granted name `{host}` leads to {address}, {reason}, which no grant opens")
        }
        RefusedAccess::ServerName { host, asked: Some(asked) } => {
            format!(
                "a connection to the granted name `{host}` asked for the server `{asked}` by TLS; only `{host}` itself is reached on port 443"
            )
        }
        RefusedAccess::ServerName { host, asked: None } => {
            format!("a connection to port 443 of the granted name `{host}` did not name it by TLS")
        }
        RefusedAccess::TooManyNames { beneath, name } => {
            format!(
                "`{name}` is one name too many beneath `*.{beneath}`; grant names that are needed themselves"
            )
        }
        RefusedAccess::Host { .. }
        | RefusedAccess::Port { .. }
        | RefusedAccess::Socket { .. }
        | RefusedAccess::Further
        | _ => return None,
    })
}

fn no_network() -> Hint {
    Hint { text: NO_NETWORK.to_owned(), grant: Some(Grant::Network) }
}

/// Returns the protected paths that a successful program failed to write, each with a hint.
///
/// Some programs go on after such a failure and only mention it: `git submodule add` then leaves its settings out.
pub(crate) fn met_protected(
    program: &Program,
    outcome: &Outcome,
    closed: &ClosedPlaces,
) -> Vec<(PathBuf, Hint)> {
    let Sandbox::On(profile) = &program.sandbox else { return Vec::new() };
    let lines = outcome.stderr.text.lines().rev().take(LINES);
    let mut met: Vec<_> = lines.filter_map(|line| protected_in(profile, &program.cwd, line)).collect();
    met.sort();
    met.dedup();
    let unopened = closed.unopened();
    met.into_iter().map(|path| (path.clone(), protected(&unopened, &path))).collect()
}

/// The restrictions of a program that stays running and answers requests, such as a server. Hints are derived from them while it runs.
#[derive(Clone, Debug)]
pub struct Denials {
    sandbox: Sandbox,
    cwd: PathBuf,
    unopened: Arc<Unopened>,
}

impl Denials {
    /// Returns the restrictions of a program that a call starts.
    pub fn of(cx: &CallContext, program: &Program) -> Self {
        let (sandbox, cwd) = (program.sandbox.clone(), program.cwd.clone());
        Self { sandbox, cwd, unopened: cx.closed.unopened() }
    }

    /// Returns whether the program runs in a sandbox.
    pub fn are_possible(&self) -> bool {
        matches!(self.sandbox, Sandbox::On(_))
    }

    /// Returns a hint for the last lines of a program's output. Returns `None` as well if looking at the paths in these lines takes more
    /// than a second.
    pub async fn hint(&self, said: &str) -> Option<Hint> {
        let (held, said) = (self.clone(), said.to_owned());
        looked_up(move || held.hint_now(&said)).await
    }

    fn hint_now(&self, said: &str) -> Option<Hint> {
        let Sandbox::On(profile) = &self.sandbox else { return None };
        of_lines(DenialContext { profile, cwd: &self.cwd, unopened: &self.unopened }, said)
    }

    /// Returns a hint if the sandbox prevents the program from starting.
    pub async fn hint_for_start(&self, error: &SpawnError) -> Option<Hint> {
        hint_for_start(&self.sandbox, error).await
    }
}

/// Looks at files for a hint, for at most [`MAX_LOOK`].
async fn looked_up(look: impl FnOnce() -> Option<Hint> + Send + 'static) -> Option<Hint> {
    ScanBounds::default().at_most(MAX_LOOK).run(move |_| Ok(look())).await.ok().flatten()
}

fn of_lines(context: DenialContext<'_>, said: &str) -> Option<Hint> {
    // Last lines first: the error that ended a program is near the end of its output.
    let mut lines = said.lines().rev().take(LINES);
    // The general hints come second: for a path of taskpawl they would suggest a flag, which does not open it.
    let hint = lines.find_map(|line| of_own(context, line).or_else(|| of_line(context, line)));
    hint.map(|hint| hint.without_grant_around(context.cwd).without_private_grant(&context.profile.emptied))
}

/// Returns a hint if the sandbox prevents a program from starting.
pub(crate) async fn hint_for_start(sandbox: &Sandbox, error: &SpawnError) -> Option<Hint> {
    let Sandbox::On(profile) = sandbox else { return None };
    let (SpawnError::NotExecutable { program: path }
    | SpawnError::NotFound { program: path }
    | SpawnError::Start { program: path, .. }
    | SpawnError::WorkingDirectory { path }) = error
    else {
        return None;
    };
    let (profile, path) = (Arc::clone(profile), path.clone());
    looked_up(move || {
        let is_closed = path.exists() && !may_read(&profile, &path);
        is_closed.then(|| unreadable(&profile, &Unopened::default(), &path))
    })
    .await
}

/// Returns a hint if the program was most likely killed because its memory limit was reached. A program that taskpawl kills has another
/// error.
fn of_memory(profile: &Profile, outcome: &Outcome) -> Option<String> {
    let is_limited = outcome.enforcement.as_ref().is_some_and(|enforcement| enforcement.cgroup);
    let memory = profile.limits.memory.filter(|_| is_limited && outcome.code == KILLED)?;
    Some(format!(
        "it was probably killed because the programs of the run share {memory} bytes of memory; set `memory` in `[sandbox]` of the configuration"
    ))
}

fn of_file_size(profile: &Profile) -> String {
    let most = profile.limits.file_size;
    format!("a program in the sandbox may write {most} bytes to each file; `--sandbox off` removes the limit")
}

/// Returns a hint for a path of taskpawl itself: no flag opens it, but `planAccess` gives access to the plan.
fn of_own(context: DenialContext<'_>, line: &str) -> Option<Hint> {
    let is_own =
        || paths(line).iter().any(|path| is_within(&plain(&context.cwd.join(path)), &context.unopened.own));
    ((says(line, &DENIED) || says(line, &MISSING)) && is_own()).then(|| {
        "programs cannot open the store of the plan; `planAccess: read` (or `add`) on the call lets its programs use `taskpawl` instead".to_owned().into()
    })
}

/// Returns whether a line contains one of the phrases as whole words: `FileNotFoundError` does not contain `ENOTFOUND`.
fn says(line: &str, phrases: &[&str]) -> bool {
    let folded = line.to_lowercase();
    let is_name = |phrase: &str| phrase.starts_with(|first: char| first.is_ascii_uppercase());
    phrases.iter().any(|phrase| has_words(if is_name(phrase) { line } else { &folded }, phrase))
}

fn has_words(text: &str, words: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(words)
        .any(|(at, _)| !text[..at].ends_with(is_inner) && !text[at + words.len()..].starts_with(is_inner))
}

fn of_line(context: DenialContext<'_>, line: &str) -> Option<Hint> {
    let DenialContext { profile, cwd, unopened } = context;
    let says = |phrases: &[&str]| says(line, phrases);
    if profile.network == Network::None && says(&UNREACHABLE) {
        return Some(no_network());
    }
    if let Some(most) = profile.limits.processes
        && says(&TOO_MANY)
    {
        return Some(format!(
            "the programs of the run may have {most} processes in total; set `processes` in `[sandbox]` of the configuration"
        ).into());
    }
    if says(&TOO_LARGE) {
        return Some(of_file_size(profile).into());
    }
    if says(&TOO_MANY_FILES) {
        let most = profile.limits.open_files;
        return Some(
            format!("a program in the sandbox may have {most} open files; `--sandbox off` removes the limit")
                .into(),
        );
    }
    if let Some(path) = protected_in(profile, cwd, line) {
        return Some(protected(unopened, &path));
    }
    if says(&READ_ONLY) || says(&COVERED) {
        // Paths in a writable directory can be written, so the error is about the directory itself, which is a mount point.
        let opened = first_path(cwd, line, |path| profile.write.iter().any(|place| place == path));
        if let Some(path) = opened {
            return Some(
                format!(
                    "`{}` itself is writable, but programs cannot move, replace or remove it",
                    path.display()
                )
                .into(),
            );
        }
    }
    if (says(&COVERED) || says(&REFUSED))
        && let Some(path) = first_path(cwd, line, |path| is_within(path, &profile.hidden))
    {
        return Some(unreadable(profile, unopened, &path));
    }
    if says(&DENIED) {
        return paths(line).iter().find_map(|path| denied(context, &plain(&cwd.join(path)), line));
    }
    unseen(context, line)
}

/// Returns a hint for a path that exists but is not visible in the sandbox. A hidden directory is empty there, and other paths are missing.
fn unseen(DenialContext { profile, cwd, unopened }: DenialContext<'_>, line: &str) -> Option<Hint> {
    let is_unseen = |path: &Path| path.exists() && !may_read(profile, path);
    // A program that creates a file reports the missing directory above it.
    let is_unseen_above = |path: &Path| !path.exists() && path.parent().is_some_and(is_unseen);
    let is_missing = says(line, &MISSING);
    if is_missing && let Some(path) = first_path(cwd, line, is_unseen) {
        return Some(unreadable(profile, unopened, &path));
    }
    if !(says(line, &NO_DIRECTORY) || is_missing && says(line, &MAKES)) {
        return None;
    }
    let path = first_path(cwd, line, |path| is_unseen(path) || is_unseen_above(path))?;
    Some(if is_within(&path, &profile.hidden) {
        unreadable(profile, unopened, &path)
    } else {
        unwritable(unopened, &path)
    })
}

fn first_path(cwd: &Path, line: &str, is_it: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    paths(line).iter().map(|path| plain(&cwd.join(path))).find(|path| is_it(path))
}

/// Returns a hint for a path, if the sandbox denies it.
fn denied(
    DenialContext { profile, unopened, .. }: DenialContext<'_>,
    path: &Path,
    line: &str,
) -> Option<Hint> {
    if is_within(path, &profile.hidden) {
        return Some(unreadable(profile, unopened, path));
    }
    if is_within(path, &profile.read_only) || unopened.keeps(path) {
        return Some(protected(unopened, path));
    }
    if is_within(path, &profile.write) {
        return None;
    }
    if is_within(path, &profile.read) {
        return Some(unwritable_here(path));
    }
    // A program that only reads must not get the hint about writing.
    Some(if says(line, &READ_ONLY) {
        unwritable(unopened, path)
    } else if says(line, &CREATES) {
        unreadable(profile, unopened, path).for_writing()
    } else {
        unreadable(profile, unopened, path)
    })
}

fn unwritable_here(path: &Path) -> Hint {
    let there = there(path);
    let text = format!(
        "programs in the sandbox can only write to the project; `--allow-write {}` makes this path writable",
        there.display()
    );
    Hint::opening(there, Grant::Write, text)
}

/// Returns the protected path that a line reports as not written.
///
/// Paths in the line are also resolved from directories above the working directory: git reports them from the top of its repository.
fn protected_in(profile: &Profile, cwd: &Path, line: &str) -> Option<PathBuf> {
    if !says(line, &DENIED) && !says(line, &COVERED) {
        return None;
    }
    let starts = || cwd.ancestors().take_while(|above| is_within(above, &profile.write));
    let from_each = |path: &PathBuf| starts().map(|start| plain(&start.join(path))).collect::<Vec<_>>();
    let found = paths(line).iter().flat_map(from_each).find(|path| is_protected(profile, path));
    found.or_else(|| protected_by_name(profile, cwd, line))
}

fn is_protected(profile: &Profile, path: &Path) -> bool {
    is_within(path, &profile.read_only) && !is_within(path, &profile.hidden)
}

/// Returns the protected path that a line reports by a bare file name.
///
/// A shell may have changed to a directory beneath the one that it was started in. The name must then fit exactly one protected path.
fn protected_by_name(profile: &Profile, cwd: &Path, line: &str) -> Option<PathBuf> {
    let name = name_alone(line)?;
    let here = cwd.join(name);
    if is_protected(profile, &here) {
        return Some(here);
    }
    if !says(line, &READ_ONLY) {
        return None;
    }
    let is_called = |path: &&PathBuf| path.starts_with(cwd) && path.ends_with(name);
    let mut called = profile.read_only.iter().filter(is_called);
    let first = called.next().filter(|path| is_protected(profile, path))?;
    called.next().is_none().then(|| first.clone())
}

/// Returns the file name without a directory that precedes the error, as in `sh: 1: cannot create Makefile: …` or `open Makefile: …`.
fn name_alone(line: &str) -> Option<&str> {
    let part = line.rsplit(": ").nth(1)?;
    let name = without_action(part);
    let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '/');
    is_name.then_some(name)
}

/// Returns the rest of a part such as `cannot create NAME`.
fn without_action(part: &str) -> &str {
    MADE.iter().find_map(|said| part.strip_prefix(said)).unwrap_or(part)
}

fn protected(unopened: &Unopened, path: &Path) -> Hint {
    let (shown, there) = (path.display(), there(path));
    if let Some(place) = within(path, &unopened.protect) {
        return by_setting(path, "protected", "protect", place);
    }
    if unopened.keeps(path) {
        return format!(
            "`{shown}` is closed to programs, because it controls their permissions, and no flag opens it; change it yourself, outside the run"
        )
        .into();
    }
    let text = format!(
        "`{shown}` is protected in the sandbox, because other programs run or load it; `--allow-write {}` makes it writable",
        there.display()
    );
    text.into()
}

fn unreadable(profile: &Profile, unopened: &Unopened, path: &Path) -> Hint {
    let (shown, there) = (path.display(), there(path));
    if let Some(place) = within(path, &unopened.hide) {
        return by_setting(path, "hidden", "hide", place);
    }
    if is_within(path, &profile.hidden) {
        let text = format!("`{shown}` is hidden in the sandbox; `--allow-read {shown}` makes it readable");
        return text.into();
    }
    if is_within(path, &profile.emptied) {
        let text = format!(
            "`{shown}` does not exist in the sandbox: of the home directory programs see only tools and their settings; `--allow-read {}` shows it",
            there.display()
        );
        return Hint::opening(there, Grant::Read, text);
    }
    let text = format!(
        "`{shown}` is outside the sandbox; `--allow-read {0}` makes it readable, `--allow-write {0}` writable",
        there.display()
    );
    Hint::opening(there, Grant::Read, text)
}

/// Like [`unreadable`], but for a program that wants to write: the hint must not suggest read access.
fn unwritable(unopened: &Unopened, path: &Path) -> Hint {
    if unopened.keeps(path) {
        return protected(unopened, path);
    }
    let (shown, there) = (path.display(), there(path));
    let text =
        format!("`{shown}` is outside the sandbox; `--allow-write {}` makes it writable", there.display());
    Hint::opening(there, Grant::Write, text)
}

/// Returns the hint for a path that the configuration closes, which no flag opens.
fn by_setting(path: &Path, what: &str, setting: &str, place: &Path) -> Hint {
    let (shown, place) = (path.display(), place.display());
    format!(
        "`{shown}` is {what} in the sandbox, because `{setting}` in `[sandbox]` of the configuration contains `{place}`, and no flag opens it; remove it there to let programs in"
    )
    .into()
}

/// Returns the hint for hidden files that a command line names.
pub(crate) fn of_hidden(closed: &ClosedPlaces, cwd: &Path, names: &[String]) -> Option<String> {
    let first = names.first()?;
    let (unopened, path) = (closed.unopened(), plain(&cwd.join(first)));
    let (are, it) = if names.len() == 1 { ("is", "it") } else { ("are", "the first of them") };
    let opener = if let Some(place) = within(&path, &unopened.hide) {
        format!("`hide` in `[sandbox]` of the configuration contains `{}`", place.display())
    } else if within(&path, &unopened.own).is_some() {
        format!("`{first}` belongs to taskpawl, and no flag opens it")
    } else {
        format!("`--allow-read {first}` makes {it} readable")
    };
    let names = names.join("`, `");
    Some(format!("`{names}` {are} hidden in the sandbox, so it looks empty to programs; {opener}"))
}

fn within<'a>(path: &Path, places: &'a [PathBuf]) -> Option<&'a Path> {
    places.iter().map(PathBuf::as_path).find(|place| path.starts_with(place))
}

/// Returns the nearest existing path at or above `path`: flags accept only existing paths.
fn there(path: &Path) -> &Path {
    path.ancestors().find(|above| above.exists()).unwrap_or(path)
}

fn may_read(profile: &Profile, path: &Path) -> bool {
    let emptied = profile.emptied.iter().find(|emptied| path.starts_with(emptied));
    // In an emptied directory only the paths that lie in it exist.
    let is_in = |places: &[PathBuf]| {
        let mut places = places.iter().filter(|place| path.starts_with(place));
        places.any(|place| emptied.is_none_or(|emptied| place != emptied && place.starts_with(emptied)))
    };
    !is_within(path, &profile.hidden) && (is_in(&profile.read) || is_in(&profile.write))
}

/// Returns the parts of a line that may be paths: quoted texts and words with a slash.
fn paths(line: &str) -> Vec<PathBuf> {
    // In `/bin/sh: 1: cannot create /etc/x: …` the first part is the reporting program, unless there is no other part.
    let line = match line.split_once(": ") {
        Some((_, rest)) if rest.contains(": ") => rest,
        _ => line,
    };
    let is_quote = |c: char| matches!(c, '\'' | '"' | '`' | '‘' | '’' | '“' | '”');
    let quoted = line.split(is_quote).skip(1).step_by(2);
    let is_border =
        |c: char| c.is_whitespace() || is_quote(c) || matches!(c, '(' | ')' | '[' | ']' | ',' | ';' | '=');
    let bare =
        line.split(is_border).map(|word| word.trim_end_matches([':', '.'])).filter(|word| word.contains('/'));
    let is_path = |text: &&str| !text.is_empty() && text.len() < 4096 && !text.contains("://");
    // In a shell's `script: line 1: /etc/x y: Permission denied` the path is the part before the error, as it is after `cannot create`.
    let named = line.rsplit(": ").skip(1).map(without_action).filter(|part| part.starts_with('/'));
    // Reversed, because the name of the reporting program comes first.
    quoted.chain(named).chain(bare.rev()).filter(is_path).map(PathBuf::from).collect()
}
