//! Values in another type than their schema says.

use serde_json::{Map, Value, json};

use super::words;
use super::{Reading, cut};
use crate::server::refusal::Refused;

/// Arguments for which an empty text means none.
const EMPTY_IS_ABSENT: &[&str] = &[
    "id",
    "agent",
    "request_id",
    "run_id",
    "parent",
    "plan",
    "name",
    "ttl",
    "dueDate",
    "call",
    "part",
    "text",
];

impl Reading<'_> {
    /// Reads the value of an argument, if its schema has one other type.
    pub(super) fn value(&mut self, name: &str, schema: &Value, value: &mut Value) -> Result<(), Refused> {
        let read = match schema["type"].as_str() {
            Some("integer" | "number") => self::number(name, schema, value),
            Some("boolean") => boolean(value),
            Some("array") => return self.list(name, schema, value),
            Some("object") => value.as_str().and_then(object),
            Some("string") => text(name, value),
            _ => schema["enum"].as_array().and_then(|allowed| of_enum(value, allowed)),
        };
        if let Some(read) = read {
            self.replace(name, value, read);
        }
        Ok(())
    }

    pub(super) fn replace(&mut self, place: &str, value: &mut Value, read: Value) {
        if !read.is_null() {
            self.tell(place, value, &read);
        }
        *value = read;
    }

    fn list(&mut self, name: &str, schema: &Value, value: &mut Value) -> Result<(), Refused> {
        if let Value::String(given) = value {
            let items = items(given);
            if given.is_empty() && name == "needs" {
                *value = Value::Null;
                return Ok(());
            }
            if items.is_empty() {
                let all = if matches!(name, "ids" | "needs") { "" } else { "; leave it out to mean all" };
                return Err(Refused::argument(name, format!("the list is empty{all}")));
            }
            self.replace(name, value, items.into());
        }
        let allowed = schema["items"]["enum"].as_array();
        for item in value.as_array_mut().into_iter().flatten() {
            let read = match (allowed, &item) {
                (Some(allowed), _) => of_enum(item, allowed),
                (None, Value::Number(number)) => Some(json!(number.to_string())),
                (None, _) => None,
            };
            if let Some(read) = read {
                self.replace(name, item, read);
            }
        }
        Ok(())
    }
}

fn number(name: &str, schema: &Value, value: &Value) -> Option<Value> {
    let given = match value {
        Value::String(text) if text.trim().is_empty() => return Some(Value::Null),
        Value::String(text) if name == "wait_s" => json!(seconds(text)?),
        Value::String(text) => json!(text.trim().parse::<u64>().ok()?),
        Value::Number(_) => value.clone(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let most = schema["maximum"].as_u64().filter(|most| given.as_u64().is_some_and(|given| given > *most));
    let read = most.map_or(given, |most| json!(most));
    (read != *value).then_some(read)
}

fn boolean(value: &Value) -> Option<Value> {
    match value.as_str()?.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" => Some(json!(true)),
        "false" | "no" => Some(json!(false)),
        _ => None,
    }
}

fn text(name: &str, value: &Value) -> Option<Value> {
    match value {
        Value::Number(given) if name == "ttl" => Some(json!(format!("{given}s"))),
        Value::Number(given) => Some(json!(given.to_string())),
        Value::String(given) if given.is_empty() && EMPTY_IS_ABSENT.contains(&name) => Some(Value::Null),
        Value::String(given) if name == "ttl" => duration(given).map(Value::from),
        // One id in a list is that id. Several need a call each.
        Value::Array(items) => match &items[..] {
            [Value::String(item)] => Some(json!(item)),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_) => None,
    }
}

/// Returns the allowed word that a value means; nothing if it is allowed as it is.
pub(super) fn of_enum(value: &Value, allowed: &[Value]) -> Option<Value> {
    let words: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
    let given = value.as_str().filter(|given| !words.contains(given))?;
    if given.trim().is_empty() {
        return Some(Value::Null);
    }
    words::of_enum(given, &words).map(Value::from)
}

/// Returns the items of a list that was written as one text: JSON, or with commas.
pub(super) fn items(text: &str) -> Vec<Value> {
    if let Ok(Value::Array(items)) = serde_json::from_str(text) {
        return items;
    }
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(Value::from).collect()
}

/// Returns an object or a list that was written as text.
pub(super) fn object(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

/// Returns a duration in words or in ISO 8601 as plans write it; nothing if it is one already, or none at all.
pub(super) fn duration(text: &str) -> Option<String> {
    let is_plain = text.parse::<taskpawl::model::value::Period>().is_ok();
    if is_plain { None } else { seconds(text).map(|seconds| format!("{seconds}s")) }
}

/// Returns the seconds of a duration: a number, `1 hour 30 minutes`, `PT1H30M`.
fn seconds(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(seconds);
    }
    let parts = text.strip_prefix("pt").unwrap_or(&text);
    let mut total = 0_u64;
    let mut rest = parts.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: u64 = rest[..digits].parse().ok()?;
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        total = total.checked_add(count.checked_mul(unit(&after[..letters])?)?)?;
        rest = after[letters..].trim_start_matches([' ', ',']);
    }
    Some(total)
}

