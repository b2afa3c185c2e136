//! Live output of a run, for people and for programs.
//!
//! The observer only turns events into text and queues it; a separate thread writes. So a run with a hundred thousand
//! short tasks does not wait for the terminal on every line.

mod bar;
mod lines;
mod summary;
#[cfg(test)]
mod widths;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;
use taskpawl::model::task::Status;
use taskpawl::model::value::TaskId;
use taskpawl::model::value::Timestamp;
use taskpawl::{CallFailure, Observer, RunEvent, RunSummary, Source};

use crate::output::{columns_of_stderr, to_text, write_err, write_out};
use crate::shown::Shown;
use crate::text::Paint;

use lines::Followed;

pub(crate) use summary::{Ran, summary_text};
pub(crate) use taskpawl_text::duration;

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A bar on a terminal, else plain lines
    Auto,
    /// A line for each task that ends
    Plain,
    /// A bar at the bottom, and a line above it for each task that ends
    Bar,
    /// Every event as a line of JSON on standard output; the last one is the summary
    Ndjson,
}

/// The output of a reporter.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The format, in which `Auto` is already resolved.
    pub(crate) format: Format,
    /// The colours of standard error.
    pub(crate) paint: Paint,
    /// The clock for the times of events.
    pub(crate) source: Arc<dyn Source>,
    /// The number of tasks in scope, including finished ones.
    pub(crate) total: u64,
    /// The number of finished tasks at the start.
    pub(crate) over: u64,
    /// The clock of a run that is shown again; `None` for one that goes on.
    pub(crate) replayed: Option<Arc<ReplayClock>>,
}

impl Options {
    /// Returns the time by which shown durations are measured.
    fn now(&self) -> Instant {
        self.replayed.as_ref().map_or_else(Instant::now, |clock| clock.now())
    }
}

/// The clock of a run that is shown again. It stands until it is set.
#[derive(Debug)]
pub(crate) struct ReplayClock {
    begin: Instant,
    millis: AtomicU64,
}

impl Default for ReplayClock {
    fn default() -> Self {
        Self { begin: Instant::now(), millis: AtomicU64::new(0) }
    }
}

impl ReplayClock {
    /// Returns the milliseconds since the start of the run.
    pub(crate) fn millis(&self) -> u64 {
        self.millis.load(Ordering::Relaxed)
    }

    /// Sets the milliseconds since the start of the run.
    pub(crate) fn set(&self, millis: u64) {
        self.millis.store(millis, Ordering::Relaxed);
    }

    fn now(&self) -> Instant {
        self.begin + Duration::from_millis(self.millis())
    }
}

/// The bytes that may wait to be written. Beyond this the run waits for the reader, as any program does on a full
/// pipe.
const MAX_PENDING: usize = 1 << 20;

/// The most failed tasks that are remembered as shown.
const MAX_FOLLOWED: usize = 10_000;

/// The shortest time between two frames of the bar; the eye would not see more of them.
const FRAME: Duration = Duration::from_millis(100);

/// The shortest time between two writes of lines. A line after a longer silence is written at once.
const BREATH: Duration = Duration::from_millis(10);

/// Shows a run. It receives events as an observer; [`finish`](Self::finish) ends it.
#[derive(Debug)]
pub(crate) struct Reporter {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    state: Mutex<State>,
    /// Notifies the writer: there is text to write, the run is over, or a question is about to be asked.
    work: Condvar,
    /// Notified by the writer: there is room again, or nothing is drawn any more.
    written: Condvar,
}

/// The state of the output: written by the observer, read by the writer.
#[derive(Debug)]
struct State {
    pending: Shown,
    running: BTreeMap<TaskId, Running>,
    /// The number of calls started so far. It orders the shown tasks by their start.
    started: u64,
    /// Tasks whose failure was shown.
    failed: BTreeSet<TaskId>,
    /// Tasks that took an earlier success, and whose end is about to be told.
    cached: BTreeSet<TaskId>,
    progress: bar::Progress,
    is_over: bool,
    /// True if the writer sleeps until it is notified. Otherwise it looks for text by itself after its pause.
    is_idle: bool,
    pause: Drawn,
    /// True if writing has failed, for example because the reader closed the pipe. Text is then dropped.
    is_deaf: bool,
}

/// True if a question owns the terminal. Until it is answered, text is queued as long as there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drawn {
    /// No question is asked.
    Open,
    /// A question is about to be asked; the writer has yet to notice.
    Closing,
    /// The writer has noticed, and the bar is gone.
    Closed,
}

/// A task that runs.
#[derive(Debug, Clone)]
struct Running {
    number: u64,
    name: String,
    since: Instant,
    message: String,
    failure: Option<Box<CallFailure>>,
}

impl Reporter {
    /// Starts the writer thread.
    pub(crate) fn start(options: Options) -> Self {
        let shared = Arc::new(Shared::new(options));
        let writer = Arc::clone(&shared);
        let writer =
            std::thread::Builder::new().name("taskpawl-report".to_owned()).spawn(move || writer.write());
        // Without a thread the run continues silently; its summary is still printed.
        let writer = writer.ok();
        if writer.is_none() {
            shared.lock().is_deaf = true;
        }
        Self { shared, writer }
    }

