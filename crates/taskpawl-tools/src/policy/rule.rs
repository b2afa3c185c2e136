//! One policy rule and the check if it applies to a call.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use globset::GlobMatcher;
use serde_json::Value;

use super::call::{CallOrigin, Decision, PolicyCall, SandboxNeed};
use super::command::{Certainty, Commands, Plain, Reading, Word, has_known_options, takes_value};
use super::directory::Directory;
use super::start::StartOptions;
use crate::registry::Registry;

/// Rule of a policy file.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) decision: Decision,
    pub(crate) tool: Option<String>,
    /// Alternatives for each word of the command.
    pub(crate) argv: Vec<Vec<String>>,
    /// Origins that the rule applies to; empty means all.
    pub(crate) origins: Vec<CallOrigin>,
    /// Environment variables that an allowed call may set.
    pub(crate) env: Vec<String>,
    /// Working directories that an allowed call may have; empty means the root of the project only.
    pub(crate) cwd: Vec<GlobMatcher>,
    /// Set if an allowed call may have standard input.
    pub(crate) any_stdin: bool,
    /// Sandbox permissions that an allowed call may request.
    pub(crate) sandbox: SandboxNeed,
    pub(crate) reason: Option<String>,
    pub(crate) line: usize,
}

impl Rule {
    /// Returns the decision of the rule.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Returns the line of the file where the rule begins, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the reason that the author of the rule gave.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns the origins that the rule applies to; empty means all.
    pub fn origins(&self) -> &[CallOrigin] {
        &self.origins
    }

    /// Returns whether the rule applies to a call.
    ///
    /// An allow rule applies only to a call that it matches for certain. A rule that asks or denies also applies to a
    /// call that may match it.
    pub(crate) fn is_about(&self, look: &CallShape<'_>) -> bool {
        let call = look.call;
        if !self.is_for(call) {
            return false;
        }
        if self.argv.is_empty() {
            return true;
        }
        match look.commands() {
            // This covers one rule for the whole line. Several rules that together allow a line are combined by the
            // layer.
            Some(commands) if self.decision == Decision::Allow => {
                commands.plain.as_ref().is_some_and(|plain| plain.iter().all(|one| self.fits(one)))
            }
            Some(commands) => commands.suspects.iter().any(|suspect| self.may_be(suspect.words())),
            None => false,
        }
    }

    /// Returns whether the rule applies to calls of this tool and origin.
    fn is_for(&self, call: &PolicyCall<'_>) -> bool {
        (self.origins.is_empty() || self.origins.contains(&call.origin))
            && self.tool.as_ref().is_none_or(|pattern| is_like(pattern, call.tool))
    }

    /// Returns whether the rule can allow commands of this call: it allows, and it names words.
    pub(crate) fn allows_commands_of(&self, call: &PolicyCall<'_>) -> bool {
        self.decision == Decision::Allow && !self.argv.is_empty() && self.is_for(call)
    }

    /// Returns whether the rule allows one command of a call.
    pub(crate) fn allows(&self, command: &Plain, call: &PolicyCall<'_>) -> bool {
        self.allows_commands_of(call) && self.fits(command)
    }

    fn fits(&self, command: &Plain) -> bool {
        self.uncovered(command).is_some_and(|uncovered| uncovered.is_empty())
    }

    /// Returns the start options of a command that the rule does not cover; `None` if the words of the command differ.
    ///
    /// The words alone do not determine the effect of a command. An interpreter runs its input, `make` reads the
    /// `Makefile` of its directory, `./deploy` is another program there, and variables can name programs.
    pub(crate) fn uncovered(&self, command: &Plain) -> Option<Uncovered> {
        let has_words = command.argv.len() >= self.argv.len()
            && self.argv.iter().zip(&command.argv).all(|(words, word)| words.contains(word));
        has_words.then(|| Uncovered {
            has_input: command.has_input && !self.any_stdin,
            directories: command.directories.iter().filter(|one| !self.covers(one)).cloned().collect(),
            variables: command.variables.iter().filter(|name| !self.env.contains(name)).cloned().collect(),
            has_unknown_env: command.has_unknown_env,
        })
    }

