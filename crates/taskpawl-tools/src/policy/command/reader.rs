//! Splits a line into words and commands, approximately as a shell does.

use std::iter::Peekable;
use std::str::Chars;

use super::document::{Document, body};
use super::syntax::{DEPTH, KEYWORDS, is_variable};
use super::{Certainty, Word};

/// Unread characters of a line.
pub(super) type Rest<'a> = Peekable<Chars<'a>>;

/// Terminator of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    /// End of the text.
    #[default]
    Text,
    /// `)` of a substitution.
    Paren,
    /// `)` of a possible arithmetic expression, as in `$((1<<2))`, which has neither here-documents nor comments.
    Sum,
    /// `}` of a parameter expansion, whose words are no commands.
    Brace,
    /// The same within double quotes. There `'` is a quote in some positions and a plain character in others.
    QuotedBrace,
}

impl End {
    fn is_brace(self) -> bool {
        matches!(self, Self::Brace | Self::QuotedBrace)
    }
}

/// Properties of the current word.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// The word is the target of a redirection.
    is_target: bool,
    /// A part of the word is quoted, so that it is no keyword.
    has_quotes: bool,
}

/// Reads a line approximately as a shell does. In doubt it finds too many commands rather than too few.
#[derive(Default)]
pub(super) struct Reader {
    words: Vec<Word>,
    word: Option<Word>,
    /// Words of each command.
    pub(super) pieces: Vec<Vec<Word>>,
    /// Texts that are not part of the line, but may be a line for the program that reads them: here-documents.
    pub(super) inner: Vec<String>,
    /// Set if the line is unterminated, nested too deeply, or read differently by different shells.
    pub(super) is_doubtful: bool,
    depth: usize,
    end: End,
    has_at: bool,
    marks: Marks,
    /// Positions where another command begins for shells that read `&>` as two operators.
    forks: Vec<usize>,
    parens: usize,
    cases: usize,
    documents: Vec<Document>,
}

impl Reader {
    /// Reads a whole line that is nested in `depth` others.
    pub(super) fn of(line: &str, depth: usize) -> Self {
        let mut reader = Self { depth, ..Self::default() };
        reader.read(&mut line.chars().peekable());
        reader
    }

    fn read(&mut self, chars: &mut Rest<'_>) {
        if self.depth > DEPTH {
            // Such deep nesting hides something.
            self.is_doubtful = true;
            return chars.by_ref().for_each(drop);
        }
        while let Some(char) = chars.next() {
            if self.is_closed_by(char) {
                return self.cut();
            }
            self.take(chars, char);
        }
        self.is_doubtful |= self.end != End::Text;
        self.cut();
    }

    /// Returns whether a character ends the reader. A `)` may also end a pattern of `case`, or a subshell.
    fn is_closed_by(&mut self, char: char) -> bool {
        match (self.end, char) {
            (End::Brace | End::QuotedBrace, '}') => true,
            (End::Paren | End::Sum, ')') => {
                self.cut();
                self.parens == 0 && self.cases == 0
            }
            _ => false,
        }
    }

