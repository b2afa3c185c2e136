//! What git runs that its arguments say.

use super::suspect::name_of;
use super::{Certainty, Word};

/// Something that git runs.
pub(super) enum Run {
    /// A line for a shell.
    Line(String),
    /// What stands behind the word of this number.
    Behind(usize),
    /// Nobody knows what.
    Unknown,
}

/// Returns whether a word names git.
pub(super) fn is_git(word: &Word) -> bool {
    word.certainty == Certainty::Literal && name_of(word) == "git"
}

/// Returns what the arguments of git make it run: commands of `rebase -x`, `submodule foreach`, `bisect run` and filters, aliases, and
/// settings that hold programs.
pub(super) fn runs(args: &[Word]) -> Vec<Run> {
    let mut found = Vec::new();
    let has = |name: &str| args.iter().any(|word| word.text == name);
    let (takes_commands, is_config) = (has("rebase") || has("difftool"), has("config"));
    for (at, word) in args.iter().enumerate() {
        let (text, next) = (word.text.as_str(), args.get(at + 1));
        let before = at.checked_sub(1).map_or("", |before| args[before].text.as_str());
        if text == "foreach" || (text == "run" && before == "bisect") {
            found.push(Run::Behind(at));
            return found;
        }
        // `filter-branch --tree-filter COMMAND`, but not `clone --filter`.
        let is_filter = text.strip_prefix("--").is_some_and(|name| name.ends_with("-filter"));
        if (takes_commands && is_exec(text)) || is_filter {
            found.extend(next.map(line));
        } else if let Some(command) = text.strip_prefix("--exec=").filter(|_| takes_commands) {
            found.push(Run::Line(command.to_owned()));
        } else if let Some((command, 'x')) = glued(text).filter(|_| takes_commands) {
            found.push(Run::Line(command.to_owned()));
        }
        let setting = if before == "-c" { Some(text) } else { glued(text).map(|(setting, _)| setting) };
        found.extend(setting.and_then(|setting| setting.split_once('=')).and_then(|(key, value)| {
            let value = Word { text: value.to_owned(), certainty: word.certainty };
            of_setting(key, &value)
        }));
        // `git config alias.x VALUE`
        found.extend(next.filter(|_| is_config).and_then(|value| of_setting(text, value)));
    }
    found
}

/// Returns whether the word behind this one is a command.
fn is_exec(text: &str) -> bool {
    let is_short = text.starts_with('-') && !text.starts_with("--") && text.ends_with('x');
    is_short || ["--exec", "--extcmd"].contains(&text)
}

/// Returns what is glued to one of the options `-c` and `-x`, and which.
fn glued(text: &str) -> Option<(&str, char)> {
    ['c', 'x'].into_iter().find_map(|option| {
        let value = text.strip_prefix('-')?.strip_prefix(option)?;
        (!value.is_empty()).then_some((value, option))
    })
}

fn line(word: &Word) -> Run {
    if word.certainty == Certainty::Literal { Run::Line(word.text.clone()) } else { Run::Unknown }
}

/// Returns what a setting runs: an alias is a command of git, or with `!` one of a shell.
fn of_setting(key: &str, value: &Word) -> Option<Run> {
    let key = key.to_ascii_lowercase();
    if key.starts_with("alias.") {
        return Some(match (value.certainty, value.text.strip_prefix('!')) {
            (Certainty::Literal, Some(command)) => Run::Line(command.to_owned()),
            (Certainty::Literal, None) => Run::Line(format!("git {}", value.text)),
            (Certainty::OneWord | Certainty::AnyWords, _) => Run::Unknown,
        });
    }
    let last = key.rsplit('.').next().unwrap_or_default();
    let is_program = key.contains('.')
        && ["askpass", "cmd", "command", "editor", "external", "fsmonitor", "helper", "pager", "program"]
            .iter()
            .chain(&["smudge", "clean", "process", "textconv", "driver", "sshcommand"])
            .any(|name| last == *name);
    is_program.then(|| match value.text.strip_prefix('!') {
        Some(command) if value.certainty == Certainty::Literal => Run::Line(command.to_owned()),
        _ => line(value),
    })
}
