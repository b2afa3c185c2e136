//! Aliases that a line defines for programs, and the commands that run through them.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::suspect::{Suspect, Suspicion};
use super::{Certainty, Word};

/// Maximum of words that are substituted before the line counts as hiding something.
const WORDS: usize = 100_000;

/// Maximum of passes over aliases that are defined by other aliases.
const ROUNDS: usize = 8;

/// Values of each alias; `None` is an unknown value.
type Aliases = HashMap<String, BTreeSet<Option<String>>>;

/// Adds the commands behind aliases, until a pass finds no new definition.
pub(super) fn expand(suspicion: &mut Suspicion) {
    let mut left = WORDS;
    let mut known = Aliases::new();
    for _ in 0..ROUNDS {
        let Some(aliases) = defined(&suspicion.found) else { return suspicion.add_unknown() };
        if aliases == known {
            return;
        }
        if expand_all(&aliases, suspicion, &mut left).is_none() {
            return suspicion.add_unknown();
        }
        known = aliases;
    }
    suspicion.add_unknown();
}

/// Substitutes aliases; `None` if the limit of words is exceeded. An alias is not substituted within its own value, as
/// in `alias ls='ls -l'`.
fn expand_all(aliases: &Aliases, suspicion: &mut Suspicion, left: &mut usize) -> Option<()> {
    let mut waiting: Vec<(usize, Vec<String>)> =
        (0..suspicion.found.len()).map(|index| (index, Vec::new())).collect();
    while let Some((index, names)) = waiting.pop() {
        let suspect = suspicion.found[index].clone();
        let Some((name, rest)) = suspect.words().split_first() else { continue };
        let Some(values) = aliases.get(&name.text).filter(|_| !names.contains(&name.text)) else { continue };
        let begin = suspicion.found.len();
        // As in a shell, a value that ends with a blank makes the next word subject to alias substitution, too.
        let goes_on = values.iter().flatten().any(|value| value.ends_with([' ', '\t']));
        if goes_on && rest.first().is_some_and(|next| aliases.contains_key(&next.text)) {
            suspicion.add_unknown();
        }
        for value in values {
            *left = left.checked_sub(rest.len() + 1)?;
            match value {
                Some(value) => suspicion.read_before(value, rest, 0),
                None => suspicion.add_unknown(),
            }
        }
        let names: Vec<String> = names.iter().chain([&name.text]).cloned().collect();
        waiting.extend((begin..suspicion.found.len()).map(|index| (index, names.clone())));
    }
    Some(())
}

/// Returns all defined aliases; `None` if the name of one is unknown.
fn defined(suspects: &[Suspect]) -> Option<Aliases> {
    let mut aliases = Aliases::new();
    let mut read = HashSet::new();
    for suspect in suspects {
        let Some((program, args)) = suspect.words().split_first() else { continue };
        match program.text.as_str() {
            // Several suspects can be suffixes of one list of words, which define the same aliases.
            "alias" if read.insert(suspect.list()) => {
                for word in args {
                    if let Some((name, value)) = alias(word)? {
                        aliases.entry(name).or_default().insert(value);
                    }
                }
                aliases.extend(alias_of_words(args));
            }
            "hash" => {
                for (name, value) in hashed(args) {
                    aliases.entry(name).or_default().insert(value);
                }
            }
            _ => {}
        }
    }
    Some(aliases)
}

/// Parses the form of `fish` and `csh`: `alias NAME COMMAND`.
fn alias_of_words(args: &[Word]) -> Option<(String, BTreeSet<Option<String>>)> {
    let (name, command) = args.split_first().filter(|(_, command)| !command.is_empty())?;
    if args.iter().any(|word| word.text.contains('=') || word.text.starts_with('-')) {
        return None;
    }
    let is_literal = command.iter().all(|word| word.certainty == Certainty::Literal);
    let texts: Vec<&str> = command.iter().map(|word| word.text.as_str()).collect();
    Some((name.text.clone(), BTreeSet::from([is_literal.then(|| texts.join(" "))])))
}

/// Parses `hash -p FILE NAME…`, and `hash NAME=FILE` of zsh.
fn hashed(args: &[Word]) -> Vec<(String, Option<String>)> {
    let literal = |word: &Word, text: &str| (word.certainty == Certainty::Literal).then(|| text.to_owned());
    let is_option = |word: &Word| word.text.starts_with('-') && word.text.contains('p');
    let Some(at) = args.iter().position(is_option) else {
        let pairs = args.iter().filter_map(|word| Some((word, word.text.split_once('=')?)));
        return pairs.map(|(word, (name, file))| (name.to_owned(), literal(word, file))).collect();
    };
    let glued = args[at].text.split_once('p').map_or("", |(_, file)| file);
    let (file, names) = match &args[at + 1..] {
        names if !glued.is_empty() => (literal(&args[at], glued), names),
        [file, names @ ..] => (literal(file, &file.text), names),
        [] => return Vec::new(),
    };
    names.iter().map(|name| (name.text.clone(), file.clone())).collect()
}

/// Parses `NAME=VALUE`. The outer `None` is an unknown name; the inner one is a word that defines nothing.
#[expect(clippy::option_option, reason = "nothing and nothing known are two things")]
fn alias(word: &Word) -> Option<Option<(String, Option<String>)>> {
    let is_literal = word.certainty == Certainty::Literal;
    match word.text.split_once('=') {
        Some((name, value)) if is_literal => Some(Some((name.to_owned(), Some(value.to_owned())))),
        Some((name, _)) if !name.contains(['$', '`', '*', '?', '[', '{', '~']) => {
            Some(Some((name.to_owned(), None)))
        }
        None if is_literal => Some(None),
        Some(_) | None => None,
    }
}
