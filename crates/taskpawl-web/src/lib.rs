//! The page of a plan, for a browser on the same machine.
//!
//! [`PageServer`] serves a shell without data to anyone on this machine, and the data to holders of a token. HTML is made here, from the
//! reads that terminal and MCP use, and is escaped by construction. The scripts of the page fetch fragments of it, follow one stream of
//! changes, and draw the matrix of tasks. Nothing comes from another host.

mod act;
mod ansi;
mod answer;
mod approvals;
mod asked;
mod assets;
mod board;
mod layout;
mod live;
mod metrics;
mod openapi;
mod options;
mod outlook;
mod output;
mod page;
mod past;
mod request;
mod routes;
mod runs;
mod scale;
mod scope;
mod server;
mod signals;
#[cfg(test)]
mod tests;
mod timeline;
mod view;

pub use approvals::{Ask, AskedQuestion, Decision, is_repeatable};
pub use options::{PageOptions, ReadFile, Tokens, Words};
pub use scope::Scope;
pub use server::PageServer;
