//! Set-up of coding agents: the entry for taskpawl's MCP server, and instructions for the work with the plan.
//!
//! Every change edits the text of a file, keeps everything else, and can be undone byte for byte.

mod block;
mod diff;
mod fences;
mod files;
#[cfg(test)]
mod fuzz;
mod json;
mod known;
mod links;
#[cfg(test)]
mod tests;
mod trouble;

pub(crate) use files::{Change, Changes};
pub(crate) use known::{Agent, Wish};
pub(crate) use trouble::Trouble;
