//! One module for each command, and what several of them share.

pub(crate) mod add_dependency;
pub(crate) mod add_subtask;
pub(crate) mod add_tool_call;
pub(crate) mod apply;
pub(crate) mod block;
pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod done;
pub(crate) mod fail;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod note;
pub(crate) mod placement;
pub(crate) mod ready;
pub(crate) mod release;
pub(crate) mod remove_dependency;
pub(crate) mod renew;
pub(crate) mod reopen;
pub(crate) mod retry;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod skip;
pub(crate) mod unblock;
pub(crate) mod update;

mod fields;
mod parse;
mod print;
mod select;
mod tools;
