//! Commands that git runs because of its arguments and settings.

use super::runner::name_of;
use super::{Certainty, Word};

/// Command that git runs.
pub(super) enum Run {
    /// Command line for a shell.
    Line(String),
    /// Command in the words after this index.
    Behind(usize),
    /// Unknown command.
    Unknown,
}

/// Returns whether a word names git.
pub(super) fn is_git(word: &Word) -> bool {
    word.name().is_some() && name_of(word) == "git"
}

/// Options that are followed by a program. Git also accepts unique prefixes of them.
const PROGRAM_OPTIONS: &[&str] = &["exec", "extcmd", "open-files-in-pager", "receive-pack", "upload-pack"];

/// Returns the commands in the arguments of git: of `rebase -x`, `submodule foreach`, `bisect run` and filters;
/// aliases; and settings that hold programs.
pub(super) fn runs(args: &[Word]) -> Vec<Run> {
    let mut found = Vec::new();
    let verbs = Verbs::of(args);
    for (at, word) in args.iter().enumerate() {
        let (text, next) = (word.text.as_str(), args.get(at + 1));
        let before = at.checked_sub(1).map_or("", |before| args[before].text.as_str());
        if text == "remote-ext" {
            found.extend(args[at + 1..].iter().map(line));
        }
        if text == "foreach" || (text == "run" && before == "bisect") {
            found.push(Run::Behind(at));
            return found;
        }
        if text == "for-each-repo" {
            found.push(itself(&args[at + 1..]));
            return found;
        }
        found.extend(verbs.command(text, next));
        let setting = match text.strip_prefix("--config=") {
            _ if before == "-c" || before == "--config" => Some(text),
            None => glued(text).map(|(setting, _)| setting),
            setting => setting,
        };
        found.extend(setting.and_then(|setting| setting.split_once('=')).and_then(|(key, value)| {
            let value = Word { text: value.to_owned(), certainty: word.certainty };
            of_setting(key, &value)
        }));
        // The value of `--config-env=KEY=VARIABLE` is in a variable, and therefore unknown.
        let by_variable = text.strip_prefix("--config-env=").or((before == "--config-env").then_some(text));
        let key = by_variable.map(|setting| setting.rsplit_once('=').map_or(setting, |(key, _)| key));
        found.extend(
            key.filter(|key| is_running(key) || word.certainty != Certainty::Literal).map(|_| Run::Unknown),
        );
        // `config rename-section` may turn any section into one of aliases.
        if verbs.has("config") && text.trim_start_matches('-').starts_with("rename-s") {
            found.push(Run::Unknown);
        }
        // `git config alias.x VALUE`
        found.extend(next.filter(|_| verbs.has("config")).and_then(|value| of_setting(text, value)));
    }
    found
}

/// Subcommands of git whose options can hold commands.
const VERBS: &[&str] = &["clone", "config", "difftool", "grep", "rebase"];

