//! The parser: converts the text of an expression to a tree in which every name is known.

use serde_json::Value;
use taskpawl_text::nearest;

use super::ast::{Arguments, COMPARISON, Expr, Kind, MAX_BYTES, MAX_DEPTH, NOT, Name, Op};
use super::error::{ExprFault, Fault};
use super::lexer::{Lexeme, Token, tokens};
use super::say::shortened;
use super::typed::check_type;
use super::words::{self, Word};

/// A parsed expression, with its use of `raw`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parsed {
    pub(super) expr: Expr,
    /// The byte position of `raw`, if it is used.
    pub(super) raw: Option<usize>,
}

pub(super) fn parse(text: &str) -> Result<Parsed, Fault> {
    if text.len() > MAX_BYTES {
        return Err(Fault::new(0, ExprFault::TooLong { limit: MAX_BYTES }));
    }
    let mut parser = Parser { text, tokens: tokens(text)?, at: 0, depth: 0, raw: None };
    if *parser.peek() == Lexeme::End {
        return Err(Fault::new(0, ExprFault::Empty).hint("write a value, such as `params.name`"));
    }
    let expr = parser.ternary()?;
    if *parser.peek() != Lexeme::End {
        return Err(parser.unexpected("an operator or the end"));
    }
    let parsed = Parsed { expr, raw: parser.raw };
    refuse_inner_variable(&parsed)?;
    Ok(parsed)
}

/// Refuses to compute with an environment variable. Its value is inserted when the call starts, so that it is stored
/// nowhere; until then there is only a reference to it.
fn refuse_inner_variable(parsed: &Parsed) -> Result<(), Fault> {
    if parsed.raw.is_none() && parsed.variable().is_some() {
        return Ok(());
    }
    let mut found = None;
    parsed.expr.names(&mut |name, at| {
        if let Name::Variable(name) = name {
            found.get_or_insert((at, name.clone()));
        }
    });
    found.map_or(Ok(()), |(at, name)| {
        let hint = format!("write `${{{{ env.{name} }}}}`, with text around it where needed");
        Err(Fault::new(at, ExprFault::VariableInside { name }).hint(hint))
    })
}

impl Parsed {
    /// Returns the name if the expression is an environment variable.
    pub(super) fn variable(&self) -> Option<&str> {
        if let Kind::Name(Name::Variable(name)) = &self.expr.kind { Some(name) } else { None }
    }
}

type Parse<T> = Result<T, Fault>;

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    /// The current recursion depth of the functions below.
    depth: usize,
    raw: Option<usize>,
}

