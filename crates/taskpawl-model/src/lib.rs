//! The schema and the rules of taskpawl, as pure functions: no I/O, no clock, no randomness, no threads.

mod command;
mod decide;
mod event;
mod gate;
mod id;
mod limits;
mod period;
mod plan;
mod record;
mod refusal;
mod spec;
mod status;
mod view;

pub use command::{
    Answer, Apply, ApplyReport, CallEnd, Command, Context, DecideError, Decision, NewTask, Report, Request,
    StartedCall, TaskRef,
};
pub use decide::decide;
pub use event::{Change, Event, EventKind};
pub use gate::{DependencyCounts, Entry, Gate, GateState, Outcome, SubtaskCounts};
pub use id::{CallId, IdError, Key, MAX_ID_BYTES, RunId, TaskId, check_id};
pub use limits::undecided;
pub use period::{Period, PeriodError};
pub use plan::{Budget, Param, ParamType, Plan, PlanTask, Position};
pub use record::{
    CallBody, CallError, CallRecord, Node, Note, Phase, PlanRecord, RunRecord, TaskBody, TaskRecord, Work,
};
pub use refusal::Refusal;
pub use spec::{
    Approval, ApprovalWord, Cache, CallSpec, ForEach, Links, Map, Mode, NewCall, Origin, PlanAccess,
    Priority, Question, Repeat, Retry, SandboxRequest, TaskSpec, Timestamp, Trigger, format_time,
};
pub use status::{
    BlockedReason, CallStatus, Cause, Claim, Status, TaskState, TransitionError, allowed_by_hand,
    check_transition,
};
pub use view::{CallChange, Changes, EdgeChange, NewEvent, Query, TaskChange, View, ViewError, ViewResult};
