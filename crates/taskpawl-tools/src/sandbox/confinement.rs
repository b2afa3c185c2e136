use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use taskpawl_process::{Environment, Level, Network, Profile, ResourceLimits, Sandbox, Way, follow};
use thiserror::Error;

use super::carve::{is_within, open_up, real};
use super::closed::{ClosedPlaces, Opener, Place, Rules, Unopened};
use super::hard_links::OtherNames;
use super::links::{Detour, leads_elsewhere, leads_out, links_in};
use super::made::{Found, Watch};
use super::places::SandboxPlaces;
use super::settings::{SandboxMode, SandboxSettings, Widening};
use super::{repositories, variables, worktree};

/// What holds the programs of one run: the settings at one place. Profiles are made when they are first asked for, and kept.
#[derive(Debug)]
pub struct Confinement {
    settings: SandboxSettings,
    places: SandboxPlaces,
    /// The links in what decides about programs: what one of them leads to decides as a file there would.
    leading: Vec<PathBuf>,
    made: Mutex<HashMap<Widening, CallSandbox>>,
    /// Held by whoever makes one: the first calls of a run start at once, and only one of them is to search the project.
    making: Mutex<()>,
    watch: Arc<Watch>,
}

/// What one call is held to. Cheap to clone: every call has one.
#[derive(Clone, Debug, Default)]
pub struct CallSandbox {
    /// What they may do.
    pub sandbox: Sandbox,
    /// What they see beside the variables of the call.
    pub environment: Arc<Environment>,
    /// What tools of this process leave alone; also without a sandbox.
    pub closed: ClosedPlaces,
}

/// Why a call cannot have what it asks for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// A path is not there.
    #[error("`{path}` in `sandbox.{field}` does not exist; make it first, or name a directory above it", path = path.display())]
    NotThere {
        /// `read` or `write`.
        field: &'static str,
        /// The path, absolute.
        path: PathBuf,
    },
    /// A path belongs to taskpawl itself.
    #[error("`{path}` in `sandbox.{field}` belongs to taskpawl itself, whose files programs leave alone", path = path.display())]
    Own {
        /// `read` or `write`.
        field: &'static str,
        /// The path, absolute.
        path: PathBuf,
    },
    /// A path leads by a link to another place than it is called.
    #[error(
        "`{path}` in `sandbox.{field}` leads to `{to}`, because `{link}` is a link, which programs may have made; remove the link, or \
         name `{to}` itself",
        path = path.display(), to = to.display(), link = link.display()
    )]
    Led {
        /// `read` or `write`.
        field: &'static str,
        /// The path, absolute.
        path: PathBuf,
        /// The link.
        link: PathBuf,
        /// Where the path leads.
        to: PathBuf,
    },
}

impl Confinement {
    /// Returns what holds programs at `places` by `settings`.
    pub fn new(settings: SandboxSettings, mut places: SandboxPlaces) -> Self {
        let watch = Arc::new(Watch::new(&places.root));
        let deciding = places.kept.iter().chain(&places.directories);
        let leading = unique(deciding.flat_map(|directory| links_in(directory)).collect());
        for link in &leading {
            let Way { links, end, .. } = follow(link);
            places.kept.extend([link.clone()].into_iter().chain(links).chain([end]));
        }
        Self { settings, places, leading, made: Mutex::default(), making: Mutex::default(), watch }
    }

    /// Returns what programs are held to that ask for nothing.
    #[expect(clippy::missing_panics_doc, reason = "a bug of ours, never of the caller")]
    pub fn plain(&self) -> CallSandbox {
        self.of_call(&Widening::default()).expect("BUG: who asks for nothing cannot be refused")
    }

    /// Returns the places in which programs may leave files that outlast the run: from there nothing is run outside of the sandbox.
    pub fn writable(&self) -> Vec<PathBuf> {
        let named = self.settings.write.iter().chain(&self.places.granted);
        let named = named.map(|path| self.places.absolute(path));
        std::iter::once(self.places.root.clone()).chain(named).collect()
    }

