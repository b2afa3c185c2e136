//! An agent: a model proposes a plan, `check` finds its faults until it is right, typed tools do the work, a person approves, and three
//! workers do the manual tasks. Killed at any point and started again, it continues.
//!
//!     cargo run -p taskpawl --example agent -- tasks.db

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

mod model;

use std::error::Error;
use std::io::Write as _;
use std::time::Duration;

use taskpawl::model::task::ApprovalRequest;
use taskpawl::prelude::*;
use taskpawl::{ApprovalVerdict, CheckError, async_trait};
use tokio::task::JoinSet;

use self::model::Model;

/// The most proposals that are checked before a person has to help.
const MAX_ROUNDS: usize = 5;

/// The number of workers for manual tasks.
const WORKERS: usize = 3;

#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Words {
    words: i64,
}

/// Counts the words of a text.
#[tool(read_only)]
async fn count_words(cx: &CallContext, text: String) -> anyhow::Result<Words> {
    cx.progress(0.5, "halfway");
    Ok(Words { words: i64::try_from(text.split_whitespace().count())? })
}

/// Adds numbers. It takes a while.
#[tool(idempotent)]
async fn add_up(cx: &CallContext, numbers: Vec<i64>) -> Result<i64, ToolError> {
    cx.progress(0.0, "adding");
    cx.until_interrupted(tokio::time::sleep(cx.get::<Settings>()?.pause)).await?;
    Ok(numbers.iter().sum())
}

/// Appends a text to the published ones. Not idempotent: a text is never published twice.
#[tool]
async fn publish(cx: &CallContext, text: String) -> Result<(), ToolError> {
    let path = &cx.get::<Settings>()?.published;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{text}")?;
    Ok(())
}

/// Settings of the tools.
struct Settings {
    pause: Duration,
    published: std::path::PathBuf,
}

/// A person who says yes.
#[derive(Debug)]
struct Person;

#[async_trait]
impl Approver for Person {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalVerdict {
        println!("asked: {}", request.ask.as_deref().unwrap_or("may this call run?"));
        ApprovalVerdict::Approve { answer: None, args: None }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    taskpawl::child_entry();
    let mut args = std::env::args().skip(1);
    let store = args.next().ok_or("give the path of a store, such as `tasks.db`")?;
    let pause = Duration::from_millis(args.next().map_or(Ok(10), |millis| millis.parse())?);
    let settings = Settings { pause, published: format!("{store}.published").into() };
    let plans =
        Taskpawl::builder(&store).tool(count_words).tool(add_up).tool(publish).data(settings).open()?;
    let plan = propose(&plans, &mut Model::default()).await?;
    plans.apply(with_reviews(plan)).await?;
    let mut workers = JoinSet::new();
    for number in 0..WORKERS {
        workers.spawn(work(plans.acting_as(format!("worker-{number}"))));
    }
    let mut changes = plans.changes(plans.revision().await?);
    let summary = loop {
        let summary = run(&plans).await?;
        if !matches!(summary.outcome(), Outcome::Waiting { .. }) {
            break summary;
        }
        // A worker has not claimed its task yet, or has not reported: the store tells when something happens.
        changes.next().await.transpose()?;
    };
    report(&summary);
    println!("{} words", plans.result::<i64>("sum").await?);
    Ok(())
}

/// Lets the model propose until a plan has no faults.
async fn propose(plans: &Taskpawl, model: &mut Model) -> Result<Plan, Box<dyn Error>> {
    for _ in 0..MAX_ROUNDS {
        match plans.check(model.propose(&plans.tool_specs())).await {
            Ok(plan) => return Ok(plan),
            Err(CheckError::Faults(found)) => {
                println!("faults: {}", found.errors);
                model.hear(found.to_json());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(format!("no plan without faults in {MAX_ROUNDS} rounds").into())
}

/// Adds tasks for the workers, and one at the end.
fn with_reviews(mut plan: Plan) -> Plan {
    for number in 0..WORKERS {
        plan = plan.task(format!("review-{number}"), |t| {
            t.needs("sum").manual("Is the sum plausible?").label("review")
        });
    }
    plan.task("end", |t| {
        (0..WORKERS)
            .fold(t.needs("publish"), |t, number| t.needs(format!("review-{number}")))
            .field("milestone", true)
    })
}

/// Does manual tasks until the program ends.
async fn work(plans: Taskpawl) -> Result<(), taskpawl::ReportError> {
    loop {
        let claim = plans.claim_next(Duration::from_secs(5)).await?;
        claim.done("plausible").await?;
    }
}

/// Runs everything, and waits for the workers.
async fn run(plans: &Taskpawl) -> Result<RunSummary, taskpawl::RunError> {
    let mut run = plans.run().concurrency(8).max_cost(0.5).approver(Person).wait().start();
    while let Some(event) = run.next().await {
        match event {
            RunEvent::Progress { task, message, .. } => println!("{task}: {message}"),
            RunEvent::TaskEnded { task, status, .. } => println!("{task} is {status}"),
            RunEvent::RunStarted { .. } | RunEvent::Summary(_) | _ => {}
        }
    }
    run.await
}

fn report(summary: &RunSummary) {
    match summary.outcome() {
        Outcome::Done => println!("all done"),
        Outcome::Failed(groups) => println!("failed: {groups:?}"),
        Outcome::Waiting { tasks, .. } => println!("waiting: {tasks:?}"),
        other @ (Outcome::Blocked { .. } | Outcome::Stopped | _) => println!("{other:?}"),
    }
}
