//! What the success of a task with `cache` depends on, as one number: its work, and the contents of its files.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use sha2::{Digest, Sha256};
use taskpawl_model::{CacheInputs, paths};

/// Returns the fingerprint of a task in the project at `root`; `None` where a file could not be read, or changed while it was: then
/// nothing may be concluded. Blocks.
pub(crate) fn fingerprint(root: &Path, inputs: &CacheInputs) -> Option<String> {
    let mut hash = Sha256::new();
    let mut patterns: Vec<&String> = inputs.files.iter().collect();
    patterns.sort();
    for pattern in patterns {
        add_text(&mut hash, pattern);
        let files = matching(root, pattern).ok()?;
        hash.update((files.len() as u64).to_le_bytes());
        for path in files {
            add_text(&mut hash, &path.to_string_lossy());
            hash.update(content(&root.join(path)).ok()??);
        }
    }
    Some(format!("{}.{:x}", inputs.work, hash.finalize()))
}

fn add_text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text.as_bytes());
}

/// Returns the files that a pattern matches, in order; of a directory, all below it.
fn matching(root: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let outside = || io::Error::other("the pattern leads out of the project");
    let pattern = &*paths::beneath(pattern).ok_or_else(outside)?;
    let glob = GlobBuilder::new(pattern).literal_separator(true).build().map_err(io::Error::other)?;
    let glob = glob.compile_matcher();
    let start = root.join(paths::written(&[pattern.to_owned()]).pop().unwrap_or_default());
    if fs::symlink_metadata(&start).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    if !start.exists() {
        // A link that leads nowhere.
        return Ok(vec![PathBuf::from(pattern)]);
    }
    let walk = WalkBuilder::new(&start)
        .standard_filters(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let mut files = Vec::new();
    for entry in walk {
        let entry = entry.map_err(io::Error::other)?;
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        if !is_dir && is_meant(&glob, pattern, path) {
            files.push(path.to_owned());
        }
    }
    files.sort();
    Ok(files)
}

fn is_meant(glob: &GlobMatcher, pattern: &str, path: &Path) -> bool {
    glob.is_match(path) || path.starts_with(pattern)
}

/// Returns the SHA-256 of a file, or of where a link to something else leads; `None` if it changed meanwhile.
fn content(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut hash = Sha256::new();
    let Ok(mut file) = File::open(path) else {
        // A link that leads nowhere says where it would lead.
        hash.update(fs::read_link(path)?.as_os_str().as_encoded_bytes());
        return Ok(Some(hash.finalize().to_vec()));
    };
    let before = file.metadata()?;
    if !before.is_file() {
        hash.update(fs::read_link(path)?.as_os_str().as_encoded_bytes());
        return Ok(Some(hash.finalize().to_vec()));
    }
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    let after = fs::metadata(path)?;
    Ok((stamp(&before) == stamp(&after)).then(|| hash.finalize().to_vec()))
}

fn stamp(metadata: &Metadata) -> [i64; 6] {
    let (inode, bytes) = (metadata.ino().cast_signed(), metadata.len().cast_signed());
    let (modified, changed) = (metadata.mtime(), metadata.ctime());
    [inode, bytes, modified, metadata.mtime_nsec(), changed, metadata.ctime_nsec()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(files: &[&str]) -> CacheInputs {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        CacheInputs { work: "work".to_owned(), files, recorded: None }
    }

    #[test]
    fn contents_and_names_count_and_times_do_not() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir(path("src")).unwrap();
        fs::write(path("src/a.rs"), "a").unwrap();
        fs::write(path("src/b.txt"), "b").unwrap();
        let of = |files: &[&str]| fingerprint(root.path(), &inputs(files)).unwrap();
        let (glob, dir, file) = (of(&["src/**/*.rs"]), of(&["src"]), of(&["./src/a.rs"]));
        fs::write(path("src/a.rs"), "a").unwrap();
        fs::write(path("src/b.txt"), "changed").unwrap();
        assert_eq!((of(&["src/**/*.rs"]), of(&["./src/a.rs"])), (glob.clone(), file.clone()));
        assert_ne!(of(&["src"]), dir);
        assert_eq!(matching(root.path(), "x/../src//./a.rs").unwrap(), [Path::new("src/a.rs")]);
        assert_eq!(matching(root.path(), ".").unwrap().len(), 2);
        fs::write(path("src/a.rs"), "b").unwrap();
        assert_ne!((of(&["src/**/*.rs"]), of(&["./src/a.rs"])), (glob.clone(), file));
        fs::rename(path("src/a.rs"), path("src/c.rs")).unwrap();
        assert_ne!(of(&["src/**/*.rs"]), glob);
    }

    #[test]
    fn what_is_missing_counts_and_what_cannot_be_read_says_nothing() {
        let root = tempfile::tempdir().unwrap();
        let of = |files: &[&str]| fingerprint(root.path(), &inputs(files));
        let missing = of(&["a"]).unwrap();
        assert_eq!(of(&["a"]).unwrap(), missing);
        fs::write(root.path().join("a"), "").unwrap();
        assert_ne!(of(&["a"]).unwrap(), missing);
        assert_ne!(of(&[]).unwrap(), missing);
        assert_eq!(of(&["["]), None);
        assert_eq!(of(&["../a"]), None);
        assert_eq!(of(&["/a"]), None);
        std::os::unix::fs::symlink("nowhere", root.path().join("l")).unwrap();
        assert!(of(&["l"]).is_some());
    }
}
