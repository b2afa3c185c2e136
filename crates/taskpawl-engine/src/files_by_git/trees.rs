//! The work trees in which a worker runs calls that bring their files.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use taskpawl_model::value::paths;
use taskpawl_tools::{CallContext, Confinement};

use super::{ReturnedFiles, SentFiles, check_names, names, with_remote};
use crate::call_executor::Ticket;
use crate::worktrees::git::{Git, GitError, GitResult};

/// Time after which the work trees of a run that sends no more calls are removed.
const UNUSED: Duration = Duration::from_secs(24 * 60 * 60);

/// Most changed files that are named beside those in `writes`.
const MAX_NAMED: usize = 100;

/// The work trees of a worker.
#[derive(Debug)]
pub(crate) struct WorkerTrees {
    git: Git,
    remote: String,
    base: PathBuf,
    /// Held while git fetches and makes work trees.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Free work trees of each run. Ignored files stay in them, such as the products of a build.
    free: HashMap<String, Vec<(Place, Instant)>>,
    made: u64,
}

/// A work tree with its private directory in the repository.
#[derive(Debug, Clone)]
struct Place {
    path: PathBuf,
    git_dir: PathBuf,
}

/// The work tree of one call.
#[derive(Debug)]
pub(crate) struct CallTree {
    place: Place,
    files: SentFiles,
}

impl CallTree {
    pub(crate) fn path(&self) -> &Path {
        &self.place.path
    }
}

impl WorkerTrees {
    /// Opens the repository of a worker below `files`, and removes the work trees of an earlier process in `trees`. Programs may see
    /// `trees`, but not `files`.
    pub(crate) fn open(files: &Path, trees: PathBuf, remote: &str) -> GitResult<Self> {
        let repository = files.join("files.git");
        let failed = |error: std::io::Error| {
            GitError::new(format!("failed to use `{}`: {error}", repository.display()))
        };
        match fs::remove_dir_all(&trees) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        for directory in [&repository, &trees] {
            taskpawl_tools::make_private_directories(directory).map_err(failed)?;
        }
        let git = Git::in_project(&repository, &[&repository, &trees])?;
        git.run(&["init", "--quiet", "--bare"])?;
        // Git fails at a work tree that another git is about to make.
        let git = git.with_lock(repository.join("config"));
        git.run(&["worktree", "prune"])?;
        Ok(Self { git, remote: remote.to_owned(), base: trees, state: Mutex::default() })
    }

    /// Returns a work tree with the files of a call. Blocks.
    pub(crate) fn take(&self, files: &SentFiles) -> GitResult<CallTree> {
        let SentFiles { reference, commit } = files;
        check_names(reference, commit)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.git.commit_of(commit)?.is_none() {
            let from = format!("+{reference}:{reference}");
            with_remote(
                &self.git,
                &["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", &self.remote, &from],
            )?;
            if self.git.commit_of(commit)?.is_none() {
                return Err(GitError::new("the remote does not have the commit of the call"));
            }
        }
        remove_unused(&mut state);
        let known = state.free.entry(reference.clone()).or_default().pop();
        let place = if let Some((place, _)) = known {
            self.reset(place, commit)?
        } else {
            state.made += 1;
            self.make(state.made, commit)?
        };
        Ok(CallTree { place, files: files.clone() })
    }

