//! Changes of tasks in words: how a status came about, and which fields became what.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use taskpawl::model::task::{Cause, Change, Status};

use crate::text::{cut, flow};

/// Maximum length of a value, in columns.
const SHOWN: usize = 60;

/// A change of a status.
#[derive(Debug, Clone, Copy)]
pub(super) struct StatusChange {
    pub(super) from: Status,
    pub(super) to: Status,
    pub(super) cause: Cause,
    pub(super) attempt: u32,
    /// True for a claim with a lease, which is that of an agent or a person.
    pub(super) has_lease: bool,
}

impl StatusChange {
    /// Returns the change in words, such as `started, attempt 2`.
    pub(super) fn words(self) -> String {
        let Self { from, to, cause, attempt, has_lease } = self;
        let (from, to) = (word(from), word(to));
        let verb = match cause {
            Cause::Claim if has_lease => return format!("claimed, attempt {attempt}"),
            Cause::Claim => return format!("started, attempt {attempt}"),
            Cause::Cached => return format!("{to}, with the result of an earlier success"),
            Cause::Report | Cause::Empty | Cause::Gate | Cause::RunOne | Cause::Interrupt => return to,
            Cause::Ask => return "waits for approval".to_owned(),
            Cause::Wait => return "waits without a run".to_owned(),
            Cause::Done | Cause::Fail => return format!("marked as {to}"),
            Cause::Block => return "blocked by hand".to_owned(),
            Cause::Skip | Cause::Cancel => return format!("{to}, was {from}"),
            Cause::Approve => "approved",
            Cause::Reject => "rejected",
            Cause::Withdraw => "needs no approval any more",
            Cause::Unblock => "unblocked",
            Cause::Release => "given back",
            Cause::Retry => "to be retried",
            Cause::Reopen => "reopened",
            Cause::Undo => return format!("{to} again by undo, was {from}"),
            Cause::Import => return format!("{to} by import, was {from}"),
        };
        if from == to || cause == Cause::Approve || cause == Cause::Reject {
            return verb.to_owned();
        }
        format!("{verb}, was {from}")
    }
}

fn word(status: Status) -> String {
    status.as_str().replace('_', " ")
}

/// Returns the changed fields in words.
pub(super) fn of_fields(fields: &BTreeMap<String, Change>) -> String {
    let of = |(field, Change { from, to }): (&String, &Change)| match (field.as_str(), args_of(field)) {
        (_, Some(call)) => format!("arguments of call {call} {}", becomes(from, to)),
        ("toolCalls", None) => of_calls(from, to),
        (field, None) => format!("{} {}", name_of(field), becomes(from, to)),
    };
    let changes: Vec<String> = fields.iter().map(of).collect();
    format!("changed {}", changes.join(", "))
}

/// Returns the call whose arguments a person changed with an approval.
fn args_of(field: &str) -> Option<&str> {
    field.strip_prefix("toolCalls.")?.strip_suffix(".args")
}

/// Returns the name of a field as plans and commands have it.
fn name_of(field: &str) -> &str {
    match field {
        "dueDate" => "due date",
        "dependencies" => "needs",
        field => field,
    }
}

fn becomes(from: &Value, to: &Value) -> String {
    format!("{} → {}", shown(from), shown(to))
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "nothing".to_owned(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        Value::Array(items) if items.len() == 1 => "1 entry".to_owned(),
        Value::Array(items) => format!("{} entries", items.len()),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => flow(value),
    };
    cut(&text, SHOWN)
}

/// Returns the calls that are other ones now.
fn of_calls(from: &Value, to: &Value) -> String {
    let (from, to) = (by_id(from), by_id(to));
    let ids: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let changes: Vec<String> = ids
        .into_iter()
        .filter_map(|id| match (from.get(id), to.get(id)) {
            (Some(from), Some(to)) if from == to => None,
            (Some(from), Some(to)) => Some(format!("call {id} {}", of_call(from, to))),
            (Some(_), None) => Some(format!("call {id} removed")),
            (None, to) => Some(format!("call {id} added: {}", to.map(|to| work(to)).unwrap_or_default())),
        })
        .collect();
    if changes.is_empty() { "the order of the calls".to_owned() } else { changes.join(", ") }
}

