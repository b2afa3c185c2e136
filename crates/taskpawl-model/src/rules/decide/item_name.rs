//! Names of the items of a `forEach`.

use serde_json::Value;

use crate::command::Redact;

/// Maximum length of an element in the name of its item, in characters.
const NAMED_CHARS: usize = 40;

/// Returns the elements of a list as they stand in the names of its items: without the secrets that `redact` knows. Results
/// and reports are without them already, but a list may be written out, or put together from parts.
pub(super) fn for_names(list: &[Value], redact: Option<&dyn Redact>) -> Vec<Value> {
    let Some(redact) = redact else { return list.to_vec() };
    let mut shown = Value::Array(list.to_vec());
    // All at once, because looking up the secrets is the expensive part.
    redact.redact(&mut shown);
    if let Value::Array(shown) = shown { shown } else { Vec::new() }
}

/// Returns an element as it stands in the name of its item, on one line.
pub(super) fn in_a_name(element: &Value) -> String {
    // Without quotes an empty text would not be seen.
    let text = element.as_str().filter(|text| !text.trim().is_empty());
    let text = text.map_or_else(|| element.to_string(), str::to_owned);
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    if line.chars().count() <= NAMED_CHARS {
        return line;
    }
    line.chars().take(NAMED_CHARS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::in_a_name;

    #[test]
    fn an_element_is_one_short_line() {
        for (element, name) in [
            (json!("linux"), "linux"),
            (json!(" two\n lines\u{1b}[31m "), "two lines [31m"),
            (json!(7), "7"),
            (json!(""), "\"\""),
            (json!({"os": "linux"}), r#"{"os":"linux"}"#),
            (json!("é".repeat(41)), &format!("{}…", "é".repeat(39))),
        ] {
            assert_eq!(in_a_name(&element), name, "{element}");
        }
        assert_eq!(in_a_name(&json!("é".repeat(40))).chars().count(), 40);
    }
}
