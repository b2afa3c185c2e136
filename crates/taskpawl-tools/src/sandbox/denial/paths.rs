//! Hints for paths that the sandbox hides, protects or leaves out.

use std::path::{Path, PathBuf};

use taskpawl_process::Profile;

use super::DenialContext;
use super::lines::{
    COVERED, CREATES, DENIED, MAKES, MISSING, NO_DIRECTORY, READ_ONLY, name_alone, paths_in, says,
};
use crate::sandbox::closed::{ClosedPlaces, Unopened};
use crate::sandbox::excluded_paths::{is_within, plain};
use crate::sandbox::hint::{Grant, Hint};

/// Returns a hint for a path that exists but is not visible in the sandbox. A hidden directory is empty there, and other paths are missing.
pub(super) fn unseen(
    DenialContext { profile, cwd, unopened }: DenialContext<'_>,
    line: &str,
) -> Option<Hint> {
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

pub(super) fn first_path(cwd: &Path, line: &str, is_it: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    paths_in(line).iter().map(|path| plain(&cwd.join(path))).find(|path| is_it(path))
}

/// Returns a hint for a path, if the sandbox denies it.
pub(super) fn denied(
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
pub(super) fn protected_in(profile: &Profile, cwd: &Path, line: &str) -> Option<PathBuf> {
    if !says(line, &DENIED) && !says(line, &COVERED) {
        return None;
    }
    let starts = || cwd.ancestors().take_while(|above| is_within(above, &profile.write));
    let from_each = |path: &PathBuf| starts().map(|start| plain(&start.join(path))).collect::<Vec<_>>();
    let found = paths_in(line).iter().flat_map(from_each).find(|path| is_protected(profile, path));
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

pub(super) fn protected(unopened: &Unopened, path: &Path) -> Hint {
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

pub(super) fn unreadable(profile: &Profile, unopened: &Unopened, path: &Path) -> Hint {
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

pub(super) fn may_read(profile: &Profile, path: &Path) -> bool {
    let emptied = profile.emptied.iter().find(|emptied| path.starts_with(emptied));
    // In an emptied directory only the paths that lie in it exist.
    let is_in = |places: &[PathBuf]| {
        let mut places = places.iter().filter(|place| path.starts_with(place));
        places.any(|place| emptied.is_none_or(|emptied| place != emptied && place.starts_with(emptied)))
    };
    !is_within(path, &profile.hidden) && (is_in(&profile.read) || is_in(&profile.write))
}
