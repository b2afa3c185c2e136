//! The files of a format, by name.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The byte order mark that some editors put at the start of a text. It is no content, but is written back.
const MARK: char = '\u{feff}';

/// The texts of files, by name. Folders in a name are separated by `/`; the name of a single file has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    texts: BTreeMap<String, String>,
    /// The names of files that cannot be read.
    unread: BTreeSet<String>,
}

impl Files {
    /// Returns a set with one file.
    pub fn single(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut files = Self::default();
        files.insert(name, text);
        files
    }

    /// Adds a file, or replaces the one with the same name.
    pub fn insert(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.texts.insert(name.into(), text.into());
    }

    /// Adds the name of a file that cannot be read, so that no new file gets it.
    pub fn insert_unread(&mut self, name: impl Into<String>) {
        self.unread.insert(name.into());
    }

    /// Iterates over the names of all files, also of those that cannot be read.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.texts.keys().chain(&self.unread).map(String::as_str)
    }

    /// Removes a file.
    pub(crate) fn remove(&mut self, name: &str) {
        self.texts.remove(name);
    }

    /// Returns the files without byte order marks.
    pub(crate) fn unmarked(&self) -> Cow<'_, Self> {
        if !self.texts.values().any(|text| text.starts_with(MARK)) {
            return Cow::Borrowed(self);
        }
        let bare = |text: &str| text.strip_prefix(MARK).unwrap_or(text).to_owned();
        let texts = self.texts.iter().map(|(name, text)| (name.clone(), bare(text))).collect();
        Cow::Owned(Self { texts, unread: self.unread.clone() })
    }

    /// Restores the byte order marks that the files of the same names had.
    pub(crate) fn marked_as(mut self, before: &Self) -> Self {
        for (name, text) in &mut self.texts {
            if before.get(name).is_some_and(|before| before.starts_with(MARK)) {
                text.insert(0, MARK);
            }
        }
        self
    }

    /// Returns the text of a file.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    /// Returns true if there is a file with this name, also one that cannot be read.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.texts.contains_key(name) || self.unread.contains(name)
    }

    /// Iterates over names and texts, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Returns true if the files have nothing but white space and byte order marks, or if there are none.
    pub fn are_blank(&self) -> bool {
        self.texts.values().all(|text| text.trim_start_matches(MARK).trim().is_empty())
    }

    /// Returns the first file, which is the only one for formats of a single file. Both parts are empty if there is none.
    pub(crate) fn first(&self) -> (&str, &str) {
        self.iter().next().unwrap_or(("", ""))
    }
}

/// Returns true if a file name has the extension, in any case.
pub(crate) fn has_extension(name: &str, wanted: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case(wanted))
}
