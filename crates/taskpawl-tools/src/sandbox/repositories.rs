//! The git repositories of a project, and the files in them that git obeys when it is used later.

mod index;
mod settings;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

use self::index::{Entry, EntryKind};
use self::settings::Led;
use super::dotenv;
use super::excluded_paths::plain;
use crate::sandbox::names::is_settled;
use crate::sandbox::obeyed::Obeyed;
use crate::sandbox::obeyed::leading;

/// Files of a repository, submodule or worktree that git runs, or that lead to programs that git runs. `commondir` names the directory of
/// the configuration and the hooks.
const OBEYED: [&str; 5] = ["hooks", "config", "config.worktree", "commondir", "info/attributes"];

/// The maximum depth of nested submodules and included configurations. The name of a submodule may have several components.
const DEPTH: usize = 16;

/// The maximum of submodules and of worktrees that are searched.
const MAX: usize = 1_000;

/// The maximum of hooks that are named for one repository; git knows 28 kinds.
const HOOKS: usize = 50;

/// Names of hooks, for directories that also hold other files.
const HOOK_NAMES: [&str; 20] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "prepare-commit-msg",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// The maximum size in bytes of a git file that is read.
const BYTES: u64 = 256 << 10;

/// Returns the paths that git obeys later in the repository at `git`, a `.git` in a project, with its submodules and worktrees.
///
/// A `.git` file, which names the directory of the repository, is obeyed itself. If `git` does not exist, the paths are those that a
/// repository would have there.
pub(super) fn obeyed(git: &Path) -> Vec<PathBuf> {
    if git.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
        return vec![git.to_owned()];
    }
    let paths =
        |directory: Directory| directory.obeyed().map(|name| directory.path.join(name)).collect::<Vec<_>>();
    let directories = directories(git);
    let led = led_to(&directories);
    directories.into_iter().flat_map(paths).chain(led).collect()
}

/// Returns the targets of these configurations: hook directories, and included configurations.
fn led_to(directories: &[Directory]) -> Vec<PathBuf> {
    // A relative path of hooks is resolved in each worktree.
    let trees: Vec<PathBuf> = directories.iter().filter_map(Directory::tree).collect();
    let mut found = BTreeSet::new();
    let names =
        directories.iter().flat_map(|one| ["config", "config.worktree"].map(|name| one.path.join(name)));
    let mut waiting: Vec<(PathBuf, usize)> = names.map(|config| (config, 0)).collect();
    while let Some((config, depth)) = waiting.pop() {
        let Ok(text) = text(&config) else { continue };
        for led in settings::led(&text) {
            match led {
                Led::Hooks(path) => found.extend(trees.iter().flat_map(|tree| hooks_at(tree, &path))),
                Led::Config(path) => {
                    let Some(path) = config.parent().map(|above| plain(&above.join(path))) else { continue };
                    // A configuration that includes itself ends here, because its path is already in the set.
                    if found.insert(path.clone()) && depth < DEPTH {
                        waiting.push((path, depth + 1));
                    }
                }
            }
        }
    }
    found.into_iter().collect()
}

/// Returns the paths that git runs as hooks of a worktree whose `core.hooksPath` is `path`.
fn hooks_at(tree: &Path, path: &str) -> Vec<PathBuf> {
    let directory = plain(&tree.join(path));
    if tree.starts_with(&directory) {
        // The hook directory contains the worktree, so other files are in it. Only files with the name of a hook are hooks.
        return HOOK_NAMES.iter().map(|name| directory.join(name)).collect();
    }
    // The hooks that husky creates in `_` run the scripts beside that directory.
    let of_husky = directory.parent().filter(|above| directory.ends_with("_") && !tree.starts_with(above));
    vec![of_husky.map_or(directory.clone(), Path::to_owned)]
}

/// Returns the files of the repositories at `gits` that git obeys now: active hooks, unusual settings, and links to other repositories.
pub(super) fn active(gits: &[PathBuf]) -> Vec<Obeyed> {
    let (repositories, links): (Vec<_>, Vec<_>) =
        gits.iter().filter(|git| git.symlink_metadata().is_ok()).partition(|git| is_directory(git));
    let directories: Vec<Directory> = repositories.into_iter().flat_map(|git| directories(git)).collect();
    let mut found: Vec<Obeyed> = directories.iter().flat_map(Directory::active).collect();
    found.extend(led_to(&directories).into_iter().flat_map(active_at));
    if !links.is_empty() {
        let known: HashSet<PathBuf> =
            directories.iter().filter_map(|one| one.path.canonicalize().ok()).collect();
        found.extend(links.into_iter().filter_map(|link| leading_away(link, &known)));
    }
    found
}

