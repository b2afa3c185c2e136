//! The level of the sandbox of a run, as its programs report it.

use serde_json::Value;
use taskpawl_model::command::CallEnd;
use taskpawl_tools::Isolation;

/// The tools whose results have the sandbox of their program.
const TOOLS: [&str; 2] = ["exec", "shell"];

/// The lowest level among the programs of a run.
#[derive(Debug, Default)]
pub(crate) struct LowestIsolation(Option<Isolation>);

impl LowestIsolation {
    /// Takes the end of a call. Returns a message about the first program with less than the whole sandbox: one for each run.
    pub(crate) fn take(&mut self, tool: &str, end: &CallEnd) -> Option<String> {
        let result = match end {
            CallEnd::Succeeded(result) | CallEnd::Failed { result: Some(result), .. } => result,
            CallEnd::Failed { .. } | CallEnd::Interrupted { .. } | CallEnd::Asks(_) => return None,
        };
        let sandbox = result.get("sandbox").filter(|_| TOOLS.contains(&tool))?;
        let level = serde_json::from_value(sandbox.get("isolation")?.clone()).ok()?;
        let is_first = self.0.is_none();
        self.0 = self.0.max(Some(level));
        let is_nested = sandbox.get("nested") == Some(&Value::Bool(true));
        is_first.then(|| if is_nested { NESTED.to_owned() } else { below(level) })
    }

    /// Returns the level, unless it is the best one.
    pub(crate) fn level(&self) -> Option<Isolation> {
        self.0
    }
}

const NESTED: &str = "this runs in the sandbox of another taskpawl: programs rely on that sandbox, and get no namespaces of their own";

fn below(level: Isolation) -> String {
    format!(
        "programs run in a sandbox of level {}, not A: `taskpawl doctor` says what is missing here",
        level.as_str()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ended(sandbox: &Value) -> CallEnd {
        CallEnd::Succeeded(json!({"exitCode": 0, "sandbox": sandbox}))
    }

    #[test]
    fn a_run_names_a_lower_level_once_and_keeps_the_lowest() {
        let mut seen = LowestIsolation::default();
        assert_eq!(seen.take("exec", &ended(&json!({"level": "standard"}))), None);
        assert_eq!((seen.take("other", &ended(&json!({"isolation": "D"}))), seen.level()), (None, None));
        let said = seen.take("exec", &ended(&json!({"isolation": "C"}))).unwrap();
        assert!(said.contains("a sandbox of level C"), "{said}");
        assert_eq!(seen.take("shell", &ended(&json!({"isolation": "B"}))), None);
        assert_eq!(seen.level(), Some(Isolation::C));
        assert_eq!(seen.take("exec", &ended(&json!({"isolation": "Z"}))), None);
    }

    #[test]
    fn a_nested_run_names_the_sandbox_around_it() {
        let mut seen = LowestIsolation::default();
        let said = seen.take("exec", &ended(&json!({"isolation": "C", "nested": true}))).unwrap();
        assert!(said.contains("in the sandbox of another taskpawl"), "{said}");
    }
}
