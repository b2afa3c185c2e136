//! The tool with an agent that does what its scenario says.

mod conversation;
mod faults;
mod support;
