//! Reads the index of a repository, for its gitlinks and some of its tracked files.
//!
//! No git library is used: only modes, names and hashes matter, and a file that programs have damaged must never be an error. All entries
//! before the damage count.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;
#[cfg(any(feature = "builtin-tools", feature = "programs"))]
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// Size limits in bytes of an index, and of a tracked file that is compared with its hash.
const BYTES: u64 = 256 << 20;
const TRACKED_BYTES: u64 = 1 << 20;

/// Sizes in bytes of the header of the file, of an entry up to its hash, and of the flags of an entry.
const HEAD: usize = 12;
const BEFORE_HASH: usize = 40;
const FLAGS: usize = 2;

const MODE_AT: usize = 24;
const KIND: u32 = 0o170_000;
const GITLINK: u32 = 0o160_000;
const REGULAR: u32 = 0o100_000;
const HAS_MORE_FLAGS: u16 = 0x4000;

/// A relevant entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Relative to the root of the worktree.
    pub(super) path: PathBuf,
    pub(super) kind: EntryKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// Another repository, which git enters.
    Gitlink,
    /// A file that `is_kept` selected, with the hash of its content.
    File(Vec<u8>),
}

/// Reads the gitlinks of an index, and the files whose names `is_kept` selects.
pub(super) fn entries(index: &Path, is_kept: fn(&str) -> bool) -> Vec<Entry> {
    let Ok(bytes) = read(index, BYTES) else { return Vec::new() };
    // An index does not store the length of its hashes. The length that parses the whole file is right; for an index without entries both
    // are. If neither is, the entries of both count.
    let mut read: Vec<(bool, Vec<Entry>)> =
        [20, 32].map(|hash| entries_as(&bytes, hash, index.parent(), is_kept)).into();
    if read.iter().any(|(is_whole, _)| *is_whole) {
        read.retain(|(is_whole, _)| *is_whole);
    }
    read.into_iter().flat_map(|(_, found)| found).collect()
}

/// Reads an index whose hashes have the length `hash`, together with its shared index. Returns whether the whole index was parsed.
fn entries_as(
    bytes: &[u8],
    hash: usize,
    above: Option<&Path>,
    is_kept: fn(&str) -> bool,
) -> (bool, Vec<Entry>) {
    let mut reader = Reader { bytes, hash, is_kept, found: Vec::new() };
    let end = reader.read_all();
    let mut found = reader.found;
    let name = end.and_then(|end| shared(bytes, end, hash));
    if let Some((name, above)) = name.zip(above)
        && let Ok(bytes) = read(&above.join(name), BYTES)
    {
        let mut base = Reader { bytes: &bytes, hash, is_kept, found: Vec::new() };
        base.read_all();
        found.extend(base.found);
    }
    (end.is_some(), found)
}

/// Returns whether a file has the content that git tracks, so that the repository already reveals it.
pub(super) fn is_as_tracked(file: &Path, hash: &[u8]) -> bool {
    let Ok(content) = read(file, TRACKED_BYTES) else { return false };
    let head = format!("blob {}\0", content.len());
    match hash.len() {
        // Without either feature no call reads a file that is named by a plan.
        #[cfg(any(feature = "builtin-tools", feature = "programs"))]
        20 => Sha1::new().chain_update(&head).chain_update(&content).finalize()[..] == *hash,
        32 => Sha256::new().chain_update(&head).chain_update(&content).finalize()[..] == *hash,
        _ => false,
    }
}

/// Returns values that change with an index; `None` if there is no file.
pub(super) fn stamp(index: &Path) -> Option<[i64; 5]> {
    let data = fs::symlink_metadata(index).ok().filter(fs::Metadata::is_file)?;
    Some([
        data.ino().cast_signed(),
        data.size().cast_signed(),
        data.ctime(),
        data.ctime_nsec(),
        data.mtime_nsec(),
    ])
}

