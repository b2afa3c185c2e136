//! The part of a call's output that may be shown.

use serde_json::Value;
use taskpawl_model::task::{CallStatus, ToolCall};
use taskpawl_model::value::{secret_names, used_variables};
use taskpawl_tools::Vault;

/// Returns whether the file of this start still contains secrets. They are removed when the call ends.
pub fn is_unfinished(call: &ToolCall, start: u32) -> bool {
    call.status == CallStatus::Running && call.attempts == start
}

/// Returns whether this process knows every secret of the call, so that it can remove them itself.
pub fn can_be_shown(call: &ToolCall, vault: &Vault) -> bool {
    // Which variables of a run are secret is known to the run alone.
    vault.knows(&secret_names(&call.args)) && used_variables(&call.args).is_empty()
}

/// Returns a stream (`stdout` or `stderr`) as stored in the result of the last start; `None` if there is none.
pub fn kept_text(call: &ToolCall, stream: &str) -> Option<String> {
    if !matches!(call.status, CallStatus::Succeeded | CallStatus::Failed) {
        return None;
    }
    let text = call.result.as_ref()?.get(stream).and_then(Value::as_str)?;
    Some(text.to_owned()).filter(|text| !text.is_empty())
}
