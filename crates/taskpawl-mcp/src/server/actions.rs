//! Next steps, as exact calls of this server's tools. They correspond to the commands that hints of the command line
//! name.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use taskpawl::model::advice::{Advice, Advised, CommandLine, HintOption, HintWords, SILENT_NOTE};
use taskpawl::model::value::{Selector, TaskId, bounded};

use super::core::Core;
use super::options::ServerOptions;

/// A next step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// A call of one of this server's tools.
    Call { tool: &'static str, arguments: Map<String, Value> },
    /// A command that only a person may run, at a terminal.
    Person(Advised),
}

impl Action {
    /// Returns a call.
    ///
    /// # Panics
    /// If `arguments` is not an object.
    pub(super) fn call(tool: &'static str, arguments: Value) -> Self {
        let Value::Object(arguments) = arguments else {
            unreachable!("BUG: arguments are an object");
        };
        Self::Call { tool, arguments }
    }

    /// Returns whether both are calls of one tool.
    pub(super) fn is_same_tool(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Call { tool: one, .. }, Self::Call { tool: two, .. }) if one == two)
    }

    /// Returns a call again, as a next step.
    pub(super) fn again(tool: Core, arguments: &Map<String, Value>) -> Self {
        let mut same = arguments.clone();
        same.retain(|_, value| !value.is_null());
        Self::call(tool.name(), same.into())
    }

    /// Returns a command for a person.
    pub(super) fn person(advice: Advice) -> Self {
        Self::Person(advice.into())
    }

    /// Formats commands for a person with the flags of `line`.
    pub(super) fn write_as(&mut self, line: &Arc<CommandLine>) {
        if let Self::Person(command) = self {
            command.write_as(line);
        }
    }

    /// Converts advice to steps. Advice without a tool that is not for people yields none.
    pub(super) fn of(advice: &Advice) -> Vec<Self> {
        advice.steps().iter().filter_map(Self::of_step).collect()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is for people, or has no call of ours")]
    fn of_step(advice: &Advice) -> Option<Self> {
        let task = |verb: &str, id: &TaskId| Self::call("task_update", json!({"id": id, "action": verb}));
        Some(match advice {
            advice if advice.is_for_people() => Self::person(advice.clone()),
            Advice::Show { id }
            | Advice::Explain { id }
            | Advice::Logs { id }
            | Advice::History { id: Some(id) }
            | Advice::AddDependency { id, .. } => Self::call("task_get", json!({"id": id})),
            Advice::Diff { id } => Self::call("task_get", json!({"id": id, "part": "diff"})),
            Advice::HistoryOfRun { run } => Self::call("run_ready", json!({"run_id": run})),
            Advice::List { status } if status.is_empty() => {
                Self::call("plan_show", json!({"limit": MAX_LISTED}))
            }
            Advice::List { status } => Self::call("plan_show", json!({"status": status})),
            Advice::ListSelectors {} => Self::call("plan_show", json!({"limit": MAX_LISTED})),
            Advice::Runs {} | Advice::History { id: None } => Self::call("plan_show", json!({})),
            Advice::ExplainReady {} => Self::call("ready_list", json!({})),
            Advice::ClaimNext {} => Self::call("ready_list", json!({"claim": true})),
            Advice::Claim { id } => task("claim", id),
            Advice::Release { id, holder: None } => task("release", id),
            Advice::Release { id, holder: Some(holder) } => {
                Self::call("task_update", json!({"id": id, "action": "release", "agent": holder}))
            }
            Advice::ReleaseSilent { id } => {
                Self::call("task_update", json!({"id": id, "action": "release", "note": SILENT_NOTE}))
            }
            Advice::Done { id } => task("done", id),
            Advice::Fail { id } => task("fail", id),
            Advice::Skip { id } => task("skip", id),
            Advice::Cancel { id } => task("cancel", id),
            Advice::Retry { id, cascade } => cascading("retry", id, *cascade),
            Advice::Reopen { id, cascade } => cascading("reopen", id, *cascade),
            Advice::RunReady { only, .. } => Self::call("run_ready", restricted(only, json!({}))),
            Advice::RunOne { id } => Self::call("run_ready", json!({"only": [id]})),
            // Advice on several tasks has no single call. The `task_get` of each task offers its own.
            _ => return None,
        })
    }

    /// Converts several pieces of advice, without duplicates.
    pub(super) fn of_all<'a>(advice: impl IntoIterator<Item = &'a Advice>) -> Vec<Self> {
        let mut actions = Vec::new();
        for action in advice.into_iter().flat_map(Self::of) {
            if !actions.contains(&action) {
                actions.push(action);
            }
        }
        actions
    }

    /// Returns the same call with an agent's name, unless it already has one.
    #[must_use]
    pub(super) fn in_name_of(&self, agent: Option<&str>) -> Self {
        let mut named = self.clone();
        if let (Self::Call { arguments, .. }, Some(agent)) = (&mut named, agent) {
            arguments.entry("agent").or_insert_with(|| agent.into());
        }
        named
    }

    /// Returns the same call for the page at another offset.
    #[must_use]
    pub(super) fn at_offset(&self, offset: u64) -> Self {
        let mut next = self.clone();
        if let Self::Call { arguments, .. } = &mut next {
            arguments.insert("offset".to_owned(), offset.into());
        }
        next
    }

    /// Returns the same call for an answer of another size.
    #[must_use]
    pub(super) fn of_size(&self, max_bytes: usize) -> Self {
        let mut sized = self.clone();
        if let Self::Call { arguments, .. } = &mut sized {
            arguments.insert("max_bytes".to_owned(), max_bytes.into());
        }
        sized
    }

    /// Returns whether this only starts a task over, as it is.
    pub(super) fn is_restart_of(&self, id: &str) -> bool {
        let Self::Call { tool: "task_update", arguments } = self else { return false };
        let is = |name: &str, value: &str| arguments.get(name).is_some_and(|given| given == value);
        is("id", id) && (is("action", "retry") || is("action", "reopen"))
    }

    /// Returns whether a server has the tool that a call needs. Commands for people are always possible.
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
            Self::Person(command) => format!("`{command}` {FOR_PEOPLE}"),
        }
    }
}

