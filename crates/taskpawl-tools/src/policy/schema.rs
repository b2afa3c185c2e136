//! The JSON Schema of a policy file.

use serde_json::{Value, json};

use super::layer::Standing;
use super::{CallOrigin, Decision};

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
                "description": "What holds for calls that no rule is about, by who added them.",
                "type": "object",
                "additionalProperties": false,
                "properties": standings,
            },
            "sandbox": {
                "description": "Ways to widen the sandbox: to be without it, the network, more paths.",
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "off": words(vec!["allow", "deny"]),
                    "net": words(vec!["allow", "deny"]),
                    "paths": words(vec!["allow", "deny"]),
                },
            },
            "decisions": {
                "description": "What decisions of people take: whether a PIN has to be set for them.",
                "type": "object",
                "additionalProperties": false,
                "properties": {"pin": words(vec!["optional", "required"])},
            },
            "rules": {
                "description": "The strictest of the rules that are about a call counts.",
                "type": "array",
                "items": rule(&words(Decision::ALL.iter().map(|decision| decision.as_str()).collect()), &words(origins)),
            },
        },
    })
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
            "tool": {"type": "string", "description": "The name of a tool; `*` stands for anything."},
            "argv": {
                "description": "How the argv of a program begins, for `exec` and every command of `shell`: words, or several for one place.",
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "string"}, texts]}},
                ],
            },
            "origins": {"type": "array", "minItems": 1, "items": origin, "description": "Whose calls it is about; everybody's without it."},
            "env": {"description": "Variables that an allowed call may set.", "type": "array", "items": {"type": "string"}},
            "cwd": {"description": "Directories of the project in which an allowed call may run, with patterns; the root alone without it.", "type": "array", "minItems": 1, "items": {"type": "string"}},
            "stdin": {"description": "That an allowed call may have any standard input: `stdin` of the call, or a pipe into the command (`a | b`). None without it.", "const": "any"},
            "sandbox": {
                "description": "What an allowed call may ask of the sandbox.",
                "type": "object",
                "additionalProperties": false,
                "properties": {"net": {"type": "boolean"}, "read": texts, "write": texts},
            },
            "reason": {"type": "string", "description": "Why: it is told to whoever is asked."},
            "match": {"description": "Calls that it is about, checked when the file is read.", "anyOf": [example]},
            "notMatch": {"description": "Calls that it is not about, checked likewise.", "anyOf": [example]},
        },
    })
}
