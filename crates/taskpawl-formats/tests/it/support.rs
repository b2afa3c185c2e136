//! The samples, and helpers to read them.

use std::fs;
use std::path::{Path, PathBuf};

use taskpawl_formats::{Files, Format, Options, Reading, read};
use taskpawl_model::advice::Hint;
use taskpawl_model::task::Task;

pub(crate) fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

/// Returns the formats that can be written.
pub(crate) fn writable() -> impl Iterator<Item = Format> {
    Format::ALL.iter().copied().filter(|format| format.is_writable())
}

/// Returns the sample of a format.
pub(crate) fn sample(format: Format) -> Files {
    files(format, &path_of_sample(format))
}

/// Returns the path of the sample of a format.
pub(crate) fn path_of_sample(format: Format) -> PathBuf {
    let name = match format {
        Format::Beads => "beads.jsonl",
        Format::Taskmaster => "taskmaster.json",
        Format::Claude => "claude",
        Format::Taskwarrior => "taskwarrior.json",
        Format::Backlog => "backlog",
        Format::Markdown => "checklist.md",
        Format::SpecKit => "spec-kit/specs/001-photo-albums/tasks.md",
        Format::OpenSpec => "openspec/changes/add-login/tasks.md",
        Format::Kiro => "kiro/.kiro/specs/login/tasks.md",
        Format::TodoTxt => "todo.txt",
        Format::Shrimp => "shrimp.json",
        Format::GitHub => "github.json",
        Format::Tasks => "tasks.json",
    };
    samples().join(name)
}

/// Returns the files of a format in a folder, or the single file at the path.
pub(crate) fn files(format: Format, path: &Path) -> Files {
    let mut files = Files::default();
    if path.is_file() {
        return Files::single(path.file_name().unwrap().to_str().unwrap(), fs::read_to_string(path).unwrap());
    }
    add(format, path, "", &mut files);
    files
}

fn add(format: Format, root: &Path, folder: &str, files: &mut Files) {
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            add(format, root, &format!("{name}/"), files);
        } else if format.takes(&name) {
            files.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

pub(crate) fn options() -> Options {
    Options::at("2030-01-01T00:00:00Z".parse().unwrap())
}

pub(crate) fn reading(format: Format, files: &Files) -> Reading {
    read(format, files, &options()).unwrap_or_else(|error| panic!("{}: {error}", format.name()))
}

/// Returns the first faulty record, or the error of the whole file, as one line.
pub(crate) fn fault(format: Format, files: &Files) -> (String, Hint) {
    match read(format, files, &options()) {
        Err(error) => (error.to_string(), error.hint),
        Ok(reading) => {
            let left = reading.faults().next().expect("a faulty record");
            let line = left.line.map(|line| format!(":{line}")).unwrap_or_default();
            let what = if left.what == left.file { String::new() } else { format!("{}: ", left.what) };
            (format!("{}{line}: {what}{}", left.file, left.why), left.hint.clone())
        }
    }
}

pub(crate) fn task<'r>(reading: &'r Reading, id: &str) -> &'r Task {
    let found = reading.tasks.iter().find(|task| task.id.as_str() == id);
    found.unwrap_or_else(|| panic!("no task {id} among {:?}", ids(&reading.tasks)))
}

pub(crate) fn ids(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}

/// Returns `before` with the written files replaced.
pub(crate) fn over(before: &Files, written: &Files) -> Files {
    let mut files = before.clone();
    for (name, text) in written.iter() {
        files.insert(name, text);
    }
    files
}
