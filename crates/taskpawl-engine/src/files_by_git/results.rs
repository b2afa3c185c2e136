//! Changes of a call on a worker, written into the project: all of them, or none.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use taskpawl_model::value::paths;

use super::push::ProjectFiles;
use super::{ReturnedFiles, check_names, with_remote};
use crate::worktrees::git::{GitError, GitResult};

/// One changed file.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    path: String,
    /// The blob with which the call began; `None` if there was no file.
    before: Option<String>,
    /// The new blob and whether it is executable; `None` if the call removed the file.
    after: Option<(String, bool)>,
}

impl ProjectFiles {
    /// Writes the changes of a call into the project. Blocks.
    ///
    /// # Errors
    /// The remote does not have them, they are not declared in `writes`, or a file has changed here since the call began (class
    /// `conflict`). Nothing is overwritten then.
    pub(crate) fn take_back(&self, returned: &ReturnedFiles, writes: &[String]) -> GitResult<()> {
        let ReturnedFiles { reference, commit } = returned;
        check_names(reference, commit)?;
        let from = format!("+{reference}:{reference}");
        with_remote(
            &self.git,
            &["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", &self.remote, &from],
        )?;
        if self.git.commit_of(reference)?.as_deref() != Some(commit.as_str()) {
            return Err(GitError::new(format!(
                "`{reference}` of the remote is not the commit of the worker"
            )));
        }
        let changes = self.changes(commit)?;
        let allowed = paths::written(writes);
        let is_declared = |path: &str| allowed.iter().any(|above| paths::is_below(path, above));
        if let Some(change) = changes.iter().find(|change| !is_declared(&change.path)) {
            return Err(GitError::new(format!(
                "the worker changed `{}`, which is not in `writes`",
                change.path
            )));
        }
        let conflicts = self.conflicts(&changes)?;
        if !conflicts.is_empty() {
            let error = GitError::conflict("the work on the worker", &conflicts);
            let message =
                format!("{}: changed here meanwhile; that of the worker is in `{reference}`", error.message);
            // The local reference keeps it when that of the remote is deleted.
            return Err(GitError { message, ..error });
        }
        for change in &changes {
            self.write(change)?;
        }
        self.git.try_run(&["update-ref", "-d", reference]).map(drop)
    }

    fn changes(&self, commit: &str) -> GitResult<Vec<Change>> {
        let range = [format!("{commit}^"), commit.to_owned()];
        let listed = self.git.run(&[
            "diff-tree",
            "-r",
            "-z",
            "--no-renames",
            "--no-commit-id",
            &range[0],
            &range[1],
        ])?;
        let mut parts = super::names(&listed);
        let mut changes = Vec::new();
        while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
            changes.push(change(head, path)?);
        }
        Ok(changes)
    }

    /// Returns the files that are neither as the call found them nor as it left them.
    fn conflicts(&self, changes: &[Change]) -> GitResult<Vec<String>> {
        let mut conflicts = Vec::new();
        for change in changes {
            let now = self.blob_of(&change.path)?;
            let after = change.after.as_ref().map(|(blob, _)| blob);
            if now.as_ref() != change.before.as_ref() && now.as_ref() != after {
                conflicts.push(change.path.clone());
            }
        }
        Ok(conflicts)
    }

    /// Returns the id of a file of the project as it is now; `None` if it does not exist.
    fn blob_of(&self, path: &str) -> GitResult<Option<String>> {
        let whole = self.root.join(path);
        match fs::symlink_metadata(&whole) {
            Ok(data) if data.is_file() => {}
            Ok(_) => return Ok(Some("not a file".to_owned())),
            Err(error)
                if [std::io::ErrorKind::NotFound, std::io::ErrorKind::NotADirectory]
                    .contains(&error.kind()) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(GitError::new(format!("failed to read `{path}`: {error}"))),
        }
        self.git.run(&["hash-object", "--no-filters", "--", path]).map(Some)
    }

    fn write(&self, change: &Change) -> GitResult<()> {
        let failed =
            |error: std::io::Error| GitError::new(format!("failed to write `{}`: {error}", change.path));
        let path = self.inside(&change.path)?;
        let Some((blob, is_executable)) = &change.after else {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        };
        let content = self.git.bytes(&["cat-file", "blob", blob])?;
        let directory = path.parent().unwrap_or(&self.root);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let fresh = directory.join(format!(".{name}.taskpawl-new"));
        // A leftover of a run that was killed. A link is not followed.
        let _ = fs::remove_file(&fresh);
        let mut file = File::create_new(&fresh).map_err(failed)?;
        file.write_all(&content).map_err(failed)?;
        let mode = match (fs::metadata(&path), is_executable) {
            (Ok(data), true) => data.permissions().mode() | 0o111,
            (Ok(data), false) => data.permissions().mode() & !0o111,
            (Err(_), true) => 0o755,
            (Err(_), false) => 0o644,
        };
        file.set_permissions(fs::Permissions::from_mode(mode & 0o777)).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        fs::rename(&fresh, &path).map_err(failed)
    }

    /// Returns the path of a file whose directory is in the project, also where directories are symbolic links.
    fn inside(&self, path: &str) -> GitResult<PathBuf> {
        let whole = self.root.join(path);
        let directory = whole.parent().unwrap_or(&self.root);
        let failed = |error: std::io::Error| GitError::new(format!("failed to write `{path}`: {error}"));
        let root = self.root.canonicalize().map_err(failed)?;
        // The directories that exist are checked before others are made below them.
        let existing = directory.ancestors().find(|above| above.exists()).unwrap_or(&self.root);
        if !existing.canonicalize().map_err(failed)?.starts_with(&root) {
            return Err(GitError::new(format!("`{path}` is outside the project")));
        }
        fs::create_dir_all(directory).map_err(failed)?;
        Ok(whole)
    }
}

/// Reads a line such as `:100644 100644 OLD NEW M`.
fn change(head: &str, path: &str) -> GitResult<Change> {
    let odd = || GitError::new(format!("the worker changed `{path}` in a way that cannot be brought back"));
    let parts: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
    let [old_mode, new_mode, old, new, ..] = parts.as_slice() else { return Err(odd()) };
    let is_file = |mode: &str| ["100644", "100755"].contains(&mode);
    let is_none = |mode: &str| mode == "000000";
    // Links could lead out of the project, and submodules are repositories of their own.
    if ![*old_mode, *new_mode].iter().all(|mode| is_file(mode) || is_none(mode)) {
        return Err(odd());
    }
    let is_plain = Path::new(path)
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(name) if !name.eq_ignore_ascii_case(".git")));
    if !is_plain || path.contains('\u{fffd}') {
        return Err(odd());
    }
    Ok(Change {
        path: path.to_owned(),
        before: is_file(old_mode).then(|| (*old).to_owned()),
        after: is_file(new_mode).then(|| ((*new).to_owned(), *new_mode == "100755")),
    })
}
