//! Chain of programs in front of the command that finally runs.

use super::filled::{is_assignment, is_value};
use super::runner::{is_runner, is_shell, name_of};
use super::syntax::EXEC;
use super::{Certainty, Word};

/// Programs whose `-c` takes a command line.
const LINE_BY_OPTION: &[&str] = &["flock", "npm", "npx", "runuser", "script", "sg", "su"];

/// Programs that may take a command line as an operand.
const LINE_BY_WORD: &[&str] = &["hyperfine", "parallel", "pee", "screen", "sem", "tmux", "watch"];

/// Programs with one operand in front of the command.
const WITH_OPERAND: &[&str] =
    &["chroot", "chrt", "flock", "gosu", "run", "setarch", "sg", "ssh", "su-exec", "taskset"];

/// Position relative to the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The command only begins after an option such as `-exec`.
    Option,
    /// The next word may be the command.
    Open,
    /// The command has begun; the following words are its arguments.
    Past,
}

/// Words from a runner to the command that finally runs: `timeout 5 env -i sh`.
pub(super) struct Chain<'a> {
    program: &'a str,
    /// Number of operands that may precede the command.
    spare: usize,
    way: Way,
    /// Set once a program in the chain takes a command line after `-c`.
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

    /// Advances by one word; returns whether the word may be the command.
    pub(super) fn takes(&mut self, before: &Word, word: &Word) -> bool {
        self.meet(word);
        // An unknown word may be such an option.
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

    /// Returns whether the word after `before` is a command line for a program in the chain.
    pub(super) fn is_line(&self, before: &Word) -> bool {
        let is_option = before.text.starts_with('-');
        if is_option && before.text.ends_with('c') {
            return self.has_line;
        }
        ["eval", "trap"].contains(&self.program)
            || (LINE_BY_WORD.contains(&self.program) && !takes_value(&before.text))
    }

    /// Returns whether the command has not begun and only an option can begin it. All other arguments of `find` are
    /// patterns and numbers.
    pub(super) fn is_before_command(&self) -> bool {
        self.program == "find" && self.way == Way::Option
    }

    /// Returns whether a possible command cannot be a host, an image, a session or an argument of a shell instead.
    pub(super) fn is_direct(&self) -> bool {
        !self.has_line && !WITH_OPERAND.contains(&self.program) && !LINE_BY_WORD.contains(&self.program)
    }

    /// Returns whether `env` is in the chain.
    pub(super) fn has_env(&self) -> bool {
        self.has_env
    }
}

/// Returns whether a word is an option that may take the next word as its value. `-n1` and `-I{}` contain their values,
/// and `-exec` is followed by a command.
fn takes_value(word: &str) -> bool {
    let has_own = word == "--" || word.ends_with(|end: char| end.is_ascii_digit() || end == '}');
    word.starts_with('-') && !has_own && !EXEC.contains(&word)
}
