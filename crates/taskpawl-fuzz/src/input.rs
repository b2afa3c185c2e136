//! Generation of inputs from known ones.

use crate::Target;
use crate::random::Random;
use crate::tree;

/// Longest input, in characters.
const LONGEST: usize = 1 << 14;

/// Delimiters of many formats, and characters that parsers rarely expect.
const MARKS: &[&str] = &[
    "\0",
    "\u{1}",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\"",
    "'",
    "\\",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "$",
    "${{",
    "}}",
    "`",
    "-",
    "--",
    "- ",
    ".",
    "..",
    "/",
    "//",
    ":",
    ": ",
    "%",
    "@",
    "#",
    "*",
    "**",
    "|",
    "&",
    "!",
    "=",
    ",",
    ";",
    "<",
    ">",
    "?",
    "~",
    "^",
    "é",
    "漢",
    "👍",
    "\u{202e}",
    "\u{feff}",
    "\u{2028}",
    "\u{10ffff}",
    "0",
    "-1",
    "9223372036854775807",
    "18446744073709551616",
    "1e999",
    "0x",
    "null",
    "true",
    "\u{1b}[2J",
];

/// Generates an endless sequence of inputs.
pub(crate) struct Inputs<'a> {
    corpus: Vec<String>,
    words: Vec<&'a str>,
    random: Random,
}

impl<'a> Inputs<'a> {
    pub(crate) fn new(target: &Target<'a>, seed: u64) -> Self {
        // The few words of the language are repeated, so that they are drawn as often as all the marks together.
        let times = MARKS.len() / target.words.len().max(1) + 1;
        let own = target.words.iter().copied().cycle().take(times * target.words.len());
        Self {
            corpus: target.known(),
            words: MARKS.iter().copied().chain(own).collect(),
            random: Random::new(seed),
        }
    }

    pub(crate) fn next(&mut self) -> String {
        let known = self.random.one_of(&self.corpus).clone();
        let text = match self.random.below(20) {
            0..=9 => self.edited(&known),
            10..=16 => {
                tree::changed(&mut self.random, &known, &self.words).unwrap_or_else(|| self.edited(&known))
            }
            17 | 18 => self.written(),
            _ => self.nested(&known),
        };
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => text[..end].to_owned(),
            None => text,
        }
    }

    fn edited(&mut self, known: &str) -> String {
        let mut text: Vec<char> = known.chars().collect();
        for _ in 0..=self.random.below(4) {
            self.edit(&mut text);
        }
        text.into_iter().collect()
    }

    fn edit(&mut self, text: &mut Vec<char>) {
        let from = self.random.below(text.len() + 1);
        let most = if self.random.chance(70) { 8 } else { text.len() };
        let to = (from + self.random.below(most + 1)).min(text.len());
        match self.random.below(7) {
            0 => drop(text.drain(from..to)),
            1 => {
                let piece: Vec<char> = text[from..to].to_vec();
                drop(text.splice(to..to, piece));
            }
            2 | 3 => {
                let word = *self.random.one_of(&self.words);
                drop(text.splice(from..from, word.chars()));
            }
            4 => {
                let word = *self.random.one_of(&self.words);
                drop(text.splice(from..to, word.chars()));
            }
            5 => {
                let other: Vec<char> = self.random.one_of(&self.corpus).chars().collect();
                let at = self.random.below(other.len() + 1);
                drop(text.splice(from.., other[at..].iter().copied()));
            }
            _ => {
                let (word, times) = (*self.random.one_of(&self.words), self.random.below(40));
                drop(text.splice(from..to, word.repeat(times).chars()));
            }
        }
    }

    /// Returns random words in a row.
    fn written(&mut self) -> String {
        let between = *self.random.one_of(&["", "", " ", "\n", ", "]);
        let count = 1 + self.random.below(30);
        let words: Vec<&str> = (0..count).map(|_| *self.random.one_of(&self.words)).collect();
        words.join(between)
    }

    /// Returns a known input inside thousands of nested delimiters, to provoke stack overflows.
    fn nested(&mut self, known: &str) -> String {
        let times = self.random.below(3000);
        let (open, close) = (*self.random.one_of(&self.words), *self.random.one_of(&self.words));
        let known = if self.random.chance(50) { known } else { "" };
        format!("{}{known}{}", open.repeat(times), close.repeat(times))
    }
}
