//! Strict JSON parsing for every text from outside: refuses duplicate keys, and numbers that cannot be represented
//! exactly.
//!
//! `serde_json` silently rounds integers beyond 64 bits to floating point, and silently uses the last of several equal
//! keys. Its feature `arbitrary_precision` would preserve the numbers, but it represents every number in the workspace
//! as a string.

mod number;
mod path;
mod position;
mod scanner;

pub use number::{exact_number, whole_number};
pub use path::{PathStep, path_text, push_index, push_key, shortened};
pub use position::Position;
pub use scanner::{check, faults};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

/// Reason why a JSON text is refused.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON, or does not match the requested type.
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
    /// The text is valid JSON that cannot be represented without loss.
    #[error(transparent)]
    Fault(#[from] JsonFault),
}

/// A duplicate key, or a number that cannot be represented exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonFault {
    /// Position in the text.
    pub at: Position,
    /// Path of the value; empty for the whole text.
    pub path: Vec<PathStep>,
    /// Kind of the fault.
    pub problem: JsonProblem,
}

/// Kind of a fault, without its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    /// An object contains a key twice.
    #[error("key `{key}` is already given at {first}")]
    DuplicateKey {
        /// The decoded key, shortened.
        key: String,
        /// Position of its first occurrence.
        first: Position,
    },
    /// An integer beyond 64 bits, or a number beyond the range of floating point.
    #[error("number `{text}` cannot be kept exactly")]
    Number {
        /// The number as written, shortened.
        text: String,
    },
}

impl std::fmt::Display for JsonFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.at)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", path_text(&self.path))?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for JsonFault {}

/// Parses a JSON text.
///
/// # Errors
/// The text is not JSON or not a `T`, an object contains a key twice, or a number cannot be represented exactly.
pub fn read<T: DeserializeOwned>(text: impl AsRef<[u8]>) -> Result<T, JsonError> {
    let text = text.as_ref();
    let value = serde_json::from_slice(text);
    // Numbers out of range are also refused by the parser, but its message does not contain the number. Our own check
    // is preferred if the text is otherwise valid JSON.
    if value.is_ok() || serde_json::from_slice::<IgnoredAny>(text).is_ok() {
        check(text)?;
    }
    Ok(value?)
}

