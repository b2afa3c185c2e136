use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use taskpawl_process::{
    Environment, Level, Network, Profile, ResourceLimits, Sandbox, Substitute, Way, follow,
    make_private_directories,
};
use thiserror::Error;

use super::closed::{ClosedPlaces, Opener, Place, Rules, Unopened};
use super::excluded_paths::{is_within, open_up, real};
use super::hard_links::OtherNames;
use super::late::{self, LateFiles};
use super::links::{Detour, leads_elsewhere, leads_out, links_in};
use super::named_grant::{GrantedCall, NamedGrant};
use super::places::SandboxPlaces;
use super::settings::{SandboxMode, SandboxSettings, Widening};
use super::{repositories, variables, worktree};
use crate::sandbox::watch::{Found, Watch};
use crate::scan::{ScanBounds, ScanStopped};

/// The sandbox of a run: the settings, applied to one project. Profiles are computed at their first use and kept.
#[derive(Debug)]
pub struct Confinement {
    settings: SandboxSettings,
    places: SandboxPlaces,
    /// Links in directories that control programs. The target of such a link needs the same protection as a file in its place.
    leading: Vec<PathBuf>,
    /// Written with the first profile.
    copies: OnceLock<Vec<Substitute>>,
    made: Mutex<HashMap<Widening, CallSandbox>>,
    /// Held while a profile is computed. The first calls of a run start at once, and only one of them should search the project.
    making: Mutex<()>,
    watch: Arc<Watch>,
}

/// The sandbox of one call. Cheap to clone, because each call gets its own copy.
#[derive(Clone, Debug, Default)]
pub struct CallSandbox {
    /// The profile for the programs of the call.
    pub sandbox: Sandbox,
    /// The environment of the programs, besides the variables of the call.
    pub environment: Arc<Environment>,
    /// Paths that the tools of this process must not touch. They apply even without a sandbox.
    pub closed: ClosedPlaces,
}

/// The reason why a request of a call is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// A requested path does not exist.
    #[error("`{path}` in `sandbox.{field}` does not exist; create it first, or use a parent directory", path = path.display())]
    NotThere {
        /// `read` or `write`.
        field: &'static str,
        /// The absolute path.
        path: PathBuf,
    },
    /// A requested path belongs to taskpawl itself.
    #[error("`{path}` in `sandbox.{field}` belongs to taskpawl, and programs may not use its files", path = path.display())]
    Own {
        /// `read` or `write`.
        field: &'static str,
        /// The absolute path.
        path: PathBuf,
    },
    /// A link on the way to a requested path leads elsewhere.
    #[error(
        "`{path}` in `sandbox.{field}` leads to `{to}`, because `{link}` is a link, which a program may have created; remove the link, or use `{to}` itself",
        path = path.display(), to = to.display(), link = link.display()
    )]
    Led {
        /// `read` or `write`.
        field: &'static str,
        /// The absolute path.
        path: PathBuf,
        /// The link.
        link: PathBuf,
        /// The target of the path.
        to: PathBuf,
    },
    /// The search of the project for files to hide reached its limits.
    #[error(transparent)]
    Stopped(#[from] ScanStopped),
}

impl Confinement {
    /// Creates the sandbox for a project at `places` with the user's `settings`.
    pub fn new(mut settings: SandboxSettings, mut places: SandboxPlaces) -> Self {
        if cfg!(not(feature = "programs")) {
            // Each start of a program is refused, so that none is searched for what it may see.
            settings.mode = SandboxMode::Off;
        }
        let watch = Arc::new(Watch::new(&places.root, places.baseline.clone()));
        let deciding = places.kept.iter().chain(&places.directories);
        let leading = unique(deciding.flat_map(|directory| links_in(directory)).collect());
        for link in &leading {
            let Way { links, end, .. } = follow(link);
            places.kept.extend([link.clone()].into_iter().chain(links).chain([end]));
        }
        let (copies, made, making) = Default::default();
        Self { settings, places, leading, copies, made, making, watch }
    }

    /// Returns the sandbox of calls in a worktree of the project, in which programs may write these parts of its repository.
    #[must_use]
    pub fn in_worktree(&self, root: &Path, repository: Vec<PathBuf>) -> Self {
        let (root, repository) = (root.to_owned(), Some(repository));
        let places = SandboxPlaces { root, repository, baseline: None, ..self.places.clone() };
        Self::new(self.settings.clone(), places)
    }