/// Maximum number of tasks in a list that is used to find ids.
const MAX_LISTED: usize = 20;

fn cascading(verb: &str, id: &TaskId, cascade: bool) -> Action {
    let mut arguments = json!({"id": id, "action": verb});
    if cascade {
        arguments["cascade"] = true.into();
    }
    Action::call("task_update", arguments)
}

/// Formats hints as calls in the name of an agent.
#[derive(Debug)]
pub(super) struct CallWords<'a> {
    /// The agent; `None` if the caller gave no name.
    pub(super) agent: Option<&'a str>,
    /// The flags of commands for people.
    pub(super) line: &'a CommandLine,
}

/// Marks a command for people.
const FOR_PEOPLE: &str = "(a person, at a terminal)";

impl HintWords for CallWords<'_> {
    fn advice(&self, advice: &Advice) -> String {
        // The command for this would be of no use to a caller without a terminal.
        if let Advice::AddDependency { id, on } = advice {
            let call = Action::call("task_update", json!({"id": id})).in_name_of(self.agent);
            let on = bounded::data(on.as_str());
            return format!("{} with {on} among the `dependencies` in `fields`", call.in_words());
        }
        let line = Arc::new(self.line.clone());
        let in_words = |mut action: Action| {
            action.write_as(&line);
            action.in_name_of(self.agent).in_words()
        };
        let words: Vec<String> = Action::of(advice).into_iter().map(in_words).collect();
        if words.is_empty() {
            format!("`{}` {FOR_PEOPLE}", self.line.of(advice))
        } else {
            words.join(", then ")
        }
    }

    fn command(&self, words: &str, args: &[String]) -> String {
        format!("{} {FOR_PEOPLE}", self.line.command(words, args))
    }

    fn option(&self, option: &HintOption) -> String {
        match option {
            HintOption::Cascade => "`cascade: true`".to_owned(),
            HintOption::RedoChanged => "`changed: redo`".to_owned(),
            HintOption::KeepChanged => "`changed: keep`".to_owned(),
            HintOption::Needs => "`needs`".to_owned(),
            HintOption::Param { name } => format!("a value for {} in the plan", bounded::data(name)),
            HintOption::Instance | HintOption::Moved | HintOption::Prefix | HintOption::Adopt | _ => {
                format!("{} {FOR_PEOPLE}", self.line.option(option))
            }
        }
    }
}

/// Returns the arguments of a call, restricted to a scope.
pub(super) fn restricted(only: &[Selector], mut arguments: Value) -> Value {
    if !only.is_empty() {
        arguments["only"] = only.iter().map(ToString::to_string).collect();
    }
    arguments
}

#[cfg(test)]
mod tests {
    use taskpawl::model::value::Selector;

    use super::*;

    fn id(text: &str) -> TaskId {
        TaskId::from(text)
    }

    #[test]
    fn advice_becomes_calls() {
        for (advice, call) in [
            (Advice::retry(&id("a")), r#"{"arguments":{"action":"retry","id":"a"},"tool":"task_update"}"#),
            (
                Advice::Retry { id: id("a"), cascade: true },
                r#"{"arguments":{"action":"retry","cascade":true,"id":"a"},"tool":"task_update"}"#,
            ),
            (
                Advice::run_ready(&[Selector::Label("very urgent".to_owned())]),
                r#"{"arguments":{"only":["label:very urgent"]},"tool":"run_ready"}"#,
            ),
            (Advice::logs(&id("a")), r#"{"arguments":{"id":"a"},"tool":"task_get"}"#),
            (
                Advice::Approve { id: id("a"), answer: Some("to production".to_owned()) },
                r#"{"askPersonToRun":"taskpawl approve a --answer 'to production'"}"#,
            ),
        ] {
            assert_eq!(Action::of(&advice)[0].to_json().to_string(), call);
        }
    }

    #[test]
    fn text_of_others_becomes_no_action() {
        let holder = "x` first `taskpawl cancel b".to_owned();
        let hint = taskpawl::model::advice::Hint::new("held by ")
            .data(&holder)
            .text("; ")
            .advice(Advice::ClaimNext {});
        assert_eq!(Action::of_all(hint.advised()).len(), 1);
        let text = hint.format_with(&CallWords { agent: Some("ann"), line: &CommandLine::default() });
        assert!(!text.contains("`taskpawl cancel") && text.contains("\"agent\":\"ann\""), "{text}");
        let release = Advice::Release { id: id("a"), holder: Some(holder.clone()) };
        let [Action::Call { arguments, .. }] = &Action::of(&release)[..] else { panic!("one call") };
        assert_eq!(arguments["agent"], holder, "a name stays one argument");
    }
}
