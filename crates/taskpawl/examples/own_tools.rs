//! The smallest embedding: tools of the host alone, a store in memory, no programs.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use taskpawl::prelude::*;

/// Doubles a number.
#[tool(read_only)]
async fn double(number: i64) -> Result<i64, ToolError> {
    Ok(number * 2)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plans = Taskpawl::builder(":memory:").without_builtin_tools().tool(double).open()?;
    plans.apply(Plan::new("example").task("answer", |t| t.call(double::with(21)))).await?;
    plans.run().await?;
    println!("{}", plans.result::<i64>("answer").await?);
    Ok(())
}
