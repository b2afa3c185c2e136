//! Words and pieces of a line, as a shell reads it, roughly.

use super::{Certainty, Word};

/// Reads a line as a shell would, roughly, and rather finds too many commands than too few.
#[derive(Default)]
pub(super) struct Reader {
    words: Vec<Word>,
    word: Option<Word>,
    /// The words of each command.
    pub(super) pieces: Vec<Vec<Word>>,
    /// Command lines inside: substitutions.
    pub(super) inner: Vec<String>,
}

impl Reader {
    /// Reads a line to its end.
    pub(super) fn of(line: &str) -> Self {
        let mut reader = Self::default();
        reader.read(line);
        reader
    }

    fn read(&mut self, line: &str) {
        let mut chars = line.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                '\\' => match chars.next() {
                    Some('\n') | None => {}
                    Some(char) => self.push(char),
                },
                '\'' => self.single(&mut chars),
                '"' => self.double(&mut chars),
                '$' | '`' => self.dollar(&mut chars, char, Certainty::AnyWords),
                '*' | '?' | '[' | '~' => {
                    self.push(char);
                    self.raise(Certainty::AnyWords);
                }
                '{' | '}' if self.word.is_some() || chars.peek().is_some_and(|next| !is_end(*next)) => {
                    self.push(char);
                    self.raise(Certainty::AnyWords);
                }
                '<' | '>' => self.redirect(&mut chars),
                ';' | '&' | '|' | '\n' | '\r' | '(' | ')' | '{' | '}' => self.cut(),
                char if char.is_whitespace() => self.end_word(),
                char => self.push(char),
            }
        }
        self.cut();
    }

    fn push(&mut self, char: char) {
        self.word.get_or_insert_with(|| Word::literal("")).text.push(char);
    }

    fn raise(&mut self, certainty: Certainty) {
        let word = self.word.get_or_insert_with(|| Word::literal(""));
        if word.certainty != Certainty::AnyWords {
            word.certainty = certainty;
        }
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn cut(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.pieces.push(std::mem::take(&mut self.words));
        }
    }

    fn single(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        self.word.get_or_insert_with(|| Word::literal(""));
        for char in chars.by_ref().take_while(|char| *char != '\'') {
            self.push(char);
        }
    }

    fn double(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        self.word.get_or_insert_with(|| Word::literal(""));
        while let Some(char) = chars.next() {
            match char {
                '"' => return,
                '\\' => {
                    if let Some(char) = chars.next() {
                        self.push(char);
                    }
                }
                '$' | '`' => self.dollar(chars, char, Certainty::OneWord),
                char => self.push(char),
            }
        }
    }

    /// Takes an expansion; a command in it is looked at for itself.
    fn dollar(
        &mut self,
        chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
        first: char,
        certainty: Certainty,
    ) {
        self.push(first);
        let next = chars.peek().copied();
        // `$'…'` is text with escapes that are not read here.
        let is_alone = first == '$'
            && next.is_none_or(|next| !next.is_alphanumeric() && !"_({'\"@*#?-$!`".contains(next));
        if is_alone {
            return;
        }
        self.raise(certainty);
        if first == '`' {
            let text: String = chars.by_ref().take_while(|char| *char != '`').collect();
            self.inner.push(text.replace("\\`", "`"));
        } else if chars.next_if_eq(&'(').is_some() {
            self.inner.push(until_closed(chars, '(', ')'));
        } else if chars.next_if_eq(&'{').is_some() {
            let inner = until_closed(chars, '{', '}');
            if inner.contains('@') {
                self.raise(Certainty::AnyWords);
            }
            self.inner.push(inner);
        } else if next == Some('@') {
            // In quotes, too, it is all arguments, each for itself.
            self.raise(Certainty::AnyWords);
        }
    }

    /// Skips the target of a redirection: it is no argument. What stands in a here-document is looked at as if it were commands.
    fn redirect(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        // The number in front of it belongs to it.
        if self.word.as_ref().is_some_and(|word| word.text.chars().all(|char| char.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        if chars.next_if_eq(&'(').is_some() {
            let inner = until_closed(chars, '(', ')');
            self.inner.push(inner);
            self.words.push(Word { text: "<()".to_owned(), certainty: Certainty::OneWord });
            return;
        }
        while chars.next_if(|char| matches!(char, '<' | '>' | '&' | '|' | '-' | ' ' | '\t')).is_some() {}
        let before = std::mem::take(&mut self.words);
        let mut text = String::new();
        while let Some(char) =
            chars.next_if(|char| !char.is_whitespace() && !matches!(char, ';' | '&' | '|' | '<' | '>' | ')'))
        {
            text.push(char);
            if char == '(' {
                text.push_str(&until_closed(chars, '(', ')'));
                text.push(')');
            } else if matches!(char, '\'' | '"' | '`') {
                text.extend(chars.by_ref().take_while(|next| *next != char));
                text.push(char);
            }
        }
        if let Some(inner) = text.strip_prefix('(') {
            self.inner.push(inner.to_owned());
        }
        self.inner.extend(Reader::of(&text).inner);
        self.words = before;
    }
}

/// Returns whether a word ends before this.
fn is_end(char: char) -> bool {
    char.is_whitespace() || matches!(char, ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

fn until_closed(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, open: char, close: char) -> String {
    let (mut depth, mut text) = (1, String::new());
    for char in chars.by_ref() {
        if char == open {
            depth += 1;
        } else if char == close {
            depth -= 1;
            if depth == 0 {
                break;
            }
        }
        text.push(char);
    }
    text
}
