//! What servers send, for programs that throw hostile input at its readers. Each function returns whether something was read.

use crate::client::fuzz;

/// Reads messages as a program prints them.
pub fn messages(bytes: &[u8]) -> bool {
    fuzz::messages(bytes)
}

/// Reads messages as they come by HTTP.
pub fn events(bytes: &[u8]) -> bool {
    fuzz::events(bytes)
}

/// Holds a conversation with a server that says these lines.
pub fn conversation(bytes: &[u8]) -> bool {
    fuzz::conversation(bytes)
}
