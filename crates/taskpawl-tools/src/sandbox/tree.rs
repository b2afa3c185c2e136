//! Files of a project that matter to the sandbox in any directory. The first scan reads all directories, later scans only changed ones.

use std::collections::{BTreeMap, VecDeque};
use std::fs::DirEntry;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::dotenv;
use super::obeyed_names::{self, ObeyedName};
use super::places::SandboxPlaces;
use crate::sandbox::names::{is_settled, is_skipped};
use crate::scan::{ScanBounds, ScanStopped};

/// The maximum of files of a project that are searched.
const ENTRIES: usize = 20_000;

/// The maximum of entries that are read in one directory, and of finds that are kept in total. Programs can create any number.
const LONGEST: usize = 200_000;
const KEPT: usize = 10_000;

/// The searched directories of a project, nearest first up to the limit, with the finds in each.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    most: usize,
    /// The total numbers of entries and of finds in `directories`.
    entries: usize,
    kept: usize,
    directories: BTreeMap<PathBuf, Directory>,
}

#[derive(Debug, Default)]
struct Directory {
    /// The stamp from before the directory was read; `None` if the last change is too recent to rely on it.
    stamp: Option<Stamp>,
    entries: usize,
    secrets: Vec<PathBuf>,
    repositories: Vec<PathBuf>,
    sockets: Vec<PathBuf>,
    /// First components of obeyed names in this directory, in lower case.
    obeyed: Vec<&'static str>,
    /// Files with an ending that is obeyed.
    obeyed_files: Vec<PathBuf>,
    /// Set if the directory may contain more than was read.
    is_cut: bool,
    /// The first subdirectory that was not searched, and the number of all such.
    left_out: Option<(PathBuf, usize)>,
}

/// Identifies a directory and its last change. Programs can set none of these values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

/// The kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    Socket,
    Other,
}

