//! Which denial made a program fail, from what it says and what it was held to.

use std::path::{Path, PathBuf};

use taskpawl_process::{Network, Outcome, Profile, Program, Sandbox, SpawnError};

use super::carve::{is_within, plain};
use crate::context::CallContext;

/// How many of the last lines that a program said are looked at.
const LINES: usize = 40;

// Of what follows, names of errors are in capitals, and mean nothing else when they are written otherwise; of all other words case does
// not matter.

const DENIED: [&str; 6] = [
    "permission denied",
    "read-only file system",
    "operation not permitted",
    "EACCES",
    "EROFS",
    "access is denied",
];
/// What programs say that put another file in the place of one that a mount covers, as `git config` does.
const COVERED: [&str; 2] = ["device or resource busy", "EBUSY"];
/// What programs are told that want to write what a mount protects.
const READ_ONLY: [&str; 2] = ["read-only file system", "EROFS"];
/// What programs are told that want to talk to whoever listens at a socket that is covered.
const REFUSED: [&str; 2] = ["connection refused", "ECONNREFUSED"];
/// What a shell says that cannot make a file because the directory is not there.
const NO_DIRECTORY: [&str; 1] = ["directory nonexistent"];
const MISSING: [&str; 3] = ["no such file", "ENOENT", "cannot find module"];
/// What programs say that cannot start another one.
const TOO_MANY: [&str; 3] = ["resource temporarily unavailable", "cannot fork", "EAGAIN"];
/// What programs say that cannot open another file.
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

/// What stands before the name of a file in what shells and others say.
const MADE: [&str; 7] =
    ["cannot create ", "cannot open ", "can't create ", "can't open ", "open ", "mkdir ", "remove "];

/// Exit codes of `curl`, which may be told to say nothing, for hosts that cannot be found or reached.
const CURL: [i32; 3] = [5, 6, 7];

/// The exit code of what was ended by `SIGKILL`, by itself or beneath a shell.
const KILLED: i32 = 137;

const NO_NETWORK: &str = "programs have no network in the sandbox; `--allow-net` gives it to them";

/// Returns what of its sandbox a failed program ran into, and what would let it through. `own` is what belongs to taskpawl.
pub(crate) fn hint(program: &Program, outcome: &Outcome, own: &[PathBuf]) -> Option<String> {
    let Sandbox::On(profile) = &program.sandbox else { return None };
    if outcome.signal == Some(rustix::process::Signal::SYS.as_raw()) {
        return Some("it used a system call that the sandbox forbids".to_owned());
    }
    if let Some(said) = of_memory(profile, outcome) {
        return Some(said);
    }
    of_lines(profile, &program.cwd, own, &outcome.stderr.text).or_else(|| {
        let is_curl = program.argv.iter().any(|word| word.contains("curl")) && CURL.contains(&outcome.code);
        (is_curl && profile.network == Network::None).then(|| NO_NETWORK.to_owned())
    })
}

/// Returns what protected places a program ran into that ended well: `git submodule add` goes on without its settings, and says so in
/// passing. Each place with what would let the program through.
pub(crate) fn met_protected(program: &Program, outcome: &Outcome) -> Vec<(PathBuf, String)> {
    let Sandbox::On(profile) = &program.sandbox else { return Vec::new() };
    let lines = outcome.stderr.text.lines().rev().take(LINES);
    let mut met: Vec<_> = lines.filter_map(|line| protected_in(profile, &program.cwd, line)).collect();
    met.sort();
    met.dedup();
    met.into_iter().map(|path| (path.clone(), protected(&path))).collect()
}

/// What a program is held to that somebody talks to while it runs: for saying what of its sandbox it ran into.
#[derive(Clone, Debug)]
pub struct Denials {
    sandbox: Sandbox,
    cwd: PathBuf,
    own: Vec<PathBuf>,
}

impl Denials {
    /// Returns what holds a program that a call starts.
    pub fn of(cx: &CallContext, program: &Program) -> Self {
        let (sandbox, cwd) = (program.sandbox.clone(), program.cwd.clone());
        Self { sandbox, cwd, own: cx.closed.own().to_owned() }
    }

