//! Contract tests of the `session` dialect; each test covers one line of the contract.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use taskpawl_todo::{Dialect, ScopeRule, State};

use crate::support::Host;

fn todo(id: &str, status: &str) -> Value {
    json!({"id": id, "content": format!("do {id}"), "status": status, "priority": "high"})
}

fn write(host: &Host, todos: &Value) -> (String, bool) {
    host.answer("todowrite", json!({"todos": todos}))
}

#[test]
fn todowrite_replaces_the_list_and_todoread_returns_it() {
    let host = Host::new();
    let said = write(&host, &json!([todo("a", "in_progress"), todo("b", "pending"), todo("c", "completed")]));
    let expected = r#"{"title":"2 todos","output":"[{\"id\":\"a\",\"content\":\"do a\",\"status\":\"in_progress\",\"priority\":\"high\"},{\"id\":\"b\",\"content\":\"do b\",\"status\":\"pending\",\"priority\":\"high\"},{\"id\":\"c\",\"content\":\"do c\",\"status\":\"completed\",\"priority\":\"high\"}]"}"#;
    assert_eq!(said, (expected.to_owned(), false));
    assert_eq!(host.call("todoread", json!({})), expected);
}

#[test]
fn a_missing_or_empty_id_gets_a_uuid() {
    let host = Host::new();
    let one = |id: Value| json!({"id": id, "content": "x", "status": "pending", "priority": "low"});
    let mut without = one(json!(null));
    without.as_object_mut().unwrap().remove("id");
    let (said, _) = write(&host, &json!([without, one(json!(null)), one(json!("")), one(json!("mine"))]));
    let said: Value = serde_json::from_str(&said).unwrap();
    let items: Vec<Value> = serde_json::from_str(said["output"].as_str().unwrap()).unwrap();
    let ids: BTreeSet<&str> = items.iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 4);
    assert!(ids.contains("mine") && ids.iter().filter(|id| id.len() == 36).count() == 3);
}

#[test]
fn the_title_counts_items_that_are_not_completed() {
    let host = Host::new();
    let title = |todos: Value| {
        let said: Value = serde_json::from_str(&write(&host, &todos).0).unwrap();
        said["title"].as_str().unwrap().to_owned()
    };
    assert_eq!(title(json!([todo("a", "cancelled"), todo("b", "completed")])), "1 todos");
    assert_eq!(title(json!([todo("a", "cancelled"), todo("b", "pending")])), "2 todos");
    assert_eq!(title(json!([todo("b", "completed")])), "0 todos");
}

#[test]
fn an_empty_list_has_this_format() {
    let empty = r#"{"title":"0 todos","output":"[]"}"#;
    assert_eq!(Host::new().call("todoread", json!({})), empty);
    assert_eq!(write(&Host::new(), &json!([])), (empty.to_owned(), false));
}

