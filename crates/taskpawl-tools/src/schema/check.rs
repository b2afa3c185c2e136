//! Validation of values against compiled schemas.

use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::text::one_line;

use super::bound::shown as shown_number;
use super::{Node, Schema, Type, Violation, nearest};

/// Deepest nesting of references: a schema can refer to itself without descending into the value.
const MAX_DEPTH: usize = 200;

/// Most schema nodes that are checked for one value: nested alternatives grow exponentially.
const MAX_STEPS: u32 = 1_000_000;

type Checked = Result<(), Violation>;

impl Schema {
    /// Checks a value and returns the first violation.
    pub(crate) fn check(&self, value: &Value) -> Checked {
        self.check_parts(value, |_| false)
    }

    /// Checks a value like [`check`](Self::check), but for its parts that are not known yet, which may be anything.
    pub(crate) fn check_parts(&self, value: &Value, is_unknown: fn(&Value) -> bool) -> Checked {
        let steps = Cell::new(MAX_STEPS);
        let mut whole = Checker { schema: self, at: String::new(), depth: 0, steps: &steps, is_unknown };
        let checked = whole.node(&self.root, value);
        // `not` and alternatives hide the violation of a part that was not checked to its end.
        if steps.get() == 0 {
            return Err(Violation { at: String::new(), problem: "takes too long to check".to_owned() });
        }
        checked
    }
}

struct Checker<'a> {
    schema: &'a Schema,
    /// Path of the value under inspection.
    at: String,
    depth: usize,
    /// Remaining steps, shared by all forks.
    steps: &'a Cell<u32>,
    /// Tells parts of the value that are not known yet.
    is_unknown: fn(&Value) -> bool,
}

