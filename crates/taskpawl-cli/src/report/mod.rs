//! What a person or a program sees of a run while it goes on.
//!
//! The observer only turns events into text and puts it aside; a thread of the reporter writes. So a run with a hundred
//! thousand short tasks does not wait for a terminal line by line.

mod bar;
mod lines;
mod summary;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;
use taskpawl::model::{Status, TaskId, Timestamp};
use taskpawl::{Observer, RunEvent, RunSummary, Source};

use crate::output::{to_text, write_err, write_out};
use crate::shown::Shown;
use crate::text::Paint;

pub(crate) use summary::summary_text;

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

/// Where and how a reporter writes.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// How. `Auto` was decided before.
    pub(crate) format: Format,
    /// The colours of standard error.
    pub(crate) paint: Paint,
    /// Where the times of events come from.
    pub(crate) source: Arc<dyn Source>,
    /// How many tasks there are, and how many of them are over.
    pub(crate) total: u64,
    /// How many of them are over.
    pub(crate) over: u64,
}

/// Text that waits to be written: beyond this the run waits for whoever reads, as every program does that writes to a pipe.
const MAX_PENDING: usize = 1 << 20;

/// How often a bar is drawn at most: more often would show nothing more.
const FRAME: Duration = Duration::from_millis(100);

/// How often lines are written at most: at once where none came just before.
const BREATH: Duration = Duration::from_millis(10);

/// Shows a run. It is told events as an observer; [`finish`](Self::finish) ends it.
#[derive(Debug)]
pub(crate) struct Reporter {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    state: Mutex<State>,
    /// Rung for the writer: there is something to write, or it is over.
    work: Condvar,
    /// Rung by the writer: there is room again, or nothing is drawn any more.
    written: Condvar,
}

/// What is known of a run: written by the observer, read by the writer.
#[derive(Debug)]
struct State {
    pending: Shown,
    running: BTreeMap<TaskId, Running>,
    /// What was started, in order: the number orders `running` for the eye.
    started: u64,
    progress: bar::Progress,
    is_over: bool,
    /// Whether the writer waits to be told that there is something to write. Else it looks by itself before long.
    is_idle: bool,
    pause: Drawn,
    /// Nobody reads any more.
    is_deaf: bool,
}

/// Whether somebody is being asked something on the terminal: nothing else is written there, as long as there is room to keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drawn {
    /// Nobody is.
    Open,
    /// Somebody is about to be, as soon as the writer takes note.
    Closing,
    /// The writer has taken note, and the bar is gone.
    Closed,
}

/// A task that runs.
#[derive(Debug, Clone)]
struct Running {
    number: u64,
    name: String,
    since: Instant,
    message: String,
}

impl Reporter {
    /// Starts the thread that writes.
    pub(crate) fn start(options: Options) -> Self {
        let shared = Arc::new(Shared::new(options));
        let writer = Arc::clone(&shared);
        let writer =
            std::thread::Builder::new().name("taskpawl-report".to_owned()).spawn(move || writer.write());
        // Without a thread the run goes on in silence, and its summary comes all the same.
        let writer = writer.ok();
        if writer.is_none() {
            shared.lock().is_deaf = true;
        }
        Self { shared, writer }
    }

    /// Returns who is to be told events.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.shared) as Arc<dyn Observer>
    }

    /// Returns what keeps the terminal free while somebody is asked.
    pub(crate) fn pause(&self) -> ReportPause {
        ReportPause(Arc::clone(&self.shared))
    }

    /// Ends a stream of events with the summary.
    pub(crate) fn summary(&self, summary: &RunSummary) {
        if self.shared.options.format == Format::Ndjson {
            let line =
                json_line(&RunEvent::Summary(Box::new(summary.clone())), self.shared.options.source.now());
            self.shared.push(self.shared.lock(), &line);
        }
    }

    /// Writes what is left, takes the bar away and ends the thread.
    pub(crate) fn finish(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.work.notify_all();
        self.shared.written.notify_all();
        if let Some(writer) = self.writer.take() {
            // A panic there was a bug in showing the run; the run itself is over and recorded.
            let _ = writer.join();
        }
    }
}