impl Parser<'_> {
    pub(super) fn token(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    pub(super) fn peek(&self) -> &Lexeme {
        &self.token().what
    }

    fn peek_second(&self) -> &Lexeme {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].what
    }

    /// Returns the end of the last token that was consumed.
    pub(super) fn last_end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |last| self.tokens[last].end)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Lexeme::Sign(found) if *found == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Lexeme::Word(found) if found == word)
    }

    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect(&mut self, sign: &str, expected: &'static str) -> Parse<()> {
        if self.eat(sign) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// Returns the error for an unexpected token.
    pub(super) fn unexpected(&self, expected: &'static str) -> Fault {
        let token = self.token();
        if let Lexeme::Sign(sign) = &token.what
            && let Some(hint) = foreign_operator(sign)
        {
            let fault = ExprFault::Operator { operator: (*sign).to_owned() };
            return Fault::new(token.start, fault).hint(hint);
        }
        let found = if token.what == Lexeme::End {
            "end".to_owned()
        } else {
            format!("`{}`", shortened(&self.text[token.start..token.end]))
        };
        Fault::new(token.start, ExprFault::Unexpected { found, expected })
    }

    /// Creates a node from `start` to the last consumed token.
    pub(super) fn node(&self, start: usize, below: &[&Expr], kind: Kind) -> Parse<Expr> {
        let depth = 1 + below.iter().map(|part| part.depth).max().unwrap_or(0);
        check_depth(depth, start)?;
        Ok(Expr { start, end: self.last_end(), depth, kind })
    }

    /// Runs a recursive reader within the depth limit.
    fn within<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.depth += 1;
        check_depth(self.depth, self.token().start)?;
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    /// Reads `value if condition else other`.
    pub(super) fn ternary(&mut self) -> Parse<Expr> {
        self.within(|parser| {
            let start = parser.token().start;
            let then = parser.binary(1)?;
            let at = parser.token().start;
            if !parser.eat_word("if") {
                return Ok(then);
            }
            let test = parser.binary(1)?;
            if !parser.eat_word("else") {
                return Err(
                    Fault::new(at, ExprFault::NoElse).hint("write `A if CONDITION else B`; `none` may be B")
                );
            }
            let otherwise = parser.ternary()?;
            let [then, test, otherwise] = [then, test, otherwise].map(Box::new);
            let below = [&*then, &*test, &*otherwise];
            let depth = 1 + below.iter().map(|part| part.depth).max().unwrap_or(0);
            check_depth(depth, start)?;
            let end = parser.last_end();
            Ok(Expr { start, end, depth, kind: Kind::If { test, then, otherwise } })
        })
    }

    fn binary(&mut self, least: u8) -> Parse<Expr> {
        let start = self.token().start;
        let mut left = if least <= NOT && self.is_word("not") { self.not()? } else { self.unary()? };
        while let Some((op, tokens)) = self.operator().filter(|(op, _)| op.precedence() >= least) {
            self.at += tokens;
            // One level more makes operators of the same level left-associative: `a - b - c` is `(a - b) - c`.
            let right = self.binary(op.precedence() + 1)?;
            let again = self.operator().filter(|_| op.precedence() == COMPARISON);
            if again.is_some_and(|(op, _)| op.precedence() == COMPARISON) {
                let fault = Fault::new(self.token().start, ExprFault::Chained);
                return Err(fault.hint("join them with `and`: `a < b and b < c`"));
            }
            let depth = 1 + left.depth.max(right.depth);
            check_depth(depth, start)?;
            let kind = Kind::Binary(op, Box::new(left), Box::new(right));
            left = Expr { start, end: self.last_end(), depth, kind };
        }
        Ok(left)
    }

    fn not(&mut self) -> Parse<Expr> {
        let start = self.token().start;
        self.advance();
        let of = self.within(|parser| parser.binary(NOT))?;
        self.over(start, of, Kind::Not)
    }

    /// Returns the operator at the current position and the number of its tokens.
    fn operator(&self) -> Option<(Op, usize)> {
        let one = |op| Some((op, 1));
        match self.peek() {
            Lexeme::Word(word) => match word.as_str() {
                "or" => one(Op::Or),
                "and" => one(Op::And),
                "in" => one(Op::In),
                "not" if matches!(self.peek_second(), Lexeme::Word(word) if word == "in") => {
                    Some((Op::NotIn, 2))
                }
                _ => None,
            },
            Lexeme::Sign(sign) => sign_operator(sign).map(|op| (op, 1)),
            Lexeme::Literal(_) | Lexeme::End => None,
        }
    }

    fn unary(&mut self) -> Parse<Expr> {
        let start = self.token().start;
        let value = self.signed()?;
        self.filters(start, value)
    }

    fn signed(&mut self) -> Parse<Expr> {
        let start = self.token().start;
        if !self.eat("-") {
            let value = self.primary()?;
            return self.postfix(start, value);
        }
        let of = self.within(Self::signed)?;
        self.over(start, of, Kind::Negate)
    }

    /// Creates a node with one child.
    pub(super) fn over(&self, start: usize, of: Expr, kind: impl FnOnce(Box<Expr>) -> Kind) -> Parse<Expr> {
        let depth = of.depth + 1;
        check_depth(depth, start)?;
        Ok(Expr { start, end: self.last_end(), depth, kind: kind(Box::new(of)) })
    }

    fn postfix(&mut self, start: usize, mut value: Expr) -> Parse<Expr> {
        loop {
            if self.eat(".") {
                value = self.attribute(start, value)?;
            } else if self.is_sign("[") {
                value = self.within(|parser| parser.subscript(start, value))?;
            } else if self.is_sign("(") {
                return Err(self.call(start));
            } else {
                return Ok(value);
            }
        }
    }

    fn attribute(&mut self, start: usize, value: Expr) -> Parse<Expr> {
        let at = self.token().start;
        match self.peek().clone() {
            Lexeme::Word(name) => {
                self.advance();
                self.refuse_minus(at, start)?;
                self.over(start, value, |of| Kind::Attribute(of, name))
            }
            Lexeme::Literal(index @ Value::Number(_)) => {
                self.advance();
                let index = self.node(at, &[], Kind::Value(index))?;
                self.over(start, value, |of| Kind::Index(of, Box::new(index)))
            }
            Lexeme::Literal(_) | Lexeme::Sign(_) | Lexeme::End => {
                Err(self.unexpected("a name after the dot"))
            }
        }
    }

    /// Refuses `a.build-lib`. Without spaces around the dash, a name was meant.
    pub(super) fn refuse_minus(&self, name_at: usize, start: usize) -> Parse<()> {
        let minus = self.token();
        let adjacent = self.is_sign("-") && minus.start == self.last_end();
        let Lexeme::Word(next) = self.peek_second() else { return Ok(()) };
        let next_is_adjacent = self.tokens[self.at + 1].start == minus.end;
        if !adjacent || !next_is_adjacent || is_name(next) {
            return Ok(());
        }
        Err(self.minus(name_at, start))
    }

    /// Returns the error for a name with dashes, in a value that begins at `start`.
    pub(super) fn minus(&self, name_at: usize, start: usize) -> Fault {
        let name = shortened(dashed(&self.text[name_at..]));
        let before = shortened(self.text[start..name_at].trim_end().trim_end_matches('.'));
        let hint = format!("write `{before}['{name}']`, or put spaces around `-`");
        Fault::new(name_at, ExprFault::Minus { written: format!("{before}.{name}") }).hint(hint)
    }

    fn subscript(&mut self, start: usize, value: Expr) -> Parse<Expr> {
        self.advance();
        let from = if self.is_sign(":") { None } else { Some(self.ternary()?) };
        if !self.eat(":") {
            self.expect("]", "`]`")?;
            let Some(index) = from else { return Err(self.unexpected("an index")) };
            return self.two(start, value, index, Kind::Index);
        }
        let to = if self.is_sign("]") { None } else { Some(self.ternary()?) };
        self.expect("]", "`]`")?;
        let depth =
            [Some(&value), from.as_ref(), to.as_ref()].into_iter().flatten().map(|part| part.depth).max();
        let depth = 1 + depth.unwrap_or(0);
        check_depth(depth, start)?;
        let kind = Kind::Slice(Box::new(value), from.map(Box::new), to.map(Box::new));
        Ok(Expr { start, end: self.last_end(), depth, kind })
    }

    fn two(
        &self,
        start: usize,
        left: Expr,
        right: Expr,
        kind: impl FnOnce(Box<Expr>, Box<Expr>) -> Kind,
    ) -> Parse<Expr> {
        let depth = 1 + left.depth.max(right.depth);
        check_depth(depth, start)?;
        Ok(Expr { start, end: self.last_end(), depth, kind: kind(Box::new(left), Box::new(right)) })
    }

    /// Returns the error for calling the value that was just read.
    fn call(&self, start: usize) -> Fault {
        let called = &self.text[start..self.last_end()];
        call_of(start, called.rsplit('.').next().unwrap_or(called))
    }

    fn filters(&mut self, start: usize, mut value: Expr) -> Parse<Expr> {
        loop {
            if self.eat("|") {
                value = self.filter(start, value)?;
            } else if self.eat_word("is") {
                value = self.test(start, value)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn word_of(&mut self, expected: &'static str) -> Parse<(usize, String)> {
        let at = self.token().start;
        let Lexeme::Word(name) = self.peek().clone() else { return Err(self.unexpected(expected)) };
        self.advance();
        Ok((at, name))
    }

    fn filter(&mut self, start: usize, value: Expr) -> Parse<Expr> {
        let (at, name) = self.word_of("the name of a filter")?;
        let Some(filter) = words::filter(&name) else {
            let hint = match foreign_filter(&name) {
                Some(filter) => format!("write `{filter}`"),
                None => word_hint(&name, words::FILTERS),
            };
            return Err(Fault::new(at, ExprFault::UnknownFilter { name: shortened(&name) }).hint(hint));
        };
        let arguments = if self.is_sign("(") { self.within(Self::arguments)? } else { Arguments::default() };
        check_arguments(filter, &arguments, at)?;
        check_type(filter.name, &arguments, at)?;
        if filter.name == "raw" {
            // `raw` is no operation on values. It changes how the finished value is inserted, so it cannot be part of
            // an expression.
            if self.depth > 1 || *self.peek() != Lexeme::End {
                let hint = "put the rest in parentheses: `(a ~ b) | raw`";
                return Err(Fault::new(at, ExprFault::RawInside).hint(hint));
            }
            self.raw = Some(at);
            return Ok(value);
        }
        let depth = 1 + arguments.iter().map(|part| part.depth).max().unwrap_or(0).max(value.depth);
        check_depth(depth, start)?;
        let kind = Kind::Filter { of: Box::new(value), filter, arguments };
        Ok(Expr { start, end: self.last_end(), depth, kind })
    }

    fn arguments(&mut self) -> Parse<Arguments> {
        self.advance();
        let mut arguments = Arguments::default();
        while !self.eat(")") {
            let name = match (self.peek().clone(), self.peek_second()) {
                (Lexeme::Word(name), Lexeme::Sign("=")) => Some(name),
                _ => None,
            };
            if let Some(name) = name {
                self.at += 2;
                arguments.named.push((name, self.ternary()?));
            } else {
                arguments.plain.push(self.ternary()?);
            }
            if !self.eat(",") && !self.is_sign(")") {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        Ok(arguments)
    }

    fn test(&mut self, start: usize, of: Expr) -> Parse<Expr> {
        let negated = self.eat_word("not");
        let (at, name) = self.word_of("the name of a test")?;
        let Some(test) = words::test(&name.to_ascii_lowercase()) else {
            let hint = word_hint(&name, words::TESTS);
            return Err(Fault::new(at, ExprFault::UnknownTest { name: shortened(&name) }).hint(hint));
        };
        let arguments = if self.is_sign("(") { self.within(Self::arguments)? } else { Arguments::default() };
        check_arguments(test, &arguments, at)?;
        let arguments = arguments.plain;
        let depth = 1 + arguments.iter().map(|part| part.depth).max().unwrap_or(0).max(of.depth);
        check_depth(depth, start)?;
        let kind = Kind::Test { of: Box::new(of), test, arguments, negated };
        Ok(Expr { start, end: self.last_end(), depth, kind })
    }

    fn primary(&mut self) -> Parse<Expr> {
        let start = self.token().start;
        match self.peek().clone() {
            Lexeme::Literal(value) => {
                self.advance();
                self.node(start, &[], Kind::Value(value))
            }
            Lexeme::Word(word) => self.word(start, &word),
            Lexeme::Sign("(") => {
                self.advance();
                let value = self.ternary()?;
                self.expect(")", "`)`")?;
                Ok(value)
            }
            Lexeme::Sign("[") => self.list(start),
            Lexeme::Sign("{") => self.object(start),
            Lexeme::Sign(_) | Lexeme::End => Err(self.unexpected("a value")),
        }
    }

    fn word(&mut self, start: usize, word: &str) -> Parse<Expr> {
        let value = match word {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "none" | "None" => Value::Null,
            "range" if matches!(self.peek_second(), Lexeme::Sign("(")) => return self.range(start),
            word => return self.name(start, word),
        };
        self.advance();
        self.node(start, &[], Kind::Value(value))
    }

    /// Reads `range(stop)` or `range(start, stop)`, the only function.
    fn range(&mut self, start: usize) -> Parse<Expr> {
        self.advance();
        let arguments = self.within(Self::arguments)?;
        if !matches!(arguments.plain.len(), 1 | 2) || !arguments.named.is_empty() {
            let takes = "1 to 2 arguments".to_owned();
            return Err(Fault::new(start, ExprFault::Arguments { name: "range", takes }));
        }
        let depth = 1 + arguments.iter().map(|part| part.depth).max().unwrap_or(0);
        check_depth(depth, start)?;
        Ok(Expr { start, end: self.last_end(), depth, kind: Kind::Range(arguments.plain) })
    }

    fn list(&mut self, start: usize) -> Parse<Expr> {
        self.advance();
        let mut items = Vec::new();
        while !self.eat("]") {
            items.push(self.ternary()?);
            if !self.eat(",") && !self.is_sign("]") {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
        let depth = 1 + items.iter().map(|item| item.depth).max().unwrap_or(0);
        check_depth(depth, start)?;
        Ok(Expr { start, end: self.last_end(), depth, kind: Kind::List(items) })
    }

    fn object(&mut self, start: usize) -> Parse<Expr> {
        self.advance();
        let mut entries: Vec<(Expr, Expr)> = Vec::new();
        while !self.eat("}") {
            let key = self.ternary()?;
            self.expect(":", "`:`")?;
            entries.push((key, self.ternary()?));
            if !self.eat(",") && !self.is_sign("}") {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
        let depth = 1 + entries.iter().map(|(key, value)| key.depth.max(value.depth)).max().unwrap_or(0);
        check_depth(depth, start)?;
        Ok(Expr { start, end: self.last_end(), depth, kind: Kind::Object(entries) })
    }

    pub(super) fn named(&self, start: usize, name: Name) -> Parse<Expr> {
        self.node(start, &[], Kind::Name(name))
    }
}

fn check_depth(depth: usize, at: usize) -> Parse<()> {
    if depth <= MAX_DEPTH {
        return Ok(());
    }
    let fault = Fault::new(at, ExprFault::TooDeep { limit: MAX_DEPTH });
    Err(fault.hint("split it: let an earlier task compute a part of the value"))
}

/// Returns the error for a function or method.
pub(super) fn call_of(start: usize, name: &str) -> Fault {
    let fault = Fault::new(start, ExprFault::Call { name: shortened(name) });
    fault.hint(call_hint(name))
}

/// Returns whether a word is a literal or a root name.
pub(super) fn is_name(word: &str) -> bool {
    let literal = matches!(word, "true" | "false" | "none" | "True" | "False" | "None" | "range");
    literal || words::ROOTS.iter().any(|root| root.name == word)
}

/// Returns the beginning of the text that could be an unquoted id with dashes.
fn dashed(text: &str) -> &str {
    let end =
        text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-')).unwrap_or(text.len());
    text[..end].trim_end_matches('-')
}

fn sign_operator(sign: &str) -> Option<Op> {
    Some(match sign {
        "==" => Op::Equal,
        "!=" => Op::Unequal,
        "<" => Op::Less,
        "<=" => Op::LessOrEqual,
        ">" => Op::Greater,
        ">=" => Op::GreaterOrEqual,
        "+" => Op::Add,
        "-" => Op::Subtract,
        "~" => Op::Concat,
        "*" => Op::Multiply,
        "/" => Op::Divide,
        "//" => Op::FloorDivide,
        "%" => Op::Remainder,
        _ => return None,
    })
}

/// Returns the hint for an operator of other languages.
fn foreign_operator(sign: &str) -> Option<&'static str> {
    Some(match sign {
        "&&" | "&" => "write `and`",
        "||" => "write `or`; for a value that may be missing, `| default(…)`",
        "!" => "write `not`",
        "=" => "write `==` to compare",
        "?" => "write `A if CONDITION else B`",
        "**" => "multiply instead",
        ";" => "only one expression is allowed",
        _ => return None,
    })
}

/// Returns the filter to which this name of other languages corresponds.
fn foreign_filter(name: &str) -> Option<&'static str> {
    let plain: String = name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect();
    Some(match plain.as_str() {
        "len" | "size" | "count" => "length",
        "str" | "tostring" | "text" => "string",
        "json" | "dumps" | "stringify" | "tojson" => "tojson",
        "parse" | "loads" | "parsejson" | "fromjson" => "fromjson",
        "strip" => "trim",
        "toupper" | "uppercase" | "upcase" => "upper",
        "tolower" | "lowercase" | "downcase" => "lower",
        "tonumber" | "number" => "float",
        "toint" | "integer" => "int",
        _ => return None,
    })
}

fn call_hint(name: &str) -> String {
    let filter = match name {
        "get" => return "write `value.name | default(other)`".to_owned(),
        "startswith" | "startsWith" => return "write `value is startingwith('…')`".to_owned(),
        "endswith" | "endsWith" => return "write `value is endingwith('…')`".to_owned(),
        "contains" | "includes" => return "write `'…' in value`".to_owned(),
        "success" | "failure" | "always" | "cancelled" => {
            return "use `trigger` to control when a task starts, and `tasks['ID'].status` for the result of another task".to_owned();
        }
        name => foreign_filter(name).unwrap_or(name),
    };
    match words::filter(filter) {
        Some(word) => format!("write it as a filter: `value | {}`", word.name),
        None => "use a filter: `value | FILTER`; the only function is `range`".to_owned(),
    }
}

fn word_hint(name: &str, known: &[Word]) -> String {
    let names = || known.iter().map(|word| word.name);
    match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            format!(
                "available are {}",
                names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            )
        }
    }
}

fn check_arguments(word: &'static Word, arguments: &Arguments, at: usize) -> Parse<()> {
    let plain = (word.least..=word.most).contains(&arguments.plain.len());
    let known = arguments.named.iter().all(|(name, _)| word.named.contains(&name.as_str()));
    // `map` requires `attribute`.
    let complete = word.name != "map" || arguments.named.iter().any(|(name, _)| name == "attribute");
    if plain && known && complete {
        return Ok(());
    }
    let fault = ExprFault::Arguments { name: word.name, takes: word.takes() };
    Err(Fault::new(at, fault).hint(format!("for example `{}`", word.example.replace('\n', "\\n"))))
}
