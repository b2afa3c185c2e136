use std::fs;
use std::path::{Path, PathBuf};

use taskpawl_model::value::RunId;

use super::{ProjectFiles, ReturnedFiles, SentFiles, WorkerTrees, check_names, leftover_refs, outline};
use crate::call_executor::Ticket;
use crate::worktrees::git::{Git, GitResult};

/// A project, a remote and a worker.
struct Scene {
    _directory: tempfile::TempDir,
    root: PathBuf,
    remote: String,
    files: ProjectFiles,
    trees: WorkerTrees,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let (root, remote) = (base.join("project"), base.join("remote"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&remote).unwrap();
        Git::in_project(&remote, &[]).unwrap().run(&["init", "-q", "--bare"]).unwrap();
        let git = Git::in_project(&root, &[]).unwrap();
        git.run(&["init", "-q", "-b", "main"]).unwrap();
        for (name, text) in [
            ("a", "1"),
            ("src/b", "2"),
            (".env", "SECRET"),
            ("sub/.env.local", "SECRET"),
            (".gitignore", "out\n*.log\n"),
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        git.run(&["add", "--force", "."]).unwrap();
        git.commit("first").unwrap();
        let remote = remote.to_str().unwrap().to_owned();
        let run = RunId::from("r1".to_owned());
        let files = ProjectFiles::open(&root, &remote, &base.join("state"), &run).unwrap();
        let trees = WorkerTrees::open(&base.join("worker"), base.join("trees"), &remote).unwrap();
        Self { _directory: directory, root, remote, files, trees }
    }

    fn write(&self, name: &str, text: &str) {
        write(&self.root, name, text);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }

    /// Runs `work` in a work tree with the files of the project.
    fn call(&self, writes: &[&str], work: impl FnOnce(&Path)) -> (Option<ReturnedFiles>, Vec<String>) {
        let tree = self.trees.take(&self.files.push(&[]).unwrap()).unwrap();
        work(tree.path());
        let ticket = Ticket { key: "k".to_owned(), start: 1 };
        let writes: Vec<String> = writes.iter().map(|path| (*path).to_owned()).collect();
        self.trees.give_back(tree, &ticket, &writes).unwrap()
    }

    fn take_back(&self, returned: &ReturnedFiles, writes: &[&str]) -> GitResult<()> {
        let writes: Vec<String> = writes.iter().map(|path| (*path).to_owned()).collect();
        self.files.take_back(returned, &writes)
    }
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn names_in(path: &Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(path).standard_filters(false).build().flatten();
    let files = walk.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let mut names: Vec<String> =
        files.map(|entry| entry.path().strip_prefix(path).unwrap().to_string_lossy().into_owned()).collect();
    names.retain(|name| name != ".git");
    names.sort();
    names
}

#[test]
fn tracked_files_as_they_are_and_sends_reach_a_worker_but_neither_ignored_nor_env_files() {
    let scene = Scene::new();
    scene.write("a", "changed");
    scene.write("data/new", "3");
    scene.write("data/.env.x", "SECRET");
    scene.write("data/x.log", "ignored");
    scene.write("other", "untracked");
    fs::remove_file(scene.root.join("src/b")).unwrap();
    let sent = scene.files.push(&["data/**".to_owned()]).unwrap();
    let tree = scene.trees.take(&sent).unwrap();
    assert_eq!(names_in(tree.path()), [".gitignore", "a", "data/new"]);
    assert_eq!(fs::read_to_string(tree.path().join("a")).unwrap(), "changed");
    assert_eq!(scene.files.push(&["data/**".to_owned()]).unwrap(), sent, "the same files are one commit");
    let git = Git::in_project(&scene.root, &[]).unwrap();
    assert!(
        git.run(&["status", "--porcelain"]).unwrap().contains("?? other"),
        "the index of the user is untouched"
    );
    let shown = outline(&scene.root, &scene.root.join(".git/scratch")).unwrap();
    assert_eq!((shown.files, shown.bytes), (2, 17));
}

#[test]
fn declared_changes_come_back_and_others_are_named() {
    let scene = Scene::new();
    let (returned, others) = scene.call(&["out", "src"], |tree| {
        write(tree, "out/report", "made");
        write(tree, "src/c", "new");
        fs::remove_file(tree.join("src/b")).unwrap();
        write(tree, "a", "not declared");
    });
    assert_eq!(others, ["a"]);
    scene.take_back(&returned.unwrap(), &["out", "src"]).unwrap();
    assert_eq!(
        (scene.read("out/report"), scene.read("src/c"), scene.read("a")),
        ("made".into(), "new".into(), "1".into())
    );
    assert!(!scene.root.join("src/b").exists());
    let (returned, _) = scene.call(&["out", "src"], |tree| assert_eq!(names_in(tree), [".gitignore", "a"]));
    assert_eq!(returned, None, "nothing has changed; new files are not tracked, so they are not sent");
}

#[test]
fn a_conflict_overwrites_nothing_and_keeps_both() {
    let scene = Scene::new();
    let (returned, _) = scene.call(&["a", "src"], |tree| {
        write(tree, "a", "theirs");
        write(tree, "src/b", "theirs");
    });
    let returned = returned.unwrap();
    scene.write("src/b", "mine");
    let error = scene.take_back(&returned, &["a", "src"]).unwrap_err();
    assert_eq!(error.class, "conflict");
    assert!(error.message.contains("`src/b`") && error.message.contains(&returned.reference), "{error}");
    assert_eq!((scene.read("a"), scene.read("src/b")), ("1".into(), "mine".into()));
    let git = Git::in_project(&scene.root, &[]).unwrap();
    assert_eq!(git.run(&["show", &format!("{}:src/b", returned.reference)]).unwrap(), "theirs");
    scene.write("src/b", "theirs");
    scene.take_back(&returned, &["a", "src"]).unwrap();
    assert_eq!(scene.read("a"), "theirs", "a file that is already as the call left it is no conflict");
}

#[test]
fn changes_that_are_not_declared_or_could_leave_the_project_are_refused() {
    let scene = Scene::new();
    let (returned, _) = scene.call(&["a"], |tree| write(tree, "a", "theirs"));
    assert!(scene.take_back(&returned.unwrap(), &["b"]).unwrap_err().message.contains("not in `writes`"));
    let (returned, _) = scene.call(&["out"], |tree| {
        fs::create_dir(tree.join("out")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", tree.join("out/link")).unwrap();
    });
    assert!(
        scene.take_back(&returned.unwrap(), &["out"]).unwrap_err().message.contains("cannot be brought back")
    );
    let (returned, _) = scene.call(&["out"], |tree| write(tree, "out/x", "theirs"));
    let outside = scene.root.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, scene.root.join("out")).unwrap();
    assert!(
        scene.take_back(&returned.unwrap(), &["out"]).unwrap_err().message.contains("outside the project")
    );
    assert!(!outside.join("x").exists());
}

#[tokio::test]
async fn the_end_of_a_run_removes_its_references() {
    let scene = Scene::new();
    scene.call(&["a"], |tree| write(tree, "a", "theirs"));
    assert_eq!(leftover_refs(&scene.root, &scene.remote).unwrap().len(), 2);
    let Scene { files, root, remote, _directory, .. } = scene;
    std::sync::Arc::new(files).cleared().await.unwrap();
    assert_eq!(leftover_refs(&root, &remote).unwrap(), [""; 0]);
}

#[test]
fn names_from_the_other_side_are_checked() {
    let commit = "a".repeat(40);
    assert!(check_names("refs/taskpawl/r1.x", &commit).is_ok());
    for reference in
        ["refs/heads/main", "refs/taskpawl/", "refs/taskpawl/../x", "refs/taskpawl/a b", "--upload-pack=x"]
    {
        assert!(check_names(reference, &commit).is_err(), "{reference}");
    }
    assert!(check_names("refs/taskpawl/r1", "--help").is_err());
    let trees_refuse =
        Scene::new().trees.take(&SentFiles { reference: "refs/taskpawl/r1".to_owned(), commit });
    assert!(trees_refuse.is_err(), "a commit that the remote does not have");
}
