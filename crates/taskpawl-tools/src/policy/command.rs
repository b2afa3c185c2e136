//! What a command line would run, read in two ways: exactly, for rules that allow, and with suspicion, for rules that ask or deny.

mod alias;
mod filled;
mod git;
mod reader;
mod suspect;

pub(crate) use suspect::Suspect;
use suspect::Suspicion;

/// Words after which a command begins.
const KEYWORDS: &[&str] =
    &["!", "if", "then", "else", "elif", "do", "while", "until", "time", "{", "}", "fi", "done", "esac"];

/// One word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its text, without quotes.
    pub(crate) text: String,
    /// What the shell puts in its place is not known.
    pub(crate) certainty: Certainty,
}

/// How much is known about a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// It is its text.
    Literal,
    /// It is one word, and another one than its text.
    OneWord,
    /// It is any number of words, none too.
    AnyWords,
}

impl Word {
    pub(crate) fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), certainty: Certainty::Literal }
    }
}

/// A command that is understood to the last character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    /// The program with its arguments.
    pub(crate) argv: Vec<String>,
    /// The variables that are set for it.
    pub(crate) variables: Vec<String>,
}

/// What a call of a program would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commands {
    /// The commands one after the other; `None` where something in the line is not plain.
    pub(crate) plain: Option<Vec<Plain>>,
    /// Everything that may be a command of it.
    pub(crate) suspects: Vec<Suspect>,
}

impl Commands {
    /// Reads the argv of a program.
    pub(crate) fn of_argv(argv: &[String]) -> Self {
        let words: Vec<Word> = argv.iter().map(|word| Word::literal(word)).collect();
        let plain = vec![Plain { argv: argv.to_vec(), variables: Vec::new() }];
        Self { plain: Some(plain), suspects: Suspicion::of_words(&words).found }
    }

    /// Reads a command line for `/bin/sh`.
    pub(crate) fn of_line(line: &str) -> Self {
        Self { plain: plain(line), suspects: Suspicion::default().with_line(line).found }
    }

    /// A program that runs what it is told may be told by its input.
    pub(crate) fn with_input(mut self, input: &str) -> Self {
        if self.suspects.iter().any(Suspect::is_runner) {
            self.suspects = Suspicion { found: self.suspects }.with_line(input).found;
        }
        self
    }
}

/// A word with whether some of it is in quotes.
type Part = (String, bool);

/// Reads a line of plain commands, joined by `&&`, `||`, `|`, `;`, `&` and line ends.
fn plain(line: &str) -> Option<Vec<Plain>> {
    let mut commands = Vec::new();
    let (mut words, mut word) = (Vec::new(), None::<Part>);
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let quoted = quoted(&mut chars, char)?;
                let (text, is_quoted) = word.get_or_insert_default();
                text.push_str(&quoted);
                *is_quoted = true;
            }
            ';' | '&' | '|' | '\n' => {
                words.extend(word.take());
                let is_doubled = char != '\n' && char != ';' && chars.next_if_eq(&char).is_some();
                let is_loose = matches!((char, is_doubled), ('&', false) | ('\n' | ';', _));
                match simple(std::mem::take(&mut words))? {
                    Some(command) => commands.push(command),
                    // Nothing between two separators is no command line, but at a line end.
                    None if char == '\n' => {}
                    None => return None,
                }
                // What follows an operator that joins has to be there; the end of the line is looked at below.
                if !is_loose && chars.clone().all(char::is_whitespace) {
                    return None;
                }
            }
            _ if is_plain(char) => word.get_or_insert_default().0.push(char),
            _ => return None,
        }
    }
    words.extend(word);
    commands.extend(simple(words)?);
    (!commands.is_empty()).then_some(commands)
}

fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | ':' | ',' | '@' | '%' | '+' | '=')
}

fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, end: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match chars.next()? {
            char if char == end => return Some(text),
            '$' | '`' | '\\' if end == '"' => return None,
            char => text.push(char),
        }
    }
}

