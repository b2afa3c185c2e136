//! A custom tool and short helpers for plans.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};
use taskpawl::{Builder, SandboxSettings, Supervision, Taskpawl, async_trait};

/// Does nothing, and counts its calls.
#[derive(Debug)]
pub(crate) struct Count {
    spec: ToolSpec,
    calls: AtomicU64,
}

impl Count {
    pub(crate) fn new() -> Arc<Self> {
        let spec = ToolSpec::new("count", "Counts how often it is called.", json!({"type": "object"}));
        Arc::new(Self { spec, calls: AtomicU64::new(0) })
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Tool for Count {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _cx: CallContext, _args: Value) -> Result<Value, ToolError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(Value::Null)
    }
}

/// Returns a builder for a store in memory.
pub(crate) fn memory() -> Builder {
    // The default supervisor executes the current program again, which for a test binary would run all tests again. Without a
    // supervisor no process can set up the sandbox.
    Taskpawl::builder(":memory:").supervision(Supervision::Off).sandbox(SandboxSettings::off())
}

/// Returns a store in memory with the plan `text` applied.
pub(crate) fn with_plan(text: &str) -> Taskpawl {
    let plans = memory().open().unwrap();
    plans.blocking().apply_text(text, "plan").unwrap();
    plans
}

/// Runs `work` on a runtime with one thread.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}