    fn covers(&self, directory: &Directory) -> bool {
        directory.within().is_some_and(|path| match &self.cwd[..] {
            [] => path.is_empty(),
            patterns => patterns.iter().any(|pattern| pattern.is_match(path)),
        })
    }

    /// Returns whether words may be the command of the rule. The program may have another path, options may stand in
    /// between, and an expansion may have any result.
    fn may_be(&self, words: &[Word]) -> bool {
        let (Some(program), [first, rest @ ..]) = (self.argv.first(), words) else { return false };
        match first.name() {
            Some(name) => {
                program.iter().any(|wanted| is_program(wanted, first, name)) && self.may_follow(rest, name)
            }
            None => first.certainty == Certainty::AnyWords || self.may_follow(rest, ""),
        }
    }

    /// Returns whether the rule applies because of the literal words of a call, and not only because an unknown word
    /// may be anything. The reason for a decision depends on this.
    pub(crate) fn is_surely_about(&self, look: &CallShape<'_>) -> bool {
        // `$` is the name of no program and equals no word of a rule, so that only literal words can match.
        let known = |word: &Word| {
            if word.certainty == Certainty::Literal { word.clone() } else { Word::literal("$") }
        };
        let is_sure =
            |words: &[Word]| self.may_be(&words.iter().take(MAX_INSPECTED).map(known).collect::<Vec<_>>());
        self.argv.is_empty()
            || look.commands().is_some_and(|commands| {
                let about = commands.suspects.iter().filter(|suspect| self.may_be(suspect.words()));
                about.take(MAX_INSPECTED).any(|suspect| is_sure(suspect.words()))
            })
    }

    /// Returns whether the words of the rule follow a program, with options and their values in between. An option of
    /// the rule may also follow other arguments.
    fn may_follow(&self, words: &[Word], program: &str) -> bool {
        let mut wanted = &self.argv[1..];
        let (mut after_option, mut after_argument) = (false, false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(alternatives) = wanted.first() else { return true };
            let is_literal = word.certainty == Certainty::Literal;
            // An expansion after an argument is taken for one more argument: otherwise a rule on an option would ask
            // about every command with a variable.
            let may_be =
                (is_literal || !after_argument) && alternatives.iter().any(|wanted| word.may_be(wanted));
            if may_be && word.certainty == Certainty::AnyWords {
                return true;
            }
            let is_option = word.text.starts_with(['-', '+']);
            let after_word = after_argument || wanted.len() + 1 < self.argv.len();
            if may_be || is_literal && alternatives.iter().any(|wanted| is_with_value(&word.text, wanted)) {
                wanted = &wanted[1..];
                after_option = false;
            } else if is_literal && !after_word && takes_value(program, &word.text) {
                if words.next().is_some_and(|value| value.certainty == Certainty::AnyWords) {
                    return true;
                }
            } else if is_option || after_option {
                after_option = is_option && (after_word || !has_known_options(program));
            } else if alternatives.iter().all(|wanted| wanted.starts_with('-')) {
                after_argument = true;
            } else {
                return false;
            }
        }
        wanted.is_empty()
    }
}

/// Limits on the commands of a call, and the words of each, that are inspected for the reason of a decision.
const MAX_INSPECTED: usize = 100;

/// Returns whether a word names the program of a rule. Case is ignored, for some file systems do not distinguish it.
fn is_program(wanted: &str, word: &Word, name: &str) -> bool {
    // A rule on `git` also applies to `/usr/bin/git`. The reverse does not hold for a literal word: a rule with a path
    // means that file.
    let is_whole = word.certainty == Certainty::Literal && wanted == word.text;
    let wanted_name = match word.certainty {
        Certainty::Literal => wanted,
        Certainty::OneWord | Certainty::AnyWords => wanted.rsplit('/').next().unwrap_or_default(),
    };
    is_whole || wanted_name.eq_ignore_ascii_case(name)
}

