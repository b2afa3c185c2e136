//! Tools that ask a client of the newer era. The answer contains the questions, and the client repeats the call with
//! its answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputRequiredResult, InputResponses,
};
use serde_json::{Value, json};

use super::fixture::{Context, complete, text_of, typed};

/// The states given to clients, each with its round. Any other state did not come from this server.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    given: Mutex<BTreeMap<String, usize>>,
}

/// Returns the questions of a tool, by round, and whether it gives out a state that must come back.
fn questions(tool: &str) -> Option<(&'static [&'static [&'static str]], bool)> {
    Some(match tool.strip_prefix("test_input_required_result_")? {
        "elicitation" => (&[&["user_name"]], false),
        "sampling" => (&[&["capital_question"]], false),
        "list_roots" => (&[&["client_roots"]], false),
        "request_state" | "tampered_state" => (&[&["confirm"]], true),
        "multiple_inputs" => (&[&["user_name", "greeting", "client_roots"]], true),
        "multi_round" => (&[&["step1"], &["step2"]], true),
        _ => return None,
    })
}

impl Rounds {
    /// Answers a call of one of these tools.
    pub(super) fn answer(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        match &*request.name {
            "test_input_required_result_capabilities" => Some(Ok(of_capabilities(context))),
            "test_streaming_elicitation" => Some(Ok(asks(&["user_name"], None).into())),
            tool => {
                let (rounds, has_state) = questions(tool)?;
                Some(self.next(rounds, has_state, request))
            }
        }
    }

    fn next(
        &self,
        rounds: &[&[&str]],
        has_state: bool,
        request: &CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let round = match &request.request_state {
            Some(state) => self.round_of(state)?,
            None => 0,
        };
        let said = |keys: &&[&str]| keys.iter().all(|key| is_said(request.input_responses.as_ref(), key));
        let is_asked = !has_state || request.request_state.is_some();
        let round = round + usize::from(is_asked && rounds.get(round).is_some_and(said));
        match rounds.get(round) {
            Some(keys) => Ok(asks(keys, has_state.then(|| self.give(round))).into()),
            None => Ok(text_of(format!("state-ok {}", json!(request.input_responses)))),
        }
    }

    fn give(&self, round: usize) -> String {
        let state = uuid::Uuid::new_v4().to_string();
        self.given.lock().unwrap_or_else(PoisonError::into_inner).insert(state.clone(), round);
        state
    }

    fn round_of(&self, state: &str) -> Result<usize, ErrorData> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given
            .get(state)
            .copied()
            .ok_or_else(|| ErrorData::invalid_params("the state was not given here", None))
    }
}

/// Returns whether a question has an answer in the form of an object.
pub(super) fn is_said(responses: Option<&InputResponses>, key: &str) -> bool {
    responses.and_then(|all| all.get(key)).is_some_and(Value::is_object)
}

/// Returns a result that asks the questions with these keys.
pub(super) fn asks(keys: &[&str], state: Option<String>) -> InputRequiredResult {
    let requests = keys.iter().map(|key| ((*key).to_owned(), typed(question(key)))).collect();
    InputRequiredResult::new(Some(requests), state)
}

fn question(key: &str) -> Value {
    let form = |field: &str, kind: &str| {
        let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
        json!({"method": "elicitation/create", "params": {"mode": "form", "message": format!("{field}?"), "requestedSchema": schema}})
    };
    let sampling = |text: &str| {
        let message = json!({"role": "user", "content": {"type": "text", "text": text}});
        json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
    };
    match key {
        "capital_question" => sampling("What is the capital of France?"),
        "greeting" => sampling("Generate a greeting"),
        "client_roots" => json!({"method": "roots/list"}),
        "confirm" => form("ok", "boolean"),
        "step2" => form("color", "string"),
        "user_context" => form("context", "string"),
        _ => form("name", "string"),
    }
}

/// Asks only questions that the client's capabilities allow.
fn of_capabilities(context: &Context) -> CallToolResponse {
    let capabilities = json!(context.client_capabilities().unwrap_or_default());
    let all = [("elicitation", "user_name"), ("sampling", "greeting"), ("roots", "client_roots")];
    let keys: Vec<&str> =
        all.into_iter().filter(|(name, _)| capabilities[name].is_object()).map(|(_, key)| key).collect();
    if keys.is_empty() { text_of("nothing can be asked") } else { asks(&keys, None).into() }
}

/// Answers the prompt with a question.
pub(super) fn prompt(request: &GetPromptRequestParams) -> Option<GetPromptResponse> {
    if request.name != "test_input_required_result_prompt" {
        return None;
    }
    if !is_said(request.input_responses.as_ref(), "user_context") {
        return Some(asks(&["user_context"], None).into());
    }
    let text = format!("with {}", json!(request.input_responses));
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    Some(complete::<GetPromptResult>(json!({"messages": [message]})).into())
}
