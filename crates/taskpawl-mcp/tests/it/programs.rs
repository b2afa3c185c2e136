use std::time::Duration;

use serde_json::json;
use taskpawl::tools::{Hints, ToolError};
use tokio::time::Instant;

use crate::support::{Bench, is_gone, test_server, until};

#[tokio::test]
async fn servers_of_both_eras_are_called_and_hear_the_key_of_the_call() {
    for (mode, version) in [
        ("both", json!("2026-07-28")),
        ("new", json!("2026-07-28")),
        ("old", json!(null)),
        ("strict", json!(null)),
        ("chatty", json!(null)),
    ] {
        let bench = Bench::new(mode);
        assert_eq!(bench.learn().await, None, "{mode}");
        let result = bench.call("echo", json!({"text": "hello"})).await.unwrap();
        assert_eq!(result["text"], "hello", "{mode}");
        assert_eq!(result["key"], "project/task/call/1", "{mode}");
        assert_eq!(result["traceparent"], "00-1-2-01", "{mode}");
        assert_eq!(result["version"], version, "{mode}");
    }
}

#[tokio::test]
async fn one_server_serves_all_calls_of_a_run_at_the_same_time_and_ends_with_it() {
    let mut bench = Bench::new("both");
    bench.learn().await;
    let (one, two) = tokio::join!(bench.call("meet", json!({})), bench.call("meet", json!({})));
    assert_eq!((one.unwrap(), two.unwrap()), (json!("met"), json!("met")));
    assert_eq!(bench.starts(), 1);
    let first = bench.last_pid();
    bench.next_run().await;
    assert!(is_gone(first));
    assert_eq!(std::fs::read_to_string(bench.path("ended")).unwrap(), "by the end of its input");
    bench.call("echo", json!({"text": ""})).await.unwrap();
    assert_eq!(bench.starts(), 2);
}

#[tokio::test]
async fn what_is_known_of_the_tools_is_kept_and_nothing_is_started_for_it() {
    let mut bench = Bench::new("both");
    assert_eq!(bench.servers().states()[0].tools, None);
    bench.learn().await;
    bench.reload();
    let registry = bench.registry();
    let state = &bench.servers().states()[0];
    assert_eq!((state.tools, &*state.unusable), (Some(17), &["bad name".to_owned()][..]));
    let spec = registry.get("s/echo").unwrap().spec();
    assert_eq!(spec.description, "Does echo.");
    assert_eq!(spec.hints, Hints { read_only: true, ..Hints::default() });
    assert!(registry.get("s/echo").unwrap().is_repeatable(&json!({})));
    assert!(!registry.get("s/die").unwrap().is_repeatable(&json!({})));
    assert_eq!(bench.starts(), 1);

    // A server with another configuration has another catalogue.
    let other = Bench::new("old");
    assert_eq!(other.servers().states()[0].tools, None);
    // A broken catalogue counts as no catalogue.
    for file in std::fs::read_dir(bench.cache()).unwrap() {
        std::fs::write(file.unwrap().path(), "{").unwrap();
    }
    bench.reload();
    assert_eq!(bench.servers().states()[0].tools, None);
}

#[tokio::test]
async fn a_catalogue_that_is_out_of_date_is_put_right_and_refuses_nothing() {
    let mut bench = Bench::new("both");
    bench.learn().await;
    // The catalogue of an earlier version of the server: its tool took a number, and it had one tool more.
    let file = std::fs::read_dir(bench.cache()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    let old = text.replace("\"string\"", "\"integer\"").replace("\"fail\"", "\"gone\"");
    assert_ne!(text, old);
    std::fs::write(&file, &old).unwrap();
    bench.reload();
    assert_eq!(bench.call("echo", json!({"text": "a"})).await.unwrap()["text"], "a");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    bench.call("change", json!({})).await.unwrap();
    until("the new tool is known", || bench.servers().states()[0].tools == Some(17)).await;
    bench.call("echo", json!({"text": "a"})).await.unwrap();
    assert_eq!(bench.call("later", json!({})).await.unwrap(), "later");
    assert!(std::fs::read_to_string(&file).unwrap().contains("later"));
}

#[tokio::test]
async fn changes_of_the_tools_are_heard_in_both_eras() {
    for mode in ["new", "both", "old"] {
        let bench = Bench::new(mode);
        bench.learn().await;
        assert!(bench.registry().get("s/later").is_none(), "{mode}");
        bench.call("change", json!({})).await.unwrap();
        bench.call("echo", json!({"text": "a"})).await.unwrap();
        assert_eq!(bench.call("later", json!({})).await.unwrap(), "later", "{mode}");
    }
}

#[tokio::test]
async fn changes_are_heard_again_after_a_server_has_ended_the_subscription() {
    let bench = Bench::new("new");
    bench.learn().await;
    bench.call("unsubscribe", json!({})).await.unwrap();
    // The tools change while there is no subscription.
    bench.call("change", json!({})).await.unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while bench.registry().get("s/later").is_none() {
        assert!(Instant::now() < end, "the new tool is never known");
        bench.call("echo", json!({"text": "a"})).await.unwrap();
    }
}

#[tokio::test]
async fn a_tool_that_is_gone_is_said_so() {
    let mut bench = Bench::new("both");
    bench.learn().await;
    let file = std::fs::read_dir(bench.cache()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"fail\"", "\"gone\"")).unwrap();
    bench.reload();
    assert_eq!(bench.refusal("gone", json!({})).await, "server: MCP server `s` has no tool `gone` any more");
}

