//! Files that other programs obey, wherever the programs of a run may write: which are new since a call began.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::excluded_paths::beside;
use super::places::SandboxPlaces;
use super::repositories::{self, Indexed, Indexes};
use super::sockets::is_in_use;
use super::tree::Tree;
use crate::sandbox::obeyed::Obeyed;
use crate::scan::{ScanBounds, ScanStopped};

/// The maximum of entries that are read beside a path that was named in a protected directory. Programs can create any number.
pub(crate) const BESIDE: usize = 1_000;

/// All files that other programs obey, wherever the programs of a run may write, with the time when each was first seen.
///
/// Files that exist when a directory is opened to programs are not reported. Each later file is reported by all calls that ran meanwhile,
/// even if it was created by a program that outlived its call.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) state: Mutex<State>,
    /// The number of scans that calls have asked for so far.
    pub(crate) asked: AtomicU64,
    /// The file that outlives a killed run, with everything that was known before it.
    pub(crate) baseline: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) tree: Tree,
    pub(crate) indexes: Indexes,
    /// Directories outside the project where programs may write, and git directories outside the project.
    pub(crate) places: BTreeSet<PathBuf>,
    pub(crate) repositories: BTreeSet<PathBuf>,
    /// Pairs of a protected directory and the path in it that was named for writing. All other files in the directory are reported.
    pub(crate) opened: BTreeSet<(PathBuf, PathBuf)>,
    /// Every path that was named for writing.
    pub(crate) named: BTreeSet<PathBuf>,
    pub(crate) known: BTreeMap<Obeyed, Sighting>,
    pub(crate) seen: usize,
    /// The value of `asked` when the last completed scan began. Requests up to it are answered.
    pub(crate) answered: u64,
    /// Set once the files that already existed in the project are recorded.
    pub(crate) is_open: bool,
    /// Set once the gap of the search was reported.
    pub(crate) gap_is_told: bool,
    /// Set if the baseline of the run has changed since it was written.
    pub(crate) is_changed: bool,
}

/// The first sighting of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sighting {
    /// The sequence number; 0 for files that existed before.
    pub(crate) number: usize,
    /// Set once a call has reported the file, or left it out because it was named for writing.
    pub(crate) is_told: bool,
}

impl Sighting {
    /// Returns whether the file is no news: it existed before, or was reported.
    pub(crate) fn is_settled(self) -> bool {
        self.number == 0 || self.is_told
    }
}

/// The result of searching a project before a call starts.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// `.env` files, without unchanged ones that git tracks.
    pub(super) secrets: Vec<PathBuf>,
    /// Sockets that a process has open. They existed before the call.
    pub(super) sockets: Vec<PathBuf>,
    /// Paths at the root of the project that other programs would obey, and that do not exist.
    pub(super) absent: BTreeSet<PathBuf>,
    /// The git directories of all repositories.
    pub(super) repositories: Vec<PathBuf>,
    /// The part of the project that was not searched.
    pub(super) gap: Option<String>,
}

impl Found {
    /// Returns the paths that programs can reach only if they are named.
    pub(super) fn hidden(&self) -> Vec<PathBuf> {
        self.secrets.iter().chain(&self.sockets).cloned().collect()
    }
}

impl Watch {
    /// Creates the watch for the project at `root`, with a file for its [baseline](super::late).
    pub(super) fn new(root: &Path, baseline: Option<PathBuf>) -> Self {
        let state = State {
            tree: Tree::new(root),
            indexes: Indexes::default(),
            places: BTreeSet::new(),
            repositories: BTreeSet::new(),
            opened: BTreeSet::new(),
            named: BTreeSet::new(),
            known: BTreeMap::new(),
            seen: 0,
            answered: 0,
            is_open: false,
            gap_is_told: false,
            is_changed: false,
        };
        Self { state: Mutex::new(state), asked: AtomicU64::new(0), baseline }
    }

