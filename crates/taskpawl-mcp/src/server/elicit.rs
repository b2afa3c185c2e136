//! Approvals by elicitation: questions of a run are passed on to the person at the client, who decides.

use std::sync::Arc;

use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest,
    InputRequiredResult, InputResponses, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, RequestHandle, RoleServer};
use serde_json::{Value, json};
use taskpawl::ApprovalVerdict;
use taskpawl::model::task::ApprovalRequest;
use taskpawl::model::value::RunId;
use taskpawl_text::revealed_line;

use super::mcp_server::McpServer;
use super::runs::{Runs, key_of};

/// Maximum length of a question, in characters. A longer one is left to the command line: a person must see
/// everything that is approved.
const MAX_CHARS: usize = 6_000;

/// Returns whether the client can pass on questions, and the server is allowed to ask.
pub(super) fn is_possible(server: &McpServer, context: &RequestContext<RoleServer>) -> bool {
    let can = || context.client_capabilities().is_some_and(|capabilities| capabilities.elicitation.is_some());
    server.options().approve_elicited && can()
}

/// Returns the open questions of a run that fit into a form, with their forms.
fn questions(server: &McpServer, run: &RunId) -> Vec<(ApprovalRequest, ElicitRequestParams)> {
    let open = server.runs().questions(run).into_iter();
    open.filter_map(|request| Some((form(&request)?, request)))
        .map(|(form, request)| (request, form))
        .collect()
}

/// Returns the questions of a run for a client of the newer era, which repeats the call with the answers. `None` if
/// there are none.
pub(super) fn input_required(server: &McpServer, run: &RunId) -> Option<InputRequiredResult> {
    let requests = requests(server, run);
    (!requests.is_empty()).then(|| InputRequiredResult::new(Some(requests), Some(run.to_string())))
}

/// Returns the questions of a run as requests to the client, by their keys.
pub(super) fn requests(server: &McpServer, run: &RunId) -> rmcp::model::InputRequests {
    let request = |form| InputRequest::Elicitation(ElicitRequest::new(form));
    questions(server, run).into_iter().map(|(asked, form)| (key_of(&asked), request(form))).collect()
}

/// Accepts answers to questions of a run. Answers to closed questions and invalid answers are ignored.
pub(super) fn take(server: &McpServer, run: &RunId, responses: InputResponses) {
    let open = server.runs().questions(run);
    for (key, response) in responses {
        let Some(request) = open.iter().find(|request| key_of(request) == key) else { continue };
        let Ok(result) = serde_json::from_value::<ElicitResult>(response) else { continue };
        server.runs().answer(run, &key, verdict(&result, request));
    }
}

/// Returns the next question for a client of the older era. A run asks one at a time, and none while it is stopping.
fn next(server: &McpServer, run: &RunId) -> Option<(ApprovalRequest, ElicitRequestParams)> {
    if server.runs().has_form(run) || server.runs().stops(run) > 0 {
        return None;
    }
    questions(server, run).into_iter().next()
}

/// Returns whether there is a question for a client of the older era.
pub(super) fn has_next(server: &McpServer, run: &RunId) -> bool {
    next(server, run).is_some()
}

/// Asks a client of the older era the next question. The answer is handled in the background, whenever it arrives.
pub(super) async fn ask(server: &McpServer, run: &RunId, context: &RequestContext<RoleServer>) {
    let Some((request, form)) = next(server, run) else { return };
    if !server.runs().begin_form(run, &key_of(&request)) {
        return;
    }
    let asked = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    // Sent within the call, so that it uses the connection on which the answer will arrive.
    let asked = context.peer.send_cancellable_request(asked, PeerRequestOptions::no_options()).await;
    server.runs().beside(hear(Arc::clone(server.runs()), run.clone(), request, asked.ok()));
}

