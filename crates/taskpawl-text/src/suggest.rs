//! Suggestions: the known name that a misspelt one was probably meant to be.

/// Longer names get no suggestion: computing the distance costs the product of both lengths, and the name may come from another program.
const MAX_BYTES: usize = 256;

/// Returns the nearest candidate that `name` may be a misspelling of, if there is one.
///
/// `due_date`, `due-date` and `dueDate` are the same name. Of equally near candidates the first in the alphabet is returned.
///
/// ```
/// let known = ["name", "dueDate", "timeout"];
/// assert_eq!(taskpawl_text::nearest("tiemout", known), Some("timeout"));
/// assert_eq!(taskpawl_text::nearest("due_date", known), Some("dueDate"));
/// assert_eq!(taskpawl_text::nearest("owner", known), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    ranked(name, candidates).into_iter().min().map(|(_, candidate)| candidate)
}

/// Returns the nearest candidate, unless another one is as near.
pub fn only_nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut ranked = ranked(name, candidates);
    ranked.sort_unstable();
    match ranked[..] {
        [(distance, _), (next, _), ..] if next == distance => None,
        [(_, candidate), ..] => Some(candidate),
        [] => None,
    }
}

/// Returns the hint for a word that is not among the known ones.
pub fn word_hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let all = known.clone().into_iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    match nearest(word, known) {
        Some(nearest) => format!("did you mean `{nearest}`? known are {all}"),
        None => format!("known are {all}"),
    }
}

/// Returns all candidates that `name` may be a misspelling of, the nearest first.
pub fn near<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ranked = ranked(name, candidates);
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Like [`nearest`], but prefers a candidate that `name` abbreviates: `cmd` abbreviates `command`.
///
/// Use this only for short lists of fields. In a long list, almost any two letters abbreviate a name.
pub fn nearest_or_longer<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let longer = candidates.iter().copied().filter(|candidate| is_abbreviation(name, candidate));
    longer.min_by_key(|candidate| (candidate.len(), *candidate)).or_else(|| nearest(name, candidates))
}

fn ranked<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    if name.len() > MAX_BYTES {
        return Vec::new();
    }
    let name = folded(name);
    let length = name.chars().count();
    let limit = max_distance(length);
    let rank = |candidate: &'a str| {
        let folded = folded(candidate);
        let other = folded.chars().count();
        // The difference in length excludes most candidates without computing the distance.
        let distance = (other.abs_diff(length) <= limit).then(|| strsim::osa_distance(&name, &folded))?;
        // A candidate that differs in every character is another name.
        (distance <= limit && (distance < other || distance == 0)).then_some((distance, candidate))
    };
    candidates.into_iter().filter_map(rank).collect()
}

/// Returns the maximum distance of a suggestion. It is smaller for short names, because many other names are near them.
fn max_distance(length: usize) -> usize {
    match length {
        0..2 => 0,
        2..6 => 1,
        _ => 2,
    }
}

fn is_abbreviation(name: &str, candidate: &str) -> bool {
    if name.len() > MAX_BYTES {
        return false;
    }
    let (name, candidate) = (folded(name), folded(candidate));
    let mut rest = candidate.chars();
    name.chars().count() > 1
        && candidate.chars().next() == name.chars().next()
        && name.chars().all(|c| rest.any(|other| other == c))
}

// Spellings such as `due_date`, `due-date` and `dueDate` have the same folded form.
fn folded(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_are_told_from_other_names() {
        let known = ["argv", "cwd", "okExitCodes", "build-lib", "light green"];
        for (name, meant) in [
            ("args", "argv"),
            ("arvg", "argv"),
            ("ok_exit_codes", "okExitCodes"),
            ("biuld-lib", "build-lib"),
            ("build-lob", "build-lib"),
            ("Light Gren", "light green"),
            ("CWD", "cwd"),
        ] {
            assert_eq!(nearest(name, known), Some(meant), "{name}");
        }
        for name in ["timeout", "x", "", "cd2", "build", "green"] {
            assert_eq!(nearest(name, known), None, "{name}");
        }
        assert_eq!(nearest("ho", ["hi", "server"]), Some("hi"));
        assert_eq!(nearest("a b", ["a", "b"]), None);
        assert_eq!(nearest(&"a".repeat(257), [&*"a".repeat(257)]), None);
    }

    #[test]
    fn equally_near_names_come_in_the_order_of_the_alphabet() {
        assert_eq!(near("task", ["tasks", "mask", "ask", "other", "Task"]), ["Task", "ask", "mask", "tasks"]);
        assert_eq!(nearest("tas", ["tat", "tap"]), Some("tap"));
    }

    #[test]
    fn abbreviations_find_the_longer_name() {
        assert_eq!(nearest_or_longer("cmd", ["cwd", "command"]), Some("command"));
        assert_eq!(nearest("cmd", ["cwd", "command"]), Some("cwd"));
        assert_eq!(nearest_or_longer("args", ["argv", "cwd"]), Some("argv"));
        assert_eq!(nearest_or_longer("x", ["xyz"]), None);
    }
}
