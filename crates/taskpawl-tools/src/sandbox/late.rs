//! New files that other programs obey and that no call has reported: found by one more search after the last program of a run has ended,
//! and, for a run that was killed, by the next run.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::closed::is_opened;
use super::warning::{MAX_LISTED, warning};
use super::watch::{State, Watch};
use crate::sandbox::obeyed::Obeyed;
use crate::scan::{ScanBounds, ScanStopped};

/// New files that other programs obey without asking, and that no call of their run has reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateFiles {
    /// The files, as paths relative to the root of the project where they lie in it. At most the first 100.
    pub files: Vec<String>,
    /// The number of further files.
    pub more: usize,
}

impl LateFiles {
    /// Returns a warning that names the first files; `None` if there are none. `found` is a fragment that says when they came.
    pub fn warning(&self, found: &str) -> Option<String> {
        (!self.files.is_empty()).then(|| warning(&self.files, self.more, found))
    }

    fn of(root: &Path, found: &[&Obeyed]) -> Self {
        let files = found.iter().take(MAX_LISTED).map(|obeyed| obeyed.shown(root)).collect();
        Self { files, more: found.len().saturating_sub(MAX_LISTED) }
    }
}

/// The record of a run: everything that is no news, and the places outside the project that were opened.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Baseline {
    places: Vec<Text>,
    repositories: Vec<Text>,
    opened: Vec<(Text, Text)>,
    named: Vec<Text>,
    known: Vec<Known>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Known {
    place: Text,
    path: Text,
    what: Vec<String>,
}

/// A path in JSON: as text where it is valid Unicode, otherwise as bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&PathBuf> for Text {
    fn from(path: &PathBuf) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_owned()),
        }
    }
}