    /// Returns the parts of the repository behind a worktree that programs may write.
    fn repository(&self) -> Vec<PathBuf> {
        match &self.places.repository {
            Some(parts) => parts.clone(),
            None => worktree::common(&self.places.root).map(|common| common.directory).into_iter().collect(),
        }
    }

    /// Returns the sandbox of a call without any request.
    #[expect(clippy::missing_panics_doc, reason = "a bug of ours, never of the caller")]
    pub fn plain(&self) -> CallSandbox {
        let held = self.of_call(&Widening::default(), &ScanBounds::default());
        held.expect("BUG: who asks for nothing cannot be refused")
    }

    /// Returns the environment of a program without any request. Unlike [`plain`](Self::plain) it does not search the project.
    pub fn environment(&self) -> Environment {
        if self.is_off() {
            return Environment::default();
        }
        Environment::Exactly(variables::variables(&self.settings, &self.places, self.settings.net))
    }

    /// Returns whether the sandbox is switched off.
    pub fn is_off(&self) -> bool {
        self.settings.mode == SandboxMode::Off
    }

    /// Returns the directories in which programs may leave files that outlast the run. taskpawl must not run anything from them outside the
    /// sandbox.
    pub fn writable(&self) -> Vec<PathBuf> {
        let named = self.settings.write.iter().chain(&self.places.granted);
        let named = named.map(|path| self.places.absolute(path));
        std::iter::once(self.places.root.clone()).chain(named).collect()
    }

    /// Explains which paths of the settings stay closed because a link leads elsewhere.
    pub fn ignored(&self) -> Vec<String> {
        if self.settings.mode == SandboxMode::Off {
            return Vec::new();
        }
        let named = self.settings.write.iter().chain(&self.settings.read);
        let named = named.map(|path| self.places.absolute(path));
        let said = named.filter_map(|path| {
            let Detour { link, to } = self.detour(&path)?;
            let (path, link, to) = (path.display(), link.display(), to.display());
            Some(format!(
                "`{path}` stays closed to programs: `{link}` is a link to `{to}`, which a program may have created; remove it, or use its target itself"
            ))
        });
        unique(said.collect())
    }

    /// Returns the access that remembered grants give to a call. A path that is not there, or that a link leads elsewhere,
    /// stays closed.
    pub fn remembered(&self, call: GrantedCall<'_>) -> Widening {
        let mut widening = Widening::default();
        for remembered in self.settings.remembered.iter().filter(|remembered| remembered.is_of(call)) {
            match &remembered.grant {
                NamedGrant::Host(host) => widening.hosts.push(host.clone()),
                NamedGrant::Port(port) => widening.ports.push(*port),
                NamedGrant::Env(name) => widening.env.push(name.clone()),
                NamedGrant::Read(path) => widening.read.extend(self.admitted("read", path.clone())),
                NamedGrant::Write(path) | NamedGrant::Socket(path) => {
                    widening.write.extend(self.admitted("write", path.clone()));
                }
                // Never remembered.
                NamedGrant::Off | NamedGrant::Net => {}
            }
        }
        widening
    }

    /// Like [`of_call`](Self::of_call), but returns only a result that is already computed, without reading the file system.
    pub fn made(&self, widening: &Widening) -> Option<CallSandbox> {
        self.lock().get(widening).cloned()
    }

