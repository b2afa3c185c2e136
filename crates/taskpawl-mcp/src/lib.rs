//! MCP for taskpawl: the tools of MCP servers become tools of a [`Registry`](taskpawl::tools::Registry), under `SERVER/TOOL`.
//!
//! [`Servers`] is made of what configuration files say ([`read_servers`]), and offers [`Servers::tools`]. A server is started
//! by the first call of one of its tools, serves all calls of that run, and ends with it. What its tools take is known before
//! that from a [catalogue](Servers::tools) that was written down when it ran last.
//!
//! All MCP types stay in this crate. What a server sends is bounded in size before it is read, since a server may be wrong
//! or hostile; what it says about its tools is checked here as far as it is understood, and by the server itself.

mod client;
#[cfg(feature = "fuzz")]
pub mod fuzz;

pub use client::config::{ServerConfig, ServerProblem, Transport, Variables};
pub use client::files::{FileError, Found, read_servers, server_of};
pub use client::servers::{ServerState, Servers, ServersOptions};
