//! The plan as an MCP server, as clients of both eras of the protocol see it.

mod agents;
mod app;
mod approvals;
mod budget;
mod requests;
mod resources;
mod runs;
mod support;
mod tools;
