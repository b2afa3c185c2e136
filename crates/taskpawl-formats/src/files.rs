//! The files that a format consists of, by their names.

use std::collections::BTreeMap;

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
