//! The commits of a run with the files of its project.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use taskpawl_model::value::RunId;

use super::{REFS, SentFiles, is_withheld, names, with_remote};
use crate::worktrees::git::{Git, GitError, GitResult};

/// The files of a project, as the calls of one run get them.
#[derive(Debug)]
pub(crate) struct ProjectFiles {
    pub(super) git: Git,
    pub(super) root: PathBuf,
    pub(super) remote: String,
    pub(super) reference: String,
    index: PathBuf,
    /// Held while files are read and pushed: calls that start at once share a commit.
    pushed: Mutex<Pushed>,
}

#[derive(Debug, Default)]
struct Pushed {
    /// Commits by tree.
    commits: HashMap<String, String>,
    /// The last one, which has all others as ancestors.
    tip: Option<String>,
}

impl ProjectFiles {
    /// Returns the files of the project at `root`, to be sent to `remote`. `files` is a directory for the index.
    pub(crate) fn open(root: &Path, remote: &str, files: &Path, run: &RunId) -> GitResult<Self> {
        let git = git_of(root)?;
        let (index, reference) = (files.join("runs").join(format!("{run}.index")), format!("{REFS}{run}"));
        Ok(Self {
            git,
            root: root.to_owned(),
            remote: remote.to_owned(),
            reference,
            index,
            pushed: Mutex::default(),
        })
    }

    /// Returns the commit with the current files, and pushes it unless the remote has it. Blocks.
    pub(crate) fn push(&self, sends: &[String]) -> GitResult<SentFiles> {
        let mut pushed = self.pushed.lock().unwrap_or_else(PoisonError::into_inner);
        let tree = tree_of(&self.git, &self.index, sends)?;
        if let Some(commit) = pushed.commits.get(&tree) {
            return Ok(self.sent(commit));
        }
        // A chain of its own: the history of the project is not sent.
        let parents: Vec<&str> = pushed.tip.iter().map(String::as_str).collect();
        let commit = self.git.commit_tree(&tree, &parents, "Files of a run of taskpawl")?;
        let to = format!("{commit}:{}", self.reference);
        with_remote(&self.git, &["push", "--quiet", "--no-verify", "--force", "--", &self.remote, &to])?;
        pushed.tip = Some(commit.clone());
        let sent = self.sent(&commit);
        pushed.commits.insert(tree, commit);
        Ok(sent)
    }

    fn sent(&self, commit: &str) -> SentFiles {
        SentFiles { reference: self.reference.clone(), commit: commit.to_owned() }
    }

    /// Removes the references of the run from the remote.
    pub(crate) async fn cleared(self: Arc<Self>) -> GitResult<()> {
        let cleared = tokio::task::spawn_blocking(move || self.clear()).await;
        cleared.unwrap_or_else(|error| Err(GitError::new(error.to_string())))
    }

    fn clear(&self) -> GitResult<()> {
        let _ = fs::remove_file(&self.index);
        let own = super::outline::references(&self.git, &self.remote, &self.reference)?;
        let of_run = |name: &String| {
            let rest = name.strip_prefix(&self.reference);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        super::outline::delete(&self.git, &self.remote, &own.into_iter().filter(of_run).collect::<Vec<_>>())
    }
}

/// Returns git in a project whose files can be sent.
pub(super) fn git_of(root: &Path) -> GitResult<Git> {
    let git = Git::in_project(root, &[root])?;
    let top = git.try_run(&["rev-parse", "--show-toplevel"])?.ok_or_else(|| {
        GitError::new("the project is not a git repository, and `files = \"git\"` needs one")
    })?;
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real(Path::new(&top)) != real(root) {
        return Err(GitError::new("the project is not the top directory of its git repository"));
    }
    Ok(git)
}

/// Writes the tree with the tracked files as they are now and those that match `sends`, and returns its id.
pub(super) fn tree_of(git: &Git, index: &Path, sends: &[String]) -> GitResult<String> {
    let failed = |error: std::io::Error| GitError::new(format!("failed to copy the index: {error}"));
    if let Some(directory) = index.parent() {
        taskpawl_tools::make_private_directories(directory).map_err(failed)?;
    }
    // A copy knows which files have not changed, so that only others are read.
    let own = git.run(&["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
    match fs::copy(own, index) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let _ = fs::remove_file(index);
        }
        copied => drop(copied.map_err(failed)?),
    }
    let git = git.with_index(index);
    git.run(&["add", "--update", "--", "."])?;
    let tracked = git.run(&["ls-files", "-z", "--cached"])?;
    let withheld: Vec<&str> = names(&tracked).filter(|path| is_withheld(path)).collect();
    check_readable(&withheld)?;
    git.run_with(&["update-index", "-z", "--force-remove", "--stdin"], list(&withheld).as_bytes())?;
    let also = untracked(&git, sends)?;
    let also: Vec<&str> = names(&also).filter(|path| !is_withheld(path)).collect();
    git.run_with(&["update-index", "-z", "--add", "--stdin"], list(&also).as_bytes())?;
    git.run(&["write-tree"])
}

/// Returns the files that match `sends`, without tracked and ignored ones.
pub(super) fn untracked(git: &Git, sends: &[String]) -> GitResult<String> {
    if sends.is_empty() {
        return Ok(String::new());
    }
    let patterns: Vec<String> =
        sends.iter().map(|glob| format!(":(top,glob){}", glob.trim_start_matches("./"))).collect();
    let mut args = vec!["ls-files", "-z", "--others", "--exclude-standard", "--"];
    args.extend(patterns.iter().map(String::as_str));
    git.run(&args)
}

/// Refuses names that are not UTF-8: they could not be named to git again, and would be sent.
fn check_readable(withheld: &[&str]) -> GitResult<()> {
    match withheld.iter().find(|name| name.contains('\u{fffd}')) {
        Some(name) => {
            Err(GitError::new(format!("the name of `{name}` is not UTF-8, so it cannot be withheld")))
        }
        None => Ok(()),
    }
}

fn list(names: &[&str]) -> String {
    names.iter().flat_map(|name| [*name, "\0"]).collect()
}
