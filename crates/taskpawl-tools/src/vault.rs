//! Secrets of one run: requested once, inserted into arguments at the last moment, and redacted in everything stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use taskpawl_process::{OutputFilter, StreamFilter};

use crate::redact::{Redactor, RedactorStream};
use crate::secrets::{SecretError, SecretSource, checked};

/// Secrets that a run knows. Cheap to clone; all clones share the same secrets.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    source: Arc<dyn SecretSource>,
    known: Mutex<BTreeMap<String, String>>,
    /// Held while a source is asked. A second call then finds the values of the first one, so that a person is asked
    /// only once.
    asking: Mutex<()>,
    /// Rebuilt whenever a secret becomes known.
    redactor: RwLock<Redactor>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("source", &self.0.source).finish_non_exhaustive()
    }
}

impl Vault {
    /// Makes a vault with the secrets that are available at no cost. It blocks while they are read.
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

    /// Returns the values of these secrets. It may block, for the source is asked for values that are not known yet.
    ///
    /// # Errors
    /// A secret is unavailable or unusable.
    pub fn resolve(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, String>, SecretError> {
        if !self.knows(names) {
            let _turn = self.0.asking.lock().unwrap_or_else(PoisonError::into_inner);
            for name in names {
                // Checked again under the lock, for the call before may have requested the same secret.
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
        // The redactor is replaced before the value is handed out, so that no output with the value can be stored
        // unredacted.
        let mut known = self.known();
        known.insert(name.to_owned(), value);
        *self.0.redactor.write().unwrap_or_else(PoisonError::into_inner) = redactor(&known);
    }

    /// Returns whether all these secrets are known, so that [`resolve`](Self::resolve) would not block.
    pub fn knows(&self, names: &BTreeSet<String>) -> bool {
        let known = self.known();
        names.iter().all(|name| known.contains_key(name))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a redactor for all secrets that are known now.
    pub fn redactor(&self) -> Redactor {
        self.0.redactor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn redactor(known: &BTreeMap<String, String>) -> Redactor {
    Redactor::new(known.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// Output files are filtered after their program has ended; by then every secret that it was given is known.
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