/// Returns the existing files at the target of a configuration: hooks, or an included configuration.
fn active_at(place: PathBuf) -> Vec<Obeyed> {
    match place.symlink_metadata() {
        Err(_) => Vec::new(),
        Ok(metadata) if metadata.is_dir() => {
            // Git runs files with these names, and husky the files beneath `_`.
            let found = HOOK_NAMES.iter().chain(&["_"]).map(|name| place.join(name));
            let found = found.filter(|path| path.symlink_metadata().is_ok());
            found.map(|path| Obeyed { place: place.clone(), ..Obeyed::found(path) }).collect()
        }
        Ok(_) => vec![Obeyed::found(place)],
    }
}

/// The parsed indexes of repositories. An index is read again only after a change.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    /// By path of the index. The stamp is `None` if the index changed so recently that the stamp proves nothing.
    known: BTreeMap<PathBuf, (Option<[i64; 5]>, Vec<Entry>)>,
}

/// The relevant entries of all indexes.
#[derive(Debug, Default)]
pub(super) struct Indexed {
    /// The `.git` of each gitlink, in any directory: `git status` enters these repositories.
    pub(super) gitlinks: Vec<PathBuf>,
    /// Tracked `.env` files without changes. Their contents are in the repository anyway, which programs can read.
    pub(super) tracked: HashSet<PathBuf>,
}

impl Indexes {
    /// Reads the indexes of the repositories at `gits`, and of the repositories that their gitlinks lead to.
    pub(super) fn of(&mut self, gits: &[PathBuf]) -> Indexed {
        let mut indexed = Indexed::default();
        let mut seen: HashSet<PathBuf> = gits.iter().cloned().collect();
        let mut waiting = gits.to_vec();
        // Only the indexes of this search are put back, so that the map does not keep those of removed repositories.
        let mut before = std::mem::take(&mut self.known);
        while let Some(git) = waiting.pop() {
            for directory in directories(&directory_of(&git)) {
                let Some(tree) = directory.tree() else { continue };
                let index = directory.path.join("index");
                let read = read_index(&index, before.remove(&index));
                for Entry { path, kind } in &read.1 {
                    let path = tree.join(path);
                    match kind {
                        EntryKind::File(hash) if index::is_as_tracked(&path, hash) => {
                            indexed.tracked.insert(path);
                        }
                        EntryKind::Gitlink if seen.len() < MAX && seen.insert(path.join(".git")) => {
                            waiting.push(path.join(".git"));
                            indexed.gitlinks.push(path.join(".git"));
                        }
                        EntryKind::File(_) | EntryKind::Gitlink => {}
                    }
                }
                self.known.insert(index, read);
            }
        }
        indexed
    }
}

/// Reads an index, or returns `before` if the file has not changed since.
fn read_index(
    index: &Path,
    before: Option<(Option<[i64; 5]>, Vec<Entry>)>,
) -> (Option<[i64; 5]>, Vec<Entry>) {
    let stamp = index::stamp(index);
    match before {
        Some(before) if before.0.is_some() && before.0 == stamp => before,
        // An index that changed within the last seconds is read again next time: another change may get the same time stamp.
        Some(_) | None => (
            stamp.filter(|stamp| is_settled(stamp[2])),
            index::entries(index, |name| dotenv::is_secret(&name.to_lowercase())),
        ),
    }
}

/// Returns the directory of a repository. `git` may be a file that names it.
fn directory_of(git: &Path) -> PathBuf {
    let named = text(git).ok().and_then(|said| Some(said.strip_prefix("gitdir:")?.trim().to_owned()));
    match (named, git.parent()) {
        (Some(named), Some(above)) => plain(&above.join(named)),
        _ => git.to_owned(),
    }
}

/// A directory of git: of a repository, a submodule or a worktree.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Repository,
    /// Beneath `modules` of another directory of git.
    Submodule,
    /// Beneath `worktrees` of another directory of git.
    Worktree,
}

impl Directory {
    /// Returns the worktree that belongs to this directory.
    fn tree(&self) -> Option<PathBuf> {
        match self.kind {
            Kind::Repository if is_git(&self.path) => self.path.parent().map(Path::to_owned),
            Kind::Repository => Some(self.path.clone()),
            Kind::Worktree => {
                let git = text(&self.path.join("gitdir")).ok()?;
                plain(&self.path.join(git.trim())).parent().map(Path::to_owned)
            }
            Kind::Submodule => {
                let config = text(&self.path.join("config")).ok()?;
                Some(plain(&self.path.join(settings::worktree(&config)?)))
            }
        }
    }

