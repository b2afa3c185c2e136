//! Hostile input at the reader of the tests that are called so: shell commands.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    taskpawl_tools::fuzz::command(text);
});
