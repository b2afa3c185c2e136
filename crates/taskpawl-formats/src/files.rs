//! The files of a format, by name.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The byte order mark that some editors put at the start of a text. It is no content, but is written back.
const MARK: char = '\u{feff}';

/// The texts of files, by name. Folders in a name are separated by `/`; the name of a single file has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<String, String>);

impl Files {
    /// Returns a set with one file.
    pub fn single(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut files = Self::default();
        files.insert(name, text);
        files
    }

    /// Adds a file, or replaces the one with the same name.
    pub fn insert(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.0.insert(name.into(), text.into());
    }

    /// Removes a file.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Returns the files without byte order marks.
    pub(crate) fn unmarked(&self) -> Cow<'_, Self> {
        if !self.0.values().any(|text| text.starts_with(MARK)) {
            return Cow::Borrowed(self);
        }
        let bare = |text: &str| text.strip_prefix(MARK).unwrap_or(text).to_owned();
        Cow::Owned(Self(self.0.iter().map(|(name, text)| (name.clone(), bare(text))).collect()))
    }

    /// Restores the byte order marks that the files of the same names had.
    pub(crate) fn marked_as(mut self, before: &Self) -> Self {
        for (name, text) in &mut self.0 {
            if before.get(name).is_some_and(|before| before.starts_with(MARK)) {
                text.insert(0, MARK);
            }
        }
        self
    }

    /// Returns the text of a file.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Iterates over names and texts, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
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
