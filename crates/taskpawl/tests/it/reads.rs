//! Typed reads, outcomes and claims.

use std::time::Duration;

use taskpawl::model::task::Status;
use taskpawl::model::view::Query;
use taskpawl::prelude::*;
use taskpawl::{ReportError, ResultError};

use crate::support::with_plan;

const LEASE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_run_has_an_outcome_and_counts_by_status() {
    let plans = with_plan(
        "tasks: [{id: a, milestone: true}, {id: b, needs: a}, {id: c, needs: b, call: {fail: {message: no}}}]",
    );
    let summary = plans.run().await.unwrap();
    let Outcome::Waiting { tasks, blocked } = summary.outcome() else { panic!("{:?}", summary.outcome()) };
    assert_eq!((tasks[0].task.as_str(), blocked.len(), summary.count(Status::Done)), ("b", 0, 1));
    plans.claim("b", LEASE).await.unwrap().done(()).await.unwrap();
    let summary = plans.run().await.unwrap();
    let Outcome::Failed(groups) = summary.outcome() else { panic!("{:?}", summary.outcome()) };
    assert_eq!(groups[0].tool, "fail");
    assert_eq!(plans.counts().await.unwrap()[&Status::Failed], 1);
}

#[tokio::test]
async fn results_are_typed_and_their_errors_say_why() {
    let plans = with_plan("tasks: [{id: a}, {id: b, labels: [x]}, {id: c, labels: [x], timeout: 5s}]");
    plans.claim("a", LEASE).await.unwrap().done([1, 2]).await.unwrap();
    assert_eq!(plans.result::<Vec<i64>>("a").await.unwrap(), [1, 2]);
    assert!(matches!(plans.result::<String>("a").await, Err(ResultError::Type { .. })));
    assert_eq!(plans.result::<()>("b").await.unwrap_err().to_string(), "task `b` is todo");
    let query = Query { labels: vec!["x".to_owned()], limit: 1, ..Query::default() };
    let page = plans.page(&query).await.unwrap();
    assert_eq!((page.tasks.len(), page.total, page.truncated), (1, Some(2), true));
    let tasks = plans.get_tasks(&["c", "a"]).await.unwrap();
    assert_eq!((tasks[0].id.as_str(), tasks[1].id.as_str()), ("c", "a"));
    assert_eq!(tasks[0].spec().unwrap().timeout.unwrap().0, Duration::from_secs(5));
}

#[tokio::test]
async fn a_worker_waits_for_work_and_a_dropped_claim_is_given_back() {
    let plans = with_plan("tasks: [{id: a, milestone: true}]");
    assert!(plans.try_claim_next(LEASE).await.unwrap().is_none());
    let later = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        plans.create_task(NewTask::named("Work").id("work")).await.unwrap();
    };
    let (claim, ()) = tokio::join!(plans.claim_next(LEASE), later);
    let claim = claim.unwrap();
    assert_eq!((claim.id.as_str(), claim.status), ("work", Status::InProgress));
    drop(claim);
    assert_eq!(plans.claim_next(LEASE).await.unwrap().attempt, 2);
}

#[tokio::test]
async fn a_claim_is_renewed_and_a_lost_one_is_noticed() {
    let plans = with_plan("tasks: [{id: a}]");
    let claim = plans.claim_next(Duration::from_millis(300)).await.unwrap();
    let until = |task: &taskpawl::model::task::Task| task.claim.as_ref().unwrap().lease_until;
    let first = until(&claim);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(until(&plans.get_task("a").await.unwrap()) > first);
    let person = plans.acting_as_kind(taskpawl::model::task::ActorKind::Person).acting_as("ada");
    person.manage(|manager| manager.cancel(&["a".to_owned()], None)).await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), claim.lost()).await.unwrap();
    assert!(matches!(claim.done(()).await, Err(ReportError::Store(_))));
}