/// Returns one command with the variables in front of it; `Some(None)` where there is nothing.
#[expect(clippy::option_option, reason = "nothing and nothing plain are two things")]
fn simple(words: Vec<Part>) -> Option<Option<Plain>> {
    let (mut variables, mut argv) = (Vec::new(), Vec::new());
    for (word, is_quoted) in words {
        match word.split_once('=').filter(|_| argv.is_empty()) {
            Some((name, _)) if is_variable(name) && !is_quoted => variables.push(name.to_owned()),
            Some(_) => return None,
            None => argv.push(word),
        }
    }
    match argv.first() {
        None if variables.is_empty() => Some(None),
        // A bare assignment; a keyword; a program without a name.
        None => None,
        Some(program) if program.is_empty() || KEYWORDS.contains(&program.as_str()) => None,
        Some(program) if ["for", "case", "function", "select", "in"].contains(&program.as_str()) => None,
        Some(_) => Some(Some(Plain { argv, variables })),
    }
}

fn is_variable(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|char| char.is_ascii_alphanumeric() || char == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain_argvs(line: &str) -> Option<Vec<String>> {
        Some(Commands::of_line(line).plain?.iter().map(|command| command.argv.join(" ")).collect())
    }

    #[test]
    fn plain_lines_are_understood() {
        let cases = [
            ("cargo test --all", vec!["cargo test --all"]),
            ("a && b || c | d; e & f", vec!["a", "b", "c", "d", "e", "f"]),
            ("git commit -m 'a; rm b' \"c\"\n\ngit push;", vec!["git commit -m a; rm b c", "git push"]),
            ("A=1 B_2=x make", vec!["make"]),
        ];
        for (line, expected) in cases {
            assert_eq!(plain_argvs(line).unwrap_or_default(), expected, "{line}");
        }
        let commands = Commands::of_line("A=1 make").plain.expect("it is plain");
        assert_eq!(commands[0].variables, ["A"]);
    }

    #[test]
    fn everything_else_is_not_plain() {
        let lines = [
            "",
            "  ",
            "a $(b)",
            "a `b`",
            "a $B",
            "a \"$B\"",
            "a > f",
            "a < f",
            "a 2>&1",
            "a *",
            "a ?",
            "a [b]",
            "a ~",
            "(a)",
            "{ a; }",
            "! a",
            "if a",
            "for b",
            "a\\ b",
            "a 'b",
            "a \"b",
            "a # b",
            "A=1",
            "\"A=1\" b",
            "a &&",
            "&& a",
            "a ; ; b",
            "a <<E\nb\nE",
            "a {b,c}",
            "'' a",
            "a |",
            "a || ",
            "f() a",
            "a\rb",
            "a \u{0}b",
            "=x a",
        ];
        for line in lines {
            assert_eq!(plain_argvs(line), None, "{line:?}");
        }
    }

    #[test]
    fn whatever_may_run_is_found() {
        let lines = [
            "rm x",
            "a && rm x",
            "a; rm x",
            "a | rm x",
            "a || rm x",
            "a & rm x",
            "a\nrm x",
            "(rm x)",
            "{ rm x; }",
            "! rm x",
            "if a; then rm x; fi",
            "for b in c; do rm x; done",
            "while rm x; do a; done",
            "A=1 rm x",
            "A=$(rm x)",
            "a $(rm x)",
            "a \"$(rm x)\"",
            "a `rm x`",
            "a \"`rm x`\"",
            "a <(rm x)",
            "a > $(rm x)",
            "a > \"`rm x`\"",
            "a > >(rm x)",
            "sudo rm x",
            "sudo -u b rm x",
            "env -i A=1 rm x",
            "nohup rm x",
            "timeout 5 rm x",
            "xargs -n1 rm x",
            "find . -exec rm x {} ;",
            "sh -c 'rm x'",
            "bash -lc \"a && rm x\"",
            "eval rm x",
            "eval 'rm x'",
            "sh -c \"sh -c 'rm x'\"",
            "/usr/bin/env rm x",
            "sudo sh -c 'a; rm x'",
            "exec rm x",
            "command rm x",
            "time rm x",
            "r\\m x",
            "r''m x",
            "\"rm\" x",
            "a 2>&1; rm x",
            "a >f rm; rm x",
            ">f rm x",
            "2>f rm x",
            "case a in b) rm x;; esac",
            "f() { rm x; }; f",
            "cat <<E\nrm x\nE",
            "a ${B:-$(rm x)}",
            "a \\\n; rm x",
            "if rm x",
            "env --split-string='rm x'",
            "env -S 'rm x'",
            "bash5 -c 'rm x'",
            "$(echo a) rm x",
            "alias r=rm; r x",
            "alias r='rm x'; r",
            "alias b=c 'a=b' c=rm; a x",
            "alias s='sudo ' r=rm; s r x",
            "alias ls='ls -l' r='a; rm'\nr x",
            "command alias r=rm; r x",
            "eval 'alias r=rm'; r x",
            "alias a='alias r=rm'; a; r x",
            "bash -c 'alias r=rm\nr x'",
            "hash -p rm r; r x",
            "f(){ rm x;};f",
            "function f { rm x; }; f",
        ];
        for line in lines {
            let found = Commands::of_line(line).suspects;
            let is_rm = |suspect: &Suspect| matches!(suspect.words(), [rm, x, ..] if rm.text == "rm" && x.text == "x");
            assert!(found.iter().any(is_rm), "{line:?}: {found:?}");
        }
    }

    #[test]
    fn arguments_are_no_commands() {
        for line in [
            "alias ls='ls -l'; ls rm x",
            "alias a=b b=a; a rm x",
            "echo rm x",
            "echo 'rm x'",
            "echo \"; rm x\"",
            "a >rm x",
            "git commit -m 'a; rm x'",
        ] {
            let found = Commands::of_line(line).suspects;
            assert!(!found.iter().any(|suspect| suspect.words()[0].text == "rm"), "{line:?}: {found:?}");
        }
    }

    #[test]
    fn a_program_that_stands_there_is_no_other_one() {
        for line in ["sudo cat $X", "nohup cat *", "exec cat \"$X\"", "sudo env cat $X rm x"] {
            let found = Commands::of_line(line).suspects;
            let is_open = |suspect: &Suspect| suspect.words()[0].certainty != Certainty::Literal;
            assert!(!found.iter().any(is_open), "{line:?}: {found:?}");
            assert!(found.iter().any(|suspect| suspect.words()[0].text == "cat"), "{line:?}");
            assert!(!found.iter().any(|suspect| suspect.words()[0].text == "rm"), "{line:?}");
        }
        // Where a value of an option stands, nobody knows which word is the program.
        let found = Commands::of_line("sudo -u b $X").suspects;
        assert!(found.iter().any(|suspect| suspect.words()[0].text == "$X"), "{found:?}");
    }

    #[test]
    fn nothing_is_too_odd() {
        for line in [
            "$", "$(", "`", "\"", "'", "\\", "<", ">(", "${", "$((1+(2", "a$", "$$", "\u{7f}", "{", "}",
            "(((",
        ] {
            Commands::of_line(line);
        }
        let deep = "$(".repeat(50_000);
        Commands::of_line(&deep);
        let names: Vec<String> = (0..500).map(|n| format!("alias a{n}='a{} a0 '; ", n + 1)).collect();
        let names = names.concat();
        Commands::of_line(&format!("{names} {}", "a0 ".repeat(5_000)));
        Commands::of_line(&format!("xargs {}", "alias ".repeat(20_000)));
        Commands::of_line(&format!("alias a=b; xargs {}", "a ".repeat(20_000)));
        let nested = (0..200).fold("rm x".to_owned(), |line, _| format!("sh -c '{line}'"));
        Commands::of_line(&nested);
    }
}
