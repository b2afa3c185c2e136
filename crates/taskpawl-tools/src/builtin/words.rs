//! Detects command lines that need no shell.

/// Words that a shell handles itself, differently from a program of that name or without such a program. `true` and
/// `false` are missing here, since they are the same everywhere.
const BUILTINS: &[&str] = &[
    ".", ":", "[", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "do", "done",
    "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "fc", "fg", "fi", "for", "function",
    "getopts", "hash", "if", "in", "jobs", "kill", "let", "local", "printf", "pwd", "read", "readonly",
    "return", "select", "set", "shift", "source", "test", "then", "time", "times", "trap", "type", "typeset",
    "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];

/// Returns the words of a command if starting them directly has the same effect as a shell would; otherwise `None`. In
/// doubt the answer is `None`: a shell is only slower.
pub(super) fn plain_words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => word.get_or_insert_default().push_str(&quoted(&mut chars, '\'', &[])?),
            '"' => word.get_or_insert_default().push_str(&quoted(&mut chars, '"', &['$', '`', '\\'])?),
            // An assignment before the command.
            '=' if words.is_empty() => return None,
            _ if is_plain(char) => word.get_or_insert_default().push(char),
            _ => return None,
        }
    }
    words.extend(word);
    let program = words.first()?;
    (!program.is_empty() && !BUILTINS.contains(&program.as_str())).then_some(words)
}

fn quoted(chars: &mut std::str::Chars<'_>, end: char, special: &[char]) -> Option<String> {
    let (text, rest) = chars.as_str().split_once(end)?;
    *chars = rest.chars();
    (!text.contains(special)).then(|| text.to_owned())
}

fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | ':' | ',' | '@' | '%' | '+' | '=')
}

/// Checks that splitting is stable: the quoted words split into the same words again, so that no part of a word can
/// escape from it.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn command(text: &str) -> bool {
    let Some(words) = plain_words(text) else { return false };
    assert!(!words.is_empty() && text.is_char_boundary(0));
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    if words.iter().all(|word| !word.contains('\'')) {
        assert_eq!(plain_words(&quoted.join(" ")), Some(words));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_commands_are_split() {
        let cases: [(&str, &[&str]); 6] = [
            ("cargo test --all", &["cargo", "test", "--all"]),
            ("  ls\t-l  ", &["ls", "-l"]),
            ("git commit -m 'a; b' \"c  d\"", &["git", "commit", "-m", "a; b", "c  d"]),
            ("x --key=va'l 'ue ''", &["x", "--key=val ue", ""]),
            ("./run ü", &["./run", "ü"]),
            ("true", &["true"]),
        ];
        for (command, words) in cases {
            assert_eq!(plain_words(command).as_deref(), Some(words.map_to_owned().as_slice()), "{command}");
        }
    }

    #[test]
    fn everything_else_needs_a_shell() {
        let commands = [
            "",
            "  ",
            "a | b",
            "a && b",
            "a; b",
            "a &",
            "a > b",
            "a < b",
            "ls *",
            "ls ?",
            "ls [a]",
            "echo hi",
            "cd /tmp",
            "exit 3",
            ". ./env",
            "A=1 b",
            "a $B",
            "a `b`",
            "a \"$B\"",
            "a \\b",
            "a ~",
            "a {b,c}",
            "(a)",
            "! a",
            "a # b",
            "a\nb",
            "a 'b",
            "a \"b",
            "'cd' /",
            "if a",
            "\"\" a",
            "a \"b\\n\"",
            "a^b",
        ];
        for command in commands {
            assert_eq!(plain_words(command), None, "{command}");
        }
    }

    const COMMAND: taskpawl_fuzz::Target<'_> = taskpawl_fuzz::Target {
        name: "shell commands",
        corpus: &[
            "cargo test --all",
            "git commit -m 'a; b' \"c  d\"",
            "x --key=va'l 'ue ''",
            "a | b && c",
            "A=1 b $C `d` \"$E\"",
            "echo ~ {a,b} # c",
        ],
        words: &[
            "'", "\"", "\\", "$", "`", "=", " ", "\t", "echo", "cd", "ls", "-l", "&&", ";", "$(", ")", "~",
            "*", "é", "\u{a0}", "\u{3000}",
        ],
    };

    #[test]
    fn hostile_commands_cause_no_panic() {
        COMMAND.fuzz(command);
    }

    trait MapToOwned {
        fn map_to_owned(&self) -> Vec<String>;
    }

    impl MapToOwned for [&str] {
        fn map_to_owned(&self) -> Vec<String> {
            self.iter().map(|word| (*word).to_owned()).collect()
        }
    }
}
