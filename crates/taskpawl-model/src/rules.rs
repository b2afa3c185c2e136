//! The rules: the changes that each command makes.

pub(crate) mod cycle;
pub(crate) mod decide;
pub(crate) mod draft;
pub(crate) mod flow;
pub(crate) mod means;
pub(crate) mod read;
pub(crate) mod settle;

pub use decide::{approval_request, asks_by_itself, complete_part, decide, preview};
pub use flow::{BoundCall, MAX_ITEMS, bound_value, bound_work};
pub use means::{AbsentTools, Means};
pub use read::{blocked_reason, ending, resolve, why_interrupted};
