//! Targets with `test = false` or `doctest = false` contain no tests: cargo would leave them out without a word.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::workspace::metadata;

/// A kind of test that cargo leaves out of a target.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Unit,
    Documentation,
}

impl Kind {
    /// Returns the key of the manifest that switches tests of this kind off.
    fn key(self) -> &'static str {
        match self {
            Self::Unit => "test",
            Self::Documentation => "doctest",
        }
    }

    fn is_in(self, line: &str) -> bool {
        let line = line.trim_start();
        match self {
            Self::Unit => {
                ["#[test]", "#[tokio::test", "proptest! {"].iter().any(|start| line.starts_with(start))
            }
            // A page that is included may have examples, too.
            Self::Documentation => {
                line.starts_with("/// ```")
                    || line.starts_with("//! ```")
                    || line.contains("doc = include_str!")
            }
        }
    }
}

/// Returns the files of a library or a program.
fn sources(target: &Value) -> Vec<PathBuf> {
    let root = PathBuf::from(target["src_path"].as_str().unwrap());
    let is_library =
        target["kind"].as_array().unwrap().iter().any(|kind| kind == "lib" || kind == "proc-macro");
    if !is_library {
        return vec![root];
    }
    let mut files = Vec::new();
    collect(root.parent().unwrap(), &mut files);
    files
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the places of tests in the targets that are, or are not, compiled for them.
fn tests(metadata: &Value, kind: Kind, is_compiled: bool) -> Vec<String> {
    let packages = metadata["packages"].as_array().unwrap().iter();
    let own = packages.filter(|package| package["source"].is_null());
    let targets = own.flat_map(|package| package["targets"].as_array().unwrap());
    let of_sources = targets.filter(|target| {
        let kinds = target["kind"].as_array().unwrap();
        kinds.iter().any(|kind| kind == "lib" || kind == "proc-macro" || kind == "bin")
    });
    let mut found = Vec::new();
    for target in of_sources.filter(|target| target[kind.key()] == is_compiled) {
        // Cargo runs no examples in the documentation of programs.
        if matches!(kind, Kind::Documentation)
            && target["kind"].as_array().unwrap().iter().any(|kind| kind == "bin")
        {
            continue;
        }
        for path in sources(target) {
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.lines().enumerate().filter(|(_, line)| kind.is_in(line));
            found.extend(lines.map(|(number, _)| format!("{}:{}", path.display(), number + 1)));
        }
    }
    found
}

#[test]
fn targets_that_are_compiled_without_tests_have_none() {
    let metadata = metadata();
    for kind in [Kind::Unit, Kind::Documentation] {
        let left_out = tests(&metadata, kind, false);
        assert!(left_out.is_empty(), "remove `{} = false`: {left_out:#?}", kind.key());
        assert!(!tests(&metadata, kind, true).is_empty(), "the control: {kind:?}");
    }
}
