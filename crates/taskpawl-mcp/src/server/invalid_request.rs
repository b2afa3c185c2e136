//! Errors for requests that rmcp cannot parse: unknown methods and invalid parameters.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CancelTaskParams, ClientRequest, CompleteRequestParams, CustomRequest, ErrorCode,
    ErrorData, GetPromptRequestParams, GetTaskParams, JsonRpcMessage, PaginatedRequestParams,
    ReadResourceRequestParams, RequestId, RequestOptionalParam, SubscribeRequestParams,
    SubscriptionsListenRequestParams, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::arguments;
use super::error_text::{named, short};

/// Returns the fault of parameters.
type Check = fn(&Value) -> Option<String>;

/// The eras in which a method exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Both,
    Older,
    Newer,
}

/// The methods, with the check of their parameters.
const METHODS: [(&str, Era, Check); 14] = [
    ("tools/list", Era::Both, problem::<PaginatedRequestParams>),
    ("tools/call", Era::Both, problem::<CallToolRequestParams>),
    ("prompts/list", Era::Both, problem::<PaginatedRequestParams>),
    ("prompts/get", Era::Both, problem::<GetPromptRequestParams>),
    ("resources/list", Era::Both, problem::<PaginatedRequestParams>),
    ("resources/templates/list", Era::Both, problem::<PaginatedRequestParams>),
    ("resources/read", Era::Both, problem::<ReadResourceRequestParams>),
    ("resources/subscribe", Era::Older, problem::<SubscribeRequestParams>),
    ("resources/unsubscribe", Era::Older, problem::<UnsubscribeRequestParams>),
    ("subscriptions/listen", Era::Newer, problem::<SubscriptionsListenRequestParams>),
    ("completion/complete", Era::Both, problem::<CompleteRequestParams>),
    ("tasks/get", Era::Both, problem::<GetTaskParams>),
    ("tasks/update", Era::Both, problem::<UpdateTaskParams>),
    ("tasks/cancel", Era::Both, problem::<CancelTaskParams>),
];

/// Returns the error for a request that was not recognized in its era.
pub(super) fn refused(request: CustomRequest, is_newer: bool) -> ErrorData {
    let CustomRequest { method, params, .. } = request;
    let era = if is_newer { Era::Newer } else { Era::Older };
    let is_meant = |(name, of, _): &&(&str, Era, Check)| *name == method && [Era::Both, era].contains(of);
    let Some((_, _, check)) = METHODS.iter().find(is_meant) else {
        return no_method(&method);
    };
    let problem = check(&params.unwrap_or_else(|| json!({})));
    wrong(&method, &problem.unwrap_or_else(|| "they are not what the protocol says".to_owned()))
}

fn no_method(method: &str) -> ErrorData {
    let message = format!("there is no method `{}` in this version of the protocol", named(method));
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Formats an error as a sentence. rmcp's error for a known method without a handler is the method's name alone.
pub(super) fn in_words(error: ErrorData) -> ErrorData {
    let is_name = error.code == ErrorCode::METHOD_NOT_FOUND && !error.message.contains(' ');
    if is_name { no_method(&error.message) } else { error }
}

fn wrong(method: &str, problem: &str) -> ErrorData {
    let message = format!("the parameters of `{}` cannot be read: {problem}", named(method));
    ErrorData::invalid_params(message, None)
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

/// The field that all parameters share.
#[derive(Deserialize)]
struct Common {
    #[serde(rename = "_meta")]
    _meta: Option<Map<String, Value>>,
}

/// The result of parsing a message with rmcp.
#[derive(Debug)]
enum Reading {
    Whole,
    /// Parsed as a request for a list without parameters: rmcp silently drops invalid ones.
    WithoutParams,
    /// Parsed as a request with objects among its parameters, for which serde also accepts lists.
    WithObjects,
    No(serde_json::Error),
}

fn reading(message: &[u8]) -> Reading {
    match serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(message) {
        Err(problem) => Reading::No(problem),
        Ok(JsonRpcMessage::Request(request)) if has_no_params(&request.request) => Reading::WithoutParams,
        Ok(JsonRpcMessage::Request(request)) if has_objects(&request.request) => Reading::WithObjects,
        Ok(_) => Reading::Whole,
    }
}

fn has_no_params(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::ListToolsRequest(RequestOptionalParam { params: None, .. })
            | ClientRequest::ListPromptsRequest(RequestOptionalParam { params: None, .. })
            | ClientRequest::ListResourcesRequest(RequestOptionalParam { params: None, .. })
            | ClientRequest::ListResourceTemplatesRequest(RequestOptionalParam { params: None, .. })
    )
}

fn has_objects(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::InitializeRequest(_)
            | ClientRequest::CompleteRequest(_)
            | ClientRequest::SubscriptionsListenRequest(_)
    )
}

/// Parameters of those requests that must be objects.
const OBJECTS: [&str; 6] = ["argument", "capabilities", "clientInfo", "context", "notifications", "ref"];

