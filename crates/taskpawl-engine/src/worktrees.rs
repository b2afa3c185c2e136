//! Worktrees of tasks: their calls run in a git worktree on a branch of the task, which ends with a commit.

mod commit;
mod conflict;
mod diff;
mod fit;
pub(crate) mod git;
mod merge;
mod of_task;
mod orphans;
mod prepare;
mod record;
mod tree;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use taskpawl_manager::{Error, Manager};
use taskpawl_model::command::StartedCall;
use taskpawl_model::task::{AGENT_TOOL, CallPart, MERGE_TOOL, WORKTREE_TOOL};
use taskpawl_model::value::Key;
use taskpawl_model::view::{View, ViewResult};
use taskpawl_tools::{
    CallContext, Confinement, CopiedFiles, RegisteredTool, Registry, ScanBounds, SharedWorktrees, ToolError,
    Widening,
};

pub use self::diff::WorktreeDiff;
use self::git::{Git, GitError, GitResult};
use self::of_task::OfTask;
pub use self::orphans::{KeptWorktree, WorktreeState};
use self::prepare::Wanted;
pub(crate) use self::tree::ref_part;
use self::tree::{Tip, Tree, TreeRequest};

/// The worktrees of a project.
#[derive(Debug, Clone)]
pub(crate) struct Worktrees {
    root: PathBuf,
    /// The directory with the worktrees; `None` if the host keeps none.
    base: Option<PathBuf>,
}

/// Returns the directory of a project's worktrees in that of all projects.
pub(crate) fn base_of(all: &Path, root: &Path) -> PathBuf {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let digest = format!("{:x}", Sha256::digest(real.as_os_str().as_encoded_bytes()));
    let name =
        real.file_name().map_or_else(|| "project".to_owned(), |name| ref_part(&name.to_string_lossy()));
    all.join(format!("{name}-{}", &digest[..12]))
}

impl Worktrees {
    pub(crate) fn new(root: &Path, all: Option<&Path>) -> Self {
        Self { root: root.to_owned(), base: all.map(|all| base_of(all, root)) }
    }

    /// Returns the directory for work trees of a worker: a place that the sandbox does not hide.
    pub(crate) fn of_worker(&self, worker: &str) -> Option<PathBuf> {
        self.base.as_ref().map(|base| base.join(format!("worker~{worker}")))
    }

    fn base(&self) -> GitResult<&Path> {
        self.base.as_deref().ok_or_else(|| GitError::new("this program keeps no worktrees"))
    }

    /// Returns git in the project. Programs of the project and of worktrees are not run as git.
    fn git(&self) -> GitResult<Git> {
        let base = self.base()?;
        Git::in_project(&self.root, &[&self.root, base])
    }

    /// Refuses a project that cannot have worktrees.
    pub(crate) fn check(&self) -> Result<(), String> {
        let checked = self.git().and_then(|git| fit::check(&git, &self.root));
        checked.map_err(|error| error.message)
    }

    fn open(&self, request: &TreeRequest) -> GitResult<Tree> {
        let git = self.git()?;
        fit::check(&git, &self.root)?;
        Tree::open(&git, self.base()?, request)
    }

    /// Returns the worktrees that are there.
    pub(crate) fn kept(&self, manager: &Manager) -> Result<Vec<KeptWorktree>, Error> {
        self.base.as_deref().map_or_else(|| Ok(Vec::new()), |base| orphans::kept(base, manager))
    }

    /// Removes the worktree of an orphan, and its record. Its branch stays.
    pub(crate) fn remove(&self, worktree: &KeptWorktree) -> Result<(), String> {
        let removed = self.git().and_then(|git| orphans::remove(&git, worktree));
        removed.map_err(|error| error.message)
    }
}

/// A worktree in use, with the sandbox of the calls in it.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) tree: Tree,
    pub(crate) confinement: Arc<Confinement>,
}

/// The place of a worktree that is made at its first use.
type Slot = Arc<Mutex<Option<Arc<Placed>>>>;

/// The worktrees of the tasks of one run.
#[derive(Debug)]
pub(crate) struct RunWorktrees {
    worktrees: Worktrees,
    confinement: Arc<Confinement>,
    manager: Manager,
    /// The tool that works on conflicts of merges, if the host has it.
    agent: Option<RegisteredTool>,
    /// By task and generation. The lock of a task is held while its worktree is made: parallel calls need it at once.
    placed: Mutex<HashMap<(Key, u32), Slot>>,
}

impl RunWorktrees {
    pub(crate) fn new(
        worktrees: Worktrees,
        confinement: Arc<Confinement>,
        manager: Manager,
        tools: &Registry,
    ) -> Self {
        let agent = tools.get(AGENT_TOOL).cloned();
        Self { worktrees, confinement, manager, agent, placed: Mutex::default() }
    }

