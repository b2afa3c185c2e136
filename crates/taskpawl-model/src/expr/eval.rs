//! The evaluator.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::ast::{Expr, Kind, Name, Op, TaskField};
use super::budget::{Budget, Exhausted, MAX_COST};
use super::data::{Data, TaskData};
use super::error::{EvalFault, ExprFault};
use super::filters;
use super::number::{Num, apply};
use super::provenance::Seen;
use super::say::{described, fields, items, kind, near, shortened};
use super::words::TYPED;
use crate::task::trust::{UntrustedValue, add_values};
use crate::value::Map;

/// The value of a part of an expression.
#[derive(Debug, Clone)]
pub(super) enum Val<'d> {
    One(Cow<'d, Value>),
    /// The results of a task. They are borrowed as long as possible, because there may be many.
    Many(&'d [Value]),
    /// A missing value. It is an error, except for `default`, `defined` and `undefined`.
    Missing(Stop),
}

/// The reason for the end of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stop {
    pub(super) fault: Box<EvalFault>,
    pub(super) hint: Option<String>,
}

impl From<EvalFault> for Stop {
    fn from(fault: EvalFault) -> Self {
        let no_text = matches!(fault, EvalFault::NoText { .. });
        let hint = no_text.then(|| "add `| default('…')`".to_owned());
        Self { fault: Box::new(fault), hint }
    }
}

impl From<Exhausted> for Stop {
    fn from(_: Exhausted) -> Self {
        let hint = Some("use a tool for this work".to_owned());
        Self { fault: Box::new(EvalFault::Exhausted { limit: MAX_COST }), hint }
    }
}

pub(super) type Eval<T> = Result<T, Stop>;

fn one<'v>(value: &'v Val<'_>) -> Option<&'v Value> {
    if let Val::One(value) = value { Some(value) } else { None }
}

/// Returns the provenance of the part of a value that an index selects.
fn step<'d>(seen: Seen<'d>, value: &Val<'_>, index: &Value) -> Seen<'d> {
    let length = match value {
        Val::Many(values) => values.len(),
        Val::One(value) => value.as_array().map_or(0, Vec::len),
        Val::Missing(_) => 0,
    };
    if let Value::String(name) = index {
        return seen.field(one(value), name);
    }
    let position = index.as_i64().and_then(|position| position_in(position, length));
    // The index selects a character of a text, or nothing. This counts as reading the whole value.
    position.map_or(seen, |position| seen.item(position))
}

pub(super) fn owned<'d>(value: Value) -> Val<'d> {
    Val::One(Cow::Owned(value))
}

pub(super) fn flag<'d>(value: bool) -> Val<'d> {
    owned(Value::Bool(value))
}

/// Evaluates one expression.
pub(super) struct Machine<'d, 'e> {
    /// The text of the expression, quoted in errors.
    pub(super) text: &'e str,
    pub(super) data: &'d Data,
    pub(super) budget: &'e mut Budget,
    /// The values from models that were read.
    pub(super) untrusted: &'e mut Vec<UntrustedValue>,
}

