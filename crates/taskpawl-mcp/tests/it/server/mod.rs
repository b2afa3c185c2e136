//! The plan as an MCP server, tested with clients of both eras of the protocol.

mod agents;
mod app;
mod approvals;
mod budget;
mod context;
mod faulty;
mod fits;
mod liberal;
mod requests;
mod resources;
mod runs;
mod support;
mod tools;
