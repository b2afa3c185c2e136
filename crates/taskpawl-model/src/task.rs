//! Tasks and their calls: specification, status, record and wire form.

pub(crate) mod actor;
pub(crate) mod checklist;
pub(crate) mod durations;
pub(crate) mod failure;
pub(crate) mod fault;
pub(crate) mod gate;
pub(crate) mod key_space;
pub(crate) mod question;
pub(crate) mod record;
pub(crate) mod spec;
pub(crate) mod status;
pub(crate) mod trust;
pub(crate) mod wire;

pub use actor::{Actor, ActorKind};
pub use checklist::{ChecklistItem, ChecklistStatus};
pub use durations::{DurationSource, Durations};
pub use fault::{ERROR_CLASSES, ValueFault, unknown_failure};
pub use gate::{DependencyCounts, Entry, Gate, GateState, Outcome, SubtaskCounts};
pub use key_space::{CallIdentity, KeyRequest, KeySpace};
pub use question::{ApprovalRequest, AskedCall};
pub use record::{
    Cached, CallBody, CallError, CallRecord, Granted, Item, Node, Note, PlanNotify, PlanRecord, Progress,
    RevokedAttempt, RunRecord, StatusKind, TaskBody, TaskRecord, Work,
};
pub use spec::{
    Approval, ApprovalWord, Cache, CallSpec, ForEach, Links, Map, Mode, NewCall, Origin, PlanAccess,
    Priority, Question, Repeat, Retry, SandboxRequest, TaskSpec, Timestamp, Trigger, format_time,
};
pub use status::{
    BlockedReason, CallStatus, Cause, Claim, ClaimEnd, FailureClass, Status, TaskStatus, TransitionError,
    allowed_by_hand, check_transition,
};
pub use trust::{Origins, UntrustedValue, ValueOrigins};
pub use wire::{Metadata, Task, TaskParts, ToolCall, read_task};
