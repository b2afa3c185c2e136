//! The JSON Schema of a policy file.

use serde_json::{Value, json};
use taskpawl_process::Isolation;

use super::layer::Standing;
use super::{CallOrigin, Decision, Power, Ruling};

/// Returns the JSON Schema of a policy file.
pub fn policy_schema() -> Value {
    let words = |all: Vec<&str>| json!({"enum": all});
    let origins: Vec<&str> = CallOrigin::ALL.iter().map(|origin| origin.as_str()).collect();
    let standing = words(Standing::ALL.iter().map(|standing| standing.as_str()).collect());
    let standings: serde_json::Map<String, Value> =
        origins.iter().map(|origin| ((*origin).to_owned(), standing.clone())).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A policy of taskpawl",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "origins": {
                "description": "The default for calls that match no rule, by origin.",
                "type": "object",
                "additionalProperties": false,
                "properties": standings,
            },
            "sandbox": {
                "description": "Sandbox exceptions: running without it, network access, more paths.",
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "off": words(vec!["allow", "deny"]),
                    "net": words(vec!["allow", "deny"]),
                    "paths": words(vec!["allow", "deny"]),
                },
            },
            "powers": {
                "description": "Rulings on powers: allow, ask (only a person at a terminal has it), or never.",
                "type": "object",
                "additionalProperties": false,
                "properties": powers(),
            },
            "least_level": {
                "description": "The least isolation of programs; runs are refused where the system enforces less.",
                "enum": Isolation::ALL.map(Isolation::as_str),
            },
            "agents_may": {
                "description": "Flags that coding agents may give: `host:NAME`, `port:N`, `read:PATH`, `write:PATH`, `net`, `off`. Not for the file of a project.",
                "type": "array",
                "items": {"type": "string"},
            },
            "decisions": {
                "description": "Requirements for decisions of people: whether a PIN must be set.",
                "type": "object",
                "additionalProperties": false,
                "properties": {"pin": words(vec!["optional", "required"])},
            },
            "rules": {
                "description": "Rules for calls. If several match, the strictest applies.",
                "type": "array",
                "items": rule(&words(Decision::ALL.iter().map(|decision| decision.as_str()).collect()), &words(origins)),
            },
        },
    })
}

fn powers() -> serde_json::Map<String, Value> {
    let rulings: Vec<&str> = Ruling::ALL.iter().map(|ruling| ruling.as_str()).collect();
    let of = |power: &Power| (power.as_str().to_owned(), json!({"enum": rulings}));
    Power::ALL.iter().map(of).collect()
}

fn rule(decision: &Value, origin: &Value) -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let example = json!({"type": "array", "items": {"anyOf": [{"type": "string"}, texts, {
        "type": "object",
        "required": ["tool"],
        "additionalProperties": false,
        "properties": {"tool": {"type": "string"}, "args": {"type": "object"}, "origin": origin},
    }]}});
    json!({
        "type": "object",
        "required": ["decision"],
        "anyOf": [{"required": ["tool"]}, {"required": ["argv"]}],
        "additionalProperties": false,
        "properties": {
            "decision": decision,
            "tool": {"type": "string", "description": "The name of a tool; `*` matches any text."},
            "argv": {
                "description": "The first words of the program's argv, for `exec` and every command of `shell`; a list gives alternatives for one position.",
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "string"}, texts]}},
                ],
            },
            "origins": {"type": "array", "minItems": 1, "items": origin, "description": "The origins of the calls that it matches; all by default."},
            "env": {"description": "Variables that an allowed call may set.", "type": "array", "items": {"type": "string"}},
            "cwd": {"description": "Directories of the project in which an allowed call may run, with patterns; only the root by default.", "type": "array", "minItems": 1, "items": {"type": "string"}},
            "stdin": {"description": "Allows any standard input: `stdin` of the call, or a pipe into the command (`a | b`). Without it, none is allowed.", "const": "any"},
            "sandbox": {
                "description": "Sandbox access that an allowed call may request.",
                "type": "object",
                "additionalProperties": false,
                "properties": {"net": {"type": "boolean"}, "read": texts, "write": texts},
            },
            "reason": {"type": "string", "description": "The reason, shown with the question."},
            "match": {"description": "Calls that it must match, checked when the file is read.", "anyOf": [example]},
            "notMatch": {"description": "Calls that it must not match, checked when the file is read.", "anyOf": [example]},
        },
    })
}
