//! Foreign schemas: unsupported parts are removed, so that a doubtful value is accepted rather than refused.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Node, Schema, read_keyword};

impl Schema {
    /// Compiles the supported part of a schema.
    pub(crate) fn lenient(schema: &Value) -> Self {
        let known = Known { references: references(schema) };
        // Only supported keywords are left, so that this does not fail. If it did, the owner of the schema still checks
        // the value.
        Self::compile(&known.schema(schema)).unwrap_or_default()
    }
}

fn references(schema: &Value) -> BTreeSet<String> {
    let definitions = ["$defs", "definitions"].into_iter().filter_map(|list| Some((list, schema.get(list)?)));
    let names = definitions.filter_map(|(list, nodes)| Some((list, nodes.as_object()?.keys())));
    let all = names.flat_map(|(list, names)| names.map(move |name| format!("#/{list}/{name}")));
    all.chain(["#".to_owned()]).collect()
}

struct Known {
    /// Possible targets of references.
    references: BTreeSet<String>,
}

impl Known {
    /// Returns the supported part of a schema.
    fn schema(&self, schema: &Value) -> Value {
        match schema {
            Value::Object(keywords) => Value::Object(self.keywords(keywords)),
            Value::Bool(_) => schema.clone(),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => Value::Bool(true),
        }
    }

    fn keywords(&self, keywords: &Map<String, Value>) -> Map<String, Value> {
        let mut known = Map::new();
        for (keyword, value) in keywords {
            if let Some((keyword, value)) = self.keyword(keyword, value) {
                known.insert(keyword, value);
            }
        }
        // Without the removed patterns, `additionalProperties` would refuse fields that these allow.
        if known.get("patternProperties") != keywords.get("patternProperties") {
            known.remove("additionalProperties");
        }
        known
    }

    fn keyword(&self, keyword: &str, value: &Value) -> Option<(String, Value)> {
        let known = match keyword {
            "properties" | "$defs" | "definitions" | "patternProperties" => self.named(value)?,
            "additionalProperties" | "propertyNames" | "items" | "not" => self.schema(value),
            "prefixItems" | "allOf" | "anyOf" | "oneOf" => self.list(value)?,
            "$ref" => value.as_str().filter(|name| self.references.contains(*name))?.into(),
            _ => value.clone(),
        };
        let keyword = match keyword {
            // A weaker schema inside `not` would exclude more values than the original one.
            "not" if known != *value => return None,
            // The removed parts may have been the only difference between two alternatives.
            "oneOf" if known != *value => "anyOf",
            "items" if value.is_array() => return None,
            other => other,
        };
        read_keyword(&mut Node::default(), keyword, &known, "").ok()?;
        Some((keyword.to_owned(), known))
    }

    fn named(&self, value: &Value) -> Option<Value> {
        let known = value.as_object()?.iter().map(|(name, schema)| (name.clone(), self.schema(schema)));
        Some(Value::Object(known.collect()))
    }

    fn list(&self, value: &Value) -> Option<Value> {
        Some(Value::Array(value.as_array()?.iter().map(|schema| self.schema(schema)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fits(schema: &Value, value: &Value) -> bool {
        Schema::lenient(schema).check(value).is_ok()
    }

    #[test]
    fn supported_keywords_are_applied_and_the_rest_is_ignored() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "path": {"type": "string", "contentEncoding": "base64"},
                "count": {"type": "integer", "exclusiveMinimum": true, "minimum": 1},
                "list": {"type": "array", "items": [{"type": "string"}], "contains": {"const": 1}},
                "other": {"$ref": "#/properties/path"},
                "word": {"pattern": "^(?!x)"},
            },
            "required": ["path"],
            "if": {"required": ["count"]},
            "then": false,
        });
        assert!(fits(&schema, &json!({"path": "a", "count": 1, "list": [2], "other": 3, "word": "x"})));
        assert!(!fits(&schema, &json!({})));
        assert!(!fits(&schema, &json!({"path": 1})));
        assert!(!fits(&schema, &json!({"path": "a", "count": 0})));
    }

    #[test]
    fn removed_parts_never_refuse_a_value() {
        assert!(fits(&json!({"not": {"if": {}}}), &json!(1)));
        assert!(fits(&json!({"oneOf": [{"if": {}}, {"then": {}}]}), &json!(1)));
        assert!(fits(
            &json!({"patternProperties": {"^(?!x)": {}}, "additionalProperties": false}),
            &json!({"a": 1})
        ));
        assert!(fits(&json!("no schema"), &json!({})));
        assert!(fits(&json!({"properties": 1, "type": "objekt", "required": "a", "anyOf": {}}), &json!({})));
        // Without unsupported parts the same keywords still refuse values.
        assert!(!fits(&json!({"not": {"type": "integer"}}), &json!(1)));
        assert!(!fits(&json!({"oneOf": [{"type": "integer"}, {"minimum": 1}]}), &json!(1)));
        assert!(!fits(&json!({"additionalProperties": false}), &json!({"a": 1})));
    }

    #[test]
    fn a_schema_with_endless_alternatives_is_refused() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}});
        assert!(!fits(&schema, &json!(1)));
    }
}
