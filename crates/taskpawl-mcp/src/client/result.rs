//! Converts answers of servers to results of calls.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;
use taskpawl::tools::ToolError;

use super::words::plain;

/// Maximum length of the message of a failed call, in characters. The result has the whole text.
const MAX_MESSAGE_CHARS: usize = 1000;

/// Returns the result of a call: its structured content, else its text. Several parts become a list, with an object
/// for each part that is not text. `hint` is the known cause of a failure.
pub(super) fn result_of(tool: &str, answer: CallToolResult, hint: Option<&str>) -> Result<Value, ToolError> {
    let message = is_error(&answer).then(|| message(tool, &answer.content, hint));
    let result = match answer.structured_content {
        Some(structured) => structured,
        None => content(&answer.content),
    };
    match message {
        Some(message) => Err(ToolError::Answered { message, result: Box::new(result) }),
        None => Ok(result),
    }
}

/// Returns the text of a failed call.
pub(super) fn error_text(answer: &CallToolResult) -> Option<String> {
    is_error(answer).then(|| texts(&answer.content).join("\n"))
}

fn is_error(answer: &CallToolResult) -> bool {
    answer.is_error == Some(true)
}

fn texts(parts: &[ContentBlock]) -> Vec<&str> {
    parts.iter().filter_map(|part| Some(part.as_text()?.text.trim())).collect()
}

fn content(parts: &[ContentBlock]) -> Value {
    match parts {
        [] => Value::Null,
        [part] => value(part),
        parts => parts.iter().map(value).collect(),
    }
}

fn value(part: &ContentBlock) -> Value {
    match part.as_text() {
        Some(text) => Value::String(text.text.clone()),
        None => serde_json::to_value(part).unwrap_or(Value::Null),
    }
}

fn message(tool: &str, parts: &[ContentBlock], hint: Option<&str>) -> String {
    let text = texts(parts).join("; ");
    let message =
        if text.is_empty() { "it says no more".to_owned() } else { plain(&text, MAX_MESSAGE_CHARS) };
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("`{tool}` failed: {message}{hint}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(answer: Value) -> String {
        match result_of("s/t", serde_json::from_value(answer).unwrap(), None) {
            Ok(value) => value.to_string(),
            Err(error) => format!("{}: {error}: {}", error.class(), error.result().unwrap()),
        }
    }

    #[test]
    fn answers_become_results() {
        let text = json!({"type": "text", "text": "a"});
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let answers = [
            json!({"content": []}),
            json!({"content": [text]}),
            json!({"content": [text, image]}),
            json!({"content": [text], "structuredContent": {"n": 1}}),
            json!({"content": [text], "structuredContent": null}),
            json!({"content": [text, text], "isError": true}),
            json!({"content": [], "isError": true, "structuredContent": {"n": 1}}),
        ];
        let outcomes: Vec<String> = answers.into_iter().map(outcome).collect();
        insta::assert_snapshot!(outcomes.join("\n"), @r###"
null
"a"
["a",{"data":"AAAA","mimeType":"image/png","type":"image"}]
{"n":1}
null
tool_error: `s/t` failed: a; a: ["a","a"]
tool_error: `s/t` failed: it says no more: {"n":1}
"###);
    }
}
