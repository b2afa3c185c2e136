//! The filters. Each one pays for the values that it walks or creates before it does so.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Number, Value};

use super::ast::{Arguments, Expr, Op};
use super::error::EvalFault;
use super::eval::{Eval, Machine, Stop, Val, is_true, owned};
use super::number::{Num, apply as arithmetic};
use super::param_type::ParamType;
use super::provenance::Seen;
use super::say::{described, quoted};
use super::typed::written_type;
use super::words::{self, TYPED};

/// Applies a filter to a value.
pub(super) fn apply<'d>(
    machine: &mut Machine<'d, '_>,
    name: &'static str,
    value: Val<'d>,
    of: &Expr,
    arguments: &Arguments,
) -> Eval<Val<'d>> {
    if let Some(shortcut) = without_copy(name, &value) {
        return Ok(shortcut);
    }
    let value = match value {
        Val::One(value) => {
            machine.budget.value(&value)?;
            value
        }
        Val::Many(values) => {
            values.iter().try_for_each(|value| machine.budget.value(value))?;
            Cow::Owned(Value::Array(values.to_vec()))
        }
        Val::Missing(stop) => return Err(stop),
    };
    let mut filter = Filter { machine, name, of, arguments };
    filter.apply(&value)
}

/// Replaces a missing value.
pub(super) fn default<'d>(
    machine: &mut Machine<'d, '_>,
    of: &Expr,
    arguments: &Arguments,
) -> Eval<(Val<'d>, Seen<'d>)> {
    machine.budget.bytes(16)?;
    let (value, seen) = machine.traced(of)?;
    if seen.is_cut_here() && matches!(value, Val::Missing(_)) {
        // The missing part may be in the truncated part of the stored value.
        machine.read(of, seen)?;
    }
    let also_false = match arguments.plain.get(1) {
        Some(flag) => is_true(&*machine.value(flag)?),
        None => false,
    };
    let is_usable = match &value {
        Val::One(value) => !value.is_null() && (!also_false || is_true(value)),
        Val::Many(values) => !also_false || !values.is_empty(),
        Val::Missing(_) => false,
    };
    // Only the used value is traced, so the fallback is not evaluated if it is not needed.
    if is_usable { Ok((value, seen)) } else { machine.traced(&arguments.plain[0]) }
}

/// Evaluates `of`, and fails for a value of another type. A missing value stays missing.
pub(super) fn typed<'d>(
    machine: &mut Machine<'d, '_>,
    of: &Expr,
    arguments: &Arguments,
) -> Eval<(Val<'d>, Seen<'d>)> {
    let (value, seen) = machine.traced(of)?;
    let Some(kind) = written_type(arguments) else { return Ok((value, seen)) };
    let wrong = match &value {
        Val::One(value) if !kind.fits(value) => Some((described(value), ParamType::of(value))),
        Val::Many(_) if kind != ParamType::Array => Some(("a list".to_owned(), Some(ParamType::Array))),
        Val::One(_) | Val::Many(_) | Val::Missing(_) => None,
    };
    let Some((found, own)) = wrong else { return Ok((value, seen)) };
    let what = match arguments.plain.get(1) {
        Some(name) => format!("parameter `{}`", machine.value(name)?.as_str().unwrap_or_default()),
        None => format!("`{TYPED}`"),
    };
    let (path, expected) = (machine.source(of), kind.expected());
    let hint = match own {
        Some(own) => kind.conversion_of(own).map(str::to_owned),
        None => Some("add `| default(…)`".to_owned()),
    };
    Err(Stop { fault: Box::new(EvalFault::Kind { what, expected, path, found }), hint })
}

/// Returns the results of filters that need not copy the results of a task.
fn without_copy<'d>(name: &str, value: &Val<'d>) -> Option<Val<'d>> {
    let Val::Many(values) = value else { return None };
    let item = |item: Option<&'d Value>| item.map(|item| Val::One(Cow::Borrowed(item)));
    match name {
        "length" => Some(owned(values.len().into())),
        "first" => item(values.first()),
        "last" => item(values.last()),
        _ => None,
    }
}

struct Filter<'m, 'd, 'e> {
    machine: &'m mut Machine<'d, 'e>,
    name: &'static str,
    /// The expression to which the filter is applied.
    of: &'m Expr,
    arguments: &'m Arguments,
}

