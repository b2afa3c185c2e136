//! Programs that read the commands that they run from their input.

use super::runner::{is_shell, is_special, name_of};
use super::{Certainty, Word};

/// Maximum of arguments that are searched for options.
const OPTIONS: usize = 64;

/// Returns whether the command of a program is unknown, because it comes from the input or from a substitution.
pub(super) fn runs_input(words: &[Word]) -> bool {
    let Some((program, args)) = words.split_first() else { return false };
    let args = &args[..args.len().min(OPTIONS)];
    let has = |options: &[&str]| args.iter().any(|arg| options.contains(&arg.text.as_str()));
    match name_of(program) {
        "." | "source" => args.first().is_some_and(is_fed),
        "at" => !has(&["-l", "-r", "-d", "-c", "-f"]) || args.iter().any(is_fed),
        "batch" => !has(&["-f"]) || args.iter().any(is_fed),
        "crontab" => !has(&["-l", "-r", "-e"]) && operands(args, "u") == 0,
        "su" | "script" => !args.iter().any(|arg| is_command_option(&arg.text)),
        "sudo" | "doas" => has(&["-s", "-i", "--shell", "--login"]) && operands(args, SUDO_VALUES) == 0,
        "fakeroot" | "newgrp" | "unshare" => operands(args, "") == 0,
        "ssh" => is_own_host(args),
        "screen" | "tmux" => {
            args.iter().any(|arg| ["send", "send-keys", "stuff"].contains(&arg.text.as_str()))
        }
        "make" | "gmake" => is_make_fed(args),
        // An unknown program may be a shell.
        _ if is_shell(program) || program.name().is_none() => is_shell_fed(args),
        _ => false,
    }
}

/// Options of `sudo` and `doas` that take a value.
const SUDO_VALUES: &str = "ugphCrtTUDRa";

/// Options of `ssh` that take a value.
const SSH_VALUES: &str = "BbcDEeFIiJLlmOopQRSWw";

/// Returns whether an option is followed by a command or contains one: `-c`, `-qc`, `-c…`, `--command`.
fn is_command_option(text: &str) -> bool {
    let is_short = |rest: &str| !rest.starts_with('-') && rest.contains('c');
    text.strip_prefix('-').is_some_and(is_short) || text.starts_with("--c")
}

/// Returns the number of operands: arguments that are neither options nor values of the options in `with_value`.
fn operands(args: &[Word], with_value: &str) -> usize {
    let is_before_value = |text: &str| {
        text.starts_with('-')
            && !text.starts_with("--")
            && text.ends_with(|end: char| with_value.contains(end))
    };
    let is_operand = |at: usize| {
        let before = at.checked_sub(1).map_or("", |before| args[before].text.as_str());
        !args[at].text.starts_with('-') && !is_before_value(before)
    };
    (0..args.len()).filter(|at| is_operand(*at)).count()
}

/// Returns whether `make` reads its makefile from the input or from a substitution.
fn is_make_fed(args: &[Word]) -> bool {
    let file = |at: usize| match args[at].text.as_str() {
        "-f" | "--file" | "--makefile" => args.get(at + 1).cloned(),
        text => {
            let glued = ["-f", "--file=", "--makefile="].iter().find_map(|option| text.strip_prefix(option));
            glued.map(|file| Word { text: file.to_owned(), certainty: args[at].certainty })
        }
    };
    (0..args.len()).filter_map(file).any(|file| is_fed(&file))
}

/// Returns whether `ssh` starts a shell on this machine that reads commands from its input.
fn is_own_host(args: &[Word]) -> bool {
    let is_own = |arg: &Word| {
        let host = arg.text.rsplit('@').next().unwrap_or_default();
        host == "localhost" || host.starts_with("127.") || host == "::1"
    };
    operands(args, SSH_VALUES) == 1 && args.iter().any(is_own)
}

/// Returns whether a shell reads commands from its input.
fn is_shell_fed(args: &[Word]) -> bool {
    let mut args = args.iter();
    let mut is_told = false;
    while let Some(arg) = args.next() {
        match arg.text.as_str() {
            "--help" | "--version" => return false,
            "-" | "--" => return !is_told && args.next().is_none_or(is_fed),
            "--rcfile" | "--init-file" => {
                if args.next().is_some_and(is_fed) {
                    return true;
                }
            }
            text if text.starts_with("--") => {}
            text if text.starts_with(['-', '+']) => {
                is_told |= text.contains('c');
                if !is_told && text.contains('s') {
                    return true;
                }
                if text.ends_with(['o', 'O']) {
                    args.next();
                }
            }
            _ => return !is_told && is_fed(arg),
        }
    }
    !is_told
}

/// Returns whether a file argument is not a regular file: a pipe, or unknown.
fn is_fed(file: &Word) -> bool {
    let text = file.text.as_str();
    if file.certainty == Certainty::Literal {
        return is_special(text) || text == "-";
    }
    // An expansion that makes up the whole word may be any file; `"$HOME/x"` is a regular one.
    let name = text.trim_start_matches(['$', '`']);
    text.contains("<()")
        || is_special(text)
        || name.chars().all(|char| char.is_alphanumeric() || "_$".contains(char))
}
