//! Worktrees without the packages of the project: git does not track what package managers install.

use std::path::Path;

use taskpawl_model::advice::Hint;
use taskpawl_model::plan::{Plan, PlanTask};
use taskpawl_model::task::CallPart;

/// A lock file whose package manager installs into the project.
struct LockFile {
    name: &'static str,
    /// The command that installs the packages.
    install: &'static str,
    /// The directory that has them; `None` if it cannot be moved to another place.
    directory: Option<&'static str>,
}

/// Caches of cargo and go are outside of the project, so that their lock files need nothing.
const LOCK_FILES: [LockFile; 9] = [
    LockFile { name: "package-lock.json", install: "npm ci", directory: Some("node_modules") },
    LockFile {
        name: "pnpm-lock.yaml",
        install: "pnpm install --frozen-lockfile",
        directory: Some("node_modules"),
    },
    LockFile { name: "yarn.lock", install: "yarn install --immutable", directory: Some("node_modules") },
    LockFile { name: "bun.lock", install: "bun install --frozen-lockfile", directory: Some("node_modules") },
    LockFile { name: "uv.lock", install: "uv sync --frozen", directory: None },
    LockFile { name: "poetry.lock", install: "poetry install", directory: None },
    LockFile { name: "Pipfile.lock", install: "pipenv sync", directory: None },
    LockFile { name: "Gemfile.lock", install: "bundle install", directory: None },
    LockFile { name: "composer.lock", install: "composer install", directory: Some("vendor") },
];

/// A task whose worktree has no packages.
pub(super) struct BareWorktree<'p> {
    pub(super) task: &'p PlanTask,
    pub(super) message: String,
    pub(super) hint: Hint,
}

/// Returns the first task whose worktree has neither `setup` nor `link`, in a project with a lock file.
pub(super) fn bare_worktree<'p>(root: &Path, plan: &'p Plan) -> Option<BareWorktree<'p>> {
    let is_bare = |task: &&PlanTask| {
        let has_setup = task.calls.iter().any(|call| call.spec.part() == CallPart::Setup);
        task.spec.worktree.as_ref().is_some_and(|tree| tree.link.is_empty()) && !has_setup
    };
    let task = plan.tasks.iter().find(is_bare)?;
    let LockFile { name, install, directory } =
        LOCK_FILES.iter().find(|file| root.join(file.name).is_file())?;
    let link = directory.map_or_else(String::new, |directory| format!(" or `{{link: [{directory}]}}`"));
    Some(BareWorktree {
        task,
        message: format!("the project has `{name}`, and nothing installs its packages in the worktree"),
        hint: Hint::new(format!(
            "give `worktree` `{{setup: {{run: {install}}}}}`{link}, here or in `defaults`"
        )),
    })
}
