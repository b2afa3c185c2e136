//! MCP for taskpawl, on both sides: the tools of MCP servers as tools of plans, and plans as an MCP server.
//!
//! The tools of MCP servers become tools of a [`Registry`](taskpawl::tools::Registry), named `SERVER/TOOL`.
//! [`read_servers`] reads the servers from configuration files, and [`Servers::tools`] offers their tools. A server
//! is started by the first call of one of its tools. It serves all calls of that run and ends with the run. Until a
//! server is started, the parameters of its tools come from a [catalogue](Servers::tools) that was saved when it last
//! ran.
//!
//! [`McpServer`] offers a plan to agents, in both eras of the protocol: with a session, and without one.
//!
//! ```no_run
//! use taskpawl::Taskpawl;
//! use taskpawl_mcp::{McpServer, ServerOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let plans = Taskpawl::builder("tasks.db").open()?;
//! let server = McpServer::new(plans, ServerOptions { read_only: true, ..ServerOptions::default() })?;
//! server.serve_stdio().await?;
//! # Ok(())
//! # }
//! ```
//!
//! All MCP types stay in this crate. Messages of the other side are bounded in size before they are read, since they
//! may be wrong or hostile. Schemas of tools are checked here as far as they are understood. The server checks the
//! rest.

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
    AbsentProject, HttpListener, ListenError, McpServer, Offer, PromptText, ResourceText, ServeError,
    ServerOptions, ToolSet,
};
