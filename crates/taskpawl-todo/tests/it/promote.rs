//! Promotion of items to tasks of the plan.

use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl_manager::{ApplyOptions, Ending, Manager};
use taskpawl_model::plan::parse_plan;
use taskpawl_model::task::Status;
use taskpawl_model::view::Query;
use taskpawl_todo::{Dialect, Item, Promoted, Promotion, ScopeRule, choose};
use taskpawl_tools::{CallContext, Registry, Tool, call_guarded};

use crate::support::{Host, TALK, plan};

fn items(host: &Host, dialect: Dialect, scope: &str) -> Vec<Item> {
    host.lists.items(dialect, scope).unwrap()
}

/// Promotes all unfinished items.
fn promote(plan: &Manager, dialect: Dialect, scope: &str, items: &[Item]) -> Vec<Promoted> {
    let chosen = choose(items, &[]).unwrap();
    Promotion { dialect, scope, items, chosen: &chosen, plan: None }.make(plan).unwrap()
}

#[test]
fn an_item_becomes_a_manual_task_once() {
    let (host, plan) = (Host::with(|builder| builder.base("/")), plan());
    let host = host.scope("s");
    let list = json!([
        {"id": 1, "title": "**Write** the `report`", "status": "in-progress"},
        {"id": 2, "title": "Done before", "status": "completed"},
        {"id": 3, "title": "Send it\n", "status": "not-started"},
    ]);
    host.call("manage_tasks", json!({"taskList": list}));
    let open = items(&host, Dialect::Checklist, "s");
    let made = promote(&plan, Dialect::Checklist, "s", &open);
    let names: Vec<_> = made.iter().map(|task| (task.name.as_str(), task.is_new)).collect();
    assert_eq!(names, [("Write the report", true), ("Send it", true)]);
    let task = plan.get(made[0].id.as_str()).unwrap();
    assert_eq!((task.status, &task.options["labels"]), (Status::Todo, &json!(["todo"])));
    assert!(task.metadata.tool_calls.is_empty());
    let mark = json!({"dialect": "checklist", "scope": "s", "id": 1, "title": "**Write** the `report`"});
    assert_eq!(task.metadata.extra["todo"], mark);

    let again = promote(&plan, Dialect::Checklist, "s", &open);
    assert_eq!(
        again.iter().map(|task| &task.id).collect::<Vec<_>>(),
        made.iter().map(|task| &task.id).collect::<Vec<_>>()
    );
    assert!(again.iter().all(|task| !task.is_new));
    assert_eq!(plan.list(&Query::default()).unwrap().tasks.len(), 2);
    assert!(host.call("manage_tasks", json!({})).contains("Send it"), "the list stays unchanged");
}

