//! Values as plans write them on one line: `{in: [linux, macos], concurrency: 2}`.

use serde_json::Value;

/// Returns a value on one line, in the notation of plans. Texts that could be read as something else have quotes.
pub(crate) fn flow(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let name = |name: &str| flow(&Value::from(name));
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{}: {}", name(key), flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// Returns whether a text means itself without quotes.
fn is_plain(text: &str) -> bool {
    let is_special = |c: char| c.is_control() || "{}[],\"'`#".contains(c);
    let begins = text.starts_with(|c: char| c.is_whitespace() || "-?:&*!|>%@".contains(c));
    let is_split = text.contains(": ") || text.ends_with(':') || text.ends_with(char::is_whitespace);
    let is_other = serde_json::from_str::<Value>(text).is_ok();
    !(text.is_empty() || begins || is_split || is_other || text.contains(is_special))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::flow;

    #[test]
    fn values_are_written_as_in_plans() {
        for (value, text) in [
            (json!({"in": ["linux", "macos"], "concurrency": 2}), "{concurrency: 2, in: [linux, macos]}"),
            (json!({"ask": "Upload it?"}), "{ask: Upload it?}"),
            (json!({"command": "make -j2 all", "env": {}}), "{command: make -j2 all, env: {}}"),
            (json!({"command": "test ${{ item }} != macos"}), r#"{command: "test ${{ item }} != macos"}"#),
            (
                json!(["true", "7", "", "a: b", "-x", "two\nlines", true, null]),
                r#"["true", "7", "", "a: b", "-x", "two\nlines", true, null]"#,
            ),
        ] {
            assert_eq!(flow(&value), text);
        }
    }
}