#[tokio::test]
async fn arguments_are_checked_here_as_far_as_the_schema_is_understood() {
    let bench = Bench::new("both");
    bench.learn().await;
    let refusals = [
        bench.refusal("echo", json!({"txt": "a"})).await,
        bench.refusal("echo", json!({"text": 1})).await,
        bench.refusal("parts", json!({"a": 1})).await,
    ];
    insta::assert_snapshot!(refusals.join("\n"), @r###"
invalid_args: `s/echo` refuses its arguments: `args.txt` is not a known field; did you mean `text`?
invalid_args: `s/echo` refuses its arguments: `args.text` has to be a string, but is the number `1`
invalid_args: `s/parts` refuses its arguments: `args.a` has to be a string, but is the number `1`
"###);
    assert!(bench.call("parts", json!({"a": "x", "c": 1})).await.is_ok());
}

#[tokio::test]
async fn failures_keep_what_the_server_says() {
    let bench = Bench::new("both");
    bench.learn().await;
    let refusals = [bench.refusal("fail", json!({})).await, bench.refusal("refuse", json!({})).await];
    insta::assert_snapshot!(refusals.join("\n"), @r###"
tool_error: `s/fail` failed: no such thing
tool_error: the server refused the call: unknown thing (code -32602)
"###);
    let error = bench.call("fail", json!({})).await.unwrap_err();
    assert_eq!(error.result(), Some(&json!("no such thing")));
}

#[tokio::test]
async fn progress_reaches_whoever_watches() {
    let bench = Bench::new("both");
    bench.learn().await;
    assert_eq!(bench.call("progress", json!({})).await.unwrap(), "done");
    assert_eq!(*bench.said.lock().unwrap(), ["at it (1 of 3)", "at it (2 of 3)", "at it (3 of 3)"]);
}

#[tokio::test]
async fn a_server_gets_its_own_variables_and_no_others() {
    let mut server = test_server("both");
    server["env"] = json!({"OWN": "${WORD}", "OTHER": "${NO:-default}"});
    let bench = Bench::of(server);
    bench.learn().await;
    let names = bench.call("environment", json!({})).await.unwrap();
    let mut names: Vec<&str> = names.as_str().unwrap().split(' ').collect();
    names.sort_unstable();
    assert_eq!(names, ["OTHER", "OWN", "PATH", "TASKPAWL_PROCESS"]);

    let mut server = test_server("both");
    server["env"] = json!({"OWN": "${UNSET}"});
    let problem = Bench::of(server).learn().await.unwrap();
    insta::assert_snapshot!(problem, @"MCP server `s` could not be started: variable `UNSET` is not set; set it, or write `${UNSET:-default}`");
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why_and_is_not_started_without_end() {
    let bench = Bench::new("refuse");
    let mut problems = Vec::new();
    for _ in 0..4 {
        problems.push(bench.learn().await.unwrap());
    }
    assert_eq!(problems[0], problems[2]);
    let missing = Bench::of(json!({"command": "no-such-program"})).learn().await.unwrap();
    insta::assert_snapshot!(format!("{}\n{}\n{missing}", problems[0], problems[3]), @r###"
MCP server `s` could not be started: it ended with exit code 3; its last words: cannot read the database | no such file: /data
MCP server `s` failed 3 times in a row and is not started again: it ended with exit code 3; its last words: cannot read the database | no such file: /data
MCP server `s` could not be started: program `no-such-program` is not in PATH (`/usr/bin:/bin`); install it or use its full path
"###);
}

#[tokio::test]
async fn a_server_that_dies_loses_the_call_and_is_started_again_for_the_next() {
    let bench = Bench::new("both");
    bench.learn().await;
    let error = bench.call("die", json!({})).await.unwrap_err();
    assert!(matches!(error, ToolError::Lost { .. }));
    insta::assert_snapshot!(error, @"MCP server `s` was lost during the call, and the progress of the call is unknown: it ended with exit code 7; its last words: starting | panic: out of cheese");
    assert_eq!(bench.call("echo", json!({"text": "a"})).await.unwrap()["text"], "a");
    assert_eq!(bench.starts(), 2);

    // After three failures in a row the server is not started again.
    for _ in 0..3 {
        assert!(matches!(bench.call("die", json!({})).await, Err(ToolError::Lost { .. })));
    }
    assert!(
        bench.refusal("die", json!({})).await.starts_with("server: MCP server `s` failed 3 times in a row")
    );
    assert_eq!(bench.starts(), 4);
}

#[tokio::test]
async fn a_call_that_is_cancelled_or_late_is_taken_back() {
    let bench = Bench::new("both");
    bench.learn().await;
    let cx = bench.cx();
    let cancel = cx.cancel.clone();
    let call = bench.call_with(cx, "hang", json!({}));
    let cancelling = async {
        // Once a later call is answered, this call is known to have been sent.
        bench.call("echo", json!({"text": ""})).await.unwrap();
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(call, cancelling);
    assert!(matches!(ended, Err(ToolError::Cancelled { .. })));
    until("the server hears of it", || bench.path("cancelled").exists()).await;

    std::fs::remove_file(bench.path("cancelled")).unwrap();
    let mut cx = bench.cx();
    cx.deadline = Some(Instant::now() + Duration::from_millis(50));
    assert!(matches!(bench.call_with(cx, "hang", json!({})).await, Err(ToolError::Timeout { .. })));
    until("the server hears of it", || bench.path("cancelled").exists()).await;

    std::fs::remove_file(bench.path("cancelled")).unwrap();
    let dropped = bench.call("hang", json!({}));
    let waiting = async { bench.call("echo", json!({"text": ""})).await.unwrap() };
    tokio::select! {
        biased;
        _ = dropped => panic!("it hangs"),
        _ = waiting => {}
    }
    until("the server hears of it", || bench.path("cancelled").exists()).await;
    assert_eq!(bench.starts(), 1);
}

#[tokio::test]
async fn a_server_that_says_nothing_any_more_is_replaced() {
    let bench = Bench::new("both");
    bench.learn().await;
    let deaf = bench.last_pid();
    let mut cx = bench.cx();
    cx.deadline = Some(Instant::now() + Duration::from_millis(50));
    assert!(matches!(bench.call_with(cx, "deaf", json!({})).await, Err(ToolError::Timeout { .. })));
    bench.call("echo", json!({"text": "a"})).await.unwrap();
    assert_eq!(bench.starts(), 2);
    until("the deaf one is ended", || is_gone(deaf)).await;
}

#[tokio::test]
async fn what_a_server_sends_is_bounded() {
    let bench = Bench::new("both");
    bench.learn().await;
    let before = resident_kib();
    let mut refusals = Vec::new();
    for tool in ["flood", "values", "noise", "shout"] {
        refusals.push(bench.refusal(tool, json!({})).await);
        bench.call("echo", json!({"text": "a"})).await.unwrap();
    }
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB");
    insta::assert_snapshot!(refusals.join("\n"), @r###"
lost: MCP server `s` was lost during the call, and the progress of the call is unknown: it sent a message of more than 8 MiB
lost: MCP server `s` was lost during the call, and the progress of the call is unknown: it sent a message of more than 25000 values
lost: MCP server `s` was lost during the call, and the progress of the call is unknown: it prints lines that are no messages of the protocol
lost: MCP server `s` was lost during the call, and the progress of the call is unknown: it wrote more than 64 MiB to its standard error
"###);
}

/// Returns the resident memory of this process, in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_timeout_of_a_server_holds_for_its_calls() {
    let mut server = test_server("both");
    server["timeout"] = json!(50);
    let bench = Bench::of(server);
    bench.learn().await;
    let hangs = bench.registry();
    assert_eq!(hangs.get("s/hang").unwrap().spec().timeout, Some(Duration::from_millis(50)));
    assert!(matches!(bench.call("hang", json!({})).await, Err(ToolError::Timeout { .. })));
}

#[tokio::test]
async fn tools_that_are_left_out_are_not_there() {
    let mut server = test_server("both");
    server["includeTools"] = json!(["echo", "fail"]);
    server["excludeTools"] = json!(["fail"]);
    let bench = Bench::of(server);
    bench.learn().await;
    assert_eq!(bench.registry().names().collect::<Vec<_>>(), ["s/echo"]);
}
