//! Tools made from functions: their schemas, arguments, results and errors.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl::model::task::Origin;
use taskpawl::prelude::*;
use taskpawl::tools::Tool;
use taskpawl::{CheckOptions, RunVariables, async_trait};

use crate::support::memory;

#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Words {
    words: usize,
}

/// Counts the words of a text.
///
/// Words are divided by white space.
#[tool(read_only, timeout_seconds = 5)]
async fn count_words(
    /// The text to count.
    text: String,
    at_most: Option<usize>,
) -> Result<Words, io::Error> {
    let words = text.split_whitespace().count();
    match at_most {
        Some(most) if words > most => {
            Err(io::Error::other(format!("{words} words, and at most {most} are allowed")))
        }
        _ => Ok(Words { words }),
    }
}

#[derive(Debug, Default)]
struct Calls(AtomicU32);

/// Counts its calls.
#[tool(idempotent, name = "count_calls")]
async fn counted(cx: &CallContext) -> Result<u32, ToolError> {
    Ok(cx.get::<Calls>()?.0.fetch_add(1, Ordering::SeqCst) + 1)
}

/// Adds `more` to a number that fits in a byte.
#[tool(read_only)]
async fn add(number: u8, more: u8) -> anyhow::Result<u8> {
    use anyhow::Context as _;
    number.checked_add(more).context("the sum is above 255")
}

/// Fails with an error class of its own choice.
#[tool]
async fn refuse(r#type: String) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Err(ToolError::OutsideRoot { path: r#type.into() }.into())
}

#[test]
fn schemas_and_hints_come_from_the_function() {
    let spec = count_words.spec();
    assert_eq!(spec.name, "count_words");
    assert_eq!(spec.description, "Counts the words of a text.\n\nWords are divided by white space.");
    assert!(spec.hints.read_only && !spec.hints.idempotent);
    assert_eq!(spec.timeout, Some(std::time::Duration::from_secs(5)));
    assert_eq!(
        spec.args_schema["properties"]["text"],
        json!({"type": "string", "description": "The text to count."})
    );
    assert_eq!(spec.args_schema["required"], json!(["text"]));
    assert_eq!(spec.args_schema["additionalProperties"], false);
    assert_eq!(spec.args_schema["title"], json!(null));
    assert_eq!(spec.result_schema.as_ref().unwrap()["required"], json!(["words"]));
    assert_eq!(counted.spec().name, "count_calls");
    assert_eq!(refuse.spec().args_schema["required"], json!(["type"]));
}

#[tokio::test]
async fn functions_run_as_calls_of_a_plan() {
    let plans = Taskpawl::builder(":memory:")
        .tool(count_words)
        .tool(counted)
        .tool(Arc::new(refuse))
        .tool(add)
        .data(Calls::default())
        .open()
        .unwrap();
    let task = |id: &str, call| NewTask::named("a call").id(id).call(call);
    plans.blocking().create_task(task("few", count_words::with("a b c", None).unwrap())).unwrap();
    plans.blocking().create_task(task("many", count_words::with("a b c", Some(2)).unwrap())).unwrap();
    plans.blocking().create_task(task("first", counted::with().unwrap())).unwrap();
    plans.blocking().create_task(task("refused", refuse::with("luck").unwrap())).unwrap();
    plans.blocking().create_task(task("sum", add::with(255, 1).unwrap())).unwrap();
    let summary = plans.run_all_ready(RunOptions::default()).await.unwrap();
    assert_eq!(summary.exit, 1);
    assert!(plans.blocking().get_task("sum").unwrap().error.unwrap().contains("the sum is above 255"));
    assert_eq!(add::run(1, 2).await.unwrap(), 3);

    let few = plans.blocking().get_task("few").unwrap();
    assert_eq!(few.result_as::<Words>().unwrap().words, 3);
    assert!(few.result_as::<String>().is_err());
    assert!(plans.blocking().get_task("sum").unwrap().result_as::<Option<u8>>().unwrap().is_none());
    let many = plans.blocking().get_task("many").unwrap();
    assert!(many.error.unwrap().contains("3 words, and at most 2 are allowed"));
    assert_eq!(plans.blocking().get_task("first").unwrap().result, Some(json!(1)));
    let class =
        |id: &str| plans.blocking().get_task(id).unwrap().metadata.tool_calls[0].error_class.clone().unwrap();
    assert_eq!((class("many").as_str(), class("refused").as_str()), ("failed", "outside_root"));
}