    /// Searches the project, and watches `places` and `repositories` outside it from now on as well.
    pub(super) fn open(
        &self,
        places: &[PathBuf],
        repositories: Option<PathBuf>,
        bounds: &ScanBounds,
    ) -> Result<Found, ScanStopped> {
        let mut state = self.lock();
        state.tree.look(bounds)?;
        let is_first = !std::mem::replace(&mut state.is_open, true);
        state.named.extend(places.iter().cloned());
        let is_new = |known: &BTreeSet<PathBuf>, path: &PathBuf| !known.contains(path);
        // A directory in the project is watched with the project already. Recording its files again as old ones would swallow a report.
        let is_elsewhere = |place: &&PathBuf| !state.tree.has_read(place);
        let places: BTreeSet<_> = places
            .iter()
            .filter(is_elsewhere)
            .filter(|place| is_new(&state.places, place))
            .cloned()
            .collect();
        let repositories: BTreeSet<_> =
            repositories.into_iter().filter(|git| is_new(&state.repositories, git)).collect();
        let mut there = found_in(&places, &repositories);
        let (gits, gitlinks, tracked) = state.gits();
        if is_first {
            there.extend(found_beneath(&state.tree, &gits, &gitlinks));
        }
        for obeyed in there {
            state.known.entry(obeyed).or_default();
        }
        state.is_changed = true;
        state.places.extend(places);
        state.repositories.extend(repositories);
        let gap = state.tree.gap();
        state.gap_is_told |= gap.is_some();
        Ok(Found {
            secrets: state.tree.secrets().filter(|path| !tracked.contains(*path)).cloned().collect(),
            sockets: state.tree.sockets().filter(|socket| is_in_use(socket)).cloned().collect(),
            absent: absent(&state.tree),
            repositories: gits,
            gap,
        })
    }

    /// Watches, from now on, the files beside paths that were named for writing in protected directories.
    pub(super) fn open_beside(&self, opened: Vec<(PathBuf, PathBuf)>) {
        let mut state = self.lock();
        let new: Vec<_> = opened.into_iter().filter(|pair| !state.opened.contains(pair)).collect();
        for obeyed in found_beside(&new) {
            state.known.entry(obeyed).or_default();
        }
        state.is_changed = true;
        state.opened.extend(new);
    }

    pub(crate) fn seen(&self) -> usize {
        self.lock().seen
    }