/// Returns whether a word is a long option with its value: `--force=x`.
fn is_with_value(word: &str, option: &str) -> bool {
    option.starts_with("--") && word.split_once('=').is_some_and(|(name, _)| name == option)
}

/// Matches a name against a pattern in which `*` stands for any text.
fn is_like(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(begin) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.len() >= end.len() && left.ends_with(end)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let argv = self.argv.iter().map(|words| words.join("|")).collect::<Vec<_>>().join(" ");
        match (&self.tool, argv.as_str()) {
            (Some(tool), "") => write!(f, "tool {tool}"),
            (Some(tool), argv) => write!(f, "{tool}: {argv}"),
            (None, argv) => f.write_str(argv),
        }
    }
}

/// Call under evaluation. Its commands are parsed on first use, since many rules only look at the tool.
pub(crate) struct CallShape<'a> {
    pub(crate) call: &'a PolicyCall<'a>,
    tools: &'a Registry,
    /// Paths of the root of the project, with and without links; empty if unknown.
    roots: [&'a Path; 2],
    commands: OnceCell<Option<Commands>>,
}

impl<'a> CallShape<'a> {
    pub(crate) fn at(call: &'a PolicyCall<'a>, tools: &'a Registry, roots: [&'a Path; 2]) -> Self {
        Self { call, tools, roots, commands: OnceCell::new() }
    }

    /// Returns the commands of a call; `None` if it runs no program that the policy knows.
    pub(crate) fn commands(&self) -> Option<&Commands> {
        self.commands.get_or_init(|| self.read()).as_ref()
    }

    fn read(&self) -> Option<Commands> {
        let PolicyCall { tool, args, .. } = *self.call;
        let reading = match tool {
            "shell" => {
                let command = args.get("command").and_then(Value::as_str)?;
                match args.get("shell") {
                    // Only a shell reads the command as a command line.
                    Some(Value::Array(argv)) => {
                        let mut argv = texts_of(argv)?;
                        argv.push(command.to_owned());
                        Reading::of_argv(&argv)
                    }
                    _ => Reading::of_line(command),
                }
            }
            "exec" => Reading::of_argv(&texts(args.get("argv")?)?),
            _ => {
                let command = self.tools.get(tool)?.tool().command(&Value::Object(args.clone()))?;
                let (argv, options) = StartOptions::of_command(command, self.roots);
                return Some(Reading::of_argv(&argv).started(&options).commands());
            }
        };
        Some(reading.started(&StartOptions::of_args(args, self.roots)).commands())
    }
}

fn texts(list: &Value) -> Option<Vec<String>> {
    texts_of(list.as_array()?)
}

fn texts_of(list: &[Value]) -> Option<Vec<String>> {
    list.iter().map(|word| word.as_str().map(str::to_owned)).collect()
}

/// Start options of a call that an allow rule does not cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncovered {
    /// The command has standard input.
    pub(crate) has_input: bool,
    /// Directories in which the command may run.
    pub(crate) directories: BTreeSet<Directory>,
    /// Variables that the call sets.
    pub(crate) variables: BTreeSet<String>,
    /// The `env` of the call is invalid.
    pub(crate) has_unknown_env: bool,
}

impl Uncovered {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.has_input |= other.has_input;
        self.directories.extend(other.directories);
        self.variables.extend(other.variables);
        self.has_unknown_env |= other.has_unknown_env;
    }

    /// Returns the number of missing keys.
    pub(crate) fn count(&self) -> usize {
        let flags = [self.has_input, !self.directories.is_empty(), !self.variables.is_empty()];
        flags.into_iter().filter(|flag| *flag).count() + usize::from(self.has_unknown_env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_wildcards() {
        for (pattern, name) in
            [("a", "a"), ("*", ""), ("*", "a/b"), ("a/*", "a/b"), ("*b", "ab"), ("a*b*c", "axbyc")]
        {
            assert!(is_like(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "ab"), ("a/*", "b/a"), ("ab*ba", "aba"), ("a*b", "a"), ("a*b*c", "ac")]
        {
            assert!(!is_like(pattern, name), "{pattern} {name}");
        }
    }
}
