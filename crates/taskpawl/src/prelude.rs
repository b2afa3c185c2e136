//! The names that most programs need which embed taskpawl.

pub use crate::model::command::NewTask;
pub use crate::model::value::TaskId;
pub use crate::tools::{Ask, CallContext, ToolError};
pub use crate::{
    Approver, Observer, Outcome, Plan, PlansOfCall, Run, RunEvent, RunOptions, RunSummary, Taskpawl,
};
#[cfg(feature = "macros")]
pub use crate::{tool, typed::FnTool};
