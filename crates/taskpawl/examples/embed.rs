//! Opens a store, adds a tool, applies a plan, runs it and prints the end of each task.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;

use taskpawl::prelude::*;

/// Counts the words of a text.
#[tool(read_only)]
async fn count_words(text: String) -> Result<usize, ToolError> {
    Ok(text.split_whitespace().count())
}

#[derive(Debug)]
struct Print;

impl Observer for Print {
    fn event(&self, event: &RunEvent) {
        if let RunEvent::TaskEnded { task, status, .. } = event {
            println!("{task}: {status}");
        }
    }
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
    plans.apply_text(PLAN, "embedded")?;
    let summary =
        plans.run_all_ready(RunOptions { observer: Some(Arc::new(Print)), ..RunOptions::default() }).await?;
    println!("exit {}, {}", summary.exit, plans.get_task("count")?.result.unwrap_or_default());
    Ok(())
}