#[test]
fn concurrent_promotions_create_each_task_once() {
    let (host, plan) = (Host::with(|builder| builder.base("/")), plan());
    let host = host.scope("s");
    // Pairs of items share a title, and each item has to become a task of its own.
    let item = |id: usize| json!({"id": id, "title": format!("Step {}", id / 2), "status": "not-started"});
    host.call("manage_tasks", json!({"taskList": (1..=30).map(item).collect::<Vec<_>>()}));
    let open = items(&host, Dialect::Checklist, "s");
    let start = std::sync::Barrier::new(4);
    let made: Vec<Vec<Promoted>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let (plan, open, start) = (plan.clone().with_actor(format!("agent-{number}")), &open, &start);
                scope.spawn(move || {
                    start.wait();
                    promote(&plan, Dialect::Checklist, "s", open)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(plan.list(&Query::default()).unwrap().tasks.len(), 30);
    let new = made.iter().flatten().filter(|task| task.is_new).count();
    assert_eq!(new, 30, "each task should be new for one caller");
    let ids = |tasks: &[Promoted]| tasks.iter().map(|task| task.id.clone()).collect::<Vec<_>>();
    assert!(made.iter().all(|tasks| ids(tasks) == ids(&made[0])));
}

#[test]
fn a_deleted_task_is_replaced_by_another_one() {
    let (host, plan) = (Host::with(|builder| builder.base("/")), plan());
    let host = host.scope("s");
    host.call("manage_tasks", json!({"taskList": [{"id": 1, "title": "Step", "status": "not-started"}]}));
    let open = items(&host, Dialect::Checklist, "s");
    let first = promote(&plan, Dialect::Checklist, "s", &open).remove(0);
    plan.delete(&[first.id.to_string()]).unwrap();
    let second = promote(&plan, Dialect::Checklist, "s", &open).remove(0);
    assert!(second.is_new && second.id != first.id, "{first:?} {second:?}");
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
        promote(&plan, dialect, scope, &items(&host, dialect, scope));
    }
    let tasks = plan.list(&Query::default()).unwrap().tasks;
    let seen: Vec<_> = tasks
        .iter()
        .map(|task| (task.name.as_str(), task.description.as_str(), task.priority.as_str()))
        .collect();
    assert_eq!(seen, [("talk", "more", "medium"), ("queued", "", "medium"), ("urgent", "", "high")]);
}

/// Calls `todo_promote` like a server, and returns its answer or error.
fn ask(host: &Host, tool: &Arc<dyn Tool>, args: Value) -> Result<Value, String> {
    let mut registry = Registry::new();
    registry.register(Arc::clone(tool)).unwrap();
    let mut cx = CallContext::new(host.root(), host.path("output"));
    "host".clone_into(&mut cx.actor);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let called = call_guarded(registry.get("todo_promote").unwrap().clone(), cx, args);
    runtime.block_on(called).map_err(|error| error.to_string())
}

fn ids(plan: &Manager) -> Vec<String> {
    plan.list(&Query::default()).unwrap().tasks.iter().map(|task| task.id.to_string()).collect()
}

#[test]
fn the_tool_promotes_lists_in_memory() {
    let (host, plan) = (Host::with(|builder| builder.scope(ScopeRule::argument_or_own())), plan());
    let todo = |id: &str, status: &str| json!({"id": id, "content": format!("do {id}"), "status": status, "priority": "high"});
    let todos = json!([todo("a", "pending"), todo("b", "completed"), todo("c", "in_progress")]);
    host.call("todowrite", json!({"todos": todos, "session_id": "s"}));
    let tool = host.lists.promoter(&[Dialect::Session], &plan);
    let seen = ask(&host, &tool, json!({"session_id": "s", "dry_run": true})).unwrap();
    let items = json!([{"item": "a", "name": "do a"}, {"item": "c", "name": "do c"}]);
    assert_eq!((&seen["tasks"], &seen["dryRun"], ids(&plan).len()), (&items, &json!(true), 0));

    plan.apply(parse_plan("tasks: []").unwrap(), "later", ApplyOptions::default()).unwrap();
    let one =
        json!({"session_id": "s", "items": ["do c"], "plan": "later", "agent": "ann", "request_id": "r"});
    let made = ask(&host, &tool, one).unwrap();
    assert_eq!((&made["made"], &made["before"]), (&json!(1), &json!(0)), "{made}");
    let task = plan.get(made["tasks"][0]["task"].as_str().unwrap()).unwrap();
    assert_eq!((task.name.as_str(), task.plan.as_deref()), ("do c", Some("later")));
    let by = plan.history(Some(task.id.as_str()), 0, 1).unwrap();
    assert_eq!(by[0].actor.as_str(), "ann");

    let all = ask(&host, &tool, json!({"session_id": "s"})).unwrap();
    assert_eq!((&all["made"], &all["before"]), (&json!(1), &json!(1)), "{all}");
    assert_eq!(all["tasks"][0]["task"], ids(&plan)[1], "tasks follow the order of the list");
    assert_eq!((&all["tasks"][1]["task"], &all["tasks"][1]["isNew"]), (&json!(task.id), &json!(false)));
    assert_eq!(ids(&plan).len(), 2);
    let empty = ask(&host, &tool, json!({"session_id": "other"})).unwrap();
    assert_eq!(empty["message"], "no item is unfinished");
}

#[test]
fn an_ambiguous_or_invalid_promotion_creates_nothing() {
    let (host, plan) = (Host::with(|builder| builder.base("/").scope(ScopeRule::argument())), plan());
    host.call("task", json!({"agent_id": "a", "operation": "rpush", "item": "queued"}));
    let tool = host.lists.promoter(&[Dialect::Session, Dialect::Queue, Dialect::Conversation], &plan);
    for (args, said) in [
        (
            json!({}),
            "dialect is required, because several are available: use one of session, queue, conversation",
        ),
        (json!({"dialect": "checklist"}), "dialect: `checklist` is not available"),
        (json!({"dialect": "session"}), "session_id is required"),
        (json!({"dialect": "conversation"}), "conversation_id is required"),
        (
            json!({"dialect": "conversation", "conversation_id": "x"}),
            "`x` is not a valid id of a conversation",
        ),
        (json!({"dialect": "queue"}), "agent_id is required"),
        (json!({"dialect": "queue", "agent_id": "../a"}), "is not a valid id of an agent"),
        (
            json!({"dialect": "queue", "agent_id": "a", "items": ["x"]}),
            "the list has no item `x`; it has: queued",
        ),
        (
            json!({"dialect": "queue", "agent_id": "a", "agent": ""}),
            "agent: expected text of 1 to 128 characters",
        ),
        (json!({"dialect": "queue", "agent_id": "a", "items": "x"}), "items"),
        (
            json!({"dialect": "queue", "agent_id": "a", "item": ["queued"]}),
            "item: unknown argument; the arguments are items",
        ),
        (json!({"dialect": "queue", "agent_id": "a", "dry_run": "yes"}), "dry_run: expected true or false"),
        (json!({"dialect": "queue", "agent_id": "a", "items": []}), "items: expected at least one"),
    ] {
        let refused = ask(&host, &tool, args.clone()).unwrap_err();
        assert!(refused.contains(said), "{args}: {refused}");
    }
    assert!(ids(&plan).is_empty());
    let long: Vec<String> = (0..50).map(|n| format!("{n} {}", "long \"name\" ".repeat(50))).collect();
    for item in long {
        host.call("task", json!({"agent_id": "many", "operation": "rpush", "item": item}));
    }
    let many = ask(&host, &tool, json!({"dialect": "queue", "agent_id": "many"})).unwrap();
    assert_eq!((&many["made"], &many["leftOut"]), (&json!(50), &json!(40)));
    let twice = 2 * many.to_string().len() + many.to_string().matches(['"', '\\']).count();
    assert!(twice <= 8_000, "{twice} bytes");
}

/// Concurrent calls of the tool within one process.
#[test]
fn concurrent_tool_calls_create_each_task_once() {
    let (host, plan) = (Host::with(|builder| builder.scope(ScopeRule::fixed("s"))), plan());
    let todo = |n: usize| json!({"content": format!("do {n}"), "status": "pending", "priority": "low"});
    host.call("todowrite", json!({"todos": (0..20).map(todo).collect::<Vec<_>>()}));
    let tool = host.lists.promoter(&[Dialect::Session], &plan);
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| ask(&host, &tool, json!({})).unwrap());
        }
    });
    assert_eq!(ids(&plan).len(), 20);
}

