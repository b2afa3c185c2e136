//! Results and notes of the tasks that a claimed task needs, for the agent that begins with it.

use serde_json::{Value, json};
use taskpawl::model::task::{Status, Task};
use taskpawl::{Error, Manager};

use super::actions::Action;
use super::answer::Answer;
use super::brief;

/// Maximum number of needed tasks that are described. The others are counted.
const MAX_NEEDS: usize = 5;

/// Maximum size of a description, in bytes of JSON.
const MAX_BYTES: usize = 300;

/// Adds the needed tasks to the answer to a claim.
pub(super) fn with_needs(answer: Answer, manager: &Manager, task: &Task) -> Result<Answer, Error> {
    let mut needs = Vec::new();
    for id in task.dependencies.iter().take(MAX_NEEDS) {
        needs.push(describe(&manager.get(id.as_str())?));
    }
    Ok(answer.with("needs", json!(needs)).out_of("needs", task.dependencies.len()))
}

/// Describes a needed task: the beginnings of its result and of its last note, and the call for the rest.
fn describe(task: &Task) -> Value {
    let (result, note) = (brief::result_in_short(task), task.notes.last().map(|note| note.text.as_str()));
    let mut brief = json!({"id": task.id});
    if task.status != Status::Done {
        brief["status"] = json!(task.status);
    }
    // Both are measured with the call for the rest, which is left out if there is none.
    let whole = Action::call("task_get", json!({"id": task.id})).to_json();
    let part = Action::call("task_get", json!({"id": task.id, "part": "result"})).to_json();
    let mut room = MAX_BYTES.saturating_sub(brief.to_string().len() + part.to_string().len() + FIELDS);
    let mut rest = None;
    if let Some(note) = note {
        let most = if result.is_empty() { room } else { room / 3 };
        let (text, is_cut) = brief::cut_to_bytes(note, most);
        brief["note"] = json!(text);
        room = room.saturating_sub(brief["note"].to_string().len());
        rest = (is_cut || task.notes.len() > 1).then_some(whole);
    }
    if !result.is_empty() {
        let (text, is_cut) = brief::cut_to_bytes(&result, room);
        brief["result"] = json!(text);
        if is_cut {
            brief["bytes"] = json!(result.len());
            rest = Some(part);
        }
    }
    // Generated ids can be so long that the call has no place.
    if let Some(rest) = rest.filter(|rest| brief.to_string().len() + rest.to_string().len() + 8 <= MAX_BYTES)
    {
        brief["rest"] = rest;
    }
    brief
}

/// Reserve for the names of the fields, and for the size of a result.
const FIELDS: usize = r#","note":,"result":,"rest":,"bytes":16777216"#.len();

#[cfg(test)]
mod tests {
    use taskpawl::model::command::NewTask;
    use taskpawl::model::task::{Note, TaskSpec};

    use super::*;

    fn task(id: &str, result: Value, notes: &[&str]) -> Task {
        let notes =
            notes.iter().map(|text| json!({"at": "2025-01-01T00:00:00Z", "actor": "ann", "text": text}));
        let notes: Vec<Note> = serde_json::from_value(notes.collect()).unwrap();
        let mut task = empty(id);
        (task.result, task.notes) = (Some(result).filter(|result| !result.is_null()), notes);
        task
    }

    /// Returns a finished task without a result.
    fn empty(id: &str) -> Task {
        let plans = taskpawl::Taskpawl::open(":memory:").unwrap();
        let spec = TaskSpec { name: "a".to_owned(), ..TaskSpec::default() };
        plans.manager().create(NewTask { id: id.into(), spec, ..NewTask::default() }).unwrap();
        Task { status: Status::Done, ..plans.manager().get(id).unwrap() }
    }

    #[test]
    fn a_need_is_short_and_names_the_call_for_the_rest() {
        let long = "é\"\n".repeat(1_000);
        for (result, notes) in [
            (json!(long), vec![]),
            (json!(null), vec![long.as_str()]),
            (json!({"text": long}), vec!["first", long.as_str()]),
            (json!("x"), vec!["first", "second"]),
        ] {
            let need = describe(&task(&"i".repeat(64), result.clone(), &notes));
            let size = need.to_string().len();
            assert!((200..=MAX_BYTES).contains(&size) || result == "x", "{size}: {need}");
            assert_eq!(need["rest"]["tool"], "task_get", "{need}");
        }
    }

    #[test]
    fn what_is_short_is_whole() {
        let need = describe(&task("a", json!({"words": 100}), &["in text.md"]));
        assert_eq!(need, json!({"id": "a", "result": "{\"words\":100}", "note": "in text.md"}));
        assert_eq!(describe(&task("a", json!(null), &[])), json!({"id": "a"}));
        let printed = json!({"exitCode": 0, "stdout": "7\n", "stderr": "", "truncated": false, "sandbox": {"level": "standard"}});
        let need = describe(&task("a", printed, &[]));
        assert_eq!(need["result"], "{\"exitCode\":0,\"stdout\":\"7\\n\"}");
    }
}