    /// Returns the observer that receives the events.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.shared) as Arc<dyn Observer>
    }

    /// Returns the handle that keeps the terminal free during a question.
    pub(crate) fn pause(&self) -> ReportPause {
        ReportPause(Arc::clone(&self.shared))
    }

    /// Returns the tasks whose failure was shown when it happened.
    pub(crate) fn shown_failures(&self) -> BTreeSet<TaskId> {
        self.shared.lock().failed.clone()
    }

    /// Ends a stream of events with the summary.
    pub(crate) fn summary(&self, summary: &RunSummary) {
        if self.shared.options.format == Format::Ndjson {
            let line =
                json_line(&RunEvent::Summary(Box::new(summary.clone())), self.shared.options.source.now());
            self.shared.push(self.shared.lock(), &line);
        }
    }

    /// Writes the remaining text, removes the bar and ends the thread.
    pub(crate) fn finish(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.work.notify_all();
        // `ReportPause::close` waits on this one; it must not outlive the run.
        self.shared.written.notify_all();
        if let Some(writer) = self.writer.take() {
            // A panic in the writer is a bug of the display. The run itself is over and recorded.
            let _ = writer.join();
        }
    }
}

/// Keeps the terminal free during a question.
#[derive(Debug, Clone)]
pub(crate) struct ReportPause(Arc<Shared>);

