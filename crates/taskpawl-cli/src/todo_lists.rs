//! Where the to-do lists of models are kept, for the tools of plans and for commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskpawl::tools::Tool;
use taskpawl::{Taskpawl, store};
use taskpawl_todo::{Dialect, Lists, ListsBuilder, ScopeRule};

use crate::app::App;
use crate::error::CliError;

/// Returns a builder for the lists of this project. `TASKPAWL_SCOPE` says whose lists calls are about; without it an argument may.
pub(crate) fn builder(app: &App) -> Result<ListsBuilder, CliError> {
    builder_for(app, None)
}

/// As [`builder`], with queues beneath `root` where it is given.
pub(crate) fn builder_for(app: &App, root: Option<&Path>) -> Result<ListsBuilder, CliError> {
    let directory = &app.environment().directory;
    let base = app.place().map_or(directory, |place| &place.root);
    let rule = match app.environment().text("TASKPAWL_SCOPE") {
        Some(scope) => ScopeRule::fixed(scope),
        None => ScopeRule::argument_or_own(),
    };
    let builder = Lists::builder().base(base).scope(rule).source(app.source()?);
    Ok(match queue_root(app, root) {
        Some(root) => builder.queue_root(root),
        None => builder,
    })
}

/// Returns where queues are: in `root`, or without one in `files/` in the state directory: that of the project, or that of the user
/// where this is none.
pub(crate) fn queue_root(app: &App, root: Option<&Path>) -> Option<PathBuf> {
    if let Some(root) = root {
        return Some(app.environment().directory.join(root));
    }
    let state = store::state_directory(&app.placement()).ok()?;
    let id = app.place().ok().and_then(|place| place.id.clone());
    Some(id.map_or(state.clone(), |id| state.join(id)).join("files"))
}

/// Tells others of checklists through the events of a store.
pub(crate) fn mirror(lists: &Lists, plans: &Taskpawl) {
    lists.mirror_to(plans.manager(), &plans.engine().project().files);
}

/// Returns the tools of every dialect, the checklist under both its names, but for those under whose names the user has tools of
/// their own.
pub(crate) fn tools(app: &App) -> Result<Vec<Arc<dyn Tool>>, CliError> {
    let (own, lists) = (app.config()?.own_tools(), app.lists()?);
    let all = Dialect::ALL.into_iter().chain([Dialect::TodoList]);
    let mut tools: Vec<_> = all.flat_map(|dialect| lists.tools(dialect)).collect();
    tools.retain(|tool| !own.iter().any(|own| own.name == tool.spec().name));
    Ok(tools)
}
