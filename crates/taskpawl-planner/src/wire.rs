//! The two formats of requests to models.

use serde_json::{Value, json};

use crate::http::WireFormat;
use crate::planner::{Ending, Message, Request, Role, TokenUsage};

/// The name of the answer's schema.
const NAME: &str = "plan";

/// The version of the Messages API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A reply without its requests.
pub(crate) type Parts = (String, Ending, TokenUsage);

impl WireFormat {
    /// Returns the address of requests. `url` is that address, or the part before the path of the format.
    pub(crate) fn endpoint(self, url: &str) -> String {
        let url = url.trim_end_matches('/');
        match self {
            Self::OpenAi if url.ends_with("/chat/completions") => url.to_owned(),
            Self::OpenAi => format!("{url}/chat/completions"),
            Self::Anthropic if url.ends_with("/messages") => url.to_owned(),
            Self::Anthropic if url.ends_with("/v1") => format!("{url}/messages"),
            Self::Anthropic => format!("{url}/v1/messages"),
        }
    }

    /// Returns the headers of a request, without its content type.
    pub(crate) fn headers(self, key: Option<&str>) -> Vec<(&'static str, String)> {
        match self {
            Self::OpenAi => key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect(),
            Self::Anthropic => {
                let key = key.map(|key| ("x-api-key", key.to_owned()));
                key.into_iter().chain([("anthropic-version", ANTHROPIC_VERSION.to_owned())]).collect()
            }
        }
    }

    /// Returns the body of a request.
    pub(crate) fn body(self, model: &str, request: &Request<'_>) -> Value {
        match self {
            Self::OpenAi => json!({
                "model": model,
                "max_tokens": request.max_tokens,
                "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
                // Not `strict`, which demands that every property is required.
                "response_format": {"type": "json_schema", "json_schema": {"name": NAME, "schema": request.schema}},
            }),
            Self::Anthropic => {
                let (system, others): (Vec<&Message>, Vec<&Message>) =
                    request.messages.iter().partition(|message| message.role == Role::System);
                json!({
                    "model": model,
                    "max_tokens": request.max_tokens,
                    "system": system.iter().map(|message| &*message.text).collect::<Vec<_>>().join("\n"),
                    "messages": others.into_iter().map(message).collect::<Vec<_>>(),
                    "tools": [{"name": NAME, "description": "Takes the plan.", "input_schema": request.schema}],
                    "tool_choice": {"type": "tool", "name": NAME},
                })
            }
        }
    }

    /// Reads an answer.
    pub(crate) fn read(self, answer: &Value) -> Result<Parts, String> {
        match self {
            Self::OpenAi => openai(answer),
            Self::Anthropic => anthropic(answer),
        }
    }
}

fn message(message: &Message) -> Value {
    json!({"role": message.role.as_str(), "content": message.text})
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn openai(answer: &Value) -> Result<Parts, String> {
    let choice = &answer["choices"][0];
    let message = &choice["message"];
    let ending = match (message["refusal"].as_str(), choice["finish_reason"].as_str()) {
        (Some(words), _) if !words.is_empty() => Ending::Declined(words.to_owned()),
        (_, Some("length")) => Ending::CutOff,
        (_, Some("content_filter")) => Ending::Declined("its content filter stopped the answer".to_owned()),
        _ => Ending::Complete,
    };
    let text = text_of(&message["content"]);
    if !message.is_object() || (text.is_empty() && ending == Ending::Complete) {
        return Err("its answer has no text: `choices[0].message.content` is missing".to_owned());
    }
    let usage = &answer["usage"];
    let usage = TokenUsage {
        input: number(&usage["prompt_tokens"]),
        output: number(&usage["completion_tokens"]),
        cost: usage["cost"].as_f64(),
    };
    Ok((text, ending, usage))
}

fn anthropic(answer: &Value) -> Result<Parts, String> {
    let blocks = answer["content"].as_array().ok_or("its answer has no `content`")?;
    let plan =
        blocks.iter().find(|block| block["type"] == "tool_use").map(|block| block["input"].to_string());
    let text = plan.unwrap_or_else(|| text_of(&answer["content"]));
    let ending = match answer["stop_reason"].as_str() {
        Some("max_tokens") => Ending::CutOff,
        Some("refusal") => Ending::Declined(text.clone()),
        _ => Ending::Complete,
    };
    if text.is_empty() && ending == Ending::Complete {
        return Err("its answer has neither a tool use nor text".to_owned());
    }
    let usage = &answer["usage"];
    let cached = number(&usage["cache_creation_input_tokens"]) + number(&usage["cache_read_input_tokens"]);
    let input = number(&usage["input_tokens"]) + cached;
    Ok((text, ending, TokenUsage { input, output: number(&usage["output_tokens"]), cost: None }))
}

/// Returns the text of a content: text, or a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
