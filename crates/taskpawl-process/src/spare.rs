use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Output files that stayed empty, kept for the next programs and removed when the last handle is gone.
///
/// Most programs print nothing to one of their streams. A file system may search long for a free inode while others were
/// deleted within the last minutes (ext4 does): making and removing two files for each program took more time than the
/// program.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpareFiles(Arc<Pool>);

#[derive(Debug, Default)]
struct Pool(Mutex<Vec<Spare>>);

#[derive(Debug)]
struct Spare {
    path: PathBuf,
    file: File,
}

impl SpareFiles {
    /// Returns an empty file that stands at `path` from now on, if there is a spare one on that file system.
    pub(crate) fn take(&self, path: &Path) -> Option<File> {
        let spare = {
            let mut spares = self.lock();
            // One that already stands there must not be replaced by another one.
            let there = spares.iter().position(|spare| spare.path == path);
            there.map(|there| spares.swap_remove(there)).or_else(|| spares.pop())?
        };
        if std::fs::rename(&spare.path, path).is_ok() {
            return Some(spare.file);
        }
        remove(&spare.path);
        None
    }

    /// Takes an empty file. No program has it open: they print into pipes.
    pub(crate) fn give(&self, path: PathBuf, file: File) {
        self.lock().push(Spare { path, file });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Spare>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for spare in self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            remove(&spare.path);
        }
    }
}

/// An empty file that cannot be removed says nothing and takes no room.
fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}
