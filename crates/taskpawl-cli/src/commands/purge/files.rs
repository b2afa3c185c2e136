//! Files of a store: output of calls, logs, and the private directories of programs.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use taskpawl::tools::ValueRemoval;

use super::Left;

/// The largest file whose whole text is read, to keep JSON in it valid. Larger ones are copied piece by piece.
const MAX_WHOLE: u64 = 64 << 20;

/// The number of bytes by which text is told from other data.
const START: usize = 8 << 10;

/// The files that were cleaned, and those that could not be.
#[derive(Debug, Default)]
pub(super) struct Cleaned {
    pub(super) files: u64,
    pub(super) left: Vec<Left>,
}

impl Cleaned {
    fn leave(&mut self, path: &Path, reason: &dyn ToString) {
        if !self.left.iter().any(|left| left.path == path) {
            self.left.push(Left { path: path.to_owned(), reason: reason.to_string() });
        }
    }
}

/// Removes the value from the content and the names of everything beneath a directory. Links are not followed.
pub(super) fn clean(directory: &Path, removal: &ValueRemoval, cleaned: &mut Cleaned) {
    for path in entries(directory, cleaned) {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let done = if metadata.is_dir() {
            clean(&path, removal, cleaned);
            Ok(false)
        } else if metadata.is_file() {
            clean_file(&path, &metadata, removal)
        } else if metadata.is_symlink() {
            clean_link(&path, removal)
        } else {
            Ok(false)
        };
        match done.and_then(|is_changed| Ok(rename(&path, removal)? || is_changed)) {
            Ok(is_changed) => cleaned.files += u64::from(is_changed),
            Err(error) => cleaned.leave(&path, &error),
        }
    }
}

/// Adds the files that still have the value: a store with the files that begin with its name, or all beneath a directory.
pub(super) fn search(path: &Path, removal: &ValueRemoval, cleaned: &mut Cleaned) {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let beneath = if is_directory { entries(path, cleaned) } else { of_store(path, cleaned) };
    for path in beneath {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            search(&path, removal, cleaned);
        }
        let has = metadata.is_file()
            && match File::open(&path) {
                Ok(file) => removal.is_in_stream(BufReader::new(file)).unwrap_or(true),
                Err(error) => {
                    cleaned.leave(&path, &error);
                    false
                }
            };
        if has || removal.is_in(path.file_name().unwrap_or_default().as_bytes()) {
            cleaned.leave(&path, &"it was found there afterwards");
        }
    }
}

/// Returns the files of a store: those beside it whose names begin with its name.
fn of_store(store: &Path, cleaned: &mut Cleaned) -> Vec<PathBuf> {
    let name = store.file_name().unwrap_or_default().as_bytes();
    let directory = store.parent().unwrap_or(Path::new("/"));
    let is_of_store = |path: &PathBuf| {
        path.file_name().is_some_and(|own| own.as_bytes().starts_with(name)) && path.is_file()
    };
    entries(directory, cleaned).into_iter().filter(is_of_store).collect()
}

fn entries(directory: &Path, cleaned: &mut Cleaned) -> Vec<PathBuf> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            cleaned.leave(directory, &error);
            Vec::new()
        }
    }
}

/// Replaces a file that has the value. Returns whether it had it.
fn clean_file(path: &Path, metadata: &fs::Metadata, removal: &ValueRemoval) -> io::Result<bool> {
    if !removal.is_in_stream(BufReader::new(File::open(path)?))? && !may_be_escaped(path, metadata) {
        return Ok(false);
    }
    let new = beside(path);
    let mut to = BufWriter::new(File::options().write(true).create_new(true).mode(0o600).open(&new)?);
    let done = copy(path, metadata, removal, &mut to).and_then(|is_changed| {
        to.flush()?;
        to.get_ref().set_permissions(metadata.permissions())?;
        to.get_ref().sync_all()?;
        Ok(is_changed)
    });
    match done {
        Ok(true) => fs::rename(&new, path).map(|()| true),
        done => {
            fs::remove_file(&new)?;
            done
        }
    }
}

/// Returns whether a small file is JSON that may have the value with unusual escapes.
fn may_be_escaped(path: &Path, metadata: &fs::Metadata) -> bool {
    let is_json = path.extension().is_some_and(|end| end == "json" || end == "steps" || end == "details");
    is_json && metadata.len() <= MAX_WHOLE
}

fn copy(
    path: &Path,
    metadata: &fs::Metadata,
    removal: &ValueRemoval,
    to: &mut impl io::Write,
) -> io::Result<bool> {
    let mut from = File::open(path)?;
    let mut start = Vec::new();
    io::Read::by_ref(&mut from).take(START as u64).read_to_end(&mut start)?;
    let is_text = !start.contains(&0);
    if is_text && metadata.len() <= MAX_WHOLE {
        let text = fs::read(path)?;
        if let Ok(text) = std::str::from_utf8(&text) {
            let new = removal.text(text);
            to.write_all(new.as_deref().unwrap_or(text).as_bytes())?;
            return Ok(new.is_some());
        }
    }
    removal.stream(BufReader::new(File::open(path)?), to, is_text)
}

fn clean_link(path: &Path, removal: &ValueRemoval) -> io::Result<bool> {
    let target = fs::read_link(path)?;
    if !removal.is_in(target.as_os_str().as_bytes()) {
        return Ok(false);
    }
    // The target is named by a program of a plan, and nothing depends on it any more.
    fs::remove_file(path).map(|()| true)
}

/// Renames a file or directory whose name has the value. Returns whether it had it.
fn rename(path: &Path, removal: &ValueRemoval) -> io::Result<bool> {
    let Some(name) = path.file_name().filter(|name| removal.is_in(name.as_bytes())) else { return Ok(false) };
    let mut new = Vec::new();
    removal.stream(name.as_bytes(), &mut new, true)?;
    let mut to = path.with_file_name(std::ffi::OsString::from_vec(new.clone()));
    let mut number = 2;
    while to.symlink_metadata().is_ok() {
        let name = [new.clone(), format!("-{number}").into_bytes()].concat();
        to = path.with_file_name(std::ffi::OsString::from_vec(name));
        number += 1;
    }
    if path.symlink_metadata().is_ok() {
        fs::rename(path, to)?;
    }
    Ok(true)
}

fn beside(path: &Path) -> PathBuf {
    path.with_file_name(format!(".purge-{}", std::process::id()))
}
