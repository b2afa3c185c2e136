//! Approvals by elicitation: what a run asks is passed on to the person at the client, who decides.

use std::sync::Arc;

use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest,
    InputRequiredResult, InputResponses, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, RequestHandle, RoleServer};
use serde_json::{Value, json};
use taskpawl::ApprovalVerdict;
use taskpawl::model::{ApprovalRequest, RunId};
use taskpawl_text::revealed_line;

use super::handler::McpServer;
use super::runs::{Runs, key_of};

/// The longest question. One that needs more is for the command line: nobody approves what is not shown.
const MAX_CHARS: usize = 6_000;

/// Returns whether a client can pass questions on, and the server is to do so.
pub(super) fn is_possible(server: &McpServer, context: &RequestContext<RoleServer>) -> bool {
    let can = || context.client_capabilities().is_some_and(|capabilities| capabilities.elicitation.is_some());
    server.options().approve_elicited && can()
}

/// Returns the questions of a run that can be asked, with how they are called.
fn questions(server: &McpServer, run: &RunId) -> Vec<(ApprovalRequest, ElicitRequestParams)> {
    let open = server.runs().questions(run).into_iter();
    open.filter_map(|request| Some((form(&request)?, request)))
        .map(|(form, request)| (request, form))
        .collect()
}

/// Returns what the newer era takes for questions: the call comes again with the answers.
pub(super) fn input_required(server: &McpServer, run: &RunId) -> Option<InputRequiredResult> {
    let requests = requests(server, run);
    (!requests.is_empty()).then(|| InputRequiredResult::new(Some(requests), Some(run.to_string())))
}

/// Returns the questions of a run as requests to the client.
pub(super) fn requests(server: &McpServer, run: &RunId) -> rmcp::model::InputRequests {
    let request = |form| InputRequest::Elicitation(ElicitRequest::new(form));
    questions(server, run).into_iter().map(|(asked, form)| (key_of(&asked), request(form))).collect()
}

/// Takes answers to questions of a run. What does not stand any more, or is no answer, changes nothing.
pub(super) fn take(server: &McpServer, run: &RunId, responses: InputResponses) {
    let open = server.runs().questions(run);
    for (key, response) in responses {
        let Some(request) = open.iter().find(|request| key_of(request) == key) else { continue };
        let Ok(result) = serde_json::from_value::<ElicitResult>(response) else { continue };
        server.runs().answer(run, &key, verdict(&result, request));
    }
}

/// Returns the question that a client of the older era is asked next: one at a time for each run, and none of a run that stops.
fn next(server: &McpServer, run: &RunId) -> Option<(ApprovalRequest, ElicitRequestParams)> {
    if server.runs().has_form(run) || server.runs().stops(run) > 0 {
        return None;
    }
    questions(server, run).into_iter().next()
}

/// Returns whether there is a question to ask a client of the older era.
pub(super) fn has_next(server: &McpServer, run: &RunId) -> bool {
    next(server, run).is_some()
}

/// Asks the client of the older era the next question. Its answer is taken whenever it comes: nobody waits for it here.
pub(super) async fn ask(server: &McpServer, run: &RunId, context: &RequestContext<RoleServer>) {
    let Some((request, form)) = next(server, run) else { return };
    if !server.runs().begin_form(run, &key_of(&request)) {
        return;
    }
    let asked = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    // It is sent within the call, so that it goes the way that the answer to it goes.
    let asked = context.peer.send_cancellable_request(asked, PeerRequestOptions::no_options()).await;
    server.runs().beside(hear(Arc::clone(server.runs()), run.clone(), request, asked.ok()));
}

/// Waits for what a person says to a question, or until it does not stand any more.
async fn hear(
    runs: Arc<Runs>,
    run: RunId,
    request: ApprovalRequest,
    asked: Option<RequestHandle<RoleServer>>,
) {
    let key = key_of(&request);
    let mut news = runs.news();
    // A client that cannot ask after all leaves the question to others.
    let mut said = ApprovalVerdict::Skip;
    if let Some(mut asked) = asked {
        loop {
            if !runs.questions(&run).iter().any(|open| key_of(open) == key) {
                // The client closes the form; one that is gone need not.
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
        ElicitationAction::Accept if request.options.is_empty() => match said("approve") {
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
        // Who closes the form, or says something that is not known here, leaves the question to others.
        _ => ApprovalVerdict::Skip,
    }
}

/// Returns the form of a question; nothing where it is too long to be looked at there.
fn form(request: &ApprovalRequest) -> Option<ElicitRequestParams> {
    let message = message(request);
    if message.chars().count() > MAX_CHARS {
        return None;
    }
    let field = if request.options.is_empty() {
        json!({"approve": {"type": "boolean", "title": "Let it run"}})
    } else {
        json!({"answer": {"type": "string", "enum": request.options, "title": "Answer"}})
    };
    let required: Vec<&String> = field.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    let schema = json!({"type": "object", "properties": field, "required": required});
    serde_json::from_value(json!({"mode": "form", "message": message, "requestedSchema": schema})).ok()
}

/// Says everything that would run.
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
    if let Some(items) = &request.items {
        lines.push(format!("for each of {}", Value::Array(items.clone())));
    }
    // Nothing in it may look like something else than it is.
    lines.iter().map(|line| revealed_line(line)).collect::<Vec<_>>().join("\n")
}
