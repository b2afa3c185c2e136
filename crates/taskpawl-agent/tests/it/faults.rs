use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskpawl_tools::ToolError;

use crate::support::Bench;

/// Returns the failure of an agent with one turn.
async fn failure_of(turn: Value) -> String {
    Bench::with_turns(&json!([turn])).failure(json!({"prompt": "go"})).await
}

#[tokio::test]
async fn an_agent_that_ends_in_the_middle_is_described_by_its_last_words() {
    let error = failure_of(json!([{"stderr": "no memory"}, {"say": "half"}, {"exit": 3}])).await;
    let expected = "agent_ended: agent `scripted` ended with exit code 3 before its turn was over: no memory";
    assert_eq!(error, expected);
    let error = failure_of(json!([{"crash_unless": "x"}])).await;
    assert_eq!(error, "agent_ended: agent `scripted` was ended by signal 9 before its turn was over");
    // A process that it left behind holds its output open.
    let error = failure_of(json!([{"spawn": 60}, {"exit": 0}])).await;
    assert_eq!(error, "agent_ended: agent `scripted` ended with exit code 0 before its turn was over");
}

#[tokio::test]
async fn a_hang_ends_at_the_deadline() {
    let mut bench = Bench::with_turns(&json!([[{"say": "soon"}, {"hang": 1}]]));
    bench.timeout = Duration::from_secs(2);
    let begin = Instant::now();
    let error = bench.call(json!({"prompt": "go"})).await.unwrap_err();
    assert!(matches!(error, ToolError::Timeout { .. }), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert_eq!(bench.log(), "[session s1]\nsoon");
}

#[tokio::test]
async fn huge_output_is_cut_or_refused() {
    let bench = Bench::with_turns(&json!([[{"flood": 20}]]));
    let text = bench.text().await;
    assert_eq!(text.len(), 256 << 10);
    let mut bench = Bench::with_turns(&json!([[{"flood": 40}]]));
    bench.output_bytes = 1 << 20;
    assert!(bench.failure(json!({"prompt": "go"})).await.starts_with("output_limit: "));
}

#[tokio::test]
async fn what_is_no_message_is_noise_or_a_fault() {
    let bench =
        Bench::new(&json!({"greeting": "Welcome!", "turns": [[{"raw": "[debug] x"}, {"say": "ok"}]]}));
    assert_eq!(bench.text().await, "ok");
    let error = failure_of(json!([{"raw": "{\"id\": 1, \"id\": 2}"}])).await;
    assert!(
        error.starts_with("agent_protocol: agent `scripted` sent a message that cannot be read"),
        "{error}"
    );
    // Answers without a question, unknown updates and empty ones change nothing.
    let odd = json!([
        {"raw": "{\"jsonrpc\": \"2.0\", \"id\": 99, \"result\": {}}"},
        {"raw": "{\"jsonrpc\": \"2.0\", \"method\": \"session/update\"}"},
        {"raw": "{\"method\": \"session/update\", \"params\": {\"update\": {\"sessionUpdate\": \"new\"}}}"},
        {"raw": "{\"method\": \"other/thing\", \"params\": 3}"},
        {"raw": "{}"},
        {"plan": []}, {"plan": 5}, {"say": "ok"},
    ]);
    assert_eq!(Bench::with_turns(&json!([odd])).text().await, "ok");
}

#[tokio::test]
async fn stops_and_errors_of_the_agent_fail_the_call() {
    for (turn, says) in [
        (
            json!([{"say": "no way"}, {"stop": "refusal"}]),
            "agent_stopped: agent `scripted` refuses to go on: no way",
        ),
        (
            json!([{"stop": "max_tokens"}]),
            "agent_stopped: agent `scripted` reached the limit of its model's tokens",
        ),
        (json!([{"stop": "odd"}]), "agent_protocol: agent `scripted` stopped for the unknown reason `odd`"),
        (
            json!([{"error": {"code": -32603, "message": "broken", "data": {"details": "deep"}}}]),
            "agent_error: agent `scripted` failed: broken: deep (code -32603)",
        ),
    ] {
        assert_eq!(failure_of(turn).await, says);
    }
    let turn = json!([{"error": {"code": -32603, "message": "usage limit", "data": {"retryAfter": 60}}}]);
    let error = Bench::with_turns(&json!([turn])).call(json!({"prompt": "go"})).await.unwrap_err();
    assert_eq!((error.class(), error.retry_advice().after), ("quota", Some(Duration::from_mins(1))));
}

#[tokio::test]
async fn faults_before_the_first_turn_are_named() {
    for (method, answer, says) in [
        (
            "initialize",
            json!({"result": {"protocolVersion": 7}}),
            "agent_protocol: agent `scripted` speaks version 7 of the Agent Client Protocol, not 1",
        ),
        (
            "session/new",
            json!({"result": {}}),
            "agent_protocol: agent `scripted` began a session without an id",
        ),
        (
            "session/new",
            json!({"error": {"code": -32000, "message": "Authentication required"}}),
            "agent_login: agent `scripted` wants a login: Authentication required; log in with its own program, \
             or give it a key in `[agents.scripted]` of your configuration",
        ),
    ] {
        let bench = Bench::new(&json!({"answers": {method: answer}}));
        assert_eq!(bench.failure(json!({"prompt": "go"})).await, says);
    }
    let bench = Bench::new(&json!({}));
    assert_eq!(
        bench.failure(json!({"prompt": "go", "using": "other"})).await,
        "unknown_agent: no agent `other`"
    );
    let error = bench.failure(json!({"prompt": "go", "promt": 1})).await;
    assert!(error.starts_with("invalid_args: "), "{error}");
}
