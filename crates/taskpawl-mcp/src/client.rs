//! The client side: servers, and their tools as ours.

mod catalogue;
pub(crate) mod config;
mod connection;
pub(crate) mod files;
mod handler;
mod http;
mod limits;
mod pool;
mod result;
mod sandbox;
pub(crate) mod servers;
mod stdio;
mod tool;
mod variables;
mod words;
