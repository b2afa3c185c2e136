//! Commands that a line may run, read pessimistically for rules that ask or deny.

use std::collections::HashSet;
use std::sync::Arc;

use super::alias;
use super::chain::Chain;
use super::filled::{filled, is_argument, is_value};
use super::git::{self, is_git};
use super::input::runs_input;
use super::make::{self, is_make};
use super::reader::Reader;
use super::runner::{is_program, is_runner, is_special, name_of, runs_first_word, word_before_run};
use super::syntax::{DEPTH, KEYWORDS, is_plain, is_variable};
use super::variable::{self, Settings};
use super::{Certainty, Word};

/// Maximum of words that are inspected before a call counts as hiding something.
const WORDS: usize = 500_000;

/// Shell commands that evaluate their arguments once more, so that `'a[$(x)]'` runs `x`.
const EVALUATING: &[&str] = &[
    "[", "[[", "declare", "export", "let", "local", "printf", "read", "readonly", "test", "typeset", "unset",
];

/// Possible command: words of which the first may be a program. Suffixes of one list share its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    list: Arc<[Word]>,
    from: usize,
}

impl Suspect {
    /// Returns the words; there is at least one.
    pub(crate) fn words(&self) -> &[Word] {
        &self.list[self.from..]
    }

    /// Returns the identity of the list, which suffixes of it share.
    pub(super) fn list(&self) -> *const Word {
        self.list.as_ptr()
    }

    /// Returns whether the program runs commands from its arguments or its input.
    pub(super) fn is_runner(&self) -> bool {
        self.words().first().is_some_and(is_runner)
    }
}

/// Origin of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A shell reads the line. If its end is uncertain, none of it is certain.
    Shell,
    /// The text may be a line, but need not be.
    Guess,
}

/// All possible commands of a call.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    pub(super) found: Vec<Suspect>,
    settings: Settings,
    /// Variables at the start of program paths, outside of quotes.
    leading: HashSet<String>,
    /// Number of words inspected so far.
    seen: usize,
}

impl Suspicion {
    /// Adds the words of one command.
    pub(super) fn with_words(mut self, words: &[Word]) -> Self {
        self.add(words, 0);
        self
    }

    /// Adds variables that are set for the whole call.
    pub(super) fn with_variables(mut self, words: &[Word]) -> Self {
        self.add_variables(words, 0);
        self
    }

    /// Adds a line that a shell reads.
    pub(super) fn with_line(mut self, line: &str) -> Self {
        self.read(line, 0, Source::Shell);
        self
    }

    /// Adds the input of a program.
    pub(super) fn with_input(mut self, input: &str) -> Self {
        self.read(input, 0, Source::Guess);
        self
    }

    /// Returns all possible commands, including those that follow from aliases and settings.
    pub(super) fn finished(mut self) -> Vec<Suspect> {
        // Aliases come first, for a command behind an alias may set variables.
        alias::expand(&mut self);
        for run in self.settings.runs() {
            self.add_of_git(run, 0);
        }
        let is_split = self.leading.iter().any(|variable| self.settings.may_split(variable));
        if is_split || self.found.iter().any(|suspect| self.settings.feed(suspect.words())) {
            self.add_unknown();
        }
        self.found
    }

    /// Adds the suffix of a list that starts at `from`.
    fn push(&mut self, list: &Arc<[Word]>, from: usize) {
        self.leading.extend(list[from].splitting().map(str::to_owned));
        self.found.push(Suspect { list: Arc::clone(list), from });
    }

    /// Adds an unknown command, to which every rule that asks or denies applies.
    ///
    /// This is the only place for the principle that uncertainty counts as a match. Each reader calls it where it
    /// cannot go on; none of them assumes that something is harmless.
    pub(super) fn add_unknown(&mut self) {
        self.push_unknown(String::new());
    }

