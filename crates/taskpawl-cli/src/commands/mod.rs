//! One module for each command, and what several of them share.

pub(crate) mod list;
pub(crate) mod placement;
pub(crate) mod show;

mod parse;
mod print;
