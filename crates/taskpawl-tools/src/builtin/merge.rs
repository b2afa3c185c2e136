//! The tool `merge`: the work of tasks with worktrees, merged into a branch.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use taskpawl_text::plain_line;

use super::worktree::{REPEATABLE, blocking, worktrees};
use crate::ask::Ask;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::tool::{Tool, ToolSpec};
use crate::worktrees::{CheckTree, JoinedWork, Joining, MergeConflict, OpenConflict, SharedWorktrees};

/// Files in conflict that a question or a prompt names.
const NAMED_FILES: usize = 20;

/// Characters of a commit in commands for people.
const SHORT_COMMIT: usize = 12;

/// The answer that merges once more.
const RETRY: &str = "retry";

/// The tool that merges the work of tasks into a branch.
#[derive(Debug)]
pub(super) struct Merge(ToolSpec);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MergeArgs {
    of: Vec<String>,
    into: Option<String>,
    check: Option<String>,
    #[serde(default)]
    on_conflict: OnConflict,
}

/// The way to go on with files in conflict.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "OnConflictArg")]
enum OnConflict {
    /// The call fails.
    #[default]
    Fail,
    /// A person names the resolved merge.
    Ask,
    /// An agent resolves it: the named one, or the only one.
    Agent(Option<String>),
}

/// The way as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum OnConflictArg {
    Word(OnConflictWord),
    Named { agent: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum OnConflictWord {
    Fail,
    Ask,
    Agent,
}

impl From<OnConflictArg> for OnConflict {
    fn from(arg: OnConflictArg) -> Self {
        match arg {
            OnConflictArg::Word(OnConflictWord::Fail) => Self::Fail,
            OnConflictArg::Word(OnConflictWord::Ask) => Self::Ask,
            OnConflictArg::Word(OnConflictWord::Agent) => Self::Agent(None),
            OnConflictArg::Named { agent } => Self::Agent(Some(agent)),
        }
    }
}

impl Merge {
    pub(super) fn new() -> Self {
        let named = json!({
            "type": "object",
            "properties": {"agent": {"type": "string", "minLength": 1}},
            "required": ["agent"],
            "additionalProperties": false,
        });
        let schema = json!({
            "type": "object",
            "properties": {
                "of": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "description": "Tasks with a worktree that are done, in the order in which they are merged."},
                "into": {"type": "string", "minLength": 1, "description": "The branch; by default the one that the project is on."},
                "check": {"type": "string", "minLength": 1, "description": "A command that runs in the merged files. The branch moves only if it succeeds."},
                "onConflict": {
                    "anyOf": [{"enum": ["fail", "ask", "agent"]}, named],
                    "description": "With files in conflict the call fails (the default), asks a person for the resolved merge, or gives them to an agent: `agent`, or `{agent: NAME}`. The branch stays as it was until all is merged.",
                },
            },
            "required": ["of"],
            "additionalProperties": false,
        });
        let result = json!({
            "type": "object",
            "properties": {
                "into": {"type": "string"},
                "before": {"type": "string", "description": "The commit of the branch before."},
                "commit": {"type": "string"},
                "tasks": {"type": "object", "description": "The commit of each task."},
                "kept": {"type": "array", "items": {"type": "string"}, "description": "Tasks whose worktrees stay, because of `keep` or of files that are not committed."},
            },
            "required": ["into", "before", "commit", "tasks", "kept"],
        });
        let description = "Merges the work of tasks with a worktree into a branch, all of it or nothing.";
        Self(ToolSpec::new("merge", description, schema).with_result(result).with_hints(REPEATABLE))
    }
}

#[async_trait]
impl Tool for Merge {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let args: MergeArgs = serde_json::from_value(args)?;
        let worktrees = worktrees(&cx)?;
        let joined = join(&cx, &worktrees, &args).await?;
        if let Some(command) = &args.check {
            let checked = check(&cx, &worktrees, &joined, command).await;
            if checked.is_err() {
                // The next start resolves conflicts in another way.
                forget(&worktrees).await?;
            }
            checked?;
        }
        let all = Arc::clone(&worktrees);
        let landed = blocking(move || all.land(&joined)).await?;
        forget(&worktrees).await?;
        Ok(landed)
    }
}

async fn forget(worktrees: &SharedWorktrees) -> Result<(), ToolError> {
    let all = Arc::clone(worktrees);
    blocking(move || all.forget_conflicts()).await
}

