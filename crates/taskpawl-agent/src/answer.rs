//! Answers of agents that have to fit a schema.

use serde_json::Value;
use taskpawl_tools::{ToolError, check_foreign};

/// Finds the JSON value in an answer: the whole text, or the last fenced block that is JSON.
///
/// # Errors
/// There is none; the text says why, for the agent.
pub(crate) fn value_in(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let whole = match taskpawl_json::read::<Value>(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let found = fenced(text).into_iter().rev().find_map(|block| taskpawl_json::read::<Value>(block).ok());
    found.ok_or_else(|| format!("the answer is not one JSON value: {whole}"))
}

/// Checks a value against the schema of the call.
///
/// # Errors
/// It does not fit; the text names the place, for the agent.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    match check_foreign("agent", schema, value) {
        Ok(()) => Ok(()),
        Err(ToolError::InvalidArgs { field, problem, .. }) => {
            let at = field.strip_prefix("args").unwrap_or(&field);
            let at = if at.is_empty() { "the whole" } else { at.trim_start_matches('.') };
            Err(format!("`{at}` {problem}"))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn fenced(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let (mut begin, mut at) = (None, 0);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            match begin.take() {
                Some(start) => blocks.push(&text[start..at]),
                None => begin = Some(at + line.len()),
            }
        }
        at += line.len();
    }
    blocks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_value_is_the_whole_answer_or_its_last_block() {
        let value = json!({"a": 1});
        for text in [
            "{\"a\": 1}",
            " \n{\"a\":1}\n",
            "Here it is:\n```json\n{\"a\": 1}\n```\nDone.",
            "First:\n```sh\nls\n```\nthen\n```\n{\"a\": 1}\n```",
        ] {
            assert_eq!(value_in(text), Ok(value.clone()), "{text}");
        }
        for text in ["", "no", "{\"a\": 1", "```json\n{\"a\": 1}"] {
            assert!(value_in(text).unwrap_err().starts_with("the answer is not one JSON value"), "{text}");
        }
    }

    #[test]
    fn misfits_name_their_place() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        assert_eq!(check(&schema, &json!({"n": 1})), Ok(()));
        let error = check(&schema, &json!({"n": "x"})).unwrap_err();
        assert!(error.starts_with("`n` "), "{error}");
        assert!(check(&schema, &json!(3)).unwrap_err().starts_with("`the whole` "));
    }
}
