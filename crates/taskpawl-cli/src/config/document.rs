//! A configuration file as read: its values, and the line of each.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Number, Value};
use serde_path_to_error::Segment;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::key::Key;
use super::key::expectation;
use super::sections::{AGENTS, COLLECTORS_ONLY_USER, ENGINES, PLANNER, SANDBOX, SECRETS_ONLY_USER, Section};
use super::setting::{Layer, Origin};

/// A configuration file.
pub(super) struct Document<'a> {
    pub(super) path: &'a Path,
    pub(super) layer: Layer,
    text: &'a str,
    table: DeTable<'a>,
    /// The values as JSON, which has no positions.
    pub(super) values: Map<String, Value>,
}

impl<'a> Document<'a> {
    /// Parses a file.
    pub(super) fn parse(path: &'a Path, text: &'a str, layer: Layer) -> Result<Self, ConfigError> {
        let table = DeTable::parse(text)
            .map_err(|error| ConfigError::Syntax { path: path.to_owned(), source: Box::new(error) })?;
        let table = table.into_inner();
        let mut keys = Vec::new();
        let values = json_of_table(&table, &mut keys);
        let document = Self { path, layer, text, table, values: values.unwrap_or_default() };
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        match keys[..] {
            [] => Ok(document),
            [section @ ("tools" | "mcpServers"), name, ..] => {
                let problem = "contains a date, which no field is".to_owned();
                Err(document.problem(&keys, format!("{section}.{name}"), problem))
            }
            _ => Err(document.invalid(&keys)),
        }
    }

    /// Deserializes the values. An error names the key that has the wrong value, or is unknown.
    pub(super) fn read<'d, T: Deserialize<'d>>(&'d self) -> Result<T, ConfigError> {
        serde_path_to_error::deserialize(&self.values).map_err(|error| {
            let keys = error.path().iter().map_while(|segment| match segment {
                Segment::Map { key } => Some(key.as_str()),
                Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => None,
            });
            self.invalid(&keys.collect::<Vec<_>>())
        })
    }

    /// Refuses entries that only the file of the user may have, and lists in place of sections.
    pub(super) fn check_sections(&self) -> Result<(), ConfigError> {
        // Serde reads a list as the fields of a struct.
        let is_list = |name: &&str| self.values.get(*name).is_some_and(Value::is_array);
        if let Some(name) =
            ["engines", "mcp", "output", "planner", "run", "sandbox", "trace"].into_iter().find(is_list)
        {
            return Err(self.invalid(&[name]));
        }
        if self.layer == Layer::User {
            return Ok(());
        }
        if self.values.contains_key("actor") {
            return Err(ConfigError::ActorOfProject {
                path: self.path.to_owned(),
                line: self.line(&["actor"]),
            });
        }
        if self.values.contains_key("trace") {
            return Err(self.unknown_key(&["trace", "collectors"], COLLECTORS_ONLY_USER.to_owned()));
        }
        for Section { name, only_user, .. } in [ENGINES, PLANNER, AGENTS] {
            if let Some(hint) = only_user.filter(|_| self.values.contains_key(name)) {
                return Err(self.unknown_key(&[name], hint.to_owned()));
            }
        }
        match self.values.get("secrets").and_then(|secrets| secrets.as_object()?.keys().next()) {
            Some(name) => Err(self.unknown_key(&["secrets", name], SECRETS_ONLY_USER.to_owned())),
            None => Ok(()),
        }
    }

    /// Returns the value of a key.
    pub(super) fn value(&self, key: Key) -> Option<&Value> {
        let mut steps = key.as_str().split('.');
        let first = self.values.get(steps.next()?);
        steps.fold(first, |value, step| value?.get(step))
    }

    pub(super) fn origin(&self) -> Origin {
        Origin::File(self.path.to_owned())
    }

