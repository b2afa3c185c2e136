//! A JSON file that contains a list, next to fields of other programs, which are preserved.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use crate::answer;
use crate::folder::{Folder, Place};

/// Location and format of a list file.
#[derive(Debug, Clone)]
pub(crate) struct ListFile {
    pub(crate) place: Place,
    pub(crate) name: String,
    /// Name of the field that contains the list.
    pub(crate) field: &'static str,
    /// Names of the item fields that this version supports, in the order in which they are written.
    pub(crate) known: &'static [&'static str],
    /// The place of the content if it is kept in memory, not in a file.
    pub(crate) memory: Option<MemoryFiles>,
}

/// The contents of lists in memory, by the names that their files would have.
pub(crate) type MemoryFiles = Arc<Mutex<BTreeMap<String, Content>>>;

/// Content of a list file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Content {
    /// Items of the list.
    pub(crate) items: Vec<Value>,
    /// All other fields of the file.
    pub(crate) beside: Map<String, Value>,
}

/// A list could not be read or written. The file is unchanged.
#[derive(Debug)]
pub(crate) enum FileError {
    /// The file does not have the expected structure.
    Corrupt { detail: String },
    /// An operation of the file system failed.
    Io(io::Error),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Returns an error about the structure of a file.
pub(crate) fn corrupt(detail: impl Into<String>) -> FileError {
    FileError::Corrupt { detail: detail.into() }
}

impl ListFile {
    /// Reads the list. A missing file counts as an empty list; nothing is created.
    pub(crate) fn read(&self) -> Result<Content, FileError> {
        if let Some(memory) = &self.memory {
            let files = memory.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(files.get(&self.name).cloned().unwrap_or_default());
        }
        match self.place.open()? {
            Some(folder) => self.read_in(&folder),
            None => Ok(Content::default()),
        }
    }

    /// Changes the list under the lock of its folder. Creates the folder if necessary, and writes the file only if the
    /// content changed.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Content) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        if let Some(memory) = &self.memory {
            let mut files = memory.lock().unwrap_or_else(PoisonError::into_inner);
            let mut content = files.get(&self.name).cloned().unwrap_or_default();
            let answer = change(&mut content)?;
            files.insert(self.name.clone(), content);
            return Ok(answer);
        }
        let folder = self.place.open_locked()?;
        let before = self.read_in(&folder)?;
        let mut content = before.clone();
        let answer = change(&mut content)?;
        if content != before {
            folder.replace(&self.name, self.text(content).as_bytes())?;
        }
        Ok(answer)
    }

    /// Like [`change`](Self::change), but returns `None` if the folder does not exist: for changes that need an
    /// existing item.
    pub(crate) fn change_existing<T>(
        &self,
        change: impl FnOnce(&mut Content) -> Result<T, FileError>,
    ) -> Result<Option<T>, FileError> {
        if self.memory.is_none() && self.place.open()?.is_none() {
            Ok(None)
        } else {
            self.change(change).map(Some)
        }
    }

    fn read_in(&self, folder: &Folder) -> Result<Content, FileError> {
        let Some(bytes) = folder.read(&self.name)? else { return Ok(Content::default()) };
        let value: Value = taskpawl_json::read(&bytes).map_err(|error| corrupt(error.to_string()))?;
        let Value::Object(mut beside) = value else { return Err(corrupt("expected an object")) };
        match beside.remove(self.field) {
            Some(Value::Array(items)) => Ok(Content { items, beside }),
            Some(_) => Err(corrupt(format!("`{}` is not a list", self.field))),
            None => Err(corrupt(format!("`{}` is missing", self.field))),
        }
    }

    /// Serializes the content. The list comes first, and in each item the supported fields come first.
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

/// Returns the fields of an object: those in `first`, in that order, before all others.
fn sorted<'a>(object: &'a Map<String, Value>, first: &[&str]) -> Vec<(&'a String, &'a Value)> {
    let place = |name: &str| first.iter().position(|known| *known == name).unwrap_or(first.len());
    let mut fields: Vec<_> = object.iter().collect();
    fields.sort_by_key(|(name, _)| place(name));
    fields
}
