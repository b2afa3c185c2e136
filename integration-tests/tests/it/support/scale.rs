//! Counts, seeds and output lines of the harnesses.

use std::fmt::{Display, Write as _};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write as _;
use std::time::Instant;

/// Returns the count of the test command, or the larger one if `TASKPAWL_HARNESS` is `full`.
pub(crate) fn scale(usual: usize, full: usize) -> usize {
    let word = std::env::var_os("TASKPAWL_HARNESS").unwrap_or_default();
    match word.to_str() {
        Some("") => usual,
        Some("full") => full,
        _ => panic!("TASKPAWL_HARNESS may only be `full`"),
    }
}

/// Returns `TASKPAWL_SEED`, or a new random number; a failure prints it.
pub(crate) fn seed() -> u64 {
    match std::env::var_os("TASKPAWL_SEED") {
        Some(text) => text.to_str().and_then(|text| text.parse().ok()).expect("TASKPAWL_SEED is a number"),
        None => RandomState::new().build_hasher().finish() >> 32,
    }
}

/// Prints one line when a harness ends: its figures and its time, or the command that repeats a failure.
pub(crate) struct Figures {
    name: &'static str,
    pub(crate) seed: u64,
    begin: Instant,
    text: String,
}

impl Figures {
    /// `name` is the name of the test, as `cargo test` needs it.
    pub(crate) fn of(name: &'static str, seed: u64) -> Self {
        Self { name, seed, begin: Instant::now(), text: String::new() }
    }

    /// Adds a figure.
    pub(crate) fn add(&mut self, figure: impl Display) {
        let comma = if self.text.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{comma}{figure}");
    }
}

impl Drop for Figures {
    fn drop(&mut self) {
        let Self { name, seed, begin, text } = self;
        let seconds = begin.elapsed().as_secs_f64();
        if std::thread::panicking() {
            let again = format!("TASKPAWL_SEED={seed} cargo test -p integration-tests --test it {name}");
            say(&format!("FAILED {name} after {seconds:.1} s: {text}; again: {again}"));
        } else {
            say(&format!("{name}: {text}; {seconds:.1} s, seed {seed}"));
        }
    }
}

/// Writes to the real standard error, because libtest captures `eprintln!` of passing tests.
fn say(line: &str) {
    // Without a terminal or pipe there is no reader.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
