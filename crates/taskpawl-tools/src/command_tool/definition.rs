//! Parser for the definition of a tool.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value};

use super::CommandTool;
use super::env::Variable;
use super::param::{self, Param};
use super::template::{Argv, Template};
use crate::builtin::duration;
use crate::builtin::exec::result_schema;
use crate::command_tool::error::DefinitionError;
use crate::command_tool::fields::{Read, bool_of, text_of, unknown, wrong};
use crate::schema::nearest;
use crate::tool::{Hints, ToolSpec};

pub(super) const FIELDS: &[&str] = &[
    "description",
    "argv",
    "params",
    "schema",
    "stdin",
    "env",
    "cwd",
    "parse",
    "okExitCodes",
    "readOnly",
    "idempotent",
    "destructive",
    "openWorld",
    "timeout",
    "outputBytes",
];

pub(super) fn read(name: &str, description: &Value) -> Read<CommandTool> {
    let fields = description.as_object().ok_or_else(|| wrong(&[], "has to be a table"))?;
    if let Some(other) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(unknown(&[other], other, FIELDS));
    }
    let (schema, params) = param::read(fields)?;
    let about = required(fields, "description", "a text that describes the tool")?;
    let about = text_of(about, &["description"])?;
    let spec = ToolSpec::new(name, about, schema).with_result(result_schema()).with_hints(hints(fields)?);
    let tool = CommandTool {
        spec: ToolSpec { timeout: timeout(fields)?, ..spec },
        argv: argv(fields, &params)?,
        params,
        stdin: template(fields, "stdin")?,
        cwd: template(fields, "cwd")?,
        env: env(fields)?,
        is_json: is_json(fields)?,
        ok_exit_codes: ok_exit_codes(fields)?,
        output_bytes: fields.get("outputBytes").map(output_bytes).transpose()?,
    };
    check_names(&tool, fields)?;
    Ok(tool)
}

fn required<'a>(fields: &'a Map<String, Value>, name: &str, expected: &str) -> Read<&'a Value> {
    fields.get(name).ok_or_else(|| wrong(&[name], format!("is missing; it has to be {expected}")))
}

fn argv(fields: &Map<String, Value>, params: &BTreeMap<String, Param>) -> Read<Argv> {
    const EXPECTED: &str = "the program and its arguments, such as [\"kubectl\", \"get\", \"{resource}\"]";

    let argv = required(fields, "argv", EXPECTED)?;
    let elements = argv.as_array().filter(|elements| !elements.is_empty());
    let elements = elements.ok_or_else(|| wrong(&["argv"], format!("has to be {EXPECTED}")))?;
    Argv::parse(elements, params).map_err(|(at, problem)| {
        let at = std::iter::once("argv".to_owned()).chain(at).collect();
        DefinitionError { at, problem }
    })
}

fn template(fields: &Map<String, Value>, name: &str) -> Read<Option<Template>> {
    fields.get(name).map(|value| template_of(value, &[name])).transpose()
}

fn template_of(value: &Value, at: &[&str]) -> Read<Template> {
    let text = value.as_str().ok_or_else(|| wrong(at, "has to be a text"))?;
    Template::parse(text).map_err(|problem| wrong(at, problem))
}

fn env(fields: &Map<String, Value>) -> Read<BTreeMap<String, Variable>> {
    let Some(env) = fields.get("env") else { return Ok(BTreeMap::new()) };
    let env = env.as_object().ok_or_else(|| wrong(&["env"], "has to be a table of variables"))?;
    let variable = |(name, value): (&String, &Value)| {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(wrong(&["env", name], "is not a valid variable name"));
        }
        let at = ["env", name];
        let text = value.as_str().ok_or_else(|| wrong(&at, "has to be a text"))?;
        Ok((name.clone(), Variable::parse(text).map_err(|problem| wrong(&at, problem))?))
    };
    env.iter().map(variable).collect()
}

