//! Hostile input at what describes a tool, and at what such a tool is called with.

use serde_json::{Value, json};
use taskpawl_fuzz::Target;
use taskpawl_tools::{CommandTool, Tool};

const DESCRIPTION: Target<'_> = Target {
    name: "descriptions of tools",
    corpus: &[
        r#"{"description": "x", "argv": ["kubectl", "get", "{kind}", "--namespace={ns}", ["-l", "{labels}"], "{watch}", "--", "{names}"], "params": {"kind": {"enum": ["pods", "nodes"]}, "ns": {"pattern": "^[a-z]+$", "required": false}, "labels": {"type": "array", "required": false}, "watch": {"flag": "--watch"}, "names": {"type": "array", "items": {"type": "string"}, "default": ["a"]}}}"#,
        r##"{"description": "x", "argv": ["x", "{{a}}", "{n}{m}"], "schema": {"type": "object", "properties": {"n": {"type": "integer", "default": 3}, "m": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"anyOf": [{"type": "null"}, {"items": {"$ref": "#/$defs/t"}}]}}}, "timeout": "30s", "outputBytes": "2MiB", "okExitCodes": [0, 1], "readOnly": true}"##,
        r#"{"description": "x", "argv": ["x"], "stdin": "{a}\n", "env": {"A": "{b}"}, "cwd": "{a}", "parse": "json", "idempotent": true, "params": {"a": {}, "b": {"type": "object", "properties": {"c": {}}, "required": ["c"]}}}"#,
    ],
    words: &[
        "description",
        "argv",
        "params",
        "schema",
        "type",
        "array",
        "object",
        "string",
        "integer",
        "boolean",
        "flag",
        "mayBeOption",
        "required",
        "default",
        "enum",
        "pattern",
        "items",
        "properties",
        "$ref",
        "#",
        "#/$defs/t",
        "anyOf",
        "minLength",
        "{a}",
        "{b}",
        "{n}",
        "{",
        "}",
        "{{",
        "}}",
        "--",
        "-",
        "{a}{b}",
        "stdin",
        "env",
        "cwd",
        "timeout",
        "outputBytes",
        "2MiB",
        "99999999999999GiB",
        "okExitCodes",
        "(",
        "[a-z]{1,1000}",
    ],
};

/// Values that a call may bring, for every parameter the same.
fn calls(tool: &CommandTool) -> Vec<Value> {
    let names = tool.spec().args_schema["properties"].as_object().cloned().unwrap_or_default();
    let values = [
        json!("-rf"),
        json!("{a}"),
        json!(["x", "-y", null]),
        json!({"c": 1}),
        json!(true),
        json!(-1),
        Value::Null,
        json!("a\u{0}"),
    ];
    let all =
        values.into_iter().map(|value| names.keys().map(|name| (name.clone(), value.clone())).collect());
    all.collect()
}

/// What a call brings never becomes more arguments than the template has, nor an option that the template does not have.
fn description(text: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
    let Ok(tool) = CommandTool::new("own", &value) else { return false };
    let template = value["argv"].as_array().map_or(0, Vec::len);
    for args in calls(&tool) {
        let Ok(argv) = tool.argv(&args) else { continue };
        assert_eq!(
            Some(argv[0].as_str()),
            tool.template().first().map(|text| text.replace("{{", "{").replace("}}", "}")).as_deref()
        );
        let is_list = args.as_object().is_some_and(|args| args.values().any(Value::is_array));
        let has_group = value["argv"].as_array().is_some_and(|argv| argv.iter().any(Value::is_array));
        let has_list_by_default = text.contains("default");
        assert!(is_list || has_group || has_list_by_default || argv.len() <= template, "{argv:?}");
        assert!(argv.iter().all(|arg| !arg.contains('\0')), "{argv:?}");
        let is_free = text.contains("mayBeOption") || text.contains("\"--\"");
        assert!(is_free || !argv.contains(&"-rf".to_owned()), "{argv:?}");
    }
    true
}

#[test]
fn the_corpus_is_read_or_refused() {
    DESCRIPTION.corpus(description);
}

#[test]
fn hostile_descriptions_panic_nothing() {
    DESCRIPTION.fuzz(description);
}
