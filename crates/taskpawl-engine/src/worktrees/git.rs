//! The program git, without everything in a repository that makes it run other programs.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A failure of git, or of the work with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct GitError {
    /// Error class of the call that fails with it.
    pub(crate) class: &'static str,
    /// Lower-case fragment that describes the failure.
    pub(crate) message: String,
}

impl GitError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { class: "git", message: message.into() }
    }

    /// Makes the error for work that cannot be merged.
    pub(crate) fn conflict_of(message: String) -> Self {
        Self { class: "conflict", message }
    }

    /// Makes the error for files that cannot be merged.
    pub(crate) fn conflict(what: &str, files: &[String]) -> Self {
        const SHOWN: usize = 5;
        let shown: Vec<String> = files.iter().take(SHOWN).map(|file| format!("`{file}`")).collect();
        let more = files.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Self::conflict_of(format!("{what} conflicts in {}{more}", shown.join(", ")))
    }
}

pub(crate) type GitResult<T> = Result<T, GitError>;

/// Settings that a repository may have and that start programs. The user's own identity and ignore rules stay in force.
const NEUTRAL: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.quotePath=false",
    "diff.external=",
    "submodule.recurse=false",
    "advice.detachedHead=false",
];

/// Git in one directory.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    program: PathBuf,
    /// The work tree.
    tree: PathBuf,
    /// The private directory of a worktree: its `.git` file is not trusted.
    private: Option<PathBuf>,
    /// The index to use instead of that of the work tree.
    index: Option<PathBuf>,
    /// The place of the repository in the project, which is locked while git runs.
    lock: PathBuf,
    settings: Vec<String>,
}

impl Git {
    /// Returns git in a project. Programs below `untrusted` directories are not run: calls may have written them.
    pub(crate) fn in_project(root: &Path, untrusted: &[&Path]) -> GitResult<Self> {
        let program = find("git", untrusted)
            .ok_or_else(|| GitError::new("failed to run git: it is not installed, and worktrees need it"))?;
        let settings = NEUTRAL.iter().map(|setting| (*setting).to_owned()).collect();
        let git = Self {
            program,
            tree: root.to_owned(),
            private: None,
            index: None,
            lock: root.join(".git"),
            settings,
        };
        let drivers = git.drivers()?;
        Ok(Self { settings: [git.settings.clone(), drivers].concat(), ..git })
    }

    /// Returns git in a worktree with this private directory.
    pub(crate) fn in_worktree(&self, tree: &Path, git_dir: &Path) -> Self {
        Self { tree: tree.to_owned(), private: Some(git_dir.to_owned()), ..self.clone() }
    }

    /// Returns git that locks another file while it runs, for a repository without a work tree.
    pub(crate) fn with_lock(self, lock: PathBuf) -> Self {
        Self { lock, ..self }
    }

    /// Returns git with an index of its own: that of the user stays as it is.
    pub(crate) fn with_index(&self, index: &Path) -> Self {
        Self { index: Some(index.to_owned()), ..self.clone() }
    }

    /// Returns settings that switch off the filters and merge drivers which the configuration names.
    fn drivers(&self) -> GitResult<Vec<String>> {
        let pattern =
            r"^(filter\..*\.(clean|smudge|process|required)|merge\..*\.driver|diff\..*\.(command|textconv))$";
        let output = self.output(&["config", "-z", "--name-only", "--get-regexp", pattern], None)?;
        let names = text(&output.stdout);
        let names = names.split('\0').filter(|name| !name.is_empty());
        Ok(names
            .map(|name| match name.rsplit_once('.') {
                // A merge driver that fails leaves the file in conflict.
                Some((_, "required" | "driver")) => format!("{name}=false"),
                _ => format!("{name}="),
            })
            .collect())
    }

    /// Returns git with an author of its own: some commands need one although they commit nothing.
    pub(crate) fn with_own_identity(&self) -> Self {
        let (name, email) = AUTHOR;
        let own = vec![format!("user.name={name}"), format!("user.email={email}")];
        Self { settings: [self.settings.clone(), own].concat(), ..self.clone() }
    }

