//! Facts of a project that a planner may know: names, and no contents.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use ignore::WalkBuilder;
use serde_json::Value;
use taskpawl_text::plain_line;

/// The most names of files in a prompt.
pub(crate) const MAX_FILES: usize = 60;

/// The most open tasks in a prompt.
pub(crate) const MAX_OPEN_TASKS: usize = 20;

/// The number of directories below the root that are searched.
const MAX_DEPTH: usize = 3;

/// The most files that are looked at.
const MAX_SEEN: usize = 20_000;

/// The most bytes that are read of a manifest.
const MAX_MANIFEST_BYTES: u64 = 256 << 10;

/// The most names of one manifest.
const MAX_TARGETS: usize = 30;

/// Facts of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Names of files, those near the root first.
    pub files: Vec<String>,
    /// The number of files that are not named.
    pub more_files: usize,
    /// Targets and scripts of manifests, one line for each manifest.
    pub targets: Vec<String>,
    /// Open tasks of the store, each as id and name.
    pub open_tasks: Vec<String>,
    /// The sandbox of programs, in one sentence.
    pub sandbox: String,
    /// Grants that are in force.
    pub grants: Vec<String>,
}

impl Facts {
    /// Reads the names of files below a directory, and the names of targets in its manifests. Hidden and ignored files are left out.
    pub fn of_directory(root: &Path) -> Self {
        let mut files = files(root);
        let more_files = files.len().saturating_sub(MAX_FILES);
        files.truncate(MAX_FILES);
        Self { files, more_files, targets: targets(root), ..Self::default() }
    }
}

fn files(root: &Path) -> Vec<String> {
    let mut walk = WalkBuilder::new(root);
    walk.max_depth(Some(MAX_DEPTH)).require_git(false).follow_links(false);
    let entries = walk.build().take(MAX_SEEN).filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| {
        let name = entry.path().strip_prefix(root).ok()?.display().to_string();
        Some((entry.depth(), plain_line(&name)))
    });
    let mut names: Vec<(usize, String)> = names.collect();
    names.sort();
    names.into_iter().map(|(_, name)| name).collect()
}

/// Returns the targets of the manifests in a directory.
fn targets(root: &Path) -> Vec<String> {
    let make = ["Makefile", "makefile", "GNUmakefile"].into_iter().find_map(|name| read(root, name));
    let just = ["justfile", "Justfile", ".justfile"].into_iter().find_map(|name| read(root, name));
    let npm = read(root, "package.json").map(|text| scripts(&text));
    let lists = [
        ("make", make.map(|text| rules(&text)).unwrap_or_default()),
        ("just", just.map(|text| rules(&text)).unwrap_or_default()),
        ("npm run", npm.unwrap_or_default()),
    ];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    lists.map(|(program, names)| format!("{program}: {}", names.join(", "))).collect()
}

fn read(root: &Path, name: &str) -> Option<String> {
    let path = root.join(name);
    // A link may lead out of the project, and a pipe has no end.
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MAX_MANIFEST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the names of rules in a Makefile or of recipes in a justfile.
fn rules(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        // The parameters of a recipe come after its name.
        let name = name.split_whitespace().next().unwrap_or_default();
        let is_name = !name.is_empty()
            && !name.starts_with('.')
            && !line.starts_with(char::is_whitespace)
            && !rest.starts_with('=')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
        if is_name && !names.iter().any(|known| known == name) && names.len() < MAX_TARGETS {
            names.push(name.to_owned());
        }
    }
    names
}

fn scripts(text: &str) -> Vec<String> {
    let manifest: Value = serde_json::from_str(text).unwrap_or_default();
    let names = manifest["scripts"].as_object().into_iter().flatten().map(|(name, _)| plain_line(name));
    names.take(MAX_TARGETS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_give_names_and_no_commands() {
        let make =
            "CC := gcc\n.PHONY: all\nall: a.o\n\tsecret --token x:y\ntest:\n\tmake all\nall: b.o\n%.o: %.c\n";
        assert_eq!(rules(make), ["all", "test"]);
        assert_eq!(rules("default:\n  just --list\ndeploy target='x':\n  ./deploy\n"), ["default", "deploy"]);
        assert_eq!(scripts(r#"{"scripts": {"build": "tsc --token=abc", "test": "x"}}"#), ["build", "test"]);
    }

    #[test]
    fn hidden_and_ignored_files_are_not_named() {
        let root = tempfile::tempdir().unwrap();
        for name in [".env", "a.txt", "src/b.rs", "target/c", ".gitignore"] {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "target\n").unwrap();
        }
        let facts = Facts::of_directory(root.path());
        assert_eq!((facts.files, facts.more_files), (vec!["a.txt".to_owned(), "src/b.rs".to_owned()], 0));
    }
}
