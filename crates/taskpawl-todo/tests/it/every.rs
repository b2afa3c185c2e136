//! Behaviour that all dialects share.

use serde_json::json;
use taskpawl_todo::Dialect;
use taskpawl_tools::{CallContext, Registry, call_guarded, in_scope};

use crate::support::{Host, TALK};

#[test]
fn scopes_are_isolated() {
    let host = Host::new();
    let (a, b) = (TALK, "11111111-1111-4111-8111-111111111111");
    let calls = [
        ("AddTask", json!({"title": "secret"}), "ListTasks"),
        (
            "manage_tasks",
            json!({"taskList": [{"id": 1, "title": "secret", "status": "not-started"}]}),
            "manage_tasks",
        ),
        (
            "todowrite",
            json!({"todos": [{"content": "secret", "status": "pending", "priority": "low"}]}),
            "todoread",
        ),
    ];
    for (write, args, read) in calls {
        host.scope(a).call(write, args);
        assert!(host.scope(a).call(read, json!({})).contains("secret"), "{write}");
        assert!(!host.scope(b).call(read, json!({})).contains("secret"), "{write}");
    }
}

#[test]
fn the_scope_of_a_call_is_that_of_the_surrounding_future() {
    let host = Host::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let call = || async { CallContext::new(host.root(), host.path("output")) };
    let list = |cx: CallContext| {
        let tool = host.tool("ListTasks");
        async move { tool.call(cx, json!({})).await.map_err(|error| error.to_string()) }
    };
    runtime.block_on(async {
        let inside = in_scope(TALK, async { list(call().await).await }).await;
        assert_eq!(inside.unwrap(), r#"{"tasks":[]}"#);
        let outside = list(call().await).await;
        assert_eq!(outside.unwrap_err(), "Error: Task list is not available (no conversation context).");
        // The scope ends with the future, even if that is dropped half way.
        let dropped =
            tokio::time::timeout(std::time::Duration::ZERO, in_scope(TALK, std::future::pending::<()>()));
        assert!(dropped.await.is_err());
        assert!(taskpawl_tools::current_scope().is_none());
    });
}

#[test]
fn tools_work_through_a_registry() {
    let host = Host::new();
    let mut registry = Registry::builtin();
    for tool in Dialect::ALL.into_iter().flat_map(|dialect| host.lists.tools(dialect)) {
        registry.register(tool).unwrap();
    }
    let mut cx = CallContext::new(host.root(), host.path("output"));
    cx.scope = Some(TALK.to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let add = registry.get("AddTask").unwrap().clone();
    let said = runtime.block_on(call_guarded(add.clone(), cx.clone(), json!({})));
    assert_eq!(said.unwrap_err().to_string(), r#"{"ok":false,"error":"title is required"}"#);
    let beforehand = |args| add.check_args(&args).map_err(|error| error.to_string());
    assert_eq!(beforehand(json!({"description": null, "conversation_id": TALK, "other": 1})), Ok(()));
    let slip = beforehand(json!({"titel": "a"})).unwrap_err();
    assert!(slip.contains("did you mean `title`?"), "authors of plans get a suggestion: {slip}");
    add.check_call(&json!({"titel": "a"})).expect("a call gets the dialect's own answer");
    cx.cancel.cancel();
    assert!(runtime.block_on(call_guarded(add, cx, json!({"title": "a"}))).is_err());
}

#[test]
fn null_means_the_default_of_an_optional_argument() {
    let host = Host::new().scope(TALK);
    let calls = [
        ("AddTask", json!({"title": "a", "description": null})),
        ("manage_tasks", json!({"taskList": null, "operation": null})),
        ("todoread", json!({"session_id": null})),
        ("task", json!({"agent_id": "a", "operation": "lpop", "item": null, "lease": null, "receipt": null})),
        ("ListTasks", json!(null)),
    ];
    for (tool, args) in calls {
        assert!(!host.answer(tool, args).1, "{tool}");
    }
}

/// These errors let the call of a plan fail, with the text of each dialect.
#[test]
fn a_refused_call_is_an_error_result_in_every_dialect() {
    let host = Host::new().scope(TALK);
    let several = json!([
        {"id": 1, "title": "a", "status": "in-progress"},
        {"id": 2, "title": "b", "status": "in-progress"},
    ]);
    for (tool, args, said) in [
        ("AddTask", json!({"title": " "}), r#"{"ok":false,"error":"title is required"}"#),
        (
            "AddTask",
            json!({"title": "a", "description": 1}),
            r#"{"ok":false,"error":"description must be a string"}"#,
        ),
        ("CompleteTask", json!({}), r#"{"ok":false,"error":"taskId is required"}"#),
        ("CompleteTask", json!({"taskId": "x"}), r#"{"ok":false,"error":"Task not found"}"#),
        ("UncompleteTask", json!({"taskId": "x"}), r#"{"ok":false,"error":"Task not found"}"#),
        ("DeleteTask", json!({}), r#"{"ok":false,"error":"taskId is required"}"#),
        (
            "manage_tasks",
            json!({"taskList": several}),
            r#"{"success":false,"error":"At most one task may be in-progress at a time"}"#,
        ),
        (
            "manage_todo_list",
            json!({"operation": "append"}),
            r#"{"success":false,"error":"unknown operation `append`: use write or read"}"#,
        ),
        ("todowrite", json!({"todos": 1}), r#"{"error":"todos: expected an array"}"#),
        ("task", json!({"operation": "lpop"}), r#"{"error":"agent_id is required"}"#),
    ] {
        assert_eq!(host.answer(tool, args.clone()), (said.to_owned(), true), "{tool} {args}");
    }
    // A deletion that is repeated after a crash must not fail.
    let gone = host.answer("DeleteTask", json!({"taskId": "x"}));
    assert_eq!(gone, (r#"{"ok":false,"error":"Task not found"}"#.to_owned(), false));
}
