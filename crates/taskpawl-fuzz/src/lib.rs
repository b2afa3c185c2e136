//! Throws hostile input at parsers, for tests alone.
//!
//! A [`Target`] has inputs that a parser reads and the words of its language. From them come the others: edited, taken apart and put
//! together again as trees, written anew from words, nested thousands of times. A parser may refuse all of it and must panic at none.
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
mod tree;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use input::Inputs;

/// How many inputs a test tries.
const USUAL: u64 = 100_000;

/// How many it tries where `TASKPAWL_HARNESS` is `full`.
const FULL: u64 = 100_000_000;

/// A parser, by what it is fed with.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// What it is called in figures.
    pub name: &'static str,
    /// Inputs that it reads, or that are known to be hostile, beside those in the folder `fuzz/corpus/NAME` of the repository, which
    /// is shared with the targets of cargo-fuzz.
    pub corpus: &'a [&'a str],
    /// Words and marks that mean something to it.
    pub words: &'a [&'a str],
}

/// An input at which a parser panicked.
#[derive(Clone, Debug)]
pub struct Found {
    /// The input.
    pub input: String,
    /// Which it was, counted from 0.
    pub number: u64,
    /// The seed of the inputs.
    pub seed: u64,
    /// What the panic said.
    pub message: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, number, seed, message } = self;
        write!(f, "input {number} of seed {seed} made it panic: {message}\n{input:?}")
    }
}

/// What came of inputs that made nothing panic.
#[derive(Clone, Debug, Default)]
struct Tally {
    accepted: u64,
    slowest: Duration,
    slowest_input: String,
}

impl Target<'_> {
    /// Feeds the inputs that are known; `parse` says whether it reads one.
    ///
    /// # Panics
    /// If `parse` does, or reads none of them.
    pub fn corpus(&self, parse: impl Fn(&str) -> bool) {
        let accepted = self.known().iter().filter(|input| parse(input)).count();
        assert!(accepted > 0, "{}: nothing of the corpus is read", self.name);
    }

    /// Feeds the inputs that are known, and a hundred thousand others: a hundred million where the variable `TASKPAWL_HARNESS` is
    /// `full`, and other ones where `TASKPAWL_SEED` is another number. Prints one line of figures.
    ///
    /// # Panics
    /// With the input, if `parse` panics; also if it reads so little that what comes after a parser is hardly reached.
    pub fn fuzz(&self, parse: impl Fn(&str) -> bool) {
        let inputs = if variable("TASKPAWL_HARNESS").as_deref() == Some("full") { FULL } else { USUAL };
        self.fuzz_some(inputs, parse);
    }

    /// As [`fuzz`](Self::fuzz), with so many inputs where each of them is dear.
    ///
    /// # Panics
    /// As [`fuzz`](Self::fuzz).
    pub fn fuzz_some(&self, inputs: u64, parse: impl Fn(&str) -> bool) {
        self.corpus(&parse);
        let seed = variable("TASKPAWL_SEED").and_then(|text| text.parse().ok()).unwrap_or(1);
        let begin = Instant::now();
        match self.run(inputs, seed, parse) {
            Ok(tally) => self.print(inputs, seed, begin.elapsed(), &tally),
            Err(found) => panic!("{}: {found}", self.name),
        }
    }

    /// Returns the first of so many inputs at which `parse` panics.
    pub fn search(&self, inputs: u64, seed: u64, parse: impl Fn(&str) -> bool) -> Option<Found> {
        self.run(inputs, seed, parse).err().map(|found| *found)
    }

    /// Returns the inputs that are known, each once.
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

    #[expect(clippy::print_stdout, reason = "figures of a test")]
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

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}
