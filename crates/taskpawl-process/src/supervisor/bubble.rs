//! A supervisor inside of `bwrap`, in which only the places of its profile exist and no process but those of its programs.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::entry::MARKER;
use crate::error::SpawnError;
use crate::locate::locate;
use crate::profile::Profile;
use crate::sandbox::{Places, Refusal};

/// What is bound into every bubble if it exists: names of hosts are looked up by it.
const KEPT: &str = "/run/systemd/resolve";

/// Returns the command that starts `program` as a supervisor in a bubble.
pub(super) fn command(program: &Path, profile: &Profile) -> Result<Command, SpawnError> {
    let find = |name: &Path| {
        let name = name.to_string_lossy();
        locate(&name, Path::new("/"), std::env::var_os("PATH"))
    };
    let Ok(bwrap) = find(Path::new("bwrap")) else {
        let advice = "install it (the package is called `bubblewrap`), or use the sandbox without `strict`";
        return Err(Refusal::new("`bwrap` is in no directory of PATH", advice).into());
    };
    // The link of the running program leads elsewhere when it is followed by `bwrap`.
    let program =
        std::fs::read_link(program).or_else(|_| find(program)).unwrap_or_else(|_| program.to_owned());
    let mut command = Command::new(bwrap);
    command.args(["--unshare-pid", "--as-pid-1", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/run"]);
    for (how, from, to) in binds(&Places::of(profile), &program) {
        command.args([OsStr::new(how), from.as_os_str(), to.as_os_str()]);
    }
    command.args(["--chdir", "/", "--"]).arg(&program).arg(MARKER);
    // The keys of the terminal must not end it behind the engine's back: it lives as long as the supervisor.
    command.process_group(0);
    Ok(command)
}

/// Returns what is bound where, outer places first.
fn binds(places: &Places, program: &Path) -> Vec<(&'static str, PathBuf, PathBuf)> {
    let mut binds = vec![("--ro-bind-try", PathBuf::from(KEPT), PathBuf::from(KEPT))];
    let bound = |how: &'static str, paths: &[PathBuf]| -> Vec<_> {
        // `/proc` and `/dev` are those of the bubble.
        let real = paths.iter().filter(|path| !["/proc", "/dev"].iter().any(|own| path.starts_with(own)));
        real.map(|path| (how, path.clone(), path.clone())).collect()
    };
    binds.extend(bound("--ro-bind", &places.read));
    binds.extend(bound("--bind", &places.write));
    let exists = |path: &Path| places.read.iter().chain(&places.write).any(|root| path.starts_with(root));
    if !exists(program) {
        binds.push(("--ro-bind", program.to_owned(), program.to_owned()));
    }
    binds.sort_by(|one, other| one.2.cmp(&other.2));
    let links = places.links.iter().filter(|(name, _)| !exists(name));
    binds.extend(links.map(|(name, real)| ("--symlink", real.clone(), name.clone())));
    binds
}

/// Says why a bubble that ended at once did so, by what it wrote.
pub(super) fn refusal(mut said: &File) -> Refusal {
    let mut text = String::new();
    // Who has nothing to say has nothing to be quoted.
    let _ = said.rewind().and_then(|()| said.take(4096).read_to_string(&mut text));
    let text = text.lines().next().unwrap_or("it ended at once").trim_start_matches("bwrap: ").to_owned();
    let advice = "allow user namespaces, or use the sandbox without `strict`";
    Refusal::new(format!("`bwrap` does not work here: {text}"), advice)
}

/// Returns whether words of a command line are those of a supervisor, in a bubble or not.
pub(super) fn are_of_supervisor(
    mut words: impl Iterator<Item = OsString>,
    has_socket: impl FnOnce() -> bool,
) -> bool {
    let is_marker = |word: OsString| word == MARKER;
    // `bwrap` gives programs no other name than their own.
    words.next().is_some_and(is_marker) || (words.next().is_some_and(is_marker) && has_socket())
}
