use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::links::{Way, follow};
use crate::profile::{Layers, Profile, Substitute};
use crate::sandbox::refusal::Refusal;

/// The paths of a profile on this machine: without links and duplicates, sorted so that outer paths come first.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) write: Vec<PathBuf>,
    pub(crate) read: Vec<PathBuf>,
    /// Directories of `read` in which only the other paths exist. None of them lies in a writable path.
    pub(crate) emptied: Vec<PathBuf>,
    /// Directories to mount in place of shared ones: those whose path and source exist.
    pub(crate) private: Vec<Substitute>,
    /// Directories with private changes: those that are not writable anyway, and neither hidden nor around a hidden path. Missing
    /// ones lie in an emptied directory.
    pub(crate) layers: Layers,
    /// Files to mount in place of others: those whose path and source exist.
    pub(crate) copies: Vec<Substitute>,
    /// Includes paths that do not exist.
    pub(crate) hidden: Vec<PathBuf>,
    /// Hidden paths that administrators alone can create or replace. Links in them are not resolved, so that a path behind a link gets the
    /// ordinary protection.
    pub(crate) administered: Vec<PathBuf>,
    /// Existing paths beneath `write` and not beneath `hidden`.
    pub(crate) read_only: Vec<PathBuf>,
    /// Pairs of a path as the profile names it, with links, and the real path.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    /// Links on the way to hidden and read-only paths that programs could replace.
    pub(crate) held: Vec<PathBuf>,
    /// Directories that programs could replace, and through which hidden and read-only paths are reached by `..`.
    pub(crate) pinned: Vec<PathBuf>,
    /// Paths beneath `write`, and links to them, that must not be changed. Without their protection no program starts.
    pub(crate) guarded: Vec<PathBuf>,
    /// Paths that should be writable and do not exist.
    missing: Vec<PathBuf>,
    /// Paths that should be read-only and do not exist, so that a program can create them.
    makeable: Vec<PathBuf>,
    /// A guarded path that programs could create, as the profile names it and as resolved. It makes [`Places::check`] fail.
    lost: Option<(PathBuf, PathBuf)>,
}

impl Places {
    pub(crate) fn of(profile: &Profile) -> Self {
        let hidden: Vec<Way> = profile.hidden.iter().map(|path| follow(path)).collect();
        let mut places = Self { hidden: sorted(hidden.iter().map(|way| way.end.clone())), ..Self::default() };
        let roots =
            |paths: &[PathBuf]| sorted(paths.iter().map(|path| resolve(path)).filter(|path| path.exists()));
        places.administered.clone_from(&profile.administered);
        places.write = places.seen(roots(&profile.write));
        places.read = places.seen(roots(&profile.read));
        let emptied = roots(&profile.emptied);
        places.emptied = emptied.into_iter().filter(|path| !places.is_written(path)).collect();
        let there = profile.private.iter().filter_map(|private| {
            let (path, source) = (private.path.canonicalize().ok()?, private.source.canonicalize().ok()?);
            (path.is_dir() && source.is_dir()).then_some(Substitute { path, source })
        });
        places.private = there.collect();
        places.layers = places.layers_of(&profile.layers);
        let is_file = |copy: &&Substitute| copy.path.is_file() && copy.source.is_file();
        let copies = profile.copies.iter().filter(is_file).filter(|copy| !places.is_written(&copy.path));
        places.copies = copies.cloned().collect();
        places.missing = sorted(profile.write.iter().filter(|path| !resolve(path).exists()).cloned());
        let literal = profile.write.iter().chain(&profile.read);
        let pairs = literal.map(|path| (path.clone(), resolve(path)));
        places.links = pairs.filter(|(path, real)| path != real && real.exists()).collect();
        // Before the guarded paths, which are compared with the complete list of read-only ones.
        for path in &profile.read_only {
            places.add_read_only(path);
        }
        places.read_only = sorted(std::mem::take(&mut places.read_only).into_iter());
        for path in &profile.guarded {
            places.guard(path);
        }
        for way in &hidden {
            places.hold(way);
        }
        places.held = sorted(std::mem::take(&mut places.held).into_iter());
        places.pinned = sorted(std::mem::take(&mut places.pinned).into_iter());
        places
    }

