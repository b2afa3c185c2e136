//! What is taken out of what people and agents report before it is kept.

use std::fmt::Debug;

use serde_json::{Value, json};
use taskpawl_model::{Command, Once};

/// Takes secrets out of what people and agents say of tasks: results, remarks, reasons and answers. An engine sets itself; without one
/// they are kept as they are.
pub trait Redact: Debug + Send + Sync {
    /// Takes secrets out of every text of a value. It may read files; it asks nobody.
    fn redact(&self, value: &mut Value);
}

/// Returns a command without secrets in what it reports. What it plans, and what runs say, is as it was: a plan only names secrets, and
/// runs have taken them out.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "most commands report nothing, and those of later versions come through here, too"
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
        Command::Reject { ids, reason } => Command::Reject { ids, reason: report(redact, None, reason).1 },
        Command::Block { ids, reason } => Command::Block { ids, reason: text(redact, reason) },
        Command::Note { id, text: said } => Command::Note { id, text: text(redact, said) },
        Command::Once(once) => {
            let Once { request, digest, command } = *once;
            Command::Once(Box::new(Once { request, digest, command: without_secrets(redact, command) }))
        }
        other => other,
    }
}

/// Reads both at once: the secrets have to be found out only once for a command.
fn report(
    redact: &dyn Redact,
    result: Option<Value>,
    note: Option<String>,
) -> (Option<Value>, Option<String>) {
    if result.is_none() && note.is_none() {
        return (None, None);
    }
    let mut said = json!([&result, &note]);
    redact.redact(&mut said);
    let note = note.map(|before| said[1].as_str().map_or(before, str::to_owned));
    (result.map(|_| said[0].take()), note)
}

fn text(redact: &dyn Redact, said: String) -> String {
    let mut value = Value::String(said);
    redact.redact(&mut value);
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
