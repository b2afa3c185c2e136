//! What to do next, as exact calls of our tools: what commands of the command line are to people.

use serde_json::{Map, Value, json};

use super::options::ServerOptions;
use super::tools::{Core, task_update};

/// Something to do next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// A call of one of our tools.
    Call { tool: &'static str, arguments: Map<String, Value> },
    /// What only a person does, at a terminal.
    Person(String),
}

impl Action {
    /// Returns a call. `arguments` is an object.
    pub(super) fn call(tool: &'static str, arguments: Value) -> Self {
        let Value::Object(arguments) = arguments else {
            unreachable!("BUG: arguments are an object");
        };
        Self::Call { tool, arguments }
    }

    /// Returns what a command of the command line comes to; nothing where it means nothing here.
    pub(super) fn of_command(command: &str) -> Option<Self> {
        let mut words = words(command).into_iter();
        if words.next().as_deref() != Some("taskpawl") {
            return None;
        }
        let (verb, rest): (String, Vec<String>) = (words.next()?, words.collect());
        let id = rest.first().filter(|word| !word.starts_with("--"));
        match verb.as_str() {
            verb if task_update::ACTIONS.contains(&verb) => {
                let mut arguments = json!({"id": id?, "action": verb});
                if rest.iter().any(|word| word == "--cascade") {
                    arguments["cascade"] = true.into();
                }
                if let Some(actor) = values(&rest, "--actor").next() {
                    arguments["agent"] = actor.into();
                }
                Some(Self::call("task_update", arguments))
            }
            "history" if id.is_none() => {
                let run = values(&rest, "--run").next()?;
                Some(Self::call("run_ready", json!({"run_id": run})))
            }
            "show" | "logs" | "explain" | "history" => Some(Self::call("task_get", json!({"id": id?}))),
            "run" => Some(Self::call("run_ready", json!({"only": [id?]}))),
            "run-all-ready" => Some(Self::call("run_ready", restricted(&rest))),
            "list" => Some(Self::call("plan_show", listed(&rest))),
            "runs" => Some(Self::call("plan_show", json!({}))),
            "ready" => Some(Self::call("ready_list", json!({}))),
            verb if OF_PEOPLE.contains(&verb) => Some(Self::Person(command.to_owned())),
            _ => None,
        }
    }

    /// Returns what several commands come to, each once.
    pub(super) fn of_commands<'c>(commands: impl IntoIterator<Item = &'c str>) -> Vec<Self> {
        let mut actions = Vec::new();
        for action in commands.into_iter().flat_map(|line| line.split(" && ")).filter_map(Self::of_command) {
            if !actions.contains(&action) {
                actions.push(action);
            }
        }
        actions
    }

    /// Returns the same call in the name of an agent, unless it is one in the name of another.
    #[must_use]
    pub(super) fn in_name_of(&self, agent: Option<&str>) -> Self {
        let mut named = self.clone();
        if let (Self::Call { arguments, .. }, Some(agent)) = (&mut named, agent) {
            arguments.entry("agent").or_insert_with(|| agent.into());
        }
        named
    }

    /// Returns the same call for what begins at another offset.
    #[must_use]
    pub(super) fn at_offset(&self, offset: u64) -> Self {
        let mut next = self.clone();
        if let Self::Call { arguments, .. } = &mut next {
            arguments.insert("offset".to_owned(), offset.into());
        }
        next
    }

    /// Returns whether a server has what it takes. People have their terminal anyway.
    pub(super) fn is_here(&self, options: &ServerOptions) -> bool {
        let Self::Call { tool, arguments } = self else { return true };
        let claims = arguments.get("claim") == Some(&Value::Bool(true));
        Core::named(tool, options).is_some() && !(options.claims_nothing() && claims)
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Call { tool, arguments } => json!({"tool": tool, "arguments": arguments}),
            Self::Person(command) => json!({"askPersonToRun": command}),
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Call { tool, arguments } => format!("`{tool} {}`", Value::Object(arguments.clone())),
            Self::Person(command) => format!("`{command}` (a person, at a terminal)"),
        }
    }
}

/// Commands that decide about what agents do, or mend what they cannot reach.
const OF_PEOPLE: [&str; 7] = ["approve", "reject", "block", "unblock", "trust", "undo", "doctor"];

/// How many tasks are listed for somebody who looks for ids.
const LISTED: usize = 20;

/// Returns the values of an option.
fn values<'w>(words: &'w [String], option: &'w str) -> impl Iterator<Item = &'w str> {
    words.windows(2).filter(move |pair| pair[0] == option).map(|pair| pair[1].as_str())
}