/// Returns the seconds of a unit of time.
fn unit(word: &str) -> Option<u64> {
    Some(match word {
        "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600,
        "d" | "day" | "days" => 86_400,
        _ => return None,
    })
}

/// Returns the part of a text inside its Markdown fence; nothing without one.
///
/// # Errors
/// There is more than one, so it is not clear which is meant.
pub(super) fn fenced(text: &str) -> Result<Option<String>, Refused> {
    let mut blocks = Vec::new();
    let mut open: Option<Vec<&str>> = None;
    for line in text.lines() {
        // An indented fence belongs to a text within the plan.
        let is_fence = line.starts_with("```");
        match open.take() {
            None if is_fence => open = Some(Vec::new()),
            None => {}
            Some(lines) if is_fence => blocks.push(lines.join("\n")),
            Some(mut lines) => {
                lines.push(line);
                open = Some(lines);
            }
        }
    }
    match &blocks[..] {
        [] => Ok(None),
        [block] => Ok(Some(block.clone())),
        more => {
            let problem = format!("it has {} fenced parts: give one plan, best as an object", more.len());
            Err(Refused::argument("plan", cut(&problem, 200)))
        }
    }
}

/// Replaces a field by what it was read as.
pub(super) fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) -> bool {
    if fields.contains_key(to) {
        return false;
    }
    match fields.remove(from) {
        Some(value) => {
            fields.insert(to.to_owned(), value);
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_words_and_in_iso() {
        for (given, read) in [
            ("1 hour", Some("3600s")),
            ("30 seconds", Some("30s")),
            ("PT1H30M", Some("5400s")),
            ("1 hour, 5 mins", Some("3900s")),
            ("90", Some("90s")),
            ("2h", None),
            ("soon", None),
            ("5 fortnights", None),
            ("", None),
        ] {
            assert_eq!(duration(given).as_deref(), read, "{given}");
        }
    }

    #[test]
    fn the_one_fenced_part_is_the_plan() {
        let text = "Here:\n```yaml\ntasks: []\n```\nDone.";
        assert_eq!(fenced(text).unwrap().as_deref(), Some("tasks: []"));
        assert_eq!(fenced("tasks: []").unwrap(), None);
        let within = "tasks:\n- name: a\n  description: |\n    ```\n    ls\n    ```";
        assert_eq!(fenced(within).unwrap(), None);
        assert_eq!(fenced(&format!("```yaml\n{within}\n```")).unwrap().as_deref(), Some(within));
        assert!(fenced("```\na\n```\n```\nb\n```").is_err());
    }

    #[test]
    fn one_text_is_a_list() {
        assert_eq!(items("a, b"), [json!("a"), json!("b")]);
        assert_eq!(items(r#"["a", "b"]"#), [json!("a"), json!("b")]);
        assert!(items(" , ").is_empty());
    }
}
