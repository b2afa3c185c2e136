//! Runs as handles: a stream of events and a future of the summary.

mod output;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use taskpawl_engine::{Approver, Observer, RunControl, RunError, RunEvent, RunOptions, RunSummary};
use taskpawl_model::plan::Budget;
use taskpawl_model::value::{Map, Period, RunId, Selector};
use taskpawl_tools::current_scope;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::output::Followers;
use crate::blocking::Blocking;

/// Events that a run puts ahead of its reader, beside those that wait in the engine.
const AHEAD: usize = 256;

/// Describes a run before it starts. See [`Taskpawl::run`](crate::Taskpawl::run).
#[derive(Debug)]
#[must_use = "a run starts with `start`, or when it is awaited"]
pub struct RunBuilder {
    plans: Blocking,
    options: RunOptions,
    is_output_followed: bool,
}

impl RunBuilder {
    pub(crate) fn new(plans: Blocking) -> Self {
        Self { plans, options: RunOptions::default(), is_output_followed: false }
    }

    /// Sets all options that have no method of their own. It replaces those that were set before.
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    /// Restricts the run to a task with its subtasks, to `plan:NAME` or to `label:NAME`. May be repeated.
    pub fn only(mut self, selector: &str) -> Self {
        let Ok(selector) = selector.parse::<Selector>();
        self.options.only.push(selector);
        self
    }

    /// Sets the number of calls that run at the same time. Default: the number of cores plus two.
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.options.jobs = Some(calls);
        self
    }

    /// Starts nothing more once the calls have reported this cost, in the unit of the tools.
    pub fn max_cost(mut self, cost: f64) -> Self {
        self.options.budget.get_or_insert_with(Budget::default).cost = Some(cost);
        self
    }

    /// Starts nothing more after this number of failed tasks.
    pub fn max_failures(mut self, tasks: u64) -> Self {
        self.options.max_failures = Some(tasks);
        self
    }

    /// Limits the duration of the run. Then nothing more starts, and running calls fail with the class `timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(Period(timeout));
        self
    }

    /// Sets the approver, which decides about tasks and calls that wait for an approval. Without one they wait.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.options.approver = Some(Arc::new(approver));
        self
    }

    /// Sets the parameters of the run, which expressions read as `params`.
    pub fn params(mut self, params: Map) -> Self {
        self.options.params = params;
        self
    }

    /// Waits for tasks that agents and people hold, too.
    pub fn wait(mut self) -> Self {
        self.options.wait = true;
        self
    }

    /// Reports the output of programs as [`RunEvent::Output`] while they run.
    pub fn with_output(mut self) -> Self {
        self.is_output_followed = true;
        self
    }

    /// Starts the run on the current runtime and returns its handle.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(self) -> Run {
        let Self { plans, mut options, is_output_followed } = self;
        let (sender, raw) = mpsc::unbounded_channel();
        let (event_sender, events) = mpsc::channel(AHEAD);
        let control = options.control.clone();
        let id = options.id.get_or_insert_with(|| RunId::from(plans.manager().source().new_id())).clone();
        // The run is spawned: its task has no task-local values of the caller.
        options.scope = options.scope.or_else(current_scope);
        options.observer = Some(Arc::new(Sender { sender, next: options.observer.take() }));
        let followers = is_output_followed.then(|| Followers::new(plans.engine.output()));
        let mut work = JoinSet::new();
        work.spawn(async move {
            let run = plans.engine.run_all_ready(options);
            tokio::join!(run, output::forward(raw, event_sender, followers)).0
        });
        Run { id, control, events, work }
    }
}

impl IntoFuture for RunBuilder {
    type Output = Result<RunSummary, RunError>;
    type IntoFuture = Run;

    fn into_future(self) -> Run {
        self.start()
    }
}

/// Passes events on to a handle, and to the observer of the host.
#[derive(Debug)]
struct Sender {
    /// Unbounded, because an observer must not block. The handle moves the events to a bounded channel as its reader takes them.
    sender: mpsc::UnboundedSender<RunEvent>,
    next: Option<Arc<dyn Observer>>,
}

impl Observer for Sender {
    fn event(&self, event: &RunEvent) {
        // A handle that was dropped reads no events.
        let _ = self.sender.send(event.clone());
        if let Some(next) = &self.next {
            next.event(event);
        }
    }
}

/// A run that has started: a stream of its events, and a future of its summary.
///
/// The run continues on its own. Awaiting the handle skips the events that were not read; the stream ends with the run, and its last
/// event is [`RunEvent::Summary`]. Events that are not read are kept in memory, so that a handle is either read or awaited.
///
/// Dropping the handle ends the running calls, like a second [`stop`](Self::stop); the next run recovers their tasks.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let plans = taskpawl::Taskpawl::open(":memory:")?;
/// # plans.apply_text("tasks: [{id: a, milestone: true}]", "example").await?;
/// let mut run = plans.run().concurrency(8).start();
/// while let Some(event) = run.next().await {
///     println!("{event:?}");
/// }
/// assert_eq!(run.await?.exit, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Run {
    id: RunId,
    control: RunControl,
    events: mpsc::Receiver<RunEvent>,
    /// The run. The set ends it when the handle is dropped.
    work: JoinSet<Result<RunSummary, RunError>>,
}

impl Run {
    /// Returns the id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Asks the run to stop: nothing more starts, and running calls may finish. A second request ends them.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Ends the run as its process would by dying: nothing more is recorded, and the next run recovers its tasks. Returns when it is gone.
    #[cfg(feature = "testing")]
    pub(crate) async fn abort(&mut self) {
        self.work.shutdown().await;
    }

    /// Returns a handle that can stop the run from elsewhere.
    pub fn control(&self) -> RunControl {
        self.control.clone()
    }

    /// Returns the next event; `None` when the run is over.
    ///
    /// # Cancel safety
    /// No event is lost.
    pub async fn next(&mut self) -> Option<RunEvent> {
        self.events.recv().await
    }
}

impl Stream for Run {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        self.events.poll_recv(cx)
    }
}

impl Future for Run {
    type Output = Result<RunSummary, RunError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        while let Poll::Ready(Some(_)) = self.events.poll_recv(cx) {}
        let ended = ready!(self.work.poll_join_next(cx)).expect("BUG: a run was polled after its end");
        Poll::Ready(ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())))
    }
}
