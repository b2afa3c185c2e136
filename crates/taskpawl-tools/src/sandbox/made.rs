//! Finds files that programs created and that other programs obey later. A missing file cannot be covered by a mount, so the project is
//! scanned after each call.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use serde_json::{Map, Value, json};

use super::closed::is_opened;
use super::excluded_paths::beside;
use super::places::SandboxPlaces;
use super::repositories::{self, Indexed, Indexes};
use super::sockets::is_somebodys;
use super::tree::Tree;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::scan::{ScanBounds, ScanStopped};

/// The maximum of files that a result lists, and that a warning names.
const MAX_NAMED: usize = 100;
const WARNED: usize = 5;

/// The maximum of entries that are read beside a path that was named in a protected directory. Programs can create any number.
const BESIDE: usize = 1_000;

/// A file or directory that other programs obey: they run it, or load it as configuration, without asking. Git hooks are an example.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Obeyed {
    /// The protected path: `path` itself, or the directory that it lies in.
    pub(super) place: PathBuf,
    /// The file or directory itself.
    pub(super) path: PathBuf,
    /// The parts that are obeyed, such as settings of a file. Empty if that is all of it.
    pub(super) what: Vec<String>,
}

impl Obeyed {
    /// Returns a path that is obeyed as a whole.
    pub(super) fn whole(place: PathBuf) -> Self {
        Self { path: place.clone(), place, what: Vec::new() }
    }

    /// Returns a path that is obeyed as a whole, with its target if it is a link. A link with another target counts as a new one.
    pub(super) fn found(place: PathBuf) -> Self {
        let what = place.read_link().ok().map(|to| repositories::leading(&to.to_string_lossy()));
        Self { what: what.into_iter().collect(), ..Self::whole(place) }
    }

    /// Formats the path, relative to the root inside the project, for messages.
    fn shown(&self, root: &Path) -> String {
        let path = self.path.strip_prefix(root).unwrap_or(&self.path).display();
        if self.what.is_empty() { path.to_string() } else { format!("{path} ({})", self.what.join(", ")) }
    }
}

/// All files that other programs obey, wherever the programs of a run may write, with the time when each was first seen.
///
/// Files that exist when a directory is opened to programs are not reported. Each later file is reported by all calls that ran meanwhile,
/// even if it was created by a program that outlived its call.
#[derive(Debug)]
pub(super) struct Watch {
    state: Mutex<State>,
    /// The number of scans that calls have asked for so far.
    asked: AtomicU64,
}

#[derive(Debug)]
struct State {
    tree: Tree,
    indexes: Indexes,
    /// Directories outside the project where programs may write, and git directories outside the project.
    places: BTreeSet<PathBuf>,
    repositories: BTreeSet<PathBuf>,
    /// Pairs of a protected directory and the path in it that was named for writing. All other files in the directory are reported.
    opened: BTreeSet<(PathBuf, PathBuf)>,
    /// Each file with the sequence number of its first sighting; 0 for files that existed before.
    known: BTreeMap<Obeyed, usize>,
    seen: usize,
    /// The value of `asked` when the last completed scan began. Requests up to it are answered.
    answered: u64,
    /// Set once the files that already existed in the project are recorded.
    is_open: bool,
    /// Set once the gap of the search was reported.
    gap_is_told: bool,
}

