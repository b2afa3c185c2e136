//! Short forms of tasks and runs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use taskpawl::digest::RunNow;
use taskpawl::model::insight::unrunnable_task;
use taskpawl::model::rules::Means;
use taskpawl::model::task::{ApprovalRequest, BlockedReason, Priority, Status, Task, ToolCall};
use taskpawl::model::value::format_time;
use taskpawl::{Error, Manager, RunState};

/// Maximum length of a text in a list, in characters.
pub(super) const LISTED_CHARS: usize = 160;

/// Maximum number of calls and notes of a task.
const SHOWN_ITEMS: usize = 20;

/// Returns the short form of a task for lists.
pub(super) fn task(task: &Task) -> Value {
    let mut brief = json!({"id": task.id, "name": cut(&task.name, LISTED_CHARS), "status": task.status});
    let mut add = |name: &str, value: Value| brief[name] = value;
    if task.priority != Priority::default() {
        add("priority", json!(task.priority));
    }
    if !task.dependencies.is_empty() {
        add("needs", json!(task.dependencies));
    }
    if let Some(plan) = &task.plan {
        add("plan", json!(plan));
    }
    if let Some(parent) = &task.parent {
        add("parent", json!(parent));
    }
    if let Some(work) = work(task) {
        add("work", work);
    }
    if let Some(assignee) = task.options.get("assignee") {
        add("assignee", cut_deep(assignee.clone(), LISTED_CHARS));
    }
    if let Some(wait) = &task.progress.waiting_for {
        add("waitingFor", json!(wait));
    } else if let Some(claim) = &task.claim {
        add("heldBy", json!(claim.actor));
    }
    if let Some(ended) = &task.claim_ended {
        add("claimEnded", json!(ended));
    }
    if let Some(reason) = &task.blocked_reason {
        add("blockedBy", self::reason(reason));
    }
    if let Some(error) = task.error.as_ref().filter(|error| !error.is_empty()) {
        add("error", json!(cut(error, LISTED_CHARS)));
    }
    brief
}

/// Returns the short forms of tasks. A ready task gets `ready`, or `because` if a run of this server cannot start it
/// with `means`.
pub(super) fn tasks(manager: &Manager, means: &Means, tasks: &[Task]) -> Result<Vec<Value>, Error> {
    manager.read(|view| {
        let mut briefs = Vec::with_capacity(tasks.len());
        for found in tasks {
            let mut brief = task(found);
            let node = view.key(found.id.as_str())?.map(|key| view.node(key)).transpose()?.flatten();
            if let Some(node) = node.filter(|node| found.status == Status::Todo && node.is_ready()) {
                match unrunnable_task(view, &node, means)? {
                    None => brief["ready"] = true.into(),
                    Some(lacking) => brief["because"] = lacking.because.into(),
                }
            }
            briefs.push(brief);
        }
        Ok(briefs)
    })
}

/// Returns the number of tasks in each status that occurs.
pub(super) fn counts(counts: &BTreeMap<Status, u64>) -> Value {
    let some = counts.iter().filter(|(_, count)| **count > 0);
    some.map(|(status, count)| (status.to_string(), json!(count))).collect::<Map<_, _>>().into()
}

/// Returns the reason of a blocked task, without fields that only programs compare.
pub(super) fn reason(reason: &BlockedReason) -> Value {
    let mut told = cut_deep(json!(reason), LISTED_CHARS);
    if let Value::Object(fields) = &mut told {
        fields.retain(|name, _| !["hash", "policy"].contains(&name.as_str()));
    }
    told
}

/// Returns the tools of a task's calls, or "by hand"; `None` if only its subtasks do the work.
fn work(task: &Task) -> Option<Value> {
    let tools: Vec<&str> =
        task.metadata.tool_calls.iter().map(|call| call.tool_name.as_str()).take(4).collect();
    if !tools.is_empty() {
        return Some(json!(tools));
    }
    let is_manual = task.subtasks.is_empty() && task.options.get("milestone") != Some(&Value::Bool(true));
    is_manual.then(|| json!("by hand"))
}

/// Returns a task with all fields. Texts are cut after `most` characters.
pub(super) fn whole(task: &Task, most: usize) -> Map<String, Value> {
    let Value::Object(mut whole) = json!(task) else {
        unreachable!("BUG: a task is an object");
    };
    for name in ["progress", "names", "startedAt", "generation", "metadata"] {
        whole.remove(name);
    }
    whole.retain(|_, value| *value != json!([]) && *value != json!(""));
    let metadata = &task.metadata;
    for (name, value) in [("context", &metadata.context), ("metadata", &metadata.extra)] {
        if !value.is_empty() {
            whole.insert(name.to_owned(), json!(value));
        }
    }
    if !metadata.tool_calls.is_empty() {
        let calls: Vec<Value> = metadata.tool_calls.iter().take(SHOWN_ITEMS).map(call).collect();
        whole.insert("calls".to_owned(), json!(calls));
    }
    whole.into_iter().map(|(name, value)| (name, cut_deep(value, most))).collect()
}

fn call(call: &ToolCall) -> Value {
    let mut brief = json!({"id": call.id, "tool": call.tool_name, "args": call.args, "status": call.status, "origin": call.origin});
    if let Some(error) = &call.error {
        brief["error"] = json!(error);
    }
    if call.attempts > 0 {
        brief["attempts"] = json!(call.attempts);
    }
    brief
}

