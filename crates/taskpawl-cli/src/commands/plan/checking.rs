//! The store and the tools that plan files are checked against.

use taskpawl::Taskpawl;
use taskpawl::model::advice::{Advice, Hint};
use taskpawl::store::{Location, PlacementError};

use crate::app::App;
use crate::commands::calls;
use crate::commands::sandbox::SandboxArgs;
use crate::error::CliError;

/// Returns the plans to check against. Without a project the store is empty.
pub(super) fn checker(app: &App) -> Result<Taskpawl, CliError> {
    if has_store(app)? {
        return app.onlooker(&SandboxArgs::default());
    }
    let builder = app.builder_at(Location::Memory, &app.environment().directory)?;
    Ok(app.held(builder, &SandboxArgs::default())?.open()?)
}

/// Returns the hint for a tool that a plan names and that is not here; `None` if it may come with a server.
pub(super) fn explain_tool(app: &App, name: &str) -> Option<Hint> {
    if calls::may_come(app, name) {
        return None;
    }
    let tools = Advice::ListTools { connect: false };
    let meant = app.toolbox().ok().and_then(|toolbox| toolbox.meant(name).map(str::to_owned));
    Some(match meant {
        Some(near) => Hint::new("did you mean ").data(near).text("?"),
        None => {
            Hint::from(tools).text(" shows all; name it in `tools` of the plan if another program brings it")
        }
    })
}

/// Returns whether there is a project with a store.
pub(super) fn has_store(app: &App) -> Result<bool, CliError> {
    match app.place() {
        Ok(_) => Ok(true),
        Err(CliError::Placement(PlacementError::NoProject { .. })) => Ok(false),
        // Opening the store reports the actual problem, such as a copied project.
        Err(_) => app.reader().map(|_| true),
    }
}
