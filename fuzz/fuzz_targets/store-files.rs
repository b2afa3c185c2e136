//! Hostile input at the reader of the tests that are called so: store files.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    taskpawl_store::fuzz::file(text);
});
