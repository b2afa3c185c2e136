//! What of a project the tools in this process leave alone: the same that the sandbox keeps from programs.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::excluded_paths::{plain, real};
use super::made::Watch;
use super::places::SandboxPlaces;
use super::tree::Tree;
use super::{dotenv, repositories};
use crate::scan::ScanBounds;

/// A place that is closed, and who opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) opener: Opener,
}

/// Who opens a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opener {
    /// Whoever names it.
    Naming,
    /// Whoever takes it out of the configuration.
    Configuration,
    /// Nobody: it is taskpawl's own.
    Nobody,
}

/// Everything that is closed, by whatever settings, at whatever place, and what the user or the call has named.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// What is not read, but for `.env` files.
    pub(super) hidden: Vec<Place>,
    /// What is not written, also if it is not there.
    pub(super) read_only: Vec<Place>,
    /// What was named to be written; it may be read, too.
    pub(super) may_write: Vec<PathBuf>,
    /// What was named to be read.
    pub(super) may_read: Vec<PathBuf>,
}

/// What of a project the tools in this process leave alone. They ask it with the path of what they have opened, so that neither
/// links nor spellings lead around it. The default leaves nothing out.
#[derive(Clone, Debug, Default)]
pub struct ClosedPlaces(Option<Arc<Closed>>);

/// Why a tool leaves a path alone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClosedReason {
    /// It may hold secrets.
    Hidden {
        /// What has to be named to be read.
        place: PathBuf,
        /// Whether it is there; else it cannot be named yet.
        exists: bool,
    },
    /// Others obey it.
    Protected {
        /// What has to be named to be written.
        place: PathBuf,
        /// Whether it is there; else it cannot be named yet.
        exists: bool,
    },
    /// The configuration says so.
    Configured {
        /// `hide` or `protect`.
        setting: &'static str,
        /// What stands there.
        place: PathBuf,
    },
    /// It is taskpawl's own.
    Own,
}

impl fmt::Display for ClosedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden { place, exists } => {
                let (place, once) = (place.display(), once(*exists));
                write!(f, "is hidden, because it may hold secrets; {once}`--allow-read {place}` shows it")
            }
            Self::Protected { place, exists } => {
                let (place, once) = (place.display(), once(*exists));
                write!(f, "is protected, because others obey it; {once}`--allow-write {place}` opens it")
            }
            Self::Configured { setting, place } => {
                let place = place.display();
                write!(
                    f,
                    "is kept from tools: `{setting}` in `[sandbox]` of the configuration names `{place}`"
                )
            }
            Self::Own => f.write_str("belongs to taskpawl itself, and tools leave it alone"),
        }
    }
}

fn once(exists: bool) -> &'static str {
    if exists { "" } else { "once you have made it, " }
}

/// The rules as they are beneath one root.
#[derive(Debug)]
struct Closed {
    /// Without links.
    root: PathBuf,
    hidden: Vec<Spot>,
    read_only: Vec<Spot>,
    /// Without regard to case.
    may_write: Vec<PathBuf>,
    /// Without regard to case.
    may_read: Vec<PathBuf>,
    /// The `.env` files that can be found, for comparing what has several names.
    dotenv: OnceLock<Vec<PathBuf>>,
    /// What was named to be written, wherever it lies, as it was named.
    named: Vec<PathBuf>,
    /// What tells which files that others obey are new, if programs are held to anything.
    watch: Option<Arc<Watch>>,
    /// What naming does not open, wherever it lies.
    unopened: Arc<Unopened>,
}