    fn push_unknown(&mut self, text: String) {
        let word = Word { text, certainty: Certainty::AnyWords };
        self.found.push(Suspect { list: Arc::new([word]), from: 0 });
    }

    /// Reads a line that is followed by already parsed words.
    pub(super) fn read_before(&mut self, line: &str, rest: &[Word], depth: usize) {
        self.read_with(line, rest, depth, Source::Guess);
    }

    fn read(&mut self, line: &str, depth: usize, source: Source) {
        self.read_with(line, &[], depth, source);
    }

    /// Splits a line wherever a command may begin, and inspects each piece; `rest` follows the last one.
    fn read_with(&mut self, line: &str, rest: &[Word], depth: usize, source: Source) {
        if depth > DEPTH {
            return self.push_unknown(line.to_owned());
        }
        let Reader { mut pieces, inner, is_doubtful, .. } = Reader::of(line, depth);
        if is_doubtful && source == Source::Shell {
            self.add_unknown();
        }
        if !rest.is_empty() {
            if !self.may_see(rest.len()) {
                return;
            }
            let mut last = pieces.pop().unwrap_or_default();
            last.extend_from_slice(rest);
            pieces.push(last);
        }
        for words in pieces {
            self.add(&words, depth);
        }
        for line in inner {
            self.read(&line, depth + 1, Source::Guess);
        }
    }

    /// Counts words; returns whether the limit still allows to inspect them. On exceeding it, an unknown command is
    /// added once.
    fn may_see(&mut self, words: usize) -> bool {
        let may_before = self.seen <= WORDS;
        self.seen = self.seen.saturating_add(words);
        if may_before && self.seen > WORDS {
            self.add_unknown();
        }
        self.seen <= WORDS
    }

    /// Inspects one command without its prefix of assignments and keywords, and the commands that its program runs.
    fn add(&mut self, words: &[Word], depth: usize) {
        if !self.may_see(words.len()) {
            return;
        }
        self.add_variables(words, depth);
        let words = program_of(words);
        let Some(first) = words.first() else { return };
        if EVALUATING.contains(&first.text.as_str()) {
            self.add_evaluated(words, depth);
        }
        let words: Arc<[Word]> = words.into();
        self.push(&words, 0);
        let mut from = 0;
        // If the command of `sudo` or the like is certain, no other word of the line is suspected of being it.
        while runs_first_word(&words[from]) && words.get(from + 1).is_some_and(is_program) {
            from += 1;
            self.push(&words, from);
        }
        self.add_program(&words, from, depth);
    }

    /// Inspects the commands that the program at `from` runs.
    fn add_program(&mut self, words: &Arc<[Word]>, from: usize, depth: usize) {
        let program = &words[from];
        if is_special(&program.text) {
            self.add_unknown();
        }
        self.add_renamed(words, from, depth);
        // An unknown program may be git.
        if is_git(program) || program.name().is_none() {
            self.add_git(words, from, depth);
        }
        if is_make(program) {
            self.add_make(&words[from..], depth);
        }
        if let Some(at) = word_before_run(&words[from..]) {
            self.add_run(words, from + at, depth);
        } else if is_runner(program) {
            match filled(&words[from..]) {
                Some(filled) => {
                    if filled.is_open {
                        self.add_unknown();
                    }
                    self.add_run(&filled.words.into(), 0, depth);
                }
                None => self.add_run(words, from, depth),
            }
        }
    }

    /// Inspects variables that a command sets, or that are set for it.
    fn add_variables(&mut self, words: &[Word], depth: usize) {
        let mut runs: Vec<_> = words.iter().filter_map(|word| self.settings.take(word)).collect();
        runs.extend(self.settings.take_names(words));
        for run in runs {
            match run {
                variable::Run::Line(line) => self.read(&line, depth + 1, Source::Guess),
                variable::Run::Unknown => self.add_unknown(),
            }
        }
    }

