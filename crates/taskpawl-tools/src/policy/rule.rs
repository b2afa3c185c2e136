//! One rule: what it is about, and whether a call is that.

use std::cell::OnceCell;
use std::fmt;

use serde_json::{Map, Value};

use super::command::{Certainty, Commands, Word};
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
        begins && is_env_known && !is_moved
    }

    /// Returns whether words may be the command that the rule says: by another path, with options between, and whatever an
    /// expansion comes to.
    fn may_be(&self, words: &[Word]) -> bool {
        let (Some(program), [first, rest @ ..]) = (self.argv.first(), words) else { return false };
        match first.certainty {
            Certainty::AnyWords => return true,
            Certainty::OneWord => {}
            Certainty::Literal => {
                let base = first.text.rsplit('/').next().unwrap_or_default();
                if !program.iter().any(|name| *name == first.text || name == base) {
                    return false;
                }
            }
        }
        may_follow(&self.argv[1..], rest)
    }
}

/// Returns whether the words of a rule follow, with options and their values between them.
fn may_follow(mut wanted: &[Vec<String>], words: &[Word]) -> bool {
    let mut after_option = false;
    for word in words {
        let Some(alternatives) = wanted.first() else { return true };
        let is_wanted = match word.certainty {
            Certainty::AnyWords => return true,
            Certainty::OneWord => true,
            Certainty::Literal => alternatives.contains(&word.text),
        };
        let is_option = word.text.starts_with(['-', '+']);
        if is_wanted {
            wanted = &wanted[1..];
            after_option = false;
        } else if !is_option && !after_option {
            return false;
        } else {
            after_option = is_option;
        }
    }
    wanted.is_empty()
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
        "shell" => args.get("command").and_then(Value::as_str).map(Commands::of_line),
        "exec" => {
            let list = args.get("argv").and_then(Value::as_array)?;
            let words = list.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
            words.map(|words| Commands::of_argv(&words))
        }
        _ => return commands_of_tool(tool, args, tools),
    }
    .map(|commands| match args.get("stdin").and_then(Value::as_str) {
        Some(input) => commands.with_input(input),
        None => commands,
    })
    .map(|commands| {
        let set = args.get("env").and_then(Value::as_object).into_iter().flatten();
        commands.with_variables(set.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))))
    })
}

/// Returns what a tool runs that is described by a template of its arguments.
fn commands_of_tool(tool: &str, args: &Map<String, Value>, tools: &Registry) -> Option<Commands> {
    let ToolCommand { argv, input, is_whole } =
        tools.get(tool)?.tool().command(&Value::Object(args.clone()))?;
    let commands = Commands::of_argv(&argv);
    let commands = match input {
        Some(input) => commands.with_input(&input),
        None => commands,
    };
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