/// Waits for the answer to a question, or until the question is closed elsewhere.
async fn hear(
    runs: Arc<Runs>,
    run: RunId,
    request: ApprovalRequest,
    asked: Option<RequestHandle<RoleServer>>,
) {
    let key = key_of(&request);
    let mut news = runs.news();
    // If the client cannot ask, the question stays open for other ways of approval.
    let mut said = ApprovalVerdict::Skip;
    if let Some(mut asked) = asked {
        loop {
            if !runs.questions(&run).iter().any(|open| key_of(open) == key) {
                // The client closes the form. An error means that the client is gone.
                let _ = asked.cancel(Some("the question is over".to_owned())).await;
                break;
            }
            tokio::select! {
                answer = &mut asked.rx => {
                    if let Ok(Ok(ClientResult::ElicitResult(result))) = answer {
                        said = verdict(&result, &request);
                    }
                    break;
                }
                _ = news.changed() => {}
            }
        }
    }
    runs.answer(&run, &key, said);
    runs.end_form(&run);
}

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever else is said is no decision")]
fn verdict(result: &ElicitResult, request: &ApprovalRequest) -> ApprovalVerdict {
    let said = |name: &str| result.content.as_ref().and_then(|content| content.get(name));
    let rejected =
        || ApprovalVerdict::Reject { reason: Some("rejected by the person at the client".to_owned()) };
    match result.action {
        ElicitationAction::Decline => rejected(),
        ElicitationAction::Accept if request.is_plain() => match said("approve") {
            Some(Value::Bool(true)) => ApprovalVerdict::Approve { answer: None, args: None },
            Some(Value::Bool(false)) => rejected(),
            _ => ApprovalVerdict::Skip,
        },
        ElicitationAction::Accept => match said("answer") {
            Some(answer @ Value::String(_)) => {
                ApprovalVerdict::Approve { answer: Some(answer.clone()), args: None }
            }
            _ => ApprovalVerdict::Skip,
        },
        // Closing the form, or an unknown answer, leaves the question open for other ways of approval.
        _ => ApprovalVerdict::Skip,
    }
}

/// Returns the form of a question; `None` if it is too long for one.
fn form(request: &ApprovalRequest) -> Option<ElicitRequestParams> {
    let message = message(request);
    if message.chars().count() > MAX_CHARS {
        return None;
    }
    let field = if request.takes_text {
        json!({"answer": {"type": "string", "title": "Answer"}})
    } else if request.options.is_empty() {
        let title = if request.after { "Accept the result" } else { "Let it run" };
        json!({"approve": {"type": "boolean", "title": title}})
    } else {
        json!({"answer": {"type": "string", "enum": request.options, "title": "Answer"}})
    };
    let required: Vec<&String> = field.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    let schema = json!({"type": "object", "properties": field, "required": required});
    serde_json::from_value(json!({"mode": "form", "message": message, "requestedSchema": schema})).ok()
}

/// Returns the text of a question, with everything that would run.
fn message(request: &ApprovalRequest) -> String {
    let mut lines = vec![format!("Task `{}` waits for you: {}", request.task, request.name)];
    lines.extend(request.ask.clone());
    lines.extend(request.why.as_ref().map(|why| format!("because {why}")));
    for call in &request.calls {
        lines.push(format!("{} {}", call.tool, Value::Object(call.args.clone())));
        if !call.unknown.is_empty() {
            lines.push(format!("  not known yet: {}", call.unknown.join(", ")));
        }
        if let Some(sandbox) = &call.sandbox {
            lines.push(format!("  asks of the sandbox: {}", json!(sandbox)));
        }
    }
    for result in &request.results {
        lines.push(format!("result of {} {}", result.tool, json!(result)));
    }
    if let Some(items) = &request.items {
        lines.push(format!("for each of {}", Value::Array(items.clone())));
    }
    // Deceptive characters are made visible: nothing may look different from what would run.
    lines.iter().map(|line| revealed_line(line)).collect::<Vec<_>>().join("\n")
}
