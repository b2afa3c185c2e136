//! Stores into which version 0.1 imported files of other programs. Its tasks stay those of the file; if that file is gone,
//! the first one with its records that is imported or exported takes them over.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use taskpawl::model::view::Query;

use crate::stores_of_0_1::{golden, home_with};
use crate::support::Home;

/// Each format of 0.1, with its file or folder, and the file in it with the task `CHANGED`.
const FORMATS: [(&str, &str, &str); 7] = [
    ("backlog", "backlog", "tasks/task-2 - Write-the-parser.md"),
    ("beads", "issues.jsonl", ""),
    ("claude", "list", "2.json"),
    ("markdown", "TODO.md", ""),
    ("taskmaster", "tasks.json", ""),
    ("tasks", "tasks.json", ""),
    ("taskwarrior", "export.json", ""),
];

/// Name of the task that changes in the file, and its new name.
const CHANGED: [&str; 2] = ["Write the parser", "Write the lexer"];

/// A store of 0.1 with the imported file at `path`.
struct Imported {
    format: &'static str,
    home: Home,
    path: PathBuf,
    inner: &'static str,
}

impl Imported {
    /// Puts the file at `prefix` before its old name; with an empty one, where it was.
    fn new((format, name, inner): (&'static str, &str, &'static str), prefix: &str) -> Self {
        let directory = format!("import-{format}");
        let home = home_with(&format!("{directory}/store.sql"));
        let path = home.path("work").join(format!("{prefix}{name}"));
        copy(&golden(&directory).join(name), &path);
        Self { format, home, path, inner }
    }

    fn run(&self, command: &str, path: &Path) -> (Option<i32>, Value) {
        let run = self.home.run(&[command, self.format, path.to_str().unwrap(), "--json"]);
        let answer = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
        (run.code, answer)
    }

    /// Returns id, name and status of all tasks.
    fn tasks(&self) -> Vec<(String, String, String)> {
        let tasks = self.home.manager().list(&Query::default()).unwrap().tasks.into_iter();
        tasks.map(|task| (task.id.to_string(), task.name, task.status.to_string())).collect()
    }

    /// Renames a task in the file or folder at `path`.
    fn rename_in(&self, path: &Path) {
        let file = if self.inner.is_empty() { path.to_owned() } else { path.join(self.inner) };
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(CHANGED[0]), "{text}");
        fs::write(file, text.replace(CHANGED[0], CHANGED[1])).unwrap();
    }

    /// Checks that the tasks follow the file, and do not follow another one with the same records.
    fn check_owner(&self) {
        let before = self.tasks();
        let other = self.home.path("work").join("of-another-project");
        copy(&self.path, &other);
        self.rename_in(&other);
        // Refused, or imported as tasks of its own.
        let (code, answer) = self.run("import", &other);
        assert!(matches!(code, Some(0 | 7)), "{answer}");
        let tasks = self.tasks();
        assert!(before.iter().all(|task| tasks.contains(task)), "{}: {answer}", self.format);

        self.rename_in(&self.path);
        let (code, answer) = self.run("import", &self.path);
        assert_eq!(code, Some(0), "{answer}");
        let id = &before.iter().find(|(_, name, _)| name == CHANGED[0]).unwrap().0;
        let name = self.home.manager().get(id).unwrap().name;
        assert_eq!(name, CHANGED[1], "{}: {answer}", self.format);
        self.home.assert_sound();
    }
}

/// Copies a file or a folder.
fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

/// Returns the content of a file or folder.
fn content(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    if path.is_file() {
        return vec![(path.to_owned(), fs::read(path).unwrap())];
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.iter().flat_map(|entry| content(entry)).collect()
}

#[test]
fn the_unchanged_file_changes_no_task() {
    for format in FORMATS {
        for prefix in ["", "moved-"] {
            let imported = Imported::new(format, prefix);
            let before = imported.tasks();
            let (code, answer) = imported.run("import", &imported.path);
            let report = &answer["data"];
            let changes = (&report["created"], &report["changed"], &report["gone"]);
            assert_eq!((code, changes), (Some(0), (&json!([]), &json!([]), &json!([]))), "{answer}");
            assert_eq!(report["unchanged"], json!(before.len()), "{answer}");
            assert_eq!(imported.tasks(), before);
            imported.check_owner();
        }
    }
}

#[test]
fn an_export_over_the_file_changes_no_byte_and_binds_it() {
    for format in FORMATS {
        for prefix in ["", "moved-"] {
            let imported = Imported::new(format, prefix);
            let before = content(&imported.path);
            let (code, answer) = imported.run("export", &imported.path);
            assert_eq!(code, Some(0), "{answer}");
            assert!(content(&imported.path) == before, "{}: {answer}", imported.format);
            imported.check_owner();
        }
    }
}
