//! Hostile input at the reader of the tests that are called so: commands under a policy.
#![no_main]
#![expect(dead_code, reason = "the file has readers of other targets, too")]

#[path = "../../crates/taskpawl-tools/tests/it/fuzz_policy/entries.rs"]
mod entries;

libfuzzer_sys::fuzz_target!(|text: &str| {
    entries::command(text);
});