    fn obeyed(&self) -> impl Iterator<Item = &'static str> + use<> {
        let is_worktree = self.kind == Kind::Worktree;
        OBEYED.into_iter().filter(move |name| !is_worktree || ["config.worktree", "commondir"].contains(name))
    }

    fn active(&self) -> Vec<Obeyed> {
        self.obeyed().flat_map(|name| self.active_in(name)).collect()
    }

    fn active_in(&self, name: &str) -> Vec<Obeyed> {
        let place = self.path.join(name);
        let Ok(metadata) = place.symlink_metadata() else { return Vec::new() };
        match name {
            "hooks" if metadata.is_dir() => active_hooks(&place),
            "config" | "config.worktree" => self.unusual(place).into_iter().collect(),
            "commondir" if self.is_at_home(&place) => Vec::new(),
            _ => vec![Obeyed::found(place)],
        }
    }

    fn unusual(&self, place: PathBuf) -> Option<Obeyed> {
        let Ok(text) = text(&place) else { return Some(Obeyed::whole(place)) };
        let what = settings::unusual(&text, self.kind != Kind::Repository);
        (!what.is_empty()).then(|| Obeyed { path: place.clone(), place, what })
    }

    /// Returns whether a `commondir` names the repository that it lies in. That of every ordinary worktree does.
    fn is_at_home(&self, commondir: &Path) -> bool {
        self.kind == Kind::Worktree && text(commondir).is_ok_and(|text| text.trim() == "../..")
    }
}

