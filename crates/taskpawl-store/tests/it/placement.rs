//! The location of the store of a project.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use taskpawl_store::{
    AllowedRoots, CopyChoice, Environment, Location, PlacementError, RootKind, Rule, StorePlacement,
    initialize, locate, open, plan_project, resolve_copy,
};

use crate::support::{accept, create, task};

/// A home directory and a directory for projects, with resolved links because temporary directories may be
/// links.
struct World {
    _directory: tempfile::TempDir,
    top: PathBuf,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(directory.path()).unwrap();
        Self { _directory: directory, top }
    }

    fn make(&self, path: &str) -> PathBuf {
        let path = self.top.join(path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn at(&self, directory: &Path) -> Environment {
        Environment {
            home: Some(self.top.join("home")),
            directory: directory.to_owned(),
            ..Environment::default()
        }
    }

    fn state(&self, id: &str) -> PathBuf {
        self.top.join("home/.local/state/taskpawl").join(id)
    }

    fn project(&self, path: &str, id: &str) -> StorePlacement {
        initialize(&self.at(&self.make(path)), id, None).unwrap()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_store_of_a_project_is_in_the_state_directory() {
    let world = World::new();
    let place = world.project("p", "id-1");
    let database = world.state("id-1").join("tasks.db");
    assert_eq!((place.rule, &place.location), (Rule::StateDirectory, &Location::Sqlite(database.clone())));
    assert_eq!(fs::read_to_string(world.top.join("p/.taskpawl/.gitignore")).unwrap(), "*\n");
    let below = world.make("p/a/b");
    assert_eq!(locate(&world.at(&below)).unwrap(), place);
    accept(&open(&place.location), create(task("a")));
    assert_eq!(mode(&world.state("id-1")), 0o700);
    assert_eq!([mode(&database), mode(&world.state("id-1").join("tasks.db-wal"))], [0o600; 2]);
    let xdg = Environment { xdg_state_home: Some(world.top.join("xdg")), ..world.at(&below) };
    let place = locate(&xdg).unwrap();
    assert_eq!(place.location, Location::Sqlite(world.top.join("xdg/taskpawl/id-1/tasks.db")));
}

#[test]
fn a_second_init_changes_nothing() {
    let world = World::new();
    let first = world.project("p", "id-1");
    let file = fs::read(world.top.join("p/.taskpawl/project.json")).unwrap();
    assert_eq!(world.project("p", "id-2"), first);
    assert_eq!(fs::read(world.top.join("p/.taskpawl/project.json")).unwrap(), file);
}

#[test]
fn a_project_whose_file_is_lost_or_damaged_is_found_again_by_init() {
    let world = World::new();
    let first = world.project("p", "id-1");
    let file = world.top.join("p/.taskpawl/project.json");
    fs::remove_dir_all(world.top.join("p/.taskpawl")).unwrap();
    assert_eq!(world.project("p", "id-2").location, first.location);
    fs::write(&file, "damage").unwrap();
    assert_eq!(world.project("p", "id-3").location, first.location);
    assert_ne!(world.project("other", "id-4").location, first.location);
}

#[test]
fn a_former_store_is_kept_but_not_used() {
    let world = World::new();
    let (directory, left) = (world.top.join("p"), world.project("p", "id-1"));
    let own = resolve_copy(&world.at(&directory), CopyChoice::New("id-2")).unwrap();
    assert_eq!(own.location, Location::Sqlite(world.state("id-2").join("tasks.db")));
    fs::remove_dir_all(directory.join(".taskpawl")).unwrap();
    assert_eq!(world.project("p", "id-3").location, own.location);
    assert_ne!(own.location, left.location);
    assert!(world.state("id-1").exists());
}

#[test]
fn a_restored_project_file_selects_its_store_again() {
    let world = World::new();
    let (directory, first) = (world.top.join("p"), world.project("p", "id-1"));
    let file = directory.join(".taskpawl/project.json");
    let before = fs::read(&file).unwrap();
    resolve_copy(&world.at(&directory), CopyChoice::New("id-2")).unwrap();
    // The older project file is restored, as from a backup. The store that it names is used.
    fs::write(&file, before).unwrap();
    let back = locate(&world.at(&directory)).unwrap();
    assert_eq!(back.location, first.location);
    back.record().unwrap();
    assert_eq!(locate(&world.at(&directory)).unwrap(), first, "there is nothing left to record");
    fs::remove_dir_all(directory.join(".taskpawl")).unwrap();
    assert_eq!(world.project("p", "id-3").location, first.location);
    assert!(world.state("id-2").exists(), "the other store is kept");
}

#[test]
fn copies_of_a_moved_project_still_share_its_tasks() {
    let world = World::new();
    let original = world.project("p", "id-1");
    let copy = world.make("copy/.taskpawl");
    fs::copy(world.top.join("p/.taskpawl/project.json"), copy.join("project.json")).unwrap();
    let at = |name: &str| world.at(&world.top.join(name));
    resolve_copy(&at("copy"), CopyChoice::Share).unwrap();
    fs::rename(world.top.join("p"), world.top.join("q")).unwrap();
    locate(&at("q")).unwrap().record().unwrap();
    assert_eq!(locate(&at("copy")).unwrap().location, original.location);
}

#[test]
fn a_moved_project_keeps_its_tasks() {
    let world = World::new();
    let before = world.project("old", "id-1");
    fs::rename(world.top.join("old"), world.top.join("new")).unwrap();
    let moved = locate(&world.at(&world.top.join("new"))).unwrap();
    assert_eq!(moved.location, before.location);
    assert_eq!(moved.moved_from, Some(world.top.join("old")));
    let recorded = fs::read_to_string(world.state("id-1").join("project.json")).unwrap();
    assert!(recorded.contains("/old"), "locating a store records nothing");
    moved.record().unwrap();
    let after = locate(&world.at(&world.top.join("new"))).unwrap();
    assert_eq!((after.location, after.moved_from), (before.location, None));
}

#[test]
fn a_copied_project_needs_a_decision() {
    let world = World::new();
    let original = world.project("p", "id-1");
    for copy in ["shared", "own"] {
        world.make(&format!("{copy}/.taskpawl"));
        let file = format!("{copy}/.taskpawl/project.json");
        fs::copy(world.top.join("p/.taskpawl/project.json"), world.top.join(file)).unwrap();
    }
    let at = |name: &str| world.at(&world.top.join(name));
    let error = locate(&at("shared")).unwrap_err();
    let PlacementError::Copied { original: from, copy } = &error else { panic!("{error}") };
    assert_eq!((from, copy), (&world.top.join("p"), &world.top.join("shared")));

    let shared = resolve_copy(&at("shared"), CopyChoice::Share).unwrap();
    assert_eq!(shared.location, original.location);
    assert_eq!(locate(&at("shared")).unwrap(), shared);
    let own = resolve_copy(&at("own"), CopyChoice::New("id-2")).unwrap();
    assert_eq!(own.location, Location::Sqlite(world.state("id-2").join("tasks.db")));
    assert_eq!(locate(&at("p")).unwrap(), original);
}

#[test]
fn a_git_worktree_shares_the_tasks_of_its_main_tree() {
    let world = World::new();
    let main = world.project("main", "id-1");
    world.make("main/.git/worktrees/side");
    fs::write(world.top.join("main/.git/worktrees/side/commondir"), "../..\n").unwrap();
    let below = world.make("side/src");
    let git = format!("gitdir: {}\n", world.top.join("main/.git/worktrees/side").display());
    fs::write(world.top.join("side/.git"), git).unwrap();
    let side = locate(&world.at(&below)).unwrap();
    assert_eq!((&side.location, &side.id, &side.project), (&main.location, &main.id, &main.project));
    assert_eq!(side.root, world.top.join("side"));
    assert_eq!(initialize(&world.at(&world.top.join("side")), "id-2", None).unwrap(), side);
    assert!(!world.top.join("side/.taskpawl").exists());
}

#[test]
fn a_named_store_needs_no_project() {
    let world = World::new();
    let directory = world.make("d");
    let flag = Environment { store_flag: Some("x.db".to_owned()), ..world.at(&directory) };
    let place = locate(&flag).unwrap();
    assert_eq!((place.rule, &place.root), (Rule::Flag, &directory));
    assert_eq!(place.location, Location::Sqlite(directory.join("x.db")));
    let both = Environment { store_variable: Some("memory".to_owned()), ..flag };
    assert_eq!(locate(&both).unwrap().rule, Rule::Flag);
    let variable = Environment { store_flag: None, ..both };
    assert_eq!(locate(&variable).unwrap().location, Location::Memory);
    let json = Environment { store_variable: Some("json:../p.json".to_owned()), ..variable };
    assert_eq!(locate(&json).unwrap().location, Location::Json(directory.join("../p.json")));
    accept(&open(&place.location), create(task("a")));
    assert_eq!(open(&place.location).view(|view| view.key("a")).unwrap().map(|key| key.0), Some(0));
}

#[test]
fn init_can_record_a_named_store() {
    let world = World::new();
    let environment = world.at(&world.make("p"));
    let place = initialize(&environment, "id-1", Some("../store.db")).unwrap();
    assert_eq!(place.rule, Rule::Project);
    assert_eq!(place.location, Location::Sqlite(world.top.join("p/../store.db")));
    assert_eq!(locate(&environment).unwrap(), place);
    assert!(!world.state("id-1").exists());
}

#[test]
fn a_state_directory_inside_the_project_is_refused() {
    let world = World::new();
    let home = world.make("home");
    let error = initialize(&world.at(&home), "id-1", None).unwrap_err();
    assert!(matches!(error, PlacementError::StateInsideProject { .. }), "{error}");
    assert!(error.hint().to_string().contains("--store"));
    assert!(!home.join(".taskpawl").exists());
}

#[test]
fn the_error_without_a_project_has_a_hint() {
    let world = World::new();
    let error = locate(&world.at(&world.make("d"))).unwrap_err();
    assert!(matches!(error, PlacementError::NoProject { .. }));
    assert!(
        error.hint().to_string().contains("taskpawl init") && error.hint().to_string().contains("--store")
    );
    let homeless = Environment { home: None, ..world.at(&world.make("p")) };
    assert!(matches!(initialize(&homeless, "id-1", None), Err(PlacementError::NoStateDirectory)));
}

#[test]
fn an_untrusted_project_file_cannot_escape_the_state_directory() {
    let world = World::new();
    let directory = world.make("d/.taskpawl");
    for content in [r#"{"id": "../../x", "path": "/"}"#, r#"{"id": "", "path": "/"}"#, "{", "[]"] {
        fs::write(directory.join("project.json"), content).unwrap();
        let error = locate(&world.at(&world.top.join("d"))).unwrap_err();
        assert!(matches!(error, PlacementError::BadProjectFile { .. }), "{content}: {error}");
    }
}

#[test]
fn a_relative_home_and_a_path_that_is_not_utf_8_are_refused() {
    let world = World::new();
    let relative = Environment { home: Some("home".into()), ..world.at(&world.make("p")) };
    assert!(matches!(initialize(&relative, "id-1", None), Err(PlacementError::NoStateDirectory)));
    let odd = world.top.join(OsStr::from_bytes(b"p\xff"));
    fs::create_dir(&odd).unwrap();
    assert!(matches!(initialize(&world.at(&odd), "id-1", None), Err(PlacementError::NotUtf8 { .. })));
}

#[test]
fn a_planned_project_is_made_by_its_first_write() {
    let world = World::new();
    let root = world.make("home/site");
    world.make("home/site/.git");
    let environment = world.at(&world.make("home/site/src"));
    let place = plan_project(&environment, "id-1", AllowedRoots::All).unwrap();
    assert_eq!((place.root.as_path(), place.new_root()), (root.as_path(), Some(RootKind::GitRoot)));
    assert!(!root.join(".taskpawl").exists());

    assert_eq!(place.record().unwrap(), Some(RootKind::GitRoot));
    assert_eq!(place.record().unwrap(), None);
    let found = locate(&environment).unwrap();
    assert_eq!((&found.location, &found.id), (&place.location, &place.id));
}

#[test]
fn all_processes_plan_the_same_store_for_a_directory() {
    let world = World::new();
    let environment = world.at(&world.make("home/site"));
    let places: Vec<_> = std::thread::scope(|scope| {
        let plans: Vec<_> = (0..4)
            .map(|number| {
                let environment = &environment;
                scope.spawn(move || {
                    plan_project(environment, &format!("id-{number}"), AllowedRoots::All).unwrap()
                })
            })
            .collect();
        plans.into_iter().map(|plan| plan.join().unwrap()).collect()
    });
    assert!(places.iter().all(|place| place.location == places[0].location), "{places:?}");
    assert_eq!(initialize(&environment, "id-9", None).unwrap().location, places[0].location);
    places[0].check_unchanged().unwrap();
}

#[test]
fn a_planned_project_notices_another_store() {
    let world = World::new();
    let environment = world.at(&world.make("home/site"));
    let place = plan_project(&environment, "id-1", AllowedRoots::All).unwrap();
    fs::remove_dir_all(world.state("id-1")).unwrap();
    initialize(&environment, "id-2", None).unwrap();
    assert!(matches!(place.check_unchanged(), Err(PlacementError::MadeElsewhere { .. })));
    assert!(matches!(place.record(), Err(PlacementError::MadeElsewhere { .. })));
}

#[test]
fn an_unsuitable_directory_needs_init() {
    let world = World::new();
    let error = plan_project(&world.at(&world.make("home")), "id-1", AllowedRoots::All).unwrap_err();
    assert!(matches!(error, PlacementError::NotMade { .. }), "{error}");
    assert!(error.hint().to_string().contains("taskpawl init"));
    assert!(!world.state("id-1").exists());
}
