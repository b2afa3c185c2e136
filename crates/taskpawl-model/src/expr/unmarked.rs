//! `{{ … }}` without the `$` before it: plain text, where an author probably means an expression.

use serde_json::Value;

use super::words::ROOTS;

/// Longest part of a text that a warning repeats, in characters.
const MAX_SHOWN: usize = 60;

/// Returns the first `{{ … }}` in the texts of a value that lacks the `$` of an expression.
///
/// Only names of expressions count, as in `{{ item }}`: other programs have templates of the same form, such as
/// `docker ps --format '{{.Names}}'`.
pub fn unmarked_expression(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => in_text(text),
        Value::Array(items) => items.iter().find_map(unmarked_expression),
        Value::Object(fields) => fields.values().find_map(unmarked_expression),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn in_text(text: &str) -> Option<String> {
    text.match_indices("{{").find_map(|(at, open)| {
        // The braces of `{{{` may open an object, as in `${{{'a': 1}}}`.
        if text[..at].ends_with(['$', '{']) {
            return None;
        }
        let rest = &text[at + open.len()..];
        let inner = &rest[..rest.find("}}")?];
        let word: String =
            inner.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let is_name = ROOTS.iter().any(|root| root.name == word) && inner.chars().count() <= MAX_SHOWN;
        is_name.then(|| format!("{{{{{inner}}}}}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_expression_without_its_mark_is_found() {
        for (value, found) in [
            (json!("echo {{ item }}"), Some("{{ item }}")),
            (json!({"argv": ["echo", "{{params.name}}"]}), Some("{{params.name}}")),
            (json!("${{ item }} {{ tasks['a'].result }}"), Some("{{ tasks['a'].result }}")),
            (json!("${{ item }}"), None),
            (json!("$${{ item }}"), None),
            (json!("${{{'item': item}}}"), None),
            (json!("docker ps --format '{{.Names}}'"), None),
            (json!("{{ items }} {{ item"), None),
            (json!(7), None),
        ] {
            assert_eq!(unmarked_expression(&value).as_deref(), found, "{value}");
        }
    }
}
