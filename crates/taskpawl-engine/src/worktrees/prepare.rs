//! The preparation of a new worktree: files that it gets from the project, and ports of its own.

use std::fs::File;
use std::net::TcpListener;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use taskpawl_model::task::Worktree;
use taskpawl_tools::{ClosedPlaces, CopiedFiles, FileCopier, ScanBounds, ToolError};

use super::git::{Git, GitError, GitResult};
use super::record::{TreeRecord, directories, record_of};

/// The first port that worktrees get, and their number. They lie below those that the kernel gives to connections.
const PORTS: (u16, u16) = (20_000, 10_000);

/// Largest number of files that match `copy`.
const MAX_COPIES: usize = 10_000;

/// The files and ports that a worktree gets.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    link: Vec<String>,
    copy: Vec<String>,
    ports: usize,
    /// Paths of the project that programs do not see.
    closed: ClosedPlaces,
    bounds: ScanBounds,
}

impl Wanted {
    pub(crate) fn of(worktree: &Worktree) -> Self {
        Self {
            link: worktree.link.iter().map(|path| plain(path)).collect(),
            copy: worktree.copy.clone(),
            ports: worktree.ports.unwrap_or_default() as usize,
            ..Self::default()
        }
    }

    /// Returns whether it gets files, for which the places that programs do not see must be known.
    pub(crate) fn has_files(&self) -> bool {
        !self.copy.is_empty() || !self.link.is_empty()
    }

    pub(crate) fn within(self, closed: ClosedPlaces, bounds: ScanBounds) -> Self {
        Self { closed, bounds, ..self }
    }
}

/// Returns a path without `.` and empty parts. A path that leaves the project was refused with the plan.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Gives a worktree its files and ports. No program has run in it yet.
pub(crate) fn prepare(
    (base, git, tree): (&Path, &Git, &Path),
    wanted: &Wanted,
    record: &mut TreeRecord,
) -> GitResult<CopiedFiles> {
    let mut linked = CopiedFiles::default();
    record.given.clone_from(&wanted.link);
    if wanted.has_files() {
        let mut copier = FileCopier::new(git.root(), tree, wanted.closed.clone(), &wanted.bounds)
            .map_err(|error| GitError::new(error.to_string()))?;
        for path in &wanted.link {
            link(git, tree, path, &mut copier)?;
        }
        linked = copier.copied();
        for pattern in &wanted.copy {
            record.given.extend(copy(git, pattern, (&mut copier, &wanted.closed))?);
        }
    }
    if record.ports.len() != wanted.ports {
        record.ports = free_ports(base, tree, wanted.ports)?;
    }
    Ok(linked)
}

/// Describes the linked files of a new worktree.
pub(crate) fn said(linked: CopiedFiles) -> String {
    let CopiedFiles { files, bytes, shared } = linked;
    let how = if shared == bytes {
        "which share the blocks of the project"
    } else {
        "copied: this file system shares no blocks"
    };
    format!("the worktree has {files} linked files, {} MiB, {how}", bytes >> 20)
}

/// Makes a private copy of a directory of the project.
///
/// An overlay would cost less, but the calls of a task may have different sandboxes, each with a supervisor and mounts of its own, and the
/// kernel leaves open what two overlays with the same changes show. File tools of this process would not see it at all.
fn link(git: &Git, tree: &Path, path: &str, copier: &mut FileCopier<'_>) -> GitResult<()> {
    let refuse = |why: &str| GitError::new(format!("the worktree gets no `{path}` of the project: {why}"));
    let found = git.root().join(path).symlink_metadata();
    match found {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(refuse("it is not there; create it in the project, or use `setup`"));
        }
        Ok(found) if !found.is_dir() => return Err(refuse("it is no directory; `copy` takes files")),
        _ => {}
    }
    if tree.join(path).symlink_metadata().is_ok() {
        return Err(refuse("git tracks files in it, which are in the worktree already"));
    }
    copier.copy(Path::new(path)).map_err(|error| refuse(&error.to_string()))
}

