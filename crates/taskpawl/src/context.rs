//! Access of tools to the plans of their host.

use taskpawl_tools::{CallContext, ToolError};

use crate::facade::Taskpawl;

/// Access of a tool to the handle that runs it.
pub trait PlansOfCall {
    /// Returns the handle that runs this call: it reads the store, and adds tasks that the same run continues with.
    ///
    /// Its commands have the actor and the origin that the [`Builder`](crate::Builder) was given, and not those of the call. Tools of runs
    /// that are started with it have no such handle.
    ///
    /// # Errors
    /// The call does not belong to a run of a handle.
    fn plans(&self) -> Result<&Taskpawl, ToolError>;
}

impl PlansOfCall for CallContext {
    fn plans(&self) -> Result<&Taskpawl, ToolError> {
        self.get::<Taskpawl>()
    }
}
