//! Files that a call leaves for its readers.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

/// A file that a call left. See [`CallContext::artifact`](crate::CallContext::artifact).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artifact {
    /// Name by which expressions read it; `None` for that of the file, up to its last dot.
    pub name: Option<String>,
    /// Path of the file: relative to the root, or absolute for a file in the directory of a run.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// Media type, by default from the ending of the name; `application/octet-stream` if that is unknown.
    pub media_type: Cow<'static, str>,
}

/// Directories for artifacts outside of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactDirs {
    /// The directory of the run, which programs of its calls write. They find it as `TASKPAWL_ARTIFACTS`.
    pub of_run: PathBuf,
    /// The directory with those of all runs, which programs read.
    pub all: PathBuf,
}

/// Receives the artifacts of a call; returns `false` if it takes no more.
pub type ArtifactSink = Arc<dyn Fn(Artifact) -> bool + Send + Sync>;

/// Largest number of artifacts of a call.
pub const MAX_ARTIFACTS: usize = 100;