/// Subcommands from [`VERBS`] that occur anywhere in the arguments: the position of the subcommand is uncertain.
struct Verbs(Vec<&'static str>);

impl Verbs {
    fn of(args: &[Word]) -> Self {
        let is_used = |verb: &&str| args.iter().any(|word| word.text == **verb);
        Self(VERBS.iter().copied().filter(is_used).collect())
    }

    fn has(&self, verb: &str) -> bool {
        self.0.contains(&verb)
    }

    /// Returns the command in an option or after it.
    fn command(&self, text: &str, next: Option<&Word>) -> Option<Run> {
        if let Some((_, command)) = text.split_once("ext::") {
            return Some(Run::Line(command.to_owned()));
        }
        if let Some(long) = text.strip_prefix("--") {
            return of_long(long, next);
        }
        let short = text.strip_prefix('-')?;
        let in_grep = short.strip_prefix('O').filter(|command| self.has("grep") && !command.is_empty());
        let in_clone = short.strip_prefix('u').filter(|_| self.has("clone"));
        if let Some(command) = in_grep.or(in_clone) {
            return if command.is_empty() { next.map(line) } else { Some(Run::Line(command.to_owned())) };
        }
        let takes_commands = self.has("rebase") || self.has("difftool");
        match glued(text) {
            _ if !takes_commands => None,
            Some((command, 'x')) => Some(Run::Line(command.to_owned())),
            _ => next.filter(|_| short.ends_with('x')).map(line),
        }
    }
}

/// Returns the command of a long option: `--exec=COMMAND`, `--upload-pack COMMAND`, `--tree-filter COMMAND`. The
/// `--filter` of `clone` is not one of them.
fn of_long(option: &str, next: Option<&Word>) -> Option<Run> {
    let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
    let is_program = !name.is_empty() && PROGRAM_OPTIONS.iter().any(|known| known.starts_with(name));
    let is_of_mail = name.ends_with("-cmd");
    if !is_program && !is_of_mail && !name.ends_with("-filter") {
        return None;
    }
    match value {
        Some(value) => Some(Run::Line(value.to_owned())),
        None => next.map(line),
    }
}

/// Returns the git command that `git for-each-repo --config=KEY ARGUMENTS` runs in other repositories.
fn itself(args: &[Word]) -> Run {
    let is_known =
        |word: &Word| word.certainty == Certainty::Literal && word.text.chars().all(super::syntax::is_plain);
    if !args.iter().all(is_known) {
        return Run::Unknown;
    }
    let words: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    Run::Line(format!("git {}", words.join(" ")))
}

/// Returns the value directly after `-c` or `-x`, and the letter.
fn glued(text: &str) -> Option<(&str, char)> {
    ['c', 'x'].into_iter().find_map(|option| {
        let value = text.strip_prefix('-')?.strip_prefix(option)?;
        (!value.is_empty()).then_some((value, option))
    })
}

fn line(word: &Word) -> Run {
    if word.certainty == Certainty::Literal { Run::Line(word.text.clone()) } else { Run::Unknown }
}

/// Last components of settings that hold a program.
const PROGRAMS: &[&str] = &[
    "askpass",
    "browser",
    "clean",
    "difffilter",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "helper",
    "pager",
    "process",
    "program",
    "receivepack",
    "smudge",
    "textconv",
    "tunnel",
    "uploadpack",
];

/// Returns whether git runs the value of a setting.
pub(super) fn is_running(key: &str) -> bool {
    of_setting(key, &Word { text: String::new(), certainty: Certainty::OneWord }).is_some()
}

/// Returns the command of a setting. An alias is a subcommand of git, or with `!` a shell command.
pub(super) fn of_setting(key: &str, value: &Word) -> Option<Run> {
    let key = key.to_ascii_lowercase();
    let is_literal = value.certainty == Certainty::Literal;
    if key.starts_with("alias.") {
        return Some(match (is_literal, value.text.strip_prefix('!')) {
            (true, Some(command)) => Run::Line(command.to_owned()),
            (true, None) => Run::Line(format!("git {}", value.text)),
            (false, _) => Run::Unknown,
        });
    }
    if key == "help.autocorrect" {
        // Git then runs its guess for a misspelt subcommand, which may be anything.
        let asks = ["0", "false", "no", "off", "never", "prompt", "show"].contains(&value.text.as_str());
        return (!asks || !is_literal).then_some(Run::Unknown);
    }
    let is_include = |(section, name): (&str, &str)| {
        name == "path" && (section == "include" || section.starts_with("includeif."))
    };
    if key.rsplit_once('.').is_some_and(is_include) {
        return names_file(value).then_some(Run::Unknown);
    }
    // A value may be `!COMMAND`, or the address of a repository of the form `ext::COMMAND`.
    let command = value.text.strip_prefix('!').or_else(|| Some(value.text.split_once("ext::")?.1));
    match command.filter(|_| is_literal && key.contains('.')) {
        Some(command) => Some(Run::Line(command.to_owned())),
        None if key.contains("ext::") => Some(Run::Unknown),
        None => holds_program(&key).then(|| line(value)),
    }
}

/// Returns whether the value of a setting is a program with its arguments.
fn holds_program(key: &str) -> bool {
    let (Some((section, _)), Some((_, last))) = (key.split_once('.'), key.rsplit_once('.')) else {
        return false;
    };
    section == "pager"
        || PROGRAMS.contains(&last)
        || ["cmd", "command", "hook"].iter().any(|end| last.ends_with(end))
}

/// Returns whether a value names a file with content.
pub(super) fn names_file(value: &Word) -> bool {
    value.certainty != Certainty::Literal || !["", "/dev/null"].contains(&value.text.as_str())
}
