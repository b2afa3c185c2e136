//! Comparable forms of the texts of items.

use std::collections::HashMap;

/// Returns a text with white space and case folded.
pub(super) fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    out
}

/// Returns a text with those above it as one key.
pub(super) fn full(text: &str, under: impl Iterator<Item = String>) -> String {
    let mut key = folded(text);
    for above in under {
        // No folded text has a line break.
        key.push('\n');
        key.push_str(&folded(&above));
    }
    key
}

/// Returns a text without a leading number such as `1.` or `2.3`.
pub(super) fn without_number(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if rest.len() < text.len() && rest.starts_with(' ') && text.starts_with(|c: char| c.is_ascii_digit()) {
        rest.trim_start()
    } else {
        text
    }
}

/// Returns a text without a leading number that has a dot.
pub(super) fn without_place(text: &str) -> &str {
    let number = text.split(' ').next().unwrap_or_default();
    if number.contains('.') { without_number(text) } else { text }
}

/// Returns a text without its words that are only numbers, such as in `2. Login` and `Phase 2: Login`.
pub(super) fn without_places(text: &str) -> String {
    let is_number =
        |word: &&str| word.chars().any(|c| c.is_ascii_digit()) && !word.chars().any(char::is_alphabetic);
    let words: Vec<&str> = text.split_whitespace().filter(|word| !is_number(word)).collect();
    if words.is_empty() { text.to_owned() } else { words.join(" ") }
}

/// Returns true if at least half of the words of `text` are also in `other`.
pub(super) fn share_half(text: &str, other: &str) -> bool {
    let mut others: HashMap<String, usize> = HashMap::new();
    for word in words(other) {
        *others.entry(word).or_default() += 1;
    }
    let words = words(text);
    let mut is_shared = |word: &&String| match others.get_mut(*word) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let shared = words.iter().filter(&mut is_shared).count();
    shared > 0 && 2 * shared >= words.len()
}

/// Returns the words of a text, folded. Scripts without spaces have a word for each character.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in text.chars().flat_map(char::to_lowercase) {
        if is_ideograph(c) {
            words.extend([c.to_string(), String::new()]);
        } else if c.is_alphanumeric() {
            if let Some(word) = words.last_mut() {
                word.push(c);
            }
        } else {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}