#[test]
fn an_item_that_is_named_twice_becomes_one_task() {
    let (host, plan) = (Host::with(|builder| builder.scope(ScopeRule::fixed("s"))), plan());
    host.call("manage_tasks", json!({"taskList": [{"id": 7, "title": "Look", "status": "completed"}]}));
    let tool = host.lists.promoter(&[Dialect::Checklist], &plan);
    let made =
        ask(&host, &tool, json!({"items": [7, "7", "Look"], "plan": null, "session_id": "passed over"}))
            .unwrap();
    assert_eq!((&made["made"], &made["tasks"][0]["item"], ids(&plan).len()), (&json!(1), &json!("7"), 1));
}

#[test]
fn a_renumbered_item_keeps_its_task() {
    let (host, plan) = (Host::new().scope("s"), plan());
    let write = |titles: &[(u32, &str)]| {
        let item = |(id, title): &(u32, &str)| json!({"id": id, "title": title, "status": "not-started"});
        host.call("manage_tasks", json!({"taskList": titles.iter().map(item).collect::<Vec<_>>()}));
        let made = promote(&plan, Dialect::Checklist, "s", &items(&host, Dialect::Checklist, "s"));
        made.into_iter().map(|task| task.id.to_string()).collect::<Vec<_>>()
    };
    let first = write(&[(1, "Look"), (2, "Build"), (3, "Look")]);
    assert_eq!(ids(&plan), first);
    // An item with the same number and title matches before one with only the same title.
    let moved = write(&[(1, "Build"), (2, "Look"), (3, "Look"), (4, "Send")]);
    assert_eq!(moved[..3], [first[1].clone(), first[0].clone(), first[2].clone()]);
    assert_eq!(ids(&plan).len(), 4);
    // The same list under the second name of the dialect.
    let other = items(&host, Dialect::TodoList, "s");
    assert!(promote(&plan, Dialect::TodoList, "s", &other).iter().all(|task| !task.is_new));
    // A finished task does not match an item with another number: that is new work.
    plan.done(&moved[3..], Ending::default()).unwrap();
    assert_eq!(write(&[(4, "Send")]), moved[3..], "the unchanged item keeps its task");
    assert_ne!(write(&[(1, "Send")]), moved[3..]);
}

