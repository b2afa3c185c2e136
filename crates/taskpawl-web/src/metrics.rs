//! Metrics of the plan for Prometheus. No label has an id of a task, a call or a run: their number has no bound.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use taskpawl::model::task::{Event, EventKind, Status};
use taskpawl::model::value::{CallId, TaskId, Timestamp};
use taskpawl::{Error, Manager};

/// Events that are read in one step.
const STEP: usize = 2_000;

/// Upper bounds of the durations of calls, in seconds.
const BOUNDS: [f64; 9] = [0.01, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0, 3_600.0];

type Label = [(&'static str, &'static str); 1];

/// The metrics of a server. Counters begin at its start, as Prometheus expects.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    tasks: Family<Label, Gauge>,
    ready: Gauge,
    runs: Gauge,
    questions: Gauge,
    revision: Gauge,
    calls: Family<Label, Counter>,
    durations: Histogram,
    counted: Mutex<Counted>,
}

/// The events that the counters have.
#[derive(Debug, Default)]
struct Counted {
    revision: u64,
    /// Starts of the calls that have not ended.
    open: BTreeMap<(TaskId, CallId), Timestamp>,
}

impl Metrics {
    /// Creates counters of what happens after a revision.
    pub(crate) fn new(revision: u64) -> Self {
        let metrics = Self {
            registry: Registry::with_prefix("taskpawl"),
            tasks: Family::default(),
            ready: Gauge::default(),
            runs: Gauge::default(),
            questions: Gauge::default(),
            revision: Gauge::default(),
            calls: Family::default(),
            durations: Histogram::new(BOUNDS),
            counted: Mutex::new(Counted { revision, ..Counted::default() }),
        };
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("tasks", "Tasks by status", self.tasks.clone());
        registry.register("ready_tasks", "Tasks that may start now", self.ready.clone());
        registry.register("open_runs", "Runs that have not ended", self.runs.clone());
        registry.register("questions", "Tasks that wait for an approval", self.questions.clone());
        registry.register("revision", "Position in the history of the store", self.revision.clone());
        registry.register("calls", "Calls that ended since the start of the server", self.calls.clone());
        registry.register_with_unit(
            "call_duration",
            "Time from the start of a call to its end",
            Unit::Seconds,
            self.durations.clone(),
        );
        self
    }

    /// Returns all metrics as text. Counters first read what happened since the last time.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn text(&self, reader: &Manager, ready: u64) -> Result<String, Error> {
        self.count(reader)?;
        let (counts, runs, revision) =
            reader.read(|view| Ok((view.counts()?, view.open_runs()?.len(), view.revision()?)))?;
        for status in Status::ALL.iter().copied() {
            let count = counts.get(&status).copied().unwrap_or_default();
            self.tasks.get_or_create(&[("status", status.as_str())]).set(signed(count));
        }
        self.ready.set(signed(ready));
        self.runs.set(signed(runs as u64));
        self.questions.set(signed(reader.approval_requests(&[])?.len() as u64));
        self.revision.set(signed(revision));
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("BUG: text can be written to memory");
        Ok(text)
    }

    fn count(&self, reader: &Manager) -> Result<(), Error> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let events = reader.read(|view| Ok(view.events(counted.revision, None, STEP)?))?;
            counted.revision = events.last().map_or(counted.revision, |event| event.revision);
            let is_last = events.len() < STEP;
            for event in events {
                self.add(&mut counted.open, event);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn add(&self, open: &mut BTreeMap<(TaskId, CallId), Timestamp>, event: Event) {
        let Some(task) = event.task else { return };
        if let EventKind::CallStarted { call, .. } = event.kind {
            open.insert((task, call), event.at);
        } else if let EventKind::CallEnded { call, status, .. } = event.kind {
            self.calls.get_or_create(&[("status", status.as_str())]).inc();
            if let Some(start) = open.remove(&(task, call)) {
                self.durations.observe((event.at - start).as_seconds_f64().max(0.0));
            }
        }
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