impl Tree {
    /// Creates the tree at `root`, before its first scan.
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), most: ENTRIES, entries: 0, kept: 0, directories: BTreeMap::new() }
    }

    /// Returns the root directory.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Reads the directories that have changed since the last scan, nearest first.
    ///
    /// A scan that reaches its bounds forgets everything: a part of the tree proves nothing, so the next scan starts from the root.
    pub(super) fn look(&mut self, bounds: &ScanBounds) -> Result<(), ScanStopped> {
        let looked = self.look_within(bounds);
        if looked.is_err() {
            self.directories.clear();
            (self.entries, self.kept) = (0, 0);
        }
        looked
    }

    fn look_within(&mut self, bounds: &ScanBounds) -> Result<(), ScanStopped> {
        let has_changed = |(path, directory): &(&PathBuf, &Directory)| {
            directory.stamp.is_none() || directory.stamp != Stamp::of(path)
        };
        let changed: Vec<PathBuf> =
            self.directories.iter().filter(has_changed).map(|(path, _)| path.clone()).collect();
        for path in &changed {
            self.forget(path);
        }
        let mut queue: VecDeque<PathBuf> = changed.into();
        if self.directories.is_empty() && queue.is_empty() {
            queue.push_back(self.root.clone());
        }
        while let Some(path) = queue.pop_front() {
            // A directory that was removed has no stamp, and stays forgotten.
            if Stamp::of(&path).is_some() && !self.directories.contains_key(&path) {
                self.read(path, &mut queue, bounds)?;
            }
        }
        Ok(())
    }

    /// Returns whether a directory was searched.
    pub(super) fn has_read(&self, directory: &Path) -> bool {
        self.directories.contains_key(directory)
    }

    /// Returns the `.env` files.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &PathBuf> {
        self.directories.values().flat_map(|directory| &directory.secrets)
    }

    /// Returns each `.git`, a directory or a file, and each directory that is a repository itself.
    pub(super) fn repositories(&self) -> impl Iterator<Item = &PathBuf> {
        self.directories.values().flat_map(|directory| &directory.repositories)
    }

    /// Returns the sockets, whether or not a process listens.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &PathBuf> {
        self.directories.values().flat_map(|directory| &directory.sockets)
    }

    /// Returns the paths that other programs obey and that may exist. Paths whose first component is missing in a completely read directory
    /// are left out.
    pub(super) fn obeyed(&self) -> impl Iterator<Item = PathBuf> {
        let unread = (!self.has_read(&self.root)).then(|| SandboxPlaces::obeyed_by_name(&self.root));
        let read = self.directories.iter().filter(|(_, directory)| directory.may_hold_obeyed());
        let read = read.flat_map(|(path, directory)| {
            let names = obeyed_names::all(*path == self.root);
            names.filter(|name| directory.may_hold(name)).map(|name| path.join(name.path))
        });
        let files = self.directories.values().flat_map(|directory| directory.obeyed_files.iter().cloned());
        read.chain(files).chain(unread.into_iter().flatten())
    }

    /// Describes the directories that were not searched; `None` if there are none.
    pub(super) fn gap(&self) -> Option<String> {
        let left_out = || self.directories.values().filter_map(|directory| directory.left_out.as_ref());
        let depth = |path: &PathBuf| path.components().count();
        let (first, _) = left_out().min_by_key(|(path, _)| (depth(path), path))?;
        let more = match left_out().map(|(_, count)| count).sum::<usize>() - 1 {
            0 => String::new(),
            more => format!(" and {more} more directories"),
        };
        let first = first.display();
        Some(format!(
            "`.env` files, sockets and repositories are not searched for in `{first}`{more}, because the project has more than {ENTRIES} files; list them in `[sandbox] hide` and `protect` of the configuration"
        ))
    }

    fn forget(&mut self, path: &Path) {
        if let Some(directory) = self.directories.remove(path) {
            self.entries -= directory.entries;
            self.kept -= directory.kept();
        }
    }

    /// Reads one directory and queues its subdirectories.
    ///
    /// A directory that was queued before the limit was reached is read to its end. One directory with many files thus cannot hide files of
    /// another one.
    fn read(
        &mut self,
        path: PathBuf,
        queue: &mut VecDeque<PathBuf>,
        bounds: &ScanBounds,
    ) -> Result<(), ScanStopped> {
        bounds.check()?;
        let mut found =
            // Taken before the entries are read: a change during the read makes the next scan read the directory again.
            Directory { stamp: Stamp::of(&path).filter(Stamp::is_settled), ..Directory::default() };
        let mut parts_of_repository = 0;
        let is_root = path == self.root;
        let entries = std::fs::read_dir(&path);
        // An unreadable directory may contain anything.
        found.is_cut = entries.is_err();
        for entry in entries.into_iter().flatten().flatten() {
            bounds.check()?;
            if found.entries == LONGEST || self.kept >= KEPT {
                found.is_cut = true;
                found.leave_out(path.clone());
                break;
            }
            found.entries += 1;
            self.entries += 1;
            let (name, kind) = look(&entry);
            let is_directory = kind == Kind::Directory;
            found.note_obeyed(&name, is_root);
            if !is_directory && obeyed_names::has_obeyed_ending(&name) {
                self.kept += 1;
                found.obeyed_files.push(entry.path());
            }
            parts_of_repository += usize::from(is_part_of_repository(&name, is_directory));
            if name == ".git" {
                self.kept += 1;
                found.repositories.push(entry.path());
            } else if dotenv::is_secret(&name) {
                self.kept += 1;
                found.secrets.push(entry.path());
            } else if kind == Kind::Socket {
                self.kept += 1;
                found.sockets.push(entry.path());
            } else if is_directory && !is_skipped(&name) && !self.directories.contains_key(&entry.path()) {
                if self.entries < self.most {
                    queue.push_back(entry.path());
                } else {
                    found.leave_out(entry.path());
                }
            }
        }
        if parts_of_repository == 3 {
            self.kept += 1;
            found.repositories.push(path.clone());
        }
        self.directories.insert(path, found);
        Ok(())
    }
}

impl Directory {
    fn kept(&self) -> usize {
        self.secrets.len() + self.repositories.len() + self.sockets.len() + self.obeyed_files.len()
    }

