//! Help for tests of programs that embed taskpawl: a store in memory, scripted tools, crashes and assertions.
//!
//! Retries, timeouts and due dates follow the clock of tokio. In a test with `start_paused = true` an hour passes at once.
//!
//! ```
//! use taskpawl::prelude::*;
//! use taskpawl::testing::{Scripted, assert_status, memory};
//! use taskpawl::model::task::Status;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let fetch = Scripted::new("fetch").fails(ToolError::failed("offline")).returns("page");
//! let plans = memory().tool(fetch.clone()).open()?;
//! plans.apply("{name: p, tasks: [{id: a, call: {fetch: {}}, retry: {attempts: 2, delay: 1ms}}]}").await?;
//! plans.run().await?;
//! assert_status(&plans, "a", Status::Done);
//! assert_eq!(fetch.calls().len(), 2);
//! # Ok(())
//! # }
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};
use taskpawl_model::task::Status;
use taskpawl_tools::{
    Ask, CallContext, CallLayer, CallQuestions, Hints, IntoTool, Next, SandboxSettings, SharedQuestions,
    Supervision, Tool, ToolError, ToolSpec,
};
use tokio::sync::Notify;

use crate::builder::Builder;
use crate::facade::Taskpawl;

/// Returns a builder for a store in memory. Programs run without a supervisor and a sandbox, which a test binary cannot set up.
pub fn memory() -> Builder {
    Taskpawl::builder(":memory:").supervision(Supervision::Off).sandbox(SandboxSettings::off())
}

/// Checks the status of a task. Blocks the thread.
///
/// # Panics
/// If it has another status. The message has the reason.
#[track_caller]
pub fn assert_status(plans: &Taskpawl, id: &str, status: Status) {
    let task = plans.blocking().get_task(id).unwrap_or_else(|error| panic!("{error}"));
    let reason = task.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    assert!(task.status == status, "`{id}` is {}{reason}, and not {status}", task.status);
}

/// A tool that gives prepared answers in order, and then the last one again. It records its calls. Clones share both.
#[derive(Debug, Clone)]
pub struct Scripted {
    spec: ToolSpec,
    script: Arc<Mutex<Script>>,
}

#[derive(Debug, Default)]
struct Script {
    answers: VecDeque<Answer>,
    calls: Vec<Value>,
}

#[derive(Debug)]
enum Answer {
    Value(Value),
    /// Errors cannot be cloned, so one that is repeated is told by its text and its class.
    Error(Option<ToolError>, String, String),
    Hang,
}

impl Scripted {
    /// Makes an idempotent tool that accepts any arguments and returns `null`.
    pub fn new(name: &str) -> Self {
        let hints = Hints { idempotent: true, ..Hints::default() };
        let spec =
            ToolSpec::new(name, "Gives prepared answers.", json!({"type": "object"})).with_hints(hints);
        Self { spec, script: Arc::default() }
    }

    /// Sets the hints.
    #[must_use]
    pub fn hints(mut self, hints: Hints) -> Self {
        self.spec.hints = hints;
        self
    }

    /// Adds a result.
    ///
    /// # Panics
    /// If it cannot be written as JSON.
    #[must_use]
    pub fn returns(self, result: impl Serialize) -> Self {
        let value = serde_json::to_value(result).expect("a result is JSON");
        self.answers(Answer::Value(value))
    }

    /// Adds a failure.
    #[must_use]
    pub fn fails(self, error: ToolError) -> Self {
        let (text, class) = (error.to_string(), error.class().to_owned());
        self.answers(Answer::Error(Some(error), text, class))
    }

    /// Adds a call that never ends, unless it is cancelled or timed out.
    #[must_use]
    pub fn hangs(self) -> Self {
        self.answers(Answer::Hang)
    }

    /// Returns the arguments of the calls so far.
    pub fn calls(&self) -> Vec<Value> {
        self.lock().calls.clone()
    }

