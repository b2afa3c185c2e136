//! Key of a store for digests of environment variables.
//!
//! Approvals and cached results hold for certain values. The store keeps digests of these, and a plain hash would reveal a
//! short value to everybody who reads the store and tries some.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

const FILE: &str = "variables.key";

const BYTES: usize = 32;

/// Number of hexadecimal digits of a digest.
const DIGITS: usize = 32;

/// Random key. That of a store is in a file beside it, which only its owner can read.
#[derive(Clone)]
pub(crate) struct VariableKey([u8; BYTES]);

impl fmt::Debug for VariableKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VariableKey")
    }
}

impl VariableKey {
    /// Returns the key of the store with the files in `directory`, and makes it first if there is none.
    ///
    /// # Concurrency
    /// All processes get the same key.
    pub(crate) fn of(directory: &Path) -> io::Result<Self> {
        let path = directory.join(FILE);
        match Self::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => return read,
        }
        let Self(key) = Self::random()?;
        fs::create_dir_all(directory)?;
        let own = directory.join(format!("{FILE}.{}", std::process::id()));
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&own)?;
        file.write_all(&key)?;
        file.sync_all()?;
        // A link fails if another process was faster, and never shows a half-written file.
        let linked = fs::hard_link(&own, &path);
        fs::remove_file(&own)?;
        match linked {
            Ok(()) => Ok(Self(key)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::read(&path),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn random() -> io::Result<Self> {
        let mut key = [0; BYTES];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Self(key))
    }

    fn read(path: &Path) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        let key = <[u8; BYTES]>::try_from(bytes.as_slice());
        key.map(Self).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "expected a key of 32 bytes"))
    }

    /// Returns the digest of the value of a variable.
    pub(crate) fn digest(&self, name: &str, value: &str) -> String {
        // The key is hashed twice around the value, as in HMAC. No name contains a NUL byte.
        let inner =
            Sha256::new().chain_update(self.0).chain_update(name).chain_update([0]).chain_update(value);
        let digest = Sha256::new().chain_update(self.0).chain_update(inner.finalize()).finalize();
        let mut text = format!("{digest:x}");
        text.truncate(DIGITS);
        text
    }
}

/// Returns the digest of a value under the key in a directory, which is made first if there is none.
///
/// # Errors
/// The key cannot be read or written.
pub fn keyed_digest(directory: &Path, name: &str, value: &str) -> io::Result<String> {
    Ok(VariableKey::of(directory)?.digest(name, value))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_store_keeps_its_key_and_others_have_another() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let of = |directory: &Path| VariableKey::of(directory).unwrap().digest("A", "value");
        assert_eq!(of(first.path()), of(first.path()));
        assert_ne!(of(first.path()), of(second.path()));
        let mode = fs::metadata(first.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(first.path()).unwrap().count(), 1);
        let key = VariableKey::of(first.path()).unwrap();
        assert_ne!(key.digest("A", "B"), key.digest("AB", ""));
        assert_ne!(key.digest("A", "value"), format!("{:x}", Sha256::digest("A\0value"))[..DIGITS]);
    }

    #[test]
    fn a_damaged_key_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), "short").unwrap();
        assert!(VariableKey::of(directory.path()).is_err());
    }
}
