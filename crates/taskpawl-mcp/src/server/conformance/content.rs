//! Fixed content: definitions, and tools, resources and prompts without questions.

use rmcp::model::{
    CallToolResult, GetPromptRequestParams, GetPromptResult, Prompt, ReadResourceResult, Resource,
    ResourceTemplate, Tool,
};
use serde_json::{Value, json};

use super::fixture::{SCHEME, complete, typed};

/// A picture of one pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgaPgPAAIDAYAkYfWXAAAAAElFTkSuQmCC";

/// A sound of eight samples.
const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

/// Tools without arguments.
const PLAIN: [&str; 26] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_reconnection",
    "test_missing_capability",
    "test_logging_tool",
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
    "failing_job",
    "protocol_error_job",
    "multi_input",
    "test_tool_with_task",
];

/// Returns the definitions of all tools of the suite.
pub(super) fn tools() -> Vec<Tool> {
    let text = json!({"type": "string"});
    let schemas = [
        ("test_sampling", json!({"type": "object", "properties": {"prompt": text}, "required": ["prompt"]})),
        (
            "test_elicitation",
            json!({"type": "object", "properties": {"message": text}, "required": ["message"]}),
        ),
        (
            "test_custom_header",
            json!({"type": "object", "properties": {"value": {"type": "string", "x-mcp-header": "Value"}}, "required": ["value"]}),
        ),
        ("json_schema_2020_12_tool", newest_schema()),
        ("greet", json!({"type": "object", "properties": {"name": text}})),
        (
            "slow_compute",
            json!({"type": "object", "properties": {"seconds": {"type": "number"}, "label": text}}),
        ),
        ("confirm_delete", json!({"type": "object", "properties": {"filename": text}})),
    ];
    let plain = PLAIN.into_iter().map(|name| (name, json!({"type": "object", "properties": {}})));
    let tool = |(name, schema): (&str, Value)| {
        typed(json!({"name": name, "description": "A fixture of the suite", "inputSchema": schema}))
    };
    plain.chain(schemas).map(tool).collect()
}

/// Returns a schema with features of the newest dialect of JSON Schema.
fn newest_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// Returns the fixed answer of a tool.
pub(super) fn result(name: &str) -> Option<CallToolResult> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let resource = |path: &str, kind: &str, text: &str| json!({"type": "resource", "resource": {"uri": format!("{SCHEME}{path}"), "mimeType": kind, "text": text}});
    let content = match name {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => {
            json!([resource("embedded-resource", "text/plain", "This is an embedded resource content.")])
        }
        "test_multiple_content_types" => {
            let data =
                resource("mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
            json!([text("Multiple content types test:"), image, data])
        }
        "test_error_handling" => json!([text("This tool intentionally returns an error for testing")]),
        "json_schema_2020_12_tool" | "test_custom_header" => json!([text("as it should be")]),
        _ => return None,
    };
    Some(complete(json!({"content": content, "isError": name == "test_error_handling"})))
}

/// Returns the resources that can be read without an id.
pub(super) fn resources() -> Vec<Resource> {
    let resource = |path: &str, kind: &str| {
        typed(
            json!({"uri": format!("{SCHEME}{path}"), "name": path, "description": "A fixture of the suite", "mimeType": kind}),
        )
    };
    vec![
        resource("static-text", "text/plain"),
        resource("static-binary", "image/png"),
        resource("watched-resource", "text/plain"),
    ]
}

/// Returns the templates of resources with an id.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![typed(
        json!({"uriTemplate": format!("{SCHEME}template/{{id}}/data"), "name": "template", "mimeType": "application/json"}),
    )]
}

/// Reads the resource at an address of the suite.
pub(super) fn read(uri: &str) -> Option<ReadResourceResult> {
    let path = uri.strip_prefix(SCHEME)?;
    let mut content = match path {
        "static-text" => {
            json!({"mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        "watched-resource" => json!({"mimeType": "text/plain", "text": "watched"}),
        "static-binary" => json!({"mimeType": "image/png", "blob": PNG}),
        _ => {
            let id = path.strip_prefix("template/")?.strip_suffix("/data")?;
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"mimeType": "application/json", "text": data.to_string()})
        }
    };
    content["uri"] = json!(uri);
    Some(complete(json!({"contents": [content]})))
}

/// Returns the prompts of the suite.
pub(super) fn prompts() -> Vec<Prompt> {
    let argument = |name: &str| json!({"name": name, "required": true});
    let prompts = [
        ("test_simple_prompt", vec![]),
        ("test_prompt_with_arguments", vec![argument("arg1"), argument("arg2")]),
        ("test_prompt_with_embedded_resource", vec![argument("resourceUri")]),
        ("test_prompt_with_image", vec![]),
        ("test_input_required_result_prompt", vec![]),
    ];
    let prompt = |(name, arguments)| {
        typed(
            json!({"name": name, "description": "A fixture of the suite", "arguments": Value::Array(arguments)}),
        )
    };
    prompts.into_iter().map(prompt).collect()
}

/// Returns the text of a prompt.
pub(super) fn prompt(request: &GetPromptRequestParams) -> Option<GetPromptResult> {
    let said =
        |name: &str| request.arguments.as_ref().and_then(|all| all.get(name)).cloned().unwrap_or_default();
    let text = |text: &str| json!({"type": "text", "text": text});
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            vec![text(&format!("Prompt with arguments: arg1={}, arg2={}", said("arg1"), said("arg2")))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({"uri": said("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing."});
            vec![
                json!({"type": "resource", "resource": resource}),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => {
            vec![
                json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
                text("Please analyze the image above."),
            ]
        }
        _ => return None,
    };
    let messages: Vec<Value> =
        contents.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
    Some(complete(json!({"messages": messages})))
}