impl From<Text> for PathBuf {
    fn from(text: Text) -> Self {
        match text {
            Text::Text(text) => text.into(),
            Text::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

impl Watch {
    /// Notes that files were reported, or need no report because they were named for writing.
    pub(crate) fn told(&self, files: &[Obeyed]) {
        let mut state = self.lock();
        for file in files {
            if let Some(sighting) = state.known.get_mut(file)
                && !sighting.is_told
            {
                sighting.is_told = true;
                state.is_changed = true;
            }
        }
        // An error is ignored: without the record the next run of the project reports these files once more.
        let _ = state.record(self.baseline.as_deref());
    }

    /// Writes the record of the run. Returns a gap if that fails.
    pub(super) fn record(&self) -> Option<String> {
        let recorded = self.lock().record(self.baseline.as_deref());
        let error = recorded.err()?;
        Some(format!("if this run is killed, the next one cannot report the files that it left: {error}"))
    }

    /// Searches once more, and removes the record of the run.
    pub(super) fn last(&self, bounds: &ScanBounds) -> Result<LateFiles, ScanStopped> {
        let mut state = self.lock();
        if !state.is_open {
            return Ok(LateFiles::default());
        }
        state.look(bounds)?;
        if let Some(baseline) = &self.baseline {
            let _ = fs::remove_file(baseline);
        }
        let named: Vec<PathBuf> = state.named.iter().cloned().collect();
        let new = state.known.iter().filter(|(_, sighting)| !sighting.is_settled()).map(|(file, _)| file);
        let new: Vec<&Obeyed> = new.filter(|file| !is_opened(&file.place, &file.path, &named)).collect();
        Ok(LateFiles::of(state.tree.root(), &new))
    }
}

impl State {
    /// Writes the record of the run to `baseline`, if it has changed.
    pub(crate) fn record(&mut self, baseline: Option<&Path>) -> io::Result<()> {
        let Some(file) = baseline.filter(|_| self.is_changed) else { return Ok(()) };
        let texts = |paths: &BTreeSet<PathBuf>| paths.iter().map(Text::from).collect();
        let known = self.known.iter().filter(|(_, sighting)| sighting.is_settled());
        let known = known.map(|(Obeyed { place, path, what }, _)| Known {
            place: place.into(),
            path: path.into(),
            what: what.clone(),
        });
        let record = Baseline {
            places: texts(&self.places),
            repositories: texts(&self.repositories),
            opened: self.opened.iter().map(|(place, path)| (place.into(), path.into())).collect(),
            named: texts(&self.named),
            known: known.collect(),
        };
        // A rename, so that a kill in between leaves the older record. It need not survive a loss of power, which also ends all programs.
        let new = file.with_extension("new");
        let mut written =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        written.write_all(&serde_json::to_vec(&record)?)?;
        fs::rename(&new, file)?;
        self.is_changed = false;
        Ok(())
    }
}

/// Compares the project with the record of a run that was killed, and removes the record. A record that cannot be read is removed as well.
pub(super) fn left_by(root: &Path, baseline: &Path, bounds: &ScanBounds) -> Result<LateFiles, ScanStopped> {
    let read = fs::read(baseline).ok().and_then(|bytes| serde_json::from_slice::<Baseline>(&bytes).ok());
    let Some(record) = read else {
        let _ = fs::remove_file(baseline);
        return Ok(LateFiles::default());
    };
    let paths = |texts: Vec<Text>| texts.into_iter().map(PathBuf::from).collect::<Vec<_>>();
    let (places, named) = (paths(record.places), paths(record.named));
    let watch = Watch::new(root, None);
    watch.open(&places, None, bounds)?;
    {
        let mut state = watch.lock();
        state.repositories.extend(paths(record.repositories));
        state.opened.extend(record.opened.into_iter().map(|(place, path)| (place.into(), path.into())));
        state.look(bounds)?;
    }
    let before: BTreeSet<Obeyed> = record
        .known
        .into_iter()
        .map(|Known { place, path, what }| Obeyed { place: place.into(), path: path.into(), what })
        .collect();
    let state = watch.lock();
    let new = state.known.keys().filter(|file| !before.contains(*file));
    let new: Vec<&Obeyed> = new.filter(|file| !is_opened(&file.place, &file.path, &named)).collect();
    let left = LateFiles::of(root, &new);
    let _ = fs::remove_file(baseline);
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        dir: tempfile::TempDir,
        watch: Watch,
    }

    impl Scene {
        /// A project with one file that was there before, and a run that has begun.
        fn new(named: &[&str]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("p");
            fs::create_dir_all(root.join(OsString::from_vec(b"caf\xe9".to_vec()))).unwrap();
            fs::write(root.join(OsString::from_vec(b"caf\xe9/.envrc".to_vec())), "").unwrap();
            let watch = Watch::new(&root, Some(dir.path().join("r1.obeyed")));
            let named: Vec<_> = named.iter().map(|name| root.join(name)).collect();
            watch.open(&named, None, &ScanBounds::default()).unwrap();
            assert_eq!(watch.record(), None);
            Self { dir, watch }
        }

        fn write(&self, name: &str) {
            let path = self.dir.path().join("p").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }

        fn last(&self) -> Vec<String> {
            self.watch.last(&ScanBounds::default()).unwrap().files
        }

        fn left(&self) -> Vec<String> {
            let (root, baseline) = (self.dir.path().join("p"), self.dir.path().join("r1.obeyed"));
            left_by(&root, &baseline, &ScanBounds::default()).unwrap().files
        }

        fn has_record(&self) -> bool {
            self.dir.path().join("r1.obeyed").exists()
        }
    }

    #[test]
    fn the_last_look_reports_what_no_call_has_reported() {
        let scene = Scene::new(&[]);
        scene.write(".vscode/tasks.json");
        let (told, _) = scene.watch.since(0, &ScanBounds::default());
        scene.watch.told(&told);
        scene.write("a/.envrc");
        assert!(scene.has_record());
        assert_eq!(scene.last(), ["a/.envrc"]);
        assert!(!scene.has_record(), "nothing is left to the next run");
        assert_eq!(scene.left(), Vec::<String>::new());
    }

    #[test]
    fn what_a_call_has_found_and_not_reported_is_reported_by_the_last_look() {
        let scene = Scene::new(&[]);
        scene.write(".vscode/tasks.json");
        assert_eq!(scene.watch.since(0, &ScanBounds::default()).0.len(), 1);
        assert_eq!(scene.last(), [".vscode"]);
    }

    #[test]
    fn the_next_run_reports_what_a_killed_run_has_left() {
        let scene = Scene::new(&[]);
        scene.write("told/.envrc");
        let (told, _) = scene.watch.since(0, &ScanBounds::default());
        scene.watch.told(&told);
        scene.write("late/.mcp.json");
        assert_eq!(scene.left(), ["late/.mcp.json"]);
        assert!(!scene.has_record());
        assert_eq!(scene.left(), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_was_replaced_after_its_removal_is_new_for_the_next_run() {
        let scene = Scene::new(&[]);
        let old = scene.dir.path().join("p").join(OsString::from_vec(b"caf\xe9/.envrc".to_vec()));
        fs::remove_file(&old).unwrap();
        scene.watch.since(0, &ScanBounds::default());
        fs::write(&old, "other").unwrap();
        assert_eq!(scene.left(), ["caf\u{fffd}/.envrc"]);
    }

    #[test]
    fn what_was_named_for_writing_is_not_reported_late() {
        let late = |named: &[&str]| {
            let scene = Scene::new(named);
            scene.write(".vscode/tasks.json");
            (scene.last(), scene.left())
        };
        assert_eq!(late(&[".vscode"]), (Vec::new(), Vec::new()));
        assert_eq!(late(&[".idea"]).0, [".vscode"]);
    }

    #[test]
    fn a_last_look_that_was_stopped_is_left_to_the_next_run() {
        let scene = Scene::new(&[]);
        scene.write(".vscode/tasks.json");
        let stopped = ScanBounds::default().at_most(std::time::Duration::ZERO);
        assert_eq!(scene.watch.last(&stopped), Err(ScanStopped::TimedOut));
        assert_eq!(scene.left(), [".vscode"]);
    }

    #[test]
    fn a_record_that_cannot_be_read_reports_nothing_and_is_removed() {
        let scene = Scene::new(&[]);
        fs::write(scene.dir.path().join("r1.obeyed"), "{").unwrap();
        assert_eq!(scene.left(), Vec::<String>::new());
        assert!(!scene.has_record());
    }
}
