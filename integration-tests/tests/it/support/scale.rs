//! How much is done, what came of it, and from which numbers.

use std::fmt::{Display, Write as _};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write as _;
use std::time::Instant;

/// Returns the figure of the test command, or the larger one where `TASKPAWL_HARNESS` is `full`.
pub(crate) fn scale(usual: usize, full: usize) -> usize {
    let word = std::env::var_os("TASKPAWL_HARNESS").unwrap_or_default();
    match word.to_str() {
        Some("") => usual,
        Some("full") => full,
        _ => panic!("TASKPAWL_HARNESS may only be `full`"),
    }
}

/// Returns `TASKPAWL_SEED`, or a number that is new each time: a failure prints it.
pub(crate) fn seed() -> u64 {
    match std::env::var_os("TASKPAWL_SEED") {
        Some(text) => text.to_str().and_then(|text| text.parse().ok()).expect("TASKPAWL_SEED is a number"),
        None => RandomState::new().build_hasher().finish() >> 32,
    }
}

/// Says that something could not be shown on this machine.
pub(crate) fn skip(what: &str, why: impl Display) {
    say(&format!("SKIPPED {what}: {why}"));
}

/// Prints one line when a harness ends: its figures and its time, or how it is repeated.
pub(crate) struct Figures {
    name: &'static str,
    pub(crate) seed: u64,
    begin: Instant,
    text: String,
}

impl Figures {
    /// `name` is that of the test.
    pub(crate) fn of(name: &'static str, seed: u64) -> Self {
        Self { name, seed, begin: Instant::now(), text: String::new() }
    }

    /// Adds a figure.
    pub(crate) fn add(&mut self, figure: impl Display) {
        let comma = if self.text.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
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

/// Writes past what catches the output of tests that pass: nobody should have to ask for it.
fn say(line: &str) {
    // Where nobody listens there is nobody to tell.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
