//! Tools that notify or ask the client while they run, and one that needs a client with a capability.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ErrorData, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, ServerRequest,
};
use serde_json::{Value, json};

use super::fixture::{Context, text_of, typed};

/// Answers a call of one of these tools.
pub(super) async fn call(
    request: &CallToolRequestParams,
    context: &Context,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let said = |name: &str| request.arguments.as_ref().and_then(|all| all.get(name)).cloned();
    let answer = match &*request.name {
        "test_tool_with_logging" => {
            for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                log(context, LoggingLevel::Info, text).await;
            }
            Ok(text_of("logged"))
        }
        "test_logging_tool" => {
            // In the newer era each request sets its own log level.
            if let Some(level) = context.meta.log_level() {
                log(context, level, "asked for").await;
            }
            Ok(text_of("logged"))
        }
        "test_tool_with_progress" => {
            tell_progress(context).await;
            Ok(text_of("told"))
        }
        "test_reconnection" => Ok(text_of("still there")),
        "test_missing_capability" => missing(context),
        "test_sampling" => {
            let text = said("prompt").unwrap_or_default();
            let message = json!({"role": "user", "content": {"type": "text", "text": text}});
            let params = json!({"messages": [message], "maxTokens": 100});
            ask("LLM response", "sampling/createMessage", params, context).await
        }
        "test_elicitation" => {
            let text = json!({"type": "string"});
            let schema = json!({"type": "object", "properties": {"username": text, "email": text}, "required": ["username", "email"]});
            let params = json!({"mode": "form", "message": said("message"), "requestedSchema": schema});
            ask("User response", "elicitation/create", params, context).await
        }
        "test_elicitation_sep1034_defaults" => form("Elicitation completed", defaults(), context).await,
        "test_elicitation_sep1330_enums" => form("Elicitation completed", enums(), context).await,
        _ => return None,
    };
    Some(answer)
}

async fn log(context: &Context, level: LoggingLevel, text: &str) {
    let told = context.peer.notify_logging_message(LoggingMessageNotificationParam::new(level, json!(text)));
    // An error means that the client is gone.
    let _ = told.await;
}

async fn tell_progress(context: &Context) {
    let Some(token) = context.meta.get_progress_token() else { return };
    for done in [0.0, 50.0, 100.0] {
        let progress = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
        let _ = context.peer.notify_progress(progress).await;
    }
}

/// Answers like a tool that needs a client with a model.
fn missing(context: &Context) -> Result<CallToolResponse, ErrorData> {
    let has_model = context
        .client_capabilities()
        .is_some_and(|capabilities| typed::<Value>(json!(capabilities))["sampling"].is_object());
    if has_model {
        return Ok(text_of("there is a model"));
    }
    let needed: ClientCapabilities = typed(json!({"sampling": {}}));
    Err(ErrorData::missing_required_client_capability(needed))
}

async fn form(title: &str, properties: Value, context: &Context) -> Result<CallToolResponse, ErrorData> {
    let schema = json!({"type": "object", "properties": properties, "required": []});
    let params = json!({"mode": "form", "message": "Please say", "requestedSchema": schema});
    ask(title, "elicitation/create", params, context).await
}

async fn ask(
    title: &str,
    method: &str,
    params: Value,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let request: ServerRequest = typed(json!({"method": method, "params": params}));
    match context.peer.send_request(request).await {
        Ok(answer) => Ok(text_of(format!("{title}: {}", json!(answer)))),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}

fn defaults() -> Value {
    json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    })
}

fn enums() -> Value {
    let values = ["option1", "option2", "option3"];
    let titled: Vec<Value> = [("value1", "First"), ("value2", "Second"), ("value3", "Third")]
        .into_iter()
        .map(|(value, title)| json!({"const": value, "title": format!("{title} Option")}))
        .collect();
    json!({
        "untitledSingle": {"type": "string", "enum": values},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": values}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    })
}
