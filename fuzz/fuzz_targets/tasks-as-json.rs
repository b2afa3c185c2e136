//! Hostile input at the reader of the tests that are called so: tasks as json.
#![no_main]
#![expect(dead_code, reason = "the file has readers of other targets, too")]

#[path = "../../crates/taskpawl-model/tests/it/data.rs"]
mod data;
#[path = "../../crates/taskpawl-model/tests/it/fuzz/entries.rs"]
mod entries;

libfuzzer_sys::fuzz_target!(|text: &str| {
    entries::task(text);
});
