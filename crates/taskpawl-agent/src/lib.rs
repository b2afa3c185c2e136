//! Coding agents as a tool of plans, over the Agent Client Protocol (ACP).
//!
//! [`AgentTool`] starts the program of an agent in the sandbox of its call, gives it a prompt, and answers its requests until its
//! turn ends. [`AgentHost`] tells it which agents there are, and decides on the actions that an agent asks about.
//!
//! The crate has a client of its own. `agent-client-protocol` 5.2 and `agent-client-protocol-schema` 1.20 switch on the feature
//! `preserve_order` of `serde_json` for the whole program, and with it the order of keys in everything that is hashed; they also
//! depend on `anyhow`, which the workspace bans. The messages that a client of one session needs are few, and are read leniently:
//! agents send fields that no version of the protocol has.

mod action;
mod answer;
mod connection;
mod conversation;
mod definition;
mod files;
mod plan_server;
mod probe;
mod record;
mod refused;
mod tool;
mod transcript;
mod usage;
mod words;

pub use action::Action;
pub use definition::{AgentDefinition, AgentHost, Preset};
pub use probe::AgentProbe;
pub use tool::AgentTool;
