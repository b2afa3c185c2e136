//! The front matter of a Markdown file: YAML between two lines of `---`.

use serde_json::Value;
use taskpawl_model::plan::{PlanProblem, yaml_value};
use taskpawl_model::value::Map;

use crate::error::Position;
use crate::record::Read;
use crate::unsupported::is_empty;

/// The maximum nesting depth of the front matter.
const MAX_DEPTH: usize = 16;

/// Returns the front matter and the text after it; `None` without front matter.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// Parses YAML that must be an object. `first` is its first line in the file. A value may begin with `@`, as in names.
pub(crate) fn parse(text: &str, place: &Position, first: u32) -> Read<Map> {
    let at_line =
        |line: u32| Position { line: Some(first.saturating_add(line.saturating_sub(1))), ..place.clone() };
    match yaml_value(&with_quoted_names(text), MAX_DEPTH) {
        Ok(Some(Value::Object(map))) => Ok(map),
        Ok(None | Some(Value::Null)) => Ok(Map::new()),
        Ok(Some(_)) => {
            Err(at_line(1).error("", "the front matter is not an object", "write it as `name: value`"))
        }
        Err(errors) => {
            let first = &errors.errors()[0];
            let is_broken = matches!(first.problem, PlanProblem::Syntax { .. });
            let restore = "restore the file, or let its own program write it again";
            let hint = if is_broken { restore } else { "write the head with plain values" };
            Err(at_line(first.at.line).error("", format!("the head cannot be read: {}", first.problem), hint))
        }
    }
}

/// Quotes values that begin with `@`. YAML reserves that character, but Backlog.md files contain unquoted names such as `@anna`.
fn with_quoted_names(text: &str) -> String {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', "''"));
    let line = |line: &str| {
        let Some(at) = line.find('@') else { return line.to_owned() };
        let (before, after) = line.split_at(at);
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let is_start = before.trim() == "-" || before.trim_end().strip_suffix(':').is_some_and(is_name);
        if is_start && before.ends_with(' ') {
            return format!("{before}{}", quoted(after.trim_end()));
        }
        match (before.split_once(": ["), line.trim_end().strip_suffix(']')) {
            // A list with quotes stays as it is: a quoted item may contain a comma, which the split below would cut.
            (Some((name, _)), Some(whole)) if is_name(name) && !line.contains(['"', '\'']) => {
                let items = whole.split_once(": [").map_or("", |(_, items)| items);
                let items: Vec<String> = items
                    .split(',')
                    .map(str::trim)
                    .map(|item| if item.starts_with('@') { quoted(item) } else { item.to_owned() })
                    .collect();
                format!("{name}: [{}]", items.join(", "))
            }
            _ => line.to_owned(),
        }
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n")
}

/// Returns the front matter with the values of `head`. Entries with an equal value keep their lines and comments. New entries that are
/// not empty follow, in the order of `order`. Returns `None` if the
/// entries cannot be edited line by line.
pub(crate) fn over(before: &str, head: &Map, order: &[&str]) -> Option<String> {
    let old = parse(before, &Position::default(), 1).ok()?;
    let (entries, end) = entries(before)?;
    let line_end = if before.contains("\r\n") { "\r\n" } else { "\n" };
    let entry = |name: &str, value: &Value| entry(name, value).replace('\n', line_end);
    let (mut left, mut out) = (head.clone(), String::new());
    for one in entries {
        match left.remove(one.name) {
            Some(value) if old.get(one.name).is_some_and(|was| means(was, &value)) => {
                out.extend([one.lead, one.lines]);
            }
            Some(value) => out.extend([one.lead, &entry(one.name, &value)]),
            None => {}
        }
    }
    let known = order.iter().filter_map(|name| left.get_key_value(*name));
    let others = left.iter().filter(|(name, _)| !order.contains(&name.as_str()));
    let new = known.chain(others).filter(|(_, value)| !is_empty(value));
    out.extend(new.map(|(name, value)| entry(name, value)));
    out.push_str(end);
    // Lines can depend on each other, for example through YAML anchors. So the result is parsed again and compared.
    let now = parse(&out, &Position::default(), 1).ok()?;
    let says =
        |name: &String| means(now.get(name).unwrap_or(&Value::Null), head.get(name).unwrap_or(&Value::Null));
    now.keys().chain(head.keys()).all(says).then_some(out)
}

/// Returns true if the parsed value `was` means the same as `now`. YAML parses unquoted words as numbers or booleans, and a single value
/// may stand for a list of one.
fn means(was: &Value, now: &Value) -> bool {
    match (was, now) {
        (Value::Array(was), Value::Array(now)) => {
            was.len() == now.len() && was.iter().zip(now).all(|(was, now)| means(was, now))
        }
        (Value::String(_) | Value::Number(_), Value::Array(now)) => now.len() == 1 && means(was, &now[0]),
        (Value::Number(was), Value::String(now)) => was.to_string().as_str() == now,
        (Value::Bool(was), Value::String(now)) => now == if *was { "true" } else { "false" },
        _ => was == now || (is_empty(was) && is_empty(now)),
    }
}

/// The lines of one entry.
struct Entry<'t> {
    /// Comments and empty lines before it.
    lead: &'t str,
    name: &'t str,
    lines: &'t str,
}

