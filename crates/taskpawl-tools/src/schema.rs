//! JSON Schema validator for the arguments of tools.
//!
//! The `jsonschema` crate (0.61, no default features, patterns of `regex`) was measured in its place. It has no bound on
//! the work of one check, and schemas come from servers: 16, 18 and 20 definitions of 100 bytes, each of which names the
//! next one twice in `anyOf`, took 0.2, 1 and 7 s and 88, 339 and 2,858 MB. A keyword of our own that counts the steps
//! does not help, because `is_valid` skips it and errors are still collected for each alternative. This validator stops
//! such a check after 1,000,000 nodes. The crate also adds 37 crates to the 123 of the library. Its errors would have to
//! be worded again from the schema, because language models need the field and a valid value.
//!
//! This validator supports the keywords of draft 2020-12 that describe plain data. A schema with any other keyword, or
//! with a reference other than `#/$defs/…` and `#`, is refused at registration: applying only a part of it would accept
//! wrong arguments. Unknown keywords are ignored only in schemas of servers, which check the arguments themselves.

use std::collections::BTreeMap;

use regex_automata::meta::Regex;
use serde_json::{Map, Value};

mod bound;
mod check;
mod lenient;

pub(crate) use taskpawl_text::nearest_or_longer as nearest;

use bound::{Bound, BoundKind};

/// Largest compiled pattern, in bytes: schemas also come from servers, and a short pattern can compile to a huge
/// automaton.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// Compiled schema.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    root: Node,
    /// Possible targets of `$ref`, by their text.
    references: BTreeMap<String, Node>,
}

/// Error of compiling a schema.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SchemaError {
    /// JSON Pointer to the keyword.
    pub(crate) at: String,
    pub(crate) problem: String,
}

/// Violation of a schema by a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Path of the value, such as `.argv[0]`; empty for the whole.
    pub(crate) at: String,
    /// Description of the problem, worded to follow the path of the value.
    pub(crate) problem: String,
}

#[derive(Debug, Default)]
struct Node {
    is_never: bool,
    types: Vec<Type>,
    one_of_values: Option<Vec<Value>>,
    reference: Option<String>,
    properties: BTreeMap<String, Node>,
    pattern_properties: Vec<(Pattern, Node)>,
    required: Vec<String>,
    additional: Option<Box<Node>>,
    names: Option<Box<Node>>,
    prefix_items: Vec<Node>,
    items: Option<Box<Node>>,
    has_unique_items: bool,
    bounds: Vec<Bound>,
    pattern: Option<Pattern>,
    examples: Vec<Value>,
    all_of: Vec<Node>,
    any_of: Vec<Node>,
    one_of: Vec<Node>,
    not: Option<Box<Node>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Object,
    Array,
    Number,
    Integer,
    String,
}

impl Schema {
    /// Compiles the schema of arguments, whose type must be `object`.
    pub(crate) fn of_object(schema: &Value) -> Result<Self, SchemaError> {
        let compiled = Self::compile(schema)?;
        if compiled.root.types == [Type::Object] {
            Ok(compiled)
        } else {
            Err(error("/type", "the type of arguments has to be `object`"))
        }
    }

    pub(crate) fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let mut references = BTreeMap::new();
        for definitions in ["$defs", "definitions"] {
            let Some(nodes) = schema.get(definitions).and_then(Value::as_object) else { continue };
            for (name, node) in nodes {
                let at = format!("/{definitions}/{name}");
                references.insert(format!("#{at}"), node_of(node, &at)?);
            }
        }
        references.insert("#".to_owned(), node_of(schema, "")?);
        let compiled = Self { root: node_of(schema, "")?, references };
        compiled.check_references()?;
        Ok(compiled)
    }

    fn check_references(&self) -> Result<(), SchemaError> {
        for node in self.references.values() {
            node.each(&mut |node| match &node.reference {
                Some(name) if !self.references.contains_key(name) => Err(error(
                    "/$ref",
                    format!("`{name}` is not defined; only `#` and `#/$defs/…` are supported"),
                )),
                Some(_) | None => Ok(()),
            })?;
        }
        Ok(())
    }
}

impl Node {
    /// Visits this node and all nodes below it.
    fn each(&self, visit: &mut impl FnMut(&Self) -> Result<(), SchemaError>) -> Result<(), SchemaError> {
        visit(self)?;
        let boxed = [&self.additional, &self.names, &self.items, &self.not];
        let lists = [&self.prefix_items, &self.all_of, &self.any_of, &self.one_of];
        let below = boxed.into_iter().flatten().map(|node| &**node);
        let below = below.chain(lists.into_iter().flatten()).chain(self.properties.values());
        for node in below.chain(self.pattern_properties.iter().map(|(_, node)| node)) {
            node.each(visit)?;
        }
        Ok(())
    }
}

fn error(at: impl Into<String>, problem: impl Into<String>) -> SchemaError {
    SchemaError { at: at.into(), problem: problem.into() }
}

fn node_of(schema: &Value, at: &str) -> Result<Node, SchemaError> {
    match schema {
        Value::Bool(is_any) => Ok(Node { is_never: !is_any, ..Node::default() }),
        Value::Object(keywords) => {
            let mut node = Node::default();
            for (keyword, value) in keywords {
                read_keyword(&mut node, keyword, value, &format!("{at}/{keyword}"))?;
            }
            Ok(node)
        }
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(error(at, "a schema must be an object or a boolean"))
        }
    }
}