    fn add_evaluated(&mut self, words: &[Word], depth: usize) {
        for word in words.iter().filter(|word| word.certainty == Certainty::Literal) {
            if word.text.contains('[') && variable::is_expanded(&word.text) {
                self.read(&word.text, depth + 1, Source::Guess);
            }
        }
    }

    /// Inspects `git-push` as `git push`, and `=git` of zsh or `^git` of `nu` as `git`.
    fn add_renamed(&mut self, words: &[Word], at: usize, depth: usize) {
        let name = words[at].text.rsplit('/').next().unwrap_or_default();
        let verb = name.strip_prefix("git-").filter(|verb| !verb.is_empty());
        let mut whole = match (verb, name.strip_prefix(['=', '^'])) {
            (Some(verb), _) => vec![Word::literal("git"), Word::literal(verb)],
            (None, Some(program)) if !program.is_empty() => vec![Word::literal(program)],
            (None, _) => return,
        };
        if !self.may_see(words.len() - at) {
            return;
        }
        whole.extend_from_slice(&words[at + 1..]);
        if depth > DEPTH {
            return self.add_unknown();
        }
        self.add(&whole, depth + 1);
    }

    /// Inspects the commands in the arguments of the git at `from`.
    fn add_git(&mut self, words: &Arc<[Word]>, from: usize, depth: usize) {
        if depth > DEPTH {
            return self.add_unknown();
        }
        for run in git::runs(&words[from + 1..]) {
            match run {
                git::Run::Behind(at) => self.add_run(words, from + 1 + at, depth + 1),
                run @ (git::Run::Line(_) | git::Run::Unknown) => self.add_of_git(run, depth),
            }
        }
    }

    fn add_of_git(&mut self, run: git::Run, depth: usize) {
        match run {
            git::Run::Line(line) => self.read(&line, depth + 1, Source::Shell),
            git::Run::Behind(_) | git::Run::Unknown => self.add_unknown(),
        }
    }

    /// Inspects the commands in the arguments of a `make`.
    fn add_make(&mut self, words: &[Word], depth: usize) {
        if !self.may_see(words.len()) {
            return;
        }
        if runs_input(words) {
            self.add_unknown();
        }
        for run in make::runs(&words[1..]) {
            match run {
                make::Run::Line(line) => self.read(&line, depth + 1, Source::Guess),
                make::Run::Program(program) => {
                    let anything = Word { text: "$".to_owned(), certainty: Certainty::AnyWords };
                    self.read_with(&program, &[anything], depth + 1, Source::Guess);
                }
                make::Run::Unknown => self.add_unknown(),
            }
        }
    }

    /// Inspects the words that the runner at `from` may run.
    fn add_run(&mut self, words: &Arc<[Word]>, from: usize, depth: usize) {
        if runs_input(&words[from..]) {
            self.add_unknown();
        }
        if let Some(at) = words[from + 1..].iter().position(is_git) {
            self.add_git(words, from + 1 + at, depth);
        }
        let mut chain = Chain::of(&words[from]);
        for (position, word) in words.iter().enumerate().skip(from + 1) {
            let before = &words[position - 1];
            let may_be_run = chain.takes(before, word);
            // A literal word of `find` in front of its command is a pattern or a number. An unknown one may be the
            // option that begins the command.
            let is_pattern = chain.is_before_command() && word.certainty == Certainty::Literal;
            // After `env` or `timeout 5` the word may be the command.
            let is_begin = may_be_run && (is_runner(before) || is_value(&before.text));
            // Words that a program inserts after a command are arguments of that command.
            let is_argument = is_argument(before, word) && !is_begin;
            if is_argument || is_appended(word) || is_pattern {
                continue;
            }
            self.push(words, position);
            match word.certainty {
                Certainty::Literal => {
                    if may_be_run && is_runner(word) && runs_input(&words[position..]) {
                        self.add_unknown();
                    }
                    if may_be_run && is_make(word) {
                        self.add_make(&words[position..], depth);
                    }
                    self.add_argument(words, position, &chain, may_be_run, depth);
                }
                // One word for this shell is a whole line for the inner one.
                Certainty::OneWord if chain.is_line(before) => self.add_unknown(),
                Certainty::OneWord if may_be_run && chain.is_direct() && runs_input(&words[position..]) => {
                    self.add_unknown();
                }
                Certainty::OneWord => self.add_renamed(words, position, depth),
                Certainty::AnyWords => {}
            }
        }
    }

