//! Hashes of the work that a call does, and of its result, over a canonical form of JSON.

use std::fmt;
use std::num::NonZeroU64;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
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

/// The first 64 bits of the SHA-256 of a JSON value, to compare the calls of two runs. Text: 16 hexadecimal digits.
///
/// It is no protection against chosen values, and nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShortHash(NonZeroU64);

impl ShortHash {
    pub(crate) fn of(value: &Value) -> Self {
        let mut text = String::new();
        canonical(value, &mut text);
        Self::of_text(&text)
    }

    pub(crate) fn of_object(map: &Map) -> Self {
        let mut text = String::new();
        canonical_object(map, &mut text);
        Self::of_text(&text)
    }

    fn of_text(text: &str) -> Self {
        let digest = Sha256::digest(text);
        let bits = digest.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        // Zero stands for an absent hash in memory.
        Self(NonZeroU64::new(bits).unwrap_or(NonZeroU64::MIN))
    }
}

impl fmt::Display for ShortHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for ShortHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ShortHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bits = u64::from_str_radix(&text, 16).ok().and_then(NonZeroU64::new);
        bits.map(Self).ok_or_else(|| D::Error::custom("expected 16 hexadecimal digits"))
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
        Value::Object(map) => canonical_object(map, text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}

fn canonical_object(map: &Map, text: &mut String) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_hashes_are_the_same_in_any_order_of_keys_and_survive_their_text() {
        let one = ShortHash::of(&json!({"a": 1, "b": [true, "x"]}));
        let other: Value = serde_json::from_str(r#"{"b": [true, "x"], "a": 1}"#).unwrap();
        assert_eq!(one, ShortHash::of(&other));
        assert_eq!(one, ShortHash::of_object(other.as_object().unwrap()));
        assert_ne!(one, ShortHash::of(&json!({"a": 1})));
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(text.len(), 18, "{text}");
        assert_eq!(serde_json::from_str::<ShortHash>(&text).unwrap(), one);
        serde_json::from_str::<ShortHash>("\"\"").unwrap_err();
    }

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