impl<'d> Machine<'d, '_> {
    /// Returns the value of an expression. A missing value is an error.
    pub(super) fn value(&mut self, expr: &Expr) -> Eval<Cow<'d, Value>> {
        match self.eval(expr)? {
            Val::One(value) => Ok(value),
            Val::Many(values) => {
                // They are paid for before they are copied, because there may be many.
                values.iter().try_for_each(|value| self.budget.value(value))?;
                Ok(Cow::Owned(Value::Array(values.to_vec())))
            }
            Val::Missing(stop) => Err(stop),
        }
    }

    pub(super) fn source(&self, expr: &Expr) -> String {
        shortened(&self.text[expr.start..expr.end])
    }

    /// Returns the value of an expression, which is read completely.
    pub(super) fn eval(&mut self, expr: &Expr) -> Eval<Val<'d>> {
        let (value, seen) = self.traced(expr)?;
        self.read(expr, seen)?;
        Ok(value)
    }

    /// Fails if a part of the value was truncated.
    pub(super) fn read(&self, expr: &Expr, seen: Seen<'d>) -> Eval<()> {
        if seen.is_cut() { Err(self.cut(expr)) } else { Ok(()) }
    }

    fn cut(&self, expr: &Expr) -> Stop {
        let path = self.source(expr);
        let hint = format!(
            "write `keep: 4MiB` on the call that returned it, or `{path} | partial` if a part is enough"
        );
        Stop { fault: Box::new(EvalFault::Cut { path }), hint: Some(hint) }
    }

    /// Returns the value of an expression, and the provenance of the stored value that it is a part of.
    ///
    /// Intermediate values do not count as read: for `tasks.a.result.exitCode`, a truncated `stdout` is no error.
    pub(super) fn traced(&mut self, expr: &Expr) -> Eval<(Val<'d>, Seen<'d>)> {
        match &expr.kind {
            Kind::Name(name) => {
                self.budget.bytes(16)?;
                Ok((self.name(expr, name)?, self.seen(name)))
            }
            Kind::Attribute(of, name) => {
                self.budget.bytes(16)?;
                let (value, seen) = self.traced(of)?;
                let seen = seen.field(one(&value), name);
                Ok((self.attribute(value, of, name, expr), seen))
            }
            Kind::Index(of, index) => {
                self.budget.bytes(16)?;
                let (value, seen) = self.traced(of)?;
                let index = self.value(index)?;
                let seen = step(seen, &value, &index);
                Ok((self.index(value, of, &index, expr)?, seen))
            }
            Kind::If { test, then, otherwise } => {
                self.budget.bytes(16)?;
                // Only the chosen branch is evaluated, so a missing value in the other one is no error.
                let test = is_true(&*self.value(test)?);
                self.traced(if test { then } else { otherwise })
            }
            Kind::Filter { of, filter, arguments } if filter.name == "default" => {
                filters::default(self, of, arguments)
            }
            Kind::Filter { of, filter, arguments } if filter.name == TYPED => {
                filters::typed(self, of, arguments)
            }
            Kind::Filter { of, filter, .. } if filter.name == "partial" => {
                Ok((self.traced(of)?.0, Seen::Nothing))
            }
            Kind::Value(_)
            | Kind::Slice(..)
            | Kind::Not(_)
            | Kind::Negate(_)
            | Kind::Binary(..)
            | Kind::Filter { .. }
            | Kind::Test { .. }
            | Kind::List(_)
            | Kind::Object(_)
            | Kind::Range(_) => Ok((self.computed(expr)?, Seen::Nothing)),
        }
    }

    /// Returns the provenance of the stored value to which a name refers.
    fn seen(&self, name: &Name) -> Seen<'d> {
        let data = self.data;
        match name {
            Name::Context(name) => Seen::of(data.context_from.get(name)),
            Name::Task { task, field } => match (data.tasks.get(task), field) {
                (Some(task), TaskField::Result) => Seen::of(Some(&task.result_from)),
                (Some(task), TaskField::Results) => Seen::Many(&task.results_from),
                (Some(task), TaskField::Context(name)) => Seen::of(task.context_from.get(name)),
                (Some(task), TaskField::Artifact(name)) => Seen::of(task.artifacts_from.get(name)),
                (_, TaskField::Status | TaskField::Error) | (None, _) => Seen::Nothing,
            },
            Name::Param(_) | Name::Variable(_) | Name::Item | Name::Index | Name::Attempt => Seen::Nothing,
        }
    }

    /// Returns the value of an expression that computes a new value.
    fn computed(&mut self, expr: &Expr) -> Eval<Val<'d>> {
        self.budget.bytes(16)?;
        match &expr.kind {
            Kind::Value(value) => {
                self.budget.value(value)?;
                Ok(owned(value.clone()))
            }
            Kind::Name(_) | Kind::Attribute(..) | Kind::Index(..) | Kind::If { .. } => self.eval(expr),
            Kind::Slice(of, from, to) => self.slice(of, from.as_deref(), to.as_deref()),
            Kind::Not(of) => Ok(flag(!is_true(&*self.value(of)?))),
            Kind::Negate(of) => self.negate(of),
            Kind::Binary(op, left, right) => self.binary(*op, left, right),
            Kind::Filter { of, filter, arguments } => {
                let value = self.eval(of)?;
                filters::apply(self, filter.name, value, of, arguments)
            }
            Kind::Test { of, test, arguments, negated } => {
                let value = self.tested(test.name, of)?;
                let passed = self.test(test.name, &value, of, arguments)?;
                Ok(flag(passed != *negated))
            }
            Kind::List(items) => self.list(items),
            Kind::Object(entries) => self.object(entries),
            Kind::Range(arguments) => self.range(arguments),
        }
    }

    /// Returns the value for a test. Tests for existence do not read it, unless its absence may be due to truncation.
    fn tested(&mut self, test: &str, of: &Expr) -> Eval<Val<'d>> {
        if !matches!(test, "defined" | "undefined" | "none") {
            return self.eval(of);
        }
        let (value, seen) = self.traced(of)?;
        if seen.is_cut_here() && !matches!(&value, Val::One(_)) { Err(self.cut(of)) } else { Ok(value) }
    }

    fn name(&mut self, expr: &Expr, name: &Name) -> Eval<Val<'d>> {
        let data = self.data;
        self.note_author(name);
        match name {
            Name::Param(name) => Ok(self.field(&data.params, name, expr, "`params`")),
            Name::Context(name) => Ok(self.field(&data.context, name, expr, "`context`")),
            Name::Item => Ok(self.of_item(data.item.as_ref().map(Cow::Borrowed), expr)),
            Name::Index => Ok(self.of_item(data.index.map(|index| Cow::Owned(index.into())), expr)),
            Name::Attempt => Ok(owned(data.attempt.into())),
            // Only in arguments a reference may take its place; see `Evaluator::text`.
            Name::Variable(name) => {
                Err(EvalFault::Syntax(ExprFault::VariableElsewhere { name: name.clone() }).into())
            }
            Name::Task { task, field } => match data.tasks.get(task) {
                Some(task) => self.task_field(task, field, expr),
                None => Ok(self.missing(expr, "unknown task".to_owned(), None)),
            },
        }
    }

    /// Records the author of a value that is read, even if it is not part of the result: a condition selects the
    /// result.
    fn note_author(&mut self, name: &Name) {
        add_values(self.untrusted, self.data.untrusted(name));
    }

    fn of_item(&self, value: Option<Cow<'d, Value>>, expr: &Expr) -> Val<'d> {
        value.map_or_else(
            || self.missing(expr, "the task is not an item of a `forEach`".to_owned(), None),
            Val::One,
        )
    }

    fn task_field(&mut self, task: &'d TaskData, field: &TaskField, expr: &Expr) -> Eval<Val<'d>> {
        Ok(match field {
            TaskField::Result => Val::One(Cow::Borrowed(&task.result)),
            TaskField::Results => Val::Many(task.results.as_deref().ok_or(Exhausted)?),
            TaskField::Status => owned(task.status.as_str().into()),
            TaskField::Error => {
                self.budget.bytes(task.error.as_ref().map_or(0, String::len))?;
                owned(task.error.clone().into())
            }
            TaskField::Context(name) => self.field(&task.context, name, expr, "its context"),
            TaskField::Artifact(name) => self.field(&task.artifacts, name, expr, "its `artifacts`"),
        })
    }

    fn field(&self, map: &'d Map, name: &str, expr: &Expr, of: &str) -> Val<'d> {
        match map.get(name) {
            Some(value) => Val::One(Cow::Borrowed(value)),
            None => self.missing(expr, format!("{of} has {}", fields(map)), near(name, map)),
        }
    }

    fn missing(&self, expr: &Expr, there: String, hint: Option<String>) -> Val<'d> {
        let hint = hint.or_else(|| Some("`| default(…)` provides a fallback value".to_owned()));
        Val::Missing(Stop { fault: Box::new(EvalFault::Missing { path: self.source(expr), there }), hint })
    }

    /// Returns a field of a value, or a missing value.
    fn attribute(&mut self, value: Val<'d>, of: &Expr, name: &str, expr: &Expr) -> Val<'d> {
        match value {
            Val::One(Cow::Borrowed(value)) => match value.get(name) {
                Some(found) => Val::One(Cow::Borrowed(found)),
                None => self.no_field(of, value, name, expr),
            },
            Val::One(Cow::Owned(mut value)) => match value.get_mut(name) {
                Some(found) => owned(found.take()),
                None => self.no_field(of, &value, name, expr),
            },
            Val::Many(_) => self.missing(expr, format!("`{}` is a list", self.source(of)), None),
            missing @ Val::Missing(_) => missing,
        }
    }

    fn no_field(&self, of: &Expr, value: &Value, name: &str, expr: &Expr) -> Val<'d> {
        let path = self.source(of);
        if let Value::Object(map) = value {
            let printed = (name == "json" && map.contains_key("stdout")).then(|| {
                format!("set `parse: json` in `exec` or `shell`, or write `{path}.stdout | fromjson`")
            });
            let hint = printed.or_else(|| near(name, map));
            return self.missing(expr, format!("`{path}` has {}", fields(map)), hint);
        }
        let is_json = |text: &str| text.trim_start().starts_with(['{', '[']);
        let hint = if value.as_str().is_some_and(is_json) {
            Some(format!("parse it first: `({path} | fromjson).{name}`"))
        } else {
            self.none_hint(of, value)
        };
        self.missing(expr, format!("`{path}` is {}", described(value)), hint)
    }

    /// Returns a hint with the status of the task, if the value is its missing result.
    fn none_hint(&self, of: &Expr, value: &Value) -> Option<String> {
        let Kind::Name(Name::Task { task, .. }) = &of.kind else { return None };
        if !value.is_null() {
            return None;
        }
        let status = self.data.tasks.get(task)?.status;
        Some(format!("task `{task}` is {status}; `| default(…)` provides a fallback value"))
    }

    fn index(&mut self, value: Val<'d>, of: &Expr, index: &Value, expr: &Expr) -> Eval<Val<'d>> {
        if let Value::String(name) = index {
            return Ok(self.attribute(value, of, name, expr));
        }
        let Some(position) = index.as_i64() else {
            return Err(self.kind_fault("an index", "a whole number or a text", expr, index));
        };
        let at = |length: usize| position_in(position, length);
        let length = match &value {
            Val::Many(values) => values.len(),
            Val::One(value) => match &**value {
                Value::Array(items) => items.len(),
                Value::String(text) => return self.character(text, position, of, expr),
                other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
                    let there = format!("`{}` is {}", self.source(of), described(other));
                    let hint = self.none_hint(of, other);
                    return Ok(self.missing(expr, there, hint));
                }
            },
            Val::Missing(_) => return Ok(value),
        };
        let Some(at) = at(length) else {
            return Ok(self.missing(expr, format!("`{}` has {}", self.source(of), items(length)), None));
        };
        Ok(match value {
            Val::Many(values) => Val::One(Cow::Borrowed(&values[at])),
            Val::One(Cow::Borrowed(list)) => Val::One(Cow::Borrowed(&list[at])),
            Val::One(Cow::Owned(mut list)) => owned(list[at].take()),
            missing @ Val::Missing(_) => missing,
        })
    }

    fn character(&mut self, text: &str, position: i64, of: &Expr, expr: &Expr) -> Eval<Val<'d>> {
        self.budget.bytes(text.len())?;
        let length = text.chars().count();
        let found = position_in(position, length).and_then(|at| text.chars().nth(at));
        Ok(match found {
            Some(character) => owned(character.to_string().into()),
            None => self.missing(expr, format!("`{}` has {length} characters", self.source(of)), None),
        })
    }

    fn slice(&mut self, of: &Expr, from: Option<&Expr>, to: Option<&Expr>) -> Eval<Val<'d>> {
        let value = self.value(of)?;
        let from = from.map(|from| self.whole(from, "a slice")).transpose()?.unwrap_or(0);
        let to = to.map(|to| self.whole(to, "a slice")).transpose()?;
        self.budget.value(&value)?;
        let bounds = |length: usize| {
            let from = clamp(from, length);
            let to = to.map_or(length, |to| clamp(to, length));
            (from, to.max(from))
        };
        match &*value {
            Value::Array(items) => {
                let (from, to) = bounds(items.len());
                Ok(owned(Value::Array(items[from..to].to_vec())))
            }
            Value::String(text) => {
                let (from, to) = bounds(text.chars().count());
                Ok(owned(text.chars().skip(from).take(to - from).collect::<String>().into()))
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
                Err(self.kind_fault("a slice", "a list or a text", of, other))
            }
        }
    }

    /// Returns a whole number.
    pub(super) fn whole(&mut self, expr: &Expr, what: &str) -> Eval<i64> {
        let value = self.value(expr)?;
        value.as_i64().ok_or_else(|| self.kind_fault(what, "a whole number", expr, &value))
    }

    pub(super) fn kind_fault(&self, what: &str, expected: &'static str, expr: &Expr, found: &Value) -> Stop {
        let (path, found) = (self.source(expr), described(found));
        EvalFault::Kind { what: what.to_owned(), expected, path, found }.into()
    }

    fn negate(&mut self, of: &Expr) -> Eval<Val<'d>> {
        let value = self.value(of)?;
        match Num::of(&value) {
            Some(number) => Ok(owned(number.negate().value()?)),
            None => Err(self.kind_fault("`-`", "a number", of, &value)),
        }
    }

    fn binary(&mut self, op: Op, left: &Expr, right: &Expr) -> Eval<Val<'d>> {
        if matches!(op, Op::And | Op::Or) {
            let value = self.value(left)?;
            // Like in Python, `and` and `or` return one of their values, and evaluate the right one only if it is
            // needed.
            let decided = is_true(&value) == (op == Op::Or);
            return if decided { Ok(Val::One(value)) } else { Ok(Val::One(self.value(right)?)) };
        }
        if op == Op::Concat {
            return self.concat(left, right);
        }
        let (first, second) = (self.value(left)?, self.value(right)?);
        match op {
            Op::Equal => Ok(flag(self.equal(&first, &second)?)),
            Op::Unequal => Ok(flag(!self.equal(&first, &second)?)),
            Op::In => Ok(flag(self.contains(&second, &first, right)?)),
            Op::NotIn => Ok(flag(!self.contains(&second, &first, right)?)),
            Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual => {
                let order = self.order(op.as_str(), &first, &second)?;
                Ok(flag(holds(op, order)))
            }
            Op::Or
            | Op::And
            | Op::Concat
            | Op::Add
            | Op::Subtract
            | Op::Multiply
            | Op::Divide
            | Op::FloorDivide
            | Op::Remainder => self.arithmetic(op, first, second),
        }
    }

    fn concat(&mut self, left: &Expr, right: &Expr) -> Eval<Val<'d>> {
        let first = self.value(left)?;
        let mut text = self.text_of(&first, left)?;
        let second = self.value(right)?;
        let second = self.text_of(&second, right)?;
        self.budget.bytes(text.len() + second.len())?;
        text.push_str(&second);
        Ok(owned(text.into()))
    }

    fn arithmetic(&mut self, op: Op, left: Cow<'d, Value>, right: Cow<'d, Value>) -> Eval<Val<'d>> {
        if let (Some(left), Some(right)) = (Num::of(&left), Num::of(&right)) {
            return Ok(owned(apply(op, left, right)?));
        }
        let kinds = (kind(&left), kind(&right));
        if op == Op::Add {
            self.budget.value(&left)?;
            self.budget.value(&right)?;
            match (left.into_owned(), right.into_owned()) {
                (Value::String(left), Value::String(right)) => return Ok(owned((left + &right).into())),
                (Value::Array(mut left), Value::Array(right)) => {
                    left.extend(right);
                    return Ok(owned(Value::Array(left)));
                }
                _ => {}
            }
        }
        let fault = EvalFault::Operands { operator: op.as_str(), left: kinds.0, right: kinds.1 };
        let hint = (op == Op::Add).then(|| "`~` joins any two values as text".to_owned());
        Err(Stop { fault: Box::new(fault), hint })
    }

    /// Returns whether two values are equal; `1` equals `1.0`.
    pub(super) fn equal(&mut self, left: &Value, right: &Value) -> Eval<bool> {
        self.budget.value(left)?;
        self.budget.value(right)?;
        Ok(same(left, right))
    }

    /// Compares two numbers or two texts.
    pub(super) fn order(&mut self, operator: &'static str, left: &Value, right: &Value) -> Eval<Ordering> {
        if let (Some(left), Some(right)) = (Num::of(left), Num::of(right)) {
            self.budget.bytes(1)?;
            return Ok(left.compare(right));
        }
        if let (Value::String(left), Value::String(right)) = (left, right) {
            self.budget.bytes(left.len().min(right.len()))?;
            return Ok(left.cmp(right));
        }
        Err(EvalFault::Operands { operator, left: kind(left), right: kind(right) }.into())
    }

    fn contains(&mut self, container: &Value, wanted: &Value, of: &Expr) -> Eval<bool> {
        match (container, wanted) {
            (Value::Array(items), wanted) => {
                for item in items {
                    if self.equal(item, wanted)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Value::Object(map), Value::String(key)) => Ok(map.contains_key(key)),
            (Value::String(text), Value::String(part)) => {
                self.budget.bytes(text.len() + part.len())?;
                Ok(text.contains(part.as_str()))
            }
            (Value::String(_) | Value::Object(_), wanted) => {
                let (left, right) = (kind(wanted), kind(container));
                Err(EvalFault::Operands { operator: "in", left, right }.into())
            }
            (container, _) => Err(self.kind_fault("`in`", "a list, an object or a text", of, container)),
        }
    }

    fn list(&mut self, exprs: &[Expr]) -> Eval<Val<'d>> {
        let mut items = Vec::with_capacity(exprs.len());
        for expr in exprs {
            items.push(self.copied(expr)?);
        }
        Ok(owned(Value::Array(items)))
    }

    /// Returns an owned copy of the value of an expression.
    pub(super) fn copied(&mut self, expr: &Expr) -> Eval<Value> {
        let value = self.value(expr)?;
        self.budget.value(&value)?;
        Ok(value.into_owned())
    }

    fn object(&mut self, entries: &[(Expr, Expr)]) -> Eval<Val<'d>> {
        let mut map = Map::new();
        for (key, value) in entries {
            let name = self.value(key)?;
            let Value::String(name) = name.into_owned() else {
                let value = self.value(key)?;
                return Err(self.kind_fault("a key", "a text", key, &value));
            };
            let value = self.copied(value)?;
            map.insert(name, value);
        }
        Ok(owned(Value::Object(map)))
    }

    fn range(&mut self, arguments: &[Expr]) -> Eval<Val<'d>> {
        let first = self.whole(&arguments[0], "`range`")?;
        let (from, to) = match arguments.get(1) {
            Some(to) => (first, self.whole(to, "`range`")?),
            None => (0, first),
        };
        // A negative length, with `to` below `from`, is an empty range.
        let length = usize::try_from(to.saturating_sub(from)).unwrap_or(0);
        self.budget.bytes(length.saturating_mul(32))?;
        Ok(owned(Value::Array((from..to).map(Value::from).collect())))
    }

    fn test(&mut self, test: &str, value: &Val<'d>, of: &Expr, arguments: &[Expr]) -> Eval<bool> {
        let value = match value {
            Val::Missing(_) if test == "defined" => return Ok(false),
            Val::Missing(_) if test == "undefined" => return Ok(true),
            Val::Missing(stop) => return Err(stop.clone()),
            Val::Many(_) => return Ok(matches!(test, "defined" | "sequence")),
            Val::One(value) => value,
        };
        let argument = arguments.first().map(|argument| self.value(argument)).transpose()?;
        self.passes(test, value, of, argument.as_deref())
    }

    /// Returns whether an existing value passes a test.
    pub(super) fn passes(
        &mut self,
        test: &str,
        value: &Value,
        of: &Expr,
        argument: Option<&Value>,
    ) -> Eval<bool> {
        let remainder = |divisor: i64| value.as_i64().and_then(|number| number.checked_rem_euclid(divisor));
        Ok(match test {
            "defined" => true,
            "none" => value.is_null(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            "float" => value.is_f64(),
            "string" => value.is_string(),
            "sequence" => value.is_array(),
            "mapping" => value.is_object(),
            "true" => value == &Value::Bool(true),
            "false" => value == &Value::Bool(false),
            "odd" => remainder(2) == Some(1),
            "even" => remainder(2) == Some(0),
            "divisibleby" => argument.and_then(Value::as_i64).and_then(remainder) == Some(0),
            "startingwith" | "endingwith" => {
                let (Value::String(whole), Some(Value::String(part))) = (value, argument) else {
                    return Err(self.kind_fault(&format!("`{test}`"), "two texts", of, value));
                };
                if test == "startingwith" { whole.starts_with(part) } else { whole.ends_with(part) }
            }
            _ => false,
        })
    }

    /// Returns the text that is inserted for a value.
    pub(super) fn text_of(&mut self, value: &Value, expr: &Expr) -> Eval<String> {
        self.budget.value(value)?;
        match value {
            Value::String(text) => Ok(text.clone()),
            Value::Null => Err(EvalFault::NoText { path: self.source(expr) }.into()),
            Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
            // This is a second payment, because the JSON form can be longer than the value: a character becomes up to
            // six.
            Value::Array(_) | Value::Object(_) => {
                self.budget.value(value)?;
                Ok(value.to_string())
            }
        }
    }
}

