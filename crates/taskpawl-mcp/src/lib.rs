//! MCP for taskpawl, on both sides: the tools of MCP servers as tools of plans, and plans as an MCP server.
//!
//! The tools of MCP servers become tools of a [`Registry`](taskpawl::tools::Registry), under `SERVER/TOOL`. [`Servers`] is made of what
//! configuration files say ([`read_servers`]), and offers [`Servers::tools`]. A server is started by the first call of one of its tools,
//! serves all calls of that run, and ends with it. What its tools take is known before that from a [catalogue](Servers::tools) that was
//! written down when it ran last.
//!
//! [`McpServer`] offers a plan to agents, in both eras of the protocol.
//!
//! All MCP types stay in this crate. What another side sends is bounded in size before it is read, since it may be wrong or hostile;
//! what a server says about its tools is checked here as far as it is understood, and by the server itself.

mod client;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod server;

#[cfg(feature = "conformance")]
pub use server::serve_conformance;

pub use client::config::{ServerConfig, ServerProblem, Transport, Variables};
pub use client::files::{FileError, Found, read_servers, server_of};
pub use client::servers::{ServerState, Servers, ServersOptions};
pub use server::{
    HttpListener, ListenError, McpServer, PromptText, ResourceText, ServeError, ServerOptions, ToolSet,
};
