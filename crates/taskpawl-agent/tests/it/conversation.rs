use std::time::Duration;

use serde_json::{Value, json};
use taskpawl_tools::Decision;

use crate::support::Bench;

#[tokio::test]
async fn the_answer_is_the_text_after_the_last_action_and_the_log_has_everything() {
    let tool = json!({"toolCallId": "t1", "title": "Read a.txt", "kind": "read", "status": "pending"});
    let turns = json!([[{"say": "I look first."}, {"tool": tool}, {"say": "It is "}, {"say": "fine."}]]);
    let bench = Bench::with_turns(&turns);
    let result = bench.call(json!({"prompt": "go", "using": "scripted"})).await.unwrap();
    let expected = json!({
        "agent": "scripted", "session": "s1", "turns": 1, "stopReason": "end_turn", "text": "It is fine.",
    });
    assert_eq!(result, expected);
    assert_eq!(bench.log(), "[session s1]\nI look first.\n[read] Read a.txt\n[completed] t1\nIt is fine.");
    assert_eq!(*bench.said.lock().unwrap(), ["Read a.txt"]);
}

#[tokio::test]
async fn prompt_files_mode_and_variables_reach_the_agent() {
    let bench = Bench::with_turns(&json!([[{"prompts": 1}, {"environment": "AGENT_COLOR"}]]));
    std::fs::write(bench.path("a.txt"), "").unwrap();
    let args = json!({"prompt": "look", "files": ["a.txt"], "mode": "plan"});
    let text = bench.call(args).await.unwrap()["text"].as_str().unwrap().to_owned();
    let uri = format!("file://{}", bench.path("a.txt").display());
    assert_eq!(text, format!("{}green", json!([["look", uri]]).to_string().replace(',', ", ")));
    let bench = Bench::with_turns(&json!([]));
    let error = bench.failure(json!({"prompt": "x", "mode": "yolo"})).await;
    assert_eq!(error, "failed: agent `scripted` has no mode `yolo`: it has code, plan");
    let error = bench.failure(json!({"prompt": "x", "files": ["/etc/passwd"]})).await;
    assert!(error.starts_with("outside_root: "), "{error}");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_repaired_in_two_rounds() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let turns =
        json!([[{"say": "soon"}], [{"say": "{\"n\": \"x\"}"}], [{"say": "```json\n{\"n\": 3}\n```"}]]);
    let bench = Bench::with_turns(&turns);
    let result = bench.call(json!({"prompt": "go", "schema": schema})).await.unwrap();
    assert_eq!((&result["json"], &result["turns"]), (&json!({"n": 3}), &json!(3)));
    let log = bench.log();
    assert!(log.contains("[answer refused] the answer is not one JSON value"), "{log}");
    assert!(log.contains("[answer refused] `n` "), "{log}");

    let bench = Bench::with_turns(&json!([[{"say": "never"}]]));
    let error = bench.failure(json!({"prompt": "go", "schema": schema})).await;
    assert!(
        error.starts_with("invalid_answer: agent `scripted` gave no answer that fits `schema` in 3 turns"),
        "{error}"
    );
    let bench = Bench::with_turns(&json!([[{"say": "never"}]]));
    let error = bench.failure(json!({"prompt": "go", "schema": schema, "maxTurns": 1})).await;
    assert!(error.contains("in 1 turns"), "{error}");
}

