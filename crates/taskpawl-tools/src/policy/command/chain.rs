//! What stands between a program and the command that it runs in the end.

use super::filled::{is_assignment, is_value};
use super::runner::{is_runner, is_shell, name_of};
use super::{Certainty, Word};

/// Programs whose `-c` is followed by a line.
const LINE_BY_OPTION: &[&str] = &["flock", "npm", "npx", "runuser", "script", "sg", "su"];

/// Programs of which an argument that is no option may be a line.
const LINE_BY_WORD: &[&str] = &["hyperfine", "parallel", "pee", "screen", "sem", "tmux", "watch"];

/// Options of `find` and `fd` behind which a command begins.
pub(super) const EXEC: &[&str] =
    &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Programs with one argument in front of the command.
const WITH_OPERAND: &[&str] =
    &["chroot", "chrt", "flock", "gosu", "run", "setarch", "sg", "ssh", "su-exec", "taskset"];

/// How far it is to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// An option begins it.
    Option,
    /// It may be the next word.
    Open,
    /// It is behind: what follows are arguments of it.
    Past,
}

/// The way from a runner to what it runs in the end: `timeout 5 env -i sh`.
pub(super) struct Chain<'a> {
    program: &'a str,
    /// How many words may stand in front of the command that are no options.
    spare: usize,
    way: Way,
    /// One was met whose `-c` is followed by a line.
    has_line: bool,
    has_env: bool,
}

impl<'a> Chain<'a> {
    pub(super) fn of(program: &'a Word) -> Self {
        let name = name_of(program);
        let way = if ["find", "fd", "fdfind"].contains(&name) { Way::Option } else { Way::Open };
        let spare = usize::from(WITH_OPERAND.contains(&name));
        let mut chain = Self { program: name, spare, way, has_line: false, has_env: false };
        chain.meet(program);
        chain
    }

    /// Returns the name of the first program.
    pub(super) fn program(&self) -> &str {
        self.program
    }

    fn meet(&mut self, word: &Word) {
        self.has_line |= is_shell(word) || LINE_BY_OPTION.contains(&name_of(word));
        self.has_env |= name_of(word) == "env";
    }

    /// Goes on by a word; returns whether that may be what is run.
    pub(super) fn takes(&mut self, before: &Word, word: &Word) -> bool {
        self.meet(word);
        // What is not known may be such an option.
        let is_known = before.certainty == Certainty::Literal;
        let (before, text) = (before.text.as_str(), word.text.as_str());
        if self.way == Way::Option && (EXEC.contains(&before) || !is_known) {
            self.way = Way::Open;
        }
        let may_be = self.way == Way::Open || before == "--";
        let is_between =
            text.starts_with('-') || takes_value(before) || is_value(text) || is_assignment(text);
        if self.way == Way::Open && !is_between && !is_runner(word) {
            self.way = if self.spare > 0 { Way::Open } else { Way::Past };
            self.spare = self.spare.saturating_sub(1);
        }
        may_be
    }

    /// Returns whether the word behind `before` is a line for the program or for one on the way.
    pub(super) fn is_line(&self, before: &Word) -> bool {
        let is_option = before.text.starts_with('-');
        if is_option && before.text.ends_with('c') {
            return self.has_line;
        }
        ["eval", "trap"].contains(&self.program)
            || (LINE_BY_WORD.contains(&self.program) && !takes_value(&before.text))
    }

    /// Returns whether no command has begun yet, and none can before a word of its own: all else of `find` are patterns and numbers.
    pub(super) fn is_before_command(&self) -> bool {
        self.program == "find" && self.way == Way::Option
    }

    /// Returns whether what may be run is no host, image, session or argument of a shell.
    pub(super) fn is_direct(&self) -> bool {
        !self.has_line && !WITH_OPERAND.contains(&self.program) && !LINE_BY_WORD.contains(&self.program)
    }

    /// Returns whether `env` stands on the way.
    pub(super) fn has_env(&self) -> bool {
        self.has_env
    }
}

/// Returns whether a word is an option that may have the next word as its value: `-n1` and `-I{}` have their own, and behind `-exec`
/// stands a command.
fn takes_value(word: &str) -> bool {
    let has_own = word == "--" || word.ends_with(|end: char| end.is_ascii_digit() || end == '}');
    word.starts_with('-') && !has_own && !EXEC.contains(&word)
}
