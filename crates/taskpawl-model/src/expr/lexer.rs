//! The lexer: words, literals and signs.

use serde_json::{Number, Value};

use super::error::{ExprFault, Fault};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) what: Lexeme,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Lexeme {
    Word(String),
    Literal(Value),
    Sign(&'static str),
    End,
}

/// Longer signs come first, so that `==` is not read as two `=`.
const SIGNS: [&str; 31] = [
    "==", "!=", "<=", ">=", "//", "**", "&&", "||", "(", ")", "[", "]", "{", "}", ",", ":", ".", "|", "+",
    "-", "*", "/", "%", "~", "<", ">", "=", "?", "!", "&", ";",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new() };
    loop {
        lexer.skip_blanks();
        let start = lexer.at;
        let what = lexer.next()?;
        let is_end = what == Lexeme::End;
        lexer.tokens.push(Token { start, end: lexer.at, what });
        if is_end {
            return Ok(lexer.tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn next(&mut self) -> Result<Lexeme, Fault> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Lexeme::End) };
        if first.is_ascii_alphabetic() || first == '_' {
            return Ok(Lexeme::Word(self.take(|c| c.is_ascii_alphanumeric() || c == '_').to_owned()));
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if matches!(first, '\'' | '"') {
            return self.quoted(first);
        }
        let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) else {
            return Err(Fault::new(self.at, ExprFault::Character { found: first }));
        };
        self.at += sign.len();
        Ok(Lexeme::Sign(sign))
    }

    fn take(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !keep(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Reads a number. After a dot it is an index without a fraction: `a.0.1` means `a[0][1]`.
    fn number(&mut self) -> Result<Lexeme, Fault> {
        let start = self.at;
        let after_dot =
            self.tokens.last().is_some_and(|last| last.what == Lexeme::Sign(".") && last.end == start);
        self.take(|c| c.is_ascii_digit());
        if !after_dot {
            self.fraction();
        }
        let text = &self.text[start..self.at];
        let glued = self.rest().starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let number = if glued { None } else { text.parse::<Number>().ok() };
        let fault = || {
            let shown = format!(
                "{text}{}",
                self.rest().chars().next().filter(|_| glued).map_or(String::new(), String::from)
            );
            Fault::new(start, ExprFault::Number { text: shown })
        };
        // A whole number that only fits a float would lose digits, so it is refused.
        number
            .filter(|number| !text.bytes().all(|b| b.is_ascii_digit()) || !number.is_f64())
            .map(|n| Lexeme::Literal(Value::Number(n)))
            .ok_or_else(fault)
    }

    /// Reads a fraction and an exponent, if a digit follows the point or the `e`.
    fn fraction(&mut self) {
        let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        if self.rest().strip_prefix('.').is_some_and(digit) {
            self.at += 1;
            self.take(|c| c.is_ascii_digit());
        }
        let exponent = self.rest().strip_prefix(['e', 'E']);
        if exponent.is_some_and(|rest| digit(rest.strip_prefix(['+', '-']).unwrap_or(rest))) {
            self.at += 2;
            self.take(|c| c.is_ascii_digit());
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Lexeme, Fault> {
        let start = self.at;
        let mut text = String::new();
        self.at += 1;
        while let Some(character) = self.rest().chars().next() {
            if character == '\\' {
                let escape = || ExprFault::Escape { text: self.rest().chars().take(2).collect() };
                let (character, length) =
                    unescaped(self.rest()).ok_or_else(|| Fault::new(self.at, escape()).hint(ESCAPES))?;
                text.push(character);
                self.at += length;
                continue;
            }
            self.at += character.len_utf8();
            if character == quote {
                return Ok(Lexeme::Literal(Value::String(text)));
            }
            text.push(character);
        }
        Err(Fault::new(start, ExprFault::UnclosedText).hint(format!("close it with `{quote}`")))
    }
}

const ESCAPES: &str =
    r#"escapes are `\n`, `\t`, `\r`, `\\`, `\'`, `\"` and `\u00e4`; write a backslash as `\\`"#;

/// Returns the character of an escape sequence and the length of the sequence.
fn unescaped(text: &str) -> Option<(char, usize)> {
    let simple = |character| Some((character, 2));
    match text.as_bytes().get(1)? {
        b'n' => simple('\n'),
        b't' => simple('\t'),
        b'r' => simple('\r'),
        b'0' => simple('\0'),
        b'\\' => simple('\\'),
        b'\'' => simple('\''),
        b'"' => simple('"'),
        b'/' => simple('/'),
        b'u' => {
            let code = u32::from_str_radix(text.get(2..6)?, 16).ok()?;
            Some((char::from_u32(code)?, 6))
        }
        _ => None,
    }
}