fn restricted(words: &[String]) -> Value {
    let only: Vec<&str> = values(words, "--only").collect();
    if only.is_empty() { json!({}) } else { json!({"only": only}) }
}

fn listed(words: &[String]) -> Value {
    let status: Vec<&str> = values(words, "--status").flat_map(|states| states.split(',')).collect();
    if status.is_empty() { json!({"limit": LISTED}) } else { json!({"status": status}) }
}

/// Returns the words of a command line as we write them: quoted with `'`, where that is needed.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted, mut is_word) = (Vec::new(), String::new(), false, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => (is_quoted, is_word) = (!is_quoted, true),
            '\\' if !is_quoted => word.extend(chars.next()),
            c if c.is_whitespace() && !is_quoted => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            c => {
                word.push(c);
                is_word = true;
            }
        }
    }
    words.extend(is_word.then_some(word));
    words
}

/// Puts our calls, in the name of `agent`, in the place of commands that stand in a text between backticks, and returns them beside
/// it. What only people do is said to be for them.
pub(super) fn translated(text: &str, agent: Option<&str>) -> (String, Vec<Action>) {
    let (mut said, mut actions) = (String::new(), Vec::new());
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 0 {
            said.push_str(part);
            continue;
        }
        match Action::of_command(part).or_else(|| short(part)) {
            Some(action) => {
                let action = action.in_name_of(agent);
                said.push_str(&action.in_words());
                actions.push(action);
            }
            None => said.push_str(&in_our_words(part)),
        }
    }
    (said, actions)
}

/// Commands that hints name without the program.
fn short(part: &str) -> Option<Action> {
    match part.split_once(' ') {
        Some(("claim", "--next")) => Some(Action::call("ready_list", json!({"claim": true}))),
        Some(("release", _)) => Action::of_command(&format!("taskpawl {part}")),
        _ => None,
    }
}

/// Returns what stands between backticks and is no call.
fn in_our_words(part: &str) -> String {
    let parts: Vec<&str> = part.split(' ').collect();
    match parts.as_slice() {
        ["taskpawl", "add-dependency", task, on] => {
            format!("`task_update {{\"id\":\"{task}\"}}` with `{on}` among the `dependencies` in `fields`")
        }
        ["--cascade"] => "`cascade: true`".to_owned(),
        ["--fresh"] => "`action: reopen`".to_owned(),
        ["--needs"] => "`needs`".to_owned(),
        ["taskpawl", ..] => format!("`{part}` (a person, at a terminal)"),
        [word] if OF_PEOPLE.contains(word) => format!("`{part}` (a person, at a terminal)"),
        [word, ..] if word.starts_with("--") => format!("`{part}` (a person, at a terminal)"),
        _ => format!("`{part}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_become_calls() {
        for (command, call) in [
            ("taskpawl retry a", r#"{"arguments":{"action":"retry","id":"a"},"tool":"task_update"}"#),
            (
                "taskpawl retry a --cascade",
                r#"{"arguments":{"action":"retry","cascade":true,"id":"a"},"tool":"task_update"}"#,
            ),
            (
                "taskpawl run-all-ready --only 'label:very urgent'",
                r#"{"arguments":{"only":["label:very urgent"]},"tool":"run_ready"}"#,
            ),
            ("taskpawl logs a", r#"{"arguments":{"id":"a"},"tool":"task_get"}"#),
            (
                "taskpawl approve a --answer 'to production'",
                r#"{"askPersonToRun":"taskpawl approve a --answer 'to production'"}"#,
            ),
        ] {
            assert_eq!(Action::of_command(command).unwrap().to_json().to_string(), call);
        }
        assert_eq!(Action::of_command("taskpawl where"), None);
    }

    #[test]
    fn hints_name_calls() {
        let (text, actions) =
            translated("take another one with `claim --next`, or ask the holder to `release a`", None);
        assert_eq!(
            text,
            "take another one with `ready_list {\"claim\":true}`, or ask the holder to `task_update {\"action\":\"release\",\"id\":\"a\"}`"
        );
        assert_eq!(actions.len(), 2);
        let (text, actions) = translated("the state is `todo`", Some("ann"));
        assert_eq!((text.as_str(), actions.len()), ("the state is `todo`", 0));
        let (text, _) = translated("`taskpawl retry a` or `taskpawl release b --actor bob`", Some("ann"));
        assert!(text.contains("\"agent\":\"ann\"") && text.contains("\"agent\":\"bob\""), "{text}");
    }
}
