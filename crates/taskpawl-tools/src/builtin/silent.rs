//! Programs whose exit code 1 is an answer rather than a failure.

/// Programs that answer with exit code 1, and what that means.
const ANSWERS: &[(&[&str], &str)] = &[
    (&["grep", "egrep", "fgrep", "zgrep", "rg", "pgrep", "pidof"], "that nothing matches"),
    (&["test", "["], "that the condition does not hold"),
    (&["diff", "cmp"], "that the files differ"),
    (&["expr"], "an empty or zero result"),
];

/// Returns what the exit code 1 of a command may mean if it printed nothing.
pub(super) fn no_match_hint(command: &str) -> Option<String> {
    let parts = command.split(['\n', ';', '|', '&', '(', '{']).rev();
    let mut names =
        parts.filter_map(|part| part.split_whitespace().find(|word| *word != "!" && !word.contains('=')));
    names.find_map(answer_of)
}

fn answer_of(name: &str) -> Option<String> {
    let name = name.rsplit('/').next().unwrap_or(name);
    let (_, meaning) = ANSWERS.iter().find(|(names, _)| names.contains(&name))?;
    Some(format!(
        "`{name}` may have answered {meaning}: if that is no failure, write `|| true` after it, or `okExitCodes: [0, 1]`"
    ))
}

#[cfg(test)]
mod tests {
    use super::no_match_hint;

    #[test]
    fn it_names_the_last_program_that_answers_with_its_exit_code() {
        for (command, name) in [
            ("grep -q TODO src", Some("`grep`")),
            ("cat a | /usr/bin/grep x", Some("`grep`")),
            ("LC_ALL=C grep x a", Some("`grep`")),
            ("test -e a\necho ok", Some("`test`")),
            ("diff a b", Some("`diff`")),
            ("cargo test", None),
            ("echo grep", None),
            ("", None),
        ] {
            let hint = no_match_hint(command);
            assert_eq!(hint.is_some(), name.is_some(), "{command}");
            assert!(hint.unwrap_or_default().starts_with(name.unwrap_or_default()), "{command}");
        }
    }
}
