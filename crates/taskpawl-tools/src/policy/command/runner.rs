//! Programs that run other programs.

use taskpawl_text::{RUN_BY_WORD, RUNNERS, SHELLS};

use super::{Certainty, Word};

/// Returns whether a program may run commands from its arguments or its input.
pub(super) fn is_runner(program: &Word) -> bool {
    let name = name_of(program);
    program.name().is_none() || is_known(name) || is_loader(name)
}

fn is_known(name: &str) -> bool {
    RUNNERS.contains(&name) || SHELLS.contains(&name)
}

/// Returns whether a program is a dynamic loader such as `ld-linux-x86-64.so.2`, which runs its first argument.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld") && name.contains(".so")
}

pub(super) fn is_shell(program: &Word) -> bool {
    SHELLS.contains(&name_of(program))
}

/// Returns the index of the subcommand that is followed by a command, for programs that run nothing otherwise: `uv
/// run`, `npm exec`.
pub(super) fn word_before_run(words: &[Word]) -> Option<usize> {
    let (program, args) = words.split_first()?;
    let (known, _) = RUN_BY_WORD.iter().find(|(_, programs)| programs.contains(&name_of(program)))?;
    args.iter().position(|arg| known.contains(&arg.text.as_str())).map(|at| at + 1)
}

/// Returns whether a program runs its first operand with all following words as arguments.
pub(super) fn runs_first_word(program: &Word) -> bool {
    let is_such =
        |name| ["builtin", "command", "doas", "env", "exec", "nohup", "setsid", "sudo"].contains(&name);
    program.certainty == Certainty::Literal && is_such(name_of(program))
}

/// Returns whether a word certainly names a program, and is neither an option nor an assignment.
pub(super) fn is_program(word: &Word) -> bool {
    word.certainty == Certainty::Literal
        && !word.text.is_empty()
        && word.text.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/'))
        && !word.text.starts_with('-')
}

/// Returns whether a path may stand for an open file or a device.
pub(super) fn is_special(path: &str) -> bool {
    path.starts_with("/proc/") || path.starts_with("/dev/")
}

/// Returns the name of a program without its directory and version, as in `bash5`.
pub(super) fn name_of(program: &Word) -> &str {
    let name = program.text.rsplit('/').next().unwrap_or_default();
    if is_known(name) {
        return name;
    }
    name.trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-'))
}
