//! The MCP server: a plan as tools, resources and prompts.
//!
//! `handler` answers the requests of both eras of the protocol, and keeps no state of a connection. `tools/` has one
//! file for each core tool, which translates between arguments and the manager. All answers to a model go through
//! `answer` or `refusal`, which bound their size. `runs` has the runs of this process. Reports about a run are read
//! from the store, so that they stay the same after the server was killed.

mod actions;
mod announced;
mod answer;
mod app;
mod arguments;
mod brief;
mod caller;
mod changes;
mod completion;
#[cfg(feature = "conformance")]
mod conformance;
mod core;
mod corrections;
mod digest;
mod elicit;
mod error_format;
mod error_text;
#[cfg(test)]
mod fuzz;
mod handler;
mod help;
#[cfg(test)]
mod hints;
mod http;
mod invalid_request;
mod mcp_server;
mod needs;
mod options;
mod page;
mod parse_errors;
mod prompts;
mod reading;
mod refusal;
mod repair;
mod resources;
mod runs;
mod stdio;
mod subscriptions;
mod tasks;
mod tools;

#[cfg(feature = "conformance")]
pub use conformance::serve_conformance;
pub use http::{HttpListener, ListenError};
pub use mcp_server::McpServer;
pub use options::{AbsentProject, Offer, PromptText, ResourceText, ServerOptions, ToolSet};
pub use stdio::ServeError;
