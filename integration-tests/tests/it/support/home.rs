//! A private home for the program, and running the program there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use taskpawl::Manager;
use taskpawl::model::command::NewTask;
use taskpawl::model::task::TaskSpec;
use taskpawl::model::value::TaskId;
use taskpawl::store::{Location, open};
use taskpawl_testkit::broken_invariants;
use tempfile::TempDir;

/// A home with a project directory and a store beside it.
#[derive(Debug)]
pub(crate) struct Home {
    _directory: Option<TempDir>,
    path: PathBuf,
    store: String,
    faults: String,
}

impl Home {
    /// Creates a home on the disk, with a database as its store.
    pub(crate) fn new() -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// Creates a home below a directory.
    pub(crate) fn below(directory: &Path) -> Self {
        let directory = tempfile::Builder::new().prefix("home-").tempdir_in(directory).unwrap();
        let home = Self::at(directory.path());
        Self { _directory: Some(directory), ..home }
    }

    /// Creates a home in tmpfs, if there is one.
    pub(crate) fn in_memory() -> Option<Self> {
        let memory = Path::new("/dev/shm");
        memory.is_dir().then(|| Self::below(memory))
    }

    /// Creates a home in an existing directory, or opens it again.
    pub(crate) fn at(path: &Path) -> Self {
        let path = std::fs::canonicalize(path).unwrap();
        std::fs::create_dir_all(path.join("work")).unwrap();
        std::fs::create_dir_all(path.join("tmp")).unwrap();
        // The build directory may lie in a project. Without a project file here, calls would take that project's root.
        let project = path.join("work/.taskpawl");
        std::fs::create_dir_all(&project).unwrap();
        let id = "00000000-0000-4000-8000-000000000001";
        let json = serde_json::json!({"id": id, "path": path.join("work")}).to_string();
        std::fs::write(project.join("project.json"), json).unwrap();
        let store = path.join("tasks.db").to_str().unwrap().to_owned();
        Self { _directory: None, path, store, faults: String::new() }
    }

    /// Uses a JSON file as the store instead.
    pub(crate) fn with_json(mut self) -> Self {
        self.store = format!("json:{}", self.path.join("tasks.json").to_str().unwrap());
        self
    }

    /// Enables faults in every process that is started here.
    pub(crate) fn with_fault(mut self, names: &str) -> Self {
        names.clone_into(&mut self.faults);
        self
    }

    /// Returns the same home with a copy of the store, for commands that must not change the original. No process may write
    /// meanwhile.
    pub(crate) fn with_copied_store(&self, name: &str) -> Self {
        let store = self.path(name);
        for suffix in ["", "-wal", "-shm"] {
            let (from, to) = (format!("{}{suffix}", self.store), format!("{}{suffix}", store.display()));
            match std::fs::copy(from, &to) {
                Ok(_) => {}
                // A leftover log of an earlier copy would be replayed into the new database.
                Err(_) => drop(std::fs::remove_file(to)),
            }
        }
        let store = store.to_str().unwrap().to_owned();
        Self { _directory: None, path: self.path.clone(), store, faults: self.faults.clone() }
    }

    pub(crate) fn store(&self) -> &str {
        &self.store
    }

    /// Returns a path in the home.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file into the project.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path("work").join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Writes the configuration of the user.
    pub(crate) fn user_config(&self, content: &str) {
        let directory = self.path(".config/taskpawl");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("config.toml"), content).unwrap();
    }

    /// Returns the command that starts the program with these arguments.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taskpawl-under-test"));
        command.args(args);
        if args.contains(&"run-all-ready") {
            // The programs of the harnesses are in the build directory, which the sandbox does not open by default.
            command.arg("--allow-read").arg(Path::new(env!("CARGO_BIN_EXE_taskpawl-tool")).parent().unwrap());
        }
        self.prepare(&mut command);
        command
    }

    /// Sets the environment of a command to that of this home only.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.path)
            .env("TMPDIR", self.path("tmp"))
            .env("USER", "user")
            .env("TASKPAWL_STORE", &self.store)
            .env(integration_tests::faults::VARIABLE, &self.faults);
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::of(&mut self.program(args))
    }

    /// Applies a plan.
    pub(crate) fn apply(&self, plan: &str) {
        // A plan is bound to its file, so each plan name needs its own file.
        let read: Value = serde_json::from_str(plan).unwrap_or_default();
        let name = read["name"].as_str().unwrap_or("plan");
        let path = self.file(&format!("{name}.json"), plan);
        self.run(&["apply", path.to_str().unwrap()]).ok();
    }

    /// Returns the kind of the store, for the output line of a harness.
    pub(crate) fn store_kind(&self) -> &'static str {
        if self.store.starts_with("json:") { "a JSON store" } else { "a database" }
    }

    /// Opens the store in this process, through the library.
    pub(crate) fn manager(&self) -> Manager {
        Manager::new(open(&Location::parse(&self.store, Path::new(""))), "harness")
    }

    /// Creates a manual task through the library.
    pub(crate) fn create(&self, id: &str) {
        self.manager().create(named(id)).unwrap();
    }

    /// Returns the stored columns that are not derived from the tasks.
    pub(crate) fn broken_invariants(&self) -> Vec<String> {
        self.manager().read(|view| Ok(broken_invariants(view)?)).unwrap()
    }

    /// Asserts that the store opens, and that its derived columns match its tasks.
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.broken_invariants(), Vec::<String>::new());
    }
}

/// The outcome of a process.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        command.output().unwrap().into()
    }

    /// Asserts success.
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Returns a manual task.
pub(crate) fn named(id: &str) -> NewTask {
    let spec = TaskSpec { name: id.to_owned(), ..TaskSpec::default() };
    NewTask { id: TaskId::from(id), spec, ..NewTask::default() }
}

/// Returns whether a program is on the `PATH`.
pub(crate) fn is_there(program: impl AsRef<OsStr>) -> bool {
    Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}
