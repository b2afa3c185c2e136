//! Entry points for fuzzers: messages of a hostile server. Each function returns whether something was read.

use crate::client::fuzz;

/// Reads messages as a program prints them, one a line.
pub fn messages(bytes: &[u8]) -> bool {
    fuzz::messages(bytes)
}

/// Reads the event stream of a server over HTTP.
pub fn events(bytes: &[u8]) -> bool {
    fuzz::events(bytes)
}

/// Runs a connection with a server that sends these lines.
pub fn conversation(bytes: &[u8]) -> bool {
    fuzz::conversation(bytes)
}