    /// Returns the sandbox of a call with the additional access of `widening`, which the policy must already have allowed.
    ///
    /// # Errors
    /// A path of the widening does not exist, belongs to taskpawl, or is led elsewhere by a link; or the search reached its `bounds`.
    pub fn of_call(&self, widening: &Widening, bounds: &ScanBounds) -> Result<CallSandbox, SandboxError> {
        if let Some(made) = self.made(widening) {
            return Ok(made);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        // The holder of the lock may have computed this very profile.
        if let Some(made) = self.made(widening) {
            return Ok(made);
        }
        let made = self.make(widening, bounds)?;
        self.lock().insert(widening.clone(), made.clone());
        Ok(made)
    }

    fn make(&self, widening: &Widening, bounds: &ScanBounds) -> Result<CallSandbox, SandboxError> {
        let mut rules = self.rules(widening)?;
        let root = &self.places.root;
        Ok(if self.settings.mode == SandboxMode::Off {
            CallSandbox { closed: ClosedPlaces::new(root, rules, None, None), ..CallSandbox::default() }
        } else {
            // First: a directory must exist before the profile is computed, since only existing paths can be covered.
            self.make_own(&rules.may_write);
            let common = worktree::common(root).map(|common| common.directory);
            let found = self.watch.open(&rules.may_write, common, bounds)?;
            // Repositories are known only after the search of the project, so their protected files are added here.
            let of_repositories = found.repositories.iter().flat_map(|git| repositories::obeyed(git));
            rules.read_only.extend(of_repositories.map(|path| Place { path, opener: Opener::Naming }));
            self.watch.open_beside(opened_in(&rules));
            let unrecorded = self.watch.record();
            let written = rules.may_write.iter().chain([root]).cloned().chain(self.repository()).collect();
            let OtherNames { places, gap } = OtherNames::of(&rules.read_only, written, bounds)?;
            rules.read_only.extend(places);
            let gaps = found.gap.iter().cloned().chain(gap).chain(unrecorded).collect();
            let profile = Arc::new(self.profile(widening, &rules, &found, gaps));
            let has_net = profile.network == Network::Full;
            let env = self.settings.env.iter().chain(&widening.env).cloned().collect();
            let settings = SandboxSettings { env, ..self.settings.clone() };
            let variables = variables::variables(&settings, &self.places, has_net);
            let unseen = variables::unseen(&self.places, &variables);
            let closed = ClosedPlaces::new(root, rules, Some(found.secrets), Some(Arc::clone(&self.watch)));
            CallSandbox {
                sandbox: Sandbox::On(profile),
                environment: Arc::new(Environment::Exactly(variables)),
                closed: closed.with_unseen(unseen),
            }
        })
    }

    /// Creates the missing directories and files of taskpawl that lie in writable places: only existing paths can be covered.
    fn make_own(&self, may_write: &[PathBuf]) {
        let open = may_write.iter().chain([&self.places.root]);
        let open: Vec<PathBuf> = open.map(|place| real(place)).collect();
        let is_missing = |path: &&PathBuf| !path.exists() && is_within(&real(path), &open);
        // Errors are ignored: `taskpawl-process` starts no program that could create a guarded path.
        for path in self.places.directories.iter().filter(is_missing) {
            let _ = make_private_directories(path);
        }
        for path in self.places.files.iter().filter(is_missing) {
            let _ = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        }
    }

    fn profile(&self, widening: &Widening, rules: &Rules, found: &Found, gaps: Vec<String>) -> Profile {
        let (settings, places) = (&self.settings, &self.places);
        // A path in the project is already open, so naming it only removes its protection. It is not added to the profile, where a link in
        // its place could open another path.
        let is_beside = |path: &&PathBuf| !path.starts_with(&places.root);
        // A closed directory is covered only beneath a writable one, so nothing would protect a writable path inside it.
        let unopened = Unopened::of(rules);
        let is_open = |path: &&PathBuf| !unopened.keeps(path);
        let mut write = vec![places.root.clone()];
        write.extend(rules.may_write.iter().filter(is_beside).filter(is_open).cloned());
        write.extend(places.temporary.clone());
        write.extend(places.artifacts_of_run.clone());
        write.extend(self.repository());

        let mut read_only = opened(&rules.read_only, Vec::new(), &rules.may_write);
        // A missing path cannot be covered. A gap for each of them would fill every result with paths that the user does not miss. Only
        // missing paths that control programs are reported.
        let is_there = |path: &PathBuf| !found.absent.contains(path) && path.symlink_metadata().is_ok();
        read_only.retain(|path| is_there(path) || is_within(path, &places.kept));

        let mut read = places.readable();
        read.extend(places.artifacts.clone());
        // Git reads all of a repository, also where it may write only a part.
        read.extend(worktree::common(&places.root).map(|common| common.directory));
        read.extend(rules.may_read.iter().filter(is_beside).cloned());
        let named: Vec<_> =
            rules.may_write.iter().chain(&rules.may_read).chain([&places.root]).cloned().collect();
        Profile {
            level: if settings.mode == SandboxMode::Strict { Level::Strict } else { Level::Standard },
            network: if settings.net || widening.net { Network::Full } else { Network::None },
            hosts: unique(settings.hosts.iter().chain(&widening.hosts).cloned().collect()),
            ports: unique(settings.ports.iter().chain(&widening.ports).copied().collect()),
            hidden: unique(opened(&rules.hidden, found.hidden(), &named)),
            administered: administered(rules),
            write: unique(write),
            read: unique(read),
            emptied: self.emptied(&named),
            private: places.private(),
            layers: places.layers(),
            copies: self.copies(&named),
            read_only: unique(read_only),
            guarded: places.directories.iter().chain(&self.leading).cloned().collect(),
            limits: ResourceLimits {
                memory: settings.memory,
                processes: settings.processes,
                ..ResourceLimits::default()
            },
            gaps: gaps.into_iter().chain(self.ignored()).chain(unopened.said(&rules.may_write)).collect(),
        }
    }

    /// Returns the settings files that programs see without their secrets, unless they were named.
    fn copies(&self, named: &[PathBuf]) -> Vec<Substitute> {
        let copies = self.copies.get_or_init(|| self.places.copies()).iter();
        copies.filter(|copy| !is_within(&copy.path, named)).cloned().collect()
    }

    /// Returns the home directory, unless a path that was named contains it.
    fn emptied(&self, named: &[PathBuf]) -> Vec<PathBuf> {
        let home =
            self.places.home().filter(|home| !named.iter().any(|path| real(home).starts_with(real(path))));
        home.into_iter().collect()
    }

    /// Returns the closed paths for a call, and the paths that the user or the call has named.
    fn rules(&self, widening: &Widening) -> Result<Rules, SandboxError> {
        let (settings, places) = (&self.settings, &self.places);
        let named = |paths: &[PathBuf], asked: Vec<PathBuf>| {
            // Without a sandbox the path restricts no program, and no gap would tell the user about the ignored path.
            let is_off = settings.mode == SandboxMode::Off;
            let set = paths.iter().map(|path| places.absolute(path));
            set.filter(|path| is_off || self.detour(path).is_none()).chain(asked).collect::<Vec<_>>()
        };
        let may_write = named(&settings.write, self.asked("write", &widening.write)?);
        let may_read = named(&settings.read, self.asked("read", &widening.read)?);

        let configured = |paths: &[PathBuf]| paths.iter().map(|path| places.absolute(path)).collect();
        let hidden = [
            (Opener::Naming, places.secret()),
            (Opener::Configuration, configured(&settings.hide)),
            (Opener::Nobody, places.own.clone()),
        ];
        let written = std::iter::once(&places.root).chain(&may_write);
        let mut obeyed: Vec<PathBuf> = written.flat_map(|path| SandboxPlaces::obeyed(path)).collect();
        obeyed.extend(worktree::common(&places.root).map(|common| common.obeyed).unwrap_or_default());
        let read_only = [
            (Opener::Naming, obeyed),
            (Opener::Configuration, configured(&settings.protect)),
            (Opener::Nobody, places.kept.clone()),
        ];
        Ok(Rules { hidden: closed(hidden), read_only: closed(read_only), may_write, may_read })
    }

    /// Checks the paths that a call requests, and returns them as absolute paths.
    fn asked(&self, field: &'static str, paths: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxError> {
        let paths = paths.iter().map(|path| self.places.absolute(path));
        if self.settings.mode == SandboxMode::Off {
            // Without a sandbox programs can reach everything anyway, and a missing path opens nothing.
            return Ok(paths.collect());
        }
        paths.map(|path| self.admitted(field, path)).collect()
    }

    /// Returns why calls with a widening would be refused if they started now, even after an approval. A missing path may be there by
    /// then.
    pub fn refusals(&self, widening: &Widening) -> Vec<SandboxError> {
        let refused = |field, paths: &[PathBuf]| -> Vec<SandboxError> {
            let paths = paths.iter().map(|path| self.places.absolute(path));
            paths.filter_map(|path| self.admitted(field, path).err()).collect()
        };
        [refused("read", &widening.read), refused("write", &widening.write)].concat()
    }

    fn admitted(&self, field: &'static str, path: PathBuf) -> Result<PathBuf, SandboxError> {
        let is_kept = field == "write" && is_within(&path, &self.places.kept);
        if is_kept || is_within(&path, &self.places.own) {
            return Err(SandboxError::Own { field, path });
        }
        if let Some(Detour { link, to }) = self.detour_of_request(&path) {
            return Err(SandboxError::Led { field, path, link, to });
        }
        if path.exists() { Ok(path) } else { Err(SandboxError::NotThere { field, path }) }
    }

    /// Returns the link that leads a path of the settings elsewhere, if programs may have created the link.
    fn detour(&self, path: &Path) -> Option<Detour> {
        let others = self.settings.write.iter().map(|place| self.places.absolute(place));
        let others = others.filter(|place| place != path);
        let writable: Vec<PathBuf> = std::iter::once(self.places.root.clone()).chain(others).collect();
        leads_out(path, &writable)
    }

    /// Returns the link that leads a requested path elsewhere.
    ///
    /// Outside the project every such link is refused: it may have been created after the request was approved.
    fn detour_of_request(&self, path: &Path) -> Option<Detour> {
        let root = &self.places.root;
        if path.starts_with(root) {
            return leads_out(path, std::slice::from_ref(root));
        }
        let home = self.places.home();
        let known: Vec<&Path> = home.as_deref().into_iter().chain([root.as_path()]).collect();
        leads_elsewhere(path, &known)
    }

    /// Searches once more for new files that other programs obey, after the last program of the run has ended. Files that a call has
    /// reported are left out.
    ///
    /// The record of the run is removed then, unless the search was stopped: the next run compares with it.
    ///
    /// # Errors
    /// The search reached its `bounds`.
    pub fn last_look(&self, bounds: &ScanBounds) -> Result<LateFiles, ScanStopped> {
        self.watch.last(bounds)
    }

    /// Returns the new files that other programs obey since the start of a run that was killed. `baseline` is the record of that run, as
    /// [`SandboxPlaces::baseline`] names it, and is removed.
    ///
    /// # Errors
    /// The search reached its `bounds`.
    pub fn left_by(&self, baseline: &Path, bounds: &ScanBounds) -> Result<LateFiles, ScanStopped> {
        late::left_by(&self.places.root, baseline, bounds)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Widening, CallSandbox>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed(places: [(Opener, Vec<PathBuf>); 3]) -> Vec<Place> {
    let of =
        |(opener, paths): (Opener, Vec<PathBuf>)| paths.into_iter().map(move |path| Place { path, opener });
    places.into_iter().flat_map(of).collect()
}

/// Returns the paths that a mount alone may hide, without Landlock. Paths that the configuration or taskpawl closes are excluded, because
/// programs may be able to create or replace them.
fn administered(rules: &Rules) -> Vec<PathBuf> {
    let by_others: Vec<_> = rules.hidden.iter().filter(|place| place.opener != Opener::Naming).collect();
    let is_closed_by_others = |path: &PathBuf| by_others.iter().any(|place| path.starts_with(&place.path));
    SandboxPlaces::administered().into_iter().filter(|path| !is_closed_by_others(path)).collect()
}

/// Returns the paths of `places` and `more`, without the `named` ones as far as naming opens them.
fn opened(places: &[Place], more: Vec<PathBuf>, named: &[PathBuf]) -> Vec<PathBuf> {
    let (by_naming, others): (Vec<_>, Vec<_>) =
        places.iter().partition(|place| place.opener == Opener::Naming);
    let by_naming = by_naming.into_iter().map(|place| place.path.clone()).chain(more).collect();
    let others = others.into_iter().map(|place| place.path.clone());
    open_up(by_naming, named).into_iter().chain(others).collect()
}

/// Returns pairs of a protected directory and a path in it that was named for writing. Files that appear beside that path cannot be
/// covered, so they are watched.
fn opened_in(rules: &Rules) -> Vec<(PathBuf, PathBuf)> {
    let by_naming = rules.read_only.iter().filter(|place| place.opener == Opener::Naming);
    let named_in = |place: &Path| {
        let inner = rules.may_write.iter().filter(|named| **named != place && named.starts_with(place));
        inner.map(|named| (place.to_owned(), named.clone())).collect::<Vec<_>>()
    };
    by_naming.flat_map(|place| named_in(&place.path)).collect()
}

fn unique<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items.dedup();
    items
}

#[cfg(test)]
mod tests;
