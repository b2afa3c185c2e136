//! Parses a JSON or YAML text to a tree. One parser reads both, because JSON is the flow style of YAML.
//!
//! The parser emits events, so that deep nesting, aliases and further documents are refused before anything is built
//! from them. No input makes this code recurse. A deserializer would stop at the first wrong value, but a plan gets all
//! its errors at once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag, options};

use taskpawl_json::JsonProblem;

use super::node::{Content, Entry, Node};
use super::text_rules::Rules;
use super::{PlanError, PlanProblem};
use crate::advice::hint::Hint;
use crate::expr::OPEN;
use taskpawl_json::Position;

/// Returns whether JSON allows a character unescaped in texts, while YAML does not.
fn is_only_in_json(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

/// Escapes characters that only JSON allows. Nearly all texts are returned unchanged.
pub(super) fn prepared(text: &str) -> Cow<'_, str> {
    // Only a text that begins like JSON is changed: in YAML block style the escape would be literal text.
    if !text.contains(is_only_in_json) || !text.trim_start().starts_with(['{', '[', '"']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_only_in_json(character) {
            write!(escaped, "\\u{:04x}", u32::from(character)).expect("BUG: writing to a string failed");
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Parses a text; `None`, with an error added, if there is no tree.
pub(super) fn parse<'a>(text: &'a str, rules: Rules, errors: &mut Vec<PlanError>) -> Option<Node<'a>> {
    let mut builder = Builder { open: Vec::new(), root: None, rules, errors };
    // Another crate may enable comments. Keys may be longer than the 1,024 characters of YAML, because JSON has no
    // limit.
    let options = options! {
        emit_comments: false,
        simple_key_max_lookahead: 65_536,
        flow_nesting_limit: rules.max_depth,
        block_nesting_limit: rules.max_depth,
    };
    for step in Parser::new_from_str_with_options(text, options) {
        let outcome = match step {
            Ok((event, span)) => builder.event(event, span),
            Err(error) => Err(syntax_error(text, rules, &error)),
        };
        if let Err(error) = outcome {
            builder.errors.push(error);
            return None;
        }
    }
    if builder.root.is_none() {
        let at = Position { line: 1, column: 1 };
        builder.errors.push(PlanError { at, path: String::new(), problem: PlanProblem::Empty, hint: None });
    }
    builder.root
}

struct Builder<'a, 'e> {
    /// The unclosed lists and objects, outermost first.
    open: Vec<Open<'a>>,
    root: Option<Node<'a>>,
    rules: Rules,
    errors: &'e mut Vec<PlanError>,
}

enum Open<'a> {
    List { at: Position, items: Vec<Node<'a>> },
    Object { at: Position, entries: Vec<Entry<'a>>, key: Option<(Cow<'a, str>, Position)> },
}

type Step = Result<(), PlanError>;

impl<'a> Builder<'a, '_> {
    #[expect(
        clippy::match_same_arms,
        reason = "the wildcard is for what later versions of the parser may add"
    )]
    fn event(&mut self, event: Event<'a>, span: Span) -> Step {
        let at = position(span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.check_anchor(anchor, at)?;
                self.scalar(text, style, tag.as_deref(), at)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.begin(Open::List { at, items: Vec::new() }, anchor, tag.as_deref(), at)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.begin(Open::Object { at, entries: Vec::new(), key: None }, anchor, tag.as_deref(), at)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.end();
                Ok(())
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err(self.alias(at)),
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(self.error(at, PlanProblem::SecondDocument))
            }
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(..)
            | Event::DocumentEnd
            | Event::Anchor(..) => Ok(()),
            _ => Ok(()),
        }
    }

    fn scalar(&mut self, text: Cow<'a, str>, style: ScalarStyle, tag: Option<&Tag>, at: Position) -> Step {
        let plain = style == ScalarStyle::Plain && tag.is_none();
        if let Some(Open::Object { key: key @ None, .. }) = self.open.last_mut() {
            if plain && text == "~" {
                return Err(self.error(at, PlanProblem::Key));
            }
            *key = Some((text, at));
            return Ok(());
        }
        self.check_tag(tag, &["str"], at)?;
        let content = if plain { (self.rules.resolve)(text) } else { Ok(Content::Text(text)) };
        let content = content.map_err(|problem| {
            let hint = Some("write it as text, in quotes".into());
            PlanError { hint, ..self.error(at, problem) }
        })?;
        self.attach(Node { at, content });
        Ok(())
    }

    fn begin(&mut self, open: Open<'a>, anchor: usize, tag: Option<&Tag>, at: Position) -> Step {
        self.check_anchor(anchor, at)?;
        self.check_tag(tag, &["seq", "map"], at)?;
        if let Some(Open::Object { key: None, .. }) = self.open.last() {
            return Err(self.error(at, PlanProblem::Key));
        }
        if self.open.len() == self.rules.max_depth {
            return Err(too_deep(at, self.rules.max_depth));
        }
        self.open.push(open);
        Ok(())
    }

    fn end(&mut self) {
        match self.open.pop() {
            Some(Open::List { at, items }) => self.attach(Node { at, content: Content::List(items) }),
            Some(Open::Object { at, entries, .. }) => {
                self.check_keys(&entries);
                self.attach(Node { at, content: Content::Object(entries) });
            }
            None => {}
        }
    }

    fn attach(&mut self, node: Node<'a>) {
        match self.open.last_mut() {
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Object { entries, key, .. }) => {
                if let Some((key, key_at)) = key.take() {
                    entries.push(Entry { key, key_at, value: node });
                }
            }
            None => self.root = Some(node),
        }
    }

    fn check_keys(&mut self, entries: &[Entry<'a>]) {
        // Most objects are small, and comparing few keys is cheaper than hashing them.
        let few = entries.len() <= 16;
        let again = |index: usize| entries[..index].iter().any(|other| other.key == entries[index].key);
        if few && !(1..entries.len()).any(again) {
            return;
        }
        let mut seen: HashMap<&str, Position> = HashMap::with_capacity(entries.len());
        for entry in entries {
            let first = *seen.entry(&entry.key).or_insert(entry.key_at);
            if first != entry.key_at {
                let key = super::node::shortened(&entry.key);
                let problem = JsonProblem::DuplicateKey { key, first }.into();
                let error = self.error(entry.key_at, problem);
                self.errors.push(error);
            }
        }
    }

    fn check_anchor(&self, anchor: usize, at: Position) -> Step {
        if anchor == 0 { Ok(()) } else { Err(self.alias(at)) }
    }

    fn check_tag(&self, tag: Option<&Tag>, known: &[&str], at: Position) -> Step {
        let fine = |tag: &Tag| {
            tag.core_suffix().is_some_and(|suffix| known.contains(&suffix)) || tag.suffix() == "!"
        };
        match tag {
            Some(tag) if !fine(tag) => Err(self.error(at, PlanProblem::Tag { tag: tag.original() })),
            _ => Ok(()),
        }
    }

    fn alias(&self, at: Position) -> PlanError {
        PlanError { hint: Some(ALIAS_HINT.into()), ..self.error(at, PlanProblem::Alias) }
    }

    fn error(&self, at: Position, problem: PlanProblem) -> PlanError {
        PlanError { at, path: self.path(), problem, hint: None }
    }

    /// Returns the path of the value being read.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match open {
                Open::List { items, .. } => super::reader::push_index(&mut path, items.len()),
                Open::Object { key: Some((key, _)), .. } => super::reader::push_key(&mut path, key),
                Open::Object { key: None, .. } => {}
            }
        }
        path
    }
}