impl Checker<'_> {
    fn node(&mut self, node: &Node, value: &Value) -> Checked {
        if (self.is_unknown)(value) {
            return Ok(());
        }
        if self.depth == MAX_DEPTH {
            return self.refuse("is nested too deeply");
        }
        let Some(left) = self.steps.get().checked_sub(1) else {
            return self.refuse("takes too long to check");
        };
        self.steps.set(left);
        self.depth += 1;
        self.itself(node, value)?;
        match value {
            Value::Object(fields) => self.object(node, fields)?,
            Value::Array(items) => self.array(node, items)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        self.combined(node, value)?;
        self.depth -= 1;
        Ok(())
    }

    fn refuse(&self, problem: impl Into<String>) -> Checked {
        Err(Violation { at: self.at.clone(), problem: problem.into() })
    }

    /// Runs `check` with `step` appended to the path.
    fn below(&mut self, step: &str, check: impl FnOnce(&mut Self) -> Checked) -> Checked {
        let length = self.at.len();
        self.at.push_str(step);
        check(self)?;
        self.at.truncate(length);
        Ok(())
    }

    fn itself(&mut self, node: &Node, value: &Value) -> Checked {
        if node.is_never {
            return self.refuse("is not allowed here");
        }
        if !node.types.is_empty() && !node.types.iter().any(|expected| expected.holds(value)) {
            return self.refuse(format!("has to be {}, but is {}", node.expected(), shown(value)));
        }
        if let Some(values) = &node.one_of_values
            && !values.iter().any(|expected| is_same(expected, value))
            && self.is_known(value)
        {
            return self.refuse(format!("has to be {}, but is {}", one_of(values), shown(value)));
        }
        if let (Some(pattern), Value::String(text)) = (&node.pattern, value)
            && !pattern.is_match(text)
        {
            let such_as = if node.examples.is_empty() { "" } else { ", such as " };
            let examples = listed(&node.examples);
            return self
                .refuse(format!("has to match `{pattern}`{such_as}{examples}, but is {}", shown(value)));
        }
        node.bounds.iter().try_for_each(|bound| match bound.problem(value) {
            Some(problem) => self.refuse(problem),
            None => Ok(()),
        })
    }

    fn object(&mut self, node: &Node, fields: &Map<String, Value>) -> Checked {
        // Unknown fields come first: reporting a misspelt field helps more than reporting the required one as missing.
        for name in fields.keys().filter(|name| !is_known(node, name)) {
            self.unknown(node, name, fields)?;
        }
        if let Some(missing) = node.required.iter().find(|name| !fields.contains_key(*name)) {
            let expected = node.properties.get(missing).map(Node::expected).unwrap_or_default();
            let then = if expected.is_empty() { expected } else { format!("; it has to be {expected}") };
            return self.below(&step(missing), |checker| checker.refuse(format!("is missing{then}")));
        }
        for (name, value) in fields {
            self.below(&step(name), |checker| checker.field(node, name, value))?;
        }
        Ok(())
    }

    fn unknown(&mut self, node: &Node, name: &str, fields: &Map<String, Value>) -> Checked {
        if !node.additional.as_ref().is_some_and(|additional| additional.is_never) {
            return Ok(());
        }
        let known = || node.properties.keys().map(String::as_str);
        let hint = match nearest(name, known().filter(|name| !fields.contains_key(*name))) {
            Some(near) => format!("did you mean `{near}`?"),
            None if node.properties.is_empty() => "there are no fields".to_owned(),
            None => format!("the fields are {}", quoted(known())),
        };
        self.below(&step(name), |checker| checker.refuse(format!("is not a known field; {hint}")))
    }

    fn field(&mut self, node: &Node, name: &str, value: &Value) -> Checked {
        if let Some(names) = &node.names {
            self.node(names, &Value::String(name.to_owned()))?;
        }
        if let Some(property) = node.properties.get(name) {
            self.node(property, value)?;
        }
        for (_, property) in node.pattern_properties.iter().filter(|(pattern, _)| pattern.is_match(name)) {
            self.node(property, value)?;
        }
        match &node.additional {
            Some(additional) if !is_known(node, name) => self.node(additional, value),
            Some(_) | None => Ok(()),
        }
    }

    fn array(&mut self, node: &Node, items: &[Value]) -> Checked {
        for (index, value) in items.iter().enumerate() {
            if let Some(schema) = node.prefix_items.get(index).or(node.items.as_deref()) {
                self.below(&format!("[{index}]"), |checker| checker.node(schema, value))?;
            }
        }
        // A set of texts: comparing each pair of 100,000 items takes half a minute.
        let mut earlier = BTreeSet::new();
        let mut is_repeated = |item: &Value| {
            let number = item.as_number().map(shown_number);
            self.is_known(item) && !earlier.insert(number.unwrap_or_else(|| item.to_string()))
        };
        match items.iter().position(|item| node.has_unique_items && is_repeated(item)) {
            Some(index) => self.below(&format!("[{index}]"), |checker| checker.refuse("is a duplicate")),
            None => Ok(()),
        }
    }

    fn combined(&mut self, node: &Node, value: &Value) -> Checked {
        if let Some(name) = &node.reference {
            // References were checked when the schema was compiled.
            let schema = self.schema;
            schema.references.get(name).map_or(Ok(()), |referred| self.node(referred, value))?;
        }
        node.all_of.iter().try_for_each(|part| self.node(part, value))?;
        if !node.any_of.is_empty() {
            self.any_of(&node.any_of, value)?;
        }
        if !node.one_of.is_empty() {
            // With no match at all, the violation of the best alternative is more helpful than "fits none of them".
            self.any_of(&node.one_of, value)?;
            let is_known = self.is_known(value);
            if is_known && node.one_of.iter().filter(|part| self.fits(part, value)).count() > 1 {
                return self.refuse("matches more than one of the alternatives, but must match exactly one");
            }
        }
        match &node.not {
            Some(not) if self.is_known(value) && self.fits(not, value) => {
                self.refuse(format!("must not be {}", shown(value)))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns whether the value is known with all its parts.
    fn is_known(&self, value: &Value) -> bool {
        let is_known = |part: &Value| self.is_known(part);
        !(self.is_unknown)(value)
            && match value {
                Value::Array(items) => items.iter().all(is_known),
                Value::Object(fields) => fields.values().all(is_known),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
            }
    }

    fn fits(&self, node: &Node, value: &Value) -> bool {
        self.fork().node(node, value).is_ok()
    }

    fn fork(&self) -> Checker<'_> {
        let Self { schema, ref at, depth, steps, is_unknown } = *self;
        Checker { schema, at: at.clone(), depth, steps, is_unknown }
    }

    /// Checks alternatives. If none fits, the violation deepest in the value is reported: its alternative was probably
    /// meant.
    fn any_of(&mut self, alternatives: &[Node], value: &Value) -> Checked {
        let mut farthest: Option<Violation> = None;
        for alternative in alternatives {
            let Err(violation) = self.fork().node(alternative, value) else { return Ok(()) };
            if farthest.as_ref().is_none_or(|farthest| violation.at.len() > farthest.at.len()) {
                farthest = Some(violation);
            }
        }
        farthest.map_or(Ok(()), Err)
    }
}

impl Node {
    /// Returns the accepted types in words; empty for any type.
    fn expected(&self) -> String {
        let types: Vec<&str> = self.types.iter().map(|expected| expected.with_article()).collect();
        types.join(" or ")
    }
}

fn one_of(values: &[Value]) -> String {
    let one_of = if values.len() == 1 { "" } else { "one of " };
    format!("{one_of}{}", listed(values))
}

fn listed(values: &[Value]) -> String {
    values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
}

fn is_known(node: &Node, name: &str) -> bool {
    node.properties.contains_key(name)
        || node.pattern_properties.iter().any(|(pattern, _)| pattern.is_match(name))
}

fn step(name: &str) -> String {
    let is_plain = !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    if is_plain { format!(".{name}") } else { format!("[{}]", one_line(&format!("{name:?}"))) }
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns a short value as JSON, and only the type of a long one.
fn shown(value: &Value) -> String {
    let kind = match value {
        Value::Array(items) => return format!("an array of {}", items.len()),
        Value::Object(fields) => return format!("an object of {} fields", fields.len()),
        Value::Null => return "null".to_owned(),
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
    };
    let json = one_line(&value.to_string());
    if json.chars().count() <= 60 { format!("the {kind} `{json}`") } else { format!("a long {kind}") }
}

/// Compares by the rules of JSON Schema: `1` equals `1.0`.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || a.as_f64() == b.as_f64() && a.is_f64() != b.is_f64()
        }
        _ => left == right,
    }
}