/// Returns the calls by their ids. Those of plans are pairs of an id, if they have one of their own, and the call.
fn by_id(calls: &Value) -> BTreeMap<String, &Value> {
    let calls = calls.as_array().into_iter().flatten().zip(1..);
    let named = calls.map(|(entry, number)| {
        let (id, call) = match entry.as_array().map(Vec::as_slice) {
            Some([id, call]) => (id, call),
            _ => (&entry["id"], entry),
        };
        (id.as_str().map_or_else(|| format!("c{number}"), str::to_owned), call)
    });
    named.collect()
}

fn of_call(from: &Value, to: &Value) -> String {
    let (before, now) = (work(from), work(to));
    if before != now {
        return format!("{before} → {now}");
    }
    let keys = |call: &Value| -> Vec<String> {
        call.as_object().map(|call| call.keys().cloned().collect()).unwrap_or_default()
    };
    let all: BTreeSet<String> = keys(from).into_iter().chain(keys(to)).collect();
    let fields: Vec<String> = all
        .iter()
        .filter(|field| from.get(*field) != to.get(*field))
        .map(|field| format!("{} {}", name_of(field), becomes(&from[field], &to[field])))
        .collect();
    fields.join(", ")
}

/// Returns the work of a call: the command of a program, else the tool with its arguments.
fn work(call: &Value) -> String {
    let (tool, args) = (call["toolName"].as_str().unwrap_or_default(), &call["args"]);
    let text = match (tool, &args["command"], &args["argv"]) {
        ("shell", Value::String(command), _) => format!("`{}`", command.trim()),
        ("exec", _, words @ Value::Array(_)) => format!("`{}`", shown(words).replace(", ", " ")),
        _ if args.as_object().is_none_or(serde_json::Map::is_empty) => tool.to_owned(),
        _ => format!("{tool} {}", flow(args)),
    };
    if text.starts_with('`') && text.chars().count() > SHOWN {
        return format!("{}`", cut(&text, SHOWN - 1));
    }
    cut(&text, SHOWN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(field: &str, from: Value, to: Value) -> String {
        of_fields(&[(field.to_owned(), Change { from, to })].into())
    }

    #[test]
    fn fields_are_told_without_json() {
        let (from, to) = (json!({"argv": ["echo", "prod"]}), json!({"argv": ["echo", "staging"]}));
        let told = "changed arguments of call push {argv: [echo, prod]} → {argv: [echo, staging]}";
        assert_eq!(changed("toolCalls.push.args", from, to), told);
        assert_eq!(changed("priority", json!(null), json!("high")), "changed priority nothing → high");
        assert_eq!(changed("labels", json!([]), json!(["a", "b"])), "changed labels nothing → a, b");
        assert_eq!(changed("notes", json!([{"text": "x"}]), json!(null)), "changed notes 1 entry → nothing");
        assert_eq!(
            changed("dueDate", json!(null), json!("2026-01-02")),
            "changed due date nothing → 2026-01-02"
        );
    }

    #[test]
    fn calls_are_told_by_their_work() {
        let call = |id: &str, tool: &str, args: Value| json!({"id": id, "toolName": tool, "args": args});
        let shell = |command: &str| call("c1", "shell", json!({"command": command, "interpreter": ["sh"]}));
        let log = call("c2", "log", json!({"message": "x"}));
        for (from, to, words) in [
            (json!([shell("make")]), json!([shell("make all\n")]), "call c1 `make` → `make all`"),
            (json!([shell("make")]), json!([shell("make"), log]), "call c2 added: log {message: x}"),
            (json!([shell("make"), log]), json!([log]), "call c1 removed"),
            (json!([shell("make"), log]), json!([log, shell("make")]), "the order of the calls"),
            (
                json!([call("c1", "exec", json!({"argv": ["ls", "-l"]}))]),
                json!([call("c1", "wait", json!({}))]),
                "call c1 `ls -l` → wait",
            ),
        ] {
            assert_eq!(changed("toolCalls", from, to), format!("changed {words}"));
        }
        let mut slow = shell("make");
        slow["timeout"] = json!("2m");
        let told = changed("toolCalls", json!([shell("make")]), json!([slow]));
        assert_eq!(told, "changed call c1 timeout nothing → 2m");
        let pairs = |command: &str| json!([[null, {"toolName": "shell", "args": {"command": command}}]]);
        assert_eq!(changed("toolCalls", pairs("a"), pairs("b")), "changed call c1 `a` → `b`");
        let cut = changed("toolCalls", json!([]), json!([shell(&"x".repeat(200))]));
        assert!(cut.ends_with("x…`") && cut.chars().count() < 90, "{cut}");
    }
}
