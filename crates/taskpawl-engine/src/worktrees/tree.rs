//! The worktree of one task: made once from a recorded start, found again by later runs.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use taskpawl_tools::CopiedFiles;

use super::git::{Git, GitError, GitResult};
use super::prepare::{self, Wanted};
use super::record::{TreeRecord, record_of};

/// The task, the branch and the commits that a worktree is made from.
#[derive(Debug)]
pub(crate) struct TreeRequest {
    /// The plan of the task.
    pub(crate) plan: Option<String>,
    pub(crate) task: String,
    /// A task that was reopened starts over in a new worktree.
    pub(crate) generation: u32,
    /// The branch, if the plan names one.
    pub(crate) branch: Option<String>,
    /// The commit to start from, if the plan names one.
    pub(crate) base: Option<String>,
    /// The commits of the tasks that it needs, in order.
    pub(crate) tips: Vec<Tip>,
    /// Files that it gets from the project, and its ports.
    pub(crate) wanted: Wanted,
}

/// The commit of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tip {
    pub(crate) task: String,
    pub(crate) commit: String,
}

/// A worktree that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) path: PathBuf,
    /// Its private directory in the repository.
    pub(crate) git_dir: PathBuf,
    /// The directory that all worktrees of the repository share.
    pub(crate) common: PathBuf,
    pub(crate) branch: String,
    /// The commit that it began with.
    pub(crate) start: String,
    /// Files that it got from the project. They are no work of the task.
    pub(crate) given: Vec<String>,
    /// Ports that no other worktree has.
    pub(crate) ports: Vec<u16>,
    /// The directories that it got from the project just now.
    pub(crate) linked: CopiedFiles,
}

impl TreeRequest {
    fn branch(&self) -> String {
        self.branch.clone().unwrap_or_else(|| {
            let plan = self.plan.as_deref().map_or_else(|| "tasks".to_owned(), ref_part);
            format!("taskpawl/{plan}/{}", ref_part(&self.task))
        })
    }

    /// Returns the path of the worktree below `base`.
    pub(crate) fn path(&self, base: &Path) -> PathBuf {
        path_of(base, self.plan.as_deref(), &self.task)
    }

    /// Returns the commit to start from: the tips in order, merged into the first of them or into `base`.
    fn start(&self, git: &Git) -> GitResult<String> {
        let named = self.base.as_deref();
        let begin = match (named, self.tips.first()) {
            (None, Some(tip)) => tip.commit.clone(),
            (name, _) => {
                let name = name.unwrap_or("HEAD");
                git.commit_of(name)?.ok_or_else(|| {
                    GitError::new(format!("the worktree has no start: there is no commit `{name}`"))
                })?
            }
        };
        let (mut start, mut joined) = (begin, named.map(str::to_owned));
        for tip in &self.tips {
            let before = joined.as_ref().map_or_else(String::new, |joined| format!(" with {joined}"));
            let message = format!("Join `{}` for `{}`", tip.task, self.task);
            start = git.merge(
                &start,
                &tip.commit,
                &message,
                &format!("the work of task `{}`{before}", tip.task),
            )?;
            joined = Some(
                joined
                    .map_or_else(|| format!("`{}`", tip.task), |joined| format!("{joined}, `{}`", tip.task)),
            );
        }
        Ok(start)
    }
}

impl Tree {
    /// Returns the worktree of a task, and makes it if it is not there.
    pub(crate) fn open(git: &Git, base: &Path, request: &TreeRequest) -> GitResult<Self> {
        let (path, branch) = (request.path(base), request.branch());
        let (file, common) = (record_of(&path), git.common_dir()?);
        let known = TreeRecord::read(&file);
        let earlier = known.clone().filter(|known| known.generation == request.generation);
        let record = if let Some(record) = earlier {
            if let Some(tree) = Self::of_record(&record, &path, &common) {
                return Ok(tree);
            }
            TreeRecord { git_dir: None, ..record }
        } else {
            let is_own = known.is_some_and(|known| known.branch == branch);
            if !is_own && git.commit_of(&format!("refs/heads/{branch}"))?.is_some() {
                return Err(GitError::new(format!(
                    "branch `{branch}` exists already, and no worktree of this task made it: delete or rename it"
                )));
            }
            let record = TreeRecord {
                plan: request.plan.clone(),
                task: request.task.clone(),
                generation: request.generation,
                branch,
                start: request.start(git)?,
                git_dir: None,
                given: Vec::new(),
                ports: Vec::new(),
            };
            remove_tree(git, &path)?;
            // Commits of an earlier generation are no part of this one.
            git.try_run(&["branch", "--quiet", "-D", "--", &record.branch])?;
            record
        };
        record.write(&file)?;
        let mut record = make(record, git, &path)?;
        let linked = prepare::prepare((base, git, &path), &request.wanted, &mut record)?;
        record.write(&file)?;
        let tree = Self::of_record(&record, &path, &common).ok_or_else(|| {
            GitError::new(format!("git made no worktree at `{}` for {}", path.display(), record.branch))
        })?;
        Ok(Self { linked, ..tree })
    }

