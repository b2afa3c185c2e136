//! Values that were written as text: lists, objects, durations, fenced plans.

use serde_json::Value;

use crate::server::brief::cut;
use crate::server::refusal::Refused;

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
pub(super) fn seconds(text: &str) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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
