//! Programs that complete a command with words from elsewhere: from their input, or from the files that they find.

use super::runner::{is_runner, name_of};
use super::syntax::{EXEC, is_plain, is_variable};
use super::{Certainty, Word};

/// Programs that append words to the command that they run.
const APPENDING: &[&str] = &["env_parallel", "fd", "fdfind", "gxargs", "parallel", "sem", "xargs"];

/// Words of a command line, including unknown ones.
pub(super) struct Filled {
    /// Words, with unknown ones inserted.
    pub(super) words: Vec<Word>,
    /// Set if the command itself may be anything.
    pub(super) is_open: bool,
}

/// Inserts unknown words at the positions that a program fills; `None` if no program does that.
pub(super) fn filled(words: &[Word]) -> Option<Filled> {
    let at = words.iter().position(|word| is_filling(name_of(word)))?;
    let (name, before) = (name_of(&words[at]), &words[..=at]);
    // In `parallel COMMAND ::: WORDS` the words are appended to the command in the same way as those of its input.
    let is_list = |word: &Word| is_parallel(name) && word.text.starts_with(":::");
    let end = words.iter().position(is_list).unwrap_or(words.len());
    let args = words.get(at + 1..end).unwrap_or_default();
    let mark = mark(name, args);
    let mut filled = Filled { words: before.to_vec(), is_open: false };
    for word in args {
        filled.push(word, mark.as_deref());
    }
    // With `-I{}` `xargs` replaces the placeholder and appends nothing.
    let is_placed = name.ends_with("xargs") && mark.is_some();
    if APPENDING.contains(&name) && !is_placed {
        filled.is_open |= is_open(name, args);
        filled.words.push(Word { text: String::new(), certainty: Certainty::AnyWords });
    }
    Some(filled)
}

impl Filled {
    fn push(&mut self, word: &Word, mark: Option<&str>) {
        let mut word = word.clone();
        let is_told = |mark: &str| word.text.contains(mark) && !word.text.starts_with('-');
        let mark = mark.filter(|mark| is_told(mark));
        if mark.is_some() && word.certainty != Certainty::Literal {
            // Both a placeholder and an expansion: nothing of the word is known any more.
            "$".clone_into(&mut word.text);
        } else if let Some(mark) = mark {
            // The word is a line of code with a placeholder, so that the inserted text may be any command.
            self.is_open |= word.text.replace(mark, "").chars().any(|char| char != '}' && !is_plain(char));
            word.certainty = Certainty::OneWord;
        }
        self.words.push(word);
    }
}

/// Returns whether an unknown word is certainly an argument: it contains a placeholder, and it is not the command.
pub(super) fn is_argument(before: &Word, word: &Word) -> bool {
    let is_filled = word.certainty == Certainty::OneWord && !word.text.contains(['$', '`', '<']);
    is_filled && (before.text == "-I" || !before.text.starts_with('-'))
}

fn is_filling(name: &str) -> bool {
    APPENDING.contains(&name) || name == "find"
}

/// Returns the placeholder that such a program replaces in its arguments.
fn mark(name: &str, args: &[Word]) -> Option<String> {
    if !name.ends_with("xargs") {
        return Some("{".to_owned());
    }
    let mut args = args.iter().map(|word| word.text.as_str());
    while let Some(arg) = args.next() {
        if let Some(mark) = arg.strip_prefix("-I").or_else(|| arg.strip_prefix("--replace=")) {
            return Some(if mark.is_empty() { args.next()? } else { mark }.to_owned());
        }
        if let Some(mark) = arg.strip_prefix("-i") {
            return Some(if mark.is_empty() { "{}" } else { mark }.to_owned());
        }
        if arg == "--replace" {
            return Some("{}".to_owned());
        }
    }
    None
}

fn is_parallel(name: &str) -> bool {
    ["env_parallel", "parallel", "sem"].contains(&name)
}

/// Returns whether the appended words may be the command: for `parallel` without a command, and after a program that
/// runs its arguments.
fn is_open(name: &str, args: &[Word]) -> bool {
    let args = match args.iter().position(|word| EXEC.contains(&word.text.as_str())) {
        Some(at) => &args[at + 1..],
        // Without such an option `fd` runs nothing.
        None if name.starts_with("fd") => return false,
        None => args,
    };
    for (at, word) in args.iter().enumerate() {
        if word.text.starts_with('-') {
            continue;
        }
        if is_runner(word) && !ends_with_program(&args[at + 1..]) {
            return true;
        }
        // A word after an option may be its value. A word after another program is an argument of that program.
        if ends_with_program(&args[..=at]) && !is_runner(word) {
            return false;
        }
    }
    is_parallel(name) && !ends_with_program(args)
}

/// Returns whether the words contain a program after another one, so that all following words are its arguments.
fn ends_with_program(args: &[Word]) -> bool {
    (0..args.len()).any(|at| {
        let text = args[at].text.as_str();
        let before = at.checked_sub(1).map_or("", |before| args[before].text.as_str());
        // The value of an option looks like a program, but is none, except after `-c`. Options such as `-n1` contain
        // their value.
        let has_value = before.ends_with(|end: char| end == 'c' || end.is_ascii_digit());
        let is_of_option = before.starts_with('-') && !has_value;
        !text.is_empty() && !text.starts_with('-') && !is_of_option && !is_value(text) && !is_assignment(text)
    })
}

/// Returns whether a word is a number or a duration.
pub(super) fn is_value(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_digit())
        && text.chars().all(|char| char.is_ascii_digit() || ".smhd".contains(char))
}

/// Returns whether a word assigns a variable.
pub(super) fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_variable(name))
}
