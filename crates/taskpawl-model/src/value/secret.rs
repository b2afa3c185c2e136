//! Secrets in arguments: `${secret:NAME}` refers to one. The reference stays in place wherever arguments are stored,
//! shown or hashed.
//!
//! Only the author of the arguments can refer to a secret. Text from an expression may come from anywhere, so
//! references in it are escaped, including those that inserted text would complete. `$${secret:` is an escape for the
//! text `${secret:`.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use crate::value::Map;

/// The start of a reference.
const OPEN: &str = "${secret:";

/// The escaped start.
const ESCAPED: &str = "$${secret:";

/// The maximum number of characters in a name.
const MAX_NAME: usize = 64;

/// The start of the names of environment variables. No secret can have such a name, because of the dot.
const VARIABLE: &str = "env.";

/// A part of a text that may refer to secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPiece<'a> {
    /// Plain text.
    Text(&'a str),
    /// The name of a secret, to be replaced by its value.
    Secret(&'a str),
}

/// An invalid reference to a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`${{secret:` is not followed by a name of 1 to 64 letters, digits, `_` and `-` and a `}}`")]
#[non_exhaustive]
pub struct SecretFault {
    /// The byte position of its start.
    pub offset: usize,
}

/// Returns the parts of a text. Escapes are resolved in the parts that are text.
///
/// # Errors
/// A `${secret:` is not followed by a name and a closing brace.
pub fn secret_pieces(text: &str) -> Result<Vec<SecretPiece<'_>>, SecretFault> {
    let mut pieces = Vec::new();
    let (mut begin, mut from) = (0, 0);
    while let Some(at) = text[from..].find(OPEN).map(|offset| from + offset) {
        from = at + OPEN.len();
        if text[begin..at].ends_with('$') {
            push_text(&mut pieces, &text[begin..at - 1]);
            begin = at;
            continue;
        }
        let name = name_at(&text[from..]).ok_or(SecretFault { offset: at })?;
        push_text(&mut pieces, &text[begin..at]);
        pieces.push(SecretPiece::Secret(name));
        begin = from + name.len() + 1;
        from = begin;
    }
    push_text(&mut pieces, &text[begin..]);
    Ok(pieces)
}

fn push_text<'a>(pieces: &mut Vec<SecretPiece<'a>>, text: &'a str) {
    if !text.is_empty() {
        pieces.push(SecretPiece::Text(text));
    }
}

/// Returns the name before a closing brace.
fn name_at(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('}')?;
    (is_secret_name(name) || variable_of_reference(name).is_some()).then_some(name)
}

/// Returns the environment variable of the run to which a reference of this name refers. Authors write `${{ env.NAME }}`,
/// which evaluates to such a reference.
pub fn variable_of_reference(name: &str) -> Option<&str> {
    let is_name = |name: &&str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    name.strip_prefix(VARIABLE).filter(is_name)
}

/// Returns the reference to an environment variable of the run.
pub(crate) fn variable_reference(name: &str) -> String {
    format!("{OPEN}{VARIABLE}{name}}}")
}

/// Returns whether this is a valid name of a secret.
pub fn is_secret_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Returns whether a text contains a reference, valid or not.
pub fn mentions_secret(text: &str) -> bool {
    text.contains(OPEN)
}

/// Returns whether a value contains a reference, valid or not.
pub(crate) fn has_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => mentions_secret(text),
        Value::Array(items) => items.iter().any(has_secret),
        Value::Object(map) => map.values().any(has_secret),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the names of the secrets to which arguments refer. Texts with an invalid reference are ignored.
pub fn secret_names(args: &Map) -> BTreeSet<String> {
    let mut names = referenced_names(args);
    names.retain(|name| variable_of_reference(name).is_none());
    names
}

/// Returns the names of the environment variables to which evaluated arguments refer.
pub fn variable_names(args: &Map) -> BTreeSet<String> {
    let names = referenced_names(args);
    names.iter().filter_map(|name| variable_of_reference(name)).map(str::to_owned).collect()
}

/// Returns the names of the environment variables that arguments use: those to which they refer, and those that
/// expressions of their author name. Such an expression is always exactly `${{ env.NAME }}`.
pub fn used_variables(args: &Map) -> BTreeSet<String> {
    let mut names = variable_names(args);
    args.values().for_each(|value| collect_named(value, &mut names));
    names
}

