//! The store in one readable file, for small plans and for users who want to read them or keep them in git.

mod backups;
mod document;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod load;
mod plain;
mod rewrite;
#[cfg(test)]
mod tests;
mod upgrade;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Map, Value};
use taskpawl_model::value::Timestamp;
use taskpawl_model::view::{Changes, View, ViewResult};

pub(crate) use self::backups::{back_up, read_backup, restore};
pub(crate) use self::rewrite::{rewrite, rewrite_copy};

use self::document::Document;
use self::upgrade::{UPGRADES, Upgrade, upgrade};
use crate::StoreError;
use crate::backend::{Backend, Reader, Watch};
use crate::examine::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::file_system::FileSystemKind;
use crate::files::{self, LockFile};
use crate::memory::State;

/// Above this number of tasks a warning recommends a database.
const MANY_TASKS: usize = 2_000;

/// Returns both sides of the store at `path`. Opens no file before the first use.
pub(crate) fn open(path: &Path) -> (Box<dyn Backend>, Box<dyn Reader>) {
    open_with(path, UPGRADES)
}

fn open_with(path: &Path, upgrades: &'static [Upgrade]) -> (Box<dyn Backend>, Box<dyn Reader>) {
    let file = Arc::new(JsonFile { path: path.to_owned(), upgrades, cache: Mutex::default() });
    let backend = JsonBackend { file: Arc::clone(&file), lock: None, working: None };
    (Box::new(backend), Box::new(JsonReader { file }))
}

/// Checks the file at `path`. Derived data needs no check, because every read derives it again.
pub(crate) fn examine(path: &Path) -> Result<Vec<Diagnostic>, StoreError> {
    let file = JsonFile { path: path.to_owned(), upgrades: UPGRADES, cache: Mutex::default() };
    file.load()?;
    let bytes = fs::read(path).map_err(|error| StoreError::io("read", path, error))?;
    let (document, _) = file.parse(&bytes)?;
    let mut found =
        Diagnostics::new("edited", Severity::Note, "no action is needed: the next write records the edit");
    for id in load::edited(&document) {
        found.add(format!("task `{id}`"), "it was edited outside taskpawl");
    }
    Ok(found.finish())
}

/// The file, with a cache of its parsed content.
#[derive(Debug)]
struct JsonFile {
    path: PathBuf,
    upgrades: &'static [Upgrade],
    cache: Mutex<Option<Loaded>>,
}

#[derive(Debug, Clone)]
struct Loaded {
    signature: Option<Signature>,
    state: Arc<State>,
    extra: Map<String, Value>,
    /// The schema version of the file, if it is older than this program. The file is then copied before the
    /// first write.
    older: Option<i64>,
}

/// Identifies the content of the file without reading it. Every write of a store replaces the file and so
/// changes the inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Signature {
    identity: files::Identity,
    length: u64,
    modified: Option<SystemTime>,
}

impl Signature {
    fn of(data: &fs::Metadata) -> Self {
        Self { identity: files::identity_of(data), length: data.len(), modified: data.modified().ok() }
    }
}

impl JsonFile {
    /// Returns the content of the file, from the cache if it is current. A missing file is an empty store.
    fn load(&self) -> Result<Loaded, StoreError> {
        let signature = self.signature()?;
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = cache.as_ref().filter(|loaded| loaded.signature == signature) {
            return Ok(loaded.clone());
        }
        let loaded = self.read()?;
        *cache = Some(loaded.clone());
        Ok(loaded)
    }

    fn signature(&self) -> Result<Option<Signature>, StoreError> {
        match fs::metadata(&self.path) {
            Ok(data) => {
                files::check_regular(&data).map_err(|error| StoreError::io("read", &self.path, error))?;
                Ok(Some(Signature::of(&data)))
            }
            Err(error) if files::is_absent(&error) => Ok(None),
            Err(error) => Err(StoreError::io("look at", &self.path, error)),
        }
    }