/// Joins the work of all tasks. Conflicts are resolved one after the other.
async fn join(
    cx: &CallContext,
    worktrees: &SharedWorktrees,
    args: &MergeArgs,
) -> Result<JoinedWork, ToolError> {
    let mut resolved: Vec<String> = Vec::new();
    loop {
        let (all, of, into, known) =
            (Arc::clone(worktrees), args.of.clone(), args.into.clone(), resolved.clone());
        let conflict = match blocking(move || all.join(&of, into.as_deref(), &known)).await? {
            Joining::Whole(joined) => return Ok(joined),
            Joining::Conflict(conflict) => conflict,
        };
        resolved.truncate(conflict.number);
        match &args.on_conflict {
            OnConflict::Fail => return Err(failed(conflict.message)),
            OnConflict::Ask => {
                let answer = cx.ask(Ask::new(question(&conflict))).await?;
                match answer.trim() {
                    RETRY => resolved.clear(),
                    commit => resolved.push(commit.to_owned()),
                }
            }
            OnConflict::Agent(_) if conflict.problem.is_some() => {
                return Err(failed(conflict.problem.unwrap_or_default()));
            }
            OnConflict::Agent(name) => {
                resolved.push(by_agent(cx, worktrees, &conflict, name.as_deref()).await?);
            }
        }
    }
}

fn failed(message: String) -> ToolError {
    ToolError::failed(message).with_class("conflict")
}

/// Returns the question for a person who resolves a conflict.
fn question(conflict: &MergeConflict) -> String {
    let MergeConflict { into, task, ours, theirs, message, problem, .. } = conflict;
    let short = |commit: &str| commit.chars().take(SHORT_COMMIT).collect::<String>();
    let (ours, theirs) = (short(ours), short(theirs));
    let problem = problem.as_ref().map_or_else(String::new, |problem| format!("{problem}. "));
    format!(
        "{problem}{message}. Branch `{into}` and your files are as they were. Files in conflict: {files}.\n\
         Merge it in a branch of your own, for example:\n  \
         git worktree add -b resolved ../resolved {ours}\n  \
         git -C ../resolved merge {theirs}\n\
         Resolve the files, commit, and answer with the branch or the commit; it has to contain both commits. The answer `{RETRY}` merges `{task}` once more.",
        files = files(conflict),
    )
}

fn files(conflict: &MergeConflict) -> String {
    let shown: Vec<String> =
        conflict.files.iter().take(NAMED_FILES).map(|file| format!("`{}`", plain_line(file))).collect();
    match conflict.files.len().saturating_sub(NAMED_FILES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Gives a conflict to an agent, and returns the commit with its resolution.
async fn by_agent(
    cx: &CallContext,
    worktrees: &SharedWorktrees,
    conflict: &MergeConflict,
    name: Option<&str>,
) -> Result<String, ToolError> {
    let mut args = json!({"prompt": prompt(conflict)});
    if let Some(name) = name {
        args["using"] = name.into();
    }
    let (all, own, context, wanted) = (Arc::clone(worktrees), conflict.clone(), cx.clone(), args.clone());
    let tree = match blocking(move || all.open_conflict(&own, &wanted, &context)).await? {
        OpenConflict::Resolved(commit) => return Ok(commit),
        OpenConflict::Tree(tree) => tree,
    };
    // A call that asks is dropped here. Its next start goes on in the same worktree.
    let ended = worktrees.call_agent(inside(cx, &tree), args).await;
    let (all, own) = (Arc::clone(worktrees), conflict.clone());
    let resolved = blocking(move || {
        let resolved = ended.and_then(|_| all.resolve_conflict(&own));
        if resolved.is_err() {
            all.remove_check_tree(&tree);
        }
        resolved
    })
    .await?;
    // A session of its own for the next conflict.
    cx.heartbeat(&Value::Null).await?;
    Ok(resolved)
}

fn prompt(conflict: &MergeConflict) -> String {
    format!(
        "This directory is a git worktree in the middle of a merge: the work of task `{task}` is merged into branch `{into}`, and some files are in conflict. \
         They have the markers of git (`<<<<<<<`, `=======`, `>>>>>>>`).\n\
         Files in conflict: {files}.\n\
         Resolve all of them, so that the purpose of both sides is kept, and remove all markers. `git log` and `git show` explain both sides: {ours} is the branch, {theirs} the task. \
         Change nothing else, and do not commit.",
        task = plain_line(&conflict.task),
        into = plain_line(&conflict.into),
        files = files(conflict),
        ours = conflict.ours,
        theirs = conflict.theirs,
    )
}

/// Returns the context for work in a worktree of the merge.
fn inside(cx: &CallContext, tree: &CheckTree) -> CallContext {
    let mut inside = cx.clone();
    (inside.root, inside.dir) = (tree.path.clone(), tree.path.clone());
    inside.sandbox = tree.sandbox.sandbox.clone();
    inside.environment = Arc::clone(&tree.sandbox.environment);
    inside.closed = tree.sandbox.closed.clone();
    inside
}

/// Runs the check in a worktree of its own.
async fn check(
    cx: &CallContext,
    worktrees: &SharedWorktrees,
    joined: &JoinedWork,
    command: &str,
) -> Result<(), ToolError> {
    let (own, all, work) = (cx.clone(), Arc::clone(worktrees), joined.clone());
    let tree = blocking(move || all.check_tree(&work, &own)).await?;
    let checked = super::shell::Shell::new().call(inside(cx, &tree), json!({"command": command})).await;
    let all = Arc::clone(worktrees);
    blocking(move || {
        all.remove_check_tree(&tree);
        Ok(())
    })
    .await?;
    checked.map(drop)
}