    fn note_obeyed(&mut self, name: &str, is_root: bool) {
        if let Some(beginning) = obeyed_names::beginning(name, is_root)
            && !self.obeyed.contains(&beginning)
        {
            self.obeyed.push(beginning);
        }
    }

    fn may_hold_obeyed(&self) -> bool {
        self.is_cut || !self.obeyed.is_empty()
    }

    fn may_hold(&self, obeyed: &ObeyedName) -> bool {
        self.is_cut || self.obeyed.contains(&obeyed.beginning.as_str())
    }

    fn leave_out(&mut self, path: PathBuf) {
        self.left_out.get_or_insert((path, 0)).1 += 1;
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = path.symlink_metadata().ok().filter(std::fs::Metadata::is_dir)?;
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Some(Self { device: metadata.dev(), inode: metadata.ino(), changed })
    }

    fn is_settled(&self) -> bool {
        is_settled(self.changed.0)
    }
}

fn look(entry: &DirEntry) -> (String, Kind) {
    let kind = match entry.file_type() {
        Ok(kind) if kind.is_dir() => Kind::Directory,
        Ok(kind) if kind.is_socket() => Kind::Socket,
        Ok(_) | Err(_) => Kind::Other,
    };
    (entry.file_name().to_string_lossy().into_owned(), kind)
}