fn read_keyword(node: &mut Node, keyword: &str, value: &Value, at: &str) -> Result<(), SchemaError> {
    match keyword {
        "type" => node.types = types(value, at)?,
        "enum" => node.one_of_values = Some(array(value, at)?.clone()),
        "const" => node.one_of_values = Some(vec![value.clone()]),
        "$ref" => node.reference = Some(string(value, at)?.to_owned()),
        "properties" => node.properties = nodes_by_name(value, at)?.into_iter().collect(),
        "patternProperties" => node.pattern_properties = nodes_by_pattern(value, at)?,
        "required" => node.required = strings(value, at)?,
        "additionalProperties" => node.additional = Some(Box::new(node_of(value, at)?)),
        "propertyNames" => node.names = Some(Box::new(node_of(value, at)?)),
        "prefixItems" => node.prefix_items = nodes(value, at)?,
        "items" => node.items = Some(Box::new(node_of(value, at)?)),
        "uniqueItems" => node.has_unique_items = value.as_bool().ok_or_else(|| error(at, "not a boolean"))?,
        "examples" => node.examples.clone_from(array(value, at)?),
        "pattern" => node.pattern = Some(regex(string(value, at)?, at)?),
        "allOf" => node.all_of = nodes(value, at)?,
        "anyOf" => node.any_of = nodes(value, at)?,
        "oneOf" => node.one_of = nodes(value, at)?,
        "not" => node.not = Some(Box::new(node_of(value, at)?)),
        "$defs" | "definitions" | "$schema" | "$id" | "$comment" | "title" | "description" | "default"
        | "format" | "deprecated" | "readOnly" | "writeOnly" => {}
        _ => {
            let kind = BoundKind::of(keyword).ok_or_else(|| error(at, "this keyword is not supported"))?;
            let limit = value.as_number().ok_or_else(|| error(at, "not a number"))?.clone();
            node.bounds.push(Bound { kind, limit });
        }
    }
    Ok(())
}

fn types(value: &Value, at: &str) -> Result<Vec<Type>, SchemaError> {
    let names = match value.as_str() {
        Some(name) => vec![name.to_owned()],
        None => strings(value, at)?,
    };
    names
        .iter()
        .map(|name| Type::of(name).ok_or_else(|| error(at, format!("unknown type `{name}`"))))
        .collect()
}

impl Type {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "object" => Self::Object,
            "array" => Self::Array,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "string" => Self::String,
            _ => return None,
        })
    }
}

fn nodes_by_name(value: &Value, at: &str) -> Result<Vec<(String, Node)>, SchemaError> {
    let named = object(value, at)?.iter();
    named.map(|(name, value)| Ok((name.clone(), node_of(value, &format!("{at}/{name}"))?))).collect()
}

fn nodes_by_pattern(value: &Value, at: &str) -> Result<Vec<(Pattern, Node)>, SchemaError> {
    let named = nodes_by_name(value, at)?.into_iter();
    named.map(|(pattern, node)| Ok((regex(&pattern, at)?, node))).collect()
}

fn nodes(value: &Value, at: &str) -> Result<Vec<Node>, SchemaError> {
    let values = array(value, at)?.iter().enumerate();
    values.map(|(index, value)| node_of(value, &format!("{at}/{index}"))).collect()
}

fn strings(value: &Value, at: &str) -> Result<Vec<String>, SchemaError> {
    array(value, at)?.iter().map(|value| string(value, at).map(str::to_owned)).collect()
}

fn string<'a>(value: &'a Value, at: &str) -> Result<&'a str, SchemaError> {
    value.as_str().ok_or_else(|| error(at, "not a string"))
}

fn array<'a>(value: &'a Value, at: &str) -> Result<&'a Vec<Value>, SchemaError> {
    value.as_array().ok_or_else(|| error(at, "not an array"))
}

fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>, SchemaError> {
    value.as_object().ok_or_else(|| error(at, "not an object"))
}

/// A regular expression. This is the matcher of the crate `regex`, which adds only its text and captures.
#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn regex(pattern: &str, at: &str) -> Result<Pattern, SchemaError> {
    let limits =
        Regex::config().nfa_size_limit(Some(MAX_REGEX_BYTES)).onepass_size_limit(Some(MAX_REGEX_BYTES));
    let regex = Regex::builder().configure(limits).build(pattern);
    let regex = regex.map_err(|_| error(at, format!("`{pattern}` is not a valid regular expression")))?;
    Ok(Pattern { text: pattern.to_owned(), regex })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(schema: Value) -> String {
        let error = Schema::of_object(&schema).expect_err("the schema is refused");
        drop(schema);
        format!("{}: {}", error.at, error.problem)
    }

    #[test]
    fn schemas_with_unsupported_parts_are_refused() {
        assert_eq!(refusal(json!({"type": "string"})), "/type: the type of arguments has to be `object`");
        assert_eq!(refusal(json!(1)), ": a schema must be an object or a boolean");
        assert_eq!(refusal(json!({"type": "objekt"})), "/type: unknown type `objekt`");
        assert_eq!(
            refusal(json!({"properties": {"a": {"if": {}}}})),
            "/properties/a/if: this keyword is not supported"
        );
        assert_eq!(refusal(json!({"required": "a"})), "/required: not an array");
        assert_eq!(refusal(json!({"minimum": "a"})), "/minimum: not a number");
        assert_eq!(refusal(json!({"pattern": "("})), "/pattern: `(` is not a valid regular expression");
        assert_eq!(
            refusal(json!({"items": {"$ref": "#/$defs/a"}})),
            "/$ref: `#/$defs/a` is not defined; only `#` and `#/$defs/…` are supported"
        );
    }
}
