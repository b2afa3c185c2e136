//! Contract tests of the `queue` dialect; each test covers one line of the contract.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};
use taskpawl_todo::Dialect;

use crate::support::Host;

fn task(host: &Host, operation: &str, item: Option<&str>) -> String {
    host.call("task", json!({"agent_id": "abc123", "operation": operation, "item": item}))
}

fn file(host: &Host) -> std::path::PathBuf {
    host.path("files/system/agents/abc123/tasks.json")
}

#[test]
fn operations_behave_as_in_redis() {
    let host = Host::new();
    let steps = [
        ("rpush", Some("Fix authentication bug"), r#"{"count":1}"#),
        ("rpush", Some("b"), r#"{"count":2}"#),
        ("lpush", Some("z"), r#"{"count":3}"#),
        ("list", None, r#"{"items":["z","Fix authentication bug","b"]}"#),
        ("lpeek", None, r#"{"item":"z"}"#),
        ("rpeek", None, r#"{"item":"b"}"#),
        ("count", None, r#"{"count":3}"#),
        ("lpop", None, r#"{"item":"z"}"#),
        ("rpop", None, r#"{"item":"b"}"#),
        ("list", None, r#"{"items":["Fix authentication bug"]}"#),
    ];
    for (operation, item, answer) in steps {
        assert_eq!(task(&host, operation, item), answer, "{operation}");
    }
}

#[test]
fn reads_and_pops_of_an_empty_queue_return_null_and_create_no_folder() {
    let host = Host::new();
    for operation in ["lpop", "rpop", "lpeek", "rpeek"] {
        let args = json!({"agent_id": "a", "operation": operation});
        assert_eq!(host.answer("task", args), (r#"{"item":null}"#.to_owned(), false));
    }
    assert_eq!(task(&host, "list", None), r#"{"items":[]}"#);
    assert_eq!(task(&host, "count", None), r#"{"count":0}"#);
    assert!(!host.path("files").exists());
}

#[test]
fn all_answers_but_list_have_a_constant_size() {
    let host = Host::new();
    for count in 0..500 {
        task(&host, "rpush", Some(&format!("item {count}")));
    }
    for operation in ["count", "lpeek", "rpeek", "lpop", "rpop"] {
        assert!(task(&host, operation, None).len() < 30);
    }
}

#[test]
fn errors_have_these_texts() {
    let host = Host::new();
    let errors = [
        (json!({}), "agent_id is required"),
        (json!({"agent_id": null, "operation": "list"}), "agent_id is required"),
        (json!({"agent_id": "", "operation": "list"}), "agent_id is required"),
        (json!({"agent_id": "a", "operation": "lpush"}), "item is required"),
        (json!({"agent_id": "a", "operation": "rpush", "item": ""}), "item is required"),
        (json!({"agent_id": "a", "operation": "rpush", "item": null}), "item is required"),
        (json!({"agent_id": "a", "operation": "x"}), "unknown operation `x`"),
        (json!({"agent_id": "a"}), "operation is required"),
        (
            json!({"agent_id": "a", "operation": "lpop", "lease": "soon"}),
            "lease must be a duration such as `5m`, of at most 8760h",
        ),
        (json!({"agent_id": "a", "operation": "list", "lease": "5m"}), "lease is only for lpop and rpop"),
        (json!({"agent_id": "a", "operation": "ack"}), "receipt is required"),
        (json!({"agent_id": "a", "operation": "ack", "receipt": "r"}), "unknown receipt `r`"),
    ];
    for (args, error) in errors {
        let said = json!({ "error": error }).to_string();
        assert_eq!(host.answer("task", args.clone()), (said, true), "{args}");
    }
}

#[test]
fn the_file_is_only_accessible_to_its_owner() {
    let host = Host::new();
    task(&host, "rpush", Some("a \"b\""));
    assert_eq!(fs::read_to_string(file(&host)).unwrap(), r#"{"items":["a \"b\""]}"#);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file(&host)), mode(file(&host).parent().unwrap())), (0o600, 0o700));
    assert_eq!(task(&host.again(), "lpop", None), r#"{"item":"a \"b\""}"#);
}

#[test]
fn a_queue_can_be_read_by_its_address() {
    let host = Host::new();
    task(&host, "rpush", Some("a"));
    let read = |address: &str| host.lists.read_address(address);
    let there = read("ik://system/agents/abc123/tasks.json").unwrap().unwrap();
    assert_eq!(there, r#"{"items":["a"]}"#);
    assert!(read("ik://system/agents/../tasks.json").unwrap().is_err());
    assert!(read("ik://system/agents/abc123").is_none() && read("file:///etc/passwd").is_none());
}

#[test]
fn each_agent_has_its_own_queue_that_others_can_use() {
    let host = Host::new();
    let call = |agent: &str, args: Value| {
        let mut args = args;
        args["agent_id"] = json!(agent);
        host.call("task", args)
    };
    call("child", json!({"operation": "rpush", "item": "x"}));
    assert_eq!(call("parent", json!({"operation": "count"})), r#"{"count":0}"#);
    assert_eq!(call("child", json!({"operation": "lpop"})), r#"{"item":"x"}"#);
}

#[test]
fn an_agent_id_that_would_leave_the_folder_is_refused() {
    let host = Host::new();
    let long = "x".repeat(256);
    for id in ["..", ".", "../x", "a/b", "/etc", "a\\b", "a\0b", "a\nb", &long] {
        let args = json!({"agent_id": id, "operation": "rpush", "item": "x"});
        let (said, is_error) = host.answer("task", args);
        assert!(is_error && said.contains("would leave its folder"), "{id:?}: {said}");
    }
    assert!(!host.path("files").exists() && !host.path("system").exists());
    for id in ["...", "~", "a b", "ü", "-x", "a:b"] {
        let args = json!({"agent_id": id, "operation": "rpush", "item": "x"});
        assert_eq!(host.call("task", args), r#"{"count":1}"#, "{id:?}");
    }
}

#[test]
fn a_link_out_of_the_folder_is_not_followed() {
    let (host, outside) = (Host::new(), tempfile::tempdir().unwrap());
    fs::create_dir_all(host.path("files/system/agents")).unwrap();
    symlink(outside.path(), host.path("files/system/agents/abc123")).unwrap();
    assert!(task(&host, "rpush", Some("x")).contains("leads out"));
    assert!(task(&host, "list", None).contains("leads out"));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn a_corrupt_file_stays_unchanged_and_unsupported_fields_survive() {
    let host = Host::new();
    task(&host, "rpush", Some("x"));
    for content in ["", "{", "[]", r#"{"items":1}"#, r#"{"items":[1]}"#, r#"{"items":[],"leased":5}"#] {
        fs::write(file(&host), content).unwrap();
        for operation in ["rpush", "lpop", "list", "count"] {
            let said = task(&host, operation, Some("y"));
            assert!(said.starts_with(r#"{"error":"the queue is corrupt"#), "{said}");
        }
        assert_eq!(fs::read_to_string(file(&host)).unwrap(), content);
    }
    fs::write(file(&host), r#"{"note":{"a":1},"items":["x"]}"#).unwrap();
    task(&host, "rpush", Some("y"));
    assert_eq!(fs::read_to_string(file(&host)).unwrap(), r#"{"items":["x","y"],"note":{"a":1}}"#);
}

fn lease(host: &Host, operation: &str) -> (String, String) {
    let said = host.json("task", json!({"agent_id": "abc123", "operation": operation, "lease": "5m"}));
    (said["item"].as_str().unwrap().to_owned(), said["receipt"].as_str().unwrap().to_owned())
}

fn acknowledge(host: &Host, receipt: &str) -> String {
    host.call("task", json!({"agent_id": "abc123", "operation": "ack", "receipt": receipt}))
}

#[test]
fn ack_removes_a_leased_item_permanently() {
    let host = Host::new();
    task(&host, "rpush", Some("a"));
    let said = host.call("task", json!({"agent_id": "abc123", "operation": "lpop", "lease": "5m"}));
    let receipt = serde_json::from_str::<Value>(&said).unwrap()["receipt"].as_str().unwrap().to_owned();
    assert_eq!(said, format!(r#"{{"item":"a","receipt":"{receipt}"}}"#));
    assert_eq!(task(&host, "count", None), r#"{"count":0}"#);
    assert_eq!(acknowledge(&host, &receipt), r#"{"ok":true}"#);
    host.clock.pass(600);
    assert_eq!(task(&host, "list", None), r#"{"items":[]}"#);
    assert_eq!(fs::read_to_string(file(&host)).unwrap(), r#"{"items":[]}"#);
    assert_eq!(acknowledge(&host, &receipt), format!(r#"{{"error":"unknown receipt `{receipt}`"}}"#));
    let empty = host.call("task", json!({"agent_id": "abc123", "operation": "lpop", "lease": "5m"}));
    assert_eq!(empty, r#"{"item":null}"#);
}

#[test]
fn an_item_with_an_expired_lease_returns_to_its_end() {
    let host = Host::new();
    for item in ["a", "b", "c", "d", "e"] {
        task(&host, "rpush", Some(item));
    }
    let taken: Vec<_> = ["lpop", "lpop", "rpop", "rpop"].map(|operation| lease(&host, operation).0).into();
    assert_eq!(taken, ["a", "b", "e", "d"]);
    host.clock.pass(299);
    assert_eq!(task(&host, "list", None), r#"{"items":["c"]}"#);
    host.clock.pass(1);
    assert_eq!(task(&host.again(), "list", None), r#"{"items":["a","b","c","d","e"]}"#);
    assert_eq!(task(&host, "rpop", None), r#"{"item":"e"}"#);
    assert_eq!(fs::read_to_string(file(&host)).unwrap(), r#"{"items":["a","b","c","d"]}"#);
}

#[test]
fn an_expired_receipt_is_refused() {
    let host = Host::new();
    task(&host, "rpush", Some("a"));
    let (_, receipt) = lease(&host, "lpop");
    host.clock.pass(300);
    assert!(acknowledge(&host, &receipt).contains("unknown receipt"));
    assert_eq!(task(&host, "lpop", None), r#"{"item":"a"}"#);
}

#[test]
fn a_read_only_queue_refuses_everything_but_reads() {
    let host = Host::with(|builder| builder.read_only(true));
    for operation in ["lpeek", "rpeek", "list", "count"] {
        assert!(!task(&host, operation, None).contains("error"));
    }
    for operation in ["lpush", "rpush", "lpop", "rpop"] {
        assert_eq!(task(&host, operation, Some("x")), r#"{"error":"This server is read-only"}"#);
    }
    assert!(!host.path("files").exists());
}

#[test]
fn only_reads_and_ack_are_repeatable() {
    let tool = Host::new().tool("task");
    let is_repeatable = |operation: &str| tool.is_repeatable(&json!({"operation": operation}));
    assert!(["lpeek", "rpeek", "list", "count", "ack"].into_iter().all(is_repeatable));
    assert!(!["lpush", "rpush", "lpop", "rpop", "x"].into_iter().any(is_repeatable));
}

#[test]
fn items_are_available_to_programs() {
    let host = Host::new();
    task(&host, "rpush", Some("a"));
    assert_eq!(host.lists.items(Dialect::Queue, "abc123").unwrap()[0].title, "a");
    assert!(host.lists.items(Dialect::Queue, "../x").is_err());
}

#[test]
fn a_list_is_refused_and_not_taken_for_a_read() {
    let host = Host::new();
    let given = json!({"agent_id": "abc123", "operation": "list", "items": ["a", "b"]});
    let refused = r#"{"error":"unknown argument `items`: lpush and rpush take one item"}"#;
    assert_eq!(host.call("task", given), refused);
}
