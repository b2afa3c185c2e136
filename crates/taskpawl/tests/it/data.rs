//! Events, summaries, digests and requests as data: programs store them and read them again.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use taskpawl::model::task::ApprovalRequest;
use taskpawl::prelude::*;
use taskpawl::{Digest, HistoryEntry, HistoryFilter};

use crate::support::memory;

fn again<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> T {
    let text = serde_json::to_string(value).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

const PLAN: &str = "
name: p
description: All kinds of ends.
tasks:
  - {id: good, call: {log: {message: hello}}}
  - {id: bad, call: {fail: {message: no}}}
  - {id: after, needs: bad, milestone: true}
  - {id: asks, call: {log: {message: hello}}, approval: {ask: Which?, options: [a, b], expires: 1h}}
  - {id: hand, description: Look at it.}
  - {id: missing, call: {no_such_tool: {}}}
tools: [no_such_tool]
";

#[tokio::test]
async fn what_a_run_tells_is_read_again() {
    let plans = memory().open().unwrap();
    plans.apply_text(PLAN, "p").await.unwrap();
    let mut run = plans.run().max_failures(1).start();
    let mut kinds = Vec::new();
    while let Some(event) = run.next().await {
        let mut event = event;
        if let RunEvent::Summary(summary) = &mut event {
            forget_suggestions(summary);
        }
        assert_eq!(again(&event), event);
        kinds.push(serde_json::to_value(&event).unwrap()["type"].as_str().unwrap().to_owned());
    }
    for kind in ["run_started", "call_started", "call_ended", "task_ended", "asked", "summary"] {
        assert!(kinds.iter().any(|seen| seen == kind), "{kind}: {kinds:?}");
    }
    let mut summary = run.await.unwrap();
    assert!(!summary.next_actions.is_empty());
    // Suggestions hold for the store at the end of the run, and are not read back.
    assert!(again(&summary).next_actions.is_empty());
    forget_suggestions(&mut summary);
    assert_eq!(again(&summary), summary);

    let mut digest: Digest = plans.digest(5).await.unwrap();
    digest.next_actions.clear();
    assert_eq!(again(&digest), digest);
    let history: Vec<HistoryEntry> = plans.history(HistoryFilter::default()).await.unwrap();
    assert_eq!(again(&history), history);
    let requests: Vec<ApprovalRequest> =
        plans.manage(|manager| manager.approval_requests(&[])).await.unwrap();
    assert_eq!((requests.len(), again(&requests)), (1, requests));
}

fn forget_suggestions(summary: &mut RunSummary) {
    summary.next_actions.clear();
    for waiting in summary.waiting.iter_mut().chain(&mut summary.blocked) {
        waiting.commands.clear();
    }
}
