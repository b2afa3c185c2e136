//! Inputs from files, one per file. The targets of cargo-fuzz share them.

use std::path::{Path, PathBuf};

/// Returns the inputs of a target, ordered by file name. Invalid UTF-8 is replaced.
pub(crate) fn inputs(target: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory(target)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_input(path)).collect();
    files.sort();
    let read = files.iter().filter_map(|path| std::fs::read(path).ok());
    read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

/// Returns whether a file is part of the corpus. Files of the fuzzer itself have other extensions, and differ between
/// machines.
fn is_input(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "txt")
}

fn directory(target: &str) -> PathBuf {
    let words = target.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}
