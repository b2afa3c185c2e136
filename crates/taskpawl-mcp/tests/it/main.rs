//! Both sides: MCP servers as tools, against a server that misbehaves when it is told so; and the plan as a server.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod cut;
mod http;
mod programs;
mod secrets;
mod server;
mod support;
mod tool_lookup;