    fn layers_of(&self, layers: &Layers) -> Layers {
        let source = layers.source.as_ref().and_then(|source| source.canonicalize().ok());
        let is_free = |path: &PathBuf| {
            !self.is_written(path)
                && !self.is_hidden(path)
                && !self.hidden.iter().any(|hidden| hidden.starts_with(path) && hidden.exists())
        };
        let is_new = |path: &PathBuf| {
            is_beneath(path, &self.emptied) && !self.whole_read().any(|shown| path.starts_with(shown))
        };
        let paths =
            |paths: &[PathBuf]| paths.iter().map(|path| resolve(path)).collect::<Vec<_>>().into_iter();
        let own = sorted(paths(&layers.own).filter(is_new).filter(|path| !self.is_written(path)));
        // Programs can create a missing one in a directory of their own themselves.
        let is_overlaid = |path: &PathBuf| {
            if path.exists() { path.is_dir() } else { is_new(path) && !is_beneath(path, &own) }
        };
        let overlaid = sorted(paths(&layers.overlaid).filter(is_free).filter(is_overlaid));
        Layers { source, overlaid, own }
    }

    /// Protects the links and directories on the way to a path from replacement.
    fn hold(&mut self, way: &Way) {
        self.held.extend(self.replaceable(&way.links));
        self.pinned.extend(self.replaceable(&way.left).into_iter().filter(|path| path.exists()));
    }

    fn add_read_only(&mut self, path: &Path) {
        let way = follow(path);
        self.hold(&way);
        if self.is_hidden(&way.end) || !self.is_written(&way.end) {
            return;
        }
        if way.end.exists() {
            self.read_only.push(way.end);
        } else {
            self.makeable.push(path.to_owned());
        }
    }

    fn guard(&mut self, path: &Path) {
        let way = follow(path);
        self.hold(&way);
        self.guarded.extend(self.replaceable(&way.links));
        let end = Some(way.end).filter(|end| self.is_written(end));
        for place in self.replaceable(&way.left).into_iter().chain(end) {
            if place.exists() {
                self.guarded.push(place);
            } else if !is_beneath(&place, &self.read_only) && can_be_made(&place) {
                // A missing path beneath a read-only directory cannot be created, so it needs no refusal.
                self.lost = Some((path.to_owned(), place));
            }
        }
    }

    /// Returns the links or directories that a program could replace by others.
    fn replaceable(&self, parts: &[PathBuf]) -> Vec<PathBuf> {
        let is_replaceable = |part: &&PathBuf| {
            part.parent().is_some_and(|above| self.is_written(above)) && !self.is_hidden(part)
        };
        parts.iter().filter(is_replaceable).cloned().collect()
    }

    /// Refuses a profile that lets programs create a guarded path.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let Some((path, end)) = &self.lost else { return Ok(()) };
        let leads = if path == end { String::new() } else { format!("leads to `{}`, ", end.display()) };
        let missing = format!(
            "`{}`, which controls the permissions of programs, {leads}which does not exist, so programs could create it",
            path.display()
        );
        let root = self.outermost_written().find(|root| end.starts_with(root));
        let root = root.map(|root| format!(", or open a narrower path than `{}`", root.display()));
        Err(Refusal::new(missing, format!("create it{}", root.unwrap_or_default())))
    }

    fn seen(&self, paths: Vec<PathBuf>) -> Vec<PathBuf> {
        paths.into_iter().filter(|path| !self.is_hidden(path)).collect()
    }

    pub(crate) fn is_hidden(&self, path: &Path) -> bool {
        is_beneath(path, &self.hidden)
    }

    pub(crate) fn is_written(&self, path: &Path) -> bool {
        is_beneath(path, &self.write)
    }

    /// Returns the readable paths whose contents are all there: without the emptied directories, and those around them.
    pub(crate) fn whole_read(&self) -> impl Iterator<Item = &PathBuf> {
        self.read.iter().filter(|path| !self.emptied.iter().any(|emptied| emptied.starts_with(path)))
    }

    /// Returns the writable paths that lie in no other writable path.
    pub(crate) fn outermost_written(&self) -> impl Iterator<Item = &PathBuf> {
        let is_inner =
            |path: &PathBuf| self.write.iter().any(|other| other != path && path.starts_with(other));
        self.write.iter().filter(move |path| !is_inner(path))
    }

    /// Adds the gaps that remain even with mounts.
    pub(crate) fn describe_gaps(&self, gaps: &mut Vec<String>) {
        let mut describe = |what: &str, paths: &[PathBuf]| {
            if !paths.is_empty() {
                gaps.push(format!("{what}: {}", list(paths)));
            }
        };
        describe("not writable, because it does not exist", &self.missing);
        describe("can be created, because it does not exist yet", &self.makeable);
    }

    /// Adds the gaps that remain without mounts.
    pub(crate) fn describe_uncovered(&self, problem: &str, gaps: &mut Vec<String>) {
        let mut describe = |what: &str, paths: &mut dyn Iterator<Item = &PathBuf>| {
            // Guarded paths are left out here: Landlock keeps them closed without mounts, at the price of the last gap below.
            let paths: Vec<_> = paths.filter(|path| !is_beneath(path, &self.guarded)).cloned().collect();
            if !paths.is_empty() {
                gaps.push(format!("{what}: {}: {problem}", list(&paths)));
            }
        };
        describe("all of it can be read, except known secrets", &mut self.emptied.iter());
        describe("no private changes to caches", &mut self.layers.overlaid.iter());
        describe("not hidden", &mut self.hidden.iter().filter(|path| self.is_written(path)));
        describe("not read-only", &mut self.read_only.iter());
        describe("can be replaced, because it is a link", &mut self.held.iter());
        describe("can be renamed", &mut self.pinned.iter());
        if !self.guarded.is_empty() {
            gaps.push(format!("nothing can be created next to {}: {problem}", list(&self.guarded)));
        }
    }
}

