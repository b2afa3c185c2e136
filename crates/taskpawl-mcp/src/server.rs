//! The server side: a plan as tools, resources and prompts of an MCP server.
//!
//! `handler` is what the protocol sees, in both of its eras; it keeps nothing of a connection. `tools/` has one file for each of the
//! core tools, which translate between arguments and the manager; `answer` and `refusal` are the only ways back to a model, and bound what
//! it has to read. `runs` are the runs of this process; everything that is said of a run is read from the store, so that it is the same
//! after the server was killed.

mod actions;
mod answer;
mod app;
mod arguments;
mod brief;
mod caller;
mod changes;
mod completion;
#[cfg(feature = "conformance")]
mod conformance;
mod digest;
mod elicit;
mod error_format;
#[cfg(test)]
mod fuzz;
mod handler;
#[cfg(test)]
mod hints;
mod http;
mod invalid_request;
mod options;
mod page;
mod parse_errors;
mod prompts;
mod refusal;
mod resources;
mod runs;
mod stdio;
mod tasks;
mod tools;

#[cfg(feature = "conformance")]
pub use conformance::serve_conformance;
pub use handler::McpServer;
pub use http::{HttpListener, ListenError};
pub use options::{PromptText, ResourceText, ServerOptions, ToolSet};
pub use stdio::ServeError;