    fn take(&mut self, chars: &mut Rest<'_>, char: char) {
        match char {
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(char) => {
                    self.marks.has_quotes = true;
                    self.push(char);
                }
            },
            '\'' if self.end == End::QuotedBrace => {
                self.is_doubtful = true;
                self.push(char);
            }
            '\'' => self.single(chars),
            '"' => self.double(chars),
            '$' if chars.next_if_eq(&'\'').is_some() => self.escaped(chars),
            '$' | '`' => self.dollar(chars, char, Certainty::AnyWords),
            '#' if self.word.is_none() && !self.end.is_brace() && self.end != End::Sum => {
                while chars.next_if(|char| *char != '\n').is_some() {}
            }
            '[' if self.word.is_none() && is_test(chars) => {
                self.push(char);
                if chars.next_if_eq(&'[').is_some() {
                    self.push('[');
                }
            }
            // `~` is only expanded at the start of a word or after `:` and `=`: `HEAD~1` is literal.
            '~' if self
                .word
                .as_ref()
                .is_some_and(|word| !word.text.is_empty() && !word.text.ends_with([':', '='])) =>
            {
                self.push(char);
            }
            '*' | '?' | '[' | '~' => {
                self.push(char);
                self.raise(Certainty::AnyWords);
            }
            // A pair such as `{}` is literal for the shell: it is the placeholder of `find`.
            '{' if !self.end.is_brace() && is_literal_pair(chars, self.word.as_ref()) => {
                self.push('{');
                while let Some(char) = chars.next_if(|char| *char != '}') {
                    self.push(char);
                }
                self.push('}');
                chars.next();
            }
            '{' | '}' if self.word.is_some() || chars.peek().is_some_and(|next| !is_end(*next)) => {
                self.push(char);
                self.raise(Certainty::AnyWords);
            }
            '<' | '>' => self.redirect(chars, char),
            '&' if chars.peek() == Some(&'>') => {
                self.end_word();
                self.forks.push(self.words.len());
            }
            '(' => self.open(chars),
            ')' => {
                self.cut();
                self.parens = self.parens.saturating_sub(1);
            }
            '\n' => {
                self.cut();
                self.take_documents(chars);
            }
            ';' | '&' | '|' | '{' | '}' => self.cut(),
            ' ' | '\t' => self.end_word(),
            // Shells do not treat other white space as a blank, so that `#` begins no comment after it; terminals and
            // people do. The empty word in front keeps this reader from taking such a `#` for a comment.
            char if char.is_whitespace() => {
                // To a reader a carriage return looks like the end of a line, so that a command may begin after it.
                if char == '\r' {
                    self.cut();
                }
                self.end_word();
                self.word = Some(Word::literal(""));
            }
            char => self.push(char),
        }
    }

    fn push(&mut self, char: char) {
        self.has_at |= char == '@';
        self.word.get_or_insert_with(|| Word::literal("")).text.push(char);
    }

    fn raise(&mut self, certainty: Certainty) {
        let word = self.word.get_or_insert_with(|| Word::literal(""));
        if word.certainty != Certainty::AnyWords {
            word.certainty = certainty;
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let Marks { is_target, has_quotes } = std::mem::take(&mut self.marks);
        if is_target {
            return;
        }
        match word.text.as_str() {
            "case" if !has_quotes && self.words.iter().all(|word| KEYWORDS.contains(&word.text.as_str())) => {
                self.cases += 1;
            }
            "esac" if !has_quotes && self.words.is_empty() => self.cases = self.cases.saturating_sub(1),
            _ => {}
        }
        self.words.push(word);
    }

    fn cut(&mut self) {
        self.end_word();
        self.marks = Marks::default();
        let forks = std::mem::take(&mut self.forks);
        let words = std::mem::take(&mut self.words);
        if words.is_empty() {
            return;
        }
        if self.end.is_brace() {
            return self.pieces.extend(default_of(&words).map(|word| vec![word]));
        }
        // So many forks hide something.
        self.is_doubtful |= forks.len() > DEPTH;
        let others = forks.into_iter().take(DEPTH).map(|fork| words[fork..].to_vec());
        self.pieces.extend(others.filter(|words| !words.is_empty()));
        self.pieces.push(words);
    }

    fn single(&mut self, chars: &mut Rest<'_>) {
        self.marks.has_quotes = true;
        self.word.get_or_insert_with(|| Word::literal(""));
        for char in chars.by_ref() {
            if char == '\'' {
                return;
            }
            self.push(char);
        }
        self.is_doubtful = true;
    }

    fn double(&mut self, chars: &mut Rest<'_>) {
        self.marks.has_quotes = true;
        self.word.get_or_insert_with(|| Word::literal(""));
        while let Some(char) = chars.next() {
            match char {
                '"' => return,
                '\\' => match chars.next() {
                    Some('\n') | None => {}
                    Some(char) => self.push(char),
                },
                '$' | '`' => self.dollar(chars, char, Certainty::OneWord),
                char => self.push(char),
            }
        }
        self.is_doubtful = true;
    }

    /// Reads `$'…'`, text with escapes that are not interpreted here. Shells without this syntax see a `'…'` that is
    /// closed by `\'`.
    fn escaped(&mut self, chars: &mut Rest<'_>) {
        self.push('$');
        self.raise(Certainty::AnyWords);
        while let Some(char) = chars.next() {
            match char {
                '\'' => return,
                '\\' => self.is_doubtful |= chars.next() == Some('\''),
                _ => {}
            }
        }
        self.is_doubtful = true;
    }

    /// Reads an expansion. Commands within it are collected separately.
    fn dollar(&mut self, chars: &mut Rest<'_>, first: char, certainty: Certainty) {
        self.push(first);
        let next = chars.peek().copied();
        let is_alone = first == '$'
            && next.is_none_or(|next| !next.is_alphanumeric() && !"_({'\"@*#?-$!`".contains(next));
        if is_alone {
            return;
        }
        self.raise(certainty);
        let is_quoted = certainty == Certainty::OneWord;
        if first == '`' {
            let text = self.ticked(chars, is_quoted);
            self.absorb(Self::of(&text, self.depth + 1));
        } else if chars.next_if_eq(&'(').is_some() {
            let end = if chars.peek() == Some(&'(') { End::Sum } else { End::Paren };
            self.nest(chars, end);
        } else if let Some(name) = name_ahead(chars) {
            self.take_name(chars, &name, is_quoted);
        } else if chars.next_if_eq(&'{').is_some() {
            if self.nest(chars, if is_quoted { End::QuotedBrace } else { End::Brace }) {
                self.raise(Certainty::AnyWords);
            }
        } else if next == Some('@') {
            // `"$@"` expands to any number of words even in quotes.
            self.raise(Certainty::AnyWords);
        }
    }

    /// Reads the name of a variable. Outside of quotes a second `$` in the text marks that the following characters are
    /// not part of the name.
    fn take_name(&mut self, chars: &mut Rest<'_>, name: &str, is_quoted: bool) {
        let has_braces = chars.next_if_eq(&'{').is_some();
        for char in chars.by_ref().take(name.len() + usize::from(has_braces)) {
            if char != '}' {
                self.push(char);
            }
        }
        let goes_on = |next: &char| matches!(next, '\'' | '"' | '\\') || is_of_name(*next);
        if !is_quoted && chars.peek().is_some_and(goes_on) {
            self.push('$');
        }
    }

    /// Reads with a nested reader up to its terminator; returns whether it read an `@`.
    fn nest(&mut self, chars: &mut Rest<'_>, end: End) -> bool {
        let mut inner = Self { depth: self.depth + 1, end, ..Self::default() };
        inner.read(chars);
        let has_at = inner.has_at;
        self.absorb(inner);
        has_at
    }

    fn absorb(&mut self, inner: Self) {
        self.pieces.extend(inner.pieces);
        self.inner.extend(inner.inner);
        self.is_doubtful |= inner.is_doubtful;
    }

    /// Reads the text between backticks, in which some characters are escaped.
    fn ticked(&mut self, chars: &mut Rest<'_>, is_quoted: bool) -> String {
        let mut text = String::new();
        while let Some(char) = chars.next() {
            match char {
                '`' => return text,
                '\\' => match chars.next() {
                    Some(char @ ('`' | '\\' | '$')) => text.push(char),
                    Some('"') if is_quoted => text.push('"'),
                    next => text.extend(std::iter::once('\\').chain(next)),
                },
                char => text.push(char),
            }
        }
        self.is_doubtful = true;
        text
    }

    /// Reads a `(`: of a subshell, an arithmetic expression, a function, or a pattern such as `@(a|b)`, which some
    /// shells support.
    fn open(&mut self, chars: &mut Rest<'_>) {
        if self.word.as_ref().is_some_and(|word| word.text.ends_with(['@', '+', '!'])) {
            self.raise(Certainty::AnyWords);
        }
        let is_first = self.word.is_none() && self.words.is_empty();
        self.cut();
        if is_first && chars.peek() == Some(&'(') {
            self.nest(chars, End::Sum);
        } else {
            self.parens += 1;
        }
    }

    /// Reads a redirection; its target is no argument.
    fn redirect(&mut self, chars: &mut Rest<'_>, char: char) {
        let is_substitution = chars.peek() == Some(&'(');
        if !is_substitution && (self.end == End::Sum || self.end.is_brace()) {
            return self.push(char);
        }
        // A number in front of the operator is a file descriptor, not a word.
        let is_number = |text: &str| !text.is_empty() && text.chars().all(|char| char.is_ascii_digit());
        if is_substitution {
            chars.next();
            self.nest(chars, End::Paren);
            "<()".chars().for_each(|char| self.push(char));
            return self.raise(Certainty::OneWord);
        }
        if self.word.as_ref().is_some_and(|word| is_number(&word.text)) {
            self.word = None;
            self.marks = Marks::default();
        }
        self.end_word();
        if char == '<' && chars.next_if_eq(&'<').is_some() && chars.next_if_eq(&'<').is_none() {
            return self.documents.push(Document::named(chars));
        }
        let operator = chars.next_if(|next| matches!(next, '&' | '|' | '>'));
        // `>&-` closes a descriptor and has no target.
        let is_closing = operator == Some('&') && chars.next_if_eq(&'-').is_some();
        self.marks.is_target = !is_closing;
    }

    /// Reads the here-documents that the previous line started. Their text is inspected as if it were commands, for
    /// expansions in it run and its reader may be a shell.
    fn take_documents(&mut self, chars: &mut Rest<'_>) {
        for document in std::mem::take(&mut self.documents) {
            let (text, is_ended) = body(chars, &document);
            self.is_doubtful |= !is_ended;
            if !document.is_literal {
                let mut inner = Self { depth: self.depth + 1, ..Self::default() };
                inner.expand(&mut text.chars().peekable());
                self.absorb(inner);
            }
            self.inner.push(text);
        }
    }

    /// Reads text in which only expansions matter.
    fn expand(&mut self, chars: &mut Rest<'_>) {
        while let Some(char) = chars.next() {
            match char {
                '\\' => drop(chars.next()),
                '$' | '`' => self.dollar(chars, char, Certainty::OneWord),
                _ => {}
            }
        }
    }
}