    /// Inspects an argument of a runner: it may be a program, a line, or an option with one.
    fn add_argument(&mut self, words: &[Word], at: usize, chain: &Chain<'_>, may_be_run: bool, depth: usize) {
        let (text, rest, before) = (words[at].text.as_str(), &words[at + 1..], &words[at - 1]);
        self.add_renamed(words, at, depth);
        let is_line = chain.is_line(before);
        // A glob pattern alone is no command line unless it is passed to a shell.
        let is_harmless = |char: char| is_plain(char) || (!may_be_run && !is_line && "*?[]^".contains(char));
        if !text.chars().all(is_harmless) {
            let source = if is_line { Source::Shell } else { Source::Guess };
            self.read_with(text.trim_start_matches('!'), rest, depth + 1, source);
        }
        for value in glued(text) {
            self.read_with(value, rest, depth + 1, Source::Guess);
        }
        // `env -S` interprets escapes and variables in its own way.
        let is_split = text.starts_with('-') || before.text.starts_with('-');
        if is_split && text.contains(['\\', '$']) && chain.has_env() {
            self.add_unknown();
        }
        // These programs put a prefix in front of the command: `hatch run ENVIRONMENT:COMMAND`, `socat - EXEC:COMMAND`,
        // `nix run SOURCE#PROGRAM`.
        let prefix_end = match (name_of(&words[0]), chain.program()) {
            ("hatch", _) | (_, "socat") => ':',
            ("nix", _) => '#',
            _ => return,
        };
        if let Some((_, command)) = text.split_once(prefix_end) {
            self.read_with(command, rest, depth + 1, Source::Guess);
        }
    }
}

/// Returns possible commands within an option: `--split-string=…`, `-S…`, `-qc…`.
fn glued(text: &str) -> Vec<&str> {
    // The second case is `ssh -o ProxyCommand=…`.
    let is_option = |name: &str| name.starts_with('-') || name.ends_with("Command");
    if let Some((_, value)) = text.split_once('=').filter(|(name, _)| is_option(name)) {
        return vec![value];
    }
    let Some(cluster) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
        return Vec::new();
    };
    let letters = cluster.bytes().take(8).take_while(u8::is_ascii_alphabetic).enumerate();
    let ends = letters.filter(|(_, letter)| matches!(letter, b'c' | b'S' | b'X' | b'x'));
    ends.map(|(at, _)| &cluster[at + 1..]).filter(|value| !value.is_empty()).collect()
}

/// Returns the words of a command from its program on.
fn program_of(words: &[Word]) -> &[Word] {
    let is_before = |word: &&Word| {
        let is_assignment =
            word.text.split_once('=').is_some_and(|(name, _)| is_variable(name.trim_end_matches('+')));
        is_assignment || KEYWORDS.contains(&word.text.as_str())
    };
    let skipped = words.iter().take_while(is_before).count();
    // With options, as in `time -p COMMAND`, `time` is handled as a program.
    let has_options = words.get(skipped).is_some_and(|word| word.text.starts_with('-'));
    let is_time = skipped > 0 && has_options && words[skipped - 1].text == "time";
    &words[skipped - usize::from(is_time)..]
}

/// Returns whether a word represents all words that a program appends to a command.
fn is_appended(word: &Word) -> bool {
    word.certainty == Certainty::AnyWords && word.text.is_empty()
}
