//! Hostile input at the reader of the tests that are called so: descriptions of tools.
#![no_main]

#[path = "../../crates/taskpawl-tools/tests/it/fuzz/entries.rs"]
mod entries;

libfuzzer_sys::fuzz_target!(|text: &str| {
    entries::description(text);
});
