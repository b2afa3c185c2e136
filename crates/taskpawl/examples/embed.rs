//! Opens a store, adds a custom tool, applies a plan, runs it and prints the end of each task.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};
use taskpawl::{Observer, RunEvent, RunOptions, Taskpawl, async_trait};

/// A tool of our own: it counts the words of `text`.
#[derive(Debug)]
struct CountWords(ToolSpec);

#[async_trait]
impl Tool for CountWords {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let text = args["text"].as_str().unwrap_or_default();
        Ok(json!({"words": text.split_whitespace().count()}))
    }
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
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let tool = CountWords(ToolSpec::new("count_words", "Counts words.", schema));
    let plans = Taskpawl::builder(":memory:").tool(Arc::new(tool)).open()?;
    plans.apply_text(PLAN, "embedded")?;
    let summary =
        plans.run_all_ready(RunOptions { observer: Some(Arc::new(Print)), ..RunOptions::default() }).await?;
    println!("exit {}, {}", summary.exit, plans.get_task("count")?.result.unwrap_or_default());
    Ok(())
}
