//! A supervisor inside `bwrap`, where only the paths of its profile and the processes of its programs exist.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::SpawnError;
use crate::profile::Profile;
use crate::sandbox::{Places, Refusal};
use crate::search::SearchPath;
use crate::supervisor::marker::MARKER;

/// Always bound into the sandbox if it exists: `/etc/resolv.conf` is often a link into it.
const KEPT: &str = "/run/systemd/resolve";

/// Returns the command that starts `program` as a supervisor inside `bwrap`.
pub(super) fn command(program: &Path, profile: &Profile) -> Result<Command, SpawnError> {
    let search = SearchPath::outside(&profile.write);
    let bwrap = bwrap(&search)?;
    // `/proc/self/exe` would mean `bwrap` itself by the time it is resolved.
    let program = std::fs::read_link(program)
        .or_else(|_| search.find(&program.to_string_lossy()))
        .unwrap_or_else(|_| program.to_owned());
    let mut command = Command::new(bwrap);
    command.args(arguments(&Places::of(profile), &program));
    command.args(["--chdir", "/", "--"]).arg(&program).arg(MARKER);
    // A Ctrl-C in the terminal must not end `bwrap`, which has to live as long as the supervisor.
    command.process_group(0);
    Ok(command)
}

/// Finds the `bwrap` program.
fn bwrap(search: &SearchPath) -> Result<PathBuf, SpawnError> {
    search.find("bwrap").map_err(|error| {
        let advice = "install it (package `bubblewrap`), or use the sandbox without `strict`";
        let problem = if let SpawnError::Planted { program } = error {
            format!("`{}` is writable by programs of plans", program.display())
        } else {
            "`bwrap` is not in PATH".to_owned()
        };
        Refusal::new(problem, advice).into()
    })
}

/// Returns the name and version that `bwrap` prints.
pub(crate) fn version(writable: &[PathBuf]) -> Result<String, SpawnError> {
    let bwrap = bwrap(&SearchPath::outside(writable))?;
    let output = Command::new(&bwrap).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|source| SpawnError::Start { program: bwrap, source })?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or("no version").trim().to_owned())
}

/// Returns the arguments of `bwrap`. A bind of the root directory must come first: after `/proc` and `/dev`
/// it would cover them, and the processes inside would see those of the host.
fn arguments(places: &Places, program: &Path) -> Vec<OsString> {
    let (everything, others): (Vec<_>, Vec<_>) =
        binds(places, program).into_iter().partition(|(_, _, to)| to.parent().is_none());
    let of_bubble = ["--proc", "/proc", "--dev", "/dev"];
    // A bind of the root directory already contains both.
    let is_empty = everything.is_empty();
    let of_empty = ["--tmpfs", "/tmp", "--dir", "/run"].iter().filter(|_| is_empty);
    let words = |binds: Vec<(&'static str, PathBuf, PathBuf)>| -> Vec<OsString> {
        binds.into_iter().flat_map(|(how, from, to)| [how.into(), from.into(), to.into()]).collect()
    };
    let unshared = ["--unshare-pid", "--as-pid-1", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"];
    let mut arguments: Vec<OsString> = unshared.map(OsString::from).into();
    arguments.extend(words(everything));
    arguments.extend(of_bubble.iter().chain(of_empty).map(OsString::from));
    arguments.extend(words(others));
    arguments
}

/// Returns the bind mounts, outer paths first, so that an inner mount is not covered by an outer one.
fn binds(places: &Places, program: &Path) -> Vec<(&'static str, PathBuf, PathBuf)> {
    let mut binds = vec![("--ro-bind-try", PathBuf::from(KEPT), PathBuf::from(KEPT))];
    let bound = |how: &'static str, paths: &[PathBuf]| -> Vec<_> {
        // The sandbox has its own `/proc` and `/dev`.
        let real = paths.iter().filter(|path| !["/proc", "/dev"].iter().any(|own| path.starts_with(own)));
        real.map(|path| (how, path.clone(), path.clone())).collect()
    };
    let read: Vec<PathBuf> = places.whole_read().cloned().collect();
    binds.extend(bound("--ro-bind", &read));
    binds.extend(bound("--bind", &places.write));
    let exists = |path: &Path| read.iter().chain(&places.write).any(|root| path.starts_with(root));
    if !exists(program) {
        binds.push(("--ro-bind", program.to_owned(), program.to_owned()));
    }
    binds.sort_by(|one, other| one.2.cmp(&other.2));
    let links = places.links.iter().filter(|(name, _)| !exists(name));
    binds.extend(links.map(|(name, real)| ("--symlink", real.clone(), name.clone())));
    binds
}

/// Explains the failure of `bwrap` with the first line that it printed.
pub(super) fn refusal(mut output: &File) -> Refusal {
    let mut text = String::new();
    // On a read error the message stays empty and the default text is used.
    let _ = output.rewind().and_then(|()| output.take(4096).read_to_string(&mut text));
    let text =
        text.lines().next().unwrap_or("it exited immediately").trim_start_matches("bwrap: ").to_owned();
    let advice = "allow user namespaces, or use the sandbox without `strict`";
    Refusal::new(format!("`bwrap` does not work here: {text}"), advice)
}

/// Returns whether a command line is that of a supervisor, inside `bwrap` or not.
pub(super) fn are_of_supervisor(
    mut words: impl Iterator<Item = OsString>,
    has_socket: impl FnOnce() -> bool,
) -> bool {
    let is_marker = |word: OsString| word == MARKER;
    // `bwrap` cannot set `argv[0]`, so inside it the marker is the first argument. It alone could be an
    // argument of a user.
    words.next().is_some_and(is_marker) || (words.next().is_some_and(is_marker) && has_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(read: &[&str]) -> String {
        let read: Vec<PathBuf> = read.iter().map(PathBuf::from).collect();
        let mut places = Places::default();
        places.read = read;
        places.write = vec!["/home/me/project".into()];
        let words = arguments(&places, Path::new("/usr/bin/taskpawl"));
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).skip(5).collect();
        words.join(" ").replace(" --", "\n--")
    }

    #[test]
    fn bwrap_always_gets_its_own_proc_and_dev() {
        insta::assert_snapshot!(lines_of(&["/usr"]), @r"
        --proc /proc
        --dev /dev
        --tmpfs /tmp
        --dir /run
        --bind /home/me/project /home/me/project
        --ro-bind-try /run/systemd/resolve /run/systemd/resolve
        --ro-bind /usr /usr
        ");
        insta::assert_snapshot!(lines_of(&["/", "/usr"]), @r"
        --ro-bind / /
        --proc /proc
        --dev /dev
        --bind /home/me/project /home/me/project
        --ro-bind-try /run/systemd/resolve /run/systemd/resolve
        --ro-bind /usr /usr
        ");
    }
}
