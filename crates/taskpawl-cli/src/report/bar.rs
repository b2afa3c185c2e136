//! The progress bar at the bottom of a terminal, with running tasks above it and the lines of ended tasks above
//! those.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::time::{Duration, Instant};

use taskpawl::model::value::TaskId;
use taskpawl_text::duration;
use unicode_width::UnicodeWidthStr;

use super::Running;
use crate::output::write_err;
use crate::shown::{Control, Shown, shown};
use crate::text::{Paint, clean, cut, style, without_sequences};

/// The maximum number of running tasks that are shown.
const MAX_RUNNING: usize = 8;

/// The progress of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    total: u64,
    over: u64,
    failed: u64,
    begin: Instant,
}

impl Progress {
    /// Returns the progress at the start of a run.
    pub(super) fn new(total: u64, over: u64, begin: Instant) -> Self {
        Self { total, over, failed: 0, begin }
    }

    /// Counts a task that ended.
    pub(super) fn end(&mut self, failed: bool) {
        self.over += 1;
        self.failed += u64::from(failed);
        // Tasks can join a run, or be retried during it, so more tasks may end than there were at the start.
        self.total = self.total.max(self.over);
    }
}

/// The running tasks that are shown, with the number of the others.
#[derive(Debug)]
pub(super) struct RunningLines {
    lines: Vec<(String, Running)>,
    more: usize,
}

/// Returns the longest-running tasks, and the number of the others.
pub(super) fn shown(running: &BTreeMap<TaskId, Running>) -> RunningLines {
    let mut lines: Vec<(&TaskId, &Running)> = running.iter().collect();
    // In order of their start, so that lines do not change places between frames.
    lines.sort_by_key(|(_, running)| running.number);
    let more = lines.len().saturating_sub(MAX_RUNNING);
    lines.truncate(MAX_RUNNING);
    let lines = lines.into_iter().map(|(id, running)| (id.to_string(), running.clone())).collect();
    RunningLines { lines, more }
}

/// The part of the terminal that the bar occupies.
#[derive(Debug)]
pub(super) struct Screen {
    paint: Paint,
    /// The widths of the lines of the last frame. The cursor is at the end of the last line.
    frame: Vec<usize>,
}

impl Screen {
    /// Returns a screen without a bar.
    pub(super) fn new(paint: Paint) -> Self {
        Self { paint, frame: Vec::new() }
    }

    /// Writes `above`, and below it the running tasks and the bar. One write for all of it prevents flicker.
    pub(super) fn draw(
        &mut self,
        above: &Shown,
        running: &RunningLines,
        progress: &Progress,
        now: Instant,
    ) -> io::Result<()> {
        let (width, height) = size();
        let lines = frame(running, progress, now, (width, height.saturating_sub(1).max(1)));
        let mut text = self.erase(width);
        text.push(above.wrapped(Some(width)));
        self.frame = lines.iter().map(|line| line.width()).collect();
        for (index, line) in lines.iter().enumerate() {
            text.push(if index == 0 { "" } else { "\n" });
            let is_bar = index + 1 == lines.len();
            text.push(self.paint.style(if is_bar { style::BOLD } else { style::DIM }, line));
        }
        write(&text)
    }

    /// Removes the bar.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        let text = self.erase(size().0);
        write(&text)
    }

    /// Returns the text that erases the last frame. A terminal that has become narrower has wrapped the old lines, so
    /// the rows are counted with the current width.
    fn erase(&mut self, width: usize) -> Shown {
        let rows: usize = self.frame.iter().map(|line| line.div_ceil(width).max(1)).sum();
        self.frame.clear();
        match rows {
            0 => Shown::new(),
            1 => shown![Control::Return, Control::EraseBelow],
            rows => shown![Control::Return, Control::Up(rows - 1), Control::EraseBelow],
        }
    }
}

fn write(text: &Shown) -> io::Result<()> {
    if text.is_empty() { Ok(()) } else { write_err(&shown![Control::BeginFrame, text, Control::EndFrame]) }
}

/// Returns the columns and rows of the terminal.
fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    let size = size.map_or((0, 0), |size| (usize::from(size.ws_col), usize::from(size.ws_row)));
    (if size.0 == 0 { 80 } else { size.0 }, if size.1 == 0 { 24 } else { size.1 })
}

