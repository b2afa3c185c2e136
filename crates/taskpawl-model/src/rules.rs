//! The rules: the changes that each command makes.

pub(crate) mod authorization;
pub(crate) mod cycle;
pub(crate) mod decide;
pub(crate) mod decision;
pub(crate) mod draft;
pub(crate) mod failure;
pub(crate) mod flow;
pub(crate) mod graph;
pub(crate) mod means;
pub(crate) mod offer;
pub(crate) mod order;
pub(crate) mod resolve;
pub(crate) mod scope;
pub(crate) mod settle;

pub use authorization::{asks_by_itself, authorize_planned};
pub use decide::{
    approval_request, approvals_ahead, bound_records, calls_of_update, complete_part, decide, preview,
};
pub use decision::{DecideError, Decision};
pub use flow::MAX_ITEMS;
pub use graph::{Graph, Reach, rebuild_nodes};
pub use means::{AbsentTools, Means};
pub use offer::{all_offered, asker, command as command_of_advice, offered};
pub use resolve::resolve;
pub use scope::{resolve_among, select};
