//! What `glob` and `grep` have in common: walking over the files that are not ignored.

use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use serde_json::{Map, Value};

use super::invalid;
use crate::context::CallContext;
use crate::error::ToolError;

/// A file that was found.
pub(super) struct Found {
    /// Absolute.
    pub(super) path: PathBuf,
    /// From the directory in which the call runs.
    pub(super) shown: PathBuf,
}

/// What stopped a walk short or made it incomplete.
#[derive(Default)]
pub(super) struct Gaps {
    pub(super) is_truncated: bool,
    pub(super) unreadable: u64,
}

impl Gaps {
    /// Adds to a result what the caller has to know about its completeness.
    pub(super) fn tell(&self, mut result: Map<String, Value>) -> Value {
        if self.is_truncated {
            result.insert("truncated".to_owned(), true.into());
        }
        if self.unreadable > 0 {
            result.insert("unreadable".to_owned(), self.unreadable.into());
        }
        result.into()
    }
}

/// Visits the files from `start` on, sorted by path, until `visit` returns `false`. Links are not followed; `.git` and what
/// ignore files name is left out, hidden files are not.
pub(super) fn files(
    cx: &CallContext,
    start: &Path,
    dir: &Path,
    gaps: &mut Gaps,
    mut visit: impl FnMut(Found, &mut Gaps) -> Result<bool, ToolError>,
) -> Result<(), ToolError> {
    let mut builder = WalkBuilder::new(start);
    builder.hidden(false).require_git(false).git_global(false);
    builder.sort_by_file_name(Ord::cmp).filter_entry(|entry| entry.file_name() != ".git");
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
        if !visit(Found { path, shown }, gaps)? {
            gaps.is_truncated = true;
            break;
        }
    }
    cx.check()
}

/// Compiles a pattern in which `*` stays within one directory and `**` does not.
pub(super) fn matcher(tool: &str, field: &str, pattern: &str) -> Result<GlobMatcher, ToolError> {
    let compiled = GlobBuilder::new(pattern).literal_separator(true).build();
    let compiled: Glob =
        compiled.map_err(|error| invalid(tool, field, format!("is no pattern: {}", error.kind())))?;
    Ok(compiled.compile_matcher())
}
