//! Commands that can be given to a plan, their answers and refusals, and advice.

pub(crate) mod advice;
pub(crate) mod answer;
pub(crate) mod command_line;
pub(crate) mod context;
pub(crate) mod hint;
pub(crate) mod import;
pub(crate) mod kinds;
pub(crate) mod offer;
pub(crate) mod policy_hook;
pub(crate) mod refusal;
pub(crate) mod round;
pub(crate) mod scope;

pub use advice::{Advice, Advised};
pub use answer::{Answer, ApplyReport, DecideError, Decision, Undone};
pub use command_line::CommandLine;
pub use context::{Context, IdempotentRequest, Request, RequestRecord};
pub use hint::{Hint, HintOption, HintPart, HintWords};
pub use import::{DivergingField, Import, ImportMode, ImportReport, PreservedField};
pub use kinds::{Apply, CallMutation, Command, NewTask, PlanMutation, Prune, TaskRef};
pub use offer::{all_offered, asker, command as command_of_advice, offered};
pub use policy_hook::{PolicyDecision, PolicyHook, ProposedCall};
pub use refusal::{ChangesSince, Conflict, ConflictingChange, HeldBy, Refusal};
pub(crate) use round::UNKNOWN_END;
pub use round::{
    Amount, CacheInputs, CallEnd, Grant, Inquiry, Needs, Paused, Report, ResolvedWrites, Round, RunRules,
    RunStart, StartedCall,
};
pub use scope::{Selector, resolve_among, select};