/// Returns whether this user could create a path that does not exist.
fn can_be_made(path: &Path) -> bool {
    let above = path.ancestors().find(|above| above.exists());
    above.is_some_and(|above| access(above, Access::WRITE_OK).is_ok())
}

/// Returns whether a path equals one of `others` or lies beneath one.
pub(crate) fn is_beneath(path: &Path, others: &[PathBuf]) -> bool {
    others.iter().any(|other| path.starts_with(other))
}

fn sorted(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut paths: Vec<_> = paths.collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Formats the first few paths for a message, with the number of the remaining ones.
pub(super) fn list(paths: &[PathBuf]) -> String {
    const MAX_NAMED: usize = 4;

    let names: Vec<_> = paths.iter().take(MAX_NAMED).map(|path| format!("`{}`", path.display())).collect();
    match paths.len().saturating_sub(MAX_NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Returns the target of a path, without links.
fn resolve(path: &Path) -> PathBuf {
    follow(path).end
}

/// Excludes `holes` from a directory. Returns the paths that cover everything beneath `root` except the holes, and the directories that had
/// to be split for that.
///
/// Landlock can only allow subtrees. An entry that is created later in a split directory is not covered.
pub(crate) fn exclude_paths(root: &Path, holes: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut kept, mut opened) = (Vec::new(), Vec::new());
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        if is_beneath(&path, holes) {
            continue;
        }
        if !holes.iter().any(|hole| hole.starts_with(&path)) {
            kept.push(path);
            continue;
        }
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
        // The target of a link gets the access of its real path.
        let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        waiting.extend(real.map(|entry| entry.path()));
        opened.push(path);
    }
    (sorted(kept.into_iter()), sorted(opened.into_iter()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn home() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["project/.git/hooks", ".ssh", ".config/gh", ".config/git"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join(".netrc"), "").unwrap();
        symlink(".ssh", root.join("link")).unwrap();
        (dir, root)
    }

    #[test]
    fn holes_are_left_out_with_links_to_them_and_places_that_may_come() {
        let (_dir, root) = home();
        let holes = [".ssh", ".config/gh", ".netrc", "project/.env"].map(|name| root.join(name));
        let (kept, opened) = exclude_paths(&root, &holes);
        let names = |paths: Vec<PathBuf>| -> Vec<String> {
            let name = |path: PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            paths.into_iter().map(name).collect()
        };
        assert_eq!(names(kept), [".config/git", "project/.git"]);
        assert_eq!(names(opened), ["", ".config", "project"]);
        assert_eq!(exclude_paths(&root, &[]), (vec![root.clone()], vec![]));
        assert_eq!(exclude_paths(&root, std::slice::from_ref(&root)), (vec![], vec![]));
    }

    #[test]
    fn links_are_followed_and_told_where_they_can_be_replaced() {
        let (_dir, root) = home();
        symlink(root.join("project"), root.join("alias")).unwrap();
        symlink(".git/hooks", root.join("project/hooks")).unwrap();
        let profile = Profile {
            write: vec![root.join("alias"), root.join("none")],
            hidden: vec![root.join("alias/.env")],
            read_only: ["hooks", ".git/config", ".env", "../.ssh"]
                .map(|name| root.join("project").join(name))
                .into(),
            ..Profile::default()
        };
        let places = Places::of(&profile);
        assert_eq!(places.write, [root.join("project")]);
        assert_eq!(places.hidden, [root.join("project/.env")]);
        assert_eq!(places.read_only, [root.join("project/.git/hooks")]);
        assert_eq!(places.makeable, [root.join("project/.git/config")]);
        assert_eq!(places.held, [root.join("project/hooks")]);
        assert_eq!(places.missing, [root.join("none")]);
        assert_eq!(places.links, [(root.join("alias"), root.join("project"))]);
    }
}
