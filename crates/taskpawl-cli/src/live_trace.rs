//! Sends the spans of a run to a collector while it goes on.
//!
//! A thread reads the history about once a second: what the run has stored is the queue. So nothing is dropped, memory is
//! bounded by what runs at once, and the run itself never waits. While the collector does not answer, nothing is read.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use taskpawl::model::task::RunRecord;
use taskpawl::model::value::RunId;
use taskpawl::{HistoryFilter, Manager, Observer, RunEvent};
use taskpawl_report::{Included, LogBuilder, RunEnd, RunLog, SpanRecord, run_span, task_spans};
use taskpawl_text::error_chain;

use crate::collector::{Collector, SendError};
use crate::error::CliError;
use crate::run_events::RunEvents;
use crate::run_log;

/// The pause between two reads of the history.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause after failures of the collector.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The longest wait for the collector at the end of a run.
const LAST: Duration = Duration::from_secs(5);

/// The most events of one read. Their spans are sent before the next.
const CHUNK: usize = 2_000;

/// Messages to the thread.
#[derive(Debug)]
enum Message {
    /// The run is recorded.
    Started(RunId),
    /// The run has ended, and its end is recorded.
    Ended,
}

/// A trace that is sent while its run goes on.
#[derive(Debug)]
pub(crate) struct LiveTrace {
    messages: Sender<Message>,
    thread: Option<JoinHandle<Result<(), SendError>>>,
    url: String,
}

/// Tells the thread the id of the run. All other events are read from the history.
#[derive(Debug)]
struct Start(Sender<Message>);

impl Observer for Start {
    fn event(&self, event: &RunEvent) {
        if let RunEvent::RunStarted { run, .. } = event {
            // Without a thread nothing is sent, and the run continues.
            let _ = self.0.send(Message::Started(run.clone()));
        }
    }
}

impl LiveTrace {
    /// Starts the thread.
    pub(crate) fn start(
        manager: &Manager,
        collector: Collector,
        included: Included,
    ) -> Result<Self, CliError> {
        // Not bounded: at most two messages are ever sent.
        let (messages, received) = channel();
        let (manager, url) = (manager.clone(), collector.url.clone());
        let thread = std::thread::Builder::new().name("taskpawl-trace".to_owned());
        let thread = thread.spawn(move || follow(manager, &collector, &included, &received));
        Ok(Self { messages, thread: Some(thread.map_err(CliError::Runtime)?), url })
    }

    /// Returns the observer of the run.
    pub(crate) fn observer(&self) -> impl Observer + use<> {
        Start(self.messages.clone())
    }

    /// Sends the rest after the end of the run. Returns a warning if the collector did not take everything.
    pub(crate) fn finish(mut self) -> Option<String> {
        let _ = self.messages.send(Message::Ended);
        let ended = self.thread.take()?.join();
        // A panic is a bug of the export. The run itself is over and recorded.
        let problem = match ended {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error_chain(&error),
            Err(_) => "the export failed".to_owned(),
        };
        Some(format!(
            "not all spans were sent to {}: {problem}; `taskpawl trace --to` sends them later",
            self.url
        ))
    }
}

/// Sends the spans of the run until it has ended.
fn follow(
    manager: Manager,
    collector: &Collector,
    included: &Included,
    messages: &Receiver<Message>,
) -> Result<(), SendError> {
    let Ok(Message::Started(id)) = messages.recv() else { return Ok(()) };
    let Ok(run) = manager.run(&id) else { return Ok(()) };
    let mut export = Export::new(manager, collector, included, &run);
    let (mut pause, mut failure) = (PAUSE, None);
    while matches!(messages.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
        failure = export.send_new(None).err();
        pause = if failure.is_none() { PAUSE } else { (pause * 2).min(MAX_PAUSE) };
    }
    match failure {
        // The end of the run would wait for the same silence again.
        Some(error) if error.is_timeout() => Err(error),
        _ => export.send_rest(&id),
    }
}

/// The spans of one run that have not been sent.
struct Export<'a> {
    manager: Manager,
    collector: &'a Collector,
    included: &'a Included,
    builder: LogBuilder,
    chosen: RunEvents,
    filter: HistoryFilter,
    /// Spans that the collector has not taken.
    unsent: Vec<SpanRecord>,
    /// True if the collector took the last request. Reading costs time, so nothing is read for one that is down.
    is_up: bool,
}

impl<'a> Export<'a> {
    fn new(manager: Manager, collector: &'a Collector, included: &'a Included, run: &RunRecord) -> Self {
        let builder = LogBuilder::new(run, RunEnd::Running, included.clone());
        let chosen = RunEvents::new(run.id.clone());
        let after = chosen.start(&manager).unwrap_or_default();
        let filter = HistoryFilter { after, limit: CHUNK, ..HistoryFilter::default() };
        Self { manager, collector, included, builder, chosen, filter, unsent: Vec::new(), is_up: false }
    }

    /// Sends the spans that ended since the last time; at the end of a run until `deadline`.
    fn send_new(&mut self, deadline: Option<Instant>) -> Result<(), SendError> {
        loop {
            self.send_unsent()?;
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Err(SendError::TooSlow);
            }
            // A store that cannot be read now can be later; the run itself reports it.
            let events = self.manager.find_history(&self.filter).unwrap_or_default();
            let Some(last) = events.last() else { return Ok(()) };
            self.filter.after = last.event.revision;
            let is_last = events.len() < CHUNK;
            for entry in &events {
                if self.chosen.takes(&entry.event) {
                    self.builder.take(&entry.event);
                }
            }
            let ended = self.builder.drain_ended();
            self.add(ended);
            if is_last {
                return self.send_unsent();
            }
        }
    }

    /// Adds the spans of tasks, which `log` was made for.
    fn add(&mut self, log: RunLog) {
        let mut described = LogBuilder::of(log);
        let ids: Vec<_> = described.ids().cloned().collect();
        for task in ids.iter().filter_map(|id| run_log::task(&self.manager, id)) {
            described.describe(&task);
        }
        self.unsent.extend(task_spans(&described.finish()));
    }

    fn send_unsent(&mut self) -> Result<(), SendError> {
        let sent = if self.is_up || !self.unsent.is_empty() {
            self.collector.send_all(&mut self.unsent, self.included)
        } else {
            self.collector.probe(self.included)
        };
        self.is_up = sent.is_ok();
        sent
    }

    /// Sends everything that is left after the end of the run, and the span of the run.
    fn send_rest(mut self, id: &RunId) -> Result<(), SendError> {
        self.send_new(Some(Instant::now() + LAST))?;
        let Ok(run) = self.manager.run(id) else { return Ok(()) };
        self.builder.set_end(&run, run_log::end_of(&self.manager, &run));
        let open = std::mem::replace(
            &mut self.builder,
            LogBuilder::new(&run, RunEnd::Running, self.included.clone()),
        );
        let open = open.finish();
        self.unsent.push(run_span(&open));
        self.add(open);
        self.send_unsent()
    }
}
