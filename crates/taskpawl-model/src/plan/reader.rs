//! Converts a tree to typed values. Readers add errors to one list and continue, so that all errors are reported at
//! once.

use std::fmt::Display;

use serde_json::Value;
pub(super) use taskpawl_json::{push_index, push_key};

use super::draft::{Defaults, Draft};
use super::included_files::{Includes, Wanted};
use super::node::{Content, Entry, MAX_VALUE_DEPTH, Node, shortened};
use super::site::{Site, ToolPlace};
use super::vocabulary::Vocabulary;
use super::{PlanError, PlanProblem};
use crate::advice::hint::Hint;
use crate::task::ValueFault;
use crate::task::fault::check_keep;
use crate::value::{ByteSize, ByteSizeError, Period, TaskId, check_id};
use crate::value::{Map, Timestamp};
use taskpawl_json::Position;

/// The state of reading: the current path, known facts about the plan, and the errors so far.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the reading, on its own")]
pub(super) struct Reader<'n> {
    pub(super) errors: Vec<PlanError>,
    /// The text being read; empty for a JSON value.
    pub(super) source: &'n str,
    path: Vec<Segment<'n>>,
    /// True if the text is the list of tasks itself, without the field `tasks`.
    pub(super) listed: bool,
    /// The tasks read so far, each after the task that contains it.
    pub(super) drafts: Vec<Draft<'n>>,
    /// Expressions that are not checked yet.
    pub(super) sites: Vec<Site<'n>>,
    /// True if the defaults are being read.
    pub(super) in_defaults: bool,
    /// The maximum number of tasks to read; `None` for all.
    pub(super) max_tasks: Option<usize>,
    /// True if unknown fields are kept for the step that applies the plan: the store may have them from an older
    /// version.
    pub(super) keeps_unknown: bool,
    /// Unknown fields that were kept, of the object being read.
    pub(super) unknown: Vec<PlanError>,
    /// True if the plan is only checked: its tasks are returned although it has errors.
    pub(super) is_inspected: bool,
    /// True if the positions of all calls are recorded, for [`locate`](super::locate).
    pub(super) is_located: bool,
    /// The tools of the calls, if positions are recorded.
    pub(super) tools: Vec<ToolPlace>,
    /// True if the input is a part of a stored plan, which may contain the tasks that are unknown here.
    pub(super) is_part: bool,
    /// The names of the parameters that the plan declares.
    pub(super) params: Vec<String>,
    pub(super) defaults: Defaults,
    /// The resource capacities that the plan declares.
    pub(super) capacities: indexmap::IndexMap<String, u32>,
    /// The declarations of the parameters, before they are read.
    pub(super) declared: &'n [Entry<'n>],
    /// The plans that the plan may include.
    pub(super) includes: Includes<'n>,
    /// The value of a task that includes the plan.
    pub(super) returns: Option<&'n Node<'n>>,
    /// Tools and variables that included plans need.
    pub(super) wanted: Wanted,
}

/// A step from a value to a value inside it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Segment<'n> {
    Key(&'n str),
    Index(usize),
}

/// An object with a closed set of fields.
pub(super) struct Shape {
    /// Its name in error messages.
    pub(super) what: &'static str,
    /// The expected value, for errors about its type.
    pub(super) expected: &'static str,
    pub(super) fields: &'static [&'static str],
    /// The required fields, each as named in the object and as shown in messages.
    pub(super) required: &'static [(&'static str, &'static str)],
}

