//! Calls that record files as artifacts.

use std::io::Read as _;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::CallContext;
use crate::artifact::{Artifact, MAX_ARTIFACTS};
use crate::error::ToolError;
use crate::root::{Root, io_error};

/// Media types by the ending of a name. A table of the types that agents write; the whole registry would be larger than this crate.
const MEDIA_TYPES: &[(&str, &str)] = &[
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("txt", "text/plain"),
    ("wav", "audio/wav"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

impl CallContext {
    /// Records a file beneath the root, or in [`artifact_dirs`](Self::artifact_dirs), as an artifact of the call, with its size, hash and
    /// type. The file stays where it is.
    ///
    /// Readers find it in [`Task::artifacts`](https://docs.rs/taskpawl) and in `taskpawl show`. An artifact with the path of an earlier one
    /// replaces it; those of an earlier start are dropped. They are recorded even if the call fails then. Outside of a run nothing is
    /// recorded.
    ///
    /// # Errors
    /// The path leads out of the root or is excluded, is no regular file, or cannot be read; or the call has too many artifacts.
    pub async fn artifact(&self, path: impl AsRef<Path>) -> Result<Artifact, ToolError> {
        let (cx, path) = (self.clone(), path.as_ref().to_owned());
        let read = tokio::task::spawn_blocking(move || cx.describe_artifact(&path)).await;
        self.record_artifact(read.map_err(std::io::Error::from)??)
    }

    /// Reads a file, and returns it as an artifact.
    pub(crate) fn describe_artifact(&self, path: &Path) -> Result<Artifact, ToolError> {
        let dirs = self.artifact_dirs.as_ref().filter(|dirs| path.starts_with(&dirs.all));
        let root = match dirs {
            Some(dirs) => Root::at(&dirs.all)?,
            None => Root::open(self)?,
        };
        let mut file = root.read(path)?;
        let real = root.real_path(path)?;
        let below = real.strip_prefix(root.real()).unwrap_or(&real).to_owned();
        let place = dirs.map_or_else(|| below.clone(), |dirs| dirs.all.join(&below));
        let (mut digest, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 64 << 10]);
        loop {
            self.check()?;
            let count = file.read(&mut buffer).map_err(|error| io_error("read", path, error))?;
            if count == 0 {
                break;
            }
            digest.update(&buffer[..count]);
            bytes += count as u64;
        }
        let sha256 = format!("{:x}", digest.finalize());
        Ok(Artifact { name: None, media_type: media_type(&below).into(), path: place, bytes, sha256 })
    }

    /// Records an artifact that is described already.
    pub(crate) fn record_artifact(&self, artifact: Artifact) -> Result<Artifact, ToolError> {
        match &self.artifacts {
            Some(sink) if !sink(artifact.clone()) => Err(ToolError::failed(format!(
                "the call has {MAX_ARTIFACTS} artifacts, and may have no more"
            ))),
            Some(_) | None => Ok(artifact),
        }
    }
}

fn media_type(path: &Path) -> &'static str {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let known = MEDIA_TYPES.iter().find(|(known, _)| *known == ending);
    known.map_or("application/octet-stream", |(_, media_type)| media_type)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn an_artifact_is_a_file_beneath_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.CSV"), "a,b\n").unwrap();
        std::fs::write(outside.path().join("b"), "b").unwrap();
        std::os::unix::fs::symlink(outside.path().join("b"), dir.path().join("link")).unwrap();
        let mut cx = CallContext::new(dir.path(), dir.path());
        let artifact = cx.artifact("a.CSV").await.unwrap();
        assert_eq!((artifact.path.as_path(), artifact.bytes), (Path::new("a.CSV"), 4));
        assert_eq!(artifact.media_type, "text/csv");
        assert_eq!(artifact.sha256, format!("{:x}", Sha256::digest("a,b\n")));
        assert_eq!(cx.artifact(dir.path().join("./a.CSV")).await.unwrap(), artifact);
        for path in ["link", "../b", ".", "none"] {
            assert!(cx.artifact(path).await.is_err(), "{path}");
        }
        let got = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&got);
        cx.artifacts = Some(Arc::new(move |artifact| {
            into.lock().unwrap().push(artifact);
            false
        }));
        assert!(cx.artifact("a.CSV").await.unwrap_err().to_string().contains("100 artifacts"));
        assert_eq!(*got.lock().unwrap(), [artifact]);
    }
}
