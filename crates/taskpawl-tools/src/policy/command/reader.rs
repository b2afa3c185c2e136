//! Words and pieces of a line, as a shell reads it, roughly.

use std::iter::Peekable;
use std::str::Chars;

use super::document::{Document, body};
use super::{Certainty, DEPTH, KEYWORDS, Word, is_variable};

/// The characters of a line that are not read yet.
pub(super) type Rest<'a> = Peekable<Chars<'a>>;

/// Where a reader stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    /// At the end of the text.
    #[default]
    Text,
    /// At the `)` of a substitution.
    Paren,
    /// At the `)` of what may be a sum, as in `$((1<<2))`: it has neither here-documents nor comments.
    Sum,
    /// At the `}` of an expansion, whose words are no commands.
    Brace,
    /// The same within quotes: then `'` is a character in one place and a quote in another.
    QuotedBrace,
}

impl End {
    fn is_brace(self) -> bool {
        matches!(self, Self::Brace | Self::QuotedBrace)
    }
}

/// What is known of the word that is being read.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// It is the target of a redirection.
    is_target: bool,
    /// Something of it is in quotes, so that it is no keyword.
    has_quotes: bool,
}

/// Reads a line as a shell would, roughly, and rather finds too many commands than too few.
#[derive(Default)]
pub(super) struct Reader {
    words: Vec<Word>,
    word: Option<Word>,
    /// The words of each command.
    pub(super) pieces: Vec<Vec<Word>>,
    /// What is no line of this one, and may be one for whoever gets it: here-documents.
    pub(super) inner: Vec<String>,
    /// The line is not closed, is nested too deeply, or says one thing to one shell and another to another.
    pub(super) is_doubtful: bool,
    depth: usize,
    end: End,
    has_at: bool,
    marks: Marks,
    /// Where other commands begin for shells that read `&>` as two operators.
    forks: Vec<usize>,
    parens: usize,
    cases: usize,
    documents: Vec<Document>,
}

impl Reader {
    /// Reads a line to its end that stands in `depth` others.
    pub(super) fn of(line: &str, depth: usize) -> Self {
        let mut reader = Self { depth, ..Self::default() };
        reader.read(&mut line.chars().peekable());
        reader
    }

    fn read(&mut self, chars: &mut Rest<'_>) {
        if self.depth > DEPTH {
            // Nobody nests so deep who does not hide something.
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

    /// Returns whether a character ends what is read. A `)` may also end a pattern of `case`, or a subshell.
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
            // In front of a user or a path alone: `HEAD~1` is itself.
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
            // Nothing is expanded there: `find` puts what it finds in its place.
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
            // No shell sees a blank there, so that `#` begins no comment behind it; terminals and people do.
            char if char.is_whitespace() => {
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
        // More of them than anybody writes hide something.
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

    /// Takes `$'…'`: text with escapes that are not read here. Shells that do not know it see a `'` closed by `\'`.
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

    /// Takes an expansion; a command in it is looked at for itself.
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
            // In quotes, too, it is all arguments, each for itself.
            self.raise(Certainty::AnyWords);
        }
    }

    /// Takes the name of a variable. Outside of quotes a second `$` says that what follows is not of the name.
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

    /// Reads on with another reader to where that ends; returns whether there was an `@` in what it read.
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

    /// Takes what stands between backticks, in which some characters are escaped.
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

    /// Takes a `(`: of a subshell, of a sum, of a function, or of a pattern such as `@(a|b)`, which some shells know.
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

    /// Takes a redirection, whose target is no argument.
    fn redirect(&mut self, chars: &mut Rest<'_>, char: char) {
        let is_substitution = chars.peek() == Some(&'(');
        if !is_substitution && (self.end == End::Sum || self.end.is_brace()) {
            return self.push(char);
        }
        // The number in front of it belongs to it.
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
        // `>&-` closes: nothing follows.
        let is_closing = operator == Some('&') && chars.next_if_eq(&'-').is_some();
        self.marks.is_target = !is_closing;
    }

    /// Takes the here-documents that were named in the line before. They are looked at as if they were commands; what is expanded in
    /// them runs.
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

    /// Reads text in which nothing counts but expansions.
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

/// Returns whether a `[` is the command of that name, or the keyword `[[`.
fn is_test(chars: &Rest<'_>) -> bool {
    let mut ahead = chars.clone();
    ahead.next_if_eq(&'[');
    ahead.peek().is_some_and(|next| next.is_whitespace())
}

/// Returns whether a pair of braces is itself, of which the first is taken: `{}`, `{1}`, `{/.}`, `@{1}`, `@{upstream}`.
fn is_literal_pair(chars: &Rest<'_>, before: Option<&Word>) -> bool {
    let inner: String = chars.clone().take(WITHIN_BRACES).take_while(|char| *char != '}').collect();
    let is_of_git = before.is_some_and(|word| word.text.ends_with('@'));
    let is_mark = |char: char| char.is_ascii_digit() || matches!(char, '.' | '/' | '-' | '+');
    chars.clone().nth(inner.chars().count()) == Some('}')
        && !inner.contains("..")
        && inner.chars().all(|char| is_mark(char) || (is_of_git && char.is_ascii_alphabetic()))
}

/// How many characters may stand between braces that are themselves.
const WITHIN_BRACES: usize = 16;

/// Returns the name of the variable that stands there, in braces or without, and nothing else with it.
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

/// Returns the variable that an expansion sets, as `${NAME:=VALUE}` does, of which the value is not read.
fn default_of(words: &[Word]) -> Option<Word> {
    let (name, _) = words.first()?.text.split_once('=')?;
    let name = name.strip_suffix(':').unwrap_or(name);
    is_variable(name).then(|| Word { text: format!("{name}="), certainty: Certainty::AnyWords })
}

/// Returns whether a word ends before this.
fn is_end(char: char) -> bool {
    char.is_whitespace() || matches!(char, ';' | '&' | '|' | '(' | ')' | '<' | '>')
}