/// The result of searching a project before a call starts.
#[derive(Debug, Default)]
pub(super) struct Found {
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
    /// Creates the watch for the project at `root`.
    pub(super) fn new(root: &Path) -> Self {
        let state = State {
            tree: Tree::new(root),
            indexes: Indexes::default(),
            places: BTreeSet::new(),
            repositories: BTreeSet::new(),
            opened: BTreeSet::new(),
            known: BTreeMap::new(),
            seen: 0,
            answered: 0,
            is_open: false,
            gap_is_told: false,
        };
        Self { state: Mutex::new(state), asked: AtomicU64::new(0) }
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
        let (gits, tracked) = state.gits();
        if is_first {
            there.extend(found_beneath(&state.tree, &gits));
        }
        for obeyed in there {
            state.known.entry(obeyed).or_insert(0);
        }
        state.places.extend(places);
        state.repositories.extend(repositories);
        let gap = state.tree.gap();
        state.gap_is_told |= gap.is_some();
        Ok(Found {
            secrets: state.tree.secrets().filter(|path| !tracked.contains(*path)).cloned().collect(),
            sockets: state.tree.sockets().filter(|socket| is_somebodys(socket)).cloned().collect(),
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
            state.known.entry(obeyed).or_insert(0);
        }
        state.opened.extend(new);
    }

    fn seen(&self) -> usize {
        self.lock().seen
    }

    /// Like [`seen`](Self::seen), but returns `None` while another call is scanning.
    fn seen_now(&self) -> Option<usize> {
        match self.state.try_lock() {
            Ok(state) => Some(state.seen),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner().seen),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Scans again. Returns the files that were first seen after sequence number `seen`, and the gap if it was not reported yet.
    ///
    /// One scan answers all requests that were made before it began. Files that a stopped scan has missed are reported by the next one.
    fn since(&self, seen: usize, bounds: &ScanBounds) -> (Vec<Obeyed>, Option<String>) {
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
        let new = state.known.iter().filter(|(_, number)| **number > seen);
        let new = new.map(|(obeyed, _)| obeyed.clone()).collect();
        let gap = state.tree.gap().filter(|_| !state.gap_is_told);
        state.gap_is_told |= gap.is_some();
        (new, stopped_gap.or(gap))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Numbers new files, and forgets files that are gone.
    fn look(&mut self, bounds: &ScanBounds) -> Result<(), ScanStopped> {
        self.tree.look(bounds)?;
        let mut now = found_in(&self.places, &self.repositories);
        let (gits, _) = self.gits();
        now.extend(found_beneath(&self.tree, &gits));
        now.retain(|obeyed| !self.is_looked_into(obeyed));
        now.extend(found_beside(&self.opened));
        self.known.retain(|obeyed, _| now.contains(obeyed));
        for obeyed in now {
            if !self.known.contains_key(&obeyed) {
                self.seen += 1;
                self.known.insert(obeyed, self.seen);
            }
        }
        Ok(())
    }

    /// Returns all repositories of the project, including those of gitlinks, and the tracked `.env` files that are unchanged.
    fn gits(&mut self) -> (Vec<PathBuf>, HashSet<PathBuf>) {
        let mut gits: Vec<PathBuf> = self.tree.repositories().cloned().collect();
        let Indexed { gitlinks, tracked } = self.indexes.of(&gits);
        gits.extend(gitlinks);
        (gits, tracked)
    }

    /// Returns whether the entries of a directory are reported instead of the directory itself.
    fn is_looked_into(&self, obeyed: &Obeyed) -> bool {
        let is_opened = || self.opened.iter().any(|(place, _)| *place == obeyed.path);
        is_opened() && obeyed.path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
    }
}

fn unseen(stopped: ScanStopped) -> String {
    format!("files that are obeyed later may have been made unseen: {stopped}")
}

fn found_beneath(tree: &Tree, gits: &[PathBuf]) -> BTreeSet<Obeyed> {
    let own = repositories::active(&[tree.root().join(".git")]);
    there(tree.obeyed()).chain(repositories::active(gits)).chain(own).collect()
}

fn absent(tree: &Tree) -> BTreeSet<PathBuf> {
    let maybe: BTreeSet<PathBuf> = tree.obeyed().collect();
    SandboxPlaces::obeyed_by_name(tree.root()).filter(|path| !maybe.contains(path)).collect()
}

fn found_in(places: &BTreeSet<PathBuf>, repositories: &BTreeSet<PathBuf>) -> BTreeSet<Obeyed> {
    let names = places.iter().flat_map(|place| SandboxPlaces::obeyed_by_name(place));
    let gits = places.iter().map(|place| place.join(".git")).chain(repositories.iter().cloned());
    let gits: Vec<PathBuf> = gits.collect();
    there(names).chain(repositories::active(&gits)).collect()
}

fn there(paths: impl Iterator<Item = PathBuf>) -> impl Iterator<Item = Obeyed> {
    paths.filter(|path| path.symlink_metadata().is_ok()).map(Obeyed::found)
}

/// Returns the entries of protected directories beside the paths that were named in them.
fn found_beside<'a>(opened: impl IntoIterator<Item = &'a (PathBuf, PathBuf)>) -> BTreeSet<Obeyed> {
    let in_place = |(place, named): &(PathBuf, PathBuf)| {
        let found = beside(place, named).into_iter().take(BESIDE);
        found.map(|path| Obeyed { place: place.clone(), ..Obeyed::found(path) }).collect::<Vec<_>>()
    };
    opened.into_iter().flat_map(in_place).collect()
}

/// The state before a call that starts programs or talks to some. The programs may create files that others obey.
#[derive(Debug)]
pub struct BeforeCall {
    watch: Option<Arc<Watch>>,
    seen: usize,
}

/// Files that other programs obey and that were created during a call.
#[derive(Debug, Default)]
pub struct CreatedInCall {
    /// The files as they are named in messages.
    names: Vec<String>,
    /// The number of further files.
    more: usize,
    /// The part that was not searched, if it was not reported yet.
    gap: Option<String>,
}

impl BeforeCall {
    /// Records the state before a program starts, or receives a request.
    ///
    /// While another call is scanning, this waits on a thread of its own, because calls are polled on the thread of the run.
    ///
    /// # Errors
    /// The call was cancelled or timed out meanwhile.
    pub async fn of(cx: &CallContext) -> Result<Self, ToolError> {
        let Some(watch) = cx.closed.watch().cloned() else { return Ok(Self { watch: None, seen: 0 }) };
        if let Some(seen) = watch.seen_now() {
            return Ok(Self { watch: Some(watch), seen });
        }
        let waiting = Arc::clone(&watch);
        let seen = ScanBounds::of_call(cx).run(move |_| Ok(waiting.seen())).await?;
        Ok(Self { watch: Some(watch), seen })
    }

    /// Scans again after the program has ended or answered. Paths that were named for writing, also by `named`, are not reported.
    ///
    /// The scan is bounded even if the call has no time left. A gap then reports that files may have been missed.
    pub async fn created(self, cx: &CallContext, named: Vec<PathBuf>) -> CreatedInCall {
        let Some(watch) = self.watch else { return CreatedInCall::default() };
        let (bounds, cx) = (ScanBounds::after_call(cx), cx.clone());
        let looked = bounds.run(move |bounds| Ok(created(&watch, self.seen, &cx, &named, bounds))).await;
        looked.unwrap_or_else(|stopped| CreatedInCall {
            gap: Some(unseen(stopped)),
            ..CreatedInCall::default()
        })
    }
}

fn created(
    watch: &Watch,
    seen: usize,
    cx: &CallContext,
    named: &[PathBuf],
    bounds: &ScanBounds,
) -> CreatedInCall {
    let (mut made, gap) = watch.since(seen, bounds);
    made.retain(|Obeyed { place, path, .. }| {
        !cx.closed.is_named(place, path) && !is_opened(place, path, named)
    });
    let shown = made.iter().take(MAX_NAMED).map(|obeyed| obeyed.shown(&cx.root)).collect();
    CreatedInCall { names: shown, more: made.len().saturating_sub(MAX_NAMED), gap }
}

impl CreatedInCall {
    /// Reports the files: all of them in `sandbox`, a part of the call's result, and the first ones in a warning of the run.
    pub fn tell(self, cx: &CallContext, sandbox: &mut Map<String, Value>) {
        if let Some(gap) = self.gap {
            match sandbox.get_mut("gaps").and_then(Value::as_array_mut) {
                Some(gaps) => gaps.push(gap.into()),
                None => drop(sandbox.insert("gaps".to_owned(), json!([gap]))),
            }
        }
        if self.names.is_empty() {
            return;
        }
        let first: Vec<_> = self.names.iter().take(WARNED).map(|name| format!("`{name}`")).collect();
        let more = match self.names.len() + self.more - first.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        cx.warn(format!(
            "{}{more}: made while it ran, and obeyed later without being asked; look at it before you go on",
            first.join(", ")
        ));
        let mut names = self.names;
        if self.more > 0 {
            names.push(format!("… and {} more", self.more));
        }
        sandbox.insert("created".to_owned(), names.into());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::closed::{ClosedPlaces, Rules};
    use super::*;

    struct Scene {
        dir: tempfile::TempDir,
        watch: Watch,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("p")).unwrap();
            let watch = Watch::new(&dir.path().join("p"));
            Self { dir, watch }
        }

        fn opened() -> Self {
            let scene = Self::new();
            scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
            scene
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.dir.path().join("p").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn hook(&self, name: &str) {
            self.write(name, "#!/bin/sh\n");
            let path = self.dir.path().join("p").join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }

        /// Writes a repository as `git init` and `git clone` do.
        fn repository(&self, git: &str) {
            for name in ["HEAD", "objects/info/x", "refs/heads/main", "info/exclude", "description"] {
                self.write(&format!("{git}/{name}"), "ref: refs/heads/main\n");
            }
            self.hook(&format!("{git}/hooks/pre-commit.sample"));
            self.write(&format!("{git}/config"), "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n");
        }

        fn since(&self, seen: usize) -> Vec<String> {
            let (made, _) = self.watch.since(seen, &ScanBounds::default());
            made.iter().map(|obeyed| obeyed.shown(&self.dir.path().join("p"))).collect()
        }
    }

    #[test]
    fn a_repository_that_runs_nothing_is_not_worth_a_word() {
        let scene = Scene::opened();
        scene.repository(".git");
        scene.repository("fresh/.git");
        scene.repository("bare");
        scene.repository("fresh/.git/modules/lib");
        scene.write("fresh/.git/modules/lib/config", "[core]\n\tworktree = ../../../lib\n");
        scene.write("fresh/lib/.git", "gitdir: ../.git/modules/lib\n");
        scene.write("fresh/.git/worktrees/w/commondir", "../..\n");
        scene.write("tree/.git", "gitdir: ../fresh/.git/worktrees/w\n");
        assert_eq!(scene.since(0), Vec::<String>::new());
    }

    #[test]
    fn a_gitlink_is_a_repository_wherever_it_lies() {
        let scene = Scene::new();
        let git = |args: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.args(args).current_dir(scene.dir.path().join("p")).env("GIT_CONFIG_GLOBAL", "/dev/null");
            assert!(command.output().unwrap().status.success(), "{args:?}");
        };
        git(&["init", "-q"]);
        scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        scene.repository("vendor/x/.git");
        scene.write("vendor/x/.git/config", "[core]\n\tfsmonitor = ./x\n");
        assert_eq!(scene.since(0), Vec::<String>::new(), "git does not enter it");
        git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},vendor/x", "1".repeat(40))]);
        assert_eq!(scene.since(0), ["vendor/x/.git/config (core.fsmonitor)"]);
    }

