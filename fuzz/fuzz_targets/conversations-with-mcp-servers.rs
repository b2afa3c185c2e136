//! Hostile input at the reader of the tests that are called so: conversations with mcp servers.
#![no_main]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

libfuzzer_sys::fuzz_target!(
    init: {
        // Programs of Rust do not die when a server has hung up. The `main` of this one is not of Rust.
        let heard = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGPIPE, heard).expect("the signal can be caught");
    },
    |bytes: &[u8]| {
        taskpawl_mcp::fuzz::conversation(bytes);
    }
);
