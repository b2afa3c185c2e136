use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use taskpawl_tools::{CallContext, Hints, Registry, Tool, ToolError, ToolSpec};

#[derive(Debug)]
struct Named(ToolSpec);

#[async_trait]
impl Tool for Named {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _cx: CallContext, args: Value) -> Result<Value, ToolError> {
        Ok(args)
    }
}

fn tool(name: &str, schema: Value) -> Arc<dyn Tool> {
    Arc::new(Named(ToolSpec::new(name, "A tool.", schema)))
}

/// Checks a value against a schema, by registering a tool whose argument `value` has that schema.
pub(crate) fn assert_fits(schema: &Value, value: &Value) {
    let mut registry = Registry::new();
    registry.register(tool("t", json!({"type": "object", "properties": {"value": schema}}))).unwrap();
    registry.get("t").unwrap().check_args(&json!({"value": value})).unwrap();
}

#[test]
fn built_in_tools_have_these_arguments_and_hints() {
    let registry = Registry::builtin();
    let lines = registry.iter().map(|tool| {
        let Hints { read_only, idempotent, destructive, open_world } = tool.spec().hints;
        let hints = [
            (read_only, "read-only"),
            (idempotent, "idempotent"),
            (destructive, "destructive"),
            (open_world, "open-world"),
        ];
        let hints: Vec<&str> =
            hints.into_iter().filter_map(|(is_set, hint)| is_set.then_some(hint)).collect();
        let fields = tool.spec().args_schema["properties"].as_object().unwrap().keys();
        let fields: Vec<&str> = fields.map(String::as_str).collect();
        format!("{} ({}) {}", tool.spec().name, fields.join(", "), hints.join(", ")).trim_end().to_owned()
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    assert!(registry.names().is_sorted());
}

#[test]
fn the_schemas_of_built_in_tools_can_be_compiled() {
    let mut registry = Registry::new();
    for tool in Registry::builtin().iter() {
        registry.register(Arc::clone(tool.tool())).unwrap();
    }
    assert!(registry.names().eq(Registry::builtin().names()));
}

#[test]
fn invalid_tools_are_not_registered() {
    let object = || json!({"type": "object"});
    let mut registry = Registry::builtin();
    let result = Named(ToolSpec::new("t", "A tool.", object()).with_result(json!({"type": "thing"})));
    let refused = [
        tool("exec", object()),
        tool("", object()),
        tool("a b", object()),
        tool(&"x".repeat(65), object()),
        tool("t", json!({"type": "array"})),
        tool("t", json!({"type": "object", "properties": {"a": {"type": "thing"}}})),
        Arc::new(result),
    ];
    let errors = refused.map(|tool| registry.register(tool).unwrap_err().to_string());
    insta::assert_snapshot!(errors.join("\n"), @r"
    a tool named `exec` is already registered
    `` is not a valid tool name: use 1 to 64 letters, digits, `.`, `_` and `-`, prefixed with `SERVER/` for the tool of a server
    `a b` is not a valid tool name: use 1 to 64 letters, digits, `.`, `_` and `-`, prefixed with `SERVER/` for the tool of a server
    `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` is not a valid tool name: use 1 to 64 letters, digits, `.`, `_` and `-`, prefixed with `SERVER/` for the tool of a server
    the args schema of tool `t` is invalid at `/type`: the type of arguments has to be `object`
    the args schema of tool `t` is invalid at `/properties/a/type`: unknown type `thing`
    the result schema of tool `t` is invalid at `/type`: unknown type `thing`
    ");
    assert!(registry.get("t").is_none());
    registry.register(tool("t", object())).unwrap();
    assert!(registry.get("t").is_some());
}

#[test]
fn calls_without_further_effect_are_repeatable() {
    let registry = Registry::builtin();
    let cases = [
        ("write_file", json!({"path": "a", "content": ""}), true),
        ("write_file", json!({"path": "a", "content": "", "append": true}), false),
        ("read_file", json!({"path": "a"}), true),
        ("edit_file", json!({"path": "a", "old": "b", "new": "c"}), false),
        ("exec", json!({"argv": ["true"]}), false),
        ("shell", json!({"command": "true"}), false),
        ("sleep", json!({"duration": "1s"}), true),
    ];
    for (name, args, expected) in cases {
        assert_eq!(registry.get(name).unwrap().is_repeatable(&args), expected, "{name} {args}");
    }
    #[cfg(feature = "http")]
    {
        let http = registry.get("http_request").unwrap();
        assert!(http.is_repeatable(&json!({"url": "http://x"})));
        assert!(!http.is_repeatable(&json!({"url": "http://x", "method": "POST"})));
    }
}