/// Returns whether a `[` is the command of that name, or begins the keyword `[[`.
fn is_test(chars: &Rest<'_>) -> bool {
    let mut ahead = chars.clone();
    ahead.next_if_eq(&'[');
    ahead.peek().is_some_and(|next| next.is_whitespace())
}

/// Returns whether a pair of braces is literal, after its first brace was read: `{}`, `{1}`, `{/.}`, `@{1}`,
/// `@{upstream}`.
fn is_literal_pair(chars: &Rest<'_>, before: Option<&Word>) -> bool {
    let inner: String = chars.clone().take(WITHIN_BRACES).take_while(|char| *char != '}').collect();
    let is_of_git = before.is_some_and(|word| word.text.ends_with('@'));
    let is_mark = |char: char| char.is_ascii_digit() || matches!(char, '.' | '/' | '-' | '+');
    chars.clone().nth(inner.chars().count()) == Some('}')
        && !inner.contains("..")
        && inner.chars().all(|char| is_mark(char) || (is_of_git && char.is_ascii_alphabetic()))
}

/// Maximum of characters between literal braces.
const WITHIN_BRACES: usize = 16;

/// Returns the name of a variable, with or without braces, if nothing else is between the braces.
fn name_ahead(chars: &Rest<'_>) -> Option<String> {
    let mut ahead = chars.clone();
    let has_braces = ahead.next_if_eq(&'{').is_some();
    let name: String = std::iter::from_fn(|| ahead.next_if(|char| is_of_name(*char))).collect();
    let is_whole = !has_braces || ahead.next_if_eq(&'}').is_some();
    (is_whole && is_variable(&name)).then_some(name)
}

fn is_of_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// Returns the variable that an expansion such as `${NAME:=VALUE}` sets; its value is treated as unknown.
fn default_of(words: &[Word]) -> Option<Word> {
    let (name, _) = words.first()?.text.split_once('=')?;
    let name = name.strip_suffix(':').unwrap_or(name);
    is_variable(name).then(|| Word { text: format!("{name}="), certainty: Certainty::AnyWords })
}

/// Returns whether a word ends in front of this character.
fn is_end(char: char) -> bool {
    char.is_whitespace() || matches!(char, ';' | '&' | '|' | '(' | ')' | '<' | '>')
}