impl<'d> Filter<'_, 'd, '_> {
    fn apply(&mut self, value: &Value) -> Eval<Val<'d>> {
        self.pay_for_parts(value)?;
        if let "first" | "last" = self.name {
            return self.end(value);
        }
        let result = match self.name {
            "abs" => self.number(value)?.abs().value()?,
            "round" => self.round(value)?,
            "int" | "float" => self.parsed(value)?,
            "fromjson" => self.json_read(value)?,
            "tojson" => self.json_written(value)?,
            "string" => Value::from(self.machine.text_of(value, self.of)?),
            "length" => self.length(value)?,
            "lower" => self.text(value)?.to_lowercase().into(),
            "upper" => self.text(value)?.to_uppercase().into(),
            "trim" => self.trim(value)?,
            "lines" => self.text(value)?.lines().map(Value::from).collect(),
            "split" => self.split(value)?,
            "replace" => self.replace(value)?,
            "urlencode" => self.url_encode(value)?,
            _ => self.of_items(value)?,
        };
        Ok(owned(result))
    }

    fn of_items(&mut self, value: &Value) -> Eval<Value> {
        Ok(match self.name {
            "keys" => self.object(value)?.keys().map(|key| Value::from(key.as_str())).collect(),
            "values" => self.object(value)?.values().cloned().collect(),
            "items" => self
                .object(value)?
                .iter()
                .map(|(key, value)| Value::from(vec![key.as_str().into(), value.clone()]))
                .collect(),
            "join" => self.join(value)?,
            "list" => Value::Array(self.items(value)?),
            "reverse" => self.reverse(value)?,
            "map" => Value::Array(self.projected(value)?),
            "max" => self.extreme(value, Ordering::Greater)?,
            "min" => self.extreme(value, Ordering::Less)?,
            "sort" => self.sort(value)?,
            "sum" => self.sum(value)?,
            "unique" => self.unique(value)?,
            "selectattr" => self.select(value, true)?,
            "rejectattr" => self.select(value, false)?,
            name => unreachable(name),
        })
    }

    /// Pays for the list that a text becomes: each part is a separate value.
    fn pay_for_parts(&mut self, value: &Value) -> Eval<()> {
        const PART: usize = 64;
        let Value::String(text) = value else { return Ok(()) };
        let parts = match self.name {
            "first" | "last" | "list" | "reverse" => text.chars().count(),
            "lines" => text.lines().count(),
            _ => 0,
        };
        Ok(self.machine.budget.bytes(parts.saturating_mul(PART))?)
    }

    fn wrong(&self, expected: &'static str, value: &Value) -> Stop {
        self.machine.kind_fault(&format!("`{}`", self.name), expected, self.of, value)
    }

    fn text<'v>(&self, value: &'v Value) -> Eval<&'v str> {
        value.as_str().ok_or_else(|| self.wrong("a text", value))
    }

    fn number(&self, value: &Value) -> Eval<Num> {
        Num::of(value).ok_or_else(|| self.wrong("a number", value))
    }

    fn object<'v>(&self, value: &'v Value) -> Eval<&'v crate::value::Map> {
        value.as_object().ok_or_else(|| self.wrong("an object", value))
    }

    fn list<'v>(&self, value: &'v Value) -> Eval<&'v [Value]> {
        value.as_array().map(Vec::as_slice).ok_or_else(|| self.wrong("a list", value))
    }

    /// Returns the items of a list, the characters of a text, or the keys of an object.
    fn items(&self, value: &Value) -> Eval<Vec<Value>> {
        match value {
            Value::Array(items) => Ok(items.clone()),
            Value::String(text) => Ok(text.chars().map(|character| character.to_string().into()).collect()),
            Value::Object(map) => Ok(map.keys().map(|key| Value::from(key.as_str())).collect()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                Err(self.wrong("a list, a text or an object", value))
            }
        }
    }

    fn argument(&mut self, position: usize) -> Eval<Option<Cow<'d, Value>>> {
        self.arguments.plain.get(position).map(|expr| self.machine.value(expr)).transpose()
    }

    fn named(&mut self, name: &str) -> Eval<Option<Cow<'d, Value>>> {
        let expr = self.arguments.named.iter().find(|(other, _)| other == name);
        expr.map(|(_, expr)| self.machine.value(expr)).transpose()
    }

    fn text_argument(&mut self, position: usize) -> Eval<Option<String>> {
        let Some(value) = self.argument(position)? else { return Ok(None) };
        self.machine.budget.value(&value)?;
        match value.into_owned() {
            Value::String(text) => Ok(Some(text)),
            other
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Err(self.machine.kind_fault(
                    &format!("`{}`", self.name),
                    "a text in its parentheses",
                    &self.arguments.plain[position],
                    &other,
                ))
            }
        }
    }

    fn whole_argument(&mut self, position: usize) -> Eval<Option<i64>> {
        let what = format!("`{}`", self.name);
        self.arguments.plain.get(position).map(|expr| self.machine.whole(expr, &what)).transpose()
    }

    fn end(&mut self, value: &Value) -> Eval<Val<'d>> {
        let items = self.items(value)?;
        let item = if self.name == "first" { items.first() } else { items.last() };
        Ok(item.cloned().map_or_else(
            || {
                let path = format!("{} | {}", self.machine.source(self.of), self.name);
                let fault = EvalFault::Missing {
                    path,
                    there: format!("`{}` is empty", self.machine.source(self.of)),
                };
                Val::Missing(Stop {
                    fault: Box::new(fault),
                    hint: Some("`| default(…)` provides a fallback value".to_owned()),
                })
            },
            owned,
        ))
    }

    fn length(&mut self, value: &Value) -> Eval<Value> {
        Ok(match value {
            Value::Array(items) => items.len().into(),
            Value::Object(map) => map.len().into(),
            Value::String(text) => text.chars().count().into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                return Err(self.wrong("a list, a text or an object", value));
            }
        })
    }

    fn round(&mut self, value: &Value) -> Eval<Value> {
        let number = self.number(value)?;
        let digits = self.whole_argument(0)?.unwrap_or(0).clamp(0, 15);
        let factor = 10_f64.powi(i32::try_from(digits).unwrap_or(0));
        match number {
            Num::Int(_) => Ok(number.value()?),
            // At this size a float has no further digits that rounding could remove.
            Num::Float(float) if (float * factor).abs() > 1e15 => Ok(number.value()?),
            Num::Float(float) => Ok(Num::Float((float * factor).round() / factor).value()?),
        }
    }

    /// Parses a number from a text.
    fn parsed(&mut self, value: &Value) -> Eval<Value> {
        let number = match value {
            Value::Number(_) => Num::of(value),
            Value::String(text) => {
                text.trim().parse::<Number>().ok().and_then(|number| Num::of(&Value::Number(number)))
            }
            Value::Bool(flag) => Some(Num::Int(i128::from(*flag))),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let number = if self.name == "int" {
            number.and_then(Num::truncate)
        } else {
            number.map(|number| Num::Float(number.float()))
        };
        let value_of = number.and_then(|number| number.value().ok());
        match (value_of, self.argument(0)?) {
            (Some(number), _) => Ok(number),
            (None, Some(other)) => Ok(other.into_owned()),
            (None, None) => Err(self.wrong("a number, as number or text", value)),
        }
    }

    fn json_read(&mut self, value: &Value) -> Eval<Value> {
        let text = self.text(value)?;
        // A value takes more memory than its text: `[0,0,…]` takes sixteen times as much.
        self.machine.budget.bytes(text.len().saturating_mul(16))?;
        taskpawl_json::read(text).map_err(|error| {
            let reason = error.to_string();
            EvalFault::Unreadable { filter: "fromjson", text: quoted(text), reason }.into()
        })
    }

    fn json_written(&mut self, value: &Value) -> Eval<Value> {
        for _ in 0..2 {
            self.machine.budget.value(value)?;
        }
        Ok(value.to_string().into())
    }

    fn trim(&mut self, value: &Value) -> Eval<Value> {
        let text = self.text(value)?;
        Ok(match self.text_argument(0)? {
            None => text.trim().into(),
            Some(characters) => {
                self.machine.budget.bytes(text.len().saturating_mul(characters.len()) / 16)?;
                text.trim_matches(|character| characters.contains(character)).into()
            }
        })
    }

    fn split(&mut self, value: &Value) -> Eval<Value> {
        let text = self.text(value)?;
        let separator = self.text_argument(0)?;
        let cuts = self.whole_argument(1)?.and_then(|cuts| usize::try_from(cuts).ok());
        self.machine.budget.bytes(text.len().saturating_mul(32))?;
        Ok(match (separator.as_deref(), cuts) {
            (None | Some(""), _) => text.split_whitespace().map(Value::from).collect(),
            (Some(separator), None) => text.split(separator).map(Value::from).collect(),
            (Some(separator), Some(cuts)) => {
                text.splitn(cuts.saturating_add(1), separator).map(Value::from).collect()
            }
        })
    }

    fn replace(&mut self, value: &Value) -> Eval<Value> {
        let text = self.text(value)?;
        let (from, to) =
            (self.text_argument(0)?.unwrap_or_default(), self.text_argument(1)?.unwrap_or_default());
        if from.is_empty() {
            return Err(self.machine.kind_fault(
                "`replace`",
                "a text that is not empty",
                &self.arguments.plain[0],
                &from.into(),
            ));
        }
        let matches = text.matches(from.as_str()).count();
        self.machine.budget.bytes(text.len().saturating_add(matches.saturating_mul(to.len())))?;
        Ok(text.replace(from.as_str(), &to).into())
    }

    fn url_encode(&mut self, value: &Value) -> Eval<Value> {
        let text = self.machine.text_of(value, self.of)?;
        self.machine.budget.bytes(text.len().saturating_mul(3))?;
        let mut encoded = String::with_capacity(text.len());
        for byte in text.bytes() {
            if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                write!(encoded, "%{byte:02X}").expect("BUG: writing to a string failed");
            }
        }
        Ok(encoded.into())
    }

    fn join(&mut self, value: &Value) -> Eval<Value> {
        let items = if value.is_string() { self.items(value)? } else { self.projected(value)? };
        let separator = self.text_argument(0)?.unwrap_or_default();
        self.machine.budget.bytes(separator.len().saturating_mul(items.len()))?;
        let mut text = String::new();
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                text.push_str(&separator);
            }
            text.push_str(&self.machine.text_of(item, self.of)?);
        }
        Ok(text.into())
    }

    fn reverse(&mut self, value: &Value) -> Eval<Value> {
        if let Value::String(text) = value {
            return Ok(text.chars().rev().collect::<String>().into());
        }
        Ok(self.list(value)?.iter().rev().cloned().collect())
    }

    /// Returns the items of a list, or the field `attribute` of each.
    fn projected(&mut self, value: &Value) -> Eval<Vec<Value>> {
        let items = self.list(value)?;
        let Some(path) = self.attribute_name()? else { return Ok(items.to_vec()) };
        let default = self.named("default")?;
        let mut fields = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match (self.field_of(item, &path)?, &default) {
                (Some(field), _) => fields.push(field.clone()),
                (None, Some(default)) => {
                    self.machine.budget.value(default)?;
                    fields.push((**default).clone());
                }
                (None, None) => return Err(self.no_field(item, index, &path)),
            }
        }
        Ok(fields)
    }

    fn attribute_name(&mut self) -> Eval<Option<String>> {
        match self.named("attribute")?.map(Cow::into_owned) {
            None => Ok(None),
            Some(Value::String(path)) => Ok(Some(path)),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(other) => Err(self.wrong("a text as `attribute`", &other)),
        }
    }

    /// Returns the part of a value at a path such as `a.b.0`.
    fn field_of<'v>(&mut self, value: &'v Value, path: &str) -> Eval<Option<&'v Value>> {
        self.machine.budget.bytes(path.len())?;
        let step = |value: &'v Value, name: &str| match value {
            Value::Array(items) => items.get(name.parse::<usize>().ok()?),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                value.get(name)
            }
        };
        Ok(path.split('.').try_fold(value, step))
    }

    fn no_field(&self, item: &Value, index: usize, path: &str) -> Stop {
        let list = self.machine.source(self.of);
        let fault = EvalFault::Missing {
            path: format!("({list})[{index}].{path}"),
            there: format!("`({list})[{index}]` is {}", described(item)),
        };
        let hint = (self.name == "map").then(|| "`default=…` provides a fallback value".to_owned());
        Stop { fault: Box::new(fault), hint }
    }

    /// Returns every item with its sort key.
    fn keyed(&mut self, value: &Value) -> Eval<Vec<(Value, Value)>> {
        let keys = self.projected(value)?;
        Ok(keys.into_iter().zip(self.list(value)?.iter().cloned()).collect())
    }

    fn extreme(&mut self, value: &Value, wanted: Ordering) -> Eval<Value> {
        let mut items = self.keyed(value)?.into_iter();
        let Some(mut best) = items.next() else { return Err(self.wrong("a list that is not empty", value)) };
        for item in items {
            if self.machine.order(self.name, &item.0, &best.0)? == wanted {
                best = item;
            }
        }
        Ok(best.1)
    }

    fn sort(&mut self, value: &Value) -> Eval<Value> {
        let mut items = self.keyed(value)?;
        // Sorting cannot stop in between, so all comparisons are paid for before it starts.
        let rounds = usize::BITS - items.len().leading_zeros();
        for (key, _) in &items {
            for _ in 0..rounds {
                self.machine.budget.value(key)?;
            }
        }
        // The comparison of the sort cannot fail, so values that cannot be compared are reported here.
        for pair in items.windows(2) {
            self.machine.order("sort", &pair[0].0, &pair[1].0)?;
        }
        items.sort_by(|left, right| sorted_before(&left.0, &right.0));
        if self.named("reverse")?.is_some_and(|flag| is_true(&flag)) {
            items.reverse();
        }
        Ok(items.into_iter().map(|(_, item)| item).collect())
    }

    fn sum(&mut self, value: &Value) -> Eval<Value> {
        let mut sum = Value::from(0);
        for item in self.projected(value)? {
            let (left, right) = (self.number(&sum)?, self.number(&item)?);
            sum = arithmetic(Op::Add, left, right)?;
        }
        Ok(sum)
    }

    fn unique(&mut self, value: &Value) -> Eval<Value> {
        let mut seen = HashSet::new();
        let items = self.keyed(value)?.into_iter();
        Ok(items.filter(|(key, _)| seen.insert(normal(key))).map(|(_, item)| item).collect())
    }

    /// Keeps the items with a field that passes the test, or those with a field that does not.
    fn select(&mut self, value: &Value, wanted: bool) -> Eval<Value> {
        let path = self.text_argument(0)?.unwrap_or_default();
        let test = self.text_argument(1)?;
        let other = self.argument(2)?;
        let mut kept = Vec::new();
        for item in self.list(value)? {
            let field = self.field_of(item, &path)?;
            if self.is_selected(field, test.as_deref(), other.as_deref())? == wanted {
                kept.push(item.clone());
            }
        }
        Ok(Value::Array(kept))
    }

    fn is_selected(
        &mut self,
        field: Option<&Value>,
        test: Option<&str>,
        other: Option<&Value>,
    ) -> Eval<bool> {
        let Some(test) = test else { return Ok(field.is_some_and(is_true)) };
        let value = match (field, test) {
            (None, "defined") => return Ok(false),
            (None, "undefined") => return Ok(true),
            (field, _) => field.unwrap_or(&Value::Null),
        };
        let machine = &mut *self.machine;
        match (test, other) {
            ("==" | "eq" | "equalto", Some(other)) => machine.equal(value, other),
            ("!=" | "ne", Some(other)) => Ok(!machine.equal(value, other)?),
            ("in", Some(Value::Array(list))) => {
                for item in list {
                    if machine.equal(value, item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            ("<", Some(other)) => Ok(machine.order("<", value, other)?.is_lt()),
            ("<=", Some(other)) => Ok(machine.order("<=", value, other)?.is_le()),
            (">", Some(other)) => Ok(machine.order(">", value, other)?.is_gt()),
            (">=", Some(other)) => Ok(machine.order(">=", value, other)?.is_ge()),
            (name, other)
                if words::test(name).is_some_and(|word| word.least == usize::from(other.is_some())) =>
            {
                machine.passes(name, value, self.of, other)
            }
            (name, _) => Err(self.wrong("a test or an operator with its value", &name.into())),
        }
    }
}

fn sorted_before(left: &Value, right: &Value) -> Ordering {
    match (Num::of(left), Num::of(right)) {
        (Some(left), Some(right)) => left.compare(right),
        _ => left.as_str().cmp(&right.as_str()),
    }
}

/// Returns a text that is equal for equal values, such as `1` and `1.0`.
fn normal(value: &Value) -> String {
    match Num::of(value) {
        Some(Num::Float(float)) if float.fract() == 0.0 => Num::Float(float)
            .truncate()
            .and_then(|int| int.value().ok())
            .map_or_else(|| value.to_string(), |int| int.to_string()),
        _ => value.to_string(),
    }
}

fn unreachable(name: &str) -> Value {
    panic!("BUG: the filter `{name}` is in the table and does nothing")
}
