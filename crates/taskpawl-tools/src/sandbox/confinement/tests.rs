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
            private: None,
            own: vec![self.at("own")],
            kept: vec![self.at("home/.config/taskpawl")],
            directories: vec![self.at("home/.config/taskpawl"), self.at("own/state")],
            files: vec![self.at("project/tasks.db-journal"), self.at("own/tasks.db-journal")],
            granted: Vec::new(),
            repository: None,
            baseline: None,
            artifacts: None,
            artifacts_of_run: None,
            variables: [("HOME".into(), self.at("home").into())].into(),
        };
        Confinement::new(self.settings.clone(), places)
    }

    fn profile(&self, widening: &Widening) -> Result<Arc<Profile>, SandboxError> {
        self.confinement().of_call(widening, &ScanBounds::default()).map(profile_of)
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

/// SQLite rolls a journal beside a store back at the next opening, so a program that creates one could change the plan.
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
    insta::assert_snapshot!(gap, @"`/home/.config/taskpawl/config.toml` stays closed to programs, because it controls their permissions");
    let gap = profile.gaps[4].replace(scene.dir.path().to_str().unwrap(), "");
    insta::assert_snapshot!(gap, @"`/srv/keep` stays closed to programs: it is in `protect` in `[sandbox]` of the configuration");
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
    assert!(scene.at("home/dots/config/taskpawl").is_dir(), "nothing can be mounted on what is not there");
}

#[test]
fn a_call_gets_what_it_asks_for_and_only_that() {
    let scene = Scene::new();
    let data = Widening { net: true, write: vec![scene.at("data")], ..Widening::default() };
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
    insta::assert_snapshot!(asked(scene.at("nowhere")), @"`/nowhere` in `sandbox.read` does not exist; create it first, or use a parent directory");
    insta::assert_snapshot!(asked("../own/tasks.db".into()), @"`/own/tasks.db` in `sandbox.read` belongs to taskpawl, and programs may not use its files");
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
    assert!(!built.write.contains(&scene.at("project/build")), "a link that comes there now opens nothing");
    link("project/build", "project/within");
    asking(&scene, "within".into()).unwrap();
    link("data", "project/cache");
    insta::assert_snapshot!(asking(&scene, "cache".into()).unwrap_err(), @"`/project/cache` in `sandbox.write` leads to `/data`, because `/project/cache` is a link, which a program may have created; remove the link, or use `/data` itself");
    asking(&scene, "cache/below".into()).unwrap_err();
    // Outside the project, the approval was given for the path alone: the link may be younger.
    link("data", "home/data");
    asking(&scene, "~/data".into()).unwrap_err();
    asking(&scene, scene.at("data")).unwrap();

    scene.settings.write = vec!["cache".into(), "~/data".into()];
    let profile = scene.plain();
    assert!(profile.write.contains(&scene.at("home/data")), "no program may have made this link");
    let gaps = profile.gaps.join("\n");
    assert!(gaps.contains("project/cache` stays closed to programs"), "{gaps}");
    scene.settings.write.push(scene.at("home"));
    assert!(!scene.plain().write.contains(&scene.at("home/data")), "now they may");
}

#[test]
fn without_a_sandbox_nothing_is_held_back() {
    let confinement = Confinement::new(SandboxSettings::off(), SandboxPlaces::default());
    let held =
        confinement.of_call(&Widening { net: true, ..Widening::default() }, &ScanBounds::default()).unwrap();
    assert_eq!(held.sandbox, Sandbox::Off);
    assert_eq!(*held.environment, Environment::default());
}
