//! The actions of agents, as calls of built-in tools: rules of a policy are written for those.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use taskpawl_text::{cut, revealed_line};

use crate::words::{plain, text};

/// Longest description of an action that people see, in characters.
const MAX_SHOWN: usize = 2000;

/// An action that an agent asks about.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The built-in tool that does the same; `agent` if there is none.
    pub tool: &'static str,
    /// Its arguments, as far as the agent says them.
    pub args: Map<String, Value>,
    /// The description for people: the title, and the exact arguments.
    pub shown: String,
    /// False if the description is cut. A person then cannot decide on it.
    pub is_whole: bool,
}

impl Action {
    pub(crate) fn new(tool: &'static str, args: Map<String, Value>, shown: &str) -> Self {
        let shown = revealed_line(shown);
        let is_whole = shown.chars().count() <= MAX_SHOWN;
        Self { tool, args, shown: cut(&shown, MAX_SHOWN), is_whole }
    }

    /// Reads the `toolCall` of a permission request.
    pub fn of_tool_call(call: &Value) -> Self {
        let input = call.get("rawInput").unwrap_or(&Value::Null);
        let path = || {
            let named = ["path", "file_path", "abs_path", "filePath"].iter().map(|field| text(input, field));
            let located = call.pointer("/locations/0/path").and_then(Value::as_str);
            named.into_iter().find(|path| !path.is_empty()).or(located).map(str::to_owned)
        };
        let (tool, args) = match (text(call, "kind"), command(input)) {
            ("execute" | "", Some(Command::Line(line))) => ("shell", json!({"command": line})),
            ("execute" | "", Some(Command::Argv(argv))) => ("exec", json!({"argv": argv})),
            ("edit" | "delete" | "move", _) if path().is_some() => ("write_file", json!({"path": path()})),
            ("read" | "search", _) if path().is_some() => ("read_file", json!({"path": path()})),
            ("fetch", _) if input.get("url").is_some_and(Value::is_string) => {
                ("http_request", json!({"url": input["url"]}))
            }
            (kind, _) => ("agent", json!({"action": kind, "title": text(call, "title")})),
        };
        let args = args.as_object().cloned().unwrap_or_default();
        let exact = exact(tool, &args, input);
        let title = plain(text(call, "title"), 300);
        let exact = if exact.is_empty() { String::new() } else { format!(": {}", Value::Object(exact)) };
        Self::new(tool, args, &format!("{title}{exact}"))
    }
}

