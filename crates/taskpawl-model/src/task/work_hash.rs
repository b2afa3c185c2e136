//! Hashes of the work that a call does, over a canonical form of JSON.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::task::spec::{CallSpec, SandboxRequest};
use crate::value::Map;

/// Returns the hash of the work of a call, by which later calls that do the same are recognised.
pub(crate) fn work_hash(tool: &str, args: &Map, sandbox: Option<&SandboxRequest>) -> String {
    canonical_hash(&json!({"tool": tool, "args": args, "sandbox": sandbox}))
}

impl CallSpec {
    /// Returns the hash of the call as its author wrote it.
    pub fn definition_hash(&self) -> String {
        canonical_hash(&json!(self))
    }
}

/// Returns the SHA-256 of a value, in hexadecimal. Equal values have equal hashes, whatever the order of their keys.
pub(crate) fn canonical_hash(value: &Value) -> String {
    let mut text = String::new();
    canonical(value, &mut text);
    hex(&Sha256::digest(text))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Writes a value in a canonical form, so that equal values have equal texts: objects are sorted by key.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (key, value) in entries {
                canonical(&Value::from(key.as_str()), text);
                text.push(':');
                canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_do_the_same_have_one_hash() {
        let args = |value: Value| value.as_object().unwrap().clone();
        let (one, other) =
            (args(json!({"argv": ["a"], "cwd": "b"})), args(json!({"cwd": "b", "argv": ["a"]})));
        let sandbox = SandboxRequest { net: true, ..SandboxRequest::default() };
        let hash = work_hash("exec", &one, None);
        assert_eq!(hash, work_hash("exec", &other, None));
        for different in [
            work_hash("shell", &one, None),
            work_hash("exec", &args(json!({"argv": ["a", ""]})), None),
            work_hash("exec", &one, Some(&sandbox)),
        ] {
            assert_ne!(hash, different);
        }
    }
}
