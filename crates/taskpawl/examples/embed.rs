//! Opens a store, adds a tool, applies a plan, runs it and prints the end of each task.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use taskpawl::prelude::*;

/// Counts the words of a text.
#[tool(read_only)]
async fn count_words(text: String) -> Result<usize, ToolError> {
    Ok(text.split_whitespace().count())
}

const PLAN: &str = "
tasks:
  - {id: count, call: {count_words: {text: nothing lost and nothing run twice}}}
  - {id: hello, run: echo hello}
  - {id: all, needs: [count, hello], milestone: true}
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    taskpawl::child_entry();
    let plans = Taskpawl::builder(":memory:").tool(count_words).open()?;
    plans.apply_text(PLAN, "embedded").await?;
    let mut run = plans.run().concurrency(2).start();
    while let Some(event) = run.next().await {
        if let RunEvent::TaskEnded { task, status, .. } = event {
            println!("{task}: {status}");
        }
    }
    let words = plans.get_task("count").await?.result.unwrap_or_default();
    println!("exit {}, {words} words", run.await?.exit);
    Ok(())
}
