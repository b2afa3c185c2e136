//! Requests that the protocol reads as none of its own: of a method that there is not, or with parameters that are wrong.

use rmcp::model::{
    CallToolRequestParams, CompleteRequestParams, CustomRequest, ErrorCode, ErrorData,
    GetPromptRequestParams, PaginatedRequestParams, ReadResourceRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::arguments;
use super::handler::named;

/// Says what is wrong with parameters.
type Check = fn(&Value) -> Option<String>;

/// The methods that every client has in both eras, with what looks at their parameters. Others count as none where they cannot be read:
/// whether there is such a method depends on the era, and on what the client declared.
const METHODS: [(&str, Check); 8] = [
    ("tools/list", problem::<PaginatedRequestParams>),
    ("tools/call", problem::<CallToolRequestParams>),
    ("prompts/list", problem::<PaginatedRequestParams>),
    ("prompts/get", problem::<GetPromptRequestParams>),
    ("resources/list", problem::<PaginatedRequestParams>),
    ("resources/templates/list", problem::<PaginatedRequestParams>),
    ("resources/read", problem::<ReadResourceRequestParams>),
    ("completion/complete", problem::<CompleteRequestParams>),
];

/// Returns why a request is not answered.
pub(super) fn refused(request: CustomRequest) -> ErrorData {
    let CustomRequest { method, params, .. } = request;
    let Some((_, check)) = METHODS.iter().find(|(name, _)| *name == method) else {
        let message = format!("no method `{}`", named(&method));
        return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None);
    };
    let problem = check(&params.unwrap_or_else(|| json!({})));
    let problem = problem.unwrap_or_else(|| "they are not what the protocol says".to_owned());
    ErrorData::invalid_params(format!("the parameters of `{method}` cannot be read: {problem}"), None)
}

fn problem<T: DeserializeOwned>(params: &Value) -> Option<String> {
    match params {
        Value::Object(fields) => {
            arguments::read::<T>(fields.clone()).err().map(|refused| named(&refused.to_string()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Some(format!("expected an object, not {}", arguments::found(params)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_in_few_words() {
        let long = "x".repeat(100_000);
        for (method, params, code, said) in [
            ("tools/run", json!({}), ErrorCode::METHOD_NOT_FOUND, "no method `tools/run`"),
            (long.as_str(), json!({}), ErrorCode::METHOD_NOT_FOUND, "no method `xxx"),
            ("tools/call", json!({}), ErrorCode::INVALID_PARAMS, "argument `name`: it is missing"),
            (
                "tools/call",
                json!({"name": "plan_show", "arguments": long}),
                ErrorCode::INVALID_PARAMS,
                "argument `arguments`: expected an object, not \"xxx",
            ),
            ("resources/read", json!([1]), ErrorCode::INVALID_PARAMS, "expected an object, not a list"),
        ] {
            let error = refused(CustomRequest::new(method, Some(params)));
            assert_eq!(error.code, code, "{error:?}");
            assert!(error.message.contains(said) && error.message.len() < 1_000, "{error:?}");
        }
    }
}
