//! Tasks and runs, in few words.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use taskpawl::digest::RunNow;
use taskpawl::model::{
    ApprovalRequest, BlockedReason, Means, Priority, Status, Task, ToolCall, format_time, unrunnable_task,
};
use taskpawl::{Error, Manager, RunState};

/// How much of a text stands in a list.
pub(super) const LISTED_CHARS: usize = 160;

/// How much of a text stands in a task that was asked for.
pub(super) const SHOWN_CHARS: usize = 1_500;

/// How many calls and notes of a task are shown.
const SHOWN_ITEMS: usize = 20;

/// Returns a task as it stands in lists.
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
    if let Some(claim) = &task.claim {
        add("heldBy", json!(claim.actor));
    }
    if let Some(ended) = &task.claim_ended {
        add("claimEnded", json!(ended));
    }
    if let Some(reason) = &task.blocked_reason {
        add("blockedBy", self::reason(reason));
    }
    if let Some(error) = &task.error {
        add("error", json!(cut(error, LISTED_CHARS)));
    }
    brief
}

/// Returns tasks as they stand in lists, and of those that are ready that they can be started, or what they lack for that. `means` is what
/// runs of this server have.
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

/// Returns how many tasks there are in each state that any is in.
pub(super) fn counts(counts: &BTreeMap<Status, u64>) -> Value {
    let some = counts.iter().filter(|(_, count)| **count > 0);
    some.map(|(status, count)| (status.to_string(), json!(count))).collect::<Map<_, _>>().into()
}

/// Returns why a task is blocked, without what only programs compare.
pub(super) fn reason(reason: &BlockedReason) -> Value {
    let mut told = cut_deep(json!(reason), LISTED_CHARS);
    if let Value::Object(fields) = &mut told {
        fields.retain(|name, _| !["hash", "policy"].contains(&name.as_str()));
    }
    told
}

/// Returns what does the work: the tools of its calls, or hands; nothing where it has subtasks alone.
fn work(task: &Task) -> Option<Value> {
    let tools: Vec<&str> =
        task.metadata.tool_calls.iter().map(|call| call.tool_name.as_str()).take(4).collect();
    if !tools.is_empty() {
        return Some(json!(tools));
    }
    let is_manual = task.subtasks.is_empty() && task.options.get("milestone") != Some(&Value::Bool(true));
    is_manual.then(|| json!("by hand"))
}

/// Returns a task with all that is known of it; of long texts the beginning.
pub(super) fn whole(task: &Task) -> Map<String, Value> {
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
    whole.into_iter().map(|(name, value)| (name, cut_deep(value, SHOWN_CHARS))).collect()
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

/// Returns a question that waits for a person.
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
    brief
}

/// Returns a run as it stands in lists.
pub(super) fn run(run: &RunNow) -> Value {
    let mut brief = json!({"run_id": run.run, "state": run.state, "by": run.actor, "startedAt": format_time(run.started_at)});
    if !run.scope.is_empty() {
        brief["only"] = json!(run.scope);
    }
    if let Some(exit) = run.exit {
        brief["exit"] = json!(exit);
        brief["meaning"] = json!(meaning(exit));
    }
    if run.state == RunState::Killed {
        brief["meaning"] = json!("it was killed; what it held is taken back by the next run");
    }
    brief
}

/// Returns what the exit code of a run says about its scope.
fn meaning(exit: u8) -> &'static str {
    match exit {
        0 => "everything is finished",
        1 => "a task failed",
        3 => "something waits for an approval, an agent or a decision",
        4 => "tasks are blocked",
        _ => "it was stopped before its end",
    }
}

/// Returns the beginning of a text.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most).chain(['…']).collect()
}

/// The most bytes of a field that are looked at. A result may have 16 MiB, an answer has room for far less, and to shorten it costs as
/// much as it is long, many times.
const MAX_FIELD_BYTES: usize = 32 << 10;

/// The most elements of a list, or fields of an object, that are shown.
const MAX_PARTS: usize = 50;

fn cut_deep(value: Value, most: usize) -> Value {
    cut_within(value, most, &mut MAX_FIELD_BYTES.clone())
}

/// Returns the beginning of a value, as far as there are bytes left.
fn cut_within(value: Value, most: usize, left: &mut usize) -> Value {
    // What stands around each part counts, too: a list may have nothing but empty lists.
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
    fn a_value_of_any_form_is_cut_before_it_is_shortened() {
        let wide: Map<String, Value> =
            (0..200_000).map(|n| (format!("field {n}"), json!("x".repeat(70)))).collect();
        let mut deep = json!("x".repeat(2_000));
        for _ in 0..3 {
            deep = json!(vec![deep; 50]);
        }
        for value in [json!(wide), deep, json!(vec![json!([]); 100_000]), json!("x".repeat(16 << 20))] {
            let length = cut_deep(value, SHOWN_CHARS).to_string().len();
            assert!((100..2 * MAX_FIELD_BYTES).contains(&length), "{length}");
        }
        let small = json!({"a": [1, null, "é"], "b": {"c": true}});
        assert_eq!(cut_deep(small.clone(), SHOWN_CHARS), small);
    }
}
