//! The location of models' to-do lists, for the tools of plans and for commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskpawl::tools::Tool;
use taskpawl::{Taskpawl, store};
use taskpawl_todo::{Dialect, Lists, ListsBuilder, ScopeRule};

use crate::context::Context;
use crate::error::CliError;

/// Returns a builder for the lists of this project. `TASKPAWL_SCOPE` fixes the scope of all calls; without it, a call
/// may name its scope.
pub(crate) fn builder(context: &Context) -> Result<ListsBuilder, CliError> {
    builder_for(context, None)
}

/// Does the same as [`builder`], with queues below `root` if it is given.
pub(crate) fn builder_for(context: &Context, root: Option<&Path>) -> Result<ListsBuilder, CliError> {
    let directory = &context.environment().directory;
    let base = context.place().map_or(directory, |place| &place.root);
    let rule = match context.environment().text("TASKPAWL_SCOPE") {
        Some(scope) => ScopeRule::fixed(scope),
        None => ScopeRule::argument_or_own(),
    };
    let builder = Lists::builder().base(base).scope(rule).source(context.source()?);
    Ok(match queue_root(context, root) {
        Some(root) => builder.queue_root(root),
        None => builder,
    })
}

/// Returns the directory of queues: `root`, or else `files/` in the state directory of the project. Without a project
/// it is `files/` in that of the user.
pub(crate) fn queue_root(context: &Context, root: Option<&Path>) -> Option<PathBuf> {
    if let Some(root) = root {
        return Some(context.environment().directory.join(root));
    }
    let state = store::state_directory(&context.placement()).ok()?;
    let id = context.place().ok().and_then(|place| place.id.clone());
    Some(id.map_or(state.clone(), |id| state.join(id)).join("files"))
}

/// Mirrors checklists into the events of a store, so that other processes can show them.
pub(crate) fn mirror(lists: &Lists, plans: &Taskpawl) {
    lists.mirror_to(plans.manager(), &plans.engine().project().files);
}

/// Returns the tools of every dialect, the checklist under both of its names. A tool of the user's configuration
/// replaces one of the same name.
pub(crate) fn tools(context: &Context) -> Result<Vec<Arc<dyn Tool>>, CliError> {
    let (own, lists) = (context.config()?.own_tools(), context.lists()?);
    let all = Dialect::ALL.into_iter().chain([Dialect::TodoList]);
    let mut tools: Vec<_> = all.flat_map(|dialect| lists.tools(dialect)).collect();
    tools.retain(|tool| !own.iter().any(|own| own.name == tool.spec().name));
    Ok(tools)
}
