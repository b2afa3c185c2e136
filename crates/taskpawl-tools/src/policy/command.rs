//! What a command line would run, read in two ways: exactly, for rules that allow, and with suspicion, for rules that ask or deny.

use std::sync::Arc;

/// How deep command lines are looked into that stand in others, as in `sh -c '…'`.
const DEPTH: usize = 8;

/// Programs that run what their arguments say.
const RUNNERS: &[&str] = &[
    ".",
    "ash",
    "bash",
    "builtin",
    "busybox",
    "bwrap",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "csh",
    "dash",
    "doas",
    "env",
    "eval",
    "exec",
    "fd",
    "find",
    "firejail",
    "fish",
    "flock",
    "ionice",
    "ksh",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "parallel",
    "pkexec",
    "proxychains",
    "runuser",
    "script",
    "setpriv",
    "setsid",
    "sh",
    "source",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tcsh",
    "time",
    "timeout",
    "toybox",
    "trap",
    "unbuffer",
    "unshare",
    "watch",
    "xargs",
    "zsh",
];

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

/// Words of which the first may be a program; the ends of one list share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    list: Arc<[Word]>,
    from: usize,
}

impl Suspect {
    pub(crate) fn words(&self) -> &[Word] {
        &self.list[self.from..]
    }
}

impl Commands {
    /// Reads the argv of a program.
    pub(crate) fn of_argv(argv: &[String]) -> Self {
        let words: Vec<Word> = argv.iter().map(|word| Word::literal(word)).collect();
        let plain = vec![Plain { argv: argv.to_vec(), variables: Vec::new() }];
        let mut suspects = Vec::new();
        suspect(&words, 0, &mut suspects);
        Self { plain: Some(plain), suspects }
    }

    /// Reads a command line for `/bin/sh`.
    pub(crate) fn of_line(line: &str) -> Self {
        let mut suspects = Vec::new();
        suspect_line(line, 0, &mut suspects);
        Self { plain: plain(line), suspects }
    }

