//! Paths of a project that the tools in this process must not touch: the same that the sandbox closes to programs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::excluded_paths::{plain, real};
use super::places::SandboxPlaces;
use super::tree::Tree;
use super::{dotenv, repositories};
use crate::sandbox::closed_reason::ClosedReason;
use crate::sandbox::watch::Watch;
use crate::scan::ScanBounds;

/// A closed path, and the way to open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) opener: Opener,
}

/// The way to open a closed path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opener {
    /// The user or the call names the path.
    Naming,
    /// The user removes the path from the configuration.
    Configuration,
    /// Nothing opens it: the path belongs to taskpawl itself.
    Nobody,
}

/// All closed paths, from every setting, and the paths that the user or the call has named.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// Paths that must not be read. `.env` files are missing here, because the search of the project finds them.
    pub(super) hidden: Vec<Place>,
    /// Paths that must not be written, even if they do not exist.
    pub(super) read_only: Vec<Place>,
    /// Paths that were named for writing, which includes reading.
    pub(super) may_write: Vec<PathBuf>,
    /// Paths that were named for reading.
    pub(super) may_read: Vec<PathBuf>,
}

/// Paths of a project that the tools in this process must not touch.
///
/// Tools ask with the real path of the file that they have opened, so that neither links nor other spellings bypass the check. The default
/// closes nothing.
#[derive(Clone, Debug, Default)]
pub struct ClosedPlaces(Option<Arc<Closed>>, Arc<BTreeSet<OsString>>);

/// The rules that apply beneath one root.
#[derive(Debug)]
struct Closed {
    /// The root without links.
    root: PathBuf,
    /// The root as it was named.
    named_root: PathBuf,
    rules: Rules,
    /// The paths of the rules beneath the root, resolved at the first question: most calls ask none.
    spots: OnceLock<Spots>,
    /// The existing `.env` files, found at the first use: a hard link to one of them is hidden, too.
    dotenv: OnceLock<Vec<PathBuf>>,
    /// Finds new files that other programs obey; `None` without a sandbox.
    watch: Option<Arc<Watch>>,
    /// Paths that naming does not open, inside and outside the root.
    unopened: Arc<Unopened>,
}

/// The closed and the named paths beneath a root.
#[derive(Debug)]
struct Spots {
    hidden: Vec<Spot>,
    read_only: Vec<Spot>,
    /// In lower case.
    may_write: Vec<PathBuf>,
    /// In lower case.
    may_read: Vec<PathBuf>,
}

/// Paths that no flag opens to programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unopened {
    /// Paths of taskpawl itself, which programs must not even read.
    pub(super) own: Vec<PathBuf>,
    /// Paths that control programs, such as the policy, which programs must not write.
    pub(super) kept: Vec<PathBuf>,
    /// Paths in `hide` of the configuration.
    pub(super) hide: Vec<PathBuf>,
    /// Paths in `protect` of the configuration.
    pub(super) protect: Vec<PathBuf>,
}

impl Unopened {
    pub(super) fn of(rules: &Rules) -> Self {
        let paths = |places: &[Place], opener: Opener| {
            let found = places.iter().filter(|place| place.opener == opener);
            found.map(|place| place.path.clone()).collect()
        };
        Self {
            own: paths(&rules.hidden, Opener::Nobody),
            kept: paths(&rules.read_only, Opener::Nobody),
            hide: paths(&rules.hidden, Opener::Configuration),
            protect: paths(&rules.read_only, Opener::Configuration),
        }
    }

    /// Returns whether a path stays closed for writing even if it is named.
    pub(super) fn keeps(&self, path: &Path) -> bool {
        let path = real(path);
        self.kept.iter().chain(&self.protect).any(|place| path.starts_with(real(place)))
    }

    /// Explains which of the `named` paths stay closed for writing.
    pub(super) fn said(&self, named: &[PathBuf]) -> Vec<String> {
        let closed = named.iter().filter(|path| self.keeps(path));
        let said = closed.map(|path| {
            let real = real(path);
            let shown = path.display();
            if self.protect.iter().any(|place| real.starts_with(super::excluded_paths::real(place))) {
                return format!(
                    "`{shown}` stays closed to programs: it is in `protect` in `[sandbox]` of the configuration"
                );
            }
            format!("`{shown}` stays closed to programs, because it controls their permissions")
        });
        said.collect()
    }
}

/// A closed path beneath the root.
#[derive(Debug)]
struct Spot {
    /// The path without links, as far as it exists.
    path: PathBuf,
    /// The path in lower case. Some file systems ignore case; on the others, closing a few more spellings does no harm.
    folded: PathBuf,
    opener: Opener,
}