    fn read(&self) -> Result<Loaded, StoreError> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if files::is_absent(&error) => {
                return Ok(Loaded { signature: None, state: Arc::default(), extra: Map::new(), older: None });
            }
            Err(error) => return Err(StoreError::io("open", &self.path, error)),
        };
        let mut read = || {
            // Taken from the open file, not from the path: the path may name a newer file before the read is
            // complete.
            let signature = Signature::of(&file.metadata()?);
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok((signature, bytes))
        };
        let (signature, bytes) =
            read().map_err(|error: io::Error| StoreError::io("read", &self.path, error))?;
        let (mut document, older) = self.parse(&bytes)?;
        let state = load::state_of(&mut document, timestamp(signature.modified))
            .map_err(|detail| self.corrupt(detail))?;
        Ok(Loaded { signature: Some(signature), state: Arc::new(state), extra: document.extra, older })
    }

    /// Parses the file, migrated to this schema version. Also returns the old version if a migration was
    /// necessary.
    fn parse(&self, bytes: &[u8]) -> Result<(Document, Option<i64>), StoreError> {
        let corrupt = |error: serde_json::Error| self.corrupt(error.to_string());
        let mut value: Value = taskpawl_json::read(bytes).map_err(|error| self.corrupt(error.to_string()))?;
        let path = || self.path.clone();
        if plain::is_printed(&value) {
            return Err(StoreError::Printed { path: path() });
        }
        let known = upgrade::version(self.upgrades);
        let Some(found) = value.get("schemaVersion").and_then(Value::as_i64) else {
            let Some(content) = plain::content_of(&value, known) else {
                return Err(StoreError::NotAStore { path: path() });
            };
            let document = serde_json::from_value(content).map_err(corrupt)?;
            return Ok((document, Some(plain::VERSION)));
        };
        match found {
            ..=0 => Err(self.corrupt(format!("invalid schema version {found}"))),
            found if found > known => Err(StoreError::Newer { path: path(), found, known }),
            found if found == known => {
                // Parse from the text again: errors of `from_value` have no line number.
                serde_json::from_slice(bytes).map(|document| (document, None)).map_err(corrupt)
            }
            found => {
                upgrade(&mut value, found, self.upgrades);
                serde_json::from_value(value).map(|document| (document, Some(found))).map_err(corrupt)
            }
        }
    }

    fn save(&self, state: State, extra: Map<String, Value>) -> Result<(), StoreError> {
        let version = upgrade::version(self.upgrades);
        let document = Document::new(&state, version, extra).map_err(StoreError::from_view)?;
        // Refuse to write a file that the next read would refuse.
        load::check_numbers(&document).map_err(|detail| self.corrupt(detail))?;
        self.keep_older()?;
        files::replace(&self.path, document.to_text().as_bytes())?;
        // The file is durable already, so a failed `stat` is no error: without a cache the next read parses
        // the file again.
        let loaded = self.signature().ok().map(|signature| Loaded {
            signature,
            state: Arc::new(state),
            extra: document.extra,
            older: None,
        });
        *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }

    /// Copies the file beside itself before its first write in a newer schema version.
    fn keep_older(&self) -> Result<(), StoreError> {
        let Some(version) = self.load()?.older else { return Ok(()) };
        let content = fs::read(&self.path).map_err(|error| StoreError::io("read", &self.path, error))?;
        let is_same = |backup: &Path| fs::read(backup).is_ok_and(|backup| backup == content);
        match files::free_backup_path(&self.path, version, is_same) {
            Some(free) => files::replace(&free, &content),
            None => Ok(()),
        }
    }

    fn corrupt(&self, detail: String) -> StoreError {
        StoreError::Corrupt { path: self.path.clone(), detail, has_log: false }
    }
}

/// Returns the modification time of a file, or the epoch if the system does not have it.
fn timestamp(modified: Option<SystemTime>) -> Timestamp {
    let since_1970 = modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let nanos = since_1970.and_then(|time| i64::try_from(time.as_nanos()).ok());
    Timestamp::from_timestamp_nanos(nanos.unwrap_or(0))
}

#[derive(Debug)]
struct JsonBackend {
    file: Arc<JsonFile>,
    lock: Option<LockFile>,
    /// The state of the open transaction, and the unknown fields of the file.
    working: Option<(State, Map<String, Value>)>,
}

impl JsonBackend {
    fn lock(&mut self) -> Result<(), StoreError> {
        if self.lock.is_none() {
            files::make_directory(files::directory_of(&self.file.path))?;
            self.lock = Some(LockFile::open(&self.file.path)?);
        }
        self.lock.as_ref().map_or(Ok(()), LockFile::lock)
    }

    fn unlock(&mut self) {
        self.lock.iter().for_each(LockFile::unlock);
    }
}

impl Backend for JsonBackend {
    fn begin(&mut self) -> Result<(), StoreError> {
        self.lock()?;
        match self.file.load() {
            Ok(Loaded { state, extra, .. }) => {
                // A copy, so that a rollback only has to drop it.
                self.working = Some(((*state).clone(), extra));
                Ok(())
            }
            Err(error) => {
                self.unlock();
                Err(error)
            }
        }
    }

    fn view(&self) -> &dyn View {
        &self.working.as_ref().expect("BUG: a view is taken within a transaction").0
    }

    fn apply(&mut self, changes: Changes) -> Result<u64, StoreError> {
        let (state, _) = self.working.as_mut().expect("BUG: changes are applied within a transaction");
        Ok(state.apply(changes))
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let (state, extra) = self.working.take().expect("BUG: a commit ends a transaction");
        let result = self.file.save(state, extra);
        self.unlock();
        result
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        self.working = None;
        self.unlock();
        Ok(())
    }
}

#[derive(Debug)]
struct JsonReader {
    file: Arc<JsonFile>,
}

impl Reader for JsonReader {
    fn read(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        look(&*self.file.load()?.state).map_err(StoreError::from_view)
    }

    fn watch(&self) -> Result<Box<dyn Watch + '_>, StoreError> {
        Ok(Box::new(FileWatch { file: &self.file, has_looked: false, last: None }))
    }

    fn warnings(&self) -> Result<Vec<String>, StoreError> {
        let mut warnings: Vec<_> =
            FileSystemKind::of(&self.file.path).warning(&self.file.path).into_iter().collect();
        let count = self.file.load()?.state.entries.len();
        if count > MANY_TASKS {
            let path = self.file.path.display();
            warnings.push(format!(
                "`{path}` contains {count} tasks and is rewritten with every change: above {MANY_TASKS} tasks, a database is faster"
            ));
        }
        Ok(warnings)
    }
}

struct FileWatch<'a> {
    file: &'a JsonFile,
    has_looked: bool,
    last: Option<Signature>,
}

impl Watch for FileWatch<'_> {
    fn has_changed(&mut self) -> Result<bool, StoreError> {
        let now = self.file.signature()?;
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        Ok(std::mem::replace(&mut self.last, now) != now || is_first)
    }
}