/// Names a parameter that is a list instead of an object.
fn list_for_object(params: &Value) -> Option<String> {
    let list = OBJECTS.into_iter().find(|name| params[name].is_array())?;
    Some(arguments::no_object(list, &params[list]).to_string())
}

/// Returns whether rmcp parses a message completely.
pub(super) fn is_read(message: &[u8]) -> bool {
    matches!(reading(message), Reading::Whole)
}

/// Returns the error for an unknown cursor. Lists with a single page never give out a cursor.
pub(super) fn unknown_cursor() -> ErrorData {
    let problem = "argument `cursor`: no list of this server goes on there; begin without one";
    ErrorData::invalid_params(problem, None)
}

/// Refuses a cursor for a list with a single page.
pub(super) fn from_beginning(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(_) => Err(unknown_cursor()),
        None => Ok(()),
    }
}

/// Returns the id and the error for a request with a duplicate key or a number that cannot be stored exactly.
pub(super) fn inexact(message: &[u8]) -> Option<(RequestId, ErrorData)> {
    #[derive(Deserialize)]
    struct Head {
        id: RequestId,
        method: String,
    }
    let fault = taskpawl_json::check(message).err()?;
    let Head { id, method } = serde_json::from_slice(message).ok()?;
    Some((id, wrong(&method, &fault.to_string())))
}

