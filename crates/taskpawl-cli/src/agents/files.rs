//! Files of a project before and after a change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::diff::diff;
use super::known::{Agent, Part, Piece, Wish};
use super::links::{Spot, spot};
use crate::error::CliError;
use crate::files::{read_file, replace_file};
use crate::shown::Shown;
use crate::text::Paint;

/// Planned changes of files. All are known before the first file is written, so a refusal changes nothing.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The files by their path below the project's root, with links resolved.
    files: BTreeMap<String, File>,
    /// Messages about entries that were to be removed, but stay.
    pub(crate) kept: Vec<String>,
}

#[derive(Debug)]
struct File {
    /// The absolute path, with links resolved.
    path: PathBuf,
    /// The name that agents use, if it is a link to this file.
    link: Option<String>,
    before: Option<String>,
    after: Option<String>,
}

/// The change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// The file is created.
    Created,
    /// The file is changed.
    Changed,
    /// The file is deleted, because nothing else was in it.
    Deleted,
    /// The file stays the same.
    Unchanged,
}

impl Changes {
    /// Plans the set-up of agents.
    pub(crate) fn adding(root: &Path, agents: &[Agent], wish: Wish) -> Result<Self, CliError> {
        let mut changes = Self::default();
        for piece in agents.iter().flat_map(|agent| agent.pieces(root, wish)) {
            changes.edit(root, &piece, |part, text| part.add(text).map(Some))?;
        }
        Ok(changes)
    }

    /// Plans the removal of the set-up.
    pub(crate) fn removing(root: &Path, agents: &[Agent]) -> Result<Self, CliError> {
        let mut changes = Self::default();
        let now: BTreeSet<String> = agents
            .iter()
            .flat_map(|agent| agent.pieces(root, Wish::default()))
            .map(|piece| piece.path)
            .collect();
        for piece in agents.iter().flat_map(|agent| agent.all_pieces(root)) {
            let text = read(&root.join(&piece.path))?;
            let has_it = text.as_ref().is_some_and(|text| piece.part.is_in(text));
            // A file without our entry may be a link to any path, so it is not an error if it leads out of the
            // project.
            if !has_it && matches!(spot(root, &piece.path)?, Spot::Outside { .. }) {
                continue;
            }
            // Without the block, a file that only an earlier set-up could have used does not matter.
            if !has_it && matches!(piece.part, Part::Text(_)) && !now.contains(&piece.path) {
                continue;
            }
            if text.is_some_and(|text| piece.part.is_others(&text)) {
                let why = "its entry is not as `init` writes it";
                changes.kept.push(format!("`{}` stays as it is: {why}", piece.path));
                continue;
            }
            if has_it && let Some(other) = other_reader(root, &piece, agents)? {
                changes.kept.push(format!("`{}` stays as it is: {} reads it, too", piece.path, other.word()));
                continue;
            }
            changes.edit(root, &piece, |part, text| text.map_or(Ok(None), |text| part.remove(text)))?;
        }
        Ok(changes)
    }

    fn edit(
        &mut self,
        root: &Path,
        piece: &Piece,
        edit: impl FnOnce(&Part, Option<&str>) -> Result<Option<String>, super::trouble::Trouble>,
    ) -> Result<(), CliError> {
        let name = self.name_of(root, &piece.path)?;
        let file = self.files.get_mut(&name).expect("BUG: it was just read");
        // Several additions may go to the same file, so each starts from the result of the one before.
        file.after = edit(&piece.part, file.after.as_deref())
            .map_err(|trouble| CliError::AgentFile { path: name.clone(), trouble: Box::new(trouble) })?;
        Ok(())
    }

    /// Reads a file, unless it was already read under another name. If the name is a link, its target is changed and
    /// the link stays.
    fn name_of(&mut self, root: &Path, name: &str) -> Result<String, CliError> {
        let (path, real) = match spot(root, name)? {
            Spot::Inside { path, name } => (path, name),
            Spot::Outside { path } => return Err(leads_out(name, &path)),
        };
        if !self.files.contains_key(&real) {
            let before = read(&path)?;
            let link = (real != name).then(|| name.to_owned());
            self.files.insert(real.clone(), File { path, link, after: before.clone(), before });
        }
        Ok(real)
    }

