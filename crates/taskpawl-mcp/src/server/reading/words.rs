//! Usual other words: for arguments, actions, states, priorities and tools.

use serde_json::{Value, json};

use super::texts::items;
use crate::server::core::Core;

/// Returns the argument that another usual name means.
pub(super) fn argument(tool: Core, name: &str, is_list: bool) -> Option<&'static str> {
    Some(match (tool, name) {
        (Core::TaskDelete, "id" | "task_id" | "taskId" | "task_ids" | "taskIds" | "tasks") => "ids",
        (
            Core::RunReady | Core::ReadyList,
            "ids" | "tasks" | "id" | "task" | "task_id" | "taskId" | "task_ids" | "taskIds" | "plan"
            | "labels",
        ) => "only",
        (Core::TaskGet | Core::TaskUpdate, "task_id" | "taskId" | "ID" | "task" | "ids") => "id",
        (Core::PlanWrite, "tasks" | "steps" | "todos" | "items") => "plan",
        (Core::PlanShow, "labels") => "label",
        (Core::PlanShow, "state" | "states" | "statuses") => "status",
        (Core::TaskUpdate, "status" | "state") => "action",
        (Core::TaskUpdate, "comment" | "comments" | "notes" | "message" | "reason" | "error" | "summary") => {
            "note"
        }
        (Core::TaskUpdate, "output" | "value") => "result",
        (_, "dryRun" | "dry-run") => "dry_run",
        (_, "ifVersion" | "version") => "if_version",
        (_, "requestId") => "request_id",
        (_, "runId") => "run_id",
        (_, "waitS" | "wait" | "wait_seconds") if !is_list => "wait_s",
        (_, "maxBytes") => "max_bytes",
        _ => return None,
    })
}

/// Returns whether an argument of this name usually makes a call do less: without it tasks would be deleted that were to be shown.
pub(super) fn is_restriction(name: &str) -> bool {
    let restrictions = [
        "check", "confirm", "dry", "except", "exclude", "filter", "if", "limit", "max", "noop", "only",
        "preview", "simulate", "test", "unless", "validate", "whatif",
    ];
    let plain = plain(name);
    restrictions.iter().any(|word| plain.starts_with(word))
}

/// Returns whether an argument of this name only says why or how a call is made, so that the call does the same without it.
pub(super) fn is_remark(tool: Core, name: &str) -> bool {
    let remarks =
        ["reason", "comment", "explanation", "thought", "rationale", "why", "background", "verbose"];
    // A change of a task has a note for the reason.
    tool != Core::TaskUpdate && remarks.contains(&plain(name).as_str())
}

/// Returns the value of a renamed argument in the form of its new place.
pub(super) fn in_place(tool: Core, given: &str, meant: &str, value: Value) -> Value {
    match (tool, given, value) {
        (Core::PlanWrite, _, tasks) if meant == "plan" => json!({"tasks": tasks}),
        (Core::RunReady | Core::ReadyList, "plan", Value::String(plan)) => {
            json!([if plan.starts_with("plan:") { plan } else { format!("plan:{plan}") }])
        }
        (Core::RunReady | Core::ReadyList, "labels", labels) => of_labels(labels),
        (_, _, value) => value,
    }
}

/// Returns labels as selectors. What is no label stays, so that it is refused: without it the list would mean more.
fn of_labels(labels: Value) -> Value {
    let of = |label: Value| label.as_str().map(|label| json!(format!("label:{label}"))).unwrap_or(label);
    match labels {
        // Without any item the text stays, as an empty list would mean all.
        Value::String(text) => match items(&text) {
            none if none.is_empty() => text.into(),
            some => some.into_iter().map(of).collect(),
        },
        Value::Array(labels) => labels.into_iter().map(of).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => labels,
    }
}

/// Returns whether a word means that a task has not begun.
pub(super) fn is_unbegun(word: &str) -> bool {
    let plain = plain(word);
    plain == "todo" || synonym(&plain).contains(&"todo")
}

/// Returns the value of `plain` that another usual word means, in any case and with any separators.
pub(super) fn of_enum(word: &str, allowed: &[&str]) -> Option<String> {
    let plain = plain(word);
    let same = allowed.iter().find(|known| self::plain(known) == plain);
    let meant = same.copied().or_else(|| {
        let meant = synonym(&plain).iter().find(|meant| allowed.contains(meant));
        meant.copied()
    });
    meant.map(str::to_owned)
}

/// Returns a word in lower case, without separators.
fn plain(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Returns what a word can mean, depending on what is allowed.
fn synonym(plain: &str) -> &'static [&'static str] {
    match plain {
        "completed" | "complete" | "finished" | "finish" => &["done"],
        "inprogress" | "started" | "active" => &["in_progress", "claim"],
        "start" | "begin" | "take" => &["claim"],
        "pending" | "open" | "notstarted" => &["todo"],
        "unclaim" | "giveback" => &["release"],
        "restart" | "rerun" => &["reopen"],
        "failed" => &["fail"],
        "canceled" | "cancelled" => &["cancelled", "cancel"],
        "skipped" => &["skip"],
        "output" | "log" | "logs" => &["stdout"],
        "error" | "errors" => &["stderr"],
        _ => &[],
    }
}

/// Returns the priority that a usual word or number means.
pub(super) fn priority(value: &Value) -> Option<&'static str> {
    let word = match value {
        Value::String(word) => plain(word),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(match word.as_str() {
        "critical" | "p0" | "1" | "urgent" | "highest" | "blocker" => "critical",
        "high" | "p1" | "2" => "high",
        "medium" | "p2" | "3" | "normal" => "medium",
        "low" | "p3" | "4" | "lowest" => "low",
        _ => return None,
    })
}

/// Returns the field of a task that another usual name means.
pub(super) fn task_field(name: &str, value: &Value) -> Option<&'static str> {
    Some(match name {
        "title" | "content" | "subject" | "step" | "summary" | "text" | "task" if value.is_string() => "name",
        "depends_on" | "dependsOn" | "blockedBy" | "blocked_by" | "after" | "dependencies" => "needs",
        "requires" if value.is_array() || value.is_string() => "needs",
        "due_date" | "due" | "deadline" => "dueDate",
        "task_id" | "taskId" | "ID" => "id",
        "cmd" | "command" => "run",
        "script" if value.is_string() => "run",
        "timeout_ms" | "timeoutMs" => "timeout",
        _ => return None,
    })
}

/// Returns the tool of plans that another usual name means.
pub(super) fn tool(name: &str) -> Option<&'static str> {
    Some(match name {
        "bash" | "Bash" | "sh" | "run_command" | "terminal" => "shell",
        "Write" | "write" => "write_file",
        "Read" | "read" => "read_file",
        "Edit" | "edit" | "str_replace" => "edit_file",
        "ls" | "LS" => "list_dir",
        "Glob" => "glob",
        "Grep" => "grep",
        "fetch" | "http" => "http_request",
        _ => return None,
    })
}

/// Returns the argument of a built-in tool that another usual name means.
pub(super) fn tool_argument(tool: &str, name: &str) -> Option<&'static str> {
    Some(match (tool, name) {
        (
            "write_file" | "read_file" | "edit_file" | "list_dir",
            "file_path" | "filePath" | "file" | "filename",
        ) => "path",
        ("edit_file", "old_string" | "old_str" | "oldString") => "old",
        ("edit_file", "new_string" | "new_str" | "newString") => "new",
        ("write_file", "text" | "contents" | "file_text") => "content",
        ("shell", "cmd" | "script") => "command",
        ("exec", "cmd" | "command" | "args") => "argv",
        _ => return None,
    })
}
