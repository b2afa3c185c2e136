//! The plan in an answer. Fences and words around it are taken off; nothing else is changed.

use taskpawl_model::plan::proposed_fields;

use crate::patch::Patch;

/// The plan in an answer, or the reason why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// The text of a plan.
    Plan(&'a str),
    /// The text ends in the middle.
    CutOff,
}

/// Finds the plan in an answer.
pub(crate) fn plan_in(text: &str) -> Found<'_> {
    let text = text.trim().trim_start_matches('\u{feff}');
    if let Some(found) = fenced(text) {
        return found;
    }
    let begin = text.find('{');
    let yaml = yaml_start(text);
    match (begin, yaml) {
        // Words before a JSON object.
        (Some(begin), yaml) if yaml.is_none_or(|yaml| begin <= yaml) => {
            object_at(text, begin).map_or(Found::CutOff, Found::Plan)
        }
        (_, Some(yaml)) => Found::Plan(text[yaml..].trim_end()),
        (_, None) => Found::Plan(text),
    }
}

/// Finds the longest fenced block. Models also fence single commands in their words around a plan.
fn fenced(text: &str) -> Option<Found<'_>> {
    let mut blocks: Vec<&str> = Vec::new();
    let mut begin: Option<usize> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        match begin {
            None if is_fence => begin = Some(at + line.len()),
            Some(start) if is_fence && line.trim() == "```" => {
                blocks.push(&text[start..at]);
                begin = None;
            }
            Some(_) | None => {}
        }
        at += line.len();
    }
    let longest = blocks.into_iter().max_by_key(|block| block.len());
    match (begin, longest) {
        // A fence that never closes.
        (Some(start), longest) if longest.is_none_or(|block| block.len() < text.len() - start) => {
            Some(Found::CutOff)
        }
        (_, longest) => longest.map(|block| Found::Plan(block.trim_end())),
    }
}

/// Returns the start of the first line that begins a plan, or a change of one, in YAML.
fn yaml_start(text: &str) -> Option<usize> {
    let fields = proposed_fields().plan.iter().chain(Patch::FIELDS);
    let is_field = |line: &str| {
        fields.clone().any(|field| line.strip_prefix(field).is_some_and(|rest| rest.starts_with(':')))
    };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("# ") || is_field(line) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// Returns the JSON object that begins at a position; `None` if it does not end.
fn object_at(text: &str, begin: usize) -> Option<&str> {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (offset, byte) in text[begin..].bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[begin..=begin + offset]);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_and_words_around_are_taken_off() {
        let plan = "{\"tasks\": [{\"id\": \"a\", \"run\": \"echo }\"}]}";
        for text in [
            plan.to_owned(),
            format!("\u{feff} {plan}\n"),
            format!("Here is the plan:\n\n{plan}\n\nTell me if you like it."),
            format!("```json\n{plan}\n```"),
            format!("Run `make` first:\n```sh\nmake\n```\nThe plan:\n```json\n{plan}\n```\nDone."),
        ] {
            assert_eq!(plan_in(&text), Found::Plan(plan), "{text}");
        }
        let yaml = "name: a\ntasks:\n- {id: a, run: make}";
        for text in [yaml.to_owned(), format!("Sure:\n\n{yaml}\n"), format!("```yaml\n{yaml}\n```\n")] {
            assert_eq!(plan_in(&text), Found::Plan(yaml), "{text}");
        }
        // Every field that a plan or a change may begin with, with an object of JSON in its value.
        for field in proposed_fields().plan.iter().chain(Patch::FIELDS) {
            let yaml = format!("{field}:\n  - {{id: a, run: make}}");
            assert_eq!(plan_in(&format!("Sure:\n\n{yaml}\n")), Found::Plan(&yaml));
        }
    }

    #[test]
    fn an_unfinished_answer_is_no_plan() {
        for text in ["{\"tasks\": [{\"id\": \"a\"", "```json\n{\"tasks\": []}", "Here:\n{\"name\": \"}"] {
            assert_eq!(plan_in(text), Found::CutOff, "{text}");
        }
    }
}
