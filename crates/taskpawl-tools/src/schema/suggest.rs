//! Suggestions for misspelt names of fields.

/// Returns the candidate that is most similar to `name`, if it is similar enough for a typing error.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near =
        candidates.map(|candidate| (!is_abbreviation(name, candidate), distance(name, candidate), candidate));
    let (is_other, distance, candidate) = near.min()?;
    let is_near = distance <= name.chars().count() / 3 + 1 && distance < candidate.chars().count();
    (is_near || !is_other).then_some(candidate)
}

/// Returns whether `name` only omits letters of `candidate`, as `cmd` does of `command`.
fn is_abbreviation(name: &str, candidate: &str) -> bool {
    let (name, mut rest) = (folded(name), folded(candidate).into_iter());
    name.len() > 1
        && rest.as_slice().first() == name.first()
        && name.iter().all(|char| rest.any(|other| other == *char))
}

/// Computes the edit distance; `okExitCodes`, `ok_exit_codes` and `ok-exit-codes` are equal.
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (folded(left), folded(right));
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

/// Normalizes a name. Long names are cut: they come from outside, and the work grows with the product of both lengths.
fn folded(name: &str) -> Vec<char> {
    name.chars().filter(|char| !matches!(char, '_' | '-')).flat_map(char::to_lowercase).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_get_a_suggestion_and_other_names_do_not() {
        let fields = || ["argv", "cwd", "okExitCodes"].into_iter();
        assert_eq!(nearest("args", fields()), Some("argv"));
        assert_eq!(nearest("ok_exit_codes", fields()), Some("okExitCodes"));
        assert_eq!(nearest("cmd", ["cwd", "command"].into_iter()), Some("command"));
        assert_eq!(nearest("timeout", fields()), None);
        assert_eq!(nearest("x", fields()), None);
    }
}