/// Returns the hooks that git runs: executable files that are no samples.
fn active_hooks(place: &Path) -> Vec<Obeyed> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
    // The target of a dangling link may be created later.
    let is_run = |path: &PathBuf| {
        path.metadata()
            .map_or(true, |metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    let active = entries.filter(|path| path.extension().is_none_or(|end| end != "sample")).filter(is_run);
    let active = active.take(HOOKS);
    active.map(|path| Obeyed { place: place.to_owned(), path, what: Vec::new() }).collect()
}

/// Returns a `.git` file or link, unless it leads to a submodule or worktree that is searched itself.
fn leading_away(link: &Path, known: &HashSet<PathBuf>) -> Option<Obeyed> {
    let said = text(link).ok();
    let to = said.as_deref().and_then(|said| said.strip_prefix("gitdir:")).map(str::trim);
    let is_known = |to: &str| {
        let to = link.parent().map(|above| above.join(to)).and_then(|to| to.canonicalize().ok());
        to.is_some_and(|to| known.contains(&to))
    };
    match to {
        Some(to) if is_known(to) => None,
        Some(to) => Some(Obeyed { what: vec![leading(to)], ..Obeyed::whole(link.to_owned()) }),
        None => Some(Obeyed::whole(link.to_owned())),
    }
}

/// Reads a small file. Programs may have put a pipe or a link in its place: a pipe does not block, and a link is refused.
fn text(path: &Path) -> io::Result<String> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY).bits();
    let file = File::options().read(true).custom_flags(flags.cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    file.take(BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the git directory of a repository, with those of its submodules and worktrees.
fn directories(git: &Path) -> Vec<Directory> {
    let mut submodules = Vec::new();
    add_submodules(&git.join("modules"), DEPTH, &mut submodules);
    let submodules = submodules.into_iter().map(|path| Directory { path, kind: Kind::Submodule });
    let main = Directory { path: git.to_owned(), kind: Kind::Repository };
    let mut found: Vec<Directory> = std::iter::once(main).chain(submodules).collect();
    let worktrees: Vec<Directory> = found
        .iter()
        .flat_map(|directory| directories_in(&directory.path.join("worktrees")).take(MAX))
        .map(|path| Directory { path, kind: Kind::Worktree })
        .collect();
    found.extend(worktrees);
    found
}

fn add_submodules(above: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for directory in directories_in(above) {
        if depth == 0 || found.len() > MAX {
            return;
        }
        if directory.join("HEAD").symlink_metadata().is_ok() {
            add_submodules(&directory.join("modules"), depth - 1, found);
            found.push(directory);
        } else {
            // A directory without `HEAD` is the first component of a submodule name such as `libs/zlib`.
            add_submodules(&directory, depth - 1, found);
        }
    }
}

fn directories_in(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// Returns the part of a path that git obeys, if there is one. The path is relative to the root of a project and need not exist.
///
/// File tools ask this. All of `modules` and `worktrees` counts, because unlisted files there may lead to listed ones.
pub(super) fn part_of(path: &Path) -> Option<PathBuf> {
    let names: Vec<String> = path
        .components()
        .filter_map(|part| if let Component::Normal(name) = part { Some(name) } else { None })
        .map(|name| name.to_string_lossy().to_lowercase())
        .collect();
    let git = names.iter().position(|name| name == ".git")?;
    let inside = &names[git + 1..];
    let is_led_to = inside.first().is_some_and(|name| name == "modules" || name == "worktrees");
    let is_named = OBEYED.iter().any(|obeyed| {
        obeyed.split('/').zip(inside).filter(|(a, b)| a == b).count() == obeyed.split('/').count()
    });
    (is_led_to || is_named).then(|| path.components().take(git + 2).collect())
}

/// Returns whether the last component of a path is `.git`, which as a file names the directory of a repository.
pub(super) fn is_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submodules_and_worktrees_are_found_with_what_git_obeys_in_them() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        for name in ["hooks", "modules/a/b/hooks", "modules/a/b/modules/c", "worktrees/w", "objects/aa"] {
            fs::create_dir_all(git.join(name)).unwrap();
        }
        for name in ["HEAD", "modules/a/b/HEAD", "modules/a/b/modules/c/HEAD"] {
            fs::write(git.join(name), "").unwrap();
        }
        let found = obeyed(&git);
        for name in [
            "config",
            "commondir",
            "modules/a/b/hooks",
            "modules/a/b/modules/c/config",
            "worktrees/w/commondir",
        ] {
            assert!(found.contains(&git.join(name)), "{name}: {found:?}");
        }
        assert!(!found.iter().any(|path| path.starts_with(git.join("objects"))));
        fs::write(dir.path().join("file"), "gitdir: elsewhere\n").unwrap();
        assert_eq!(obeyed(&dir.path().join("file")), [dir.path().join("file")]);
    }

    #[test]
    fn what_a_configuration_leads_to_is_obeyed_too() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        fs::create_dir(&git).unwrap();
        let found = |config: &str| -> Vec<PathBuf> {
            fs::write(git.join("config"), config).unwrap();
            let led = obeyed(&git).into_iter().filter(|path| !path.starts_with(&git));
            led.map(|path| path.strip_prefix(dir.path()).unwrap().to_owned()).collect()
        };
        let hooks = |value: &str| found(&format!("[core]\n\thooksPath = {value}\n"));
        assert_eq!(hooks(".githooks"), [Path::new(".githooks")]);
        assert_eq!(hooks("\"./tools/git hooks\" ; ours"), [Path::new("tools/git hooks")]);
        assert_eq!(hooks(".husky/_"), [Path::new(".husky")]);
        let whole = hooks(".");
        assert!(whole.contains(&"pre-commit".into()) && !whole.contains(&"".into()), "{whole:?}");
        assert!(found("[core]\n\thooksPath = ~/hooks\n").is_empty());
        fs::write(dir.path().join("more.ini"), "[core]\nhooksPath=h\n[include]\npath=more.ini\n").unwrap();
        for include in ["[include]", "[includeIf \"gitdir:x/\"]"] {
            let both = found(&format!("{include}\n\tpath = ../more.ini\n"));
            assert_eq!(both, [Path::new("h"), Path::new("more.ini")]);
        }
    }

    #[test]
    fn what_git_obeys_is_known_by_its_path() {
        let part = |path: &str| part_of(Path::new(path)).map(|part| part.to_str().unwrap().to_owned());
        for (path, of) in [
            (".git/commondir", ".git/commondir"),
            ("sub/.git/config", "sub/.git/config"),
            ("sub/.git/hooks/pre-commit", "sub/.git/hooks"),
            (".GIT/Hooks/x", ".GIT/Hooks"),
            (".git/modules/sub/config", ".git/modules"),
            (".git/worktrees/w/commondir", ".git/worktrees"),
            (".git/info/attributes", ".git/info"),
        ] {
            assert_eq!(part(path).as_deref(), Some(of));
        }
        for path in ["", "git/config", ".gitignore", ".git", ".git/HEAD", ".git/info/exclude", "config"] {
            assert_eq!(part(path), None, "{path}");
        }
        assert!(is_git(Path::new("sub/.Git")) && !is_git(Path::new(".git/x")));
    }
}
