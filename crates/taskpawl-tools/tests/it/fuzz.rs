//! Fuzzing of tool definitions and of calls of the defined tools.

mod entries;

use taskpawl_fuzz::Target;

use entries::description;

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

#[test]
fn the_corpus_is_read_or_refused() {
    DESCRIPTION.corpus(description);
}

#[test]
fn hostile_definitions_cause_no_panic() {
    DESCRIPTION.fuzz(description);
}