/// Returns the lines of a frame: at most `height`, and none wider than the terminal.
fn frame(
    running: &RunningLines,
    progress: &Progress,
    now: Instant,
    (width, height): (usize, usize),
) -> Vec<String> {
    // On some terminals a full line moves the cursor to the next line.
    let width = width.saturating_sub(1);
    let room = height - 1;
    let mut lines: Vec<String> =
        running.lines.iter().map(|(id, running)| running_line(id, running, now, width)).collect();
    let mut more = running.more;
    if lines.len() + usize::from(more > 0) > room {
        // One line is needed for the number of the others.
        let kept = room.saturating_sub(1);
        more += lines.len().saturating_sub(kept);
        lines.truncate(kept);
    }
    if more > 0 && lines.len() < room {
        lines.push(cut(&format!("  and {more} more"), width));
    }
    lines.push(bar_line(progress, running.lines.len() + running.more, now, width));
    lines
}

fn running_line(id: &str, running: &Running, now: Instant, width: usize) -> String {
    let took = whole_seconds(now.saturating_duration_since(running.since));
    let mut line = format!("  {took:>6}  {}", clean(id));
    for part in [&running.name, &running.message].into_iter().filter(|part| !part.is_empty() && *part != id) {
        let _ = write!(line, "  {}", clean(&without_sequences(part)));
    }
    cut(&line, width)
}

fn bar_line(progress: &Progress, running: usize, now: Instant, width: usize) -> String {
    let Progress { total, over, failed, begin } = *progress;
    let mut text = format!("{over}/{total}");
    if failed > 0 {
        let _ = write!(text, "  {failed} failed");
    }
    let _ = write!(text, "  {running} running  {}", whole_seconds(now.saturating_duration_since(begin)));
    let room = width.saturating_sub(text.width() + 2).min(40);
    if room < 5 {
        return cut(&text, width);
    }
    let share = over.saturating_mul(room as u64).checked_div(total).unwrap_or(0);
    let full = usize::try_from(share).unwrap_or(room).min(room);
    format!("{}{}  {text}", "━".repeat(full), "─".repeat(room - full))
}

fn whole_seconds(took: Duration) -> String {
    let seconds = took.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { duration(took) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(count: usize, name: &str, since: Instant) -> RunningLines {
        let running = |number: usize| Running {
            number: number as u64,
            name: name.to_owned(),
            since,
            message: String::new(),
            failure: None,
        };
        let id = |number: usize| TaskId::from(format!("task-{number}"));
        shown(&(0..count).map(|number| (id(number), running(number))).collect())
    }

    #[test]
    fn a_frame_shows_eight_that_run_and_the_bar() {
        let progress = Progress { failed: 2, ..Progress::new(40, 10, Instant::now()) };
        let (begin, now) = (progress.begin, progress.begin + Duration::from_secs(75));
        let lines = frame(&running(11, "a name \u{1b}[2J of some length", begin), &progress, now, (60, 23));
        insta::assert_snapshot!(lines.join("\n"), @r#"
           1m15s  task-0  a name  of some length
           1m15s  task-1  a name  of some length
           1m15s  task-2  a name  of some length
           1m15s  task-3  a name  of some length
           1m15s  task-4  a name  of some length
           1m15s  task-5  a name  of some length
           1m15s  task-6  a name  of some length
           1m15s  task-7  a name  of some length
          and 3 more
        ━━━━━──────────────────  10/40  2 failed  11 running  1m15s
        "#);
    }

    #[test]
    fn a_frame_fits_every_terminal() {
        let progress = Progress { failed: 1, ..Progress::new(1_000_000, 999_999, Instant::now()) };
        let now = progress.begin;
        for (width, height) in [(1, 1), (10, 2), (40, 5), (60, 23), (200, 50)] {
            for count in [0, 1, 8, 30] {
                let lines = frame(
                    &running(count, "漢字 and a name that is longer than forty columns", now),
                    &progress,
                    now,
                    (width, height),
                );
                assert!(lines.len() <= height && !lines.is_empty(), "{count} in {width}x{height}: {lines:?}");
                assert!(lines.iter().all(|line| line.width() < width.max(2)), "{lines:?}");
            }
        }
    }

    #[test]
    fn a_frame_is_erased_as_the_terminal_has_wrapped_it() {
        let mut screen = Screen { paint: Paint { is_on: false }, frame: vec![50, 10] };
        assert_eq!(screen.erase(25).as_str(), "\r\u{1b}[2A\u{1b}[J");
        assert!(screen.erase(25).is_empty());
    }
}