/// A command of an agent.
enum Command<'a> {
    /// A line for a shell.
    Line(&'a str),
    /// A program with its arguments.
    Argv(&'a [Value]),
}

/// Returns the command in the arguments of an action. A shell with a script is the script: rules are written for that.
fn command(input: &Value) -> Option<Command<'_>> {
    match input.get("command")? {
        Value::String(line) => Some(Command::Line(line)),
        Value::Array(argv) => match &argv[..] {
            [Value::String(shell), Value::String(option), Value::String(script)]
                if matches!(shell.rsplit('/').next(), Some("sh" | "bash" | "zsh"))
                    && matches!(option.as_str(), "-c" | "-lc") =>
            {
                Some(Command::Line(script))
            }
            [] => None,
            argv => Some(Command::Argv(argv)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Returns the arguments that a person sees. They are the same when the agent asks again: without the ids and times that some agents
/// put beside them. The answer is recorded for the question with its arguments.
fn exact(tool: &str, args: &Map<String, Value>, input: &Value) -> Map<String, Value> {
    let mut exact = Map::new();
    let fields = input.as_object().into_iter().flatten();
    if matches!(tool, "shell" | "exec") {
        exact.extend(args.clone());
        exact.extend(
            fields.filter(|(name, _)| *name == "cwd").map(|(name, value)| (name.clone(), value.clone())),
        );
        return exact;
    }
    let is_lasting = |name: &str| !["_id", "Id", "_ms", "_at"].iter().any(|end| name.ends_with(end));
    let fields = fields.filter(|(name, _)| is_lasting(name));
    exact.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
    exact
}

/// The actions of a turn so far, by their ids. Agents say the kind of an action once, and refer to it afterwards.
#[derive(Debug, Default)]
pub(crate) struct Actions(BTreeMap<String, Map<String, Value>>);

/// Fields of actions that matter for decisions.
const FIELDS: &[&str] = &["kind", "title", "rawInput", "locations"];

/// Most actions that are known at a time. The first of more are forgotten.
const MAX_ACTIONS: usize = 1000;

impl Actions {
    /// Takes an update of an action.
    pub(crate) fn take(&mut self, update: &Value) {
        if self.0.len() >= MAX_ACTIONS {
            self.0.pop_first();
        }
        let known = self.0.entry(text(update, "toolCallId").to_owned()).or_default();
        known.extend(said(update));
    }

    /// Returns an action of a permission request, with what earlier updates have said about it.
    pub(crate) fn whole(&self, call: &Value) -> Value {
        let mut whole = self.0.get(text(call, "toolCallId")).cloned().unwrap_or_default();
        whole.extend(said(call));
        Value::Object(whole)
    }
}

/// Returns the fields that an update says something about.
fn said(update: &Value) -> impl Iterator<Item = (String, Value)> + '_ {
    FIELDS.iter().filter_map(|field| {
        let value = update.get(field).filter(|value| !value.is_null())?;
        Some(((*field).to_owned(), value.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_refers_to_what_was_said_before() {
        let mut actions = Actions::default();
        actions.take(&json!({"toolCallId": "1", "kind": "execute", "title": "run", "rawInput": {}}));
        let whole = actions.whole(&json!({"toolCallId": "1", "rawInput": {"command": "ls"}, "title": null}));
        let action = Action::of_tool_call(&whole);
        assert_eq!((action.tool, action.shown.as_str()), ("shell", "run: {\"command\":\"ls\"}"));
        assert_eq!(Action::of_tool_call(&actions.whole(&json!({"toolCallId": "2"}))).tool, "agent");
    }

    #[test]
    fn actions_are_calls_of_the_tool_that_does_the_same() {
        let of = |kind: &str, input: Value| {
            let action = Action::of_tool_call(&json!({"title": "does it", "kind": kind, "rawInput": input}));
            (action.tool, Value::Object(action.args))
        };
        assert_eq!(of("execute", json!({"command": "ls"})), ("shell", json!({"command": "ls"})));
        assert_eq!(of("execute", json!({"command": ["ls"]})), ("exec", json!({"argv": ["ls"]})));
        assert_eq!(of("edit", json!({"file_path": "/a"})), ("write_file", json!({"path": "/a"})));
        assert_eq!(of("read", json!({"path": "/a"})), ("read_file", json!({"path": "/a"})));
        assert_eq!(of("fetch", json!({"url": "http://a"})), ("http_request", json!({"url": "http://a"})));
        let script = json!({"command": ["/bin/bash", "-lc", "ls | wc"]});
        assert_eq!(of("execute", script.clone()), ("shell", json!({"command": "ls | wc"})));
        assert_eq!(of("", script).0, "shell");
        // Without the argument that its rules are about, it is no call of that tool.
        assert_eq!(of("execute", json!({})).0, "agent");
        assert_eq!(of("edit", Value::Null).0, "agent");
        let located = json!({"title": "t", "kind": "edit", "locations": [{"path": "/b"}]});
        assert_eq!(Action::of_tool_call(&located).args["path"], "/b");
        let action = Action::of_tool_call(&json!({"title": "a\u{1b}[31m\nb", "rawInput": {"x": 1}}));
        assert_eq!(action.shown, "a b: {\"x\":1}");
        let long = Action::of_tool_call(&json!({"title": "t", "rawInput": {"x": "y".repeat(3000)}}));
        assert!(!long.is_whole && action.is_whole);
        let input = json!({"command": "ls", "call_id": "7", "started_at_ms": 5, "cwd": "/w"});
        let action = Action::of_tool_call(&json!({"title": "t", "kind": "execute", "rawInput": input}));
        assert_eq!(action.shown, "t: {\"command\":\"ls\",\"cwd\":\"/w\"}");
        let input = json!({"query": "a", "turn_id": "7", "started_at_ms": 5});
        assert_eq!(
            Action::of_tool_call(&json!({"title": "t", "rawInput": input})).shown,
            "t: {\"query\":\"a\"}"
        );
    }
}
