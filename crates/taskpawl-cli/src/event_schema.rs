//! The JSON Schema of an event, as `history` exports it.

use serde_json::{Map, Value, json};
use taskpawl::model::task::{CallStatus, Cause, ChecklistStatus, SignalStep, Status};

use crate::schema::DRAFT;

/// The fields of one type of event, beyond those of every event.
struct Kind {
    name: &'static str,
    meaning: &'static str,
    /// The fields: name, schema, and whether the field is always present.
    fields: Vec<(&'static str, Value, bool)>,
}

/// Returns the schema of one line of `history --format ndjson`. An element of `data` in `history --json` has the same
/// form.
pub(crate) fn event() -> Value {
    let kinds: Vec<Value> = kinds().into_iter().map(one_kind).collect();
    json!({
        "$schema": DRAFT,
        "title": "A change in a store of taskpawl",
        "type": "object",
        "required": ["revision", "at", "actor", "type"],
        "properties": {
            "revision": {"type": "integer", "minimum": 1, "description": "The number of the change: they grow by one, without gaps"},
            "at": {"type": "string", "format": "date-time", "description": "Time of the change"},
            "actor": {"type": "string", "description": "Actor of the change"},
            "actorKind": {
                "enum": ["person", "agent", "run", "program"],
                "description": "The kind of the actor; absent for changes by a run itself, and for records of version 0.1",
            },
            "run": {"type": "string", "description": "The run"},
            "task": {"type": "string", "description": "The task"},
            "type": {"type": "string", "description": "Type of the change; programs should expect types that they do not know"},
            "undoneBy": {"type": "integer", "minimum": 1, "description": "The revision of the undo that took it back"},
        },
        "anyOf": kinds,
    })
}

fn one_kind(kind: Kind) -> Value {
    let mut properties = Map::new();
    properties.insert("type".to_owned(), json!({ "const": kind.name }));
    let mut required = vec!["type"];
    for (name, schema, is_always_there) in kind.fields {
        properties.insert(name.to_owned(), schema);
        required.extend(is_always_there.then_some(name));
    }
    json!({"description": kind.meaning, "required": required, "properties": properties})
}

fn kinds() -> Vec<Kind> {
    let all = [
        kinds_of_tasks(),
        kinds_of_states(),
        kinds_of_structure(),
        kinds_of_commands(),
        kinds_of_runs(),
        kinds_of_calls(),
        kinds_of_rounds(),
        vec![signal(), checklist()],
    ];
    all.into_iter().flatten().collect()
}

fn kind(name: &'static str, meaning: &'static str, fields: Vec<(&'static str, Value, bool)>) -> Kind {
    Kind { name, meaning, fields }
}

fn text(meaning: &str) -> Value {
    json!({"type": "string", "description": meaning})
}

fn texts(meaning: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": meaning})
}

fn boolean(meaning: &str) -> Value {
    json!({"type": "boolean", "description": meaning})
}

fn number(meaning: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": meaning})
}

fn words(words: impl Iterator<Item = &'static str>) -> Value {
    json!({"enum": words.collect::<Vec<_>>()})
}

fn states() -> Value {
    words(Status::ALL.iter().map(|status| status.as_str()))
}

fn kinds_of_tasks() -> Vec<Kind> {
    let before_and_after = json!({"type": "object", "required": ["from", "to"]});
    vec![
        kind(
            "created",
            "A task was made",
            vec![
                ("name", text("Its name"), true),
                ("parent", text("The task above"), false),
                ("dependencies", texts("Its dependencies; at most the first 20"), false),
                ("plan", text("The plan that it came with"), false),
            ],
        ),
        kind(
            "updated",
            "Fields changed",
            vec![(
                "fields",
                json!({"type": "object", "additionalProperties": before_and_after, "description": "Before and after, by field"}),
                true,
            )],
        ),
        kind(
            "deleted",
            "The task was deleted",
            vec![(
                "was",
                json!({"type": "object", "description": "The task as it was, as `show --json` prints it"}),
                true,
            )],
        ),
    ]
}

fn kinds_of_states() -> Vec<Kind> {
    vec![
        kind(
            "status",
            "The state changed",
            vec![
                ("from", states(), true),
                ("to", states(), true),
                ("cause", words(Cause::ALL.iter().map(|cause| cause.as_str())), true),
                (
                    "reason",
                    json!({"type": "object", "required": ["type"], "description": "Reason of a block"}),
                    false,
                ),
                ("text", text("Text of the change: an error, a reason"), false),
                ("attempt", number("The attempt that it belongs to"), true),
                ("leaseUntil", text("End of the claim"), false),
            ],
        ),
        kind(
            "renewed",
            "The holder of a claim prolonged it",
            vec![("leaseUntil", text("New end of the claim"), true)],
        ),
    ]
}

fn kinds_of_structure() -> Vec<Kind> {
    vec![
        kind(
            "call_added",
            "A tool call was added",
            vec![("call", text("Its id"), true), ("tool", text("Its tool"), true)],
        ),
        kind("dependency_added", "A dependency was added", vec![("on", text("The new dependency"), true)]),
        kind(
            "dependency_removed",
            "A dependency was removed",
            vec![("on", text("The former dependency"), true)],
        ),
        kind(
            "moved",
            "The task was moved below another task, or to the top",
            vec![("from", text("The task above before"), false), ("to", text("The task above now"), false)],
        ),
    ]
}

fn kinds_of_commands() -> Vec<Kind> {
    vec![
        kind("noted", "A note was added", vec![("text", text("The note"), true)]),
        kind(
            "applied",
            "A plan was applied",
            vec![
                ("plan", text("Its name"), true),
                ("created", number("Number of created tasks"), true),
                ("changed", number("Number of changed tasks"), true),
                (
                    "pruned",
                    number("Number of tasks that were cancelled because they are gone from the file"),
                    true,
                ),
                (
                    "notify",
                    texts(
                        "The program that it tells about its tasks, where that changed; empty: none any more",
                    ),
                    false,
                ),
            ],
        ),
        kind(
            "undone",
            "A command was undone; the restored fields follow as changes of the tasks",
            vec![
                ("first", number("The revision of the first change of the command"), true),
                ("last", number("The revision of its last change"), true),
            ],
        ),
        kind(
            "external_edit",
            "Another program edited the file of the store",
            vec![("tasks", texts("The tasks that differ"), true)],
        ),
    ]
}

fn signal() -> Kind {
    kind(
        "signal",
        "A signal was sent, taken by the task of the event, or dropped",
        vec![
            ("id", text("Its id"), true),
            ("name", text("Its name"), true),
            ("to", text("The only task that may take it"), false),
            ("step", words(SignalStep::ALL.iter().map(|step| step.as_str())), true),
        ],
    )
}

fn checklist() -> Kind {
    let item = json!({"type": "object", "required": ["id", "title", "status"], "properties": {
        "id": {"type": "number"}, "title": {"type": "string"},
        "status": words(ChecklistStatus::ALL.iter().map(|status| status.as_str())),
    }});
    kind(
        "checklist",
        "The checklist changed that a model keeps beside its work; no task is concerned",
        vec![
            ("scope", text("Its owner: a conversation or a session"), true),
            ("items", json!({"type": "array", "items": item, "description": "All of it"}), true),
            ("cleared", json!({"type": "boolean", "description": "Its owner has yet to empty it"}), false),
            ("keeper", text("The lock that is held for as long as its process is there"), false),
            ("kept", json!({"type": "boolean", "description": "It stays when its process ends"}), false),
        ],
    )
}

fn kinds_of_runs() -> Vec<Kind> {
    let counts = json!({"type": "object", "additionalProperties": {"type": "integer"}, "description": "Number of tasks that it ended, by status"});
    vec![
        kind("run_started", "A run started", vec![("scope", texts("The selectors of its tasks"), true)]),
        kind(
            "run_finished",
            "A run ended",
            vec![("exit", number("Its exit code"), true), ("counts", counts, true)],
        ),
        kind(
            "run_stop_requested",
            "A run was asked to stop",
            vec![
                ("id", text("The run"), true),
                ("now", boolean("True if its running calls are ended, too"), true),
            ],
        ),
        kind("run_killed", "A run had ended without a record of its end", vec![]),
        kind(
            "pruned",
            "Runs were forgotten, or their output was removed",
            vec![
                ("runs", number("Number of forgotten runs"), true),
                ("outputs", number("Number of other runs whose output was removed"), true),
                ("files", number("Number of files to remove"), true),
                ("bytes", number("Size of these files in bytes"), true),
                ("before", text("Commands that were given before cannot be undone any more"), false),
            ],
        ),
    ]
}

fn kinds_of_calls() -> Vec<Kind> {
    vec![
        kind(
            "call_started",
            "A tool call starts; on record before its tool is started",
            vec![
                ("call", text("The call"), true),
                ("attempt", number("The attempt of the task"), true),
                ("start", number("Number of this start of the call"), true),
                ("argsHash", text("A hash of its evaluated arguments, to compare it with other runs"), false),
            ],
        ),
        kind(
            "call_ended",
            "A tool call ended",
            vec![
                ("call", text("The call"), true),
                ("attempt", number("The attempt of the task"), true),
                ("status", words(CallStatus::ALL.iter().map(|status| status.as_str())), true),
                ("error", text("The error of a failed call"), false),
                ("againAt", text("Time of the next start of a failed call that is retried"), false),
                ("resultHash", text("A hash of its result, to compare it with other runs"), false),
                ("worker", text("The worker that ran it; absent for the machine of the store"), false),
            ],
        ),
        kind(
            "stopped",
            "The last call of a cancelled task has ended: the resources of the task are free",
            vec![("attempt", number("The attempt of the task"), true)],
        ),
        kind(
            "approved_ahead",
            "A person approved it before it asked",
            vec![("call", text("The call; without it, the whole task"), false)],
        ),
    ]
}

fn kinds_of_rounds() -> Vec<Kind> {
    vec![
        kind(
            "round_ended",
            "A round of `repeat` is over, and another one follows",
            vec![
                ("round", number("Number of the round"), true),
                ("of", number("Maximum number of rounds"), true),
                ("againAt", text("Start of the next round; absent if it starts at once"), false),
            ],
        ),
        kind(
            "sent_back",
            "A verification failed, and the agent of the task corrects its work",
            vec![
                ("call", text("The call of the agent"), true),
                ("round", number("Number of the round of rework that begins"), true),
                ("of", number("Maximum number of rounds"), true),
            ],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use taskpawl::model::task::BlockedReason;
    use taskpawl::model::task::{Change, ChecklistChanged, EventKind, PlanApplied, SignalEvent, TaskCreated};
    use taskpawl::model::value::{CallId, TaskId};

    use super::*;

    /// Returns an event of each type, with every field set.
    fn samples() -> Vec<EventKind> {
        let (call, on) = (CallId::from("c"), TaskId::from("a"));
        let hash = serde_json::from_value(json!("00000000000000ff")).unwrap();
        let change = Change { from: json!(1), to: json!(2) };
        vec![
            EventKind::Created(Box::new(TaskCreated {
                name: "n".to_owned(),
                parent: Some(on.clone()),
                dependencies: vec![on.clone()],
                plan: Some("p".into()),
            })),
            EventKind::Updated { fields: BTreeMap::from([("name".to_owned(), change)]) },
            EventKind::Deleted { task: json!({}) },
            EventKind::Status {
                from: Status::Todo,
                to: Status::Blocked,
                cause: Cause::Undo,
                reason: Some(Box::new(BlockedReason::Manual { text: "x".to_owned() })),
                text: Some("x".to_owned()),
                attempt: 1,
                lease_until: Some(chrono::DateTime::UNIX_EPOCH),
            },
            EventKind::Renewed { lease_until: chrono::DateTime::UNIX_EPOCH },
            EventKind::CallStarted { call: call.clone(), attempt: 1, start: 1, args_hash: Some(hash) },
            EventKind::CallEnded {
                call: call.clone(),
                attempt: 1,
                status: CallStatus::Failed,
                error: Some(Box::new("x".to_owned())),
                again_at: Some(Box::new(chrono::DateTime::UNIX_EPOCH)),
                result_hash: Some(hash),
                worker: Some(Box::new("w".to_owned())),
            },
            EventKind::Stopped { attempt: 1 },
            EventKind::ApprovedAhead { call: Some(call.clone()) },
            EventKind::RoundEnded { round: 1, of: 2, again_at: Some(chrono::DateTime::UNIX_EPOCH) },
            EventKind::SentBack { call: call.clone(), round: 1, of: 2 },
            EventKind::CallAdded { call, tool: "t".to_owned() },
            EventKind::DependencyAdded { on: on.clone() },
            EventKind::DependencyRemoved { on: on.clone() },
            EventKind::Moved { from: Some(on.clone()), to: Some(on.clone()) },
            EventKind::Noted { text: "x".to_owned() },
            EventKind::Applied(Box::new(PlanApplied {
                plan: "p".to_owned(),
                created: 1,
                changed: 0,
                pruned: 0,
                notify: Some(vec!["sh".to_owned()]),
            })),
            EventKind::Undone { first: 1, last: 2 },
            EventKind::RunStarted { scope: Vec::new() },
            EventKind::RunFinished { exit: 0, counts: BTreeMap::new() },
            EventKind::RunStopRequested { id: "r".into(), now: true },
            EventKind::RunKilled {},
            EventKind::Pruned {
                runs: 1,
                outputs: 1,
                files: 1,
                bytes: 1,
                before: Some(chrono::DateTime::UNIX_EPOCH),
            },
            EventKind::ExternalEdit { tasks: vec![on] },
            EventKind::Signal(Box::new(SignalEvent {
                id: "s".to_owned(),
                name: "go".to_owned(),
                to: Some("t".into()),
                step: SignalStep::Sent,
            })),
            EventKind::Checklist(Box::new(ChecklistChanged {
                scope: "s".to_owned(),
                items: Vec::new(),
                cleared: true,
                liveness_lock: Some("k".to_owned()),
                kept: true,
            })),
        ]
    }

    #[test]
    fn the_schema_has_every_type_with_every_field() {
        let schema = event();
        let of = |name: &str| {
            let kinds = schema["anyOf"].as_array().unwrap().iter();
            kinds.map(|kind| &kind["properties"]).find(|kind| kind["type"]["const"] == name)
        };
        for sample in samples() {
            let kind = of(sample.name()).unwrap_or_else(|| panic!("no type {}", sample.name()));
            let Value::Object(shown) = serde_json::to_value(&sample).unwrap() else { panic!("no object") };
            assert_eq!(
                shown.keys().collect::<Vec<_>>(),
                kind.as_object().unwrap().keys().collect::<Vec<_>>(),
                "{}",
                sample.name()
            );
        }
        assert_eq!(schema["anyOf"].as_array().unwrap().len(), samples().len());
    }
}
