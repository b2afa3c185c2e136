//! The schema and the rules of taskpawl, as pure functions: no I/O, no clock, no randomness, no threads.

mod id;
mod period;
mod plan;
mod spec;
mod status;

pub use id::{CallId, IdError, Key, MAX_ID_BYTES, RunId, TaskId, check_id};
pub use period::{Period, PeriodError};
pub use plan::{Budget, Param, ParamType, Plan, PlanTask, Position};
pub use spec::{
    Approval, ApprovalWord, Cache, CallSpec, ForEach, Links, Map, Mode, NewCall, Origin, PlanAccess, Priority,
    Question, Repeat, Retry, SandboxRequest, TaskSpec, Timestamp, Trigger,
};
pub use status::{
    BlockedReason, CallStatus, Cause, Claim, Status, TaskState, TransitionError, allowed_by_hand, check_transition,
};