impl ClosedPlaces {
    /// Returns the `rules` that apply beneath `root`. `dotenv` holds the `.env` files, if a search has already found them.
    pub(super) fn new(
        root: &Path,
        rules: Rules,
        dotenv: Option<Vec<PathBuf>>,
        watch: Option<Arc<Watch>>,
    ) -> Self {
        let Ok(real_root) = root.canonicalize() else { return Self::default() };
        let closed = Closed {
            watch,
            unopened: Arc::new(Unopened::of(&rules)),
            dotenv: dotenv.map(OnceLock::from).unwrap_or_default(),
            root: real_root,
            named_root: root.to_owned(),
            rules,
            spots: OnceLock::new(),
        };
        Self(Some(Arc::new(closed)), Arc::default())
    }

    /// Sets the names of the variables of this process that programs do not see.
    pub(super) fn with_unseen(mut self, unseen: BTreeSet<OsString>) -> Self {
        self.1 = Arc::new(unseen);
        self
    }

    /// Returns the names of the variables of this process that programs do not see.
    pub(crate) fn unseen(&self) -> &BTreeSet<OsString> {
        &self.1
    }

    /// Returns the watch for new files that other programs obey. There is none without a sandbox.
    pub(super) fn watch(&self) -> Option<&Arc<Watch>> {
        self.0.as_ref()?.watch.as_ref()
    }

    /// Returns whether `path` in the protected `place` was named for writing, itself or by a directory above it in `place`.
    pub(super) fn is_named(&self, place: &Path, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|closed| is_opened(place, path, &closed.rules.may_write))
    }

    /// Returns the paths that no flag opens to programs, inside and outside the root.
    pub(super) fn unopened(&self) -> Arc<Unopened> {
        self.0.as_ref().map(|closed| Arc::clone(&closed.unopened)).unwrap_or_default()
    }

    /// Returns the reason why an absolute path without links must not be read or listed.
    pub(crate) fn hides(&self, path: &Path) -> Option<ClosedReason> {
        self.0.as_ref()?.hides(path)
    }

    /// Returns whether an absolute path without links must not be read or listed.
    pub fn is_hidden(&self, path: &Path) -> bool {
        self.hides(path).is_some()
    }

    /// Returns the reason why an absolute path without links must not be created or changed. The path need not exist.
    pub(crate) fn keeps(&self, path: &Path) -> Option<ClosedReason> {
        let closed = self.0.as_ref()?;
        closed.hides(path).or_else(|| closed.protects(path))
    }

    /// Returns the reason why no file may be created at a path that has to stay a directory.
    ///
    /// A file in place of a directory can redirect protected paths: a `.git` file names the repository, and with it the hooks.
    pub(crate) fn keeps_way(&self, path: &Path) -> Option<ClosedReason> {
        let closed = self.0.as_ref()?;
        let (folded, spots) = (fold(path), closed.spots());
        let is_named = spots.may_write.contains(&folded);
        if repositories::is_git(path) && path.starts_with(&closed.root) && !is_named {
            return Some(protected(path.to_owned()));
        }
        let is_way = |spot: &&Spot| spot.folded.starts_with(&folded) && !is_named;
        spots.read_only.iter().find(is_way).map(|spot| spot.protected(path))
    }

    /// Returns the reason why a file with several names must not be read: another of its names is hidden.
    pub(crate) fn hides_other_name(&self, metadata: &Metadata) -> Option<ClosedReason> {
        let closed = self.0.as_ref().filter(|_| has_other_names(metadata))?;
        let dotenv = closed.dotenv.get_or_init(|| env_files(&closed.root));
        let mut paths = dotenv.iter().chain(closed.spots().hidden.iter().map(|spot| &spot.path));
        paths.find_map(|path| closed.hides(path).filter(|_| is_same(path, metadata)))
    }

    /// Returns the reason why a file with several names must not be written in place: another of its names is hidden or protected.
    pub(crate) fn keeps_other_name(&self, metadata: &Metadata) -> Option<ClosedReason> {
        self.hides_other_name(metadata).or_else(|| {
            let closed = self.0.as_ref().filter(|_| has_other_names(metadata))?;
            let mut paths = closed.spots().read_only.iter().map(|spot| &spot.path);
            paths.find_map(|path| closed.protects(path).filter(|_| is_same(path, metadata)))
        })
    }
}

