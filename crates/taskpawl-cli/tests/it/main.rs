//! The command line as people and agents meet it: real processes in an empty environment.

mod commands;
mod config;
mod errors;
mod harness;
mod help;
mod placement;
mod plans;
mod streams;
mod terminal;
