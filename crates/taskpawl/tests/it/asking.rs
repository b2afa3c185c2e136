//! Tools that ask a person while they run: the answer, restarts, refusals, and the effects before the question.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use taskpawl::model::task::{ApprovalRequest, BlockedReason, Status};
use taskpawl::prelude::*;
use taskpawl::testing::{Crash, assert_status};
use taskpawl::{ApprovalVerdict, Approver, Outcome, async_trait};

use crate::support::memory;

/// Effects that cannot be taken back.
#[derive(Debug, Default, Clone)]
struct Effects(Arc<Mutex<Vec<String>>>);

impl Effects {
    fn add(&self, effect: &str) {
        self.0.lock().unwrap().push(effect.to_owned());
    }

    fn list(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Writes a draft once, asks, and publishes.
#[tool]
async fn publish(cx: &CallContext, text: String) -> anyhow::Result<String> {
    let effects = cx.get::<Effects>()?.clone();
    let draft = cx.step("draft", async {
        effects.add("draft");
        Ok::<_, ToolError>(text.to_uppercase())
    });
    let draft = draft.await?;
    let answer = cx.ask(Ask::new(format!("Publish {draft}?")).option("yes").option("no")).await?;
    let where_to = cx.ask("Where to?").await?;
    Ok(format!("{answer}: {draft} to {where_to}"))
}

/// Asks at once.
#[tool]
async fn ask_at_once(cx: &CallContext) -> Result<String, ToolError> {
    cx.ask("Now?").await
}

/// Asks the same question three times.
#[tool(read_only)]
async fn ask_often(cx: &CallContext) -> Result<Vec<String>, ToolError> {
    Ok(vec![cx.ask("Again?").await?, cx.ask("Again?").await?, cx.ask(Ask::new("Again?").key("last")).await?])
}

fn plans(store: &str, effects: &Effects) -> taskpawl::Builder {
    let builder = Taskpawl::builder(store);
    builder
        .supervision(taskpawl::Supervision::Off)
        .sandbox(taskpawl::SandboxSettings::off())
        .tool(publish)
        .tool(ask_at_once)
        .tool(ask_often)
        .data(effects.clone())
}

/// Answers with the texts of the questions' numbers.
#[derive(Debug, Default)]
struct Counting(AtomicU32);

#[async_trait]
impl Approver for Counting {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalVerdict {
        assert!(request.takes_text, "{request:?}");
        let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        ApprovalVerdict::Approve { answer: Some(json!(format!("answer {number}"))), args: None }
    }
}

#[tokio::test]
async fn a_tool_asks_and_the_run_goes_on_with_other_work() {
    let effects = Effects::default();
    let plans = plans(":memory:", &effects).open().unwrap();
    let plan =
        Plan::new("p").task("a", |t| t.call(publish::with("text"))).task("b", |t| t.call(ask_often::with()));
    plans.apply(plan).await.unwrap();
    let summary = plans.run().await.unwrap();
    assert!(matches!(summary.outcome(), Outcome::Waiting { .. }), "{summary:?}");

    let task = plans.get_task("a").await.unwrap();
    let Some(BlockedReason::Approval { call: Some(_), ask: Some(ask), options, .. }) = &task.blocked_reason
    else {
        panic!("{task:?}");
    };
    assert_eq!(
        (ask.as_str(), options.as_slice()),
        ("Publish TEXT?", &["yes".to_owned(), "no".to_owned()][..])
    );
    let approve =
        async |id: &str, answer: Option<&str>| plans.approve(id, answer.map(|text| json!(text))).await;
    let refused = approve("a", Some("maybe")).await.unwrap_err().to_string();
    assert!(refused.contains("`maybe` is not an option"), "{refused}");
    assert!(approve("a", None).await.is_err());
    approve("a", Some("no")).await.unwrap();
    assert!(approve("b", Some(" ")).await.is_err());
    // Without options a plain approval is `yes`.
    approve("b", None).await.unwrap();
    let summary = plans.run().approver(Counting::default()).await.unwrap();
    assert_eq!(summary.exit, 0, "{summary:?}");
    let published: String = plans.result("a").await.unwrap();
    assert!(published.starts_with("no: TEXT to answer "), "{published}");
    let often: Vec<String> = plans.result("b").await.unwrap();
    assert_eq!(often[0], "yes");
    assert_ne!(often[1], often[2]);
    assert_eq!(effects.list(), ["draft"]);

    let task = plans.get_task("a").await.unwrap();
    let asked = task.metadata.tool_calls[0].asked.as_ref().unwrap();
    assert_eq!(asked.question, None);
    let answers: Vec<_> = asked.answers.iter().map(|known| known.question.ask.as_str()).collect();
    assert_eq!(answers, ["Publish TEXT?", "Where to?"]);
    // With other arguments, or after a reopen, the call asks again.
    plans.manage(|manager| manager.reopen(&["a".to_owned()], false)).await.unwrap();
    assert!(matches!(plans.run().await.unwrap().outcome(), Outcome::Waiting { .. }));
    assert_eq!(effects.list(), ["draft", "draft"]);
}

#[tokio::test]
async fn a_rejection_cancels_the_task_and_a_retry_keeps_the_answers() {
    let effects = Effects::default();
    let plans = plans(":memory:", &effects).open().unwrap();
    plans.apply(Plan::new("p").task("a", |t| t.call(publish::with("text")))).await.unwrap();
    plans.run().await.unwrap();
    plans.approve("a", Some(json!("yes"))).await.unwrap();
    plans.run().await.unwrap();
    plans.reject("a", "no").await.unwrap();
    assert_status(&plans, "a", Status::Cancelled);
    plans.retry("a").await.unwrap();
    let summary = plans.run().approver(Counting::default()).await.unwrap();
    assert_eq!((summary.exit, effects.list().len()), (0, 1), "{summary:?}");
}

#[tokio::test]
async fn a_tool_that_may_not_start_over_is_refused() {
    let plans = plans(":memory:", &Effects::default()).open().unwrap();
    plans.apply(Plan::new("p").task("a", |t| t.call(ask_at_once::with()))).await.unwrap();
    assert_eq!(plans.run().await.unwrap().exit, 1);
    let error = plans.get_task("a").await.unwrap().error.unwrap();
    assert!(error.contains("neither `idempotent` nor `read_only`"), "{error}");
}

/// Answers the question of `a` in the store at `path` with yes.
async fn answer(path: &Path) -> Result<(), taskpawl::Error> {
    Taskpawl::open(path.to_str().unwrap()).unwrap().approve("a", Some(json!("yes"))).await.map(drop)
}

/// Like `publish`, but may start over.
#[tool(idempotent)]
async fn publish_again(cx: &CallContext) -> Result<String, ToolError> {
    let effects = cx.get::<Effects>()?.clone();
    let draft = cx.step("draft", async {
        effects.add("draft");
        Ok::<_, ToolError>("text".to_owned())
    });
    let draft = draft.await?;
    let answer = cx.ask("Publish?").await?;
    Ok(format!("{answer}: {draft}"))
}

#[tokio::test]
async fn a_kill_between_the_effect_and_the_answer_leaves_one_effect() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let effects = Effects::default();
    let crash = Crash::asking("publish_again");
    let open =
        || plans(path.to_str().unwrap(), &effects).tool(publish_again).layer(crash.clone()).open().unwrap();
    let first = open();
    first.apply(Plan::new("p").task("a", |t| t.call(publish_again::with()))).await.unwrap();
    // The run dies when the tool has done its step and asks, before the store has the question.
    crash.run(&first).await;
    drop(first);
    let second = open();
    assert!(matches!(second.run().await.unwrap().outcome(), Outcome::Waiting { .. }));
    drop(second);
    // The question waits for an answer without a run, and the answer is read by another one.
    answer(&path).await.unwrap();
    let third = open();
    assert_eq!(third.run().await.unwrap().exit, 0);
    assert_eq!(third.result::<String>("a").await.unwrap(), "yes: text");
    assert_eq!(effects.list(), ["draft"]);
}

/// Writes two files, and records one of them.
#[tool]
async fn report(cx: &CallContext) -> Result<(), ToolError> {
    for name in ["b.csv", "a.txt"] {
        std::fs::write(cx.root.join(name), name)?;
        cx.artifact(name).await?;
    }
    std::fs::write(cx.root.join("b.csv"), "longer")?;
    cx.artifact(cx.root.join("b.csv")).await?;
    Err(ToolError::failed("artifacts of a failed call are kept"))
}

#[tokio::test]
async fn artifacts_are_read_with_the_task() {
    let directory = tempfile::tempdir().unwrap();
    let plans = memory().root(directory.path()).tool(report).open().unwrap();
    plans.apply(Plan::new("p").task("a", |t| t.call(report::with()))).await.unwrap();
    assert_eq!(plans.run().await.unwrap().exit, 1);
    let task = plans.get_task("a").await.unwrap();
    let found: Vec<_> =
        task.artifacts().map(|file| (file.path.as_str(), file.bytes, file.media_type.as_str())).collect();
    assert_eq!(found, [("a.txt", 5, "text/plain"), ("b.csv", 6, "text/csv")]);
    let wire = serde_json::to_value(&task).unwrap();
    assert_eq!(wire["metadata"]["toolCalls"][0]["artifacts"][1]["mediaType"], "text/csv");
    assert_eq!(serde_json::from_value::<taskpawl::model::task::Task>(wire).unwrap(), task);
}

#[tokio::test]
async fn a_program_accepts_the_result_of_a_task_and_sends_back_only_that_of_an_agent() {
    let plans = Taskpawl::builder(":memory:").sandbox(taskpawl::SandboxSettings::off()).open().unwrap();
    let text = "tasks: [{id: a, call: {log: {message: made}}, approval: {after: true}}, {id: b, needs: a, milestone: true}]";
    plans.apply_text(text, "p").await.unwrap();
    plans.run().await.unwrap();
    assert_status(&plans, "a", Status::Blocked);
    let refused = plans.send_back("a", "shorter").await.unwrap_err().to_string();
    assert!(refused.contains("no call of `agent`"), "{refused}");
    plans.approve("a", None).await.unwrap();
    assert_status(&plans, "a", Status::Done);
    assert_status(&plans, "b", Status::Done);
}