    /// Returns the worktree of the task of a call, and makes it if it is not there. Blocks.
    fn place(&self, started: &StartedCall, bounds: &ScanBounds) -> GitResult<(Arc<Placed>, CopiedFiles)> {
        let slot = {
            let mut placed = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(placed.entry((started.key, started.generation)).or_default())
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(placed) = slot.as_ref().filter(|placed| placed.tree.path.is_dir()) {
            return Ok((Arc::clone(placed), CopiedFiles::default()));
        }
        let tree = self.worktrees.open(&self.request(started, bounds)?)?;
        let confinement = Arc::new(self.confinement.in_worktree(&tree.path, writable(&tree)?));
        let linked = tree.linked;
        let placed = Arc::new(Placed { tree, confinement });
        *slot = Some(Arc::clone(&placed));
        Ok((placed, linked))
    }

    fn request(&self, started: &StartedCall, bounds: &ScanBounds) -> GitResult<TreeRequest> {
        let worktree = started.spec.worktree.clone().unwrap_or_default();
        let mut wanted = Wanted::of(&worktree);
        if wanted.has_files() {
            let sandbox = self.confinement.of_call(&Widening::default(), bounds);
            let sandbox = sandbox.map_err(|error| GitError::new(error.to_string()))?;
            wanted = wanted.within(sandbox.closed, bounds.clone());
        }
        let tips = self.manager.read(|view| Ok(tips(view, started.key)?));
        Ok(TreeRequest {
            plan: started.plan.as_deref().map(str::to_owned),
            task: started.task.to_string(),
            generation: started.generation,
            branch: worktree.branch,
            base: worktree.base,
            wanted,
            tips: tips.map_err(|error| GitError::new(error.to_string()))?,
        })
    }

    /// Moves a call into the worktree of its task, and gives the tools for worktrees what they need.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        started: &StartedCall,
        context: &mut CallContext,
    ) -> Result<Option<Arc<Confinement>>, GitError> {
        let has_tree = started.spec.worktree.is_some();
        let tool = started.call.spec.tool_name.as_str();
        if !has_tree && tool != MERGE_TOOL {
            return Ok(None);
        }
        let placed = if has_tree {
            let (all, own, bounds) = (Arc::clone(self), started.clone(), ScanBounds::of_call(context));
            let placed = tokio::task::spawn_blocking(move || all.place(&own, &bounds)).await;
            let (placed, linked) = placed.map_err(|error| GitError::new(error.to_string()))??;
            if linked.files > 0 {
                context.report(prepare::said(linked));
            }
            Some(placed)
        } else {
            None
        };
        if let Some(placed) = &placed {
            context.root.clone_from(&placed.tree.path);
            context.dir.clone_from(&placed.tree.path);
            context.ports = placed.tree.ports.as_slice().into();
        }
        if [WORKTREE_TOOL, MERGE_TOOL].contains(&tool) {
            let title = if started.spec.name.is_empty() { started.task.as_str() } else { &started.spec.name };
            let plan = started.plan.as_deref().map_or_else(String::new, |plan| format!("{plan}/"));
            let of_task = OfTask {
                run: Arc::clone(self),
                placed: placed.clone(),
                message: format!("{plan}{}: {title}", started.task),
                started: started.clone(),
            };
            context.worktrees = Some(Arc::new(of_task) as SharedWorktrees);
        }
        Ok(placed.map(|placed| Arc::clone(&placed.confinement)))
    }
}

/// Returns the commits of the tasks that a task needs, in order.
fn tips(view: &dyn View, key: Key) -> ViewResult<Vec<Tip>> {
    let mut tips = Vec::new();
    for on in view.dependencies(key)? {
        tips.extend(commit_of(view, on)?);
    }
    Ok(tips)
}

/// Returns the commit of a task that is done, if it has a worktree.
fn commit_of(view: &dyn View, key: Key) -> ViewResult<Option<Tip>> {
    let Some(record) = view.task(key)? else { return Ok(None) };
    if record.spec.worktree.is_none() {
        return Ok(None);
    }
    let calls = view.calls(key)?;
    let call = calls.iter().find(|call| call.spec.tool_name == WORKTREE_TOOL);
    let result = call.and_then(|call| call.body.result.as_ref());
    let commit = result.and_then(|result| result.get("commit")).and_then(Value::as_str);
    Ok(commit.map(|commit| Tip { task: record.id.to_string(), commit: commit.to_owned() }))
}

/// Returns the parts of the repository that programs in a worktree may write: its private directory, the objects, and the directories
/// with its reference and the log of it.
fn writable(tree: &Tree) -> GitResult<Vec<PathBuf>> {
    let reference = format!("refs/heads/{}", tree.branch);
    let above = Path::new(&reference).parent().unwrap_or(Path::new("refs/heads")).to_owned();
    let places = [
        tree.git_dir.clone(),
        tree.common.join("objects"),
        tree.common.join(&above),
        tree.common.join("logs").join(&above),
    ];
    for place in &places {
        // Only existing paths can be opened.
        fs::create_dir_all(place)
            .map_err(|error| GitError::new(format!("failed to create `{}`: {error}", place.display())))?;
    }
    Ok(places.to_vec())
}

impl From<GitError> for ToolError {
    fn from(error: GitError) -> Self {
        Self::failed(error.message).with_class(error.class)
    }
}
