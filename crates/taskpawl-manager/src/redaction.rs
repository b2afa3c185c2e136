//! Removal of secrets from the reports of people and agents before they are stored.

use serde_json::{Value, json};
use taskpawl_model::command::{Command, IdempotentRequest, Redact};

/// Removes secrets from the reports in a command. Plans and reports of runs stay unchanged: plans only name
/// secrets, and runs have removed them already.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "most commands report nothing, and future commands must pass unchanged"
)]
pub(crate) fn without_secrets(redact: &dyn Redact, command: Command) -> Command {
    match command {
        Command::Done { ids, result, note, attempt } => {
            let (result, note) = report(redact, result, note);
            Command::Done { ids, result, note, attempt }
        }
        Command::Fail { ids, result, note, attempt } => {
            let (result, note) = report(redact, result, note);
            Command::Fail { ids, result, note, attempt }
        }
        Command::Approve { ids, answer, args, hash } => {
            Command::Approve { ids, answer: report(redact, answer, None).0, args, hash }
        }
        Command::Skip { ids, reason } => Command::Skip { ids, reason: report(redact, None, reason).1 },
        Command::Cancel { ids, reason } => Command::Cancel { ids, reason: report(redact, None, reason).1 },
        Command::Reject { ids, reason, rework } => Command::Reject {
            ids,
            reason: report(redact, None, reason).1,
            rework: rework.map(|rework| text(redact, rework)),
        },
        Command::Block { ids, reason } => Command::Block { ids, reason: text(redact, reason) },
        Command::Note { id, text: reported } => Command::Note { id, text: text(redact, reported) },
        Command::Idempotent(once) => {
            let IdempotentRequest { request, digest, command } = *once;
            Command::Idempotent(Box::new(IdempotentRequest {
                request,
                digest,
                command: without_secrets(redact, command),
            }))
        }
        other => other,
    }
}

/// Redacts both values in one call, because looking up the secrets is the expensive part.
fn report(
    redact: &dyn Redact,
    result: Option<Value>,
    note: Option<String>,
) -> (Option<Value>, Option<String>) {
    if result.is_none() && note.is_none() {
        return (None, None);
    }
    let mut reported = json!([&result, &note]);
    redact.redact(&mut reported);
    let note = note.map(|before| reported[1].as_str().map_or(before, str::to_owned));
    (result.map(|_| reported[0].take()), note)
}

fn text(redact: &dyn Redact, reported: String) -> String {
    let mut value = Value::String(reported);
    redact.redact(&mut value);
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