    /// Returns the line of the key at a path, or of the last key of the path that exists.
    pub(super) fn line(&self, path: &[&str]) -> usize {
        let at = find(&self.table, path).map_or(0, |(at, _)| at);
        self.text[..at].matches('\n').count() + 1
    }

    /// Returns the error for the value at a path, which may lie inside the value of a key, or for an unknown key.
    pub(super) fn invalid(&self, path: &[&str]) -> ConfigError {
        let known = (1..=path.len()).rev().find_map(|length| Some((length, expectation(&path[..length])?)));
        let Some((length, (meaning, expected))) = known else {
            let hint = match path {
                ["sandbox", _, ..] => SANDBOX.keys.to_owned(),
                ["planner", _, ..] => PLANNER.keys.to_owned(),
                ["agents", _, _, ..] => AGENTS.keys.to_owned(),
                ["engines", _, ..] => ENGINES.keys.to_owned(),
                _ => Key::from_name(&path.join(".")).err().unwrap_or_default(),
            };
            return self.unknown_key(path, hint);
        };
        let name = path[..length].join(".");
        let is_text = Key::from_name(&name).is_ok_and(Key::is_text);
        let found = find(&self.table, &path[..length]).map(|(_, value)| value);
        let text = found.and_then(|value| value.get_ref().as_str()).filter(|_| is_text);
        let written = || found.map_or("", |value| &self.text[value.span()]);
        let value = text.unwrap_or_else(written).to_owned();
        let (origin, line) = (self.origin(), Some(self.line(&path[..length])));
        ConfigError::Value { origin, line, name, meaning, value, expected }
    }

    pub(super) fn unknown_key(&self, path: &[&str], hint: String) -> ConfigError {
        let (line, key) = (self.line(path), path.join("."));
        ConfigError::UnknownKey { path: self.path.to_owned(), line, key, hint }
    }

    /// Returns an error of a tool or a server. `at` is the path for the line.
    pub(super) fn problem(&self, at: &[&str], name: String, problem: String) -> ConfigError {
        ConfigError::Tool { path: self.path.to_owned(), line: self.line(at), name, problem }
    }
}

type Found<'t, 'a> = (usize, &'t Spanned<DeValue<'a>>);

/// Returns the offset of a key with its value. A path that goes on below the last existing key finds that key.
fn find<'t, 'a>(table: &'t DeTable<'a>, path: &[&str]) -> Option<Found<'t, 'a>> {
    let (step, rest) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == step)?;
    Some(find_below(value, rest).unwrap_or((key.span().start, value)))
}

fn find_below<'t, 'a>(value: &'t Spanned<DeValue<'a>>, path: &[&str]) -> Option<Found<'t, 'a>> {
    match value.get_ref() {
        DeValue::Table(table) => find(table, path),
        DeValue::Array(items) => {
            let (step, rest) = path.split_first()?;
            let item = items.get(step.parse::<usize>().ok()?)?;
            Some(find_below(item, rest).unwrap_or((item.span().start, item)))
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => None,
    }
}

fn json_of_table(table: &DeTable<'_>, path: &mut Vec<String>) -> Option<Map<String, Value>> {
    let mut values = Map::new();
    for (name, value) in table {
        path.push(name.get_ref().to_string());
        values.insert(name.get_ref().to_string(), json_of(value.get_ref(), path)?);
        path.pop();
    }
    Some(values)
}

/// Returns a value as JSON. If it contains a date or another value that JSON lacks, `path` ends there.
fn json_of(value: &DeValue<'_>, path: &mut Vec<String>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => number.to_string().parse::<i64>().ok()?.into(),
        DeValue::Float(number) => Number::from_f64(number.to_string().parse().ok()?)?.into(),
        DeValue::Boolean(is_so) => Value::Bool(*is_so),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| json_of(item.get_ref(), path)).collect::<Option<_>>()?)
        }
        DeValue::Table(table) => Value::Object(json_of_table(table, path)?),
        DeValue::Datetime(_) => return None,
    })
}
