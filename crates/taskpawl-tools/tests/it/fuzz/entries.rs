//! Entry points for fuzzing tool definitions and their calls.

use serde_json::{Value, json};
use taskpawl_tools::{CommandTool, Tool};

/// Arguments with the same value for every parameter.
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

/// Checks that a call never has more arguments than the template, nor options that the template lacks.
pub(crate) fn description(text: &str) -> bool {
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