/// Keeps the terminal free of what a run says.
#[derive(Debug, Clone)]
pub(crate) struct ReportPause(Arc<Shared>);

impl ReportPause {
    /// Waits until what was being written is written and the bar is gone. What comes after that is kept for later.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock();
        state.pause = Drawn::Closing;
        self.0.work.notify_all();
        while state.pause == Drawn::Closing && !(state.is_over || state.is_deaf) {
            state = self.0.written.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Shows what has come meanwhile, and the bar.
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
            // It comes by `Reporter::summary`, with commands that name the store.
            return;
        }
        let mut state = self.lock();
        if self.options.format == Format::Ndjson {
            let line = json_line(event, self.options.source.now());
            return self.push(state, &line);
        }
        let took = state.take(event);
        if let Some(line) = lines::line(event, took, self.options.paint) {
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
    let stamped = Stamped { at: taskpawl::model::format_time(at), event };
    (to_text(&stamped, false).expect("BUG: an event is always valid JSON") + "\n").into()
}

impl State {
    /// Returns whether nothing is to be written for now.
    fn is_quiet(&self) -> bool {
        self.pause == Drawn::Closed && !self.is_over && self.pending.len() <= MAX_PENDING
    }

    /// Takes in what an event says about what runs, and returns how long a task took that ended with it.
    fn take(&mut self, event: &RunEvent) -> Option<Duration> {
        match event {
            RunEvent::CallStarted { task, name, .. } => {
                self.started += 1;
                let running = Running {
                    number: self.started,
                    name: name.clone(),
                    since: Instant::now(),
                    message: String::new(),
                };
                self.running.entry(task.clone()).or_insert(running);
            }
            RunEvent::Progress { task, message, .. } => {
                if let Some(running) = self.running.get_mut(task) {
                    running.message.clone_from(message);
                }
            }
            RunEvent::TaskEnded { task, status, .. } => {
                self.progress.end(*status == Status::Failed);
                return self.running.remove(task).map(|running| running.since.elapsed());
            }
            RunEvent::RunStarted { .. }
            | RunEvent::CallEnded { .. }
            | RunEvent::Stopping { .. }
            | RunEvent::Summary(_)
            | _ => {}
        }
        None
    }
}

impl Shared {
    fn new(options: Options) -> Self {
        let state = State {
            pending: Shown::new(),
            running: BTreeMap::new(),
            started: 0,
            progress: bar::Progress::new(options.total, options.over),
            is_over: false,
            is_idle: false,
            pause: Drawn::Open,
            is_deaf: false,
        };
        let (state, work, written) = (Mutex::new(state), Condvar::new(), Condvar::new());
        Self { options, state, work, written }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What is shown is still of use after a panic elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, mut state: MutexGuard<'_, State>, text: &Shown) {
        while state.pending.len() > MAX_PENDING && !state.is_deaf {
            state = self.written.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.is_deaf {
            state.pending.push(text);
            if std::mem::take(&mut state.is_idle) || state.pending.len() > MAX_PENDING {
                self.work.notify_all();
            }
        }
    }

    /// Writes until the run is over.
    fn write(&self) {
        let written = match self.options.format {
            Format::Bar => self.write_bar(),
            // The end of the process says why the stream was not written whole.
            Format::Ndjson => {
                self.write_lines(|text| write_out(text).map_err(|_| io::ErrorKind::BrokenPipe.into()))
            }
            Format::Auto | Format::Plain => self.write_lines(write_err),
        };
        if written.is_err() {
            // Whoever read has seen enough; the run goes on.
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
            screen.draw(&text, &running, &progress)?;
            drop(self.wait_pause(self.lock(), FRAME));
        }
    }

    fn wait_for_work<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.is_idle = true;
        self.work.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets more come together before the writer looks again: waking it for each line would cost the run more than the line.
    fn wait_pause<'a>(&self, mut state: MutexGuard<'a, State>, pause: Duration) -> MutexGuard<'a, State> {
        let end = Instant::now() + pause;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero()
                || state.is_over
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
        let options = Options { format: Format::Plain, paint: Paint::default(), source, total: 0, over: 0 };
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
                // Longer than it takes to write one.
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
