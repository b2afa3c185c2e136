//! The secrets of one run: asked for once, put into arguments at the last moment, taken out of everything that is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use taskpawl_process::{OutputFilter, StreamFilter};

use crate::redact::{Redactor, RedactorStream};
use crate::secrets::{SecretError, SecretSource, checked};

/// The secrets that a run knows. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    source: Arc<dyn SecretSource>,
    known: Mutex<BTreeMap<String, String>>,
    /// One call asks at a time: a second one finds what the first one got, and a person is asked once.
    asking: Mutex<()>,
    /// Made anew with each secret that becomes known.
    redactor: RwLock<Redactor>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("source", &self.0.source).finish_non_exhaustive()
    }
}

impl Vault {
    /// Opens a vault that knows what is at hand. It blocks for as long as that takes to read.
    pub fn open(source: Arc<dyn SecretSource>) -> Self {
        let known: BTreeMap<String, String> = source
            .at_hand()
            .into_iter()
            .filter(|(name, value)| checked(name, value.clone()).is_ok())
            .collect();
        let redactor = RwLock::new(redactor(&known));
        let (known, asking) = (Mutex::new(known), Mutex::default());
        Self(Arc::new(Inner { source, known, asking, redactor }))
    }

    /// Returns the values of these secrets. It may block: sources are asked for those that are not known yet.
    ///
    /// # Errors
    /// One of them cannot be had.
    pub fn resolve(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, String>, SecretError> {
        if !self.knows(names) {
            let _turn = self.0.asking.lock().unwrap_or_else(PoisonError::into_inner);
            for name in names {
                if !self.known().contains_key(name) {
                    let value = checked(name, self.0.source.secret(name)?)?;
                    self.learn(name, value);
                }
            }
        }
        let known = self.known();
        let value = |name: &String| known.get(name).map(|value| (name.clone(), value.clone()));
        Ok(names.iter().filter_map(value).collect())
    }

    fn learn(&self, name: &str, value: String) {
        let mut known = self.known();
        known.insert(name.to_owned(), value);
        *self.0.redactor.write().unwrap_or_else(PoisonError::into_inner) = redactor(&known);
    }

    /// Returns whether the values of these secrets are known without asking anybody.
    pub fn knows(&self, names: &BTreeSet<String>) -> bool {
        let known = self.known();
        names.iter().all(|name| known.contains_key(name))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what takes out everything that is known now.
    pub fn redactor(&self) -> Redactor {
        self.0.redactor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn redactor(known: &BTreeMap<String, String>) -> Redactor {
    Redactor::new(known.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// Output files are read when their program is over: by then everything is known that it was given.
impl OutputFilter for Vault {
    fn begin(&self) -> Box<dyn StreamFilter> {
        Box::new(self.redactor().stream())
    }
}

impl StreamFilter for RedactorStream {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        RedactorStream::push(self, bytes, out);
    }

    fn finish(self: Box<Self>, out: &mut Vec<u8>) {
        RedactorStream::finish(*self, out);
    }
}
