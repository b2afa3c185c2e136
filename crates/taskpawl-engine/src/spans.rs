//! Spans of `tracing` for runs, tasks and calls. Without the feature `tracing` they are empty and cost nothing.

#[cfg(feature = "tracing")]
pub(crate) use on::{RunSpan, TaskSpans};

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{RunSpan, TaskSpans};

#[cfg(feature = "tracing")]
mod on {
    use std::collections::BTreeMap;

    use taskpawl_model::command::{CallEnd, StartedCall};
    use taskpawl_model::value::{Key, RunId};
    use tracing::{Instrument as _, Span, field, info_span};

    use crate::executor::Ended;

    /// The span of a run.
    #[derive(Debug, Clone)]
    pub(crate) struct RunSpan(Span);

    impl RunSpan {
        pub(crate) fn new(run: &RunId) -> Self {
            Self(info_span!("run", %run))
        }

        /// Runs `work` in the span.
        pub(crate) fn enter<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
            work.instrument(self.0.clone())
        }
    }

    /// The spans of the tasks of a run.
    #[derive(Debug)]
    pub(crate) struct TaskSpans {
        /// Calls are polled by the runtime, outside the span of the run, so that their spans name their parent.
        run: RunSpan,
        tasks: BTreeMap<Key, Span>,
    }

    impl TaskSpans {
        pub(crate) fn new(run: &RunSpan) -> Self {
            Self { run: run.clone(), tasks: BTreeMap::new() }
        }

        /// Ends the span of a task.
        pub(crate) fn end(&mut self, task: Key) {
            self.tasks.remove(&task);
        }

        /// Returns a function that runs a call in its span.
        pub(crate) fn call<F>(&mut self, started: &StartedCall) -> impl FnOnce(F) -> OfCall<F> + use<F>
        where
            F: Future<Output = Ended> + Send + 'static,
        {
            let task = self.tasks.entry(started.key).or_insert_with(
                || info_span!(parent: &self.run.0, "task", task = %started.task, attempt = started.attempt),
            );
            let call = &started.call;
            let span = info_span!(
                parent: &*task,
                "call",
                call = %call.id,
                tool = call.spec.tool_name,
                start = call.body.attempts,
                status = field::Empty,
                error = field::Empty,
            );
            move |work| Box::pin(recorded(span, work))
        }
    }

    type OfCall<F> = std::pin::Pin<Box<dyn Future<Output = <F as Future>::Output> + Send>>;

    async fn recorded(span: Span, work: impl Future<Output = Ended>) -> Ended {
        let ended = work.instrument(span.clone()).await;
        let status = match &ended.end {
            CallEnd::Succeeded(_) => "succeeded",
            CallEnd::Failed { error, .. } => {
                span.record("error", error.message.as_str());
                "failed"
            }
            CallEnd::Interrupted { .. } => "interrupted",
            CallEnd::Asks(_) => "asks",
        };
        span.record("status", status);
        ended
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use taskpawl_model::command::StartedCall;
    use taskpawl_model::value::{Key, RunId};

    #[derive(Debug, Clone)]
    pub(crate) struct RunSpan;

    impl RunSpan {
        pub(crate) fn new(_run: &RunId) -> Self {
            Self
        }

        #[expect(clippy::unused_self, reason = "the other form has a span")]
        pub(crate) fn enter<F: Future>(&self, work: F) -> F {
            work
        }
    }

    #[derive(Debug)]
    pub(crate) struct TaskSpans;

    impl TaskSpans {
        pub(crate) fn new(_run: &RunSpan) -> Self {
            Self
        }

        #[expect(clippy::unused_self, reason = "the other form ends a span")]
        pub(crate) fn end(&mut self, _task: Key) {}

        #[expect(clippy::unused_self, reason = "the other form makes a span")]
        pub(crate) fn call<F>(&mut self, _started: &StartedCall) -> impl FnOnce(F) -> F + use<F> {
            |work| work
        }
    }
}
