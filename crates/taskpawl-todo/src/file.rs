//! A file that holds one list, beside fields that others may have put there.

use std::io;

use serde_json::{Map, Value};

use crate::answer;
use crate::folder::{Folder, Place};

/// Where a list is kept.
#[derive(Debug, Clone)]
pub(crate) struct ListFile {
    pub(crate) place: Place,
    pub(crate) name: String,
    /// The field that holds the list.
    pub(crate) field: &'static str,
    /// The fields of an item that this version knows, in order.
    pub(crate) known: &'static [&'static str],
}

/// What a file holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Content {
    /// The list.
    pub(crate) items: Vec<Value>,
    /// Everything else.
    pub(crate) beside: Map<String, Value>,
}

/// A list could not be read or written; the file is as it was.
#[derive(Debug)]
pub(crate) enum FileError {
    /// The file is not what it should be.
    Corrupt { detail: String },
    /// The operating system refused something.
    Io(io::Error),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Returns an error about the shape of a file.
pub(crate) fn corrupt(detail: impl Into<String>) -> FileError {
    FileError::Corrupt { detail: detail.into() }
}

impl ListFile {
    /// Reads the list; a file that is not there holds none. Makes nothing.
    pub(crate) fn read(&self) -> Result<Content, FileError> {
        match self.place.open()? {
            Some(folder) => self.read_in(&folder),
            None => Ok(Content::default()),
        }
    }

    /// Lets `change` change the list, while nobody else does, and writes it if that changed anything. The folder is made.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Content) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        let folder = self.place.open_locked()?;
        let before = self.read_in(&folder)?;
        let mut content = before.clone();
        let answer = change(&mut content)?;
        if content != before {
            folder.replace(&self.name, self.text(content).as_bytes())?;
        }
        Ok(answer)
    }

    /// As [`change`](Self::change), but makes no folder for a change that needs a list.
    pub(crate) fn change_existing<T>(
        &self,
        change: impl FnOnce(&mut Content) -> Result<T, FileError>,
    ) -> Result<Option<T>, FileError> {
        if self.place.open()?.is_none() { Ok(None) } else { self.change(change).map(Some) }
    }

    fn read_in(&self, folder: &Folder) -> Result<Content, FileError> {
        let Some(bytes) = folder.read(&self.name)? else { return Ok(Content::default()) };
        let value: Value = taskpawl_json::read(&bytes).map_err(|error| corrupt(error.to_string()))?;
        let Value::Object(mut beside) = value else { return Err(corrupt("it holds no object")) };
        match beside.remove(self.field) {
            Some(Value::Array(items)) => Ok(Content { items, beside }),
            Some(_) => Err(corrupt(format!("`{}` is no list", self.field))),
            None => Err(corrupt(format!("`{}` is missing", self.field))),
        }
    }

    /// The list comes first, and in its items the fields that this version knows.
    fn text(&self, mut content: Content) -> String {
        let known = self.known;
        let items: Vec<String> = content.items.iter().map(|item| in_order(item, known)).collect();
        content.beside.insert(self.field.to_owned(), Value::Null);
        let fields = sorted(&content.beside, &[self.field]).into_iter().map(|(name, value)| {
            let value =
                if name == self.field { format!("[{}]", items.join(",")) } else { answer::text(value) };
            format!("{}:{value}", answer::text(name))
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }
}

fn in_order(item: &Value, known: &[&str]) -> String {
    let Some(item) = item.as_object() else { return answer::text(item) };
    let fields = sorted(item, known).into_iter();
    let fields = fields.map(|(name, value)| format!("{}:{}", answer::text(name), answer::text(value)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Returns the fields of an object, those in `first` before all others.
fn sorted<'a>(object: &'a Map<String, Value>, first: &[&str]) -> Vec<(&'a String, &'a Value)> {
    let place = |name: &str| first.iter().position(|known| *known == name).unwrap_or(first.len());
    let mut fields: Vec<_> = object.iter().collect();
    fields.sort_by_key(|(name, _)| place(name));
    fields
}