#[tokio::test]
async fn permissions_are_decided_by_the_policy_first() {
    let call = json!({"toolCallId": "t1", "title": "Delete all", "kind": "execute", "rawInput": {"command": "rm -r ."}});
    let turns = json!([[{"permission": call}]]);
    let mut bench = Bench::with_turns(&turns);
    assert_eq!(bench.text().await, "granted");
    assert!(bench.log().contains("[allowed] Delete all: {\"command\":\"rm -r .\"}"));
    bench.decision = Decision::Deny;
    assert!(bench.text().await.ends_with("refused"));
    assert!(bench.log().contains("[refused] Delete all: {\"command\":\"rm -r .\"}: the policy says so"));
    assert!(bench.journal.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_person_decides_and_the_next_start_goes_on_in_the_same_session() {
    let call =
        json!({"toolCallId": "t1", "title": "Push", "kind": "execute", "rawInput": {"command": "git push"}});
    let mut bench = Bench::with_turns(&json!([[{"permission": call}, {"prompts": 1}]]));
    bench.decision = Decision::Ask;
    // The engine drops a call that asks: here the call just never ends.
    let asking = tokio::time::timeout(Duration::from_secs(5), bench.call(json!({"prompt": "go"}))).await;
    assert!(asking.is_err());
    let question = bench.journal.asked.lock().unwrap()[0].clone();
    assert_eq!(question, "Let agent `scripted` do this? Push: {\"command\":\"git push\"}");
    for (answer, says) in [("yes", "granted"), ("no", "refused")] {
        bench.journal.answers.lock().unwrap().insert(question.clone(), answer.to_owned());
        let result = bench.call(json!({"prompt": "go"})).await.unwrap();
        let text = result["text"].as_str().unwrap();
        assert!(text.starts_with(says), "{text}");
        assert_eq!(result["session"], "s1");
        // Earlier messages of the session are not repeated.
        assert!(!text.contains("an old message"), "{text}");
        assert!(text.contains("You were interrupted"), "{text}");
    }
}

#[tokio::test]
async fn files_are_read_and_written_by_the_rules_of_our_tools() {
    let bench = Bench::with_turns(&json!([]));
    let path = |name: &str| bench.path(name).display().to_string();
    bench.script(&json!({"turns": [[
        {"fs/write_text_file": {"path": path("a.txt"), "content": "hello"}},
        {"fs/read_text_file": {"path": path("a.txt")}},
        {"fs/read_text_file": {"path": "/etc/passwd"}},
        {"terminal/create": {"command": "ls"}},
    ]]}));
    let text = bench.text().await;
    assert!(text.starts_with("null{\"content\": \"hello\"}"), "{text}");
    assert!(text.contains("/etc/passwd") && !text.contains("root:"), "{text}");
    assert!(text.contains("the client has no method `terminal/create`"), "{text}");
    assert_eq!(std::fs::read_to_string(bench.path("a.txt")).unwrap(), "hello");
}

#[tokio::test]
async fn usage_counts_and_a_cost_can_be_limited() {
    let tokens = json!({"totalTokens": 7, "inputTokens": 4, "outputTokens": 3});
    let bench = Bench::with_turns(&json!([[{"cost": 0.5}, {"cost": 0.75}, {"tokens": tokens}]]));
    bench.call(json!({"prompt": "go", "maxCost": 1})).await.unwrap();
    let expected = [
        json!({"cost": 0.5}),
        json!({"cost": 0.25}),
        json!({"tokens": 7, "inputTokens": 4, "outputTokens": 3}),
    ];
    assert_eq!(*bench.usage.lock().unwrap(), expected);

    let bench = Bench::with_turns(&json!([[{"cost": 0.5}, {"cost": 2}, {"hang": 1}]]));
    let error = bench.failure(json!({"prompt": "go", "maxCost": 1})).await;
    assert_eq!(error, "max_cost: agent `scripted` has spent 2.00, more than `maxCost`, which is 1.00");
    assert_eq!(bench.usage.lock().unwrap().len(), 2);

    let bench = Bench::with_turns(&json!([[{"say": "done"}]]));
    let error = bench.failure(json!({"prompt": "go", "maxCost": 1})).await;
    assert!(error.starts_with("max_cost: agent `scripted` reports no cost"), "{error}");
}

#[tokio::test]
async fn the_plan_of_the_agent_is_progress() {
    let entry =
        |content: &str, status: &str| json!({"content": content, "priority": "medium", "status": status});
    let plan = json!([entry("read", "completed"), entry("write", "in_progress"), entry("test", "pending")]);
    let bench = Bench::with_turns(&json!([[{"plan": plan}, {"say": "ok"}]]));
    assert_eq!(bench.text().await, "ok");
    assert_eq!(*bench.said.lock().unwrap(), ["1/3 write"]);
    assert!(bench.log().contains("[plan] 1/3 write\n"));
}

#[tokio::test]
async fn a_failed_call_goes_on_in_its_session_or_says_that_it_cannot() {
    for (loads, session) in [(true, "s1"), (false, "s2")] {
        let turns = json!([[{"say": "half"}, {"exit": 3}], [{"say": "whole"}]]);
        let turns = if loads { turns } else { json!([[{"crash_unless": "crashed"}, {"say": "whole"}]]) };
        let bench = Bench::new(&json!({"turns": turns, "loadSession": loads}));
        let error = bench.failure(json!({"prompt": "go"})).await;
        assert!(error.starts_with("agent_ended: agent `scripted` "), "{error}");
        let result = bench.call(json!({"prompt": "go"})).await.unwrap();
        assert_eq!((&result["session"], &result["text"]), (&json!(session), &json!("whole")), "{loads}");
        let said: Vec<String> = bench.said.lock().unwrap().clone();
        let warning =
            "agent `scripted` does not go on with its session and starts over: it cannot load sessions";
        assert_eq!(said.contains(&warning.to_owned()), !loads, "{said:?}");
    }
    // A session that the agent has lost.
    let bench = Bench::with_turns(&json!([[{"crash_unless": "crashed"}, {"say": "whole"}]]));
    bench.failure(json!({"prompt": "go"})).await;
    std::fs::write(bench.path("sessions.json"), "{}").unwrap();
    assert_eq!(bench.text().await, "whole");
    let said: Value = json!(*bench.said.lock().unwrap());
    assert!(said.to_string().contains("starts over: no such session"), "{said}");
}