    fn answers(self, answer: Answer) -> Self {
        self.lock().answers.push_back(answer);
        self
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a call, and returns its answer; `None` if it hangs.
    fn answer(&self, args: Value) -> Option<Result<Value, ToolError>> {
        let mut script = self.lock();
        script.calls.push(args);
        let is_last = script.answers.len() <= 1;
        let answer = match script.answers.front_mut() {
            None => Some(Ok(Value::Null)),
            Some(Answer::Value(value)) => Some(Ok(value.clone())),
            Some(Answer::Error(error, text, class)) => {
                let again = || ToolError::failed(text.clone()).with_class(class.clone());
                Some(Err(error.take().unwrap_or_else(again)))
            }
            Some(Answer::Hang) => None,
        };
        if !is_last {
            script.answers.pop_front();
        }
        answer
    }
}

#[async_trait]
impl Tool for Scripted {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        match self.answer(args) {
            Some(answer) => answer,
            None => Err(cx.interrupted().await),
        }
    }
}

impl IntoTool for &Scripted {
    fn into_tool(self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }
}

/// A crash of a run, at a call of one tool. The next run recovers, as after the death of a process.
///
/// ```
/// use taskpawl::model::task::Status;
/// use taskpawl::testing::{Crash, Scripted, assert_status, memory};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pay = Scripted::new("pay");
/// let crash = Crash::after("pay");
/// let plans = memory().tool(&pay).layer(crash.clone()).open()?;
/// plans.apply("{name: p, tasks: [{id: a, call: {pay: {}}}]}").await?;
/// crash.run(&plans).await;
/// // The tool is idempotent, so the next run calls it again.
/// plans.run().await?;
/// assert_status(&plans, "a", Status::Done);
/// assert_eq!(pay.calls().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Crash {
    tool: String,
    point: Point,
    state: Arc<(AtomicBool, Notify)>,
}

/// The point of a call at which a run crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    Before,
    Asking,
    After,
}

impl Crash {
    /// Crashes when the call is recorded as started, and the tool has not begun.
    pub fn before(tool: impl Into<String>) -> Self {
        Self { tool: tool.into(), point: Point::Before, state: Arc::default() }
    }

    /// Crashes when the tool asks a person, and its question is not recorded.
    pub fn asking(tool: impl Into<String>) -> Self {
        Self { point: Point::Asking, ..Self::before(tool) }
    }

    /// Crashes when the tool has ended, and its result is not recorded.
    pub fn after(tool: impl Into<String>) -> Self {
        Self { point: Point::After, ..Self::before(tool) }
    }

    /// Starts a run and ends it at the crash. Later runs do not crash.
    ///
    /// # Panics
    /// If the run ends without such a call.
    pub async fn run(&self, plans: &Taskpawl) {
        self.state.0.store(true, Ordering::SeqCst);
        let mut run = plans.run().start();
        tokio::select! {
            () = self.state.1.notified() => run.abort().await,
            ended = &mut run => panic!("the run ended without a call of `{}`: {ended:?}", self.tool),
        }
        self.state.0.store(false, Ordering::SeqCst);
    }

    async fn crash(&self) {
        if self.state.0.load(Ordering::SeqCst) {
            self.state.1.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl CallLayer for Crash {
    async fn call(&self, mut cx: CallContext, args: Value, next: Next<'_>) -> Result<Value, ToolError> {
        if next.spec().name != self.tool {
            return next.run(cx, args).await;
        }
        if self.point == Point::Before {
            self.crash().await;
        }
        let questions = cx.questions.clone().filter(|_| self.point == Point::Asking);
        if let Some(questions) = questions {
            cx.questions = Some(Arc::new(CrashingQuestions { questions, crash: self.clone() }));
        }
        let ended = next.run(cx, args).await;
        if self.point != Point::Asking {
            self.crash().await;
        }
        ended
    }
}

/// Questions whose first one ends the run.
struct CrashingQuestions {
    questions: SharedQuestions,
    crash: Crash,
}

impl CallQuestions for CrashingQuestions {
    fn ask(&self, ask: &Ask) -> Result<Option<String>, ToolError> {
        let (is_armed, crashes) = &*self.crash.state;
        if is_armed.load(Ordering::SeqCst) {
            crashes.notify_one();
            return Ok(None);
        }
        self.questions.ask(ask)
    }

    fn note_step(&self) {
        self.questions.note_step();
    }
}
