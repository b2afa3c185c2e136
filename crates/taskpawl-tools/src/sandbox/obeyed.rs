//! A file or directory that other programs obey without asking.

use std::path::{Path, PathBuf};

/// Describes the target of a link for messages.
pub(crate) fn leading(to: &str) -> String {
    format!("leads to {}", shortened(to))
}

/// A file or directory that other programs obey: they run it, or load it as configuration, without asking. Git hooks are an example.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Obeyed {
    /// The protected path: `path` itself, or the directory that it lies in.
    pub(super) place: PathBuf,
    /// The file or directory itself.
    pub(super) path: PathBuf,
    /// The parts that are obeyed, such as settings of a file. Empty if that is all of it.
    pub(super) what: Vec<String>,
}

impl Obeyed {
    /// Returns a path that is obeyed as a whole.
    pub(super) fn whole(place: PathBuf) -> Self {
        Self { path: place.clone(), place, what: Vec::new() }
    }

    /// Returns a path that is obeyed as a whole, with its target if it is a link. A link with another target counts as a new one.
    pub(super) fn found(place: PathBuf) -> Self {
        let what = place.read_link().ok().map(|to| crate::sandbox::obeyed::leading(&to.to_string_lossy()));
        Self { what: what.into_iter().collect(), ..Self::whole(place) }
    }

    /// Formats the path, relative to the root inside the project, for messages.
    pub(crate) fn shown(&self, root: &Path) -> String {
        let path = self.path.strip_prefix(root).unwrap_or(&self.path).display();
        if self.what.is_empty() { path.to_string() } else { format!("{path} ({})", self.what.join(", ")) }
    }
}

/// Shortens text of unknown origin for messages, and removes control characters, which could control a terminal.
pub(crate) fn shortened(text: &str) -> String {
    let shown: String = text.chars().filter(|char| !char.is_control()).take(CHARS).collect();
    if text.chars().nth(CHARS).is_some() { shown + "…" } else { shown }
}

pub(crate) const CHARS: usize = 80;