/// Reads a regular file. A pipe that a program has put in its place does not block the read.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY).bits();
    let file = File::options().read(true).custom_flags(flags.cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > most {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// The length of hashes in bytes.
    hash: usize,
    is_kept: fn(&str) -> bool,
    found: Vec<Entry>,
}

impl Reader<'_> {
    /// Reads all entries. Returns the offset after the last one, or `None` if the file is damaged.
    fn read_all(&mut self) -> Option<usize> {
        if self.bytes.get(..4)? != b"DIRC" {
            return None;
        }
        let (version, count) = (number(self.bytes, 4)?, number(self.bytes, 8)?);
        let (mut at, mut name) = (HEAD, Vec::new());
        for _ in 0..count {
            at = self.read_entry(at, version, &mut name)?;
        }
        Some(at)
    }

    /// Reads the entry at an offset, and returns the offset of the next one. `name` holds the name of the previous entry: version 4 stores
    /// only the difference to it.
    fn read_entry(&mut self, start: usize, version: u32, name: &mut Vec<u8>) -> Option<usize> {
        let mode = number(self.bytes, start + MODE_AT)?;
        if ![GITLINK, REGULAR, 0o120_000, 0o040_000].contains(&(mode & KIND)) {
            return None;
        }
        let hash = self.bytes.get(start + BEFORE_HASH..start + BEFORE_HASH + self.hash)?;
        let mut at = start + BEFORE_HASH + self.hash;
        let flags = u16::from_be_bytes(self.bytes.get(at..at + FLAGS)?.try_into().ok()?);
        at += FLAGS;
        if version >= 3 && flags & HAS_MORE_FLAGS != 0 {
            at += FLAGS;
        }
        if version >= 4 {
            let (dropped, next) = variable_number(self.bytes, at)?;
            name.truncate(name.len().checked_sub(dropped)?);
            at = next;
        } else {
            name.clear();
        }
        let length = self.bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
        name.extend(&self.bytes[at..at + length]);
        at += length;
        self.keep(mode & KIND, name, hash);
        Some(if version >= 4 { at + 1 } else { start + (at - start + 8) / 8 * 8 })
    }

    fn keep(&mut self, kind: u32, name: &[u8], hash: &[u8]) {
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(name));
        // In a split index, an entry without a name replaces one of the shared index.
        let is_beneath =
            !name.is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)));
        let kind = match kind {
            GITLINK => EntryKind::Gitlink,
            REGULAR if path.file_name().is_some_and(|name| (self.is_kept)(&name.to_string_lossy())) => {
                EntryKind::File(hash.to_vec())
            }
            _ => return,
        };
        if is_beneath {
            self.found.push(Entry { path, kind });
        }
    }
}

/// Returns the name of the shared index, which the `link` extension after the entries of a split index contains.
fn shared(bytes: &[u8], mut at: usize, hash: usize) -> Option<String> {
    loop {
        let (name, length) = (bytes.get(at..at + 4)?, usize::try_from(number(bytes, at + 4)?).ok()?);
        if name == b"link" {
            let hash = bytes.get(at + 8..at + 8 + hash)?;
            let digits = hash.iter().fold(String::new(), |mut digits, byte| {
                let _ = write!(digits, "{byte:02x}");
                digits
            });
            return Some(format!("sharedindex.{digits}"));
        }
        at = at.checked_add(8)?.checked_add(length)?;
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Reads a number in the encoding of git's pack offsets. Returns the number and the offset after it.
fn variable_number(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(dir: &Path, args: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(args).current_dir(dir);
        let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn is_env(name: &str) -> bool {
        name == ".env"
    }

    fn repository(format: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", &format!("--object-format={format}")]);
        for (name, text) in [("a.txt", "a"), ("sub/.env", "A=1\n"), ("sub/b", "b"), ("zz/.env", "")] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        git(dir.path(), &["add", "-A"]);
        let zeros = if format == "sha1" { "1".repeat(40) } else { "1".repeat(64) };
        git(dir.path(), &["update-index", "--add", "--cacheinfo", &format!("160000,{zeros},vendor/x")]);
        dir
    }

    fn names(dir: &Path) -> Vec<String> {
        let found = entries(&dir.join(".git/index"), is_env);
        let mut names: Vec<_> = found.iter().map(|entry| entry.path.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn gitlinks_and_kept_files_are_read_from_every_form_of_index() {
        for format in ["sha1", "sha256"] {
            let dir = repository(format);
            for args in [
                &["status"][..],
                &["update-index", "--index-version", "4"],
                &["update-index", "--index-version", "2"],
                &["update-index", "--split-index"],
            ] {
                git(dir.path(), args);
                assert_eq!(names(dir.path()), ["sub/.env", "vendor/x", "zz/.env"], "{format} {args:?}");
            }
        }
    }

    #[test]
    fn a_file_is_as_tracked_until_it_changes() {
        for format in ["sha1", "sha256"] {
            let dir = repository(format);
            let found = entries(&dir.path().join(".git/index"), is_env);
            let entry = found.iter().find(|entry| entry.path == Path::new("sub/.env")).unwrap();
            let EntryKind::File(hash) = &entry.kind else { panic!("{entry:?}") };
            let path = dir.path().join("sub/.env");
            assert!(is_as_tracked(&path, hash), "{format}");
            fs::write(&path, "A=2\n").unwrap();
            assert!(!is_as_tracked(&path, hash), "{format}");
        }
    }

    #[test]
    fn a_damaged_index_is_no_error() {
        let dir = repository("sha1");
        let index = dir.path().join(".git/index");
        let whole = fs::read(&index).unwrap();
        for end in 0..whole.len() {
            fs::write(&index, &whole[..end]).unwrap();
            entries(&index, is_env);
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] = 0xff;
            fs::write(&index, bytes).unwrap();
            assert!(entries(&index, is_env).iter().all(|entry| entry.path.is_relative()));
        }
    }
}