#[test]
fn items_with_equal_titles_become_separate_tasks() {
    let (host, plan) = (Host::new(), plan());
    let push = |item: &str| {
        host.call("task", json!({"agent_id": "a", "operation": "rpush", "item": item}));
    };
    ["x", "y", "x"].into_iter().for_each(push);
    let queue = || items(&host, Dialect::Queue, "a");
    let made = promote(&plan, Dialect::Queue, "a", &queue());
    assert_eq!((made.len(), ids(&plan).len()), (3, 3));
    let again = promote(&plan, Dialect::Queue, "a", &queue());
    assert!(again.iter().zip(&made).all(|(now, then)| now.id == then.id && !now.is_new), "{again:?}");
    assert_eq!(choose(&queue(), &["x".to_owned()]).unwrap(), [0, 2], "the title selects both");
    host.call("task", json!({"agent_id": "a", "operation": "lpop"}));
    push("x");
    push("x");
    let more = promote(&plan, Dialect::Queue, "a", &queue());
    assert_eq!(more.iter().filter(|task| task.is_new).count(), 1, "{more:?}");
}

#[test]
fn a_dry_run_reports_refusals_and_writes_nothing() {
    let (host, plan) = (Host::with(|builder| builder.scope(ScopeRule::fixed("s"))), plan());
    let item = |id: u32, title: &str| json!({"id": id, "title": title, "status": "not-started"});
    host.call("manage_tasks", json!({"taskList": [item(1, "a"), item(2, "b")]}));
    let tool = host.lists.promoter(&[Dialect::Checklist], &plan);
    let wrong = ask(&host, &tool, json!({"plan": "nowhere", "dry_run": true})).unwrap_err();
    assert!(wrong.contains("plan:nowhere"), "{wrong}");
    let made = ask(&host, &tool, json!({"items": [2]})).unwrap();
    let look = ask(&host, &tool, json!({"dry_run": true})).unwrap();
    let id = &made["tasks"][0]["task"];
    let seen = json!([{"item": "1", "name": "a"}, {"item": "2", "name": "b", "task": id, "isNew": false}]);
    assert_eq!((&look["tasks"], ids(&plan).len()), (&seen, 1));
}