#[tokio::test]
async fn missing_data_is_an_error_that_names_its_type() {
    let plans = Taskpawl::builder(":memory:").tool(counted).open().unwrap();
    plans.blocking().create_task(NewTask::named("a").id("a").call(counted::with().unwrap())).unwrap();
    plans.run_all_ready(RunOptions::default()).await.unwrap();
    let error = plans.blocking().get_task("a").unwrap().error.unwrap();
    assert!(error.contains("Calls") && error.contains("Builder::data"), "{error}");
}

#[tokio::test]
async fn a_closure_is_a_tool_and_its_arguments_are_checked_before_it_runs() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Sum {
        numbers: Vec<i64>,
    }
    let sum = FnTool::new("sum", "Adds numbers.", |_cx, args: Sum| async move {
        Ok::<_, ToolError>(args.numbers.iter().sum::<i64>())
    });
    let plans = Taskpawl::builder(":memory:").tool(sum.read_only()).open().unwrap();
    let plan = "tasks: [{id: good, call: {sum: {numbers: [1, 2]}}}, {id: bad, call: {sum: {numbers: [x]}}}]";
    let options = CheckOptions {
        origin: Origin::Library,
        variables: &RunVariables::default(),
        explain: &|_| None,
        files: None,
    };
    let check = plans.blocking().check_text(plan, options).unwrap();
    let problems: Vec<_> = check.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!((check.errors, problems), (1, vec!["tasks[1].call.sum.numbers[0]"]), "{check:?}");
    plans.blocking().apply_text("tasks: [{id: good, call: {sum: {numbers: [1, 2]}}}]", "p").unwrap();
    plans.run_all_ready(RunOptions::default()).await.unwrap();
    assert_eq!(plans.blocking().get_task("good").unwrap().result, Some(json!(3)));
}

/// Fails in a way that its argument names.
#[tool]
async fn fail_as(way: String) -> Result<(), ToolError> {
    let error = ToolError::from(std::io::Error::other("no luck"));
    Err(match way.as_str() {
        "terminal" => error.with_class("quota").terminal(),
        "later" => error.retry_after(Duration::from_secs(3600)),
        _ => error,
    })
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_tool_decides_about_retries() {
    let plans = memory().tool(fail_as).open().unwrap();
    let task = |id: &'static str| move |t: taskpawl::TaskBuilder| t.call(fail_as::with(id)).retry(2);
    let plan = Plan::new("p").task("terminal", task("terminal")).task("later", task("later"));
    plans.apply(plan).await.unwrap();
    let begin = tokio::time::Instant::now();
    let summary = plans.run().await.unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(3600));
    let mut classes: Vec<_> = summary.failures.iter().map(|group| group.class.as_str()).collect();
    classes.sort_unstable();
    assert_eq!(classes, ["failed", "quota"]);
    let attempts = async |id| plans.get_task(id).await.unwrap().metadata.tool_calls[0].attempts;
    assert_eq!((attempts("terminal").await, attempts("later").await), (1, 2));
}

/// Adds a task to the plan, and reports half of its work.
#[tool(idempotent)]
async fn grow(cx: &CallContext) -> anyhow::Result<()> {
    cx.progress(0.5, "halfway");
    cx.plans()?.create_task(NewTask::named("Grown").id("grown").call(fail_as::with("")?)).await?;
    Ok(())
}

#[derive(Debug)]
struct Rescue;

#[async_trait]
impl taskpawl::CallLayer for Rescue {
    async fn call(&self, cx: CallContext, args: Value, next: taskpawl::Next<'_>) -> Result<Value, ToolError> {
        let name = next.spec().name.clone();
        next.run(cx, args).await.or_else(|error| if name == "grow" { Err(error) } else { Ok(json!(name)) })
    }
}

#[tokio::test]
async fn a_tool_reaches_its_plan_and_layers_are_around_every_call() {
    let plans = memory().tool(grow).tool(fail_as).layer(Rescue).open().unwrap();
    plans.apply(Plan::new("p").task("a", |t| t.call(grow::with()))).await.unwrap();
    plans.create_task(NewTask::named("Builtin").id("b")).await.unwrap();
    let call = json!({"call": {"fail": {"message": "no"}}}).as_object().unwrap().clone();
    plans.update_task("b", call).await.unwrap();
    let mut run = plans.run().start();
    let mut fractions = Vec::new();
    while let Some(event) = run.next().await {
        if let RunEvent::Progress { fraction, .. } = event {
            fractions.push(fraction);
        }
    }
    assert_eq!((run.await.unwrap().exit, fractions), (0, vec![Some(0.5)]));
    assert_eq!(plans.result::<String>("grown").await.unwrap(), "fail_as");
    assert_eq!(plans.result::<String>("b").await.unwrap(), "fail");
}
