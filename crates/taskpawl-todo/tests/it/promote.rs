//! Items become tasks of the plan.

use serde_json::json;
use taskpawl_model::{Query, Status};
use taskpawl_todo::{Dialect, Item, promote};

use crate::support::{Host, TALK, plan};

fn items(host: &Host, dialect: Dialect, scope: &str) -> Vec<Item> {
    host.lists.items(dialect, scope).unwrap().into_iter().filter(Item::is_unfinished).collect()
}

#[test]
fn items_become_manual_tasks_once() {
    let (host, plan) = (Host::with(|builder| builder.base("/")), plan());
    let host = host.scope("s");
    let list = json!([
        {"id": 1, "title": "**Write** the `report`", "status": "in-progress"},
        {"id": 2, "title": "Done before", "status": "completed"},
        {"id": 3, "title": "Send it\n", "status": "not-started"},
    ]);
    host.call("manage_tasks", json!({"taskList": list}));
    let open = items(&host, Dialect::Checklist, "s");
    let made = promote(&plan, Dialect::Checklist, "s", &open, None).unwrap();
    let names: Vec<_> = made.iter().map(|task| (task.name.as_str(), task.is_new)).collect();
    assert_eq!(names, [("Write the report", true), ("Send it", true)]);
    let task = plan.get(made[0].id.as_str()).unwrap();
    assert_eq!((task.status, &task.options["labels"]), (Status::Todo, &json!(["todo"])));
    assert!(task.metadata.tool_calls.is_empty());
    let mark = json!({"dialect": "checklist", "scope": "s", "id": 1, "title": "**Write** the `report`"});
    assert_eq!(task.metadata.extra["todo"], mark);

    let again = promote(&plan, Dialect::Checklist, "s", &open, None).unwrap();
    assert_eq!(
        again.iter().map(|task| &task.id).collect::<Vec<_>>(),
        made.iter().map(|task| &task.id).collect::<Vec<_>>()
    );
    assert!(again.iter().all(|task| !task.is_new));
    assert_eq!(plan.list(&Query::default()).unwrap().tasks.len(), 2);
    assert!(host.call("manage_tasks", json!({})).contains("Send it"), "the list stays");
}

#[test]
fn items_of_every_dialect_become_tasks() {
    let (host, plan) = (Host::new(), plan());
    let root = host.root().to_owned();
    let host = Host::with(|builder| builder.base(&root).queue_root(&root));
    host.scope(TALK).call("AddTask", json!({"title": "talk", "description": "more"}));
    host.call("task", json!({"agent_id": "a", "operation": "rpush", "item": "queued"}));
    let todo = json!({"content": "urgent", "status": "pending", "priority": "high"});
    host.scope("s").call("todowrite", json!({"todos": [todo]}));
    for (dialect, scope) in [(Dialect::Conversation, TALK), (Dialect::Queue, "a"), (Dialect::Session, "s")] {
        promote(&plan, dialect, scope, &items(&host, dialect, scope), None).unwrap();
    }
    let tasks = plan.list(&Query::default()).unwrap().tasks;
    let seen: Vec<_> = tasks
        .iter()
        .map(|task| (task.name.as_str(), task.description.as_str(), task.priority.as_str()))
        .collect();
    assert_eq!(seen, [("talk", "more", "medium"), ("queued", "", "medium"), ("urgent", "", "high")]);
}
