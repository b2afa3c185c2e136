//! Both sides: MCP servers as tools, tested with a server that misbehaves on request, and the plan as an MCP server.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod cut;
mod http;
mod programs;
mod secrets;
mod server;
mod support;
mod tool_lookup;
