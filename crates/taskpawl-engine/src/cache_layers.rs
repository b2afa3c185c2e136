//! The changes of programs to caches in the home, which lie in layers of the project.

use serde::Serialize;

use crate::engine::Engine;
use crate::error::RunError;
use crate::private_tmp;

/// The changes of a project's programs to caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheLayers {
    /// Size on disk, in bytes.
    pub bytes: u64,
    /// Size above which they are removed before the next run.
    pub limit: u64,
    /// True if they were removed.
    pub is_removed: bool,
}

impl Engine {
    /// Returns the size of the layers. Reads all directories in them.
    pub fn cache_layers(&self) -> CacheLayers {
        let bytes = private_tmp::size_of_caches(&self.project.files);
        CacheLayers { bytes, limit: private_tmp::MAX_CACHE_SIZE, is_removed: false }
    }

    /// Removes the layers, unless a run uses them. Returns their size before.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove_cache_layers(&self) -> Result<CacheLayers, RunError> {
        let layers = self.cache_layers();
        let path = self.project.files.join(private_tmp::DIRECTORY);
        let removed = private_tmp::remove_caches(&self.project.files);
        let is_removed = removed.map_err(|source| RunError::Files { action: "remove", path, source })?;
        Ok(CacheLayers { is_removed, ..layers })
    }
}