impl<'n> Reader<'n> {
    pub(super) fn within<T>(&mut self, segment: Segment<'n>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(segment);
        let value = read(self);
        self.path.pop();
        value
    }

    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        for segment in &self.path {
            match segment {
                Segment::Key(key) => push_key(&mut path, key),
                Segment::Index(index) => push_index(&mut path, *index),
            }
        }
        path
    }

    pub(super) fn report(&mut self, at: Position, problem: PlanProblem) {
        let path = self.path();
        self.errors.push(PlanError { at, path, problem, hint: None });
    }

    pub(super) fn report_with(&mut self, at: Position, problem: PlanProblem, hint: impl Into<Hint>) {
        let path = self.path();
        self.errors.push(PlanError { at, path, problem, hint: Some(hint.into()) });
    }

    pub(super) fn wrong_type(&mut self, node: &Node, expected: &'static str) {
        let problem = PlanProblem::WrongType { expected, found: node.describe() };
        match (&node.content, expected.starts_with("text")) {
            (Content::Number(_) | Content::Bool(_), true) => {
                self.report_with(node.at, problem, "put it in quotes");
            }
            _ => self.report(node.at, problem),
        }
    }

    /// Reads an optional value; `null` means absent.
    pub(super) fn option<T>(
        &mut self,
        node: &'n Node<'n>,
        read: impl FnOnce(&mut Self, &'n Node<'n>) -> Option<T>,
    ) -> Option<T> {
        if node.is_null() { None } else { read(self, node) }
    }

    pub(super) fn str_of(&mut self, node: &'n Node<'n>) -> Option<&'n str> {
        let text = node.as_str();
        if text.is_none() {
            self.wrong_type(node, "text");
        }
        text
    }

    /// Reads a non-empty text.
    pub(super) fn filled(&mut self, node: &'n Node<'n>) -> Option<&'n str> {
        let text = self.str_of(node)?;
        if text.trim().is_empty() {
            self.report(node.at, PlanProblem::Blank);
            return None;
        }
        Some(text)
    }

    pub(super) fn text(&mut self, node: &'n Node<'n>) -> Option<String> {
        self.str_of(node).map(str::to_owned)
    }

    pub(super) fn filled_text(&mut self, node: &'n Node<'n>) -> Option<String> {
        self.filled(node).map(str::to_owned)
    }

    pub(super) fn id(&mut self, node: &'n Node<'n>) -> Option<&'n str> {
        let text = self.str_of(node)?;
        if let Err(error) = check_id(text) {
            self.report(node.at, error.into());
            return None;
        }
        Some(text)
    }

    pub(super) fn ids(&mut self, node: &'n Node<'n>) -> Vec<TaskId> {
        self.one_or_many(node, Self::id).into_iter().map(TaskId::from).collect()
    }

    pub(super) fn identifier(&mut self, node: &'n Node<'n>) -> Option<String> {
        let text = self.str_of(node)?;
        self.check_identifier(text, node.at);
        Some(text.to_owned())
    }

    pub(super) fn check_identifier(&mut self, text: &str, at: Position) {
        if !crate::task::fault::is_identifier(text) {
            self.report(at, PlanProblem::Identifier { text: shortened(text) });
        }
    }

    pub(super) fn flag(&mut self, node: &'n Node<'n>) -> Option<bool> {
        if let Content::Bool(value) = node.content {
            return Some(value);
        }
        self.wrong_type(node, "`true` or `false`");
        None
    }

    /// Reads a positive whole number.
    pub(super) fn count(&mut self, node: &'n Node<'n>) -> Option<u32> {
        let number = self.big_count(node)?;
        let count = u32::try_from(number).ok();
        if count.is_none() {
            self.out_of_range(node.at, "at most 4294967295", number);
        }
        count
    }

    pub(super) fn big_count(&mut self, node: &'n Node<'n>) -> Option<u64> {
        let Some(number) = node.as_number() else {
            self.wrong_type(node, "a whole number");
            return None;
        };
        match number.as_u64() {
            Some(0) => self.out_of_range(node.at, "at least 1", number),
            None if number.is_i64() => self.out_of_range(node.at, "at least 1", number),
            None => self.wrong_type(node, "a whole number"),
            count => return count,
        }
        None
    }

    /// Reads a number that is at least `least`.
    pub(super) fn number(&mut self, node: &'n Node<'n>, least: f64, rule: &'static str) -> Option<f64> {
        let Some(number) = node.as_number() else {
            self.wrong_type(node, "a number");
            return None;
        };
        let value = number.as_f64().filter(|value| *value >= least);
        if value.is_none() {
            self.out_of_range(node.at, rule, number);
        }
        value
    }

    fn out_of_range(&mut self, at: Position, rule: &'static str, found: impl Display) {
        self.report(at, PlanProblem::Range { rule, found: found.to_string() });
    }

    /// Reads a duration, which may be zero.
    pub(super) fn pause(&mut self, node: &'n Node<'n>) -> Option<Period> {
        let text = node.as_number().map(ToString::to_string);
        let Some(text) = text.as_deref().or(node.as_str()) else {
            self.wrong_type(node, "a duration such as `30s` or `5m`");
            return None;
        };
        text.parse().map_err(|error: crate::value::PeriodError| self.report(node.at, error.into())).ok()
    }

    /// Reads a duration greater than zero.
    pub(super) fn period(&mut self, node: &'n Node<'n>) -> Option<Period> {
        let period = self.pause(node)?;
        if period.0.is_zero() {
            self.out_of_range(node.at, "longer than zero", period);
        }
        Some(period)
    }

    /// Reads the `keep` of a call.
    pub(super) fn keep(&mut self, node: &'n Node<'n>) -> Option<ByteSize> {
        let text = node.as_number().map(ToString::to_string);
        let Some(text) = text.as_deref().or(node.as_str()) else {
            self.wrong_type(node, "a size such as `512KiB` or `4MiB`");
            return None;
        };
        let keep: ByteSize =
            text.parse().map_err(|error: ByteSizeError| self.report(node.at, error.into())).ok()?;
        if let Err(fault) = check_keep(keep) {
            self.report(node.at, fault.into());
        }
        Some(keep)
    }

    /// Reads a point in time. A date without a time is the start of that day in UTC.
    pub(super) fn date(&mut self, node: &'n Node<'n>) -> Option<Timestamp> {
        let text = self.str_of(node)?;
        let date = chrono::DateTime::parse_from_rfc3339(text).map(|date| date.to_utc()).ok().or_else(|| {
            // The length excludes short forms such as `2026-5-1`, which the date parser accepts.
            let day: chrono::NaiveDate = text.parse().ok().filter(|_| text.len() == "2026-05-31".len())?;
            Some(day.and_time(chrono::NaiveTime::MIN).and_utc())
        });
        if date.is_none() {
            self.report(node.at, PlanProblem::Date { text: shortened(text) });
        }
        date
    }

    pub(super) fn word<T: Copy + Display>(
        &mut self,
        node: &'n Node<'n>,
        what: &'static str,
        all: &[T],
        from: fn(&str) -> Option<T>,
    ) -> Option<T> {
        let word = self.str_of(node)?;
        let value = from(word);
        if value.is_none() {
            let words: Vec<String> = all.iter().map(ToString::to_string).collect();
            let hint = taskpawl_text::word_hint(word, words.iter().map(String::as_str));
            self.report_with(node.at, PlanProblem::UnknownWord { what, word: shortened(word) }, hint);
        }
        value
    }

    /// Reads a list, or a single value as a list of one; `null` is the empty list.
    pub(super) fn one_or_many<T>(
        &mut self,
        node: &'n Node<'n>,
        mut read: impl FnMut(&mut Self, &'n Node<'n>) -> Option<T>,
    ) -> Vec<T> {
        if node.is_null() {
            return Vec::new();
        }
        let Some(items) = node.as_list() else { return read(self, node).into_iter().collect() };
        let item = |(index, item)| self.within(Segment::Index(index), |reader| read(reader, item));
        items.iter().enumerate().filter_map(item).collect()
    }

    pub(super) fn texts(&mut self, node: &'n Node<'n>) -> Vec<String> {
        if node.as_list().is_none() && node.as_str().is_none() && !node.is_null() {
            self.wrong_type(node, "text or a list of texts");
            return Vec::new();
        }
        self.one_or_many(node, Self::filled_text)
    }

    /// Reads texts that have to pass a check.
    pub(super) fn checked_texts(
        &mut self,
        node: &'n Node<'n>,
        check: fn(&str) -> Result<(), ValueFault>,
    ) -> Vec<String> {
        if node.as_list().is_none() && node.as_str().is_none() {
            return self.texts(node);
        }
        self.one_or_many(node, |reader, item| {
            let text = reader.filled_text(item)?;
            reader.checked(item, check(&text)).then_some(text)
        })
    }

    /// Returns whether the check succeeded, and reports the fault if not.
    pub(super) fn checked(&mut self, node: &Node, outcome: Result<(), ValueFault>) -> bool {
        let Err(fault) = outcome else { return true };
        let hint = fault.hint();
        self.report_with(node.at, fault.into(), hint);
        false
    }

    /// Reads any value as JSON.
    pub(super) fn json(&mut self, node: &'n Node<'n>) -> Value {
        node.to_json(MAX_VALUE_DEPTH).unwrap_or_else(|| {
            self.report(node.at, PlanProblem::TooDeep { limit: MAX_VALUE_DEPTH });
            Value::Null
        })
    }

    /// Reads an object as JSON; `null` is the empty object.
    pub(super) fn map(&mut self, node: &'n Node<'n>) -> Map {
        match self.json(node) {
            Value::Object(map) => return map,
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.wrong_type(node, "an object");
            }
        }
        Map::new()
    }

    pub(super) fn entries(&mut self, node: &'n Node<'n>, expected: &'static str) -> Option<&'n [Entry<'n>]> {
        let entries = node.as_object();
        if entries.is_none() {
            self.wrong_type(node, expected);
        }
        entries
    }

    /// Reads an object with a closed set of fields. A field with the value `null` counts as absent.
    pub(super) fn object(
        &mut self,
        node: &'n Node<'n>,
        shape: &Shape,
        mut read: impl FnMut(&mut Self, &'n str, &'n Node<'n>),
    ) -> Option<()> {
        let entries = self.entries(node, shape.expected)?;
        for Entry { key, key_at, value } in entries {
            if !shape.fields.contains(&&**key) {
                let problem = PlanProblem::UnknownField { field: shortened(key), of: shape.what };
                let hint = taskpawl_text::word_hint(key, shape.fields.iter().copied());
                self.within(Segment::Key(key), |reader| reader.report_with(*key_at, problem, hint));
            } else if !value.is_null() {
                self.within(Segment::Key(key), |reader| read(reader, key, value));
            }
        }
        for (field, shown) in shape.required {
            if !entries.iter().any(|entry| entry.key == *field && !entry.value.is_null()) {
                self.report(node.at, PlanProblem::Missing { field: shown, of: shape.what });
            }
        }
        Some(())
    }

    /// Stores a field of the author's own, and reports any other unknown field.
    pub(super) fn unknown(
        &mut self,
        extra: &mut Map,
        vocabulary: &Vocabulary,
        (key, key_at): (&'n str, Position),
        node: &'n Node<'n>,
    ) {
        if let Some((problem, hint)) = vocabulary.refuse(key) {
            self.report_with(key_at, problem, hint);
            let is_unknown = |error: &PlanError| matches!(error.problem, PlanProblem::UnknownField { .. });
            if !self.keeps_unknown || !self.errors.last().is_some_and(is_unknown) {
                return;
            }
            self.unknown.extend(self.errors.pop());
        }
        let value = self.json(node);
        extra.insert(key.to_owned(), value);
    }
}