    /// Moves a call into a work tree with its files.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        files: SentFiles,
        context: &mut CallContext,
        confinement: &Confinement,
    ) -> GitResult<(CallTree, Arc<Confinement>)> {
        let trees = Arc::clone(self);
        let taken = tokio::task::spawn_blocking(move || trees.take(&files)).await;
        let tree = taken.map_err(|error| GitError::new(error.to_string()))??;
        tree.path().clone_into(&mut context.root);
        tree.path().clone_into(&mut context.dir);
        // Programs get no part of the repository: it has the files of other runs.
        let confinement = Arc::new(confinement.in_worktree(tree.path(), Vec::new()));
        Ok((tree, confinement))
    }

    /// Ends the use of a work tree as [`give_back`](Self::give_back) does.
    pub(crate) async fn leave(
        self: &Arc<Self>,
        tree: CallTree,
        ticket: Ticket,
        writes: Vec<String>,
    ) -> GitResult<(Option<ReturnedFiles>, Vec<String>)> {
        let trees = Arc::clone(self);
        let given = tokio::task::spawn_blocking(move || trees.give_back(tree, &ticket, &writes)).await;
        given.map_err(|error| GitError::new(error.to_string()))?
    }

    fn make(&self, number: u64, commit: &str) -> GitResult<Place> {
        let path = self.base.join(number.to_string());
        let text = path.to_string_lossy();
        self.git.run(&["worktree", "add", "--quiet", "--force", "--detach", &text, commit])?;
        // No program has run in it yet, so its `.git` file is that of git.
        let git_dir = self.git.run(&["-C", &text, "rev-parse", "--absolute-git-dir"])?;
        Ok(Place { path, git_dir: PathBuf::from(git_dir) })
    }

    fn reset(&self, place: Place, commit: &str) -> GitResult<Place> {
        let git = self.git.in_worktree(&place.path, &place.git_dir);
        git.run(&["reset", "--quiet", "--hard", commit])?;
        git.run(&["clean", "--quiet", "-d", "--force", "--force"])?;
        Ok(place)
    }

    /// Pushes the changes of a call to files in `writes`, and returns them with the names of other changed files. The work tree is free
    /// afterwards. Blocks.
    pub(crate) fn give_back(
        &self,
        tree: CallTree,
        ticket: &Ticket,
        writes: &[String],
    ) -> GitResult<(Option<ReturnedFiles>, Vec<String>)> {
        let returned = self.commit(&tree, ticket, writes);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let free = state.free.entry(tree.files.reference).or_default();
        free.push((tree.place, Instant::now()));
        returned
    }

    fn commit(
        &self,
        tree: &CallTree,
        ticket: &Ticket,
        writes: &[String],
    ) -> GitResult<(Option<ReturnedFiles>, Vec<String>)> {
        let git = self.git.in_worktree(&tree.place.path, &tree.place.git_dir);
        // Programs may have changed the index, too.
        git.run(&["reset", "--quiet", &tree.files.commit])?;
        for path in paths::written(writes) {
            let exact = format!(":(top,literal){path}");
            let is_known = tree.place.path.join(&path).symlink_metadata().is_ok()
                || !git.run(&["ls-files", "-z", "--", &exact])?.is_empty();
            if is_known {
                // Also ignored files: the task says that it writes them.
                git.run(&["add", "--all", "--force", "--", &exact])?;
            }
        }
        let others =
            git.run(&["ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard"])?;
        // A removed file is listed twice.
        let changed: BTreeSet<&str> = names(&others).collect();
        let changed: Vec<String> = changed.into_iter().take(MAX_NAMED).map(str::to_owned).collect();
        let written = git.run(&["write-tree"])?;
        if written == git.run(&["rev-parse", &format!("{}^{{tree}}", tree.files.commit)])? {
            return Ok((None, changed));
        }
        let commit = git.commit_tree(&written, &[&tree.files.commit], "Files of a call of taskpawl")?;
        let digest = format!("{:x}", Sha256::digest(ticket.to_string()));
        let reference = format!("{}.{}", tree.files.reference, &digest[..16]);
        let to = format!("{commit}:{reference}");
        with_remote(&self.git, &["push", "--quiet", "--no-verify", "--force", "--", &self.remote, &to])?;
        Ok((Some(ReturnedFiles { reference, commit }), changed))
    }
}

/// Removes the work trees of runs that have sent no call for long.
fn remove_unused(state: &mut State) {
    for places in state.free.values_mut() {
        let old: Vec<_> = places.extract_if(.., |(_, since)| since.elapsed() > UNUSED).collect();
        for (place, _) in old {
            // The next start of the worker removes the rest.
            let _ = fs::remove_dir_all(&place.path);
        }
    }
    state.free.retain(|_, places| !places.is_empty());
}