fn collect_named(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let mut rest = text.as_str();
            while let Some((before, after)) = rest.split_once("${{") {
                let source = after.split_once("}}").map_or(after, |(source, _)| source);
                let name = variable_of_reference(source.trim()).filter(|_| !before.ends_with('$'));
                names.extend(name.map(str::to_owned));
                rest = after;
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_named(item, names)),
        Value::Object(map) => map.values().for_each(|item| collect_named(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn referenced_names(args: &Map) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    args.values().for_each(|value| collect(value, &mut names));
    names
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if mentions_secret(text) => {
            names.extend(secret_pieces(text).into_iter().flatten().filter_map(|piece| match piece {
                SecretPiece::Secret(name) => Some(name.to_owned()),
                SecretPiece::Text(_) => None,
            }));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(map) => map.values().for_each(|item| collect(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Escapes the references in the value of an expression.
pub(crate) fn shield(value: Value) -> Value {
    match value {
        Value::String(text) if mentions_secret(&text) => Value::String(text.replace(OPEN, ESCAPED)),
        Value::Array(items) => Value::Array(items.into_iter().map(shield).collect()),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, shield(value))).collect())
        }
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => value,
    }
}

/// Escapes the references in a text that overlap inserted parts.
pub(crate) fn shield_inserted(text: String, inserted: &[Range<usize>]) -> String {
    if !mentions_secret(&text) {
        return text;
    }
    let mut shielded = String::with_capacity(text.len() + 8);
    let mut done = 0;
    for (at, _) in text.match_indices(OPEN) {
        // Without a valid name it is no reference, so only its opening counts.
        let end = at + OPEN.len() + name_at(&text[at + OPEN.len()..]).map_or(0, |name| name.len() + 1);
        shielded.push_str(&text[done..at]);
        if inserted.iter().any(|range| range.start < end && at < range.end) {
            shielded.push('$');
        }
        done = at;
    }
    shielded.push_str(&text[done..]);
    shielded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shown(text: &str) -> String {
        match secret_pieces(text) {
            Ok(pieces) => format!("{pieces:?}"),
            Err(fault) => format!("fault at {}", fault.offset),
        }
    }

    #[test]
    fn placeholders_are_found_and_text_stays_text() {
        let table: Vec<String> = [
            "plain $ {secret:A}",
            "${secret:A}",
            "Bearer ${secret:API_TOKEN}!",
            "${secret:a-b}${secret:c}",
            "$${secret:A}",
            "$$${secret:A}",
            "${secret:}",
            "ü${secret:A B}",
            "${secret:A",
            "${secret:${secret:A}}",
            "${SECRET:A} ${secret :A}",
        ]
        .iter()
        .map(|text| format!("{text:<28}{}", shown(text)))
        .collect();
        insta::assert_snapshot!(table.join("\n"));
    }

    #[test]
    fn references_to_variables_are_no_secrets() {
        let args = json!({"a": "${secret:env.MODE}", "b": ["${secret:A}${secret:env._X}"], "c": "$${secret:env.NO}"});
        let args = args.as_object().unwrap();
        assert_eq!(secret_names(args).into_iter().collect::<Vec<_>>(), ["A"]);
        assert_eq!(variable_names(args).into_iter().collect::<Vec<_>>(), ["MODE", "_X"]);
        let named = json!({"a": ["x ${{env.A}}${{ env.B }} $${{ env.NO }} ${{ 'env.NO' }}"], "b": "${secret:env.C} ${{ env."});
        assert_eq!(
            used_variables(named.as_object().unwrap()).into_iter().collect::<Vec<_>>(),
            ["A", "B", "C"]
        );
        assert!(secret_pieces("${secret:env.1}").is_err() && secret_pieces("${secret:en.A}").is_err());
    }

    #[test]
    fn names_are_found_at_any_depth() {
        let args = json!({"a": ["x${secret:A}", {"b": "${secret:B} ${secret:A}"}], "c": "$${secret:C}", "d": "${secret:"});
        let names = secret_names(args.as_object().unwrap());
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["A", "B"]);
    }

    proptest! {
        #[test]
        fn the_parser_never_panics_and_keeps_all_text(text in r"(\$|\{|\}|secret|:|A|\$\{secret:|ü|-)*") {
            if let Ok(pieces) = secret_pieces(&text) {
                let again: String = pieces.iter().map(|piece| match piece {
                    SecretPiece::Text(text) => text.replace(OPEN, ESCAPED),
                    SecretPiece::Secret(name) => format!("{OPEN}{name}}}"),
                }).collect();
                prop_assert_eq!(again, text);
            }
        }

        #[test]
        fn inserted_text_cannot_refer_to_a_secret(
            pieces in proptest::collection::vec((r"(\$|\{|\}|secret:|A|\$\{secret:A\})*", any::<bool>()), 1..6)
        ) {
            let (mut text, mut inserted, mut own) = (String::new(), Vec::new(), vec![String::new()]);
            for (piece, is_inserted) in &pieces {
                if *is_inserted {
                    inserted.push(text.len()..text.len() + piece.len());
                    if !piece.is_empty() {
                        own.push(String::new());
                    }
                } else {
                    own.last_mut().unwrap().push_str(piece);
                }
                text.push_str(piece);
            }
            let own: usize = own.iter().map(|text| text.matches(OPEN).count()).sum();
            let shielded = shield_inserted(text, &inserted);
            let found = secret_pieces(&shielded).into_iter().flatten();
            prop_assert!(found.filter(|piece| matches!(piece, SecretPiece::Secret(_))).count() <= own);
        }

        #[test]
        fn a_shielded_value_parses_back_to_itself(text in r"(\$|\{|\}|secret:|A|\$\{secret:A\})*") {
            let Value::String(shielded) = shield(Value::String(text.clone())) else { unreachable!() };
            let pieces = secret_pieces(&shielded).unwrap();
            let read: String = pieces.iter().map(|piece| match piece {
                SecretPiece::Text(text) => *text,
                SecretPiece::Secret(name) => panic!("{name}"),
            }).collect();
            prop_assert_eq!(read, text);
        }
    }
}
