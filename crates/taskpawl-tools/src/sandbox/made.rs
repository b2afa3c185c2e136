//! What programs made that is obeyed later: what is not there cannot be covered, so it is looked for afterwards.

use std::path::PathBuf;

use taskpawl_process::Sandbox;

use crate::context::CallContext;

/// The protected files that are not there, in the project and wherever else a call may write.
#[derive(Debug, Default)]
pub(crate) struct Missing(Vec<PathBuf>);

impl Missing {
    /// Looks before a program starts. What is named as writable itself is nobody's surprise.
    pub(crate) fn before(cx: &CallContext) -> Self {
        if matches!(cx.sandbox, Sandbox::Off) {
            return Self::default();
        }
        let is_missing = |path: &&PathBuf| path.symlink_metadata().is_err();
        Self(cx.closed.obeyed().iter().filter(is_missing).cloned().collect())
    }

    /// Returns which of them are there now: in the project as paths of it, elsewhere as absolute ones.
    pub(crate) fn made_since(self, cx: &CallContext) -> Vec<String> {
        let made = self.0.into_iter().filter(|path| path.symlink_metadata().is_ok());
        let shown =
            |path: PathBuf| path.strip_prefix(&cx.root).unwrap_or(&path).to_string_lossy().into_owned();
        made.map(shown).collect()
    }
}