    #[test]
    fn a_tracked_file_of_the_environment_is_hidden_only_when_it_was_changed() {
        let scene = Scene::new();
        let git = |args: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.args(args).current_dir(scene.dir.path().join("p")).env("GIT_CONFIG_GLOBAL", "/dev/null");
            assert!(command.output().unwrap().status.success(), "{args:?}");
        };
        for name in ["a/.env", ".env", ".env.local"] {
            scene.write(name, "A=1\n");
        }
        git(&["init", "-q"]);
        git(&["add", "-f", ".env", "a/.env"]);
        let hidden = || -> Vec<PathBuf> {
            let mut found = scene.watch.open(&[], None, &ScanBounds::default()).unwrap().secrets;
            found.sort();
            found.iter().map(|path| path.strip_prefix(scene.dir.path().join("p")).unwrap().into()).collect()
        };
        assert_eq!(hidden(), [Path::new(".env.local")]);
        scene.write("a/.env", "A=secret\n");
        assert_eq!(hidden(), [Path::new(".env.local"), Path::new("a/.env")]);
    }

    #[test]
    fn what_git_obeys_in_a_new_repository_is_named() {
        let scene = Scene::opened();
        scene.repository("fresh/.git");
        scene.repository("bare");
        scene.hook("fresh/.git/hooks/post-checkout");
        scene.write("fresh/.git/config", "[core]\n\tfsmonitor = ./x\n[alias]\n\tst = !x\n");
        scene.write("bare/config", "[core]\n\tpager = x\n");
        scene.write(".git/modules/new/HEAD", "");
        scene.write(".git/modules/new/config", "[diff]\n\texternal = x\n");
        scene.write("e1/.git", "gitdir: ../evil\n");
        scene.write("made/worktree/.git/worktrees/w/commondir", "/elsewhere\n");
        symlink("../../evil", scene.dir.path().join("p/fresh/.git/config.worktree")).unwrap();
        assert_eq!(
            scene.since(0),
            [
                ".git/modules/new/config (diff.external)",
                "bare/config (core.pager)",
                "e1/.git (leads to ../evil)",
                "fresh/.git/config (alias.st, core.fsmonitor)",
                "fresh/.git/config.worktree",
                "fresh/.git/hooks/post-checkout",
                "made/worktree/.git/worktrees/w/commondir",
            ]
        );
    }

    #[test]
    fn what_others_than_git_obey_is_named_wherever_it_is() {
        let scene = Scene::opened();
        for name in
            ["a/.envrc", "a/b/.mcp.json", "a/.vscode/tasks.json", "a/.claude/x", "a/.bashrc", ".bashrc"]
        {
            scene.write(name, "");
        }
        scene.write("node_modules/x/.envrc", "");
        assert_eq!(scene.since(0), [".bashrc", "a/.envrc", "a/.vscode", "a/b/.mcp.json"]);
    }

    #[test]
    fn a_link_in_the_place_of_another_one_is_news() {
        let scene = Scene::new();
        let at = |name: &str| scene.dir.path().join("p").join(name);
        symlink("m.json", at(".mcp.json")).unwrap();
        symlink("x", at(".vscode")).unwrap();
        scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        assert_eq!(scene.since(0), Vec::<String>::new());
        for name in [".mcp.json", ".vscode"] {
            fs::remove_file(at(name)).unwrap();
        }
        symlink("evil.json", at(".mcp.json")).unwrap();
        scene.write(".vscode/tasks.json", "");
        assert_eq!(scene.since(0), [".mcp.json (leads to evil.json)", ".vscode"]);
    }

    #[test]
    fn what_comes_beside_what_was_named_in_a_protected_place_is_told() {
        let scene = Scene::new();
        scene.write(".claude/commands/old.md", "");
        scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        let at = |name: &str| scene.dir.path().join("p").join(name);
        let named = [(".vscode", "settings.json"), (".claude/commands", "a/b.md")];
        scene.watch.open_beside(named.map(|(place, name)| (at(place), at(place).join(name))).into());
        scene.write(".vscode/settings.json", "");
        scene.write(".claude/commands/a/b.md", "");
        assert_eq!(scene.since(0), Vec::<String>::new());
        scene.write(".vscode/tasks.json", "");
        scene.write(".claude/commands/a/c.md", "");
        assert_eq!(scene.since(0), [".claude/commands/a/c.md", ".vscode/tasks.json"]);
    }

    #[test]
    fn what_a_configuration_of_git_leads_to_is_told_when_it_comes() {
        let scene = Scene::new();
        scene.repository(".git");
        let config = "[core]\n\thooksPath = .githooks\n[include]\n\tpath = ../more.ini\n";
        scene.write(".git/config", config);
        scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        assert_eq!(scene.since(0), Vec::<String>::new());
        scene.hook(".githooks/pre-commit");
        scene.write("more.ini", "[alias]\n\tst = !x\n");
        assert_eq!(scene.since(0), [".githooks/pre-commit", "more.ini"]);
    }

    #[test]
    fn everything_is_told_by_those_who_were_there_and_by_nobody_again() {
        let scene = Scene::new();
        scene.write("old/.envrc", "");
        scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        let (first, second) = (scene.watch.seen(), scene.watch.seen());
        scene.write("new/.envrc", "");
        assert_eq!(scene.since(first), ["new/.envrc"]);
        let third = scene.watch.seen();
        assert_eq!(scene.since(second), ["new/.envrc"], "it ran meanwhile");
        assert_eq!(scene.since(third), Vec::<String>::new());
        // A file that appears between the last scan and the start of a call may be created by a program that outlived its call.
        scene.write("late/.envrc", "");
        let fourth = scene.watch.seen();
        scene.watch.open(&[scene.dir.path().join("p/late")], None, &ScanBounds::default()).unwrap();
        assert_eq!(scene.since(fourth), ["late/.envrc"]);
        fs::remove_file(scene.dir.path().join("p/new/.envrc")).unwrap();
        scene.since(fourth);
        let fifth = scene.watch.seen();
        scene.write("new/.envrc", "");
        assert_eq!(scene.since(fifth), ["new/.envrc"], "it is there anew");
    }

    #[test]
    fn a_place_is_watched_from_when_it_is_opened() {
        let scene = Scene::opened();
        let other = scene.dir.path().join("other");
        scene.write("../other/.envrc", "");
        scene.repository("../other/.git");
        scene.watch.open(std::slice::from_ref(&other), None, &ScanBounds::default()).unwrap();
        scene.write("../other/.mcp.json", "");
        scene.write("../other/.git/commondir", "x");
        let there = |name: &str| other.join(name).to_str().unwrap().to_owned();
        assert_eq!(scene.since(0), [there(".git/commondir"), there(".mcp.json")]);
    }

    fn stopped() -> ScanBounds {
        ScanBounds::default().at_most(std::time::Duration::ZERO)
    }

    #[test]
    fn a_look_that_was_stopped_says_so_and_leaves_its_news_to_the_next() {
        let scene = Scene::opened();
        scene.write("a/.envrc", "");
        let (told, gap) = scene.watch.since(0, &stopped());
        assert_eq!(told, []);
        assert_eq!(
            gap.as_deref(),
            Some(
                "files that are obeyed later may have been made unseen: the scan of the project took too long"
            )
        );
        assert_eq!(scene.since(0), ["a/.envrc"]);
    }

    #[test]
    fn a_search_that_was_stopped_opens_nothing_and_the_next_is_whole() {
        let scene = Scene::new();
        scene.write("a/.env", "");
        scene.write(".bashrc", "");
        assert_eq!(scene.watch.open(&[], None, &stopped()).unwrap_err(), ScanStopped::TimedOut);
        let found = scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        assert_eq!(found.secrets, [scene.dir.path().join("p/a/.env")]);
        assert_eq!(scene.since(0), Vec::<String>::new(), "it was there before");
    }

    #[tokio::test]
    #[expect(clippy::await_holding_lock, reason = "it stands for the look of another call")]
    async fn a_call_starts_while_another_is_looking() {
        let (scene, mut cx) = (Scene::opened(), CallContext::new("/", "/"));
        let watch = Arc::new(scene.watch);
        cx.closed = ClosedPlaces::new(Path::new("/"), Rules::default(), None, Some(Arc::clone(&watch)));
        assert!(BeforeCall::of(&cx).await.is_ok());
        let _looking = watch.lock();
        cx.deadline = Some(tokio::time::Instant::now() + std::time::Duration::from_millis(20));
        assert!(matches!(BeforeCall::of(&cx).await, Err(ToolError::Timeout { .. })));
    }
}
