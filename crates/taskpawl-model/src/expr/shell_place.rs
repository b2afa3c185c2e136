//! Classifies values in a shell command: plain arguments are data, all other values influence what runs.
//!
//! A value becomes one quoted word, so no shell parses it as syntax. But the program that gets the word may execute it.
//! In doubt a value counts as influential, and the call needs an approval. Commands with substitutions or
//! here-documents are not analyzed.

use taskpawl_text::{RUN_BY_WORD, RUNNERS, SHELLS};

/// A part of a command: text of the author, or a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'p> {
    Written(&'p str),
    /// A value as one quoted word.
    Word(&'p str),
    /// A value without quotes.
    Raw,
}

/// Programs that execute their arguments or input, directly or through another program. Interpreters are listed without
/// a version.
const EXECUTORS: &[&str] = &[
    "alias",
    "ash",
    "awk",
    "bash",
    "builtin",
    "bun",
    "bunx",
    "busybox",
    "cd",
    "chroot",
    "command",
    "csh",
    "dash",
    "deno",
    "doas",
    "ed",
    "emacs",
    "env",
    "eval",
    "exec",
    "export",
    "fish",
    "flock",
    "gawk",
    "gdb",
    "gmake",
    "ionice",
    "just",
    "ksh",
    "ltrace",
    "lua",
    "make",
    "mawk",
    "mysql",
    "nawk",
    "nice",
    "ninja",
    "node",
    "nodejs",
    "nohup",
    "nsenter",
    "osascript",
    "parallel",
    "perl",
    "php",
    "pipx",
    "powershell",
    "psql",
    "pushd",
    "pwsh",
    "python",
    "read",
    "readonly",
    "Rscript",
    "ruby",
    "script",
    "sed",
    "set",
    "setsid",
    "sh",
    "source",
    "sqlite",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "taskset",
    "tclsh",
    "tcsh",
    "time",
    "timeout",
    "trap",
    "unshare",
    "uvx",
    "npx",
    "vi",
    "vim",
    "watch",
    "xargs",
    "zsh",
];

/// Programs that run code of their arguments, but no commands.
const INTERPRETERS: &[&str] = &[
    "ansible",
    "ansible-playbook",
    "clisp",
    "coverage",
    "dart",
    "elixir",
    "erl",
    "escript",
    "fab",
    "ghci",
    "gradle",
    "gradlew",
    "groovy",
    "guile",
    "invoke",
    "ipython",
    "java",
    "jshell",
    "julia",
    "jupyter",
    "kotlin",
    "nox",
    "octave",
    "pytest",
    "racket",
    "rake",
    "runghc",
    "sbcl",
    "scala",
    "scons",
    "swipl",
    "tox",
    "ts-node",
    "tsx",
];

/// Subcommands that run or install what their arguments name, beside those of [`RUN_BY_WORD`].
const BY_WORD: &[(&str, &[&str])] = &[
    ("cargo", &["install", "run"]),
    ("gem", &["exec", "install"]),
    ("git", &["bisect", "difftool", "filter-branch", "foreach", "mergetool"]),
    ("go", &["generate", "install", "run", "tool"]),
    ("npm", &["add", "i", "install", "run", "run-script"]),
    ("pip", &["install"]),
    ("pnpm", &["add", "i", "install", "run"]),
    ("yarn", &["add", "install"]),
];

/// Programs that search for files, and run commands only by options.
const FINDERS: &[&str] = &["fd", "fdfind", "find"];

/// Their options.
const FINDER_OPTIONS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Options whose argument is code.
const CODE_OPTIONS: &[&str] = &["-c", "-e"];

/// Shell keywords before a program, which make several commands one compound command.
const RESERVED: &[&str] = &[
    "!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac",
    "select", "in", "function",
];

/// Returns whether each value in a command is data by construction, in order.
pub(super) fn data_words(parts: &[Part<'_>]) -> Vec<bool> {
    let mut reader = Reader::default();
    for part in parts {
        match part {
            Part::Written(text) => reader.written(text),
            Part::Word(text) => reader.value(text, true),
            Part::Raw => reader.value("", false),
        }
    }
    reader.end_unit();
    // In a compound command, a value in one part may reach a program in another part, for example through a variable.
    if reader.is_opaque || reader.runs_written || (reader.is_compound && reader.is_executing) {
        reader.data.fill(false);
    }
    reader.data
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    Single,
    Double,
}

/// The current word.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// True if anything was read, even an empty pair of quotes.
    has_begun: bool,
    /// The values in the word, by index.
    values: Vec<usize>,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the text so far, on its own")]
struct Reader {
    data: Vec<bool>,
    quote: Option<Quote>,
    is_escaped: bool,
    in_comment: bool,
    word: Word,
    /// True if the next word is the target of a redirection.
    is_redirected: bool,
    last: Option<char>,
    /// The words of the current command, starting with its program.
    words: Vec<String>,
    /// The index of the first value of the unit, which is a sequence of commands connected by pipes.
    unit: usize,
    /// True if a program of the unit executes its arguments or input.
    unit_executes: bool,
    /// True if this holds for any unit of the command.
    is_executing: bool,
    /// True if commands are nested, so that units influence each other.
    is_compound: bool,
    /// True if the command has parts that are not analyzed.
    is_opaque: bool,
    /// The files that the command has written so far.
    written: Vec<String>,
    /// True if such a file is run afterwards.
    runs_written: bool,
}

impl Reader {
    fn written(&mut self, text: &str) {
        self.is_opaque |= ["`", "$(", "<(", ">(", "<<", "$'"].iter().any(|opening| text.contains(opening));
        for character in text.chars() {
            self.character(character);
            self.last = Some(character);
        }
    }

    fn value(&mut self, text: &str, is_word: bool) {
        self.word.has_begun = true;
        self.word.values.push(self.data.len());
        self.word.text.push_str(text);
        self.data.push(is_word);
        self.last = None;
    }

    fn character(&mut self, character: char) {
        if self.in_comment {
            self.in_comment = character != '\n';
        }
        if std::mem::take(&mut self.is_escaped) {
            if character != '\n' {
                self.push(character);
            }
            return;
        }
        match (self.quote, character) {
            _ if self.in_comment => {}
            (Some(Quote::Single), '\'') | (Some(Quote::Double), '"') => self.quote = None,
            (None | Some(Quote::Double), '\\') => self.is_escaped = true,
            (Some(_), character) => self.push(character),
            (None, '\'') => self.open(Quote::Single),
            (None, '"') => self.open(Quote::Double),
            (None, '#') if !self.word.has_begun => self.in_comment = true,
            (None, character) => self.plain(character),
        }
    }

    fn open(&mut self, quote: Quote) {
        self.word.has_begun = true;
        self.quote = Some(quote);
    }

    fn push(&mut self, character: char) {
        self.word.has_begun = true;
        self.word.text.push(character);
    }

    fn plain(&mut self, character: char) {
        match character {
            ' ' | '\t' => self.end_word(),
            '>' | '<' => {
                self.end_word();
                self.is_redirected = true;
            }
            // `2>&1` and `&>file` are redirections.
            '&' if matches!(self.last, Some('>' | '<')) => {}
            '|' if self.last == Some('|') => self.end_unit(),
            '|' if self.last == Some('>') => {}
            '|' => self.end_command(),
            ';' | '\n' | '&' => self.end_unit(),
            '(' | ')' => {
                self.end_command();
                self.is_compound = true;
            }
            character => self.push(character),
        }
    }

    fn end_word(&mut self) {
        if !self.word.has_begun {
            return;
        }
        let word = std::mem::take(&mut self.word);
        if std::mem::take(&mut self.is_redirected) {
            self.decide(&word.values);
            self.runs_written |= self.runs_arguments() && self.has_written(&word.text);
            self.written.push(plain_path(&word.text).to_owned());
        } else if self.words.is_empty() && word.values.is_empty() && RESERVED.contains(&word.text.as_str()) {
            self.is_compound = true;
            // The words of these keywords are used by the commands inside.
            self.unit_executes |= matches!(word.text.as_str(), "for" | "case" | "select");
        } else if self.words.is_empty() && is_assignment(&word.text) {
            self.decide(&word.values);
        } else {
            self.argument(word);
        }
    }

    fn argument(&mut self, word: Word) {
        let is_program = self.words.is_empty();
        let follows_code = self.runs_arguments();
        let is_plain = !word.text.starts_with('-') && !word.text.contains("://");
        if is_program || follows_code || !is_plain {
            self.decide(&word.values);
        }
        // A program name from a variable or a value may be any program.
        let is_unknown = is_program && (word.text.contains('$') || !word.values.is_empty());
        let is_first = is_plain && !self.words.iter().skip(1).any(|word| !word.starts_with('-'));
        self.runs_written |= is_first && (is_program || follows_code) && self.has_written(&word.text);
        if self.words.first().is_some_and(|program| program == "tee") {
            self.written.push(plain_path(&word.text).to_owned());
        }
        self.words.push(word.text);
        self.unit_executes |= is_unknown || self.runs_arguments();
    }

    /// Returns whether the words of the current command run their arguments.
    fn runs_arguments(&self) -> bool {
        let Some((program, arguments)) = self.words.split_first() else { return false };
        let is_code = |word: &String| CODE_OPTIONS.contains(&word.as_str()) || executes(word);
        self.words.iter().any(is_code) || runs(program, arguments)
    }

    fn has_written(&self, word: &str) -> bool {
        self.written.iter().any(|path| path == plain_path(word))
    }

    /// Marks values as influential.
    fn decide(&mut self, values: &[usize]) {
        for value in values {
            self.data[*value] = false;
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.words.clear();
        self.is_redirected = false;
    }

    fn end_unit(&mut self) {
        self.end_command();
        if std::mem::take(&mut self.unit_executes) {
            self.is_executing = true;
            self.data[self.unit..].fill(false);
        }
        self.unit = self.data.len();
    }
}

/// Returns whether a word names a program that executes its arguments or input.
fn executes(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let is_listed = |name: &str| EXECUTORS.contains(&name);
    is_listed(name)
        || is_listed(name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-')))
}

/// Returns whether a program runs its arguments, because of its name or of a subcommand.
fn runs(program: &str, arguments: &[String]) -> bool {
    let base = program.rsplit('/').next().unwrap_or(program);
    let name = base.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let has = |words: &[&str]| arguments.iter().any(|word| words.contains(&word.as_str()));
    if FINDERS.contains(&name) {
        return has(FINDER_OPTIONS);
    }
    let is_listed = |name: &str| [RUNNERS, SHELLS, INTERPRETERS].iter().any(|list| list.contains(&name));
    // `.` is a runner, and a directory where it is an argument.
    is_listed(base)
        || is_listed(name)
        || BY_WORD.iter().any(|(program, words)| *program == name && has(words))
        || RUN_BY_WORD.iter().any(|(words, programs)| programs.contains(&name) && has(words))
}

/// Returns a path without a leading `./`.
fn plain_path(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Analyzes a command in which `%value%` is a value.
    fn places(command: &str) -> Vec<bool> {
        let parts = command.split('%').enumerate();
        let part = |(position, text)| if position % 2 == 0 { Part::Written(text) } else { Part::Word(text) };
        data_words(&parts.map(part).collect::<Vec<_>>())
    }

    #[test]
    fn plain_arguments_are_data() {
        for command in [
            "echo %touch x%",
            "git commit -m %message%",
            "cd here; echo %a% %b%",
            "npm test && echo %a%",
            "/usr/bin/printf x %a%",
            "echo %a% 2>&1 | tee log",
            "echo x%a%y > out",
            "A=1 echo %a% # %b%",
            "find . -name %a%",
            "git commit -m %message%",
            "printf %a% > data.json && node process.js data.json",
            "printf %a% > out && cat out",
            "uv --version; echo %a%",
        ] {
            assert!(places(command).iter().all(|is_data| *is_data), "{command}");
        }
    }

    #[test]
    fn values_that_influence_what_runs_are_not_data() {
        for command in [
            "%ls%",
            "A=1 %ls%",
            "PATH=%/tmp% ls",
            "echo %-n%",
            "curl %https://x%",
            "curl https://%x%",
            "sh -c %ls%",
            "/bin/bash -lc %ls%",
            "python3.12 %script%",
            "docker exec box sh -c %ls%",
            "env %ls%",
            "ssh host %ls%",
            "make %x%",
            "xargs %ls%",
            "echo %ls% | sh",
            "(echo %ls%; true) | sh",
            "echo %ls% | tee a | env -i sh",
            "if %ls%; then true; fi",
            "for x in %a%; do sh -c \"$x\"; done",
            "X=%a%; eval \"$X\"",
            "echo $(%ls%)",
            "echo `date` %a%",
            "$TOOL %a%",
            "echo a > %file%",
            "cat < %file%",
            "cmd 2>&1 -c %a%",
            ". %file%",
            "set -- %a%; $1",
            "--opt=%a%",
            "git log --exec=%a%",
            "find . -exec sh %a%",
            "find . -exec prlimit %a%",
            "prlimit %a%",
            "setarch x86_64 %a%",
            "uv run %a%",
            "go run %a%",
            "docker run --rm %image%",
            "podman exec box %a%",
            "pip install %package%",
            "pip3 install %package%",
            "npm run %script%",
            "git bisect run %a%",
            "git submodule foreach %a%",
            "java -jar %a%",
            "tsx %a%",
            "pytest %a%",
            "printf %a% > f.sh && sh f.sh",
            "printf %a% > ./f.sh; sh -x f.sh",
            "printf %a% | tee f.sh && bash ./f.sh",
            "printf %a% > run-me; chmod +x run-me; ./run-me",
            "printf %a% > f.sh && sh < f.sh",
        ] {
            assert!(places(command).iter().all(|is_data| !is_data), "{command}");
        }
        assert_eq!(data_words(&[Part::Written("echo "), Part::Raw]), [false]);
    }
}
