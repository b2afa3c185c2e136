//! MCP servers as tools, against a server that does what it is told and misbehaves when it is told so.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod finding;
mod http;
mod programs;
mod secrets;
mod support;