#[test]
fn dropped_unfinished_items_are_reported() {
    let host = Host::new();
    write(&host, &json!([todo("a", "pending"), todo("b", "cancelled"), todo("c", "completed")]));
    let said = write(&host, &json!([])).0;
    assert_eq!(said, r#"{"title":"0 todos","output":"[]","dropped":[{"id":"a","content":"do a"}]}"#);
}

#[test]
fn the_list_and_its_history_are_only_in_memory() {
    let host = Host::new().scope("s");
    write(&host, &json!([todo("a", "pending")]));
    write(&host, &json!([todo("a", "completed")]));
    let history = host.lists.history("s");
    assert_eq!((history.len(), history[0][0].state, history[1].len()), (2, State::Open, 0));
    assert_eq!(fs::read_dir(host.root()).unwrap().count(), 0, "no file should be created");
    assert_eq!(host.again().call("todoread", json!({})), r#"{"title":"0 todos","output":"[]"}"#);
    for _ in 0..200 {
        write(&host, &json!([]));
    }
    assert_eq!(host.lists.history("s").len(), 100);
}

#[test]
fn each_session_has_one_list() {
    let host = Host::new();
    write(&host.scope("a"), &json!([todo("x", "pending")]));
    assert_eq!(host.scope("b").call("todoread", json!({})), r#"{"title":"0 todos","output":"[]"}"#);
    assert!(host.scope("a").call("todoread", json!({})).contains("do x"));
    assert_eq!(host.lists.items(Dialect::Session, "a").unwrap().len(), 1);
}

#[test]
fn concurrent_writes_do_not_mix_their_lists() {
    let host = Host::new();
    std::thread::scope(|threads| {
        for name in ["a", "b", "c", "d"] {
            let host = host.scope("s");
            threads.spawn(move || {
                for count in 0..200 {
                    let ids = (0..10).map(|index| todo(&format!("{name}{count}-{index}"), "pending"));
                    write(&host, &ids.collect::<Value>());
                }
            });
        }
    });
    let items = host.lists.items(Dialect::Session, "s").unwrap();
    let head: BTreeSet<_> =
        items.iter().map(|item| item.id.to_string().split('-').next().unwrap().to_owned()).collect();
    assert_eq!((items.len(), head.len()), (10, 1));
}

#[test]
fn errors_name_item_and_field_and_change_nothing() {
    let host = Host::new();
    write(&host, &json!([todo("a", "pending")]));
    let before = host.call("todoread", json!({}));
    let with = |field: &str, value: Value| {
        let mut todo = todo("b", "pending");
        todo[field] = value;
        json!([todo])
    };
    let wrong = [
        (with("status", json!("done")), "todos[0].status: unknown status `done`"),
        (with("status", json!(null)), "todos[0].status: it is missing"),
        (with("priority", json!("urgent")), "todos[0].priority: unknown priority `urgent`"),
        (with("content", json!("  ")), "todos[0].content: it is empty"),
        (
            json!([{"title": "x", "status": "pending", "priority": "low"}]),
            "todos[0].content: it is empty: rename `title` to `content`",
        ),
        (with("id", json!(5)), "todos[0].id: expected a string: write \"5\""),
        (
            json!([todo("a", "pending"), todo("a", "pending")]),
            "todos[1].id: `a` is the id of an earlier item",
        ),
        (
            json!([todo("a", "in_progress"), todo("b", "in_progress")]),
            "todos[1].status: at most one item may be in_progress at a time",
        ),
        (json!(["x"]), "todos[0]: expected an object"),
        (json!("x"), "todos: expected an array"),
        (json!(null), "todos: expected an array"),
    ];
    for (todos, error) in wrong {
        let (said, is_error) = write(&host, &todos);
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((is_error, said.as_object().unwrap().len()), (true, 1));
        assert!(said["error"].as_str().unwrap().starts_with(error), "{said}");
        assert_eq!(host.call("todoread", json!({})), before);
    }
}

#[test]
fn the_guide_has_a_default_path_and_covers_these_topics() {
    assert_eq!(Dialect::Session.guide_path(), ".agent/prompts/rules/todo_tool_usage.md");
    let guide = taskpawl_todo::guide(Dialect::Session);
    for words in [
        "three or more steps",
        "several things",
        "not trivial",
        "New instructions have just come",
        "visible",
        "one simple step",
        "trivial",
        "conversation",
        "quick operation on a file",
        "Create",
        "One in progress",
        "Complete at once",
        "Update as it goes",
        "Cancel what became irrelevant",
        "TODO.md",
        "promote",
    ] {
        assert!(guide.contains(words), "{words}");
    }
}

#[test]
fn a_server_for_several_sessions_requires_the_argument() {
    let host = Host::with(|builder| builder.scope(ScopeRule::argument()));
    let said = (r#"{"error":"session_id is required"}"#.to_owned(), true);
    assert_eq!(host.answer("todoread", json!({})), said);
    assert_eq!(host.answer("todowrite", json!({"todos": [], "session_id": " "})), said);
    let read = host.call("todoread", json!({"session_id": "x"}));
    assert_eq!(read, r#"{"title":"0 todos","output":"[]"}"#);
}

#[test]
fn a_read_only_list_refuses_writes() {
    let host = Host::with(|builder| builder.read_only(true));
    assert_eq!(write(&host, &json!([])), (r#"{"error":"This server is read-only"}"#.to_owned(), true));
    assert_eq!(host.call("todoread", json!({})), r#"{"title":"0 todos","output":"[]"}"#);
}

#[test]
fn lists_under_another_name_and_fields_that_are_not_kept_are_named() {
    let host = Host::new();
    for tool in ["todowrite", "todoread"] {
        let refused = host.call(tool, json!({"items": [{"content": "a"}]}));
        assert_eq!(refused, r#"{"error":"unknown argument `items`: todowrite takes the list as todos"}"#);
    }
    let item =
        json!({"id": "1", "content": "a", "status": "pending", "priority": "low", "activeForm": "doing a"});
    assert!(host.call("todowrite", json!({"todos": [item]})).ends_with(r#""ignored":["activeForm"]}"#));
}
