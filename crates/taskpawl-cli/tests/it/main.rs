//! Tests of the command line as people and agents use it: real processes in an empty environment.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

mod agents;
mod approvals;
mod callers;
mod commands;
mod config;
mod constructs;
mod dialects;
mod doctor;
mod errors;
mod exact_json;
mod examples;
mod exchange;
mod exchange_edits;
mod exit_codes;
mod explain;
mod full_disk;
mod harness;
mod help;
mod killed;
mod language;
mod loops;
mod mcp;
mod mcp_server;
mod nested_call;
mod own_tools;
mod placement;
mod plans;
mod policy;
mod prime;
mod program;
mod prune;
mod reading;
mod running;
mod sandbox;
mod secrets;
mod signals;
mod streams;
mod terminal;
mod todo;
mod trust;
mod turns;
mod undo;
mod values;
mod watch;
