//! A call whose simulated tool is running.

use std::time::Duration;

use serde_json::Value;
use taskpawl_model::command::{CallEnd, Report, StartedCall};
use taskpawl_model::run::run_loop::{EndedCall, Input};
use taskpawl_model::task::{CallError, CallRecord};

use crate::random::Random;

/// A tool that only reads, so that its calls are repeatable.
pub(super) const READ: &str = "read";

/// A call whose tool is running.
#[derive(Debug, Clone)]
pub(super) struct Living {
    pub(super) run: usize,
    pub(super) call: StartedCall,
    /// Start in virtual time.
    pub(super) since: u64,
    /// The scripted outcome: a result, or an error class.
    pub(super) outcome: Result<Value, String>,
    /// True if its end was requested.
    pub(super) is_killed: bool,
}

impl Living {
    /// Returns the input with the end of the tool.
    pub(super) fn end(self, lasted: u64, random: &mut Random) -> Input {
        let StartedCall { key, attempt, call, plan, .. } = self.call;
        let end = match self.outcome {
            // A killed tool may still finish in time.
            _ if self.is_killed && random.chance(75) => CallEnd::interrupted(is_repeatable(&call)),
            Ok(result) => CallEnd::Succeeded(result),
            Err(class) => CallEnd::Failed { error: CallError::new(class, "as told"), result: None },
        };
        let report = Report::new(key, attempt, call.id, end);
        Input::Ended(Box::new(EndedCall { report, plan, duration: Duration::from_millis(lasted) }))
    }
}

/// Returns whether a call may be started again although its outcome is unknown.
pub(super) fn is_repeatable(call: &CallRecord) -> bool {
    call.spec.idempotent.unwrap_or(call.spec.tool_name == READ)
}