/// Returns whether an entry is one of the three by which git recognizes a repository, regardless of the name of the directory.
fn is_part_of_repository(name: &str, is_directory: bool) -> bool {
    match name {
        "HEAD" => !is_directory,
        "objects" | "refs" => is_directory,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(names: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), names);
        dir
    }

    fn make(root: &Path, names: &[&str]) {
        for name in names {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
    }

    fn looked_at(root: &Path, most: usize) -> Tree {
        let mut tree = Tree { most, ..Tree::new(root) };
        tree.look(&ScanBounds::default()).unwrap();
        tree
    }

    fn names<'a>(root: &Path, paths: impl Iterator<Item = &'a PathBuf>) -> Vec<String> {
        let mut names: Vec<_> =
            paths.map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_of_the_environment_are_found_but_for_samples_and_what_others_wrote() {
        let dir = made(&[
            ".env",
            ".env.local",
            ".env.example",
            ".environment",
            "app/.env.production",
            "app/node_modules/x/.env",
            "env",
        ]);
        let tree = looked_at(dir.path(), ENTRIES);
        assert_eq!(names(dir.path(), tree.secrets()), [".env", ".env.local", "app/.env.production"]);
        assert_eq!(tree.gap(), None);
    }

    #[test]
    fn what_is_not_looked_at_is_told() {
        let dir = made(&["a/.env", "a/b/c/d/e/f/g/h/.env", "a/b/c/d/e/f/g/h/i/.env"]);
        let told = |most| {
            let tree = looked_at(dir.path(), most);
            let gap = tree.gap().unwrap_or_default().replace(dir.path().to_str().unwrap(), "[dir]");
            (tree.secrets().count(), gap)
        };
        assert_eq!(told(1_000), (3, String::new()), "depth does not matter");
        let (found, gap) = told(5);
        assert_eq!(found, 1);
        insta::assert_snapshot!(gap, @"`.env` files, sockets and repositories are not searched for in `[dir]/a/b/c/d`, because the project has more than 20000 files; list them in `[sandbox] hide` and `protect` of the configuration");
    }

    #[test]
    fn what_changes_is_seen_by_the_next_look() {
        let dir = made(&["a/x", "b/.git/HEAD", "b/c/.env"]);
        let mut tree = looked_at(dir.path(), ENTRIES);
        assert_eq!(names(dir.path(), tree.repositories()), ["b/.git"]);
        make(dir.path(), &["a/new/deep/.git", "a/new/.mcp.json", "a/new/x.code-workspace", "a/.env"]);
        std::fs::remove_dir_all(dir.path().join("b")).unwrap();
        tree.look(&ScanBounds::default()).unwrap();
        assert_eq!(names(dir.path(), tree.repositories()), ["a/new/deep/.git"]);
        assert_eq!(names(dir.path(), tree.secrets()), ["a/.env"]);
        let obeyed: Vec<_> = tree.obeyed().collect();
        assert_eq!(names(dir.path(), obeyed.iter()), ["a/new/.mcp.json", "a/new/x.code-workspace"]);
        let fresh = looked_at(dir.path(), ENTRIES);
        assert_eq!(tree.entries, fresh.entries, "nothing is counted twice");
    }

    #[test]
    fn sockets_are_found_where_files_of_the_environment_are() {
        let dir = made(&["app/x", "node_modules/x"]);
        let bind = |name: &str| std::os::unix::net::UnixListener::bind(dir.path().join(name)).unwrap();
        let _listeners = ["dev.sock", "app/s", "node_modules/s"].map(bind);
        let mut tree = looked_at(dir.path(), ENTRIES);
        assert_eq!(names(dir.path(), tree.sockets()), ["app/s", "dev.sock"]);
        std::fs::remove_file(dir.path().join("app/s")).unwrap();
        tree.look(&ScanBounds::default()).unwrap();
        assert_eq!(names(dir.path(), tree.sockets()), ["dev.sock"]);
        assert_eq!(tree.kept, 1);
    }

    #[test]
    fn what_others_obey_is_looked_for_only_where_it_can_be() {
        let candidates = |root: &Path, names_of: &[&str]| {
            make(root, names_of);
            let obeyed: Vec<_> = looked_at(root, ENTRIES).obeyed().collect();
            names(root, obeyed.iter())
        };
        let dir = made(&["a/x"]);
        assert_eq!(candidates(dir.path(), &[]), Vec::<String>::new());
        assert_eq!(
            candidates(dir.path(), &[".bashrc", "a/.bashrc", "a/.Zed/x", "taskpawl.toml"]),
            [".bashrc", "a/.zed", "taskpawl.toml"]
        );
        let nowhere = dir.path().join("nowhere");
        let all = SandboxPlaces::obeyed_by_name(&nowhere).count();
        assert_eq!(looked_at(&nowhere, ENTRIES).obeyed().count(), all, "nothing is known of it");
    }

    #[test]
    fn a_repository_need_not_be_called_git() {
        let dir = made(&["bare/HEAD", "bare/objects/x", "bare/refs/x", "other/HEAD", "other/refs/x"]);
        let tree = looked_at(dir.path(), ENTRIES);
        assert_eq!(names(dir.path(), tree.repositories()), ["bare"]);
    }

    #[test]
    fn no_more_is_kept_than_somebody_can_use() {
        let dir = made(&["a/x"]);
        for number in 0..=KEPT {
            std::fs::write(dir.path().join(format!(".env.{number}")), "").unwrap();
        }
        let mut tree = looked_at(dir.path(), ENTRIES);
        assert_eq!(tree.secrets().count(), KEPT);
        assert!(tree.gap().unwrap().contains(dir.path().to_str().unwrap()));
        tree.look(&ScanBounds::default()).unwrap();
        assert_eq!((tree.secrets().count(), tree.kept), (KEPT, KEPT), "nothing is counted twice");
    }

    #[test]
    fn only_what_has_changed_is_read_again() {
        let dir = made(&["a/x"]);
        let mut tree = looked_at(dir.path(), ENTRIES);
        // Simulates a scan long after the last change.
        for (path, directory) in &mut tree.directories {
            directory.stamp = Stamp::of(path);
            directory.entries = 7;
        }
        tree.entries = 14;
        tree.look(&ScanBounds::default()).unwrap();
        assert!(tree.directories.values().all(|directory| directory.entries == 7));
        make(dir.path(), &["a/y"]);
        // The clock of the file system may not have advanced meanwhile.
        let a = tree.directories.get_mut(&dir.path().join("a")).unwrap();
        a.stamp.as_mut().unwrap().changed.0 -= 1;
        tree.look(&ScanBounds::default()).unwrap();
        let counts: Vec<_> = tree.directories.values().map(|directory| directory.entries).collect();
        assert_eq!(counts, [7, 2]);
    }
}