impl ReportPause {
    /// Waits until all queued text is written and the bar is gone. Later text is queued.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock();
        state.pause = Drawn::Closing;
        self.0.work.notify_all();
        while state.pause == Drawn::Closing && !(state.is_over || state.is_deaf) {
            state = self.0.written.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Shows the queued text and the bar again.
    pub(crate) fn open(&self) {
        self.0.lock().pause = Drawn::Open;
        self.0.work.notify_all();
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Observer for Shared {
    fn event(&self, event: &RunEvent) {
        if matches!(event, RunEvent::Summary(_)) {
            // `Reporter::summary` writes it, after its advised commands got the flags of the store.
            return;
        }
        let mut state = self.lock();
        if self.options.format == Format::Ndjson {
            let line = json_line(event, self.options.source.now());
            return self.push(state, &line);
        }
        let followed = state.take(event, self.options.now());
        if let Some(line) = lines::line(event, &followed, self.options.paint) {
            self.push(state, &line);
        }
    }
}

/// An event with its time, as a line of JSON.
#[derive(Serialize)]
struct Stamped<'a> {
    at: String,
    #[serde(flatten)]
    event: &'a RunEvent,
}

fn json_line(event: &RunEvent, at: Timestamp) -> Shown {
    let stamped = Stamped { at: taskpawl::model::value::format_time(at), event };
    (to_text(&stamped, false).expect("BUG: an event is always valid JSON") + "\n").into()
}

impl State {
    /// Returns whether nothing is written for now, because a question is open. Neither the end of the run nor a full
    /// queue waits for the answer.
    fn is_quiet(&self) -> bool {
        self.pause == Drawn::Closed && !self.is_over && self.pending.len() <= MAX_PENDING
    }

    /// Applies an event, which arrived `now`, to the shown tasks. Returns what is known of a task that ended with it.
    fn take(&mut self, event: &RunEvent, now: Instant) -> Followed {
        match event {
            RunEvent::CallStarted { task, name, .. } => {
                self.started += 1;
                let running = Running {
                    number: self.started,
                    name: name.clone(),
                    since: now,
                    message: String::new(),
                    failure: None,
                };
                // A task with several calls is shown from the start of its first call.
                self.running.entry(task.clone()).or_insert(running);
            }
            RunEvent::Progress { task, message, .. } => {
                if let Some(running) = self.running.get_mut(task) {
                    running.message.clone_from(message);
                }
            }
            RunEvent::Cached { task } => _ = self.cached.insert(task.clone()),
            RunEvent::CallEnded { task, failure, .. } => {
                if let Some(running) = self.running.get_mut(task) {
                    running.failure.clone_from(failure);
                }
            }
            RunEvent::TaskEnded { task, status, .. } => {
                self.progress.end(*status == Status::Failed);
                if *status == Status::Failed && self.failed.len() < MAX_FOLLOWED {
                    self.failed.insert(task.clone());
                }
                let running = self.running.remove(task);
                let took = running.as_ref().map(|running| now.saturating_duration_since(running.since));
                let failure = running.and_then(|running| running.failure);
                return Followed { took, failure, is_cached: self.cached.remove(task) };
            }
            RunEvent::RunStarted { .. } | RunEvent::Stopping { .. } | RunEvent::Summary(_) | _ => {}
        }
        Followed::default()
    }
}

impl Shared {
    fn new(options: Options) -> Self {
        let state = State {
            pending: Shown::new(),
            running: BTreeMap::new(),
            started: 0,
            failed: BTreeSet::new(),
            cached: BTreeSet::new(),
            progress: bar::Progress::new(options.total, options.over, options.now()),
            is_over: false,
            is_idle: false,
            pause: Drawn::Open,
            is_deaf: false,
        };
        let (state, work, written) = (Mutex::new(state), Condvar::new(), Condvar::new());
        Self { options, state, work, written }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The queued text is still usable after a panic in another thread.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, mut state: MutexGuard<'_, State>, text: &Shown) {
        while state.pending.len() > MAX_PENDING && !state.is_deaf {
            state = self.written.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.is_deaf {
            state.pending.push(text);
            // A writer that is in its pause wakes by itself; only a sleeping one needs a notification.
            if std::mem::take(&mut state.is_idle) || state.pending.len() > MAX_PENDING {
                self.work.notify_all();
            }
        }
    }

    /// Writes until the run is over.
    fn write(&self) {
        let written = match self.options.format {
            Format::Bar => self.write_bar(),
            // The error is dropped here: `settle` reports a failure of standard output at the end of the process.
            Format::Ndjson => {
                self.write_lines(|text| write_out(text).map_err(|_| io::ErrorKind::BrokenPipe.into()))
            }
            Format::Auto | Format::Plain => {
                self.write_lines(|text| write_err(&text.wrapped(columns_of_stderr())))
            }
        };
        if written.is_err() {
            // The reader has closed the stream. The run continues, so that its result does not depend on its output.
            let mut state = self.lock();
            state.is_deaf = true;
            state.pending = Shown::new();
            self.written.notify_all();
        }
    }

    fn write_lines(&self, mut write: impl FnMut(&Shown) -> io::Result<()>) -> io::Result<()> {
        let mut state = self.lock();
        loop {
            if state.pending.is_empty() && state.is_over {
                return Ok(());
            }
            if state.pending.is_empty() && state.pause == Drawn::Closing {
                state.pause = Drawn::Closed;
                self.written.notify_all();
            }
            if state.pending.is_empty() || state.is_quiet() {
                state = self.wait_for_work(state);
                continue;
            }
            let text = std::mem::take(&mut state.pending);
            self.written.notify_all();
            drop(state);
            // Written without the lock, so that a slow terminal does not hold up the run.
            write(&text)?;
            state = self.wait_pause(self.lock(), BREATH);
        }
    }

    fn write_bar(&self) -> io::Result<()> {
        let mut screen = bar::Screen::new(self.options.paint);
        loop {
            let mut state = self.lock();
            if state.pending.is_empty() && state.pause == Drawn::Closing {
                screen.clear()?;
                state.pause = Drawn::Closed;
                self.written.notify_all();
            }
            if state.is_quiet() {
                drop(self.wait_for_work(state));
                continue;
            }
            let text = std::mem::take(&mut state.pending);
            let (is_over, progress) = (state.is_over, state.progress);
            let running = bar::shown(&state.running);
            drop(state);
            self.written.notify_all();
            if is_over && text.is_empty() {
                return screen.clear();
            }
            screen.draw(&text, &running, &progress, self.options.now())?;
            drop(self.wait_pause(self.lock(), FRAME));
        }
    }

    fn wait_for_work<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.is_idle = true;
        self.work.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits so that more text collects before the next write: waking the writer for each line costs the run more
    /// than the line.
    fn wait_pause<'a>(&self, mut state: MutexGuard<'a, State>, pause: Duration) -> MutexGuard<'a, State> {
        let end = Instant::now() + pause;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero()
                || state.is_over
                // The thread that asks a question waits for this writer, so the pause ends early.
                || state.pause == Drawn::Closing
                || state.pending.len() > MAX_PENDING
            {
                return state;
            }
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_come_one_after_the_other_are_written_together_and_none_is_lost() {
        const LINES: usize = 200;
        let source = Arc::new(taskpawl::SystemSource);
        let options = Options {
            format: Format::Plain,
            paint: Paint::default(),
            source,
            total: 0,
            over: 0,
            replayed: None,
        };
        let shared = Shared::new(options);
        let begin = Instant::now();
        let ((written, writes), lasted) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut all, mut writes) = (String::new(), 0);
                let write = |text: &Shown| {
                    all.push_str(text.as_str());
                    writes += 1;
                    Ok(())
                };
                shared.write_lines(write).unwrap();
                (all, writes)
            });
            for _ in 0..LINES {
                shared.push(shared.lock(), &"a line\n".into());
                // Longer than one write takes.
                std::thread::sleep(Duration::from_micros(200));
            }
            shared.lock().is_over = true;
            shared.work.notify_all();
            (writer.join().unwrap(), begin.elapsed())
        });
        assert_eq!(written, "a line\n".repeat(LINES));
        let most = lasted.as_millis() / BREATH.as_millis() + 2;
        assert!(writes <= most, "{writes} writes in {lasted:?}");
    }
}