/// Parses a JSON text of many records, some of which may be faulty: of equal keys the last one counts, and numbers are rounded. Also
/// returns the first of these faults, at most `most`.
///
/// # Errors
/// The text is not JSON, or a number is beyond the range of floating point.
pub fn read_with_faults(text: &str, most: usize) -> Result<(Value, Vec<JsonFault>), JsonError> {
    match serde_json::from_str(text) {
        Ok(value) => Ok((value, faults(text.as_bytes(), most))),
        Err(_) => read(text).map(|value| (value, Vec::new())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn refused(text: &str) -> String {
        read::<Value>(text).unwrap_err().to_string()
    }

    #[test]
    fn numbers_within_range_are_preserved() {
        let text =
            "[18446744073709551615, -9223372036854775808, 1e2, 0.1, -0, 1e-400, 18446744073709551616.0]";
        let value: Value = read(text).unwrap();
        assert_eq!(value[0], json!(u64::MAX));
        assert_eq!(value[1], json!(i64::MIN));
        assert_eq!(value[2], json!(100.0));
    }

    #[test]
    fn numbers_out_of_range_are_refused_with_their_position() {
        let table = [
            (
                "18446744073709551616",
                "line 1, column 1: number `18446744073709551616` cannot be kept exactly",
            ),
            (
                "-9223372036854775809",
                "line 1, column 1: number `-9223372036854775809` cannot be kept exactly",
            ),
            ("[1, 1e400]", "line 1, column 5: [1]: number `1e400` cannot be kept exactly"),
            (
                "{\"é\": 1,\n \"b\": [0, {\"c d\": 18446744073709551616}]}",
                "line 2, column 19: b[1][\"c d\"]: number `18446744073709551616` cannot be kept exactly",
            ),
        ];
        for (text, message) in table {
            assert_eq!(refused(text), message);
        }
        let huge = format!("1{}", "0".repeat(400));
        assert!(refused(&huge).ends_with("…` cannot be kept exactly"));
    }

    #[test]
    fn duplicate_keys_are_refused_in_every_spelling() {
        let table = [
            (r#"{"a":1,"a":2}"#, "line 1, column 8: key `a` is already given at line 1, column 2"),
            (r#"{"a":1,"\u0061":2}"#, "line 1, column 8: key `a` is already given at line 1, column 2"),
            (
                r#"[{"x":{"a":1,"b":{"a":3},"a":2}}]"#,
                "line 1, column 26: [0].x: key `a` is already given at line 1, column 8",
            ),
        ];
        for (text, message) in table {
            assert_eq!(refused(text), message);
        }
        assert!(read::<Value>(r#"{"a":{"a":1},"b":{"a":"18446744073709551616, \"a\":1"}}"#).is_ok());
    }

    #[test]
    fn all_faults_are_found_in_a_text_of_records() {
        let text = r#"[{"a":1,"a":2},{"b":18446744073709551616,"c":{"d":1,"d":2}},{"e":1}]"#;
        let (value, found) = read_with_faults(text, 10).unwrap();
        assert_eq!((&value[0]["a"], &value[2]["e"]), (&json!(2), &json!(1)));
        let paths: Vec<String> = found.iter().map(|fault| path_text(&fault.path)).collect();
        assert_eq!(paths, ["[0]", "[1].b", "[1].c"]);
        assert_eq!(read_with_faults(text, 2).unwrap().1.len(), 2);
        assert!(read_with_faults("[1e400]", 2).is_err());
        assert!(read_with_faults("[1", 2).is_err());
    }

    #[test]
    fn paths_with_equal_texts_are_told_apart() {
        let long = |end: &str| format!("{}{end}", "k v ".repeat(10));
        let keys = |keys: &[&str]| keys.iter().map(|key| PathStep::Key((*key).into())).collect::<Vec<_>>();
        let cases = [
            (keys(&["a.b"]), "[\"a.b\"]"),
            (keys(&["a", "b"]), "a.b"),
            (keys(&["a[0]"]), "[\"a[0]\"]"),
            (vec![PathStep::Key("a".into()), PathStep::Index(0)], "a[0]"),
            (keys(&["[0]"]), "[\"[0]\"]"),
            (keys(&["say \"a\""]), "[\"say \\\"a\\\"\"]"),
            (keys(&["line\nbreak", ""]), "[\"line\\nbreak\"][\"\"]"),
            (keys(&[&long("one")]), &format!("[\"{}…\"]", long(""))),
            (keys(&[&long("other")]), &format!("[\"{}…\"]", long(""))),
        ];
        for (path, text) in cases {
            assert_eq!(path_text(&path), text);
            let nested = path.iter().rev().fold("1e400".to_owned(), |value, step| match step {
                PathStep::Key(key) => format!("{{{}:{value}}}", json!(key)),
                PathStep::Index(index) => format!("[{}{value}]", "0,".repeat(*index)),
            });
            assert_eq!(check(nested.as_bytes()).unwrap_err().path, path, "{nested}");
        }
    }

    #[test]
    fn invalid_json_is_a_syntax_error() {
        for text in ["", "{", "18446744073709551616-x", "{\"a\":1,\"a\":}", "nul", "01"] {
            assert!(matches!(read::<Value>(text), Err(JsonError::Syntax(_))), "{text}");
        }
        assert!(matches!(read::<u8>("256"), Err(JsonError::Syntax(_))));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = check(&bytes);
            let _ = read::<Value>(&bytes);
        }

        #[test]
        fn integers_are_preserved_or_refused(number in any::<i128>(), shift in 0_u32..128) {
            let number = number >> shift;
            let fits = i64::try_from(number).is_ok() || u64::try_from(number).is_ok();
            let text = number.to_string();
            match read::<Value>(&text) {
                Ok(value) => prop_assert!(fits && value.to_string().as_str() == text.as_str()),
                Err(_) => prop_assert!(!fits),
            }
        }
    }
}
