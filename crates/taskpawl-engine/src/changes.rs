//! Detects files of a project that change while a call runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taskpawl_model::value::paths;
use taskpawl_tools::{ScanBounds, ScanStopped};

use crate::project_files::{Stamp, stamps};

/// Largest number of files that a snapshot covers. For larger projects the result is "unknown".
const MAX_FILES: usize = 50_000;

/// Largest number of changed files in a report.
const MAX_NAMED: usize = 100;

/// The files of a project with their metadata, or the reason why they are not known.
#[derive(Debug)]
pub(crate) struct Snapshot(Result<BTreeMap<String, Stamp>, String>);

/// The files that changed between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// Paths relative to the project, at most the first 100.
    pub(crate) files: Vec<String>,
    /// Set if `files` is incomplete: the reason, as a text for users.
    pub(crate) unknown: Option<String>,
}

impl Snapshot {
    /// Reads the metadata of every file of a project that its ignore files do not exclude. Blocks.
    pub(crate) fn take(root: &Path, bounds: &ScanBounds) -> Self {
        Self(stamps(root, MAX_FILES, bounds))
    }

    /// Returns an empty snapshot for a scan that was stopped.
    pub(crate) fn stopped(stopped: ScanStopped) -> Self {
        Self(Err(stopped.to_string()))
    }

    /// Returns the paths that differ in `after`, without those below `written`.
    pub(crate) fn changed(self, after: Self, written: &[String]) -> Changed {
        let (before, after) = match (self.0, after.0) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(unknown), _) | (_, Err(unknown)) => {
                return Changed { files: Vec::new(), unknown: Some(unknown) };
            }
        };
        let new = after.iter().filter(|(path, stamp)| before.get(*path) != Some(stamp));
        let gone = before.keys().filter(|path| !after.contains_key(*path));
        let all: BTreeSet<&String> = new.map(|(path, _)| path).chain(gone).collect();
        let is_allowed = |path: &str| written.iter().any(|above| paths::is_below(path, above));
        let mut files: Vec<String> = all.into_iter().filter(|path| !is_allowed(path)).cloned().collect();
        let more = files.len().saturating_sub(MAX_NAMED);
        files.truncate(MAX_NAMED);
        Changed { files, unknown: (more > 0).then(|| format!("{more} more are not listed")) }
    }
}

/// The declared writes of all calls that run at the same time.
///
/// A snapshot cannot tell which of several concurrent calls changed a file. A call is therefore not blamed for paths
/// that a concurrent call declares.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writers(Arc<Mutex<Active>>);

#[derive(Debug, Default)]
struct Active {
    next: u64,
    /// By call: the paths that it writes, and the paths that concurrent calls write.
    calls: BTreeMap<u64, (Vec<String>, BTreeSet<String>)>,
}

impl Writers {
    /// Registers a call that starts and returns its number.
    pub(crate) fn begin(&self, writes: &[String]) -> u64 {
        let writes = paths::written(writes);
        let mut active = self.lock();
        let beside = active.calls.values().flat_map(|(writes, _)| writes.clone()).collect();
        for (_, beside) in active.calls.values_mut() {
            beside.extend(writes.iter().cloned());
        }
        let number = active.next;
        active.next += 1;
        active.calls.insert(number, (writes, beside));
        number
    }

    /// Removes a call that ended; returns the paths that it and the calls concurrent with it declare.
    pub(crate) fn end(&self, number: u64) -> Vec<String> {
        let (mut writes, beside) = self.lock().calls.remove(&number).unwrap_or_default();
        writes.extend(beside);
        writes
    }

    fn lock(&self) -> MutexGuard<'_, Active> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn take(root: &Path) -> Snapshot {
        Snapshot::take(root, &ScanBounds::default())
    }

    #[test]
    fn changed_files_outside_the_declared_writes_are_reported() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for path in ["src/a", "src/b", "doc/c", "gone", "same", "target/x"] {
            write(path, "1");
        }
        write(".gitignore", "target");
        let before = take(root.path());
        write("src/a", "22");
        write("doc/c", "22");
        write("doc/new", "1");
        write("target/x", "22");
        fs::remove_file(root.path().join("gone")).unwrap();
        let changed = before.changed(take(root.path()), &["src".to_owned()]);
        assert_eq!(changed.files, ["doc/c", "doc/new", "gone"]);
        assert_eq!(changed.unknown, None);
    }

    #[test]
    fn a_project_with_too_many_files_yields_an_unknown_result() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..4 {
            fs::write(root.path().join(number.to_string()), "").unwrap();
        }
        let unknown = Snapshot(stamps(root.path(), 3, &ScanBounds::default()))
            .changed(take(root.path()), &[])
            .unknown
            .unwrap();
        assert!(unknown.starts_with("the project has more than 3 files"), "{unknown}");
    }

    #[test]
    fn an_ignore_file_that_is_a_device_is_not_read() {
        for (path, device) in [("a/.gitignore", "/dev/zero"), (".gitignore", "/dev/null")] {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("a")).unwrap();
            std::os::unix::fs::symlink(device, root.path().join(path)).unwrap();
            let unknown = take(root.path()).changed(take(root.path()), &[]).unknown.unwrap();
            assert_eq!(unknown, "an ignore file in the project is too large or not a regular file", "{path}");
        }
    }

    #[test]
    fn concurrent_calls_share_their_declared_writes() {
        let writers = Writers::default();
        let texts = |text: &str| vec![text.to_owned()];
        let (one, two) = (writers.begin(&texts("a")), writers.begin(&texts("b")));
        assert_eq!(writers.end(two), ["b", "a"]);
        let three = writers.begin(&texts("c"));
        assert_eq!(writers.end(one), ["a", "b", "c"]);
        assert_eq!(writers.end(three), ["c", "a"]);
    }
}
