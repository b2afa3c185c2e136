//! Tools that are defined by configuration.

use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl_tools::{CommandTool, Registry, ToolError, call_guarded};

use crate::support::Project;

fn described(mut description: Value) -> CommandTool {
    description["description"] = "Does something.".into();
    CommandTool::new("own", &description).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the error for an invalid definition.
fn fault(description: Value) -> String {
    let error = CommandTool::new("own", &description).expect_err("the description is refused");
    drop(description);
    error.to_string()
}

fn fault_of_argv(argv: &Value, params: &Value) -> String {
    fault(json!({"description": "x", "argv": argv, "params": params}))
}

async fn call(project: &Project, description: Value, args: Value) -> Result<Value, ToolError> {
    let mut registry = Registry::new();
    registry.register(Arc::new(described(description))).unwrap();
    let tool = registry.get("own").unwrap().clone();
    let schema = tool.spec().result_schema.clone().unwrap();
    let result = call_guarded(tool, project.cx.clone(), args).await;
    if let Some(result) = result.as_ref().ok().or(result.as_ref().err().and_then(ToolError::result)) {
        crate::registry::assert_fits(&schema, result);
    }
    result
}

fn kubectl() -> CommandTool {
    described(json!({
        "argv": ["kubectl", "get", "{kind}", "--namespace={namespace}", ["-l", "{labels}"], "{watch}", "--limit={limit}", "{{raw}}", "--", "{names}"],
        "params": {
            "kind": {},
            "namespace": {"required": false},
            "labels": {"type": "array", "required": false},
            "watch": {"flag": "--watch"},
            "limit": {"type": "integer", "default": 5},
            "names": {"type": "array", "required": false},
        },
    }))
}

#[test]
fn any_value_of_a_placeholder_is_one_argument() {
    for (args, argv) in [
        (json!({"kind": "pods"}), json!(["kubectl", "get", "pods", "--limit=5", "{raw}", "--"])),
        (
            json!({"kind": "a b\n$(rm)'\"*", "namespace": "", "limit": -1, "watch": true}),
            json!([
                "kubectl",
                "get",
                "a b\n$(rm)'\"*",
                "--namespace=",
                "--watch",
                "--limit=-1",
                "{raw}",
                "--"
            ]),
        ),
        (
            json!({"kind": "{namespace}", "labels": ["a=1", "b c"], "names": ["x", "-y"], "watch": false}),
            json!([
                "kubectl",
                "get",
                "{namespace}",
                "-l",
                "a=1",
                "-l",
                "b c",
                "--limit=5",
                "{raw}",
                "--",
                "x",
                "-y"
            ]),
        ),
        (
            json!({"kind": "", "labels": [], "names": []}),
            json!(["kubectl", "get", "", "--limit=5", "{raw}", "--"]),
        ),
    ] {
        assert_eq!(json!(kubectl().argv(&args).unwrap()), argv, "{args}");
    }
}

#[test]
fn a_value_does_not_become_an_option() {
    let refusal = |tool: &CommandTool, args: Value| tool.argv(&args).unwrap_err().to_string();
    insta::assert_snapshot!(
        refusal(&kubectl(), json!({"kind": "--kubeconfig=/tmp/x"})),
        @"`own` refuses its arguments: `args.kind` begins with `-`, so `kubectl` would parse it as an option; the definition of the tool can put `--` before it, use `--option={kind}`, or set `mayBeOption = true`"
    );
    let two = described(json!({"argv": ["x", "{a}{b}"], "params": {"a": {}, "b": {}}}));
    assert!(refusal(&two, json!({"a": "", "b": "-rf"})).contains("`args.b`"));
    assert!(refusal(&kubectl(), json!({"kind": "pods", "labels": ["a", "-A"]})).contains("`args.labels`"));
    assert!(refusal(&kubectl(), json!({"kind": "a\0b"})).contains("NUL"));
    let number = described(json!({"argv": ["head", "{count}"], "params": {"count": {"type": "integer"}}}));
    assert!(refusal(&number, json!({"count": -5})).contains("`args.count`"));

    let option = described(json!({"argv": ["x", "{a}"], "params": {"a": {"mayBeOption": true}}}));
    assert_eq!(option.argv(&json!({"a": "-v"})).unwrap(), ["x", "-v"]);
}

#[test]
fn the_schema_is_made_from_the_parameters() {
    insta::assert_json_snapshot!(taskpawl_tools::Tool::spec(&kubectl()).args_schema, @r#"
    {
      "additionalProperties": false,
      "properties": {
        "kind": {
          "type": "string"
        },
        "labels": {
          "items": {
            "type": "string"
          },
          "type": "array"
        },
        "limit": {
          "default": 5,
          "type": "integer"
        },
        "names": {
          "items": {
            "type": "string"
          },
          "type": "array"
        },
        "namespace": {
          "type": "string"
        },
        "watch": {
          "type": "boolean"
        }
      },
      "required": [
        "kind"
      ],
      "type": "object"
    }
    "#);
    let whole =
        json!({"type": "object", "properties": {"n": {"type": "integer", "default": 3}}, "required": []});
    for schema in [whole.clone(), whole.to_string().into()] {
        let tool = described(json!({"argv": ["x", "{n}"], "schema": schema}));
        assert_eq!(tool.argv(&json!({})).unwrap(), ["x", "3"]);
        assert_eq!(tool.argv(&json!({"n": 4})).unwrap(), ["x", "4"]);
    }
}

#[tokio::test]
async fn a_call_has_the_results_and_errors_of_exec() {
    let project = Project::new();
    project.write("sub/file", "");
    let description = json!({
        "argv": ["sh", "-c", "cat; pwd | sed 's/.*[/]//'; echo \"$A-${{B-none}}\"; exit \"$1\"", "sh", "{code}"],
        "stdin": "in {text}\n", "cwd": "{dir}", "env": {"A": "{text}", "B": "{absent}"}, "okExitCodes": [0, 2],
        "params": {"code": {"type": "integer"}, "text": {}, "dir": {}, "absent": {"required": false}},
    });
    let args = json!({"code": 2, "text": "a b", "dir": "sub"});
    let result = call(&project, description.clone(), args).await.unwrap();
    assert_eq!((&result["stdout"], &result["exitCode"]), (&json!("in a b\nsub\na b-none\n"), &json!(2)));

    let error =
        call(&project, description.clone(), json!({"code": 3, "text": "", "dir": "."})).await.unwrap_err();
    assert_eq!((error.class(), error.to_string().as_str()), ("exit_code", "`sh` exited with code 3"));
    let error =
        call(&project, description.clone(), json!({"code": 0, "text": "", "dir": ".."})).await.unwrap_err();
    assert_eq!(error.class(), "outside_root");
    let error = call(&project, description, json!({"code": "0", "text": "", "dir": "."})).await.unwrap_err();
    insta::assert_snapshot!(error, @"`own` refuses its arguments: `args.code` has to be an integer, but is the string `\"0\"`");

    let json = json!({"argv": ["echo", "{value}"], "parse": "json", "params": {"value": {"type": "object"}}});
    let result = call(&project, json, json!({"value": {"a": [1]}})).await.unwrap();
    assert_eq!(result["json"], json!({"a": [1]}));
}

#[tokio::test]
async fn the_limits_of_a_definition_apply_to_its_calls() {
    let project = Project::new();
    let slow = json!({"argv": ["sleep", "60"], "timeout": "50ms"});
    assert_eq!(call(&project, slow, json!({})).await.unwrap_err().class(), "timeout");
    let loud = json!({"argv": ["yes"], "outputBytes": "10kB"});
    let error = call(&project, loud, json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "the output of the call exceeded the limit of 10000 bytes");
}

#[test]
fn missing_hints_default_to_the_worst_case() {
    let hints =
        |fields: Value| serde_json::to_string(&taskpawl_tools::Tool::spec(&described(fields)).hints).unwrap();
    insta::assert_snapshot!(hints(json!({"argv": ["x"]})), @r#"{"readOnly":false,"idempotent":false,"destructive":true,"openWorld":true}"#);
    insta::assert_snapshot!(hints(json!({"argv": ["x"], "readOnly": true})), @r#"{"readOnly":true,"idempotent":true,"destructive":false,"openWorld":true}"#);
    insta::assert_snapshot!(
        hints(json!({"argv": ["x"], "idempotent": true, "destructive": false, "openWorld": false})),
        @r#"{"readOnly":false,"idempotent":true,"destructive":false,"openWorld":false}"#
    );
    let tool = described(json!({"argv": ["x"], "idempotent": true}));
    assert!(taskpawl_tools::Tool::is_repeatable(&tool, &json!({})));
}

#[test]
fn errors_in_a_definition_name_the_field() {
    let faults = [
        fault(json!({"argv": ["x"]})),
        fault(json!({"description": "x"})),
        fault(json!({"description": "x", "argv": "kubectl get"})),
        fault(json!({"description": "x", "argv": ["x"], "discription": "x"})),
        fault(json!({"description": "x", "argv": ["x"], "timeout": "soon"})),
        fault(json!({"description": "x", "argv": ["x"], "outputBytes": 0})),
        fault(json!({"description": "x", "argv": ["x"], "okExitCodes": [256]})),
        fault(json!({"description": "x", "argv": ["x"], "readOnly": true, "destructive": true})),
        fault(json!({"description": "x", "argv": ["x"], "parse": "yaml"})),
        fault(json!({"description": "x", "argv": ["x"], "env": {"A=B": "x"}})),
        fault(json!({"description": "x", "argv": ["x"], "stdin": "{body}"})),
        fault(json!({"description": "x", "argv": ["x"], "schema": "{"})),
        fault(json!({"description": "x", "argv": ["x"], "schema": {"type": "string"}})),
        fault(
            json!({"description": "x", "argv": ["x"], "schema": {"type": "object", "properties": {"a": {"tpye": "string"}}}}),
        ),
        fault(json!({"description": "x", "argv": ["x"], "schema": {}, "params": {}})),
        fault_of_argv(&json!(["x", "{resourse}"]), &json!({"resource": {}})),
        fault_of_argv(&json!(["x", "{resource}"]), &json!({})),
        fault_of_argv(&json!(["{program}"]), &json!({"program": {}})),
        fault_of_argv(&json!([["x"]]), &json!({})),
        fault_of_argv(&json!([""]), &json!({})),
        fault_of_argv(&json!(["x", 1]), &json!({})),
        fault_of_argv(&json!(["x", ["-a"]]), &json!({})),
        fault_of_argv(&json!(["x", "{print $1}"]), &json!({})),
        fault_of_argv(&json!(["x", "a}"]), &json!({})),
        fault_of_argv(
            &json!(["x", ["{a}", "{b}"]]),
            &json!({"a": {"type": "array"}, "b": {"type": "array"}}),
        ),
        fault_of_argv(&json!(["x", "-{v}"]), &json!({"v": {"flag": "--v"}})),
        fault_of_argv(&json!(["x"]), &json!({"unused": {}})),
        fault_of_argv(&json!(["x", "{a}"]), &json!({"a": {"type": "text"}})),
        fault_of_argv(&json!(["x", "{a}"]), &json!({"a": {"tpye": "string"}})),
        fault_of_argv(&json!(["x", "{a}"]), &json!({"a": {"pattern": "("}})),
        fault_of_argv(&json!(["x", "{a}"]), &json!({"a": {"type": "integer", "default": "1"}})),
        fault_of_argv(&json!(["x", "{a}"]), &json!({"a": {"required": true, "default": "1"}})),
        fault_of_argv(&json!(["x", "{a}"]), &json!({"a": {"type": "string", "flag": "--a"}})),
        fault_of_argv(&json!(["x"]), &json!({"a b": {}})),
    ];
    insta::assert_snapshot!(faults.join("\n"));
}

#[test]
fn an_undeclared_list_is_repeated_too() {
    let schema = json!({"type": "object", "properties": {"a": {}, "b": {}}});
    let tool = described(json!({"argv": ["x", "{a}={b}"], "schema": schema}));
    assert_eq!(tool.argv(&json!({"a": [1, true], "b": "x"})).unwrap(), ["x", "1=x", "true=x"]);
    assert!(tool.argv(&json!({"a": [1], "b": [2]})).is_err());
    assert_eq!(tool.argv(&json!({"a": null, "b": "x"})).unwrap(), ["x"]);
}
