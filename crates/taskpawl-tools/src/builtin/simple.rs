//! The tools `sleep`, `log`, `fail` and `return`.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::common::{invalid, parse};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::foresee::Foreseen;
use crate::tool::{Hints, Tool, ToolSpec};

const HARMLESS: Hints = Hints { read_only: true, idempotent: true, destructive: false, open_world: false };

#[derive(Debug)]
pub(super) struct Sleep(ToolSpec);

impl Sleep {
    pub(super) fn new() -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "duration": {
                    "type": "string",
                    "pattern": r"^[0-9]+(\.[0-9]+)?(ms|s|m|h)$",
                    "description": "A number with a unit.",
                    "examples": ["10ms", "0.5s", "5m", "2h"],
                },
            },
            "required": ["duration"],
            "additionalProperties": false,
        });
        let spec = ToolSpec::new("sleep", "Waits for a given time.", schema);
        Self(spec.with_result(json!({"type": "null"})).with_hints(HARMLESS))
    }
}

#[derive(Deserialize)]
struct SleepArgs {
    duration: String,
}

#[async_trait]
impl Tool for Sleep {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    fn foresee(&self, args: &Value) -> Vec<Foreseen> {
        // Another form is refused by the schema already.
        let is_number = |text: &&str| text.trim_end_matches(['m', 's', 'h']).parse::<f64>().is_ok();
        let text = args["duration"].as_str().filter(is_number);
        let is_too_long = text.is_some_and(|text| duration(text).is_none());
        let foreseen = || Foreseen {
            code: "invalid_args",
            field: "duration".to_owned(),
            message: "`duration` is too long".to_owned(),
            is_certain: true,
        };
        is_too_long.then(foreseen).into_iter().collect()
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let args: SleepArgs = parse("sleep", args)?;
        let problem = "is not a valid duration; write it as `10ms`, `0.5s`, `5m` or `2h`";
        let duration = duration(&args.duration).ok_or_else(|| invalid("sleep", "duration", problem))?;
        cx.until_interrupted(tokio::time::sleep(duration)).await?;
        Ok(Value::Null)
    }
}

/// Parses a duration such as `10ms`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|char: char| char.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

#[derive(Debug)]
pub(super) struct Log(ToolSpec);

impl Log {
    pub(super) fn new() -> Self {
        let spec = ToolSpec::new("log", "Prints a message to the observers of the run.", message_schema());
        Self(spec.with_result(json!({"type": "null"})).with_hints(HARMLESS))
    }
}

#[async_trait]
impl Tool for Log {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        cx.report(parse::<Message>("log", args)?.message);
        Ok(Value::Null)
    }
}

#[derive(Debug)]
pub(super) struct Fail(ToolSpec);

impl Fail {
    pub(super) fn new() -> Self {
        Self(ToolSpec::new("fail", "Fails with a message.", message_schema()).with_hints(HARMLESS))
    }
}

#[async_trait]
impl Tool for Fail {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    async fn call(&self, _cx: CallContext, args: Value) -> Result<Value, ToolError> {
        Err(ToolError::failed(parse::<Message>("fail", args)?.message))
    }
}

/// The tool of the result of a task that includes a plan.
#[derive(Debug)]
pub(super) struct Return(ToolSpec);

impl Return {
    pub(super) fn new() -> Self {
        let schema = json!({
            "type": "object",
            "properties": {"value": {"description": "The result of the call."}},
            "required": ["value"],
            "additionalProperties": false,
        });
        Self(ToolSpec::new("return", "Returns the value that it is given.", schema).with_hints(HARMLESS))
    }
}

#[async_trait]
impl Tool for Return {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    async fn call(&self, _cx: CallContext, args: Value) -> Result<Value, ToolError> {
        match args {
            Value::Object(mut args) => Ok(args.remove("value").unwrap_or_default()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Ok(Value::Null)
            }
        }
    }
}

#[derive(Deserialize)]
struct Message {
    message: String,
}

fn message_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"message": {"type": "string"}},
        "required": ["message"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_beyond_all_time_is_foreseen() {
        let foresee = |text: &str| super::Sleep::new().foresee(&serde_json::json!({"duration": text})).len();
        assert_eq!((foresee("99999999999999999999h"), foresee("2h"), foresee("soon")), (1, 0, 0));
        assert_eq!(foresee("${{ params.pause }}"), 0);
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("10ms"), Some(Duration::from_millis(10)));
        assert_eq!(duration("0.5s"), Some(Duration::from_millis(500)));
        assert_eq!(duration("5m"), Some(Duration::from_secs(5 * 60)));
        assert_eq!(duration("2h"), Some(Duration::from_secs(2 * 3600)));
        assert_eq!(duration("2"), None);
        assert_eq!(duration("2d"), None);
        assert_eq!(duration(&format!("{}h", "9".repeat(40))), None);
    }
}
