//! Errors that agents answer with.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use taskpawl_tools::ToolError;

use crate::words::{plain, text};

/// The code of an agent that wants a login.
const AUTH_REQUIRED: i64 = -32000;

/// Longest pause that an agent may ask for.
const MAX_PAUSE: Duration = Duration::from_hours(31 * 24);

/// An error that answers a request to an agent.
#[derive(Debug)]
pub(crate) struct Refused {
    code: i64,
    pub(crate) message: String,
    /// The pause after which its quota is there again.
    pause: Option<Duration>,
}

impl Refused {
    /// Reads a response.
    pub(crate) fn or_result(response: &Value) -> Result<Value, Self> {
        let Some(error) = response.get("error").filter(|error| !error.is_null()) else {
            return Ok(response.get("result").cloned().unwrap_or_default());
        };
        let details = match &error["data"] {
            Value::Null => String::new(),
            Value::String(details) => format!(": {details}"),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                format!(": {}", other.get("details").and_then(Value::as_str).unwrap_or(&other.to_string()))
            }
        };
        let said = format!("{}{details}", text(error, "message"));
        Err(Self {
            code: error["code"].as_i64().unwrap_or_default(),
            message: plain(&said, 500),
            pause: pause(error, &said, SystemTime::UNIX_EPOCH + since_epoch()),
        })
    }

    /// Returns the error of the call.
    pub(crate) fn into_error(self, agent: &str) -> ToolError {
        let Self { code, message, pause } = self;
        if code == AUTH_REQUIRED {
            let message = format!(
                "agent `{agent}` wants a login: {message}; log in with its own program, or give it a key in `[agents.{agent}]` of your configuration"
            );
            return ToolError::failed(message).with_class("agent_login").terminal();
        }
        let error = ToolError::failed(format!("agent `{agent}` failed: {message} (code {code})"));
        match pause {
            Some(pause) => error.with_class("quota").retry_after(pause),
            None => error.with_class("agent_error"),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "agents name the end of a pause as a time of the wall clock")]
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the pause that an error asks for: `retryAfter` in seconds in its data, or the end of a limit in the words of Claude Code,
/// `usage limit reached|SECONDS`.
fn pause(error: &Value, said: &str, now: SystemTime) -> Option<Duration> {
    if let Some(seconds) = error.pointer("/data/retryAfter").and_then(Value::as_f64) {
        return Duration::try_from_secs_f64(seconds).ok().map(|pause| pause.min(MAX_PAUSE));
    }
    let (_, rest) = said.split_once("limit reached|")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let end = UNIX_EPOCH.checked_add(Duration::from_secs(digits.parse().ok()?))?;
    Some(end.duration_since(now).unwrap_or_default().clamp(Duration::from_secs(1), MAX_PAUSE))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_quota_is_a_pause_and_a_login_is_no_retry() {
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        let of = |error: Value| pause(&error, text(&error, "message"), now);
        assert_eq!(of(json!({"message": "slow", "data": {"retryAfter": 90}})), Some(Duration::from_secs(90)));
        let claude = json!({"message": "Claude AI usage limit reached|4600"});
        assert_eq!(of(claude), Some(Duration::from_hours(1)));
        assert_eq!(of(json!({"message": "usage limit reached|10"})), Some(Duration::from_secs(1)));
        for other in [json!({"message": "no"}), json!({"message": "x", "data": {"retryAfter": -1}})] {
            assert_eq!(of(other), None);
        }
        let answered = json!({"error": {"code": -32000, "message": "Authentication required"}});
        let error = Refused::or_result(&answered).unwrap_err().into_error("a");
        assert_eq!((error.class(), error.retry_advice().is_retried), ("agent_login", Some(false)));
        let answered = json!({"error": {"code": -32603, "message": "x", "data": {"retryAfter": 5}}});
        let error = Refused::or_result(&answered).unwrap_err().into_error("a");
        assert_eq!((error.class(), error.retry_advice().after), ("quota", Some(Duration::from_secs(5))));
    }
}