    /// Returns whether anything holds it.
    pub fn are_possible(&self) -> bool {
        matches!(self.sandbox, Sandbox::On(_))
    }

    /// Returns which denial a program speaks of, in the last lines of what it says, and what would let it through.
    pub fn hint(&self, said: &str) -> Option<String> {
        let Sandbox::On(profile) = &self.sandbox else { return None };
        of_lines(profile, &self.cwd, &self.own, said)
    }

    /// Returns what of its sandbox keeps the program from being started.
    pub fn hint_for_start(&self, error: &SpawnError) -> Option<String> {
        hint_for_start(&self.sandbox, error)
    }
}

fn of_lines(profile: &Profile, cwd: &Path, own: &[PathBuf], said: &str) -> Option<String> {
    let mut lines = said.lines().rev().take(LINES);
    lines.find_map(|line| of_own(own, cwd, line).or_else(|| of_line(profile, cwd, line)))
}

/// Returns what of its sandbox keeps a program from being started.
pub(crate) fn hint_for_start(sandbox: &Sandbox, error: &SpawnError) -> Option<String> {
    let Sandbox::On(profile) = sandbox else { return None };
    let (SpawnError::NotExecutable { program: path }
    | SpawnError::NotFound { program: path }
    | SpawnError::Start { program: path, .. }
    | SpawnError::WorkingDirectory { path }) = error
    else {
        return None;
    };
    (path.exists() && !may_read(profile, path)).then(|| unreadable(profile, path))
}

/// Returns that a program was most likely killed because there was no memory left. Who is killed by us has another error.
fn of_memory(profile: &Profile, outcome: &Outcome) -> Option<String> {
    let is_limited = outcome.enforcement.as_ref().is_some_and(|enforcement| enforcement.cgroup);
    let memory = profile.limits.memory.filter(|_| is_limited && outcome.code == KILLED)?;
    Some(format!(
        "most likely it was killed because the programs of the run have {memory} bytes of memory together; `memory` in `[sandbox]` of the configuration sets that"
    ))
}

/// No flag opens what is ours, but there is another way to the plan.
fn of_own(own: &[PathBuf], cwd: &Path, line: &str) -> Option<String> {
    let is_own = || paths(line).iter().any(|path| is_within(&plain(&cwd.join(path)), own));
    ((says(line, &DENIED) || says(line, &MISSING)) && is_own()).then(|| {
        "the store of the plan is open to no program; `planAccess: read` (or `add`) on the call lets its programs ask `taskpawl` for it".to_owned()
    })
}

/// Returns whether a line says one of the phrases in whole words: `ENOTFOUND` is none in `FileNotFoundError`.
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

fn of_line(profile: &Profile, cwd: &Path, line: &str) -> Option<String> {
    let says = |phrases: &[&str]| says(line, phrases);
    if profile.network == Network::None && says(&UNREACHABLE) {
        return Some(NO_NETWORK.to_owned());
    }
    if let Some(most) = profile.limits.processes
        && says(&TOO_MANY)
    {
        return Some(format!(
            "the programs of the run may be {most} processes together; `processes` in `[sandbox]` of the configuration sets that"
        ));
    }
    if says(&TOO_MANY_FILES) {
        let most = profile.limits.open_files;
        return Some(format!(
            "in the sandbox a program may have {most} files open; `--sandbox off` lifts that"
        ));
    }
    if let Some(path) = protected_in(profile, cwd, line) {
        return Some(protected(&path));
    }
    if (says(&COVERED) || says(&REFUSED))
        && let Some(path) = first_path(cwd, line, |path| is_within(path, &profile.hidden))
    {
        return Some(unreadable(profile, &path));
    }
    if says(&DENIED) {
        return paths(line).iter().find_map(|path| denied(profile, &plain(&cwd.join(path))));
    }
    // What is hidden stands there empty.
    let is_unseen = |path: &Path| path.exists() && !may_read(profile, path);
    let path = if says(&NO_DIRECTORY) {
        first_path(cwd, line, |path| path.parent().is_some_and(is_unseen))
    } else if says(&MISSING) {
        first_path(cwd, line, is_unseen)
    } else {
        None
    };
    path.map(|path| unreadable(profile, &path))
}

