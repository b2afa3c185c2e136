//! Hostile input at the reader of the tests that are called so: files of the configuration.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    taskpawl_cli::fuzz::config(text);
});
