//! Hostile input at the reader of the tests that are called so: conversations with mcp servers.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    taskpawl_mcp::fuzz::conversation(bytes);
});