fn first_path(cwd: &Path, line: &str, is_it: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    paths(line).iter().map(|path| plain(&cwd.join(path))).find(|path| is_it(path))
}

/// Returns why a path was denied, if the sandbox did it.
fn denied(profile: &Profile, path: &Path) -> Option<String> {
    let there = there(path).display();
    if is_within(path, &profile.hidden) {
        return Some(unreadable(profile, path));
    }
    if is_within(path, &profile.read_only) {
        return Some(protected(path));
    }
    if is_within(path, &profile.write) {
        return None;
    }
    if is_within(path, &profile.read) {
        return Some(format!(
            "in the sandbox programs write to the project alone; `--allow-write {there}` opens this place"
        ));
    }
    Some(unreadable(profile, path))
}

/// Returns the protected place that a line says was not written. Programs name files as seen from where they are, which may be a
/// directory above the one that they were started in: git goes to the top of its repository.
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

/// Returns the protected place that a line means by a name alone. Shells say it of the directory that they are in, which may be one beneath
/// that in which they were started: then no other place may be called so.
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

/// Returns the name without a directory that stands before what went wrong: `sh: 1: cannot create Makefile: …`, `open Makefile: …`.
fn name_alone(line: &str) -> Option<&str> {
    let part = line.rsplit(": ").nth(1)?;
    let name = MADE.iter().find_map(|said| part.strip_prefix(said)).unwrap_or(part);
    let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '/');
    is_name.then_some(name)
}

fn protected(path: &Path) -> String {
    let (shown, there) = (path.display(), there(path).display());
    format!("`{shown}` is protected in the sandbox, because others obey it; `--allow-write {there}` opens it")
}

fn unreadable(profile: &Profile, path: &Path) -> String {
    let (shown, there) = (path.display(), there(path).display());
    if is_within(path, &profile.hidden) {
        return format!("`{shown}` is hidden in the sandbox; `--allow-read {shown}` shows it");
    }
    format!(
        "`{shown}` is no place in the sandbox; `--allow-read {there}` or `--allow-write {there}` makes it one"
    )
}

/// Returns the nearest place that can be named, because it exists.
fn there(path: &Path) -> &Path {
    path.ancestors().find(|above| above.exists()).unwrap_or(path)
}

fn may_read(profile: &Profile, path: &Path) -> bool {
    !is_within(path, &profile.hidden) && (is_within(path, &profile.read) || is_within(path, &profile.write))
}

