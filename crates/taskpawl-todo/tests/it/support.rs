//! A test host that calls tools like any other host.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::Value;
use taskpawl_manager::{Manager, Source, SystemSource};
use taskpawl_model::value::Timestamp;
use taskpawl_store::Location;
use taskpawl_todo::{Dialect, Lists, ListsBuilder};
use taskpawl_tools::{CallContext, Tool, ToolError};

/// A valid conversation id.
pub(crate) const TALK: &str = "0b2f6c1e-9a4d-4c55-8a39-2f6f0f5f7f10";

/// A clock that only moves when told to; ids are random.
#[derive(Debug, Default)]
pub(crate) struct Clock(AtomicI64);

impl Clock {
    pub(crate) fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Source for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_timestamp(1_800_000_000 + self.0.load(Ordering::SeqCst), 0).unwrap()
    }

    fn new_id(&self) -> String {
        SystemSource.new_id()
    }
}

/// Lists with a directory of their own.
pub(crate) struct Host {
    pub(crate) lists: Lists,
    pub(crate) clock: Arc<Clock>,
    directory: Arc<tempfile::TempDir>,
    scope: Option<String>,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(change: impl FnOnce(ListsBuilder) -> ListsBuilder) -> Self {
        let (directory, clock) = (Arc::new(tempfile::tempdir().unwrap()), Arc::new(Clock::default()));
        let builder =
            Lists::builder().queue_root(directory.path().join("files")).source(Arc::clone(&clock) as _);
        Self { lists: change(builder).build(), clock, directory, scope: None }
    }

    /// Returns the same host with another scope.
    pub(crate) fn scope(&self, scope: &str) -> Self {
        let (lists, clock, directory) =
            (self.lists.clone(), Arc::clone(&self.clock), Arc::clone(&self.directory));
        Self { lists, clock, directory, scope: Some(scope.to_owned()) }
    }

    /// Returns a host like that of another process, which shares only the files.
    pub(crate) fn again(&self) -> Self {
        let builder = Lists::builder().queue_root(self.path("files")).source(Arc::clone(&self.clock) as _);
        let (clock, directory) = (Arc::clone(&self.clock), Arc::clone(&self.directory));
        Self { lists: builder.build(), clock, directory, scope: self.scope.clone() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let all = [Dialect::TodoList].into_iter().chain(Dialect::ALL);
        let mut tools = all.flat_map(|dialect| self.lists.tools(dialect));
        tools.find(|tool| tool.spec().name == name).unwrap()
    }

    /// Calls a tool. Returns its result or error text, and whether it failed.
    pub(crate) fn answer(&self, name: &str, args: Value) -> (String, bool) {
        let mut cx = CallContext::new(self.root(), self.path("output"));
        cx.scope.clone_from(&self.scope);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        match runtime.block_on(self.tool(name).call(cx, args)) {
            Ok(said) => (said.as_str().unwrap().to_owned(), false),
            Err(ToolError::Answered { message, result }) => {
                assert_eq!(Value::String(message.clone()), *result);
                (message, true)
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// Calls a tool and returns its text.
    pub(crate) fn call(&self, name: &str, args: Value) -> String {
        self.answer(name, args).0
    }

    /// Calls a tool and parses its answer as JSON.
    pub(crate) fn json(&self, name: &str, args: Value) -> Value {
        serde_json::from_str(&self.call(name, args)).unwrap()
    }
}

/// Returns a manager of an empty plan in memory.
pub(crate) fn plan() -> Manager {
    Manager::new(taskpawl_store::open(&Location::Memory), "model")
}