    /// Returns the path of git itself.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns name and address of the author of commits: the user of the repository, or taskpawl where none is configured.
    pub(crate) fn identity(&self) -> GitResult<(String, String)> {
        let value = |key: &str| self.try_run(&["config", key]);
        let (name, email) = (value("user.name")?, value("user.email")?);
        Ok(name.zip(email).unwrap_or_else(|| (AUTHOR.0.to_owned(), AUTHOR.1.to_owned())))
    }

    /// Returns the work tree.
    pub(crate) fn root(&self) -> &Path {
        &self.tree
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.tree).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
        if let Some(git_dir) = &self.private {
            command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", &self.tree);
        }
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        command.args(args);
        command
    }

    fn output(&self, args: &[&str], input: Option<&[u8]>) -> GitResult<Output> {
        let failed = |error: std::io::Error| GitError::new(format!("failed to run git: {error}"));
        let _lock = self.locked(args).map_err(failed)?;
        let mut command = self.command(args);
        let Some(input) = input else { return command.output().map_err(failed) };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let mut stdin = child.stdin.take().ok_or_else(|| GitError::new("failed to run git: no input"))?;
        let input = input.to_vec();
        // Written beside the reading of the output: both may be longer than a pipe.
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().map_err(failed)?;
        drop(writer.join());
        Ok(output)
    }

    /// Waits until no other run of this program makes or removes a worktree, and keeps others from it until the file is closed. Git reads
    /// the directories of all worktrees, and fails at one that another git is about to make.
    fn locked(&self, args: &[&str]) -> std::io::Result<Option<File>> {
        let file = match File::open(&self.lock) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let makes_or_removes = args.first() == Some(&"worktree");
        let locked = if makes_or_removes { file.lock() } else { file.lock_shared() };
        locked?;
        Ok(Some(file))
    }

    /// Runs git, and returns its output without the last line break.
    pub(crate) fn run(&self, args: &[&str]) -> GitResult<String> {
        let output = self.output(args, None)?;
        if output.status.success() {
            return Ok(text(&output.stdout).trim_end_matches('\n').to_owned());
        }
        Err(refused(args, &output))
    }

    /// Runs git, and returns its output as it is.
    pub(crate) fn bytes(&self, args: &[&str]) -> GitResult<Vec<u8>> {
        let output = self.output(args, None)?;
        if output.status.success() { Ok(output.stdout) } else { Err(refused(args, &output)) }
    }

    /// Runs git with an input.
    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> GitResult<String> {
        let output = self.output(args, Some(input))?;
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(refused(args, &output)) }
    }

    /// Runs git, and returns its output, or `None` if it fails.
    pub(crate) fn try_run(&self, args: &[&str]) -> GitResult<Option<String>> {
        let output = self.output(args, None)?;
        Ok(output.status.success().then(|| text(&output.stdout).trim_end_matches('\n').to_owned()))
    }

    /// Returns the commit that a name stands for; `None` if there is none.
    pub(crate) fn commit_of(&self, name: &str) -> GitResult<Option<String>> {
        self.try_run(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")])
    }

    /// Returns the directory that all worktrees of the repository share.
    pub(crate) fn common_dir(&self) -> GitResult<PathBuf> {
        self.run(&["rev-parse", "--path-format=absolute", "--git-common-dir"]).map(PathBuf::from)
    }

    /// Merges a commit into another without a work tree. Returns the merge commit, or the later of both if it has the other already.
    ///
    /// The commit is the same whenever it is made: a run that was killed after it finds it again.
    pub(crate) fn merge(&self, ours: &str, theirs: &str, message: &str, what: &str) -> GitResult<String> {
        self.try_merge(ours, theirs, message)?.map_err(|files| GitError::conflict(what, &files))
    }

    /// Like [`merge`](Self::merge), but returns the files in conflict.
    pub(crate) fn try_merge(
        &self,
        ours: &str,
        theirs: &str,
        message: &str,
    ) -> GitResult<Result<String, Vec<String>>> {
        if self.is_ancestor(theirs, ours)? {
            return Ok(Ok(ours.to_owned()));
        }
        if self.is_ancestor(ours, theirs)? {
            return Ok(Ok(theirs.to_owned()));
        }
        let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs];
        let output = self.output(&args, None)?;
        let said = text(&output.stdout);
        let mut parts = said.split('\0');
        let tree = parts.next().unwrap_or_default().to_owned();
        match output.status.code() {
            Some(0) => self.commit_tree(&tree, &[ours, theirs], message).map(Ok),
            Some(1) => Ok(Err(parts.filter(|file| !file.is_empty()).map(str::to_owned).collect())),
            _ => Err(refused(&args, &output)),
        }
    }

    pub(crate) fn is_ancestor(&self, older: &str, newer: &str) -> GitResult<bool> {
        Ok(self.output(&["merge-base", "--is-ancestor", older, newer], None)?.status.success())
    }

    /// Makes a commit whose time is that of its newest parent, so that it is the same when it is made again.
    pub(crate) fn commit_tree(&self, tree: &str, parents: &[&str], message: &str) -> GitResult<String> {
        let times = parents.iter().map(|parent| self.run(&["show", "-s", "--format=%ct", parent]));
        let times = times.collect::<GitResult<Vec<String>>>()?;
        let time = times.iter().filter_map(|time| time.parse::<u64>().ok()).max().unwrap_or_default();
        let mut args = vec!["commit-tree", tree, "-m", message];
        for parent in parents {
            args.extend(["-p", parent]);
        }
        let mut command = self.command(&args);
        let at = format!("@{time} +0000");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), AUTHOR.0).env(format!("GIT_{role}_EMAIL"), AUTHOR.1);
            command.env(format!("GIT_{role}_DATE"), &at);
        }
        let output =
            command.output().map_err(|error| GitError::new(format!("failed to run git: {error}")))?;
        if output.status.success() {
            Ok(text(&output.stdout).trim().to_owned())
        } else {
            Err(refused(&args, &output))
        }
    }

    /// Commits the index. The author is the user of the repository, or taskpawl where none is configured.
    pub(crate) fn commit(&self, message: &str) -> GitResult<()> {
        let args = ["commit", "--quiet", "--no-verify", "-m", message];
        let mut command = self.command(&args);
        if self.try_run(&["config", "user.email"])?.is_none() {
            for role in ["AUTHOR", "COMMITTER"] {
                command.env(format!("GIT_{role}_NAME"), AUTHOR.0).env(format!("GIT_{role}_EMAIL"), AUTHOR.1);
            }
        }
        let output =
            command.output().map_err(|error| GitError::new(format!("failed to run git: {error}")))?;
        if output.status.success() { Ok(()) } else { Err(refused(&args, &output)) }
    }
}

/// The author of commits that only join others.
const AUTHOR: (&str, &str) = ("taskpawl", "taskpawl@localhost");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn refused(args: &[&str], output: &Output) -> GitError {
    let said = text(&output.stderr);
    let line = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    let verb = args.iter().find(|arg| !arg.starts_with('-')).unwrap_or(&"");
    GitError::new(format!("`git {verb}` failed: {}", taskpawl_text::plain_line(line)))
}

/// Returns a program of the search path, outside of directories that are not trusted.
fn find(name: &str, untrusted: &[&Path]) -> Option<PathBuf> {
    let path: OsString = std::env::vars_os().find(|(name, _)| name == OsStr::new("PATH"))?.1;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .filter(|program| program.is_file())
        .find(|program| {
            let real = program.canonicalize().unwrap_or_else(|_| program.clone());
            !untrusted.iter().any(|place| real.starts_with(place) || program.starts_with(place))
        })
}
