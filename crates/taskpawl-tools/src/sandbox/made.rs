//! What programs made that is obeyed later: what is not there cannot be covered, so it is looked for afterwards.

use std::path::PathBuf;

use taskpawl_process::Sandbox;

use super::places::SandboxPlaces;
use crate::context::CallContext;

/// The protected files of the project that are not there.
#[derive(Debug, Default)]
pub(crate) struct Missing(Vec<PathBuf>);

impl Missing {
    /// Looks before a program starts. What is named as writable is nobody's surprise.
    pub(crate) fn before(cx: &CallContext) -> Self {
        let Sandbox::On(profile) = &cx.sandbox else { return Self::default() };
        let is_open = |path: &PathBuf| {
            let mut named = profile.write.iter().filter(|open| **open != cx.root);
            named.any(|open| open.starts_with(&cx.root) && path.starts_with(open))
        };
        let is_missing = |path: &PathBuf| path.symlink_metadata().is_err() && !is_open(path);
        Self(SandboxPlaces::obeyed(&cx.root).filter(is_missing).collect())
    }

    /// Returns which of them are there now, as paths of the project.
    pub(crate) fn made_since(self, cx: &CallContext) -> Vec<String> {
        let made = self.0.into_iter().filter(|path| path.symlink_metadata().is_ok());
        let shown =
            |path: PathBuf| path.strip_prefix(&cx.root).unwrap_or(&path).to_string_lossy().into_owned();
        made.map(shown).collect()
    }
}
