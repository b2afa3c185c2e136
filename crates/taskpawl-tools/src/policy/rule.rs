//! One rule: what it is about, and whether a call is that.

use std::cell::OnceCell;
use std::fmt;

use globset::GlobMatcher;
use serde_json::{Map, Value};

use super::command::{Certainty, Commands, Reading, Word, has_known_options, takes_value};
use super::{CallOrigin, Decision, PolicyCall, SandboxNeed};
use crate::registry::Registry;
use crate::tool::ToolCommand;

/// A rule of a policy file.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) decision: Decision,
    pub(crate) tool: Option<String>,
    /// At each place one of these words.
    pub(crate) argv: Vec<Vec<String>>,
    /// Nothing stands for everybody.
    pub(crate) origins: Vec<CallOrigin>,
    /// The variables that a call may set and is still allowed.
    pub(crate) env: Vec<String>,
    /// The directories in which a call is still allowed; without any, that is the root of the project alone.
    pub(crate) cwd: Vec<GlobMatcher>,
    /// Whether a call may have any standard input and is still allowed.
    pub(crate) any_stdin: bool,
    /// What a call may ask of the sandbox and is still allowed.
    pub(crate) sandbox: SandboxNeed,
    pub(crate) reason: Option<String>,
    pub(crate) line: usize,
}

impl Rule {
    /// Returns what it decides.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Returns the line of its file where it begins.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns why it is there, as its author says.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns whose calls it is about; nothing stands for everybody's.
    pub fn origins(&self) -> &[CallOrigin] {
        &self.origins
    }

    /// Returns whether the rule is about this call. A rule that allows is about what it says and nothing more; one that asks or
    /// denies also about what may be what it says.
    pub(crate) fn is_about(&self, look: &Look<'_>) -> bool {
        let call = look.call;
        if !self.origins.is_empty() && !self.origins.contains(&call.origin) {
            return false;
        }
        if self.tool.as_ref().is_some_and(|pattern| !is_like(pattern, call.tool)) {
            return false;
        }
        if self.argv.is_empty() {
            return true;
        }
        match look.commands() {
            // The commands of a line that are allowed may be so by several rules: see `allows`.
            Some(commands) if self.decision == Decision::Allow => {
                commands.plain.as_ref().is_some_and(|plain| plain.iter().all(|one| self.fits(one, call)))
            }
            Some(commands) => commands.suspects.iter().any(|suspect| self.may_be(suspect.words())),
            None => false,
        }
    }

    /// Returns whether it allows one command of a call.
    pub(crate) fn allows(&self, command: &super::command::Plain, call: &PolicyCall<'_>) -> bool {
        self.decision == Decision::Allow
            && !self.argv.is_empty()
            && (self.origins.is_empty() || self.origins.contains(&call.origin))
            && self.tool.as_ref().is_none_or(|pattern| is_like(pattern, call.tool))
            && self.fits(command, call)
    }

    fn fits(&self, command: &super::command::Plain, call: &PolicyCall<'_>) -> bool {
        let begins = command.argv.len() >= self.argv.len()
            && self.argv.iter().zip(&command.argv).all(|(words, word)| words.contains(word));
        let set = call.args.get("env").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let is_env_known =
            set.chain(&command.variables).all(|name| self.env.iter().any(|known| known == name));
        // The same path names another program elsewhere.
        let is_moved = call.args.contains_key("cwd")
            && command.argv.first().is_some_and(|program| program.contains('/') && !program.starts_with('/'));
        begins && is_env_known && !is_moved && self.covers_stdin(call) && self.covers_cwd(call)
    }

    /// An interpreter runs its input, which the words of the rule say nothing about.
    fn covers_stdin(&self, call: &PolicyCall<'_>) -> bool {
        let is_empty = |stdin: &Value| stdin.is_null() || stdin.as_str() == Some("");
        self.any_stdin || call.args.get("stdin").is_none_or(is_empty)
    }

    /// The same words do something else in another directory, such as with another `Makefile`.
    fn covers_cwd(&self, call: &PolicyCall<'_>) -> bool {
        let cwd = match call.args.get("cwd") {
            None | Some(Value::Null) => Some(String::new()),
            Some(cwd) => cwd.as_str().and_then(directory),
        };
        cwd.is_some_and(|cwd| match &self.cwd[..] {
            [] => cwd.is_empty(),
            patterns => patterns.iter().any(|pattern| pattern.is_match(&cwd)),
        })
    }

