use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use taskpawl_tools::{CallContext, Programs, Registry, Supervision, ToolError, call_guarded};

/// Project for one test, with its output files beside it.
pub(crate) struct Project {
    dir: tempfile::TempDir,
    pub(crate) cx: CallContext,
    registry: Registry,
}

impl Project {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        let mut cx = CallContext::new(dir.path().join("project"), dir.path().join("output/call"));
        cx.limits.grace = Duration::from_millis(200);
        // A supervisor executes its own binary again, which would run the tests again.
        cx.programs = Programs::new(Supervision::Off);
        Self { dir, cx, registry: registry() }
    }

    /// Returns a path in the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.cx.root.join(name)
    }

    /// Returns a path beside the project.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Calls a built-in tool, and checks the result against the tool's own schema.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<Value, ToolError> {
        let tool = self.registry.get(tool).unwrap().clone();
        let schema = tool.spec().result_schema.clone();
        let result = call_guarded(tool, self.cx.clone(), args).await;
        if let Some(result) = result.as_ref().ok().or(result.as_ref().err().and_then(ToolError::result)) {
            crate::registry::assert_fits(schema.as_ref().unwrap(), result);
        }
        result
    }

    /// Calls a built-in tool that fails; returns the class and the message, with the project's directory shortened.
    pub(crate) async fn refusal(&self, tool: &str, args: Value) -> String {
        let error = self.call(tool, args).await.unwrap_err();
        format!("{}: {}", error.class(), self.stable(&taskpawl_text::error_chain(&error)))
    }

    /// Replaces paths that differ from run to run.
    pub(crate) fn stable(&self, text: &str) -> String {
        text.replace(self.dir.path().to_str().unwrap(), "[dir]")
    }
}

/// The test servers listen on loopback, which must be allowed explicitly.
#[cfg(feature = "http")]
fn registry() -> Registry {
    Registry::builtin_reaching(taskpawl_tools::HttpAccess::only(["127.0.0.1"]).unwrap())
}

#[cfg(not(feature = "http"))]
fn registry() -> Registry {
    Registry::builtin()
}

/// Waits until a condition holds, for ten seconds at most.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < end, "timed out waiting until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
