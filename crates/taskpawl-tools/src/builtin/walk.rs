//! Walk over the files that are not ignored, shared by `glob` and `grep`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use globset::{Glob, GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use serde_json::{Map, Value};

use crate::builtin::common::invalid;
use crate::builtin::ignore_files::{MAX_IGNORE_BYTES, has_unfit_ignore_file};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::root::Root;

/// File from a walk.
pub(super) struct WalkEntry {
    /// Absolute path.
    pub(super) path: PathBuf,
    /// Path relative to the working directory of the call.
    pub(super) shown: PathBuf,
}

/// Reasons for which the result of a walk is incomplete.
#[derive(Default)]
pub(super) struct Gaps {
    pub(super) is_truncated: bool,
    pub(super) unreadable: u64,
    /// Number of matching files, and of directories, that are excluded for tools.
    pub(super) hidden: u64,
}

impl Gaps {
    /// Adds these facts to a result.
    pub(super) fn tell(&self, mut result: Map<String, Value>) -> Value {
        if self.is_truncated {
            result.insert("truncated".to_owned(), true.into());
        }
        if self.unreadable > 0 {
            result.insert("unreadable".to_owned(), self.unreadable.into());
        }
        if self.hidden > 0 {
            result.insert("hidden".to_owned(), self.hidden.into());
        }
        result.into()
    }
}

/// Visits the files beneath `start` in no particular order. Sorting a directory would take memory for all of its names,
/// whose number is unlimited.
///
/// Links are not followed. `.git`, ignored files and excluded directories are left out; hidden files are included.
pub(super) fn files(
    cx: &CallContext,
    root: &Root,
    start: &Path,
    dir: &Path,
    gaps: &mut Gaps,
    mut visit: impl FnMut(WalkEntry, &mut Gaps),
) -> Result<(), ToolError> {
    // The walker also reads the ignore files of all parent directories.
    if let Some(above) = start
        .ancestors()
        .take_while(|above| above.starts_with(root.real()))
        .find(|above| has_unfit_ignore_file(above))
    {
        let problem = format!(
            "an ignore file in `{}` is not a regular file or has more than {MAX_IGNORE_BYTES} bytes",
            above.display()
        );
        return Err(ToolError::failed(problem));
    }
    root.check_shown(start, start.strip_prefix(dir).unwrap_or(start))?;
    let skipped = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let (counts, closed) = (Arc::clone(&skipped), root.closed().clone());
    let mut builder = WalkBuilder::new(start);
    // Results must not depend on the user's global git configuration.
    builder.hidden(false).require_git(false).git_global(false);
    builder.filter_entry(move |entry| {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        let [unfit, hidden] = &*counts;
        if is_dir && closed.hides(entry.path()).is_some() {
            hidden.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if is_dir && has_unfit_ignore_file(entry.path()) {
            unfit.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        entry.file_name() != ".git"
    });
    for entry in builder.build() {
        cx.check()?;
        let Ok(entry) = entry else {
            gaps.unreadable += 1;
            continue;
        };
        if entry.file_type().is_none_or(|kind| !kind.is_file()) {
            continue;
        }
        let path = entry.into_path();
        let shown = path.strip_prefix(dir).unwrap_or(&path).to_owned();
        visit(WalkEntry { path, shown }, gaps);
    }
    let [unfit, hidden] = &*skipped;
    gaps.unreadable += unfit.load(Ordering::Relaxed);
    gaps.hidden += hidden.load(Ordering::Relaxed);
    cx.check()
}

/// Compiles a pattern; `*` matches within one directory, `**` across several.
pub(super) fn matcher(tool: &str, field: &str, pattern: &str) -> Result<GlobMatcher, ToolError> {
    let compiled = GlobBuilder::new(pattern).literal_separator(true).build();
    let compiled: Glob = compiled
        .map_err(|error| invalid(tool, field, format!("is not a valid pattern: {}", error.kind())))?;
    Ok(compiled.compile_matcher())
}
