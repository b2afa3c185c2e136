//! The conversations that calls of a plan share.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskpawl_manager::{Error, Manager};
use taskpawl_model::command::StartedCall;
use taskpawl_model::task::{AGENT_TOOL, CallRecord, CallStatus, SESSION_RESOURCE};
use taskpawl_model::value::Timestamp;
use taskpawl_model::view::Query;
use taskpawl_text::error_chain;

/// Returns the session of each agent, by its name, with which a call of the plan goes on; `None` if the call shares none.
///
/// It is that of the call that ended last. The tasks take turns, so no other call works in it.
pub(crate) async fn of_call(
    manager: &Manager,
    started: &StartedCall,
) -> Result<Option<BTreeMap<String, String>>, String> {
    if !is_shared(&started.call) || !started.spec.resources.contains_key(SESSION_RESOURCE) {
        return Ok(None);
    }
    let (manager, plan) = (manager.clone(), started.plan.as_deref().map(str::to_owned));
    let read = tokio::task::spawn_blocking(move || sessions(&manager, plan.as_deref())).await;
    let sessions = read.map_err(|error| error.to_string())?;
    sessions.map(Some).map_err(|error| error_chain(&error))
}

/// Returns the sessions of the shared conversations of a plan.
fn sessions(manager: &Manager, plan: Option<&str>) -> Result<BTreeMap<String, String>, Error> {
    let calls = manager.read(|view| {
        let mut calls = Vec::new();
        for key in view.find(&Query { plan: plan.map(str::to_owned), ..Query::default() })? {
            // Tasks without a plan are found with all others.
            if plan.is_some() || view.task(key)?.is_some_and(|task| task.plan.is_none()) {
                calls.extend(view.calls(key)?.into_iter().filter(is_shared));
            }
        }
        Ok(calls)
    })?;
    let mut sessions: BTreeMap<String, (Option<Timestamp>, String)> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.body.status == CallStatus::Succeeded) {
        let text = |name| call.body.result.as_ref()?.get(name).and_then(Value::as_str).map(str::to_owned);
        let (Some(agent), Some(session)) = (text("agent"), text("session")) else { continue };
        let ended = call.body.finished_at;
        if sessions.get(&agent).is_none_or(|(before, _)| *before <= ended) {
            sessions.insert(agent, (ended, session));
        }
    }
    Ok(sessions.into_iter().map(|(agent, (_, session))| (agent, session)).collect())
}

fn is_shared(call: &CallRecord) -> bool {
    call.spec.tool_name == AGENT_TOOL && call.spec.args.get("session") == Some(&json!("shared"))
}