/// What no flag opens to programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unopened {
    /// taskpawl's own, which nobody reads.
    pub(super) own: Vec<PathBuf>,
    /// What decides about programs, so that they do not write it.
    pub(super) kept: Vec<PathBuf>,
    /// What `hide` in the configuration names.
    pub(super) hide: Vec<PathBuf>,
    /// What `protect` in the configuration names.
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

    /// Returns whether a place that is named stays closed to writers.
    pub(super) fn keeps(&self, path: &Path) -> bool {
        let path = real(path);
        self.kept.iter().chain(&self.protect).any(|place| path.starts_with(real(place)))
    }

    /// Says which of the places that are named stay closed to writers.
    pub(super) fn said(&self, named: &[PathBuf]) -> Vec<String> {
        let closed = named.iter().filter(|path| self.keeps(path));
        let said = closed.map(|path| {
            let real = real(path);
            let shown = path.display();
            if self.protect.iter().any(|place| real.starts_with(super::excluded_paths::real(place))) {
                return format!(
                    "`{shown}` is not opened to programs: `protect` in `[sandbox]` of the configuration names it"
                );
            }
            format!("`{shown}` is not opened to programs, because it decides about them")
        });
        said.collect()
    }
}

/// A closed place beneath the root.
#[derive(Debug)]
struct Spot {
    /// Without links, as far as it is there.
    path: PathBuf,
    /// Without regard to case: on some file systems it does not matter, and on others nobody misses the difference here.
    folded: PathBuf,
    opener: Opener,
}

impl ClosedPlaces {
    /// Returns what of `rules` matters beneath `root`. `dotenv` are the `.env` files, if they have been looked for.
    pub(super) fn new(
        root: &Path,
        rules: Rules,
        dotenv: Option<Vec<PathBuf>>,
        watch: Option<Arc<Watch>>,
    ) -> Self {
        let Ok(real_root) = root.canonicalize() else { return Self::default() };
        // A place is closed by its own name and where a link on the way to it leads.
        let beneath = |path: PathBuf| {
            let as_named = path.strip_prefix(root).ok().map(|rest| plain(&real_root.join(rest)));
            let other = Some(real(&path)).filter(|other| Some(other) != as_named.as_ref());
            let both = as_named.into_iter().chain(other);
            both.filter(|path| path.starts_with(&real_root)).collect::<Vec<_>>()
        };
        let spots = |places: Vec<Place>| {
            let all = places.into_iter().flat_map(|Place { path, opener }| {
                beneath(path).into_iter().map(move |path| Spot { folded: fold(&path), path, opener })
            });
            all.collect::<Vec<_>>()
        };
        let named = |paths: Vec<PathBuf>| -> Vec<PathBuf> {
            paths.into_iter().flat_map(beneath).map(|path| fold(&path)).collect()
        };
        let closed = Closed {
            named: rules.may_write.clone(),
            watch,
            unopened: Arc::new(Unopened::of(&rules)),
            hidden: spots(rules.hidden),
            read_only: spots(rules.read_only),
            may_read: named([rules.may_read, rules.may_write.clone()].concat()),
            may_write: named(rules.may_write),
            dotenv: dotenv.map(OnceLock::from).unwrap_or_default(),
            root: real_root,
        };
        Self(Some(Arc::new(closed)))
    }

    /// Returns what tells which files that others obey are new; without a sandbox there is nothing.
    pub(super) fn watch(&self) -> Option<&Arc<Watch>> {
        self.0.as_ref()?.watch.as_ref()
    }

