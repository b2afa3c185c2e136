//! The schema and the rules of taskpawl, as pure functions.
//!
//! Nothing here does I/O, reads a clock, draws random numbers or starts a thread. Times and ids come in as arguments,
//! so that the same inputs always give the same plan, schedule and messages.

mod actor;
mod advice;
mod allocator;
pub mod bounded;
mod byte_size;
mod checklist;
mod command;
mod command_line;
mod cycle;
mod decide;
mod draft;
mod durations;
mod event;
mod explain;
pub mod expr;
mod failure;
mod fault;
mod flow;
mod forecast;
mod gate;
mod graph;
mod hint;
mod id;
mod import;
mod key_map;
mod key_space;
mod limits;
mod means;
mod offer;
pub mod paths;
mod period;
mod plan;
mod policy_hook;
mod question;
mod ranks;
mod read;
mod record;
pub mod recovery;
mod refusal;
pub mod run_loop;
mod run_view;
pub mod schedule;
mod scope;
mod secret;
mod settle;
mod shared;
pub mod shell;
mod simulated_schedule;
mod spec;
mod status;
mod time_text;
mod trust;
mod undo;
mod usage;
mod view;
mod waiting_set;
mod wire;

pub use actor::{Actor, ActorKind};
pub use advice::{Advice, Advised};
pub use byte_size::{ByteSize, ByteSizeError};
pub use checklist::{ChecklistItem, ChecklistStatus};
pub use command::{
    Amount, Answer, Apply, ApplyReport, CacheInputs, CallEnd, CallMutation, Command, Context, DecideError,
    Decision, Grant, IdempotentRequest, Inquiry, Needs, NewTask, Paused, PlanMutation, Prune, Report,
    Request, RequestRecord, ResolvedWrites, Round, RunRules, RunStart, StartedCall, TaskRef, Undone,
};
pub use command_line::CommandLine;
pub use decide::{approval_request, asks_by_itself, complete_part, decide, preview};
pub use durations::{DurationSource, Durations};
pub use event::{Change, ChecklistChanged, Event, EventKind, PlanApplied, TaskCreated};
pub use explain::{
    Explanation, Facts, Link, ReadyList, ReadyPart, ReadyTask, Reason, Role, UnrunnableTask, explain,
    explain_ready, ready_part, unrunnable_task,
};
pub use fault::{ERROR_CLASSES, ValueFault, unknown_failure};
pub use flow::{BoundCall, MAX_ITEMS, bound_value, bound_work};
pub use forecast::{
    Approach, Assumed, CallAuthorization, CriticalPath, Effects, Forecast, ForecastApproval, ForecastOptions,
    Foreseen, Hypothesis, HypothesisError, NearCritical, OpenQuestion, PathTask, Planned, UnfinishedTask,
    Wave, call_authorizations, critical_path, forecast,
};
pub use gate::{DependencyCounts, Entry, Gate, GateState, Outcome, SubtaskCounts};
pub use graph::{Graph, Reach, rebuild_nodes};
pub use hint::{Hint, HintOption, HintPart, HintWords};
pub use id::{CallId, IdError, Key, MAX_ID_BYTES, RunId, TaskId, check_id};
pub use import::{DivergingField, Import, ImportMode, ImportReport, PreservedField};
pub use key_map::KeyMap;
pub use key_space::{CallIdentity, KeyRequest, KeySpace};
pub use limits::{MAX_DEPTH, is_too_deep};
pub use means::{AbsentTools, Means};
pub use offer::{all_offered, asker, command as command_of_advice, offered};
pub use period::{Period, PeriodError};
pub use plan::{
    Budget, Param, ParamType, Plan, PlanError, PlanErrors, PlanFields, PlanProblem, PlanSource, PlanTask,
    Position, Reliance, call_from_json, change_spec, expand_plan, is_own_field, parse_call, parse_plan,
    parse_task, plan_fields, plan_from_json, plan_value, read_plan, read_plan_up_to, task_from_json,
    yaml_value,
};
pub use policy_hook::{PolicyDecision, PolicyHook, ProposedCall};
pub use question::{ApprovalRequest, AskedCall};
pub use read::{blocked_reason, ending, resolve, why_interrupted};
pub use record::{
    Cached, CallBody, CallError, CallRecord, Granted, Item, Node, Note, PlanNotify, PlanRecord, Progress,
    RevokedAttempt, RunRecord, StatusKind, TaskBody, TaskRecord, Work,
};
pub use refusal::{ChangesSince, Conflict, ConflictingChange, HeldBy, Refusal};
pub use scope::{Selector, resolve_among, select};
pub use secret::{SecretFault, SecretPiece, is_secret_name, mentions_secret, secret_names, secret_pieces};
pub use shared::{Shared, SharedText};
pub use simulated_schedule::Turn;
pub use spec::{
    Approval, ApprovalWord, Cache, CallSpec, ForEach, Links, Map, Mode, NewCall, Origin, PlanAccess,
    Priority, Question, Repeat, Retry, SandboxRequest, TaskSpec, Timestamp, Trigger, format_time,
};
pub use status::{
    BlockedReason, CallStatus, Cause, Claim, ClaimEnd, FailureClass, Status, TaskStatus, TransitionError,
    allowed_by_hand, check_transition,
};
pub use taskpawl_text::{escaped, is_deceptive, revealed};
pub use trust::{Origins, UntrustedValue, ValueOrigins};
pub use undo::{DeletedTask, TaskSnapshot, UndoSnapshot, Undoable};
pub use usage::{add_usage, cost};
pub use view::{
    CallChange, Changes, EdgeChange, EventQuery, FindTasks, NewEvent, Query, ReadGraph, ReadHistory,
    ReadRuns, ReadTasks, SearchText, TaskChange, View, ViewError, ViewResult,
};
pub use wire::{Metadata, Task, TaskParts, ToolCall, read_task};