const ALIAS_HINT: &str =
    "put text that begins with `*` or `&` in quotes; put options that tasks share into `defaults`";

fn position(span: Span) -> Position {
    marked(span.start.line(), span.start.col())
}

fn marked(line: usize, column: usize) -> Position {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Position { line: count(line), column: count(column.saturating_add(1)) }
}

fn too_deep(at: Position, limit: usize) -> PlanError {
    let hint = Some("subtasks may be listed by id, then they nest to any depth".into());
    PlanError { at, path: String::new(), problem: PlanProblem::TooDeep { limit }, hint }
}

fn syntax_error(text: &str, rules: Rules, error: &ScanError) -> PlanError {
    let at = marked(error.marker().line(), error.marker().col());
    let path = String::new();
    if *error.kind() == ErrorKind::RecursionLimitExceeded {
        return too_deep(at, rules.max_depth);
    }
    if *error.kind() == ErrorKind::UnknownAnchor {
        return PlanError { at, path, problem: PlanProblem::Alias, hint: Some(ALIAS_HINT.into()) };
    }
    // The parser uses two kinds of quotes in its messages; ours use backticks.
    let problem = PlanProblem::Syntax { message: error.info().replace('\'', "`") };
    let is_tab = error.info().contains("a tab");
    let hint = unquoted_expression(text, at)
        .or_else(|| syntax_hint(error.kind()))
        .or_else(|| is_tab.then_some("indent with spaces"));
    PlanError { at, path, problem, hint: hint.map(Hint::from) }
}

/// Returns a hint for an expression without quotes inside `{…}` or `[…]`, whose braces YAML reads as objects.
fn unquoted_expression(text: &str, at: Position) -> Option<&'static str> {
    let line = text.lines().nth(usize::try_from(at.line).ok()?.checked_sub(1)?)?;
    let open =
        line.match_indices(OPEN).map(|(open, _)| &line[..open]).find(|before| !is_in_quotes(before))?;
    let is_in_flow = open.contains(['{', '[']);
    is_in_flow.then_some("put text with `${{ … }}` in quotes, such as `\"${{ … }}\"`, inside `{…}` and `[…]`")
}

fn is_in_quotes(before: &str) -> bool {
    before.matches('"').count() % 2 == 1 || before.matches('\'').count() % 2 == 1
}

fn syntax_hint(kind: &ErrorKind) -> Option<&'static str> {
    use ErrorKind::{
        MappingValueNotAllowed, TabInBlockIndentation, TabInIndentation, TabNotAllowed, UnexpectedCharacter,
    };
    if matches!(kind, TabNotAllowed | TabInBlockIndentation | TabInIndentation) {
        Some("indent with spaces")
    } else if matches!(kind, UnexpectedCharacter { .. }) {
        Some("put a text that begins with this character in quotes")
    } else if *kind == MappingValueNotAllowed {
        Some("put a text that contains `: ` in quotes, and indent the fields of an object alike")
    } else {
        None
    }
}
