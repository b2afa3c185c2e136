//! The project and the store of a command, and projects that are made without being asked for.

use std::path::Path;

use taskpawl::store::{self, AllowedRoots, PlacementError, PlanSocket, RootKind, StoreError, StorePlacement};
use taskpawl::tools::inherited;

use super::{Context, get_or_try_init};
use crate::error::CliError;
use crate::text::quoted;

impl Context {
    /// Returns the flags and variables that decide the location of the store.
    pub(crate) fn placement(&self) -> store::Environment {
        store::Environment {
            home: self.environment.path("HOME"),
            xdg_state_home: self.environment.path("XDG_STATE_HOME"),
            directory: self.environment.directory.clone(),
            store_flag: self.global.store.clone(),
            store_variable: self.environment.text("TASKPAWL_STORE"),
        }
    }

    /// Returns the location of the store, with its project. Inside a call with plan access, this is the plan of the
    /// call.
    pub(crate) fn place(&self) -> Result<&StorePlacement, CliError> {
        get_or_try_init(&self.place, || match self.environment.plan_descriptor() {
            Some(descriptor) if self.is_within_call() => {
                Ok(StorePlacement::of_call(plan_socket(&descriptor)?, &self.environment.directory))
            }
            _ => Ok(store::locate(&self.placement())?),
        })
    }

    /// Lets this command make the project where there is none. Its first write makes it, so that a command that fails
    /// before, such as one with an invalid plan file, leaves nothing behind.
    ///
    /// # Errors
    /// There is no project, and the directory becomes one only by `init`.
    pub(crate) fn plan_project(&self, allowed: AllowedRoots) -> Result<&StorePlacement, CliError> {
        if let Err(CliError::Placement(PlacementError::NoProject { .. })) = self.place() {
            let planned = store::plan_project(&self.placement(), &self.source()?.new_id(), allowed)?;
            return Ok(self.place.get_or_init(|| planned));
        }
        self.place()
    }

    /// Makes a planned project and says so, or records the current directory of a project that was moved.
    pub(crate) fn record_place(&self) -> Result<(), CliError> {
        let place = self.place()?;
        if let Some(kind) = place.record()? {
            self.out().remark(&made_text(place, kind));
        }
        Ok(())
    }

    /// Returns whether commands use the plan of the call that this process belongs to. An explicit `--store`
    /// overrides that.
    pub(crate) fn is_within_call(&self) -> bool {
        self.environment.plan_descriptor().is_some() && self.global.store.is_none()
    }

    /// Returns the root of the project, or the current directory without a project.
    pub(crate) fn root(&self) -> &Path {
        self.place().map_or(self.environment.directory.as_path(), |place| place.root.as_path())
    }
}

/// Returns the remark about a project that was made without being asked for.
pub(crate) fn made_text(place: &StorePlacement, kind: RootKind) -> String {
    let was_here = place.location.path().is_some_and(Path::exists);
    let again = if was_here { "; the tasks of an earlier project are here again" } else { "" };
    format!("made {} a taskpawl project: it is {kind}{again}", quoted(&place.root.display().to_string()))
}

/// Opens the socket to the plan of the call that this process belongs to: the inherited descriptor, or that of the relay at a path.
fn plan_socket(descriptor: &str) -> Result<PlanSocket, CliError> {
    if descriptor.starts_with('/') {
        let problem = |error| format!("no relay to the plan of the call is at `{descriptor}`: {error}");
        let found = PlanSocket::through(Path::new(descriptor)).map_err(problem);
        return Ok(found.map_err(|problem| StoreError::OutOfReach { problem })?);
    }
    let number =
        descriptor.parse().map_err(|_| format!("`TASKPAWL_FD` is `{descriptor}`, which is no number"));
    let found = number.and_then(|number| {
        inherited(number).map_err(|_| format!("`TASKPAWL_FD` says {number}, and no such descriptor is open"))
    });
    Ok(found.map(PlanSocket::from).map_err(|problem| StoreError::OutOfReach { problem })?)
}