    /// Returns the worktree of a record if it is complete: it is recorded as such once it is prepared, before programs run in it.
    fn of_record(record: &TreeRecord, path: &Path, common: &Path) -> Option<Self> {
        let git_dir = record.git_dir.clone().filter(|git_dir| git_dir.is_dir() && path.is_dir())?;
        let (given, ports) = (record.given.clone(), record.ports.clone());
        let (branch, start) = (record.branch.clone(), record.start.clone());
        let (path, common, linked) = (path.to_owned(), common.to_owned(), CopiedFiles::default());
        Some(Self { path, git_dir, common, branch, start, given, ports, linked })
    }
}

/// Makes the worktree of a record, and returns the record with its private directory.
fn make(record: TreeRecord, git: &Git, path: &Path) -> GitResult<TreeRecord> {
    remove_tree(git, path)?;
    let text = path.to_string_lossy();
    let tip = git.commit_of(&format!("refs/heads/{}", record.branch))?;
    // A branch that went on from the start has work of an earlier run.
    let has_work = match &tip {
        Some(tip) => git.is_ancestor(&record.start, tip)?,
        None => false,
    };
    if has_work {
        git.run(&["worktree", "add", "--quiet", "--force", &text, &record.branch])?;
    } else {
        git.run(&["worktree", "add", "--quiet", "--force", "-B", &record.branch, &text, &record.start])?;
    }
    // No program has run in it yet, so its `.git` file is that of git.
    let git_dir = git.run(&["-C", &text, "rev-parse", "--absolute-git-dir"])?;
    Ok(TreeRecord { git_dir: Some(PathBuf::from(git_dir)), ..record })
}

/// Removes a worktree with everything in it. Its branch stays.
pub(crate) fn remove_tree(git: &Git, path: &Path) -> GitResult<()> {
    git.try_run(&["worktree", "remove", "--force", "--force", &path.to_string_lossy()])?;
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(GitError::new(format!("failed to remove `{}`: {error}", path.display())));
        }
        _ => {}
    }
    git.try_run(&["worktree", "prune"])?;
    Ok(())
}

/// Returns the path of a task's worktree.
pub(crate) fn path_of(base: &Path, plan: Option<&str>, task: &str) -> PathBuf {
    base.join(plan.map_or_else(|| "tasks".to_owned(), ref_part)).join(ref_part(task))
}