    /// Says which places of the settings are not open, because links lead them away.
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
                "`{path}` is not opened to programs: `{link}` is a link, which they may have made, and leads to `{to}`; \
                 remove it, or name that place itself"
            ))
        });
        unique(said.collect())
    }

    /// As [`of_call`](Self::of_call), if that was asked for before: then nothing has to be looked up.
    pub fn made(&self, widening: &Widening) -> Option<CallSandbox> {
        self.lock().get(widening).cloned()
    }

    /// Returns what a call is held to that may do what `widening` says besides. Whether it may is decided before.
    ///
    /// # Errors
    /// A path of the widening does not exist, or belongs to taskpawl.
    pub fn of_call(&self, widening: &Widening) -> Result<CallSandbox, SandboxError> {
        if let Some(made) = self.made(widening) {
            return Ok(made);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever made another one meanwhile may have made this one.
        if let Some(made) = self.made(widening) {
            return Ok(made);
        }
        let made = self.make(widening)?;
        self.lock().insert(widening.clone(), made.clone());
        Ok(made)
    }

    fn make(&self, widening: &Widening) -> Result<CallSandbox, SandboxError> {
        let mut rules = self.rules(widening)?;
        let root = &self.places.root;
        Ok(if self.settings.mode == SandboxMode::Off {
            CallSandbox { closed: ClosedPlaces::new(root, rules, None, None), ..CallSandbox::default() }
        } else {
            self.make_own(&rules.may_write);
            let common = worktree::common(root).map(|common| common.directory);
            let found = self.watch.open(&rules.may_write, common.clone());
            let of_repositories = found.repositories.iter().flat_map(|git| repositories::obeyed(git));
            rules.read_only.extend(of_repositories.map(|path| Place { path, opener: Opener::Naming }));
            self.watch.open_beside(opened_in(&rules));
            let written = rules.may_write.iter().chain([root]).cloned().chain(common).collect();
            let OtherNames { places, gap } = OtherNames::of(&rules.read_only, written);
            rules.read_only.extend(places);
            let gaps = found.gap.iter().cloned().chain(gap).collect();
            let profile = Arc::new(self.profile(widening, &rules, &found, gaps));
            let has_net = profile.network == Network::Full;
            let variables = variables::variables(&self.settings, &self.places, has_net);
            CallSandbox {
                sandbox: Sandbox::On(profile),
                environment: Arc::new(Environment::Exactly(variables)),
                closed: ClosedPlaces::new(root, rules, Some(found.secrets), Some(Arc::clone(&self.watch))),
            }
        })
    }

    /// Makes the directories and files of taskpawl that lie in places which programs may write: what is there is covered.
    fn make_own(&self, may_write: &[PathBuf]) {
        let open = may_write.iter().chain([&self.places.root]);
        let open: Vec<PathBuf> = open.map(|place| real(place)).collect();
        let is_missing = |path: &&PathBuf| !path.exists() && is_within(&real(path), &open);
        // Where programs could make what could not be made here, none is started.
        for path in self.places.directories.iter().filter(is_missing) {
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        }
        for path in self.places.files.iter().filter(is_missing) {
            let _ = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        }
    }

    fn profile(&self, widening: &Widening, rules: &Rules, found: &Found, gaps: Vec<String>) -> Profile {
        let (settings, places) = (&self.settings, &self.places);
        // What is in the project is open with it, so that what lies there by then cannot lead elsewhere: naming it only lifts what is
        // closed.
        let is_beside = |path: &&PathBuf| !path.starts_with(&places.root);
        // A place in one that stays closed would lie in nothing that is covered.
        let unopened = Unopened::of(rules);
        let is_open = |path: &&PathBuf| !unopened.keeps(path);
        let mut write = vec![places.root.clone()];
        write.extend(rules.may_write.iter().filter(is_beside).filter(is_open).cloned());
        write.extend(places.temporary.clone());
        write.extend(worktree::common(&places.root).map(|common| common.directory));

        let mut read_only = opened(&rules.read_only, Vec::new(), &rules.may_write);
        // What is not there cannot be covered; saying so of each would fill every result with what nobody misses.
        let is_there = |path: &PathBuf| !found.absent.contains(path) && path.symlink_metadata().is_ok();
        read_only.retain(|path| is_there(path) || is_within(path, &places.kept));

        let mut read = places.readable();
        read.extend(rules.may_read.iter().filter(is_beside).cloned());
        let named: Vec<_> =
            rules.may_write.iter().chain(&rules.may_read).chain([&places.root]).cloned().collect();
        Profile {
            level: if settings.mode == SandboxMode::Strict { Level::Strict } else { Level::Standard },
            network: if settings.net || widening.net { Network::Full } else { Network::None },
            hidden: unique(opened(&rules.hidden, found.hidden(), &named)),
            administered: administered(rules),
            write: unique(write),
            read: unique(read),
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

    /// Returns what is closed to a call, and what of it was named by the user or by the call.
    fn rules(&self, widening: &Widening) -> Result<Rules, SandboxError> {
        let (settings, places) = (&self.settings, &self.places);
        let named = |paths: &[PathBuf], asked: Vec<PathBuf>| {
            // With `off` nothing is held back by it, and nobody would say what is left out.
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

    /// Returns the paths that a call asks for, as absolute ones.
    fn asked(&self, field: &'static str, paths: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxError> {
        let paths = paths.iter().map(|path| self.places.absolute(path));
        if self.settings.mode == SandboxMode::Off {
            // Its programs have everything anyway; what is not there opens nothing.
            return Ok(paths.collect());
        }
        paths.map(|path| self.admitted(field, path)).collect()
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

    /// Returns the link by which a place that the settings name lies elsewhere, where programs may have made it.
    fn detour(&self, path: &Path) -> Option<Detour> {
        let others = self.settings.write.iter().map(|place| self.places.absolute(place));
        let others = others.filter(|place| place != path);
        let writable: Vec<PathBuf> = std::iter::once(self.places.root.clone()).chain(others).collect();
        leads_out(path, &writable)
    }

    /// Returns the link by which a place that a call asks for lies elsewhere. Outside of the project it may have been made since
    /// somebody approved the place, so there is none.
    fn detour_of_request(&self, path: &Path) -> Option<Detour> {
        let root = &self.places.root;
        if path.starts_with(root) {
            return leads_out(path, std::slice::from_ref(root));
        }
        let home = self.places.home();
        let known: Vec<&Path> = home.as_deref().into_iter().chain([root.as_path()]).collect();
        leads_elsewhere(path, &known)
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

/// Returns what mounts alone may hide: what the configuration closes may come to be there by anybody's hand.
fn administered(rules: &Rules) -> Vec<PathBuf> {
    let by_others: Vec<_> = rules.hidden.iter().filter(|place| place.opener != Opener::Naming).collect();
    let is_closed_by_others = |path: &PathBuf| by_others.iter().any(|place| path.starts_with(&place.path));
    SandboxPlaces::administered().into_iter().filter(|path| !is_closed_by_others(path)).collect()
}

/// Returns the paths of places and `more` without what is `named`, where naming opens them.
fn opened(places: &[Place], more: Vec<PathBuf>, named: &[PathBuf]) -> Vec<PathBuf> {
    let (by_naming, others): (Vec<_>, Vec<_>) =
        places.iter().partition(|place| place.opener == Opener::Naming);
    let by_naming = by_naming.into_iter().map(|place| place.path.clone()).chain(more).collect();
    let others = others.into_iter().map(|place| place.path.clone());
    open_up(by_naming, named).into_iter().chain(others).collect()
}

/// Returns the protected places in which something was named to be written, with that: what comes beside it cannot be covered.
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
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Scene {
        dir: tempfile::TempDir,
        settings: SandboxSettings,
    }

    impl Scene {
        fn new() -> Self {
            let scene = Self { dir: tempfile::tempdir().unwrap(), settings: SandboxSettings::default() };
            for name in [
                "project/.git/hooks",
                "project/.taskpawl",
                "home/.ssh",
                "home/.docker/buildx",
                "home/.docker/run",
                "own/output",
                "data",
            ] {
                fs::create_dir_all(scene.at(name)).unwrap();
            }
            for name in [
                "project/.env",
                "project/.git/config",
                "home/.bashrc",
                "home/.docker/config.json",
                "own/tasks.db",
            ] {
                fs::write(scene.at(name), "").unwrap();
            }
            scene
        }

        fn at(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn confinement(&self) -> Confinement {
            let places = SandboxPlaces {
                root: self.at("project"),
                temporary: Some(self.at("tmp")),
                own: vec![self.at("own")],
                kept: vec![self.at("home/.config/taskpawl")],
                directories: vec![self.at("home/.config/taskpawl"), self.at("own/state")],
                files: vec![self.at("project/tasks.db-journal"), self.at("own/tasks.db-journal")],
                granted: Vec::new(),
                variables: [("HOME".into(), self.at("home").into())].into(),
            };
            Confinement::new(self.settings.clone(), places)
        }

        fn profile(&self, widening: &Widening) -> Result<Arc<Profile>, SandboxError> {
            self.confinement().of_call(widening).map(profile_of)
        }

        fn plain(&self) -> Arc<Profile> {
            self.profile(&Widening::default()).unwrap()
        }
    }

    fn profile_of(held: CallSandbox) -> Arc<Profile> {
        match held.sandbox {
            Sandbox::On(profile) => profile,
            Sandbox::Off => panic!("there is a sandbox"),
        }
    }

    #[test]
    fn calls_that_start_at_once_look_through_the_project_once() {
        const CALLS: usize = 16;
        let scene = Scene::new();
        let (confinement, start) = (scene.confinement(), std::sync::Barrier::new(CALLS));
        let profiles = std::thread::scope(|scope| {
            let first = || {
                start.wait();
                profile_of(confinement.plain())
            };
            let calls: Vec<_> = (0..CALLS).map(|_| scope.spawn(first)).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(profiles.iter().all(|profile| Arc::ptr_eq(profile, &profiles[0])), "each has its own");
    }

    #[test]
    fn what_was_made_is_there_while_another_is_being_made() {
        let scene = Scene::new();
        let confinement = Arc::new(scene.confinement());
        confinement.plain();
        let (sender, receiver) = std::sync::mpsc::channel();
        let _another = confinement.making.lock().unwrap();
        let asking = Arc::clone(&confinement);
        std::thread::spawn(move || sender.send(profile_of(asking.plain())));
        receiver.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    }

    #[test]
    fn programs_write_to_the_project_and_their_temporary_directory_alone() {
        let scene = Scene::new();
        let profile = scene.plain();
        assert_eq!(profile.write, [scene.at("project"), scene.at("tmp")]);
        assert_eq!((profile.level, profile.network), (Level::Standard, Network::None));
        for name in ["project/.git/hooks", "project/.git/config", "project/.taskpawl"] {
            assert!(profile.read_only.contains(&scene.at(name)), "{name}");
        }
    }

    /// A journal decides what the store holds that it lies beside.
    #[test]
    fn files_of_a_store_in_the_project_are_there_before_programs_could_make_them() {
        let scene = Scene::new();
        scene.plain();
        assert_eq!(fs::read(scene.at("project/tasks.db-journal")).unwrap(), b"");
        assert!(!scene.at("own/tasks.db-journal").exists(), "no program could make it");
    }

    #[test]
    fn repositories_within_the_project_are_kept_as_its_own_is() {
        let scene = Scene::new();
        let kept = [
            "project/taskpawl-policy.toml",
            "project/lib/.git/config",
            "project/.git/modules/m/config",
            "project/.git/worktrees/w/commondir",
            "project/m/.git",
        ];
        for name in kept.iter().chain(&["project/.git/modules/m/HEAD", "project/lib/.git/HEAD"]) {
            fs::create_dir_all(scene.at(name).parent().unwrap()).unwrap();
            fs::write(scene.at(name), "").unwrap();
        }
        let profile = scene.plain();
        for name in kept {
            assert!(profile.read_only.contains(&scene.at(name)), "{name}: {:?}", profile.read_only);
        }
        assert!(!profile.read_only.contains(&scene.at("project/lib/.git/HEAD")));
    }

    #[test]
    fn secrets_and_what_is_our_own_are_hidden() {
        let scene = Scene::new();
        let profile = scene.plain();
        for name in ["home/.ssh", "home/.docker", "project/.env", "own/tasks.db", "own/output"] {
            assert!(is_within(&scene.at(name), &profile.hidden), "{name}");
        }
        assert!(profile.read.contains(&scene.at("home")));
        assert!(!is_within(&scene.at("own/output"), &profile.read));
    }

    #[test]
    fn what_the_configuration_hides_is_not_left_to_mounts() {
        let mut scene = Scene::new();
        let wireguard = PathBuf::from("/etc/wireguard");
        assert!(scene.plain().administered.contains(&wireguard));
        scene.settings.hide = vec![wireguard.clone()];
        let profile = scene.plain();
        assert!(profile.hidden.contains(&wireguard) && !profile.administered.contains(&wireguard));
        assert!(profile.administered.contains(&PathBuf::from("/etc/shadow")));
    }

    #[test]
    fn who_listens_in_the_project_is_hidden_unless_named() {
        let mut scene = Scene::new();
        let bind = |name: &str| std::os::unix::net::UnixListener::bind(scene.at(name)).unwrap();
        let _listener = bind("project/dev.sock");
        drop(bind("project/left.sock"));
        assert!(!scene.plain().hidden.contains(&scene.at("project/left.sock")), "nobody listens there");
        assert!(scene.plain().hidden.contains(&scene.at("project/dev.sock")));
        scene.settings.read = vec!["dev.sock".into()];
        assert!(!scene.plain().hidden.contains(&scene.at("project/dev.sock")));
    }

    #[test]
    fn what_is_named_is_open_and_nothing_above_it() {
        let mut scene = Scene::new();
        scene.settings.read = vec!["~/.docker/buildx".into(), ".env".into()];
        scene.settings.write = vec![".git/config".into(), scene.at("home")];
        let profile = scene.plain();
        let is_hidden = |name: &str| is_within(&scene.at(name), &profile.hidden);
        assert!(!is_hidden("home/.docker/buildx") && !is_hidden("project/.env"));
        assert!(is_hidden("home/.docker/config.json") && is_hidden("home/.docker/run"));
        assert!(is_hidden("home/.ssh"), "the home was named, not this");
        assert!(!profile.read_only.contains(&scene.at("project/.git/config")));
        assert!(profile.read_only.contains(&scene.at("project/.git/hooks")));
        for name in ["home/.bashrc", "home/.config/taskpawl"] {
            assert!(profile.read_only.contains(&scene.at(name)), "whoever may write the home: {name}");
        }
    }

    #[test]
    fn what_decides_about_programs_stays_closed_when_it_is_named() {
        let mut scene = Scene::new();
        fs::create_dir_all(scene.at("home/.config/taskpawl/more")).unwrap();
        fs::create_dir_all(scene.at("srv/keep")).unwrap();
        fs::write(scene.at("home/.config/taskpawl/config.toml"), "").unwrap();
        std::os::unix::fs::symlink(scene.at("home/.config/taskpawl"), scene.at("home/other")).unwrap();
        scene.settings.protect = vec![scene.at("srv/keep")];
        let kept = [
            "home/.config/taskpawl",
            "home/.config/taskpawl/config.toml",
            "home/.config/taskpawl/more",
            "home/other/config.toml",
            "srv/keep",
        ];
        scene.settings.write = kept.iter().chain(&["data"]).map(|name| scene.at(name)).collect();
        let profile = scene.plain();
        assert_eq!(profile.write, [scene.at("data"), scene.at("project"), scene.at("tmp")]);
        assert_eq!(profile.gaps.len(), kept.len(), "{:?}", profile.gaps);
        let gap = profile.gaps[1].replace(scene.dir.path().to_str().unwrap(), "");
        insta::assert_snapshot!(gap, @"`/home/.config/taskpawl/config.toml` is not opened to programs, because it decides about them");
        let gap = profile.gaps[4].replace(scene.dir.path().to_str().unwrap(), "");
        insta::assert_snapshot!(gap, @"`/srv/keep` is not opened to programs: `protect` in `[sandbox]` of the configuration names it");
    }

    #[test]
    fn what_decides_about_programs_is_made_before_they_can_make_it() {
        let mut scene = Scene::new();
        let (config, state) = (scene.at("home/.config/taskpawl"), scene.at("own/state"));
        scene.plain();
        assert!(!config.exists(), "nobody may make it");
        fs::create_dir(scene.at("home/.config")).unwrap();
        scene.settings.write = vec!["~/.config".into()];
        let profile = scene.plain();
        assert!(profile.read_only.contains(&config));
        assert_eq!(config.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!state.exists());
        fs::remove_dir(&config).unwrap();
        scene.settings.write.clear();
        scene.profile(&Widening { write: vec![scene.at("home")], ..Widening::default() }).unwrap();
        assert!(config.is_dir(), "it is the same where a call asks for the place");
    }

    #[test]
    fn what_decides_about_programs_is_guarded_wherever_links_lead() {
        let mut scene = Scene::new();
        fs::create_dir_all(scene.at("home/dots/config")).unwrap();
        std::os::unix::fs::symlink("dots/config", scene.at("home/.config")).unwrap();
        scene.settings.write = vec![scene.at("home")];
        let profile = scene.plain();
        assert_eq!(profile.guarded, [scene.at("home/.config/taskpawl"), scene.at("own/state")]);
        assert!(
            scene.at("home/dots/config/taskpawl").is_dir(),
            "nothing can be mounted on what is not there"
        );
    }

    #[test]
    fn a_call_gets_what_it_asks_for_and_only_that() {
        let scene = Scene::new();
        let data = Widening { net: true, write: vec![scene.at("data")], read: Vec::new() };
        let profile = scene.profile(&data).unwrap();
        assert!(profile.write.contains(&scene.at("data")) && profile.network == Network::Full);
        assert!(!scene.plain().write.contains(&scene.at("data")));
    }

    #[test]
    fn a_call_cannot_ask_for_what_is_not_there_or_our_own() {
        let scene = Scene::new();
        let asked = |path: PathBuf| {
            let widening = Widening { read: vec![path], ..Widening::default() };
            scene.profile(&widening).unwrap_err().to_string().replace(scene.dir.path().to_str().unwrap(), "")
        };
        insta::assert_snapshot!(asked(scene.at("nowhere")), @"`/nowhere` in `sandbox.read` does not exist; make it first, or name a directory above it");
        insta::assert_snapshot!(asked("../own/tasks.db".into()), @"`/own/tasks.db` in `sandbox.read` belongs to taskpawl itself, whose files programs leave alone");
    }

    #[test]
    fn a_link_leads_no_named_place_out_of_the_project() {
        let mut scene = Scene::new();
        fs::create_dir_all(scene.at("project/build")).unwrap();
        let asking = |scene: &Scene, path: PathBuf| {
            let widening = Widening { write: vec![path], ..Widening::default() };
            scene.profile(&widening).map_err(|error| {
                error.to_string().replace(scene.dir.path().canonicalize().unwrap().to_str().unwrap(), "")
            })
        };
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(scene.at(to), scene.at(name)).unwrap();
        let built = asking(&scene, "build".into()).unwrap();
        assert!(
            !built.write.contains(&scene.at("project/build")),
            "a link that comes there now opens nothing"
        );
        link("project/build", "project/within");
        asking(&scene, "within".into()).unwrap();
        link("data", "project/cache");
        insta::assert_snapshot!(asking(&scene, "cache".into()).unwrap_err(), @"`/project/cache` in `sandbox.write` leads to `/data`, because `/project/cache` is a link, which programs may have made; remove the link, or name `/data` itself");
        asking(&scene, "cache/below".into()).unwrap_err();
        // Outside of the project, whoever approved it did not see the link.
        link("data", "home/data");
        asking(&scene, "~/data".into()).unwrap_err();
        asking(&scene, scene.at("data")).unwrap();

        scene.settings.write = vec!["cache".into(), "~/data".into()];
        let profile = scene.plain();
        assert!(profile.write.contains(&scene.at("home/data")), "no program may have made this link");
        let gaps = profile.gaps.join("\n");
        assert!(gaps.contains("project/cache` is not opened to programs"), "{gaps}");
        scene.settings.write.push(scene.at("home"));
        assert!(!scene.plain().write.contains(&scene.at("home/data")), "now they may");
    }

    #[test]
    fn without_a_sandbox_nothing_is_held_back() {
        let confinement = Confinement::new(SandboxSettings::off(), SandboxPlaces::default());
        let held = confinement.of_call(&Widening { net: true, ..Widening::default() }).unwrap();
        assert_eq!(held.sandbox, Sandbox::Off);
        assert_eq!(*held.environment, Environment::default());
    }
}