/// Returns what in a line may be a path: what is quoted, and what has a slash.
fn paths(line: &str) -> Vec<PathBuf> {
    // `/bin/sh: 1: cannot create /etc/x: …`: who says it comes first, unless nothing else does.
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
    // The part of a shell's `script: line 1: /etc/x: Permission denied` that is a path stands last.
    let named = line.rsplit(": ").skip(1).filter(|part| part.starts_with('/'));
    // The name of the program that speaks stands first.
    quoted.chain(named).chain(bare.rev()).filter(is_path).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use taskpawl_process::{Captured, End, Enforcement, Environment, OutputFiles, ResourceLimits};

    use super::*;

    fn said(stderr: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["p/sub", "p/.git/hooks", "home/.ssh", "srv"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::write(at("p/.git/config"), "").unwrap();
        let profile = Profile {
            write: vec![at("p")],
            read: vec![at("home")],
            hidden: vec![at("home/.ssh"), at("p/.env")],
            read_only: vec![at("p/.git/hooks"), at("p/.git/config")],
            ..Profile::default()
        };
        let top = dir.path().to_str().unwrap();
        let stderr = stderr.replace("[]", top);
        of(Sandbox::On(Arc::new(profile)), at("p/sub"), 1, &stderr).unwrap_or_default().replace(top, "[]")
    }

    fn of(sandbox: Sandbox, cwd: PathBuf, code: i32, stderr: &str) -> Option<String> {
        let output = OutputFiles { stdout: PathBuf::new(), stderr: PathBuf::new() };
        let (argv, environment) = (vec!["curl".to_owned()], Environment::default());
        let program = Program { argv, cwd, environment, stdin: None, handover: None, output, sandbox };
        hint(&program, &outcome(code, stderr), &["/state/taskpawl".into()])
    }

    fn outcome(code: i32, stderr: &str) -> Outcome {
        let captured =
            |text: &str| Captured { text: text.to_owned(), bytes: 0, truncated: false, file: None };
        let (stdout, stderr) = (captured(""), captured(stderr));
        Outcome { end: End::Exited, code, signal: None, stdout, stderr, enforcement: None }
    }

    #[test]
    fn curl_may_be_silent_about_the_network() {
        let of_curl = |network, code| {
            let profile = Profile { network, ..Profile::default() };
            of(Sandbox::On(Arc::new(profile)), "/".into(), code, "")
        };
        assert_eq!(of_curl(Network::None, 6).as_deref(), Some(NO_NETWORK));
        assert_eq!(of_curl(Network::None, 22), None);
        assert_eq!(of_curl(Network::Full, 6), None);
    }

    #[test]
    fn the_denial_is_found_in_what_a_program_says() {
        insta::assert_snapshot!(said("touch: cannot touch '[]/home/x': Permission denied"), @"in the sandbox programs write to the project alone; `--allow-write []/home` opens this place");
        insta::assert_snapshot!(said("/bin/sh: 1: cannot create []/home/out: Permission denied\nbuild failed"), @"in the sandbox programs write to the project alone; `--allow-write []/home` opens this place");
        insta::assert_snapshot!(said("bash: line 1: []/home/.ssh/id: Permission denied"), @"`[]/home/.ssh/id` is hidden in the sandbox; `--allow-read []/home/.ssh/id` shows it");
        insta::assert_snapshot!(said("cat: ../.env: Permission denied"), @"`[]/p/.env` is hidden in the sandbox; `--allow-read []/p/.env` shows it");
        insta::assert_snapshot!(said("cp: cannot create regular file '../.git/hooks/pre-commit': Read-only file system"), @"`[]/p/.git/hooks/pre-commit` is protected in the sandbox, because others obey it; `--allow-write []/p/.git/hooks` opens it");
        insta::assert_snapshot!(said("Error: EACCES: permission denied, mkdir '[]/srv/data'"), @"`[]/srv/data` is no place in the sandbox; `--allow-read []/srv` or `--allow-write []/srv` makes it one");
        insta::assert_snapshot!(said("curl: (6) Could not resolve host: example.com"), @"programs have no network in the sandbox; `--allow-net` gives it to them");
    }

    #[test]
    fn names_of_errors_are_whole_words() {
        for line in [
            "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
            "ModuleNotFoundError: No module named 'requests'",
            "botocore.errorfactory.ResourceNotFoundException: table not found",
            "System.IO.FileNotFoundException: Could not load file",
            "assert error.code == enotfound",
            "npm ERR! Could not resolve dependency: react@18",
            "[vite] Could not resolve './button' from src/app.js",
            "prefetch failed",
        ] {
            assert_eq!(said(line), "", "{line}");
        }
        for line in [
            "Error: getaddrinfo ENOTFOUND registry.npmjs.org",
            "npm error code ENOTFOUND",
            "errno: 'EAI_AGAIN',",
            "connect ENETUNREACH 1.1.1.1:443 - Local (0.0.0.0:0)",
            "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
            "fatal: unable to access 'https://x.org/': Could not resolve host: x.org",
            "OSError: [Errno 101] Network is unreachable",
        ] {
            assert_eq!(said(line), NO_NETWORK, "{line}");
        }
    }

    #[test]
    fn git_says_from_the_top_of_its_repository_what_it_could_not_write() {
        let expected = "`[]/p/.git/config` is protected in the sandbox, because others obey it; `--allow-write []/p/.git/config` opens it";
        for line in [
            "error: could not write config file .git/config: Device or resource busy\nfatal: could not set 'remote.x.url' to 'y'",
            "error: could not lock config file ../.git/config: Read-only file system",
            "rm: cannot remove '../.git/config': Device or resource busy",
            "mv: EBUSY: resource busy or locked, rename 'x' -> '[]/p/.git/config'",
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
        assert_eq!(said("umount: []/home/x: Device or resource busy"), "", "no sandbox does that");
    }

    #[test]
    fn names_alone_are_protected_where_only_one_place_can_be_meant() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let profile = Profile {
            write: paths(&["/p"]),
            read_only: paths(&["/p/Makefile", "/p/.git/config", "/p/a/x.toml", "/p/b/x.toml"]),
            hidden: paths(&["/p/dev.sock"]),
            ..Profile::default()
        };
        let met = |line: &str| {
            let said = of_lines(&profile, Path::new("/p"), &[], line)?;
            Some(said.split('`').nth(1).unwrap_or_default().to_owned())
        };
        for (line, place) in [
            ("sh: 1: cannot create Makefile: Permission denied", "/p/Makefile"),
            ("/bin/sh: 1: cannot create Makefile: Read-only file system", "/p/Makefile"),
            ("bash: line 1: Makefile: Read-only file system", "/p/Makefile"),
            ("open Makefile: read-only file system", "/p/Makefile"),
            ("sh: 1: cannot create config: Read-only file system", "/p/.git/config"),
            ("bash: line 1: config: Read-only file system", "/p/.git/config"),
            ("rm: cannot remove 'dev.sock': Device or resource busy", "/p/dev.sock"),
            ("Error: connect ECONNREFUSED ./dev.sock", "/p/dev.sock"),
        ] {
            assert_eq!(met(line).as_deref(), Some(place), "{line}");
        }
        for line in [
            "sh: 1: cannot create config: Permission denied",
            "sh: 1: cannot create x.toml: Read-only file system",
            "sh: 1: cannot create other: Read-only file system",
            "make: *** No rule to make target 'Makefile'",
            "Makefile: 3: recipe for target 'all' failed",
            "the Makefile: Permission denied",
            "Makefile: no such target",
            "Error: connect ECONNREFUSED 127.0.0.1:5432",
        ] {
            assert_eq!(met(line), None, "{line}");
        }
    }

    #[test]
    fn who_ends_well_may_have_met_what_is_protected_too() {
        let (profile, cwd) = (
            Profile {
                write: vec!["/p".into()],
                read_only: vec!["/p/.git/config".into()],
                ..Profile::default()
            },
            PathBuf::from("/p"),
        );
        let output = OutputFiles { stdout: PathBuf::new(), stderr: PathBuf::new() };
        let (argv, environment, sandbox) =
            (vec!["git".to_owned()], Environment::default(), Sandbox::On(Arc::new(profile)));
        let program = Program { argv, cwd, environment, stdin: None, handover: None, output, sandbox };
        let line = "error: could not write config file .git/config: Device or resource busy";
        let met = met_protected(&program, &outcome(0, &format!("Cloning …\n{line}\n{line}")));
        let paths: Vec<_> = met.iter().map(|(path, _)| path.to_str().unwrap()).collect();
        assert_eq!(paths, ["/p/.git/config"]);
        assert_eq!(met_protected(&program, &outcome(0, "touch: /p/x: Permission denied")), []);
    }

    #[test]
    fn what_a_server_says_of_a_denial_is_understood() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("p")).unwrap();
        std::fs::create_dir_all(dir.path().join("srv")).unwrap();
        let profile = Profile { write: vec![dir.path().join("p")], ..Profile::default() };
        let held =
            |sandbox| Denials { sandbox, cwd: dir.path().join("p"), own: vec!["/state/taskpawl".into()] };
        let said = |denials: &Denials, text: &str| {
            let top = dir.path().to_str().unwrap();
            denials.hint(&text.replace("[]", top)).unwrap_or_default().replace(top, "[]")
        };
        let on = held(Sandbox::On(Arc::new(profile)));
        insta::assert_snapshot!(said(&on, "Error: EACCES: permission denied, open '[]/srv/a'"), @"`[]/srv/a` is no place in the sandbox; `--allow-read []/srv` or `--allow-write []/srv` makes it one");
        insta::assert_snapshot!(said(&on, "Error: Cannot find module '[]/srv'"), @"`[]/srv` is no place in the sandbox; `--allow-read []/srv` or `--allow-write []/srv` makes it one");
        assert_eq!(said(&on, "TypeError: fetch failed"), NO_NETWORK);
        assert_eq!(said(&on, "httpx.ConnectError: All connection attempts failed"), NO_NETWORK);
        insta::assert_snapshot!(said(&on, "sh: 0: cannot open []/srv: No such file"), @"`[]/srv` is no place in the sandbox; `--allow-read []/srv` or `--allow-write []/srv` makes it one");
        assert_eq!(said(&on, "Error: Cannot find module 'left-pad'"), "");
        assert_eq!(said(&held(Sandbox::Off), "Error: EACCES: permission denied, open '[]/srv/a'"), "");
    }

    #[test]
    fn what_the_sandbox_did_not_do_is_not_put_down_to_it() {
        assert_eq!(said("cat: []/p/secret: Permission denied"), "");
        assert_eq!(said("cat: nothing: No such file or directory"), "");
        assert_eq!(said("Permission denied"), "");
        assert_eq!(said("test []/home/x failed"), "");
        let off = of(Sandbox::Off, "/".into(), 1, "touch: cannot touch '/etc/x': Permission denied");
        assert_eq!(off, None);
    }

    #[test]
    fn limits_of_all_programs_together_are_told() {
        let limits =
            ResourceLimits { memory: Some(1 << 20), processes: Some(9), ..ResourceLimits::default() };
        let profile = Arc::new(Profile { limits, ..Profile::default() });
        let said = |code, stderr| of(Sandbox::On(Arc::clone(&profile)), "/".into(), code, stderr);
        insta::assert_snapshot!(said(2, "sh: 1: Cannot fork").unwrap(), @"the programs of the run may be 9 processes together; `processes` in `[sandbox]` of the configuration sets that");
        insta::assert_snapshot!(said(1, "OSError: [Errno 24] Too many open files: '/dev/null'").unwrap(), @"in the sandbox a program may have 1024 files open; `--sandbox off` lifts that");
        assert_eq!(said(137, "Killed"), None, "no cgroup holds it");

        let mut enforcement = Enforcement::default();
        enforcement.cgroup = true;
        let mut outcome = outcome(137, "Killed");
        outcome.enforcement = Some(Arc::new(enforcement));
        insta::assert_snapshot!(of_memory(&profile, &outcome).unwrap(), @"most likely it was killed because the programs of the run have 1048576 bytes of memory together; `memory` in `[sandbox]` of the configuration sets that");
    }

    #[test]
    fn the_store_opens_to_nobody_and_the_way_to_the_plan_is_told() {
        insta::assert_snapshot!(said("error: failed to read `/state/taskpawl/a/project.json`: No such file or directory\nhint: check the path"), @"the store of the plan is open to no program; `planAccess: read` (or `add`) on the call lets its programs ask `taskpawl` for it");
        assert_eq!(said("`/state/taskpawl/a/project.json` is fine"), "");
    }

    #[test]
    fn what_is_hidden_may_stand_there_empty() {
        insta::assert_snapshot!(said("cat: []/home/.ssh: No such file or directory"), @"`[]/home/.ssh` is hidden in the sandbox; `--allow-read []/home/.ssh` shows it");
    }

    #[test]
    fn what_is_there_outside_and_not_inside_is_told() {
        insta::assert_snapshot!(said("ls: cannot access '[]/srv': No such file or directory"), @"`[]/srv` is no place in the sandbox; `--allow-read []/srv` or `--allow-write []/srv` makes it one");
        assert_eq!(said("ls: cannot access '[]/srv/nothing': No such file or directory"), "");
        insta::assert_snapshot!(said("sh: 1: cannot create []/srv/new: Directory nonexistent"), @"`[]/srv/new` is no place in the sandbox; `--allow-read []/srv` or `--allow-write []/srv` makes it one");
        insta::assert_snapshot!(said("sh: 1: cannot create ../../srv/new: Directory nonexistent"), @"`[]/srv/new` is no place in the sandbox; `--allow-read []/srv` or `--allow-write []/srv` makes it one");
        for line in [
            "sh: 1: cannot create []/srv/none/new: Directory nonexistent",
            "sh: 1: cannot create none/new: Directory nonexistent",
            "sh: 1: cannot create ../none/new: Directory nonexistent",
        ] {
            assert_eq!(said(line), "", "{line}");
        }
    }
}