    /// Returns whether `path`, in the protected `place`, was named to be written itself, or lies in what was named in there.
    pub(super) fn is_named(&self, place: &Path, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|closed| is_opened(place, path, &closed.named))
    }

    /// Returns what no flag opens to programs, beneath the root and elsewhere.
    pub(super) fn unopened(&self) -> Arc<Unopened> {
        self.0.as_ref().map(|closed| Arc::clone(&closed.unopened)).unwrap_or_default()
    }

    /// Returns why a path, absolute and without links, is not read or listed.
    pub(crate) fn hides(&self, path: &Path) -> Option<ClosedReason> {
        self.0.as_ref()?.hides(path)
    }

    /// Returns why nothing is made or changed at a path, absolute and without links, whether or not there is something.
    pub(crate) fn keeps(&self, path: &Path) -> Option<ClosedReason> {
        let closed = self.0.as_ref()?;
        closed.hides(path).or_else(|| closed.protects(path))
    }

    /// Returns why no file is put at a path where only a directory can lead to what is protected: `.git` may be a file that says where
    /// the hooks are.
    pub(crate) fn keeps_way(&self, path: &Path) -> Option<ClosedReason> {
        let closed = self.0.as_ref()?;
        let folded = fold(path);
        if repositories::is_git(path) && path.starts_with(&closed.root) && !closed.may_write.contains(&folded)
        {
            return Some(protected(path.to_owned()));
        }
        let is_way = |spot: &&Spot| spot.folded.starts_with(&folded) && !closed.may_write.contains(&folded);
        closed.read_only.iter().find(is_way).map(|spot| spot.protected(path))
    }

    /// Returns why a file that has several names is not read: one of the others is hidden.
    pub(crate) fn hides_other_name(&self, metadata: &Metadata) -> Option<ClosedReason> {
        let closed = self.0.as_ref().filter(|_| has_other_names(metadata))?;
        let dotenv = closed.dotenv.get_or_init(|| env_files(&closed.root));
        let mut paths = dotenv.iter().chain(closed.hidden.iter().map(|spot| &spot.path));
        paths.find_map(|path| closed.hides(path).filter(|_| is_same(path, metadata)))
    }

    /// Returns why a file that has several names is not written in place: one of the others is hidden or protected.
    pub(crate) fn keeps_other_name(&self, metadata: &Metadata) -> Option<ClosedReason> {
        self.hides_other_name(metadata).or_else(|| {
            let closed = self.0.as_ref().filter(|_| has_other_names(metadata))?;
            let mut paths = closed.read_only.iter().map(|spot| &spot.path);
            paths.find_map(|path| closed.protects(path).filter(|_| is_same(path, metadata)))
        })
    }
}

impl Closed {
    fn hides(&self, path: &Path) -> Option<ClosedReason> {
        let folded = fold(path);
        if let Some(spot) = find(&self.hidden, &folded, &self.may_read) {
            return Some(spot.hidden());
        }
        let part = dotenv::part_of(path.strip_prefix(&self.root).ok()?)?;
        let place = self.root.join(part);
        let is_open = is_opened(&fold(&place), &folded, &self.may_read);
        (!is_open).then(|| hidden(place))
    }

    fn protects(&self, path: &Path) -> Option<ClosedReason> {
        let folded = fold(path);
        if let Some(spot) = find(&self.read_only, &folded, &self.may_write) {
            return Some(spot.protected(&spot.path));
        }
        let path = path.strip_prefix(&self.root).ok()?;
        let place = self.root.join(repositories::part_of(path).or_else(|| SandboxPlaces::part_obeyed(path))?);
        let is_open = is_opened(&fold(&place), &folded, &self.may_write);
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

    /// As what has to be named to write at `place`, which is this or leads to it.
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
    // Without bounds of its own: the callers are file tools, whose calls end without waiting for the thread.
    let _ = tree.look(&ScanBounds::default());
    tree.secrets().cloned().collect()
}

fn hidden(place: PathBuf) -> ClosedReason {
    ClosedReason::Hidden { exists: place.symlink_metadata().is_ok(), place }
}

fn protected(place: PathBuf) -> ClosedReason {
    ClosedReason::Protected { exists: place.symlink_metadata().is_ok(), place }
}

/// Returns the place that closes a path, unless something on the way from the one to the other was named.
fn find<'a>(spots: &'a [Spot], path: &Path, named: &[PathBuf]) -> Option<&'a Spot> {
    spots.iter().find(|spot| {
        let is_open = spot.opener == Opener::Naming && is_opened(&spot.folded, path, named);
        path.starts_with(&spot.folded) && !is_open
    })
}

/// Returns whether `path`, which lies in the closed `place`, was named, or lies in what was named in there.
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