    /// Returns the change of each file.
    pub(crate) fn list(&self) -> impl Iterator<Item = (&str, Change)> {
        self.files.iter().map(|(name, file)| (name.as_str(), file.change()))
    }

    /// Returns whether no file changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.list().all(|(_, change)| change == Change::Unchanged)
    }

    /// Returns the changed lines of all files.
    pub(crate) fn diff(&self, paint: Paint) -> Shown {
        let changed = self.files.iter().filter(|(_, file)| file.change() != Change::Unchanged);
        let diffs = changed.map(|(name, file)| {
            let remark = match file.change() {
                Change::Created => " (new)",
                Change::Deleted => " (deleted)",
                Change::Changed | Change::Unchanged => "",
            };
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let link = file.link.as_ref().map(|link| format!("{link} -> ")).unwrap_or_default();
            diff(&format!("{link}{name}{remark}"), &text(&file.before), &text(&file.after), paint)
        });
        Shown::joined(diffs, "\n")
    }

    /// Writes all changes.
    pub(crate) fn write(&self, root: &Path) -> Result<(), CliError> {
        let root = &fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        for file in self.files.values().filter(|file| file.change() != Change::Unchanged) {
            let failed = |source| CliError::File { action: "write", path: file.path.clone(), source };
            if let Some(text) = &file.after {
                replace_file(&file.path, text).map_err(failed)?;
            } else {
                fs::remove_file(&file.path).map_err(failed)?;
                clear_up(root, &file.path);
            }
        }
        Ok(())
    }
}

impl File {
    fn change(&self) -> Change {
        match (&self.before, &self.after) {
            (before, after) if before == after => Change::Unchanged,
            (None, _) => Change::Created,
            (_, None) => Change::Deleted,
            (Some(_), Some(_)) => Change::Changed,
        }
    }
}

/// Returns another set-up agent that reads the same instruction file, which therefore has to stay.
fn other_reader(root: &Path, piece: &Piece, leaving: &[Agent]) -> Result<Option<Agent>, CliError> {
    use clap::ValueEnum as _;
    if !matches!(piece.part, Part::Text(_)) {
        return Ok(None);
    }
    for agent in Agent::value_variants().iter().filter(|agent| !leaving.contains(agent)) {
        let pieces = agent.pieces(root, Wish::default());
        let reads_it = pieces.iter().any(|other| is_same(root, &other.path, &piece.path));
        let entry = agent.entry(root, Wish::default());
        if reads_it && read(&root.join(&entry.path))?.is_some_and(|text| entry.part.is_in(&text)) {
            return Ok(Some(*agent));
        }
    }
    Ok(None)
}

fn leads_out(name: &str, path: &Path) -> CliError {
    CliError::usage_with(
        format!("`{name}` leads through a link out of the project, to `{}`", path.display()),
        "nothing was changed: only files of the project are; put a file of its own there, or leave this agent out",
    )
}

fn is_same(root: &Path, one: &str, other: &str) -> bool {
    let real = |name: &str| fs::canonicalize(root.join(name)).unwrap_or_else(|_| root.join(name));
    one == other || real(one) == real(other)
}

fn read(path: &Path) -> Result<Option<String>, CliError> {
    match read_file(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CliError::File { action: "read", path: path.to_owned(), source }),
    }
}

/// Removes the empty directories above a deleted file, below the project's root.
fn clear_up(root: &Path, path: &Path) {
    let above =
        path.ancestors().skip(1).take_while(|directory| *directory != root && directory.starts_with(root));
    for directory in above {
        // The first directory that is not empty, or not removable, ends the search: those above it contain it.
        if fs::remove_dir(directory).is_err() {
            return;
        }
    }
}