    /// Like [`seen`](Self::seen), but returns `None` while another call is scanning.
    pub(crate) fn seen_now(&self) -> Option<usize> {
        match self.state.try_lock() {
            Ok(state) => Some(state.seen),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner().seen),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Scans again. Returns the files that were first seen after sequence number `seen`, and the gap if it was not reported yet.
    ///
    /// One scan answers all requests that were made before it began. Files that a stopped scan has missed are reported by the next one.
    pub(crate) fn since(&self, seen: usize, bounds: &ScanBounds) -> (Vec<Obeyed>, Option<String>) {
        // The ticket is taken before the lock, so that a scan which starts after this moment answers this request, too.
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut state = self.lock();
        let mut stopped_gap = None;
        if state.answered < ticket {
            let asked = self.asked.load(Ordering::SeqCst);
            match state.look(bounds) {
                Ok(()) => state.answered = asked,
                Err(stopped) => stopped_gap = Some(unseen(stopped)),
            }
        }
        // Old sightings stay in the map: calls that started earlier have a lower `seen`, and report the same files.
        let new = state.known.iter().filter(|(_, sighting)| sighting.number > seen);
        let new = new.map(|(obeyed, _)| obeyed.clone()).collect();
        let gap = state.tree.gap().filter(|_| !state.gap_is_told);
        state.gap_is_told |= gap.is_some();
        // An error is ignored here: the baseline on the disk is only older, so that the next run would report more.
        let _ = state.record(self.baseline.as_deref());
        (new, stopped_gap.or(gap))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Numbers new files, and forgets files that are gone.
    pub(super) fn look(&mut self, bounds: &ScanBounds) -> Result<(), ScanStopped> {
        self.tree.look(bounds)?;
        let mut now = found_in(&self.places, &self.repositories);
        let (gits, gitlinks, _) = self.gits();
        now.extend(found_beneath(&self.tree, &gits, &gitlinks));
        now.retain(|obeyed| !self.is_looked_into(obeyed));
        now.extend(found_beside(&self.opened));
        let before = self.known.len();
        self.known.retain(|obeyed, _| now.contains(obeyed));
        self.is_changed |= self.known.len() < before;
        for obeyed in now {
            if !self.known.contains_key(&obeyed) {
                self.seen += 1;
                self.known.insert(obeyed, Sighting { number: self.seen, is_told: false });
            }
        }
        Ok(())
    }

    /// Returns all repositories of the project, including those of gitlinks, those of gitlinks alone, and the tracked `.env` files that are
    /// unchanged.
    fn gits(&mut self) -> (Vec<PathBuf>, Vec<PathBuf>, HashSet<PathBuf>) {
        let mut gits: Vec<PathBuf> = self.tree.repositories().cloned().collect();
        let Indexed { gitlinks, tracked } = self.indexes.of(&gits);
        gits.extend(gitlinks.iter().cloned());
        (gits, gitlinks, tracked)
    }

    /// Returns whether the entries of a directory are reported instead of the directory itself.
    fn is_looked_into(&self, obeyed: &Obeyed) -> bool {
        let is_opened = || self.opened.iter().any(|(place, _)| *place == obeyed.path);
        is_opened() && obeyed.path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
    }
}

pub(crate) fn unseen(stopped: ScanStopped) -> String {
    format!("new files that other programs run or load may have been missed: {stopped}")
}

fn found_beneath(tree: &Tree, gits: &[PathBuf], gitlinks: &[PathBuf]) -> BTreeSet<Obeyed> {
    let own = repositories::active(&[tree.root().join(".git")]);
    let links = gitlinks.iter().filter_map(|git| git.parent()).map(|place| Obeyed {
        // `git status` enters the place, and obeys the repository there, even one that comes later.
        what: vec!["gitlink".to_owned()],
        ..Obeyed::whole(place.to_owned())
    });
    there(tree.obeyed()).chain(repositories::active(gits)).chain(own).chain(links).collect()
}

pub(crate) fn absent(tree: &Tree) -> BTreeSet<PathBuf> {
    let maybe: BTreeSet<PathBuf> = tree.obeyed().collect();
    SandboxPlaces::obeyed_by_name(tree.root()).filter(|path| !maybe.contains(path)).collect()
}

pub(crate) fn found_in(places: &BTreeSet<PathBuf>, repositories: &BTreeSet<PathBuf>) -> BTreeSet<Obeyed> {
    let names = places.iter().flat_map(|place| SandboxPlaces::obeyed_by_name(place));
    let gits = places.iter().map(|place| place.join(".git")).chain(repositories.iter().cloned());
    let gits: Vec<PathBuf> = gits.collect();
    there(names).chain(repositories::active(&gits)).collect()
}

pub(crate) fn there(paths: impl Iterator<Item = PathBuf>) -> impl Iterator<Item = Obeyed> {
    paths.filter(|path| path.symlink_metadata().is_ok()).map(Obeyed::found)
}

/// Returns the entries of protected directories beside the paths that were named in them.
pub(crate) fn found_beside<'a>(opened: impl IntoIterator<Item = &'a (PathBuf, PathBuf)>) -> BTreeSet<Obeyed> {
    let in_place = |(place, named): &(PathBuf, PathBuf)| {
        let found = beside(place, named).into_iter().take(BESIDE);
        found.map(|path| Obeyed { place: place.clone(), ..Obeyed::found(path) }).collect::<Vec<_>>()
    };
    opened.into_iter().flat_map(in_place).collect()
}