/// Splits front matter into its entries and the rest after the last one; `None` if a name is not a plain word.
fn entries(text: &str) -> Option<(Vec<Entry<'_>>, &str)> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    // `begin` is the start of the open entry. `lead` is the start of comments and empty lines that may belong to the next entry.
    let (mut begin, mut lead, mut at) = (0, 0, 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        // A comment inside a value belongs to that value: an indented line moves `lead` past it.
        if line.starts_with([' ', '\t', '-']) {
            lead = at;
            continue;
        }
        let (name, rest) = line.split_once(':')?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !name.chars().all(is_word) || !rest.starts_with(char::is_whitespace) {
            return None;
        }
        if let Some(open) = entries.last_mut() {
            open.lines = &text[begin..lead];
        }
        entries.push(Entry { lead: &text[lead..start], name, lines: "" });
        (begin, lead) = (start, at);
    }
    if let Some(open) = entries.last_mut() {
        open.lines = &text[begin..lead];
    }
    Some((entries, &text[lead..]))
}

/// The longest name that is written as `name: value`, in characters. YAML reads at most 1,024 characters of such a name.
const MAX_NAME_CHARS: usize = 1_000;

/// Returns the lines of one entry.
pub(crate) fn entry(name: &str, value: &Value) -> String {
    let name = named(scalar(&Value::String(name.to_owned())));
    match value {
        Value::Array(list)
            if !list.is_empty() && list.iter().all(|item| !item.is_array() && !item.is_object()) =>
        {
            let items: Vec<String> = list.iter().map(|item| format!("  - {}\n", scalar(item))).collect();
            format!("{name}\n{}", items.concat())
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {
            format!("{name} {}\n", scalar(value))
        }
        Value::Array(_) | Value::Object(_) => format!("{name} {}\n", flow(value)),
    }
}

/// Returns a name with its separator. A long name needs YAML's explicit key, `? name`.
fn named(name: String) -> String {
    if name.chars().count() > MAX_NAME_CHARS { format!("? {name}\n:") } else { name + ":" }
}

/// Returns a list or an object on one line. It is JSON, which YAML includes, except for long names.
fn flow(value: &Value) -> String {
    let field = |(name, value): (&String, &Value)| {
        let name = Value::String(name.clone()).to_string();
        let mark = if name.chars().count() > MAX_NAME_CHARS { "? " } else { "" };
        format!("{mark}{name}: {}", flow(value))
    };
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(flow).collect::<Vec<_>>().join(",")),
        Value::Object(map) => format!("{{{}}}", map.iter().map(field).collect::<Vec<_>>().join(",")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn scalar(value: &Value) -> String {
    let Value::String(text) = value else { return value.to_string() };
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | '_' | '/' | '-' | '(' | ')' | '+');
    let begins = text.chars().next().is_some_and(char::is_alphabetic);
    // YAML 1.1 reads these words as booleans or null, and other programs still do.
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = begins
        && text.chars().all(is_word)
        && !text.ends_with(' ')
        && !reserved.contains(&text.to_lowercase().as_str());
    if is_plain {
        text.clone()
    } else if text
        .chars()
        .any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{feff}'))
    {
        // Single quotes cannot escape line breaks and control characters.
        escaped(text)
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

fn escaped(text: &str) -> String {
    let one = |c: char| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
            format!("\\u{:04x}", u32::from(c))
        }
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(one).collect::<String>())
}