impl Type {
    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::Number => value.is_number(),
            Self::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            Self::String => value.is_string(),
        }
    }

    fn with_article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Object => "an object",
            Self::Array => "an array",
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::String => "a string",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks `value` and returns the result as one line.
    fn check(schema: &Value, value: &Value) -> String {
        match Schema::compile(schema).expect("the schema is valid").check(value) {
            Ok(()) => "fits".to_owned(),
            Err(violation) => format!("{} {}", violation.at, violation.problem),
        }
    }

    fn assert_all(cases: &[(Value, Value, &str)]) {
        for (schema, value, expected) in cases {
            assert_eq!(check(schema, value), *expected, "{schema} {value}");
        }
    }

    #[test]
    fn keywords_for_values_are_applied() {
        assert_all(&[
            (
                json!({"type": ["string", "null"]}),
                json!(1),
                " has to be a string or null, but is the number `1`",
            ),
            (json!({"type": "integer"}), json!(1.0), "fits"),
            (json!({"type": "integer"}), json!(1.5), " has to be an integer, but is the number `1.5`"),
            (
                json!({"enum": ["a", 1]}),
                json!("b"),
                " has to be one of `\"a\"`, `1`, but is the string `\"b\"`",
            ),
            (json!({"enum": ["a", 1]}), json!(1.0), "fits"),
            (json!({"const": 1}), json!(2), " has to be `1`, but is the number `2`"),
            (json!({"minimum": 1}), json!(0), " has to be at least 1, but is 0"),
            (json!({"exclusiveMaximum": 1}), json!(1), " has to be less than 1, but is 1"),
            (json!({"multipleOf": 2}), json!(3), " has to be a multiple of 2, but is 3"),
            (json!({"maximum": 1.0}), json!(1.5), " has to be at most 1, but is 1.5"),
            (json!({"multipleOf": 0.01}), json!(0.07), "fits"),
            (
                json!({"maximum": 9_007_199_254_740_992_u64}),
                json!(9_007_199_254_740_993_u64),
                " has to be at most 9007199254740992, but is 9007199254740993",
            ),
            (json!({"pattern": "^a$"}), json!("b"), " has to match `^a$`, but is the string `\"b\"`"),
        ]);
    }

    #[test]
    fn keywords_for_objects_and_lists_are_applied() {
        assert_all(&[
            (json!({"required": ["a"]}), json!({}), ".a is missing"),
            (json!({"required": ["a b"]}), json!({}), "[\"a b\"] is missing"),
            (
                json!({"additionalProperties": false}),
                json!({"a": 1}),
                ".a is not a known field; there are no fields",
            ),
            (
                json!({"additionalProperties": {"type": "string"}}),
                json!({"a": 1}),
                ".a has to be a string, but is the number `1`",
            ),
            (
                json!({"patternProperties": {"^a": {"type": "null"}}, "additionalProperties": false}),
                json!({"ab": 1}),
                ".ab has to be null, but is the number `1`",
            ),
            (
                json!({"propertyNames": {"maxLength": 1}}),
                json!({"ab": 1}),
                ".ab has to have at most 1 characters, but has 2",
            ),
            (
                json!({"items": {"type": "null"}}),
                json!([null, true]),
                "[1] has to be null, but is the boolean `true`",
            ),
            (json!({"prefixItems": [true], "items": false}), json!([1, 2]), "[1] is not allowed here"),
            (json!({"uniqueItems": true}), json!([1, 2, 1]), "[2] is a duplicate"),
            (json!({"uniqueItems": true}), json!([1, "1", 1.0]), "[2] is a duplicate"),
            (json!({"uniqueItems": true}), json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}]), "[1] is a duplicate"),
            (json!({"minItems": 1}), json!([]), " has to have at least 1 items, but has 0"),
        ]);
    }

    #[test]
    fn keywords_that_combine_schemas_are_applied() {
        assert_all(&[
            (json!({"allOf": [{"minimum": 1}]}), json!(0), " has to be at least 1, but is 0"),
            (
                json!({"anyOf": [{"type": "null"}, {"items": {"type": "null"}, "type": "array"}]}),
                json!([1]),
                "[0] has to be null, but is the number `1`",
            ),
            (
                json!({"oneOf": [{"type": "integer"}, {"minimum": 1}]}),
                json!(1),
                " matches more than one of the alternatives, but must match exactly one",
            ),
            (json!({"not": {"type": "string"}}), json!("a"), " must not be the string `\"a\"`"),
            (json!({"$ref": "#"}), json!(1), " is nested too deeply"),
        ]);
    }

    #[test]
    fn unknown_parts_may_be_anything_and_names_still_hold() {
        let schema = json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "list": {"type": "array", "items": {"type": "integer"}, "uniqueItems": true},
                "one": {"oneOf": [{"type": "object"}, {"type": "object", "minProperties": 0}]},
            },
            "required": ["n"],
            "additionalProperties": false,
        });
        let check = |value: Value| {
            let schema = Schema::compile(&schema).unwrap();
            schema.check_parts(&value, |part| part == "?").map_err(|violation| violation.at)
        };
        assert_eq!(check(json!({"n": "?", "list": ["?", "?", 1], "one": {"a": "?"}})), Ok(()));
        assert_eq!(check(json!({"list": "?"})), Err(".n".to_owned()));
        assert_eq!(check(json!({"n": "?", "m": 1})), Err(".m".to_owned()));
        assert_eq!(check(json!({"n": "?", "list": ["?", "a"]})), Err(".list[1]".to_owned()));
    }

    #[test]
    fn the_work_of_a_check_is_bounded() {
        // Each definition doubles the work: a check of all alternatives would take a day.
        let twice = |next: usize| json!({"anyOf": [{"$ref": format!("#/$defs/{next}")}, {"$ref": format!("#/$defs/{next}")}]});
        let mut definitions: Map<String, Value> = (0..30).map(|at| (at.to_string(), twice(at + 1))).collect();
        definitions.insert("30".to_owned(), json!({"type": "null"}));
        for first in [json!({"$ref": "#/$defs/0"}), json!({"not": {"$ref": "#/$defs/0"}})] {
            let schema = json!({"allOf": [first], "$defs": definitions});
            assert_eq!(check(&schema, &json!(1)), " takes too long to check");
        }
    }

    #[test]
    fn references_may_be_recursive() {
        let schema = json!({
            "$ref": "#/$defs/tree",
            "$defs": {"tree": {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}},
        });
        assert_eq!(check(&schema, &json!({"a": {"b": {}}})), "fits");
        assert_eq!(
            check(&schema, &json!({"a": {"b": 1}})),
            ".a.b has to be an object, but is the number `1`"
        );
    }
}