fn is_json(fields: &Map<String, Value>) -> Read<bool> {
    match fields.get("parse") {
        None => Ok(false),
        Some(parse) if parse == "json" => Ok(true),
        Some(_) => Err(wrong(&["parse"], "must be `json`, or be left out")),
    }
}

fn ok_exit_codes(fields: &Map<String, Value>) -> Read<Vec<i32>> {
    let Some(codes) = fields.get("okExitCodes") else { return Ok(vec![0]) };
    let codes = codes.as_array().filter(|codes| !codes.is_empty()).map(|codes| {
        let code = |code: &Value| code.as_u64().and_then(|code| u8::try_from(code).ok()).map(i32::from);
        codes.iter().map(code).collect::<Option<Vec<i32>>>()
    });
    codes.flatten().ok_or_else(|| wrong(&["okExitCodes"], "has to be a list of numbers from 0 to 255"))
}

/// Reads the hints. The defaults are those of an unknown program, which may do anything; only a read-only tool is
/// assumed to be harmless.
fn hints(fields: &Map<String, Value>) -> Read<Hints> {
    let hint = |name: &str| fields.get(name).map(|value| bool_of(value, &[name])).transpose();
    let read_only = hint("readOnly")?.unwrap_or(false);
    let destructive = hint("destructive")?;
    if read_only && destructive == Some(true) {
        return Err(wrong(&["destructive"], "cannot be true with `readOnly = true`"));
    }
    Ok(Hints {
        read_only,
        idempotent: hint("idempotent")?.unwrap_or(read_only),
        destructive: destructive.unwrap_or(!read_only),
        open_world: hint("openWorld")?.unwrap_or(true),
    })
}

fn timeout(fields: &Map<String, Value>) -> Read<Option<Duration>> {
    let Some(timeout) = fields.get("timeout") else { return Ok(None) };
    let length = timeout.as_str().and_then(duration).filter(|timeout| !timeout.is_zero());
    length.map(Some).ok_or_else(|| wrong(&["timeout"], "has to be a duration such as `30s`, `5m` or `2h`"))
}

fn output_bytes(value: &Value) -> Read<u64> {
    let bytes = match value {
        // A text without a unit is probably a number in quotes by mistake.
        Value::String(text) => {
            Some(text).filter(|text| text.ends_with('B')).and_then(|text| taskpawl_text::byte_size(text))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.as_u64()
        }
    };
    let bytes = bytes.filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| wrong(&["outputBytes"], "has to be a number of bytes, or a size such as `2MiB`"))
}

/// Fails if a placeholder names no parameter, or if a parameter is never used.
fn check_names(tool: &CommandTool, fields: &Map<String, Value>) -> Read<()> {
    let single = [("stdin", &tool.stdin), ("cwd", &tool.cwd)];
    let single = single.into_iter().filter_map(|(name, template)| Some((name, template.as_ref()?)));
    let named = single.flat_map(|(name, template)| template.params().map(move |param| (vec![name], param)));
    let of_env = tool
        .env
        .iter()
        .flat_map(|(name, template)| template.params().map(move |param| (vec!["env", name.as_str()], param)));
    let of_argv = tool.argv.params().map(|param| (vec!["argv"], param));
    let mut used = BTreeSet::new();
    for (at, param) in named.chain(of_env).chain(of_argv) {
        if !tool.params.contains_key(param) {
            let near = nearest(param, tool.params.keys().map(String::as_str));
            let hint = match near {
                Some(near) => format!("did you mean `{{{near}}}`?"),
                None => format!("describe it in `params.{param}`"),
            };
            return Err(wrong(
                &at,
                format!("has the placeholder `{{{param}}}`, which is not a parameter; {hint}"),
            ));
        }
        used.insert(param);
    }
    match tool.params.keys().find(|name| !used.contains(name.as_str())) {
        Some(name) if fields.contains_key("schema") => Err(wrong(
            &["schema", "properties", name],
            format!("is unused: no template contains `{{{name}}}`"),
        )),
        Some(name) => Err(wrong(&["params", name], format!("is unused: no template contains `{{{name}}}`"))),
        None => Ok(()),
    }
}
