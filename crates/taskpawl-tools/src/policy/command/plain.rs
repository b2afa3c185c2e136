//! Parser for lines that are understood completely, for rules that allow.
//!
//! Everything that is not simple makes the whole line unknown: an allow rule must never apply to a line that a shell
//! reads differently.

use super::plain_command::Plain;
use super::position::{Joint, settled};
use super::syntax::{KEYWORDS, is_plain, is_variable};

/// Text of a word, and whether a part of it is quoted.
type Part = (String, bool);

/// Parses a line of plain commands, joined by `&&`, `||`, `|`, `;`, `&` and line ends.
pub(super) fn plain(line: &str) -> Option<Vec<Plain>> {
    let (mut commands, mut joint) = (Vec::new(), Joint::Next);
    let (mut words, mut word) = (Vec::new(), None::<Part>);
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let quoted = quoted(&mut chars, char)?;
                let (text, is_quoted) = word.get_or_insert_default();
                text.push_str(&quoted);
                *is_quoted = true;
            }
            ';' | '&' | '|' | '\n' => {
                words.extend(word.take());
                let is_doubled = char != '\n' && char != ';' && chars.next_if_eq(&char).is_some();
                let next = Joint::of(char, is_doubled);
                let is_loose = matches!((char, is_doubled), ('&', false) | ('\n' | ';', _));
                match simple(std::mem::take(&mut words))? {
                    Some(command) => commands.push((std::mem::take(&mut joint), command)),
                    // An empty command is a syntax error, except in front of a line end.
                    None if char == '\n' => {}
                    None => return None,
                }
                // A line end after an operator, as in `a &&⏎b`, does not replace the operator.
                if char != '\n' || joint == Joint::Next {
                    joint = next;
                }
                // A joining operator needs a command after it. The command itself is checked in the next round.
                if !is_loose && chars.clone().all(char::is_whitespace) {
                    return None;
                }
            }
            _ if is_plain(char) => word.get_or_insert_default().0.push(char),
            _ => return None,
        }
    }
    words.extend(word);
    commands.extend(simple(words)?.map(|command| (joint, command)));
    (!commands.is_empty()).then(|| settled(commands))
}

fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, end: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match chars.next()? {
            char if char == end => return Some(text),
            // Double quotes still allow expansions and escapes; single quotes do not.
            '$' | '`' | '\\' if end == '"' => return None,
            char => text.push(char),
        }
    }
}

/// Parses one command with the variables in front of it; `Some(None)` if there is nothing.
#[expect(clippy::option_option, reason = "nothing and nothing plain are two things")]
fn simple(words: Vec<Part>) -> Option<Option<Plain>> {
    let (mut variables, mut argv) = (Vec::new(), Vec::new());
    for (word, is_quoted) in words {
        match word.split_once('=').filter(|_| argv.is_empty()) {
            // Quotes may make the word a program name, as in `"A=1" b`.
            Some((name, _)) if is_variable(name) && !is_quoted => variables.push(name.to_owned()),
            Some(_) => return None,
            None => argv.push(word),
        }
    }
    match argv.first() {
        None if variables.is_empty() => Some(None),
        // A bare assignment changes the variables of all following commands.
        None => None,
        Some(program) if program.is_empty() || KEYWORDS.contains(&program.as_str()) => None,
        Some(program) if ["for", "case", "function", "select", "in"].contains(&program.as_str()) => None,
        Some(_) => Some(Some(Plain::new(argv, variables))),
    }
}
