//! The MCP client: servers from configuration files, with their tools as tools of plans.

mod catalogue;
pub(crate) mod config;
mod connection;
mod downloads;
pub(crate) mod files;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod handler;
mod http;
mod inexact;
mod limits;
mod pool;
mod result;
mod sandbox;
mod secrets;
pub(crate) mod servers;
mod stdio;
mod tool;
mod variables;
mod words;
