//! The project of an MCP server, which may start where there is none.

use std::sync::Arc;

use taskpawl::store::{self, AllowedRoots, PlacementError, StorePlacement};
use taskpawl_mcp::AbsentProject;

use crate::app::App;
use crate::context::made_text;
use crate::error::CliError;
use crate::output::Output;
use crate::text::quoted;

/// The project of a server.
#[derive(Debug)]
pub(super) enum McpProject {
    /// It exists, or the store was named.
    Existing,
    /// The first tool that writes makes it.
    Planned(Planned),
    /// There is none, and none is made without being asked for.
    Missing(Missing),
    /// There is none, and the tools need none.
    Unneeded,
}

/// Returns the project for a server in this directory.
pub(super) fn of(app: &App, is_needed: bool, reads_only: bool) -> Result<McpProject, CliError> {
    let Err(CliError::Placement(missing @ PlacementError::NoProject { .. })) = app.place() else {
        return Ok(McpProject::Existing);
    };
    if !is_needed {
        return Ok(McpProject::Unneeded);
    }
    if reads_only {
        return Ok(McpProject::Missing(Missing { environment: app.placement(), reason: missing }));
    }
    match app.plan_project(AllowedRoots::GitRoots) {
        Ok(place) => Ok(McpProject::Planned(Planned { place: place.clone(), out: app.out() })),
        Err(CliError::Placement(reason @ PlacementError::NotMade { .. })) => {
            Ok(McpProject::Missing(Missing { environment: app.placement(), reason }))
        }
        Err(error) => Err(error),
    }
}

impl McpProject {
    /// Returns whether the project has a place for its store.
    pub(super) fn is_placed(&self) -> bool {
        matches!(self, Self::Existing | Self::Planned(_))
    }

    /// Returns the absent project for the server.
    pub(super) fn absent(self) -> Option<Arc<dyn AbsentProject>> {
        match self {
            Self::Planned(planned) => Some(Arc::new(planned)),
            Self::Missing(missing) => Some(Arc::new(missing)),
            Self::Existing | Self::Unneeded => None,
        }
    }
}

/// A project that the first tool that writes makes.
#[derive(Debug)]
pub(super) struct Planned {
    place: StorePlacement,
    out: Output,
}

impl AbsentProject for Planned {
    fn before_reading(&self) -> Result<(), String> {
        self.place.check_unchanged().map_err(|error| with_restart(&error))
    }

    fn before_writing(&self) -> Result<Option<String>, String> {
        let made = self.place.record().map_err(|error| with_restart(&error))?;
        let text = made.map(|kind| made_text(&self.place, kind));
        if let Some(text) = &text {
            self.out.remark(text);
        }
        Ok(text)
    }
}

fn with_restart(error: &PlacementError) -> String {
    format!("{error}; ask the person to restart this MCP server")
}

/// A directory that becomes a project only if a person asks for it.
#[derive(Debug)]
pub(super) struct Missing {
    environment: store::Environment,
    reason: PlacementError,
}

impl AbsentProject for Missing {
    fn before_reading(&self) -> Result<(), String> {
        let Ok(place) = store::locate(&self.environment) else { return Ok(()) };
        let project = quoted(&place.root.display().to_string());
        Err(format!("{project} is a taskpawl project now; ask the person to restart this MCP server"))
    }

    fn before_writing(&self) -> Result<Option<String>, String> {
        self.before_reading()?;
        Err(format!(
            "{}; ask the person to run `taskpawl init` in the directory of the project and to restart this MCP server",
            self.reason
        ))
    }
}
