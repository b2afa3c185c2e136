//! Parameters of a defined tool, and the schema that they make up.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::command_tool::error::DefinitionError;
use crate::command_tool::fields::{bool_of, text_of, unknown, wrong};
use crate::schema::{Schema, SchemaError};

/// Properties of a parameter that matter for templates.
#[derive(Clone, Debug, Default)]
pub(super) struct Param {
    /// Value if the parameter is left out.
    pub(super) default: Option<Value>,
    /// Argument that is passed if the parameter is `true`.
    pub(super) flag: Option<String>,
    /// Set if the text may begin with `-` where the program would read it as an option.
    pub(super) may_be_option: bool,
    pub(super) is_list: bool,
}

/// Schema of all arguments, with the parameters.
pub(super) type Params = (Value, BTreeMap<String, Param>);

/// Fields of a parameter: first our own, then the keywords of JSON Schema.
const FIELDS: &[&str] = &[
    "flag",
    "mayBeOption",
    "required",
    "type",
    "description",
    "enum",
    "pattern",
    "default",
    "items",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "additionalProperties",
    "examples",
    "format",
];

/// Reads `params`, or `schema` instead.
pub(super) fn read(fields: &Map<String, Value>) -> Result<Params, DefinitionError> {
    match (fields.get("params"), fields.get("schema")) {
        (Some(_), Some(_)) => Err(wrong(&["schema"], "excludes `params`; give one of them")),
        (Some(params), None) => of_params(params),
        (None, Some(schema)) => of_schema(schema),
        (None, None) => of_params(&json!({})),
    }
}

fn of_params(params: &Value) -> Result<Params, DefinitionError> {
    let named = params.as_object();
    let named = named.ok_or_else(|| wrong(&["params"], "has to be a table of parameters by name"))?;
    let (mut properties, mut required, mut all) = (Map::new(), Vec::new(), BTreeMap::new());
    for (name, fields) in named {
        let (schema, param, is_required) = of_param(name, fields)?;
        properties.insert(name.clone(), schema);
        required.extend(is_required.then(|| name.clone()));
        all.insert(name.clone(), param);
    }
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    check(&schema, "params", &all)?;
    Ok((schema, all))
}

fn of_param(name: &str, fields: &Value) -> Result<(Value, Param, bool), DefinitionError> {
    let at = |field| ["params", name, field];
    if !is_name(name) {
        let problem =
            "is not a valid parameter name: use letters, digits, `_` and `-`, and begin with a letter or `_`";
        return Err(wrong(&["params", name], problem));
    }
    let fields = fields.as_object();
    let fields =
        fields.ok_or_else(|| wrong(&["params", name], "has to be a table such as { type = \"string\" }"))?;
    if let Some(other) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(unknown(&at(other), other, FIELDS));
    }
    let mut schema = fields.clone();
    let own = Own::take(name, &mut schema)?;
    if !schema.contains_key("type") && !schema.contains_key("enum") {
        schema.insert("type".to_owned(), if own.flag.is_some() { "boolean" } else { "string" }.into());
    }
    let is_list = schema.get("type").is_some_and(|kind| kind == "array");
    if is_list && !schema.contains_key("items") {
        schema.insert("items".to_owned(), json!({"type": "string"}));
    }
    if own.flag.is_some() && schema.get("type").is_none_or(|kind| kind != "boolean") {
        return Err(wrong(&at("flag"), "is only for parameters of the type `boolean`"));
    }
    let default = schema.get("default").cloned();
    if own.flag.as_ref().is_some_and(|flag| flag.contains('\0')) {
        return Err(wrong(&at("flag"), "contains a NUL character"));
    }
    if own.required == Some(true) && default.is_some() {
        return Err(wrong(&at("required"), "cannot be true with a `default`"));
    }
    let is_required = own.required.unwrap_or(default.is_none() && own.flag.is_none());
    let param = Param { default, flag: own.flag, may_be_option: own.may_be_option, is_list };
    Ok((schema.into(), param, is_required))
}

/// Fields of a parameter that are no JSON Schema.
struct Own {
    flag: Option<String>,
    may_be_option: bool,
    required: Option<bool>,
}

impl Own {
    /// Moves these fields out of a parameter, so that a schema remains.
    fn take(name: &str, schema: &mut Map<String, Value>) -> Result<Self, DefinitionError> {
        let at = |field| ["params", name, field];
        let flag = schema.remove("flag").map(|flag| text_of(&flag, &at("flag")).map(str::to_owned));
        let may_be_option = schema.remove("mayBeOption").map(|value| bool_of(&value, &at("mayBeOption")));
        // For an object, `required` may also be the list of its required fields, which belongs to the schema.
        let is_ours = schema.get("required").is_some_and(|value| !value.is_array());
        let required = if is_ours { schema.remove("required") } else { None };
        let required = required.map(|value| bool_of(&value, &at("required")));
        Ok(Self {
            flag: flag.transpose()?,
            may_be_option: may_be_option.transpose()?.unwrap_or_default(),
            required: required.transpose()?,
        })
    }
}

/// Reads a whole schema, given as a table or as the text of a JSON document.
fn of_schema(schema: &Value) -> Result<Params, DefinitionError> {
    let parse = |text: &str| {
        serde_json::from_str(text).map_err(|error| wrong(&["schema"], format!("is not valid JSON: {error}")))
    };
    let schema = schema.as_str().map_or_else(|| Ok(schema.clone()), parse)?;
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let param = |property: &Value| Param {
        default: property.get("default").cloned(),
        is_list: property.get("type").is_some_and(|kind| kind == "array"),
        ..Param::default()
    };
    let all = properties.iter().map(|(name, property)| (name.clone(), param(property))).collect();
    check(&schema, "schema", &all)?;
    Ok((schema, all))
}

/// Fails if a schema is invalid, or a default does not fit it.
fn check(schema: &Value, field: &str, params: &BTreeMap<String, Param>) -> Result<(), DefinitionError> {
    Schema::of_object(schema).map_err(|error| misplaced(field, &error))?;
    for (name, param) in params {
        let Some(default) = &param.default else { continue };
        let property = &schema["properties"][name];
        let mut alone = property.clone();
        if let (Some(definitions), Value::Object(alone)) = (schema.get("$defs"), &mut alone) {
            // A property that is checked on its own still needs the definitions that its references name.
            alone.insert("$defs".to_owned(), definitions.clone());
        }
        let at = if field == "params" {
            vec!["params", name, "default"]
        } else {
            vec!["schema", "properties", name, "default"]
        };
        let compiled = Schema::compile(&alone).map_err(|error| misplaced(field, &error))?;
        compiled.check(default).map_err(|violation| {
            wrong(&at, format!("does not fit its own parameter: it {}", violation.problem))
        })?;
    }
    Ok(())
}

/// Converts an error in a schema to the position in the definition of the tool.
fn misplaced(field: &str, error: &SchemaError) -> DefinitionError {
    let steps = error.at.split('/').filter(|step| !step.is_empty());
    let steps = steps.skip(usize::from(field == "params" && error.at.starts_with("/properties")));
    let at = std::iter::once(field).chain(steps).map(str::to_owned).collect();
    DefinitionError { at, problem: format!("cannot be used: {}", error.problem) }
}

pub(super) fn is_name(name: &str) -> bool {
    let is_first = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.len() <= 64
        && name.as_bytes().first().is_some_and(is_first)
        && name.bytes().all(|byte| is_first(&byte) || byte.is_ascii_digit() || byte == b'-')
}
