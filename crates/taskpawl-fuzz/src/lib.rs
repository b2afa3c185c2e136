//! Fuzzing of parsers with hostile input, the cases of a day, and the report of a check that cannot run here. For tests only.
//!
//! A [`Target`] consists of known inputs of a parser and the words of its language. Further inputs are derived from
//! them: edited, rearranged as JSON trees, composed of words, and nested thousands of times. A parser may refuse any
//! input but must not panic.
//!
//! ```
//! use taskpawl_fuzz::Target;
//!
//! let target = Target { name: "numbers", corpus: &["1", "-2"], words: &["-", "."] };
//! target.corpus(|text| text.parse::<f64>().is_ok());
//! let found = target.search(10_000, 1, |text| text.parse::<f64>().unwrap() > 0.0).unwrap();
//! assert!(found.input.parse::<f64>().is_err());
//! ```

mod folder;
mod input;
mod random;
mod skip;
mod tree;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use skip::skip;

use input::Inputs;

/// Number of inputs of a normal test run. The sequence moves with the day, so that four days try as many as a longer run would.
const USUAL: u64 = 25_000;

/// Number of inputs if `TASKPAWL_HARNESS` is `full`.
const FULL: u64 = 100_000_000;

/// A parser to test, described by its inputs.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Name of the target in the output, and of its directory in the corpus.
    pub name: &'static str,
    /// Known inputs, valid or hostile. Those in the directory `fuzz/corpus/NAME` of the repository, which cargo-fuzz
    /// shares, are added.
    pub corpus: &'a [&'a str],
    /// Words and delimiters of its language.
    pub words: &'a [&'a str],
}

/// An input that made a parser panic.
#[derive(Clone, Debug)]
pub struct Found {
    /// The input itself.
    pub input: String,
    /// Position of the input in the sequence, from 0.
    pub number: u64,
    /// Seed of the sequence.
    pub seed: u64,
    /// Message of the panic.
    pub message: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, number, seed, message } = self;
        write!(f, "input {number} of seed {seed} made it panic: {message}\n{input:?}")
    }
}

/// Statistics of inputs that caused no panic.
#[derive(Clone, Debug, Default)]
struct Tally {
    accepted: u64,
    slowest: Duration,
    slowest_input: String,
}

impl Target<'_> {
    /// Passes the known inputs to `parse`, which returns whether it accepts an input.
    ///
    /// # Panics
    /// Panics if `parse` panics, or if it accepts none of the inputs.
    pub fn corpus(&self, parse: impl Fn(&str) -> bool) {
        let accepted = self.known().iter().filter(|input| parse(input)).count();
        assert!(accepted > 0, "{}: nothing of the corpus is read", self.name);
    }

    /// Passes the known inputs and 25,000 generated ones to `parse`, and prints one line of statistics.
    ///
    /// If the variable `TASKPAWL_HARNESS` is `full`, 100 million inputs are generated. The sequence moves with the day, so
    /// that the same time for each change covers more of them in the long run; `TASKPAWL_SEED` repeats one.
    ///
    /// # Panics
    /// Panics with the input if `parse` panics. Also panics if `parse` accepts so few inputs that the code behind the
    /// parser is hardly tested.
    pub fn fuzz(&self, parse: impl Fn(&str) -> bool) {
        self.fuzz_some(inputs(), parse);
    }

    /// Like [`fuzz`](Self::fuzz), with one of `parts` parts of the inputs, for checks that take milliseconds each.
    ///
    /// # Panics
    /// As [`fuzz`](Self::fuzz).
    pub fn fuzz_part(&self, parts: u64, parse: impl Fn(&str) -> bool) {
        self.fuzz_some(inputs() / parts, parse);
    }

    /// Like [`fuzz`](Self::fuzz), with a given number of inputs.
    ///
    /// # Panics
    /// As [`fuzz`](Self::fuzz).
    pub fn fuzz_some(&self, inputs: u64, parse: impl Fn(&str) -> bool) {
        self.corpus(&parse);
        let seed = variable("TASKPAWL_SEED").and_then(|text| text.parse().ok()).unwrap_or_else(today);
        let begin = Instant::now();
        match self.run(inputs, seed, parse) {
            Ok(tally) => self.print(inputs, seed, begin.elapsed(), &tally),
            Err(found) => panic!("{}: {found}", self.name),
        }
    }

    /// Returns the first of `inputs` generated inputs for which `parse` panics.
    pub fn search(&self, inputs: u64, seed: u64, parse: impl Fn(&str) -> bool) -> Option<Found> {
        self.run(inputs, seed, parse).err().map(|found| *found)
    }

    /// Returns the known inputs without duplicates.
    fn known(&self) -> Vec<String> {
        let mut known: Vec<String> = self.corpus.iter().map(|input| (*input).to_owned()).collect();
        for input in folder::inputs(self.name) {
            if !known.contains(&input) {
                known.push(input);
            }
        }
        known
    }

    fn run(&self, inputs: u64, seed: u64, parse: impl Fn(&str) -> bool) -> Result<Tally, Box<Found>> {
        let mut source = Inputs::new(self, seed);
        let mut tally = Tally::default();
        for number in 0..inputs {
            let input = source.next();
            let begin = Instant::now();
            let accepted = catch_unwind(AssertUnwindSafe(|| parse(&input))).map_err(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                let message = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                Box::new(Found { input: input.clone(), number, seed, message: message.unwrap_or_default() })
            })?;
            tally.count(input, accepted, begin.elapsed());
        }
        Ok(tally)
    }

    #[expect(clippy::print_stdout, reason = "a test prints its statistics")]
    fn print(&self, inputs: u64, seed: u64, took: Duration, tally: &Tally) {
        let Tally { accepted, slowest, slowest_input } = tally;
        let head: String = slowest_input.chars().take(60).collect();
        println!(
            "P13 {}: {inputs} inputs of seed {seed} in {took:.1?}, {accepted} of them read, 0 panics; slowest {slowest:.1?}: {head:?}",
            self.name
        );
        assert!(
            *accepted * 1000 >= inputs,
            "{}: hardly anything is read, so hardly anything is tried",
            self.name
        );
    }
}

impl Tally {
    fn count(&mut self, input: String, accepted: bool, took: Duration) {
        self.accepted += u64::from(accepted);
        if took > self.slowest {
            (self.slowest, self.slowest_input) = (took, input);
        }
    }
}

/// Returns the number of inputs of one test.
fn inputs() -> u64 {
    if is_full() { FULL } else { USUAL }
}

/// Returns whether the variable `TASKPAWL_HARNESS` asks for the large counts.
fn is_full() -> bool {
    variable("TASKPAWL_HARNESS").as_deref() == Some("full")
}

/// Returns whether a case belongs to those of today: one of `parts` parts, the next part tomorrow. If `TASKPAWL_HARNESS` is
/// `full`, all of them do.
pub fn is_due(case: u64, parts: u64) -> bool {
    is_full() || (today() + case).is_multiple_of(parts)
}

/// Returns the number of today, counted from 1970.
fn today() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "selects the inputs of a test, which prints its seed")]
    let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    age.as_secs() / 86_400
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}