impl Spots {
    fn of(root: &Path, real_root: &Path, rules: &Rules) -> Self {
        // A path is closed under its own name and at its target, so that neither a link on the way nor the target can be changed.
        let beneath = |path: &PathBuf| {
            let as_named = path.strip_prefix(root).ok().map(|rest| plain(&real_root.join(rest)));
            let other = Some(real(path)).filter(|other| Some(other) != as_named.as_ref());
            let both = as_named.into_iter().chain(other);
            both.filter(|path| path.starts_with(real_root)).collect::<Vec<_>>()
        };
        let spots = |places: &[Place]| {
            let all = places.iter().flat_map(|Place { path, opener }| {
                beneath(path).into_iter().map(|path| Spot { folded: fold(&path), path, opener: *opener })
            });
            all.collect::<Vec<_>>()
        };
        let named = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().flat_map(beneath).map(|path| fold(&path)).collect()
        };
        Self {
            hidden: spots(&rules.hidden),
            read_only: spots(&rules.read_only),
            may_read: named(&[rules.may_read.clone(), rules.may_write.clone()].concat()),
            may_write: named(&rules.may_write),
        }
    }
}

impl Closed {
    fn spots(&self) -> &Spots {
        self.spots.get_or_init(|| Spots::of(&self.named_root, &self.root, &self.rules))
    }

    fn hides(&self, path: &Path) -> Option<ClosedReason> {
        let (folded, spots) = (fold(path), self.spots());
        if let Some(spot) = find(&spots.hidden, &folded, &spots.may_read) {
            return Some(spot.hidden());
        }
        let part = dotenv::part_of(path.strip_prefix(&self.root).ok()?)?;
        let place = self.root.join(part);
        let is_open = is_opened(&fold(&place), &folded, &spots.may_read);
        (!is_open).then(|| hidden(place))
    }

    fn protects(&self, path: &Path) -> Option<ClosedReason> {
        let (folded, spots) = (fold(path), self.spots());
        if let Some(spot) = find(&spots.read_only, &folded, &spots.may_write) {
            return Some(spot.protected(&spot.path));
        }
        // Repositories and other obeyed files may appear anywhere beneath the root, so they are recognized by name, too.
        let path = path.strip_prefix(&self.root).ok()?;
        let place = self.root.join(repositories::part_of(path).or_else(|| SandboxPlaces::part_obeyed(path))?);
        let is_open = is_opened(&fold(&place), &folded, &spots.may_write);
        (!is_open).then(|| protected(place))
    }
}

impl Spot {
    fn hidden(&self) -> ClosedReason {
        let place = self.path.clone();
        match self.opener {
            Opener::Naming => hidden(place),
            Opener::Configuration => ClosedReason::Configured { setting: "hide", place },
            Opener::Nobody => ClosedReason::Own,
        }
    }

    /// Returns the reason for a write to `place`, which is this path or leads to it. The message names `place`.
    fn protected(&self, place: &Path) -> ClosedReason {
        match self.opener {
            Opener::Naming => protected(place.to_owned()),
            Opener::Configuration => {
                ClosedReason::Configured { setting: "protect", place: self.path.clone() }
            }
            Opener::Nobody => ClosedReason::Own,
        }
    }
}

fn env_files(root: &Path) -> Vec<PathBuf> {
    let mut tree = Tree::new(root);
    // Unbounded: the callers are file tools, whose calls end without waiting for this thread.
    let _ = tree.look(&ScanBounds::default());
    tree.secrets().cloned().collect()
}

fn hidden(place: PathBuf) -> ClosedReason {
    ClosedReason::Hidden { exists: place.symlink_metadata().is_ok(), place }
}

fn protected(place: PathBuf) -> ClosedReason {
    ClosedReason::Protected { exists: place.symlink_metadata().is_ok(), place }
}

/// Returns the rule that closes `path`, unless `path` or a directory between it and the closed path was named.
fn find<'a>(spots: &'a [Spot], path: &Path, named: &[PathBuf]) -> Option<&'a Spot> {
    spots.iter().find(|spot| {
        let is_open = spot.opener == Opener::Naming && is_opened(&spot.folded, path, named);
        path.starts_with(&spot.folded) && !is_open
    })
}

/// Returns whether `path` in the closed `place` was named, itself or by a directory above it in `place`.
pub(super) fn is_opened(place: &Path, path: &Path, named: &[PathBuf]) -> bool {
    named.iter().any(|named| named.starts_with(place) && path.starts_with(named))
}

fn fold(path: &Path) -> PathBuf {
    path.to_string_lossy().to_lowercase().into()
}

pub(super) fn has_other_names(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.nlink() > 1
}

fn is_same(path: &Path, metadata: &Metadata) -> bool {
    let other = path.symlink_metadata();
    other.is_ok_and(|other| (other.dev(), other.ino()) == (metadata.dev(), metadata.ino()))
}