/// Returns the id and the error for a request that violates the protocol. Returns `None` for a valid message, and if
/// there is no id to answer. rmcp would answer all of these with the same error and without an id.
pub(super) fn without_form(message: &[u8]) -> Option<(RequestId, ErrorData)> {
    let unread = match reading(message) {
        Reading::Whole => return None,
        Reading::WithoutParams => Err(problem::<PaginatedRequestParams> as Check),
        Reading::WithObjects => Err(list_for_object as Check),
        Reading::No(problem) => Ok(problem),
    };
    let Value::Object(fields) = serde_json::from_slice(message).ok()? else { return None };
    let id = RequestId::deserialize(fields.get("id")?).ok()?;
    let Some(method) = fields.get("method") else {
        let is_answer = fields.contains_key("result") || fields.contains_key("error");
        return (!is_answer).then(|| (id, ErrorData::invalid_request("`method`: it is missing", None)));
    };
    let Some(method) = method.as_str() else {
        let message = format!("`method`: expected text, not {}", arguments::found(method));
        return Some((id, ErrorData::invalid_request(message, None)));
    };
    let params = fields.get("params").filter(|params| !params.is_null());
    let unread = match unread {
        Ok(unread) => unread,
        Err(check) => return Some((id, wrong(method, &params.and_then(check)?))),
    };
    let error = match params.and_then(problem::<Common>) {
        Some(problem) => wrong(method, &problem),
        None if fields.get("jsonrpc").is_none_or(|version| version != "2.0") => {
            ErrorData::invalid_request("`jsonrpc`: expected \"2.0\"", None)
        }
        None => ErrorData::invalid_request(short(&format!("the message is no request: {unread}")), None),
    };
    Some((id, error))
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
            (
                "resources/read",
                json!({"uri": null}),
                ErrorCode::INVALID_PARAMS,
                "argument `uri`: it is missing",
            ),
            (
                "prompts/get",
                json!({"name": 1}),
                ErrorCode::INVALID_PARAMS,
                "argument `name`: expected text, not `1`",
            ),
            (
                "tasks/get",
                json!({"taskId": 5}),
                ErrorCode::INVALID_PARAMS,
                "argument `taskId`: expected text, not `5`",
            ),
            (
                "tasks/cancel",
                json!({"id": "x"}),
                ErrorCode::INVALID_PARAMS,
                "argument `taskId`: it is missing",
            ),
            (
                "tasks/update",
                json!({"taskId": "x", "inputResponses": []}),
                ErrorCode::INVALID_PARAMS,
                "argument `inputResponses`: expected an object, not a list",
            ),
        ] {
            for is_newer in [false, true] {
                let error = refused(CustomRequest::new(method, Some(params.clone())), is_newer);
                assert_eq!(error.code, code, "{error:?}");
                assert!(error.message.contains(said) && error.message.len() < 1_000, "{error:?}");
            }
        }
    }

    #[test]
    fn a_method_of_the_other_era_is_none() {
        for (method, is_newer, said) in [
            ("resources/subscribe", false, "argument `uri`: it is missing"),
            ("resources/unsubscribe", false, "argument `uri`: it is missing"),
            ("subscriptions/listen", true, "argument `notifications`: it is missing"),
        ] {
            let ask = |is_newer| refused(CustomRequest::new(method, None), is_newer);
            let (here, there) = (ask(is_newer), ask(!is_newer));
            assert_eq!((here.code, there.code), (ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND));
            assert!(here.message.contains(said), "{here:?}");
        }
    }

    #[test]
    fn a_reference_that_is_wrong_is_said_to_be() {
        let name = json!({"name": "id", "value": ""});
        for (params, said) in [
            (json!({"argument": name}), "argument `ref`: it is missing"),
            (json!({"ref": {}, "argument": name}), "argument `ref.type`: it is missing"),
            (json!({"ref": {"type": "ref/prompt"}, "argument": name}), "argument `ref.name`: it is missing"),
            (
                json!({"ref": {"type": "ref/tool", "name": "x"}, "argument": name}),
                "argument `ref.type`: expected `ref/resource` or `ref/prompt`, not `ref/tool`",
            ),
            (
                json!({"ref": {"type": 5, "name": "x"}, "argument": name}),
                "argument `ref.type`: expected text, not `5`",
            ),
            (
                json!({"ref": {"type": {}}, "argument": name}),
                "argument `ref.type`: expected text, not an object",
            ),
            (json!({"ref": "x", "argument": name}), "argument `ref`: expected an object, not \"x\""),
            (
                json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"value": ""}}),
                "argument `argument.name`: it is missing",
            ),
            (
                json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": 1}),
                "argument `argument`: expected an object, not `1`",
            ),
            (json!({"ref": [], "argument": name}), "argument `ref`: expected an object, not a list"),
            (json!({"ref": [5], "argument": name}), "argument `ref`: expected an object, not a list"),
            (
                json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": []}),
                "argument `argument`: expected an object, not a list",
            ),
            (
                json!({"ref": {"type": "ref/prompt", "name": 5}, "argument": name}),
                "argument `ref.name`: expected text, not `5`",
            ),
            (
                json!({"ref": {"type": "ref/resource", "uri": {}}, "argument": name}),
                "argument `ref.uri`: expected text, not an object",
            ),
            (
                json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "id", "value": []}}),
                "argument `argument.value`: expected text, not a list",
            ),
        ] {
            let error = refused(CustomRequest::new("completion/complete", Some(params.clone())), true);
            assert!(error.message.ends_with(said), "{params}: {error:?}");
        }
    }

    #[test]
    fn what_is_wrong_deeper_is_named_by_its_path() {
        for (notifications, said) in [
            (
                json!({"toolsListChanged": true, "resourceSubscriptions": [5]}),
                "argument `notifications.resourceSubscriptions[0]`: expected text, not `5`",
            ),
            (
                json!({"resourceSubscriptions": ["a", {}]}),
                "argument `notifications.resourceSubscriptions[1]`: expected text, not an object",
            ),
            (
                json!({"resourceSubscriptions": "a"}),
                "argument `notifications.resourceSubscriptions`: expected a list, not \"a\"",
            ),
            (
                json!({"toolsListChanged": "yes"}),
                "argument `notifications.toolsListChanged`: expected true or false, not \"yes\"",
            ),
        ] {
            let params = json!({"notifications": notifications});
            let error = refused(CustomRequest::new("subscriptions/listen", Some(params.clone())), true);
            assert!(error.message.ends_with(said), "{params}: {error:?}");
        }
    }

    #[test]
    fn a_request_without_form_is_answered_by_its_id() {
        let of = |message: &str| without_form(message.as_bytes());
        for (message, code, said) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}"#,
                ErrorCode::INVALID_PARAMS,
                "the parameters of `tools/call` cannot be read: expected an object, not a list",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":5}}"#,
                ErrorCode::INVALID_PARAMS,
                "argument `_meta`: expected an object, not `5`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":5}"#,
                ErrorCode::INVALID_REQUEST,
                "`method`: expected text, not `5`",
            ),
            (r#"{"jsonrpc":"2.0","id":7}"#, ErrorCode::INVALID_REQUEST, "`method`: it is missing"),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":[]}}"#,
                ErrorCode::INVALID_PARAMS,
                "argument `notifications`: expected an object, not a list",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"x"},"argument":["id",""]}}"#,
                ErrorCode::INVALID_PARAMS,
                "argument `argument`: expected an object, not a list",
            ),
            (r#"{"id":7,"method":"tools/list"}"#, ErrorCode::INVALID_REQUEST, "`jsonrpc`: expected \"2.0\""),
        ] {
            let (id, error) = of(message).unwrap();
            assert_eq!((id, error.code), (RequestId::Number(7), code), "{message}");
            assert!(error.message.contains(said), "{error:?}");
        }
        for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            for (cursor, found) in [("5", "`5`"), ("[]", "a list"), ("{}", "an object")] {
                let params = format!(r#"{{"cursor":{cursor},"_meta":{{}}}}"#);
                let message =
                    format!(r#"{{"jsonrpc":"2.0","id":"c","method":"{method}","params":{params}}}"#);
                let (id, error) = of(&message).unwrap();
                assert_eq!((id, error.code), (RequestId::String("c".into()), ErrorCode::INVALID_PARAMS));
                let said = format!("argument `cursor`: expected text, not {found}");
                assert!(error.message.ends_with(&said), "{message}: {error:?}");
            }
        }
        // Valid messages, messages without an id, responses, and text that is not JSON.
        for message in [
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":null}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":null,"other":5}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"zzz"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/list","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"tools/list","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":5}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":[]}}}"#,
            "[]",
            "{",
        ] {
            assert_eq!(of(message), None, "{message}");
        }
    }
}