/// Returns whether a value counts as true. None, false, zero, and empty values do not.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// Returns whether two values are equal. Recursion is safe, because the depth of all values is limited.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => {
            Num::of(left).zip(Num::of(right)).is_some_and(|(left, right)| left.equals(right))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same_field = |(key, value)| right.get(key).is_some_and(|other| same(value, other));
            left.len() == right.len() && left.iter().all(same_field)
        }
        (left, right) => left == right,
    }
}

fn holds(op: Op, order: Ordering) -> bool {
    let or_equal = matches!(op, Op::LessOrEqual | Op::GreaterOrEqual);
    let wanted = if matches!(op, Op::Less | Op::LessOrEqual) { Ordering::Less } else { Ordering::Greater };
    order == wanted || (or_equal && order.is_eq())
}

/// Converts a position, which counts from the end if it is negative, to an index of a list.
fn position_in(position: i64, length: usize) -> Option<usize> {
    let length_signed = i64::try_from(length).ok()?;
    let at = if position < 0 { position.checked_add(length_signed)? } else { position };
    usize::try_from(at).ok().filter(|at| *at < length)
}

fn clamp(position: i64, length: usize) -> usize {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let at = if position < 0 { position.saturating_add(length) } else { position };
    usize::try_from(at.clamp(0, length)).unwrap_or(0)
}