    /// A program that runs what it is told may be told by its input.
    pub(crate) fn with_input(mut self, input: &str) -> Self {
        if self.suspects.iter().any(|suspect| suspect.words().first().is_some_and(is_runner)) {
            suspect_line(input, 0, &mut self.suspects);
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

// With suspicion.

/// Cuts a line wherever a command may begin, and looks at each piece.
fn suspect_line(line: &str, depth: usize, found: &mut Vec<Suspect>) {
    if depth > DEPTH {
        // Nobody nests so deep who does not hide something.
        let word = Word { text: line.to_owned(), certainty: Certainty::AnyWords };
        found.push(Suspect { list: Arc::new([word]), from: 0 });
        return;
    }
    let mut reader = Reader { words: Vec::new(), word: None, pieces: Vec::new(), inner: Vec::new() };
    reader.read(line);
    for words in reader.pieces {
        suspect(&words, depth, found);
    }
    for line in reader.inner {
        suspect_line(&line, depth + 1, found);
    }
}

/// Looks at one command: without what stands before its program, and at what that runs in turn.
fn suspect(words: &[Word], depth: usize, found: &mut Vec<Suspect>) {
    let is_before = |word: &&Word| {
        let is_assignment =
            word.text.split_once('=').is_some_and(|(name, _)| is_variable(name.trim_end_matches('+')));
        is_assignment || KEYWORDS.contains(&word.text.as_str())
    };
    let skipped = words.iter().take_while(is_before).count();
    let words: Arc<[Word]> = words[skipped..].into();
    if words.is_empty() {
        return;
    }
    found.push(Suspect { list: Arc::clone(&words), from: 0 });
    let mut from = 0;
    // Where it is clear what is run, nothing else of the line is suspected of being it.
    while runs_first_word(&words[from]) && words.get(from + 1).is_some_and(is_program) {
        from += 1;
        found.push(Suspect { list: Arc::clone(&words), from });
    }
    let program = &words[from];
    if !is_runner(program) {
        return;
    }
    if is_shell(program) && !words[from + 1..].iter().any(|word| !word.text.starts_with(['-', '+'])) {
        // What it runs comes through a pipe.
        let word = Word { text: String::new(), certainty: Certainty::AnyWords };
        found.push(Suspect { list: Arc::new([word]), from: 0 });
    }
    for (position, word) in words.iter().enumerate().skip(from + 1) {
        found.push(Suspect { list: Arc::clone(&words), from: position });
        if word.certainty == Certainty::Literal && word.text.contains(|char: char| !is_plain(char)) {
            suspect_line(&word.text, depth + 1, found);
        }
        // `--split-string=…`, `-c…`: what is glued to an option.
        if let Some((_, value)) = word.text.split_once('=').filter(|(name, _)| name.starts_with('-')) {
            suspect_line(value, depth + 1, found);
        }
    }
}

/// Returns whether a program runs the first of its arguments that is no option, with all that follow.
fn runs_first_word(program: &Word) -> bool {
    let is_such =
        |name| ["builtin", "command", "doas", "env", "exec", "nohup", "setsid", "sudo"].contains(&name);
    program.certainty == Certainty::Literal && is_such(name_of(program))
}

/// Returns whether a word names a program, and is neither an option nor a variable.
fn is_program(word: &Word) -> bool {
    word.certainty == Certainty::Literal
        && !word.text.is_empty()
        && word.text.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/'))
        && !word.text.starts_with('-')
}

fn is_runner(program: &Word) -> bool {
    program.certainty != Certainty::Literal || RUNNERS.contains(&name_of(program))
}

fn is_shell(program: &Word) -> bool {
    name_of(program).ends_with("sh") && RUNNERS.contains(&name_of(program)) && name_of(program) != "ssh"
}

/// Returns the name of a program without its directory, and without a version, as in `bash5`.
fn name_of(program: &Word) -> &str {
    let name = program.text.rsplit('/').next().unwrap_or_default();
    if RUNNERS.contains(&name) {
        return name;
    }
    name.trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-'))
}

/// Reads a line as a shell would, roughly, and rather finds too many commands than too few.
struct Reader {
    words: Vec<Word>,
    word: Option<Word>,
    pieces: Vec<Vec<Word>>,
    /// Command lines inside: substitutions.
    inner: Vec<String>,
}

impl Reader {
    fn read(&mut self, line: &str) {
        let mut chars = line.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                '\\' => match chars.next() {
                    Some('\n') | None => {}
                    Some(char) => self.push(char),
                },
                '\'' => self.single(&mut chars),
                '"' => self.double(&mut chars),
                '$' | '`' => self.dollar(&mut chars, char, Certainty::AnyWords),
                '*' | '?' | '[' | '~' => {
                    self.push(char);
                    self.raise(Certainty::AnyWords);
                }
                '{' | '}'
                    if self.word.is_some() || chars.peek().is_some_and(|next| !next.is_whitespace()) =>
                {
                    self.push(char);
                    self.raise(Certainty::AnyWords);
                }
                '<' | '>' => self.redirect(&mut chars),
                ';' | '&' | '|' | '\n' | '\r' | '(' | ')' | '{' | '}' => self.cut(),
                char if char.is_whitespace() => self.end_word(),
                char => self.push(char),
            }
        }
        self.cut();
    }

    fn push(&mut self, char: char) {
        self.word.get_or_insert_with(|| Word::literal("")).text.push(char);
    }

    fn raise(&mut self, certainty: Certainty) {
        let word = self.word.get_or_insert_with(|| Word::literal(""));
        if word.certainty != Certainty::AnyWords {
            word.certainty = certainty;
        }
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn cut(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.pieces.push(std::mem::take(&mut self.words));
        }
    }

    fn single(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        self.word.get_or_insert_with(|| Word::literal(""));
        for char in chars.by_ref().take_while(|char| *char != '\'') {
            self.push(char);
        }
    }

    fn double(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        self.word.get_or_insert_with(|| Word::literal(""));
        while let Some(char) = chars.next() {
            match char {
                '"' => return,
                '\\' => {
                    if let Some(char) = chars.next() {
                        self.push(char);
                    }
                }
                '$' | '`' => self.dollar(chars, char, Certainty::OneWord),
                char => self.push(char),
            }
        }
    }

    /// Takes an expansion; a command in it is looked at for itself.
    fn dollar(
        &mut self,
        chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
        first: char,
        certainty: Certainty,
    ) {
        self.push(first);
        let next = chars.peek().copied();
        // `$'…'` is text with escapes that are not read here.
        let is_alone = first == '$'
            && next.is_none_or(|next| !next.is_alphanumeric() && !"_({'\"@*#?-$!`".contains(next));
        if is_alone {
            return;
        }
        self.raise(certainty);
        if first == '`' {
            let text: String = chars.by_ref().take_while(|char| *char != '`').collect();
            self.inner.push(text.replace("\\`", "`"));
        } else if chars.next_if_eq(&'(').is_some() {
            self.inner.push(until_closed(chars, '(', ')'));
        } else if chars.next_if_eq(&'{').is_some() {
            self.inner.push(until_closed(chars, '{', '}'));
        }
    }

    /// Skips the target of a redirection: it is no argument. What stands in a here-document is looked at as if it were commands.
    fn redirect(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        // The number in front of it belongs to it.
        if self.word.as_ref().is_some_and(|word| word.text.chars().all(|char| char.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        if chars.next_if_eq(&'(').is_some() {
            let inner = until_closed(chars, '(', ')');
            self.inner.push(inner);
            self.words.push(Word { text: "<()".to_owned(), certainty: Certainty::OneWord });
            return;
        }
        while chars.next_if(|char| matches!(char, '<' | '>' | '&' | '|' | '-' | ' ' | '\t')).is_some() {}
        let before = std::mem::take(&mut self.words);
        let mut target = Reader { words: Vec::new(), word: None, pieces: Vec::new(), inner: Vec::new() };
        let mut text = String::new();
        while let Some(char) =
            chars.next_if(|char| !char.is_whitespace() && !matches!(char, ';' | '&' | '|' | '<' | '>' | ')'))
        {
            text.push(char);
            if char == '(' {
                text.push_str(&until_closed(chars, '(', ')'));
                text.push(')');
            } else if matches!(char, '\'' | '"' | '`') {
                text.extend(chars.by_ref().take_while(|next| *next != char));
                text.push(char);
            }
        }
        if let Some(inner) = text.strip_prefix('(') {
            self.inner.push(inner.to_owned());
        }
        target.read(&text);
        self.inner.extend(target.inner);
        self.words = before;
    }
}

fn until_closed(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, open: char, close: char) -> String {
    let (mut depth, mut text) = (1, String::new());
    for char in chars.by_ref() {
        if char == open {
            depth += 1;
        } else if char == close {
            depth -= 1;
            if depth == 0 {
                break;
            }
        }
        text.push(char);
    }
    text
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
        ];
        for line in lines {
            let found = Commands::of_line(line).suspects;
            let is_rm = |suspect: &Suspect| matches!(suspect.words(), [rm, x, ..] if rm.text == "rm" && x.text == "x");
            assert!(found.iter().any(is_rm), "{line:?}: {found:?}");
        }
    }

    #[test]
    fn arguments_are_no_commands() {
        for line in ["echo rm x", "echo 'rm x'", "echo \"; rm x\"", "a >rm x", "git commit -m 'a; rm x'"] {
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
        let nested = (0..200).fold("rm x".to_owned(), |line, _| format!("sh -c '{line}'"));
        Commands::of_line(&nested);
    }
}
