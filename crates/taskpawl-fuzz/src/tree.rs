//! Changes JSON inputs as trees. The result is JSON as well, so that it passes the first parser.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// Returns `text` with some of its values changed; `None` if it is not JSON, or only a number.
pub(crate) fn changed(random: &mut Random, text: &str, words: &[&str]) -> Option<String> {
    let mut value: Value = serde_json::from_str(text).ok().filter(|value: &Value| !value.is_number())?;
    for _ in 0..=random.below(3) {
        change(random, &mut value, words);
    }
    Some(value.to_string())
}

fn change(random: &mut Random, value: &mut Value, words: &[&str]) {
    let is_inner = |value: &Value| {
        value.as_array().is_some_and(|items| !items.is_empty())
            || value.as_object().is_some_and(|fields| !fields.is_empty())
    };
    if !is_inner(value) || random.chance(10) {
        *value = odd(random, words);
        return;
    }
    match value {
        Value::Array(items) => change_items(random, items, words),
        Value::Object(fields) => change_fields(random, fields, words),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn change_items(random: &mut Random, items: &mut Vec<Value>, words: &[&str]) {
    let at = random.below(items.len());
    match random.below(6) {
        0 => drop(items.remove(at)),
        1 => items.insert(at, items[at].clone()),
        2 => items.push(odd(random, words)),
        _ => change(random, &mut items[at], words),
    }
}

fn change_fields(random: &mut Random, fields: &mut Map<String, Value>, words: &[&str]) {
    let at = random.below(fields.len());
    let Some(name) = fields.keys().nth(at).cloned() else { return };
    match random.below(7) {
        0 => drop(fields.remove(&name)),
        1 => drop(fields.insert(word(random, words), odd(random, words))),
        2 => {
            let value = fields.remove(&name).unwrap_or_default();
            fields.insert(word(random, words), value);
        }
        _ => {
            if let Some(value) = fields.get_mut(&name) {
                change(random, value, words);
            }
        }
    }
}

fn word(random: &mut Random, words: &[&str]) -> String {
    if words.is_empty() { String::new() } else { (*random.one_of(words)).to_owned() }
}

/// Returns a value that few programs expect.
fn odd(random: &mut Random, words: &[&str]) -> Value {
    match random.below(16) {
        0 => Value::Null,
        1 => json!(random.chance(50)),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(u64::MAX),
        5 => json!(i64::MIN),
        6 => json!(1e308),
        7 => json!(0.1),
        8 => json!([]),
        9 => json!({}),
        10 => "".into(),
        11 => "\u{0}\u{1b}[2J\u{202e}é".into(),
        12 => "a".repeat(random.below(5000)).into(),
        13 => nested(random.below(200)),
        14 => json!({ word(random, words): [word(random, words)] }),
        _ => word(random, words).into(),
    }
}

fn nested(levels: usize) -> Value {
    (0..levels)
        .fold(Value::Null, |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) })
}
