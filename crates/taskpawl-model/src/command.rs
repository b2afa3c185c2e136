//! Commands that can be given to a plan, their answers and refusals.

pub(crate) mod answer;
pub(crate) mod context;
pub(crate) mod import;
pub(crate) mod kinds;
pub(crate) mod mutation;
pub(crate) mod refusal;
pub(crate) mod round;
pub(crate) mod table;

pub use answer::{Answer, ApplyReport, KeptStatus, Undone};
pub use context::{Context, IdempotentRequest, Redact, Request, RequestRecord};
pub use import::{
    BoundRecord, DivergingField, Import, ImportMode, ImportReport, ImportedRecord, OlderRecord,
    PreservedField, SourceRecord,
};
pub use kinds::{
    Apply, CallMutation, Command, NewSignal, NewTask, OnChanged, PlanMutation, Prune, Restart, TaskRef,
};
pub use mutation::MutationRequest;
pub use refusal::{ChangesSince, Conflict, ConflictingChange, HeldBy, Refusal, Remedy};
pub use round::{
    Amount, CacheInputs, CallEnd, Grant, Inquiry, Needs, Paused, Report, ResolvedWrites, Round, RunRules,
    RunStart, StartedCall,
};
pub use table::{CommandTraits, GivenBy};
