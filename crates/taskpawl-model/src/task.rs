//! Tasks and their calls: specification, status, record, wire form and events.

pub(crate) mod actor;
pub(crate) mod asked;
pub(crate) mod checklist;
pub(crate) mod event;
pub(crate) mod fault;
pub(crate) mod gate;
pub(crate) mod interpreter;
pub(crate) mod key_space;
pub(crate) mod limits;
pub(crate) mod policy_hook;
pub(crate) mod question;
pub(crate) mod record;
pub(crate) mod spec;
pub(crate) mod status;
pub(crate) mod trace;
pub(crate) mod trust;
pub(crate) mod wait;
pub(crate) mod wire;
pub(crate) mod work_hash;

pub use actor::{Actor, ActorKind};
pub use asked::{Artifact, Asked, Rework, ToolAnswer, ToolQuestion};
pub use checklist::{ChecklistItem, ChecklistStatus};
pub use event::{
    Change, ChecklistChanged, Event, EventKind, PlanApplied, SignalEvent, SignalStep, TaskCreated,
};
pub use fault::{ERROR_CLASSES, ValueFault, is_identifier, unknown_failure};
pub use gate::{DependencyCounts, Entry, Gate, GateState, Outcome, SubtaskCounts};
pub use key_space::{CallIdentity, KeyRequest, KeySpace};
pub use limits::{MAX_DEPTH, is_too_deep};
pub use policy_hook::{PolicyDecision, PolicyHook, ProposedCall};
pub use question::{ApprovalRequest, ApprovalsAhead, AskedCall, AskedResult, LaterApproval, LaterReason};
pub(crate) use record::UNKNOWN_END;
pub use record::{
    Cached, CallBody, CallError, CallRecord, Grant, Granted, Item, Node, Note, PlanNotify, PlanRecord,
    Progress, RevokedAttempt, RunRecord, StatusKind, StopRequest, TaskBody, TaskRecord, Work,
};
pub use spec::{
    AGENT_TOOL, ARTIFACTS_CALL, ARTIFACTS_TOOL, Approval, ApprovalWord, Cache, CallPart, CallSpec, ForEach,
    Hooks, LOCAL_LABEL, Links, MERGE_TOOL, Mode, NewCall, Origin, PlanAccess, Priority, Question,
    RETURN_CALL, RETURN_TOOL, Repeat, Retry, SESSION_RESOURCE, SandboxRequest, TaskSpec, Trigger,
    WORKER_RESOURCE, WORKTREE_CALL, WORKTREE_TOOL, Worktree,
};
pub use status::{
    BlockedReason, CallStatus, Cause, Claim, ClaimEnd, FailureClass, Status, TaskStatus, TransitionError,
    allowed_by_hand, check_transition,
};
pub use trace::{SpanId, StartInRun, TraceId, run_span_id, task_span_id, trace_id};
pub use trust::{Origins, UntrustedValue, ValueOrigins};
pub use wait::{
    MAX_SIGNAL_DATA, MAX_SIGNALS, SignalRecord, WAIT_TOOL, WaitRequest, WaitingFor, check_signal_name,
};
pub use wire::{Metadata, Task, TaskParts, ToolCall};
pub use work_hash::ShortHash;