/// Returns a name as a part of a branch and a path. Names that git does not take get a digest, so that two of them stay apart.
pub(crate) fn ref_part(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    let plain = plain.replace("..", "-.");
    let lower = plain.to_ascii_lowercase();
    let is_refused = plain.starts_with(['.', '-'])
        || plain.ends_with('.')
        || [".lock", ".json"].iter().any(|end| lower.ends_with(end));
    if plain == name && !is_refused && !name.is_empty() {
        return plain;
    }
    let digest = format!("{:x}", Sha256::digest(name));
    format!(
        "{}-{}",
        plain.trim_matches(['.', '-']).replace(".lock", "-lock").replace(".json", "-json"),
        &digest[..8]
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes a repository with one commit, and returns git in it with the directory for worktrees.
    pub(crate) fn repository() -> (tempfile::TempDir, Git, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        let git = Git::in_project(&root, &[]).unwrap();
        git.run(&["init", "-q", "-b", "main"]).unwrap();
        fs::write(root.join("a"), "1").unwrap();
        git.run(&["add", "."]).unwrap();
        git.commit("first").unwrap();
        let base = root.with_file_name("trees");
        (directory, git, base)
    }

    pub(crate) fn request(generation: u32) -> TreeRequest {
        let (plan, task) = (Some("p".to_owned()), "t".to_owned());
        let (tips, wanted) = Default::default();
        TreeRequest { plan, task, generation, branch: None, base: None, tips, wanted }
    }

    /// Commits what is in a worktree, and returns the result.
    pub(crate) fn commit(git: &Git, tree: &Tree, message: &str) -> serde_json::Value {
        let staged = super::super::commit::stage(git, tree, message, false).unwrap();
        super::super::commit::commit(git, tree, message, &staged).unwrap()
    }

    fn save(git: &Git, tree: &Tree, name: &str) -> String {
        fs::write(tree.path.join(name), name).unwrap();
        commit(git, tree, name)["commit"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_worktree_is_made_once_and_found_again() {
        let (_directory, git, base) = repository();
        let tree = Tree::open(&git, &base, &request(0)).unwrap();
        fs::write(tree.path.join("work"), "").unwrap();
        assert_eq!(Tree::open(&git, &base, &request(0)).unwrap(), tree);
        assert!(tree.path.join("work").exists());
        let first = save(&git, &tree, "b");
        assert_eq!(save(&git, &tree, "b"), first, "a commit that was made is found again");
    }

    #[test]
    fn a_run_that_was_killed_while_it_made_one_is_followed_by_one_that_makes_the_same() {
        let (_directory, git, base) = repository();
        let tree = Tree::open(&git, &base, &request(0)).unwrap();
        let file = record_of(&tree.path);
        // The project has moved on, and the record is as it was before the worktree was complete.
        git.run(&["rm", "-q", "a"]).unwrap();
        git.commit("second").unwrap();
        let record = TreeRecord { git_dir: None, ..TreeRecord::read(&file).unwrap() };
        record.write(&file).unwrap();
        fs::remove_file(tree.path.join(".git")).unwrap();
        let again = Tree::open(&git, &base, &request(0)).unwrap();
        assert_eq!((&again.start, &again.branch), (&tree.start, &tree.branch));
        // Work that was committed before the directory was lost stays.
        let commit = save(&git, &again, "b");
        fs::remove_dir_all(&again.path).unwrap();
        let last = Tree::open(&git, &base, &request(0)).unwrap();
        assert_eq!(git.in_worktree(&last.path, &last.git_dir).commit_of("HEAD").unwrap(), Some(commit));
    }

    /// Without the lock of the repository some of them fail to read the directory of another one.
    #[test]
    fn worktrees_of_several_tasks_are_made_and_removed_at_once() {
        let (_directory, git, base) = repository();
        let make = |task: usize| {
            for generation in 0..4 {
                let request = TreeRequest { task: format!("t{task}"), ..request(generation) };
                Tree::open(&git, &base, &request).unwrap();
            }
        };
        std::thread::scope(|scope| {
            for task in 0..6 {
                scope.spawn(move || make(task));
            }
        });
    }

    #[test]
    fn another_generation_starts_over_and_foreign_branches_are_kept() {
        let (_directory, git, base) = repository();
        let tree = Tree::open(&git, &base, &request(0)).unwrap();
        save(&git, &tree, "b");
        let next = Tree::open(&git, &base, &request(1)).unwrap();
        assert!(!next.path.join("b").exists());
        git.run(&["branch", "taken"]).unwrap();
        let own = TreeRequest { task: "u".to_owned(), branch: Some("taken".to_owned()), ..request(0) };
        let refused = Tree::open(&git, &base, &own).unwrap_err();
        assert!(refused.message.contains("branch `taken` exists already"), "{refused}");
    }

    #[test]
    fn names_become_parts_of_branches_that_stay_apart() {
        assert_eq!(ref_part("a.b-c_1"), "a.b-c_1");
        for name in ["", "a..b", ".a", "a.lock", "a/b", "a b", "ä", "a."] {
            let part = ref_part(name);
            assert!(
                !part.contains("..") && !part.starts_with('.') && !part.contains(['/', ' ']),
                "{name}: {part}"
            );
        }
        assert_ne!(ref_part("a/b"), ref_part("a b"));
    }
}