/// Returns an approval that waits for a person.
pub(super) fn question(request: &ApprovalRequest) -> Value {
    let tools: Vec<&str> = request.calls.iter().map(|call| call.tool.as_str()).take(4).collect();
    let mut brief = json!({"id": request.task, "tools": tools});
    for (name, said) in [("ask", &request.ask), ("why", &request.why)] {
        if let Some(text) = said {
            brief[name] = json!(cut(text, LISTED_CHARS));
        }
    }
    if !request.options.is_empty() {
        brief["options"] = json!(request.options);
    }
    if request.takes_text {
        brief["takesText"] = json!(true);
    }
    brief
}

/// Returns the short form of a run for lists.
pub(super) fn run(run: &RunNow) -> Value {
    let mut brief = json!({"run_id": run.run, "state": run.state, "by": run.actor, "startedAt": format_time(run.started_at)});
    if !run.scope.is_empty() {
        brief["only"] = json!(run.scope);
    }
    if let Some(exit) = run.exit {
        brief["exit"] = json!(exit);
        brief["meaning"] = json!(meaning(exit, &run.scope));
    }
    if run.state == RunState::Killed {
        brief["meaning"] = json!("it was killed; what it held is taken back by the next run");
    }
    brief
}

/// Describes the exit code of a run, which covers the tasks in its scope.
fn meaning(exit: u8, scope: &[String]) -> &'static str {
    match exit {
        0 if !scope.is_empty() => "everything in its scope (`only`) is finished",
        0 => "everything is finished",
        1 => "a task failed",
        3 => "something waits for an approval, an agent or a decision",
        4 => "tasks are blocked",
        _ => "it was stopped before its end",
    }
}

/// Returns the beginning of a text, with at most `most` characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most).chain(['…']).collect()
}

/// Returns the beginning of a text that takes at most `room` bytes as JSON, and whether it was cut.
pub(super) fn cut_to_bytes(text: &str, room: usize) -> (String, bool) {
    let bytes = |c: char| Value::from(c.to_string()).to_string().len() - QUOTES;
    // The mark of a cut text takes three bytes.
    let (mut whole, mut kept) = (QUOTES, 0);
    for (at, c) in text.char_indices() {
        if whole + MARK <= room {
            kept = at;
        }
        whole += bytes(c);
        if whole > room {
            return (format!("{}…", &text[..kept]), true);
        }
    }
    (text.to_owned(), false)
}

/// Size of the quotes around a text.
const QUOTES: usize = 2;

/// Size of the mark of a cut text.
const MARK: usize = '…'.len_utf8();

/// Returns the result of a task as text; an empty text if there is none.
pub(super) fn result_text(task: &Task) -> String {
    match &task.result {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// Returns the result of a task as text without what says nothing: empty output, and the sandbox of a program that it did
/// not hold up.
pub(super) fn result_in_short(task: &Task) -> String {
    let is_program = |result: &&Map<String, Value>| result.contains_key("exitCode");
    let Some(result) = task.result.as_ref().and_then(Value::as_object).filter(is_program) else {
        return result_text(task);
    };
    let mut short = result.clone();
    short.retain(|name, value| match name.as_str() {
        "sandbox" => value.get("refused").is_some(),
        "truncated" => *value != json!(false),
        _ => *value != json!(""),
    });
    Value::Object(short).to_string()
}

/// Maximum size of a field that is processed, in bytes. A result may have 16 MiB, an answer far less, and shortening
/// takes many passes over the whole value.
const MAX_FIELD_BYTES: usize = 32 << 10;

/// Maximum number of elements of a list, or fields of an object.
const MAX_PARTS: usize = 50;

fn cut_deep(value: Value, most: usize) -> Value {
    cut_within(value, most, &mut MAX_FIELD_BYTES.clone())
}

/// Returns the beginning of a value, and subtracts its size from the bytes `left`.
fn cut_within(value: Value, most: usize, left: &mut usize) -> Value {
    // Brackets and commas count as well: a list may contain nothing but empty lists.
    *left = left.saturating_sub(4);
    match value {
        Value::String(text) => {
            let text = cut(&text, most);
            *left = left.saturating_sub(text.len());
            text.into()
        }
        Value::Array(items) => {
            let part = |item| (*left > 0).then(|| cut_within(item, most, left));
            items.into_iter().take(MAX_PARTS).map_while(part).collect()
        }
        Value::Object(fields) => {
            let part = |(name, field): (String, Value)| {
                *left = left.saturating_sub(name.len());
                (*left > 0).then(|| (name, cut_within(field, most, left)))
            };
            fields.into_iter().take(MAX_PARTS).map_while(part).collect::<Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_its_size_as_json() {
        for (text, room, expected) in [
            ("é€", 7, ("é€", false)),
            ("é€😀", 8, ("é…", true)),
            ("\"\"\"\"", 9, ("\"\"…", true)),
            ("\"\"\"\"", 10, ("\"\"\"\"", false)),
            ("ab", 0, ("…", true)),
        ] {
            let (cut, is_cut) = cut_to_bytes(text, room);
            assert_eq!((cut.as_str(), is_cut), expected, "{text} {room}");
        }
    }

    #[test]
    fn a_value_of_any_form_is_cut_before_it_is_shortened() {
        let wide: Map<String, Value> =
            (0..200_000).map(|n| (format!("field {n}"), json!("x".repeat(70)))).collect();
        let mut deep = json!("x".repeat(2_000));
        for _ in 0..3 {
            deep = json!(vec![deep; 50]);
        }
        for value in [json!(wide), deep, json!(vec![json!([]); 100_000]), json!("x".repeat(16 << 20))] {
            let length = cut_deep(value, 1_500).to_string().len();
            assert!((100..2 * MAX_FIELD_BYTES).contains(&length), "{length}");
        }
        let small = json!({"a": [1, null, "é"], "b": {"c": true}});
        assert_eq!(cut_deep(small.clone(), 1_500), small);
    }
}
