//! What a command line may run: read with suspicion, for rules that ask or deny.

use std::sync::Arc;

use super::alias;
use super::filled::{filled, is_argument};
use super::git::{self, is_git};
use super::reader::Reader;
use super::{Certainty, KEYWORDS, Word, is_plain, is_variable};

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
    "capsh",
    "catchsegv",
    "cgexec",
    "choom",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "csh",
    "daemonize",
    "dash",
    "dbus-launch",
    "dbus-run-session",
    "direnv",
    "doas",
    "dumb-init",
    "eatmydata",
    "entr",
    "env",
    "eval",
    "exec",
    "fakeroot",
    "faketime",
    "fd",
    "fdfind",
    "find",
    "firejail",
    "fish",
    "flock",
    "gosu",
    "i386",
    "ionice",
    "ksh",
    "linux32",
    "linux64",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "prlimit",
    "proxychains",
    "rlwrap",
    "runuser",
    "schedtool",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "sh",
    "source",
    "ssh",
    "ssh-agent",
    "sshpass",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "systemd-run",
    "taskset",
    "tcsh",
    "time",
    "timeout",
    "tini",
    "torify",
    "torsocks",
    "toybox",
    "trap",
    "uclampset",
    "uname26",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "x86_64",
    "xargs",
    "xvfb-run",
    "zsh",
];

/// Words of which the first may be a program; the ends of one list share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    list: Arc<[Word]>,
    from: usize,
}

impl Suspect {
    /// Returns the words, of which there is at least one.
    pub(crate) fn words(&self) -> &[Word] {
        &self.list[self.from..]
    }

    /// Returns what tells the list that it shares with others.
    pub(super) fn list(&self) -> *const Word {
        self.list.as_ptr()
    }

    /// Returns whether the program runs what it is told.
    pub(super) fn is_runner(&self) -> bool {
        self.words().first().is_some_and(is_runner)
    }
}

/// Everything of a call that may be a command.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    pub(super) found: Vec<Suspect>,
}

impl Suspicion {
    /// Looks at the words of one command.
    pub(super) fn of_words(words: &[Word]) -> Self {
        let mut suspicion = Self::default();
        suspicion.add(words, 0);
        alias::expand(&mut suspicion);
        suspicion
    }

    /// Goes on with a line that a shell would read.
    pub(super) fn with_line(mut self, line: &str) -> Self {
        self.read(line, 0);
        alias::expand(&mut self);
        self
    }

    /// Adds what may be any command.
    pub(super) fn add_unknown(&mut self) {
        self.push_unknown(String::new());
    }

    /// Looks at the text of a line before words that are read already.
    pub(super) fn read_before(&mut self, line: &str, rest: &[Word]) {
        let Reader { mut pieces, inner, .. } = Reader::of(line);
        let mut last = pieces.pop().unwrap_or_default();
        last.extend_from_slice(rest);
        for words in pieces.iter().chain([&last]) {
            self.add(words, 0);
        }
        for line in inner {
            self.read(&line, 1);
        }
    }

    fn push_unknown(&mut self, text: String) {
        let word = Word { text, certainty: Certainty::AnyWords };
        self.found.push(Suspect { list: Arc::new([word]), from: 0 });
    }

    /// Cuts a line wherever a command may begin, and looks at each piece.
    fn read(&mut self, line: &str, depth: usize) {
        if depth > DEPTH {
            // Nobody nests so deep who does not hide something.
            return self.push_unknown(line.to_owned());
        }
        let Reader { pieces, inner, .. } = Reader::of(line);
        for words in pieces {
            self.add(&words, depth);
        }
        for line in inner {
            self.read(&line, depth + 1);
        }
    }

    /// Looks at one command: without what stands before its program, and at what that runs in turn.
    fn add(&mut self, words: &[Word], depth: usize) {
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
        self.found.push(Suspect { list: Arc::clone(&words), from: 0 });
        let mut from = 0;
        // Where it is clear what is run, nothing else of the line is suspected of being it.
        while runs_first_word(&words[from]) && words.get(from + 1).is_some_and(is_program) {
            from += 1;
            self.found.push(Suspect { list: Arc::clone(&words), from });
        }
        if is_git(&words[from]) {
            self.add_git(&words, from, depth);
        } else if is_runner(&words[from]) {
            match filled(&words[from..]) {
                Some(filled) => {
                    if filled.is_open {
                        self.add_unknown();
                    }
                    self.add_run(&filled.words.into(), 0, depth);
                }
                None => self.add_run(&words, from, depth),
            }
        }
    }

    /// Looks at what the git at `from` runs because its arguments say so.
    fn add_git(&mut self, words: &Arc<[Word]>, from: usize, depth: usize) {
        if depth > DEPTH {
            return self.add_unknown();
        }
        for run in git::runs(&words[from + 1..]) {
            match run {
                git::Run::Line(line) => self.read(&line, depth + 1),
                git::Run::Behind(at) => self.add_run(words, from + 1 + at, depth + 1),
                git::Run::Unknown => self.add_unknown(),
            }
        }
    }

    /// Looks at what the runner at `from` may run.
    fn add_run(&mut self, words: &Arc<[Word]>, from: usize, depth: usize) {
        let program = &words[from];
        if is_shell(program) && !words[from + 1..].iter().any(|word| !word.text.starts_with(['-', '+'])) {
            // What it runs comes through a pipe.
            self.add_unknown();
        }
        if let Some(at) = words[from + 1..].iter().position(is_git) {
            self.add_git(words, from + 1 + at, depth);
        }
        for (position, word) in words.iter().enumerate().skip(from + 1) {
            // Behind a command there are unknown words alone where something puts them.
            if is_argument(&words[position - 1], word) || is_appended(word) {
                continue;
            }
            self.found.push(Suspect { list: Arc::clone(words), from: position });
            if word.certainty == Certainty::Literal && word.text.contains(|char: char| !is_plain(char)) {
                self.read(&word.text, depth + 1);
            }
            // One word here is a whole line there.
            if word.certainty == Certainty::OneWord && is_line(program, &words[position - 1]) {
                self.add_unknown();
            }
            // `--split-string=…`, `-c…`: what is glued to an option.
            if let Some((_, value)) = word.text.split_once('=').filter(|(name, _)| name.starts_with('-')) {
                self.read(value, depth + 1);
            }
        }
    }
}

/// Returns whether a word stands for all those that a program puts behind a command.
fn is_appended(word: &Word) -> bool {
    word.certainty == Certainty::AnyWords && word.text.is_empty()
}

/// Returns whether a program reads the word behind `before` as a line.
fn is_line(program: &Word, before: &Word) -> bool {
    let is_option = before.text.starts_with('-') && before.text.ends_with('c');
    ["eval", "trap"].contains(&name_of(program)) || (is_shell(program) && is_option)
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

pub(super) fn is_runner(program: &Word) -> bool {
    let name = name_of(program);
    program.certainty != Certainty::Literal || RUNNERS.contains(&name) || is_loader(name)
}

/// Returns whether a program is one that loads programs, as `ld-linux-x86-64.so.2`.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld") && name.contains(".so")
}

fn is_shell(program: &Word) -> bool {
    name_of(program).ends_with("sh") && RUNNERS.contains(&name_of(program)) && name_of(program) != "ssh"
}

/// Returns the name of a program without its directory, and without a version, as in `bash5`.
pub(super) fn name_of(program: &Word) -> &str {
    let name = program.text.rsplit('/').next().unwrap_or_default();
    if RUNNERS.contains(&name) {
        return name;
    }
    name.trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-'))
}