/// Copies the files that match a pattern and that git does not track. Returns their paths.
fn copy(
    git: &Git,
    pattern: &str,
    (copier, closed): (&mut FileCopier<'_>, &ClosedPlaces),
) -> GitResult<Vec<String>> {
    let refuse =
        |why: String| GitError::new(format!("the worktree gets no `{pattern}` of the project: {why}"));
    let pathspec = format!(":(top,glob){}", pattern.trim_start_matches("./"));
    // Git does not follow links, and names neither its own directory nor files in other repositories.
    let listed = git.run(&["ls-files", "-z", "--others", "--", &pathspec])?;
    let files: Vec<&str> =
        listed.split('\0').filter(|file| !file.is_empty() && !file.ends_with('/')).collect();
    if files.len() > MAX_COPIES {
        let number = files.len();
        return Err(refuse(format!(
            "{number} files match, and {MAX_COPIES} is the most; use `link` for a directory"
        )));
    }
    let root = git.root();
    let files: Vec<&str> = files.into_iter().filter(|file| !closed.is_hidden(&root.join(file))).collect();
    if files.is_empty() {
        return Err(refuse("no file that git does not track and that programs may read matches".to_owned()));
    }
    let failed = |error: ToolError| refuse(error.to_string());
    files.iter().try_for_each(|file| copier.copy(Path::new(file)).map_err(failed))?;
    Ok(files.into_iter().map(str::to_owned).collect())
}

/// Returns ports that no other worktree on this machine has, and that are free now.
fn free_ports(base: &Path, tree: &Path, number: usize) -> GitResult<Vec<u16>> {
    if number == 0 {
        return Ok(Vec::new());
    }
    let failed = |error: std::io::Error| GitError::new(format!("failed to find free ports: {error}"));
    let all = base.parent().unwrap_or(base);
    // Two runs that choose at the same time would choose the same.
    let lock = File::options().create(true).truncate(false).write(true).open(all.join("ports.lock"));
    let lock = lock.and_then(|lock| lock.lock().map(|()| lock)).map_err(failed)?;
    let plans = directories(all).into_iter().flat_map(|project| directories(&project));
    let trees = plans.flat_map(|plan| directories(&plan));
    let records = trees.filter(|path| path != tree).filter_map(|path| TreeRecord::read(&record_of(&path)));
    let taken: Vec<u16> = records.flat_map(|record| record.ports).collect();
    let (first, range) = PORTS;
    // Worktrees begin at different ports, so that most need not look for others.
    let digest = Sha256::digest(tree.as_os_str().as_encoded_bytes());
    let start = u16::from_be_bytes([digest[0], digest[1]]) % range;
    let is_free = |port: &u16| !taken.contains(port) && TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let ports: Vec<u16> =
        (0..range).map(|step| first + (start + step) % range).filter(is_free).take(number).collect();
    if ports.len() < number {
        return Err(GitError::new(format!("there are no {number} free ports from {first} on")));
    }
    // Recorded before the lock ends, so that others see them.
    let file = record_of(tree);
    if let Some(mut own) = TreeRecord::read(&file) {
        own.ports.clone_from(&ports);
        own.write(&file)?;
    }
    drop(lock);
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::worktrees::tree::tests::{commit, repository, request};
    use crate::worktrees::tree::{Tree, TreeRequest};

    fn wanted(worktree: &Worktree) -> TreeRequest {
        TreeRequest { wanted: Wanted::of(worktree), ..request(0) }
    }

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_worktree_gets_copies_that_are_no_work_of_the_task() {
        let (_directory, git, base) = repository();
        let root = git.root().to_owned();
        for (path, text) in
            [("deps/x/y", "y"), ("local.json", "{}"), ("conf/a.ini", "a"), ("conf/b.txt", "b")]
        {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let worktree = Worktree {
            link: texts(&["deps"]),
            copy: texts(&["local.json", "conf/*.ini"]),
            ..Worktree::default()
        };
        let tree = Tree::open(&git, &base, &wanted(&worktree)).unwrap();
        assert_eq!((tree.linked.files, &tree.given), (1, &texts(&["deps", "local.json", "conf/a.ini"])));
        assert!(tree.path.join("conf/a.ini").exists() && !tree.path.join("conf/b.txt").exists());
        fs::write(tree.path.join("deps/x/y"), "changed").unwrap();
        assert_eq!(fs::read_to_string(root.join("deps/x/y")).unwrap(), "y");
        fs::write(tree.path.join("new"), "").unwrap();
        assert_eq!(commit(&git, &tree, "m")["files"], serde_json::json!(["new"]));
    }

    #[test]
    fn files_that_cannot_be_given_are_named() {
        let (_directory, git, base) = repository();
        fs::write(git.root().join("file"), "").unwrap();
        for (link, copy, why) in [
            (&["none"][..], &[][..], "`none` of the project: it is not there"),
            (&["file"], &[], "it is no directory"),
            (&[], &["*.none"], "no file that git does not track"),
            (&[], &["a"], "no file that git does not track"),
        ] {
            let worktree = Worktree { link: texts(link), copy: texts(copy), ..Worktree::default() };
            let refused = Tree::open(&git, &base, &wanted(&worktree)).unwrap_err();
            assert!(refused.message.contains(why), "{refused}");
        }
    }

    #[test]
    fn ports_of_worktrees_differ_and_stay() {
        let (_directory, git, base) = repository();
        let open = |task: &str| {
            let request = TreeRequest {
                task: task.to_owned(),
                ..wanted(&Worktree { ports: Some(3), ..Worktree::default() })
            };
            Tree::open(&git, &base, &request).unwrap().ports
        };
        let all = [open("t"), open("u"), open("v")].concat();
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), 9, "{all:?}");
        assert_eq!(open("t"), all[..3]);
    }
}
