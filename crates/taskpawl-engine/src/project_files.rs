//! Walk over the files of a project.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::WalkBuilder;
use taskpawl_tools::{ScanBounds, has_unfit_ignore_file};

/// Metadata that changes whenever a file is written or replaced. The change time catches tools that set the
/// modification time back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Reads the metadata of every file of a project that its ignore files do not exclude, by path relative to `root`. The
/// error is a text for users: the project has more than `most` files, for example. Blocks.
pub(crate) fn stamps(
    root: &Path,
    most: usize,
    bounds: &ScanBounds,
) -> Result<BTreeMap<String, Stamp>, String> {
    const UNFIT: &str = "an ignore file in the project is too large or not a regular file";

    // The ignore crate reads a whole ignore file into memory. One that is a link to `/dev/zero`, for example, would
    // never end.
    if has_unfit_ignore_file(root) {
        return Err(UNFIT.to_owned());
    }
    let mut files = BTreeMap::new();
    let is_unfit = Arc::new(AtomicBool::new(false));
    let unfit_seen = Arc::clone(&is_unfit);
    let filter = move |entry: &ignore::DirEntry| {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        if is_dir && has_unfit_ignore_file(entry.path()) {
            unfit_seen.store(true, Ordering::Relaxed);
            return false;
        }
        is_of_project(entry)
    };
    // Hidden files count, and ignore files apply outside of Git repositories as well.
    let walk = WalkBuilder::new(root).hidden(false).require_git(false).filter_entry(filter).build();
    for entry in walk.filter_map(Result::ok) {
        bounds.check().map_err(|stopped| stopped.to_string())?;
        if entry.file_type().is_some_and(|kind| kind.is_dir()) {
            continue;
        }
        let (Ok(path), Ok(metadata)) = (entry.path().strip_prefix(root), entry.path().symlink_metadata())
        else {
            continue;
        };
        files.insert(
            path.to_string_lossy().into_owned(),
            Stamp {
                inode: metadata.ino(),
                bytes: metadata.len(),
                modified: (metadata.mtime(), metadata.mtime_nsec()),
                changed: (metadata.ctime(), metadata.ctime_nsec()),
            },
        );
        if files.len() > most {
            return Err(format!(
                "the project has more than {most} files; exclude irrelevant files in a `.gitignore`"
            ));
        }
    }
    if is_unfit.load(Ordering::Relaxed) { Err(UNFIT.to_owned()) } else { Ok(files) }
}

fn is_of_project(entry: &ignore::DirEntry) -> bool {
    !(entry.depth() == 1 && (entry.file_name() == ".git" || entry.file_name() == ".taskpawl"))
}
