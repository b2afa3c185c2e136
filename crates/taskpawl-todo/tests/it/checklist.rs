//! Contract tests of the `checklist` dialect; each test covers one line of the contract.

use std::fs;

use serde_json::{Value, json};
use taskpawl_model::task::ChecklistItem;
use taskpawl_model::task::{ChecklistChanged, EventKind};
use taskpawl_todo::{
    Dialect, MirroredLists, ScopeRule, clear_mirrored, mirrored_list, mirrored_lists, prompt_block,
};

use crate::support::{Host, plan};

fn item(id: i64, status: &str) -> Value {
    json!({"id": id, "title": format!("item {id}"), "status": status})
}

fn write(host: &Host, items: &Value) -> String {
    host.call("manage_tasks", json!({"taskList": items}))
}

fn read(host: &Host) -> String {
    host.call("manage_tasks", json!({"operation": "read"}))
}

fn example() -> Value {
    json!([
        {"id": 1, "title": "Set up project structure", "status": "completed"},
        {"id": 3, "title": "Implement tool registration", "status": "in-progress"},
        {"id": 4, "title": "Build UI widget", "status": "not-started"},
    ])
}

#[test]
fn the_complete_array_is_written_and_read() {
    let host = Host::new();
    assert_eq!(write(&host, &example()), r#"{"success":true,"message":"Task list updated: 1/3 completed"}"#);
    assert_eq!(
        read(&host),
        r#"{"success":true,"taskList":[{"id":1,"title":"Set up project structure","status":"completed"},{"id":3,"title":"Implement tool registration","status":"in-progress"},{"id":4,"title":"Build UI widget","status":"not-started"}]}"#
    );
    assert_eq!(read(&Host::new()), r#"{"success":true,"taskList":[]}"#);
}

#[test]
fn both_argument_names_and_json_strings_are_accepted() {
    let host = Host::new();
    let said = r#"{"success":true,"message":"Task list updated: 1/3 completed"}"#;
    assert_eq!(host.call("manage_tasks", json!({"todoList": example()})), said);
    assert_eq!(host.call("manage_tasks", json!({"taskList": example().to_string()})), said);
    assert_eq!(host.call("manage_todo_list", json!({"todoList": example()})), said);
    assert!(host.call("manage_todo_list", json!({"operation": "read"})).contains("Build UI widget"));
}

#[test]
fn write_is_the_default_when_a_list_is_given_and_read_when_none_is() {
    let host = Host::new();
    assert_eq!(host.call("manage_tasks", json!({})), r#"{"success":true,"taskList":[]}"#);
    host.call("manage_tasks", json!({"operation": "write", "taskList": example()}));
    host.call("manage_tasks", json!({"operation": "read", "taskList": []}));
    assert!(host.call("manage_tasks", json!({"operation": null})).contains("Build UI widget"));
    let unknown = host.call("manage_tasks", json!({"operation": "append", "taskList": []}));
    assert_eq!(unknown, r#"{"success":false,"error":"unknown operation `append`: use write or read"}"#);
}

#[test]
fn an_empty_list_reports_0_of_0() {
    let host = Host::new();
    assert_eq!(write(&host, &json!([])), r#"{"success":true,"message":"Task list updated: 0/0 completed"}"#);
}

#[test]
fn dropped_unfinished_items_are_reported() {
    let host = Host::new();
    write(&host, &example());
    assert_eq!(
        write(&host, &json!([item(1, "completed")])),
        r#"{"success":true,"message":"Task list updated: 1/1 completed","dropped":[{"id":3,"title":"Implement tool registration"},{"id":4,"title":"Build UI widget"}]}"#
    );
    let said = write(&host, &json!([]));
    assert_eq!(said, r#"{"success":true,"message":"Task list updated: 0/0 completed"}"#);
}

#[test]
fn a_value_that_is_no_array_is_refused() {
    let host = Host::new();
    let said = r#"{"success":false,"error":"Invalid JSON array for taskList"}"#;
    for list in [json!("x"), json!("{}"), json!({}), json!(5), json!(true), json!("[1")] {
        assert_eq!(host.answer("manage_tasks", json!({"taskList": list})), (said.to_owned(), true));
    }
    assert_eq!(host.call("manage_tasks", json!({"operation": "write"})), said);
}

#[test]
fn more_than_one_in_progress_is_refused() {
    let host = Host::new();
    let said = write(&host, &json!([item(1, "in-progress"), item(2, "in-progress")]));
    assert_eq!(said, r#"{"success":false,"error":"At most one task may be in-progress at a time"}"#);
}

#[test]
fn errors_name_item_and_field_and_refused_calls_change_nothing() {
    let host = Host::new();
    write(&host, &example());
    let before = read(&host);
    let wrong = [
        (json!([item(1, "done")]), "taskList[0].status: unknown status `done`"),
        (json!([item(1, "completed"), {"id": 2, "status": "completed"}]), "taskList[1].title: it is missing"),
        (json!([{"id": 2, "title": " ", "status": "completed"}]), "taskList[0].title: it is missing"),
        (
            json!([item(1, "completed"), item(1, "completed")]),
            "taskList[1].id: `1` is the id of an earlier item",
        ),
        (json!([{"title": "a", "status": "completed"}]), "taskList[0].id: it is missing: write 1"),
        (
            json!([{"id": "7", "title": "a", "status": "completed"}]),
            "taskList[0].id: expected a number: write 7, without quotes",
        ),
        (
            json!([{"id": 1, "content": "a", "status": "completed"}]),
            "taskList[0].title: it is missing: rename `content` to `title`",
        ),
        (json!([{"id": 1, "title": "a"}]), "taskList[0].status: it is missing: use not-started"),
        (json!([item(1, "completed"), 5]), "taskList[1]: expected an object"),
    ];
    for (list, error) in wrong {
        let said: Value = serde_json::from_str(&write(&host, &list)).unwrap();
        assert_eq!(said["success"], false);
        assert!(said["error"].as_str().unwrap().starts_with(error), "{said}");
        assert_eq!(read(&host), before);
    }
}

#[test]
fn consecutive_ids_and_short_titles_are_conventions_and_not_enforced() {
    let host = Host::new();
    let long = "one title that has far more than seven words in it, and still is taken as it is";
    let list = json!([{"id": 7.5, "title": long, "status": "not-started"}, item(-2, "completed")]);
    assert!(write(&host, &list).starts_with(r#"{"success":true"#));
    assert!(read(&host).contains(&format!(r#"{{"id":7.5,"title":"{long}""#)));
    let description = host.tool("manage_tasks").spec().description.clone();
    for words in [
        "complex multi-step work only",
        "complete array each time",
        "At most one",
        "completed at once",
        "skip it for simple",
        "consecutive from 1",
        "3-7 words",
    ] {
        assert!(description.contains(words), "{words}: {description}");
    }
}

#[test]
fn subscribers_receive_each_accepted_write() {
    let host = Host::new().scope("s");
    let mut heard = host.lists.watch("s");
    assert!(heard.borrow_and_update().is_empty());
    write(&host, &example());
    assert!(heard.has_changed().unwrap());
    assert_eq!(heard.borrow_and_update().len(), 3);
    write(&host, &json!([item(1, "nonsense")]));
    assert!(!heard.has_changed().unwrap());
    host.lists.clear("s").unwrap();
    assert!(heard.has_changed().unwrap() && heard.borrow_and_update().is_empty());
}

#[test]
fn each_accepted_write_is_mirrored_to_the_events_of_the_store() {
    let (host, plan) = (Host::new().scope("s"), plan());
    host.lists.mirror_to(&plan, host.root());
    write(&host, &example());
    write(&host, &json!([item(1, "nonsense")]));
    let events = plan.store().events_since(0, 0).unwrap();
    let kinds: Vec<_> = events.into_iter().map(|event| event.kind).collect();
    let EventKind::Checklist(list) = &kinds[0] else { panic!("{kinds:?}") };
    let liveness_lock = list.liveness_lock.clone();
    assert!(liveness_lock.is_some());
    let items: Vec<ChecklistItem> = serde_json::from_value(example()).unwrap();
    let (scope, cleared, kept) = ("s".to_owned(), false, false);
    let list = ChecklistChanged { scope, items: items.clone(), cleared, liveness_lock, kept };
    assert_eq!(kinds, [EventKind::Checklist(Box::new(list))]);
    let lists = mirrored_lists(&plan, host.root()).unwrap();
    assert_eq!((lists.len(), &lists[0].items, lists[0].actor.as_str()), (1, &items, "model"));
}

#[test]
fn another_process_reads_the_mirrored_list_that_changed_last() {
    let (host, plan) = (Host::new(), plan());
    host.lists.mirror_to(&plan, host.root());
    for (scope, id) in [("a", 1), ("b", 2), ("c", 3), ("a", 4)] {
        write(&host.scope(scope), &json!([item(id, "not-started")]));
    }
    write(&host.scope("c"), &json!([]));
    let lists = mirrored_lists(&plan, host.root()).unwrap();
    let scopes: Vec<_> = lists.iter().map(|list| list.scope.as_str()).collect();
    assert_eq!(scopes, ["b", "a"]);
    let found = |scope| mirrored_list(&plan, host.root(), scope).unwrap().map(|list| list.scope);
    assert_eq!(found(None).as_deref(), Some("a"));
    assert_eq!([found(Some("b")), found(Some("c")), found(Some("d"))], [Some("b".to_owned()), None, None]);
    // The search must reach further back than one page of events.
    for id in 0..120 {
        write(&host.scope("c"), &json!([item(id, "not-started")]));
    }
    write(&host.scope("c"), &json!([]));
    assert_eq!([found(None), found(Some("b"))].map(Option::unwrap), ["a", "b"]);
}

#[test]
fn a_clear_from_another_process_is_applied_before_the_next_answer() {
    let (host, plan) = (Host::new(), plan());
    host.lists.mirror_to(&plan, host.root());
    let (a, b) = (host.scope("a"), host.scope("b"));
    write(&a, &example());
    write(&b, &example());
    let heard = host.lists.watch("a");
    clear_mirrored(&plan, "a").unwrap();
    assert_eq!(read(&a), r#"{"success":true,"taskList":[]}"#);
    assert!(heard.borrow().is_empty());
    assert!(read(&b).contains("Build UI widget"));
    // A write after the request stays.
    assert!(!write(&a, &example()).contains("dropped"));
    assert!(read(&a).contains("Build UI widget"));
    // A second request is applied as well, and also before a write.
    clear_mirrored(&plan, "a").unwrap();
    assert_eq!(write(&a, &json!([])), r#"{"success":true,"message":"Task list updated: 0/0 completed"}"#);
}

#[test]
fn lists_end_with_their_process_unless_they_are_kept() {
    for is_kept in [false, true] {
        let (plan, files) = (plan(), tempfile::tempdir().unwrap());
        let host = Host::with(|builder| builder.keep(is_kept)).scope("s");
        host.lists.mirror_to(&plan, files.path());
        write(&host, &example());
        let mut followed = MirroredLists::read(&plan, files.path()).unwrap();
        assert!(followed.is_held() && !followed.lists()[0].has_ended);
        drop(host);
        followed.follow(&plan).unwrap();
        let left = mirrored_lists(&plan, files.path()).unwrap();
        assert_eq!(followed.lists(), left.iter().collect::<Vec<_>>());
        let has_ended: Vec<bool> = left.iter().map(|list| list.has_ended).collect();
        assert_eq!(has_ended, [true][..usize::from(is_kept)], "a kept list is marked as ended");
        assert!(!followed.is_held());
        let found = mirrored_list(&plan, files.path(), Some("s")).unwrap();
        assert_eq!(found.map(|list| list.has_ended), is_kept.then_some(true));
    }
}

#[test]
fn a_list_of_a_killed_process_is_over() {
    let (host, plan, files) = (Host::new().scope("s"), plan(), tempfile::tempdir().unwrap());
    host.lists.mirror_to(&plan, files.path());
    write(&host, &example());
    let mut lists = MirroredLists::read(&plan, files.path()).unwrap();
    assert!(lists.is_held() && lists.lists().len() == 1);
    // A killed process leaves an unlocked file or none.
    let keepers = files.path().join("keepers");
    for lock in fs::read_dir(&keepers).unwrap() {
        fs::remove_file(lock.unwrap().path()).unwrap();
    }
    lists.follow(&plan).unwrap();
    assert!(lists.lists().is_empty() && !lists.is_held());
    assert!(mirrored_lists(&plan, files.path()).unwrap().is_empty());
    // Inside a call the directory is not visible, so the end of the process cannot be determined.
    fs::remove_dir(keepers).unwrap();
    assert_eq!(mirrored_lists(&plan, files.path()).unwrap().len(), 1);
}

#[test]
fn the_prompt_block_has_this_format() {
    let items: Vec<ChecklistItem> = serde_json::from_value(example()).unwrap();
    let block = "\
<taskList>
Current task progress:
- [completed] (1) Set up project structure
- [in-progress] (3) Implement tool registration
- [not-started] (4) Build UI widget

Progress: 1/3 tasks completed
</taskList>";
    assert_eq!(prompt_block(&items), block);
    let host = Host::new().scope("s");
    write(&host, &example());
    assert_eq!(host.lists.prompt_block("s"), block);
}

#[test]
fn an_empty_list_has_no_prompt_block_at_all() {
    assert_eq!(prompt_block(&[]), "");
    assert_eq!(Host::new().lists.prompt_block("s"), "");
}

#[test]
fn a_reset_of_the_chat_empties_the_list() {
    let (host, plan) = (Host::new().scope("s"), plan());
    host.lists.mirror_to(&plan, host.root());
    write(&host, &example());
    host.lists.clear("s").unwrap();
    assert_eq!(read(&host), r#"{"success":true,"taskList":[]}"#);
    assert!(mirrored_lists(&plan, host.root()).unwrap().is_empty());
    host.lists.clear("nobody").unwrap();
    assert!(!write(&host, &example()).contains("dropped"));
    assert!(read(&host).contains("Build UI widget"), "the own reset must not be applied a second time");
}

#[test]
fn a_read_only_list_answers_reads_and_refuses_writes() {
    let host = Host::with(|builder| builder.read_only(true));
    assert_eq!(read(&host), r#"{"success":true,"taskList":[]}"#);
    assert_eq!(write(&host, &json!([])), r#"{"success":false,"error":"This server is read-only"}"#);
}

#[test]
fn without_a_session_calls_share_one_list_or_are_refused() {
    let shared = Host::with(|builder| builder.scope(ScopeRule::argument_or_own()));
    write(&shared, &example());
    assert!(read(&shared).contains("Build UI widget"));
    assert_eq!(shared.lists.prompt_block(&shared.lists.default_scope()).lines().count(), 8);
    let other = shared.call("manage_tasks", json!({"session_id": "x"}));
    assert_eq!(other, r#"{"success":true,"taskList":[]}"#);
    let strict = Host::with(|builder| builder.scope(ScopeRule::argument()));
    assert_eq!(write(&strict, &example()), r#"{"success":false,"error":"session_id is required"}"#);
    let named = json!({"session_id": "x", "taskList": example()});
    assert!(strict.call("manage_tasks", named).starts_with(r#"{"success":true"#));
    assert_eq!(strict.lists.items(Dialect::Checklist, "x").unwrap().len(), 3);
}

#[test]
fn a_list_under_another_name_is_refused_and_not_read_as_none() {
    let host = Host::new();
    write(&host, &example());
    let before = read(&host);
    for name in ["todo_list", "tasks"] {
        let refused = host.call("manage_tasks", json!({name: [item(1, "not-started")]}));
        assert_eq!(
            refused,
            format!(r#"{{"success":false,"error":"unknown argument `{name}`: give the list as taskList"}}"#)
        );
    }
    let refused = host.call("manage_tasks", json!({"list": {"tasks": [item(1, "not-started")]}}));
    assert!(refused.starts_with(r#"{"success":false,"error":"unknown argument `list`"#), "{refused}");
    assert_eq!(read(&host), before);
}

#[test]
fn fields_of_items_that_are_not_kept_are_named() {
    let host = Host::new();
    let call = json!({"taskList": [item(1, "not-started")], "plan": "x"});
    let said = host.call("manage_tasks", call);
    assert_eq!(said, r#"{"success":true,"message":"Task list updated: 0/1 completed","ignored":["plan"]}"#);
    let items = json!([{"id": 1, "title": "Build", "status": "not-started", "description": "with -O", "owner": "me"}]);
    assert_eq!(
        write(&host, &items),
        r#"{"success":true,"message":"Task list updated: 0/1 completed","ignored":["description","owner"]}"#
    );
}
