//! Explains why a task is not running, down to the first cause and the commands that resolve it; lists ready tasks in
//! order.

mod explanation;
mod ready;
mod reason;
mod search;
mod state;

pub use explanation::{Explanation, Facts, Link, explain};
pub use ready::{
    ReadyList, ReadyPart, ReadyTask, UnrunnableTask, explain_ready, ready_part, unrunnable_task,
};
pub use reason::{Reason, Role};
pub use state::is_in_scope;

pub(crate) use explanation::first_cause;
pub(crate) use state::block_text;
