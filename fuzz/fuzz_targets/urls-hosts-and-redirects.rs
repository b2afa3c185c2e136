//! Hostile input at the reader of the tests that are called so: urls hosts and redirects.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    taskpawl_tools::fuzz::url(text);
});
