//! Guesses from the output of a failed program and its profile which denial of the sandbox made it fail.

mod lines;
mod network;
mod paths;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taskpawl_process::{Network, Outcome, Profile, Program, Sandbox, SpawnError};

use super::closed::{ClosedPlaces, Unopened};
use super::excluded_paths::{is_within, plain};
use super::hint::{Grant, Hint};
use crate::context::CallContext;
use crate::scan::ScanBounds;
use lines::{
    COVERED, DENIED, LINES, MISSING, READ_ONLY, REFUSED, TOO_LARGE, TOO_MANY, TOO_MANY_FILES, UNREACHABLE,
    paths_in, says,
};
use network::{may_explain, no_network, of_refused};
pub(crate) use paths::of_hidden;
use paths::{denied, first_path, may_read, protected, protected_in, unreadable, unseen};

/// The longest time to look at files for a hint.
const MAX_LOOK: Duration = Duration::from_secs(1);

/// Exit codes of `curl` for a host or proxy that cannot be resolved or reached. `curl --silent` prints no error.
const CURL: [i32; 3] = [5, 6, 7];

/// Added to the number of the signal that ended a program, in the exit code of a shell.
const SIGNALLED: i32 = 128;

/// The exit code after `SIGKILL`, of the program itself or beneath a shell.
const KILLED: i32 = 137;

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
    let is_own = || {
        paths_in(line).iter().any(|path| is_within(&plain(&context.cwd.join(path)), &context.unopened.own))
    };
    ((says(line, &DENIED) || says(line, &MISSING)) && is_own()).then(|| {
        "programs cannot open the store of the plan; `planAccess: read` (or `add`) on the call lets its programs use `taskpawl` instead".to_owned().into()
    })
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
        return paths_in(line).iter().find_map(|path| denied(context, &plain(&cwd.join(path)), line));
    }
    unseen(context, line)
}
