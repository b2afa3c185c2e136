//! Contract tests of the `conversation` dialect; each test covers one line of the contract.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};
use taskpawl_todo::{Lists, ScopeRule};

use crate::support::{Host, TALK};

const FILE: &str = ".agents/tasks/0b2f6c1e9a4d4c558a392f6f0f5f7f10.json";

fn talk() -> Host {
    Host::new().scope(TALK)
}

fn add(host: &Host, title: &str) -> String {
    host.json("AddTask", json!({"title": title}))["id"].as_str().unwrap().to_owned()
}

fn write(host: &Host, content: &str) {
    fs::create_dir_all(host.path(".agents/tasks")).unwrap();
    fs::write(host.path(FILE), content).unwrap();
}

#[test]
fn list_tasks_reads_the_file_and_creates_none() {
    let host = talk();
    assert_eq!(host.call("ListTasks", json!({})), r#"{"tasks":[]}"#);
    assert!(!host.path(".agents").exists());
    write(&host, r#"{"tasks":[{"done":true,"description":"d","title":"t","id":"a"}]}"#);
    assert_eq!(
        host.call("ListTasks", json!({})),
        r#"{"tasks":[{"id":"a","title":"t","description":"d","done":true}]}"#
    );
}

#[test]
fn arguments_that_are_not_kept_are_named() {
    let host = talk();
    let said = host.call("AddTask", json!({"title": "Write", "priority": "high", "done": true, "due": null}));
    assert!(said.ends_with(r#""done":false,"ignored":["done","priority"]}"#), "{said}");
    let all = host.call("ListTasks", json!({"status": "open"}));
    assert!(all.starts_with(r#"{"tasks":[{"#) && all.ends_with(r#"}],"ignored":["status"]}"#), "{all}");
    assert!(!host.call("ListTasks", json!({})).contains("ignored"));
    let gone = host.call("CompleteTask", json!({"taskId": "x", "note": "n"}));
    assert_eq!(gone, r#"{"ok":false,"error":"Task not found"}"#);
}

#[test]
fn add_task_appends_a_task_with_a_new_id() {
    let host = talk();
    let said = host.call("AddTask", json!({"title": "Write", "description": "all of it"}));
    let id = serde_json::from_str::<Value>(&said).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(said, format!(r#"{{"id":"{id}","title":"Write","description":"all of it","done":false}}"#));
    let second = host.call("AddTask", json!({"title": "Read", "description": null}));
    assert!(second.ends_with(r#""title":"Read","description":"","done":false}"#), "{second}");
    let file = fs::read_to_string(host.path(FILE)).unwrap();
    assert_eq!(file, format!(r#"{{"tasks":[{said},{second}]}}"#));
}

#[test]
fn complete_task_sets_done_and_answers_the_task() {
    let host = talk();
    let id = add(&host, "Write");
    let done =
        format!(r#"{{"ok":true,"task":{{"id":"{id}","title":"Write","description":"","done":true}}}}"#);
    assert_eq!(host.call("CompleteTask", json!({"taskId": id})), done);
    assert_eq!(host.again().json("ListTasks", json!({}))["tasks"][0]["done"], true);
    let unknown = r#"{"ok":false,"error":"Task not found"}"#;
    assert_eq!(host.answer("CompleteTask", json!({"taskId": "x"})), (unknown.to_owned(), true));
}

#[test]
fn uncomplete_task_clears_done() {
    let host = talk();
    let id = add(&host, "Write");
    host.call("CompleteTask", json!({"taskId": id}));
    let open =
        format!(r#"{{"ok":true,"task":{{"id":"{id}","title":"Write","description":"","done":false}}}}"#);
    assert_eq!(host.call("UncompleteTask", json!({"taskId": id})), open);
    assert_eq!(host.again().json("ListTasks", json!({}))["tasks"][0]["done"], false);
    let unknown = host.call("UncompleteTask", json!({"taskId": "x"}));
    assert_eq!(unknown, r#"{"ok":false,"error":"Task not found"}"#);
}

#[test]
fn delete_task_removes_it() {
    let host = talk();
    let (first, second) = (add(&host, "a"), add(&host, "b"));
    assert_eq!(host.call("DeleteTask", json!({"taskId": first})), r#"{"ok":true}"#);
    let left = host.again().json("ListTasks", json!({}));
    assert_eq!((left["tasks"].as_array().unwrap().len(), &left["tasks"][0]["id"]), (1, &json!(second)));
    let gone = host.call("DeleteTask", json!({"taskId": first}));
    assert_eq!(gone, r#"{"ok":false,"error":"Task not found"}"#);
}

#[test]
fn an_unknown_task_creates_no_folder() {
    let host = talk();
    for tool in ["CompleteTask", "UncompleteTask", "DeleteTask"] {
        host.call(tool, json!({"taskId": "x"}));
    }
    assert!(!host.path(".agents").exists());
}

#[test]
fn the_file_is_named_by_the_id_as_32_lower_case_hex_digits() {
    let host = talk();
    add(&host, "a");
    let names: Vec<_> = fs::read_dir(host.path(".agents/tasks"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, ["0b2f6c1e9a4d4c558a392f6f0f5f7f10.json"]);
}

#[test]
fn the_base_is_the_project_root_unless_it_is_set() {
    let other = tempfile::tempdir().unwrap();
    let host = Host::with(|builder| builder.base(other.path())).scope(TALK);
    add(&host, "a");
    assert!(other.path().join(FILE).exists() && !host.path(".agents").exists());
}

#[test]
fn unknown_fields_survive_a_rewrite_at_the_top_and_in_an_item() {
    let host = talk();
    write(
        &host,
        r#"{"version":3,"tasks":[{"id":"a","title":"t","color":{"r":1},"done":false},{"id":7,"x":null}],"zone":[1]}"#,
    );
    host.call("CompleteTask", json!({"taskId": "a"}));
    let file: Value = serde_json::from_str(&fs::read_to_string(host.path(FILE)).unwrap()).unwrap();
    assert_eq!((&file["version"], &file["zone"]), (&json!(3), &json!([1])));
    assert_eq!(
        file["tasks"][0],
        json!({"id": "a", "title": "t", "description": "", "done": true, "color": {"r": 1}})
    );
    assert_eq!(file["tasks"][1]["x"], Value::Null);
    assert!(file["tasks"][1].as_object().unwrap().contains_key("x"));
}

#[test]
fn only_the_tasks_field_is_required() {
    let host = talk();
    write(&host, r#"{"tasks":[{"title":"t"},{"id":5}]}"#);
    assert_eq!(
        host.call("ListTasks", json!({})),
        r#"{"tasks":[{"id":"","title":"t","description":"","done":false},{"id":5,"title":"","description":"","done":false}]}"#
    );
    assert!(host.call("CompleteTask", json!({"taskId": 5})).starts_with(r#"{"ok":true"#));
    assert!(host.call("CompleteTask", json!({"taskId": "5"})).starts_with(r#"{"ok":true"#));
}

#[test]
fn ids_are_never_reused_even_after_a_delete() {
    let host = talk();
    let mut ids = BTreeSet::new();
    for _ in 0..200 {
        let id = add(&host, "a");
        host.call("DeleteTask", json!({"taskId": id}));
        assert!(ids.insert(id));
    }
    assert_eq!(fs::read_to_string(host.path(FILE)).unwrap(), r#"{"tasks":[]}"#);
}

#[test]
fn writes_are_atomic_and_leave_nothing_else_behind() {
    let host = talk();
    add(&host, "a");
    // A killed process may leave its temporary file behind.
    fs::write(host.path(".agents/tasks/.0b2f6c1e9a4d4c558a392f6f0f5f7f10.json.new"), "half").unwrap();
    fs::set_permissions(host.path(FILE), fs::Permissions::from_mode(0o640)).unwrap();
    add(&host, "b");
    assert_eq!(fs::read_dir(host.path(".agents/tasks")).unwrap().count(), 1);
    assert_eq!(fs::metadata(host.path(FILE)).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn the_id_is_a_uuid_in_any_spelling() {
    let host = talk();
    add(&host, "a");
    let spellings = [
        "0B2F6C1E-9A4D-4C55-8A39-2F6F0F5F7F10",
        "0b2f6c1e9a4d4c558a392f6f0f5f7f10",
        "{0b2f6c1e-9a4d-4c55-8a39-2f6f0f5f7f10}",
        "urn:uuid:0b2f6c1e-9a4d-4c55-8a39-2f6f0f5f7f10",
    ];
    for spelling in spellings {
        let list = host.scope(spelling).json("ListTasks", json!({}));
        assert_eq!(list["tasks"].as_array().unwrap().len(), 1, "{spelling}");
    }
}

#[test]
fn without_a_conversation_calls_fail_and_touch_no_file() {
    let host = Host::new();
    let line = "Error: Task list is not available (no conversation context).";
    for (tool, args) in all_calls() {
        assert_eq!(host.answer(tool, args), (line.to_owned(), true), "{tool}");
    }
    assert!(!host.path(".agents").exists());
}

fn all_calls() -> [(&'static str, Value); 5] {
    let id = json!({"taskId": "x"});
    [
        ("ListTasks", json!({})),
        ("AddTask", json!({"title": "a"})),
        ("CompleteTask", id.clone()),
        ("UncompleteTask", id.clone()),
        ("DeleteTask", id),
    ]
}

#[test]
fn a_conversation_id_that_is_no_uuid_is_refused() {
    let host = Host::new();
    for id in ["talk-1", "", "../../etc/passwd", "0b2f6c1e-9a4d-4c55-8a39-2f6f0f5f7f1"] {
        let said = host.scope(id).answer("AddTask", json!({"title": "a"}));
        assert_eq!(said, ("Error: conversation id must be a UUID.".to_owned(), true), "{id:?}");
    }
    assert!(!host.path(".agents").exists());
}

#[test]
fn a_corrupt_file_stays_byte_for_byte() {
    let corrupt = [
        "",
        "{",
        "[]",
        "null",
        "{}",
        r#"{"tasks":{}}"#,
        r#"{"tasks":[1]}"#,
        r#"{"tasks":[{"title":1}]}"#,
        r#"{"tasks":[{"done":"yes"}]}"#,
        r#"{"tasks":[{"id":[]}]}"#,
        r#"{"tasks":[]} x"#,
        "\u{feff}{}",
    ];
    let host = talk();
    for content in corrupt {
        write(&host, content);
        for (tool, args) in all_calls() {
            let said = host.answer(tool, args);
            assert_eq!(
                said,
                ("Error: Task file is corrupt or invalid.".to_owned(), true),
                "{content} {tool}"
            );
            assert_eq!(fs::read_to_string(host.path(FILE)).unwrap(), content);
        }
    }
    let bytes = b"\xff\xfe{\"tasks\":[]}";
    fs::write(host.path(FILE), bytes).unwrap();
    host.call("AddTask", json!({"title": "a"}));
    assert_eq!(fs::read(host.path(FILE)).unwrap(), bytes);
}

#[test]
fn an_io_error_is_reported_with_its_message() {
    let host = talk();
    fs::write(host.path(".agents"), "a file").unwrap();
    let (said, is_error) = host.answer("AddTask", json!({"title": "a"}));
    assert_eq!((said.as_str(), is_error), ("Error: Not a directory (os error 20)", true));
}

#[test]
fn a_link_out_of_the_project_is_not_followed() {
    let (host, outside) = (talk(), tempfile::tempdir().unwrap());
    symlink(outside.path(), host.path(".agents")).unwrap();
    let (said, _) = host.answer("AddTask", json!({"title": "a"}));
    assert!(said.starts_with("Error: ") && said.contains("leads out"), "{said}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn missing_and_blank_arguments_are_named() {
    let host = talk();
    for args in [json!({}), json!({"title": null}), json!({"title": " \n"}), json!({"title": 5}), json!(null)]
    {
        assert_eq!(host.call("AddTask", args), r#"{"ok":false,"error":"title is required"}"#);
    }
    for tool in ["CompleteTask", "UncompleteTask", "DeleteTask"] {
        for args in [json!({}), json!({"taskId": ""}), json!({"taskId": "  "}), json!([1])] {
            assert_eq!(host.call(tool, args), r#"{"ok":false,"error":"taskId is required"}"#);
        }
    }
    assert!(!host.path(".agents").exists());
}

#[test]
fn the_scope_argument_is_only_used_if_the_scope_is_not_fixed() {
    let open = Host::with(|builder| builder.scope(ScopeRule::argument_or_own()));
    let properties = |host: &Host| host.tool("ListTasks").spec().args_schema["properties"].clone();
    assert!(properties(&open).get("conversation_id").is_some());
    open.call("AddTask", json!({"title": "a", "conversation_id": TALK}));
    let list = |args: Value| open.json("ListTasks", args)["tasks"].as_array().map(Vec::len);
    assert_eq!(list(json!({"conversation_id": TALK})), Some(1));
    let without = open.call("ListTasks", json!({"conversation_id": null}));
    assert_eq!(without, "Error: Task list is not available (no conversation context).");

    let fixed = Host::with(|builder| builder.scope(ScopeRule::fixed(TALK)));
    assert!(properties(&fixed).get("conversation_id").is_none());
    let other = "11111111-1111-4111-8111-111111111111";
    fixed.call("AddTask", json!({"title": "a", "conversation_id": other}));
    assert!(fixed.path(FILE).exists());
}

#[test]
fn a_read_only_list_refuses_writes() {
    let host = Host::with(|builder| builder.read_only(true)).scope(TALK);
    assert_eq!(host.call("ListTasks", json!({})), r#"{"tasks":[]}"#);
    let said = host.answer("AddTask", json!({"title": "a"}));
    assert_eq!(said, ("Error: This server is read-only.".to_owned(), true));
    assert!(!host.path(".agents").exists());
    // The default builder has no scope.
    assert!(Lists::builder().build().items(taskpawl_todo::Dialect::Conversation, "x").is_err());
}

#[test]
fn lists_in_memory_are_shared_by_all_calls_and_leave_no_file() {
    let host = Host::with(|builder| builder.in_memory(true)).scope(TALK);
    let id = add(&host, "Write");
    host.call("CompleteTask", json!({"taskId": id}));
    assert_eq!(host.json("ListTasks", json!({}))["tasks"][0]["done"], true);
    assert_eq!(host.lists.items(taskpawl_todo::Dialect::Conversation, TALK).unwrap().len(), 1);
    host.call("DeleteTask", json!({"taskId": id}));
    assert_eq!(host.call("ListTasks", json!({})), r#"{"tasks":[]}"#);
    assert!(!host.path(".agents").exists());
}

#[test]
fn a_list_is_refused_and_not_taken_for_a_read() {
    let host = talk();
    let refused = r#"{"ok":false,"error":"unknown argument `tasks`: AddTask takes one task, with a title"}"#;
    for given in [json!({"tasks": [{"title": "a"}]}), json!({"tasks": "[{}]"}), json!({"tasks": {"a": {}}})] {
        assert_eq!(host.call("ListTasks", given.clone()), refused, "{given}");
    }
    assert_eq!(host.call("ListTasks", json!({"tasks": null})), r#"{"tasks":[]}"#);
}
