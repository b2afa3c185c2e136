//! The files that a format consists of, by their names.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// What some editors put before a text: it says nothing of it, and stays.
const MARK: char = '\u{feff}';

/// Texts by the names of their files; a name has `/` between folders, and a single file has its own name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<String, String>);

impl Files {
    /// Returns one file.
    pub fn single(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut files = Self::default();
        files.insert(name, text);
        files
    }

    /// Adds a file, or takes the place of the one of that name.
    pub fn insert(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.0.insert(name.into(), text.into());
    }

    /// Takes a file out.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Returns the files without marks of the order of bytes.
    pub(crate) fn unmarked(&self) -> Cow<'_, Self> {
        if !self.0.values().any(|text| text.starts_with(MARK)) {
            return Cow::Borrowed(self);
        }
        let bare = |text: &str| text.strip_prefix(MARK).unwrap_or(text).to_owned();
        Cow::Owned(Self(self.0.iter().map(|(name, text)| (name.clone(), bare(text))).collect()))
    }

    /// Puts the marks back that files of these names had.
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

    /// Returns names and texts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Returns the first file: that of a format of one file.
    pub(crate) fn first(&self) -> (&str, &str) {
        self.iter().next().unwrap_or(("", ""))
    }
}