    /// Returns whether words may be the command that the rule says: by another path, with options between, and whatever an
    /// expansion comes to.
    fn may_be(&self, words: &[Word]) -> bool {
        let (Some(program), [first, rest @ ..]) = (self.argv.first(), words) else { return false };
        match first.name() {
            Some(name) => {
                program.iter().any(|wanted| is_program(wanted, first, name)) && self.may_follow(rest, name)
            }
            None => first.certainty == Certainty::AnyWords || self.may_follow(rest, ""),
        }
    }

    /// Returns whether a call is about the rule by what stands in it, and not only because something in it may be anything.
    pub(crate) fn is_surely_about(&self, look: &Look<'_>) -> bool {
        let known = |word: &Word| {
            if word.certainty == Certainty::Literal { word.clone() } else { Word::literal("$") }
        };
        let is_sure = |words: &[Word]| self.may_be(&words.iter().take(SHOWN).map(known).collect::<Vec<_>>());
        self.argv.is_empty()
            || look.commands().is_some_and(|commands| {
                let about = commands.suspects.iter().filter(|suspect| self.may_be(suspect.words()));
                about.take(SHOWN).any(|suspect| is_sure(suspect.words()))
            })
    }

    /// Returns whether the words of the rule follow behind a program, with options and their values between them; an option may also
    /// stand behind other arguments.
    fn may_follow(&self, words: &[Word], program: &str) -> bool {
        let mut wanted = &self.argv[1..];
        let (mut after_option, mut after_argument) = (false, false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(alternatives) = wanted.first() else { return true };
            let is_literal = word.certainty == Certainty::Literal;
            // What an expansion comes to among the arguments is taken for one of them.
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

/// Returns a directory from the root of the project, without `.`; nothing for one that may be elsewhere.
pub(super) fn directory(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!path.starts_with(['/', '~']) && !parts.contains(&"..")).then(|| parts.join("/"))
}

/// How many commands of a call, and words of each, are looked at to say why a rule is about it.
const SHOWN: usize = 100;

/// Returns whether a word whose program has a name is the program of a rule. Some file systems do not tell capitals from small letters.
fn is_program(wanted: &str, word: &Word, name: &str) -> bool {
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

/// Returns whether a name is like a pattern in which `*` stands for anything.
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

/// A call that is looked at; what it would run is found out when a rule wants to know.
pub(crate) struct Look<'a> {
    pub(crate) call: &'a PolicyCall<'a>,
    tools: &'a Registry,
    commands: OnceCell<Option<Commands>>,
}

impl<'a> Look<'a> {
    pub(crate) fn at(call: &'a PolicyCall<'a>, tools: &'a Registry) -> Self {
        Self { call, tools, commands: OnceCell::new() }
    }

    /// Returns the commands of a call that runs programs.
    pub(crate) fn commands(&self) -> Option<&Commands> {
        self.commands.get_or_init(|| commands_of(self.call.tool, self.call.args, self.tools)).as_ref()
    }
}

fn commands_of(tool: &str, args: &Map<String, Value>, tools: &Registry) -> Option<Commands> {
    match tool {
        "shell" => args.get("command").and_then(Value::as_str).map(Reading::of_line),
        "exec" => {
            let list = args.get("argv").and_then(Value::as_array)?;
            let words = list.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
            words.map(|words| Reading::of_argv(&words))
        }
        _ => return commands_of_tool(tool, args, tools),
    }
    .map(|reading| match args.get("stdin").and_then(Value::as_str) {
        Some(input) => reading.with_input(input),
        None => reading,
    })
    .map(|reading| {
        let set = args.get("env").and_then(Value::as_object).into_iter().flatten();
        let set = set.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        reading.with_variables(set).commands()
    })
}

/// Returns what a tool runs that is described by a template of its arguments.
fn commands_of_tool(tool: &str, args: &Map<String, Value>, tools: &Registry) -> Option<Commands> {
    let ToolCommand { argv, input, is_whole } =
        tools.get(tool)?.tool().command(&Value::Object(args.clone()))?;
    let reading = Reading::of_argv(&argv);
    let commands = match input {
        Some(input) => reading.with_input(&input),
        None => reading,
    }
    .commands();
    Some(if is_whole { commands } else { Commands { plain: None, ..commands } })
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
