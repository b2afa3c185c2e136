//! The terminal while a checklist is drawn on it, and how it was before.

use std::io::{self, Write as _};
use std::time::Duration;

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};

use crate::output::write_out;

/// How long one picture of the spinner is shown.
pub(crate) const TURN: Duration = Duration::from_millis(300);

/// Terminals that know it show everything between these at once; others ignore them.
const BEGIN_FRAME: &str = "\u{1b}[?2026h";
const END_FRAME: &str = "\u{1b}[?2026l";

/// The whole terminal. It is as it was before when this is dropped, and when something panics.
#[derive(Debug)]
pub(crate) struct Screen {
    last: Vec<String>,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        // From here on the terminal is given back, whatever happens.
        let screen = Self { last: Vec::new() };
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // What is printed on the other screen would be gone with it.
            give_back();
            before(panic);
        }));
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// Returns columns and lines.
    pub(crate) fn size() -> (usize, usize) {
        let (columns, lines) = size().unwrap_or_default();
        let or = |number: u16, default: usize| if number == 0 { default } else { usize::from(number) };
        (or(columns, 80), or(lines, 24))
    }

    /// Draws a frame in one piece, so that nothing flickers.
    pub(crate) fn draw(&mut self, lines: Vec<String>) -> io::Result<()> {
        if lines == self.last {
            return Ok(());
        }
        let rows: Vec<String> = lines.iter().map(|line| format!("{line}\u{1b}[K")).collect();
        write_out(&format!("{BEGIN_FRAME}\u{1b}[H{}\u{1b}[J{END_FRAME}", rows.join("\r\n")))?;
        self.last = lines;
        Ok(())
    }

    /// Forgets what is on the terminal: somebody else has changed it.
    pub(crate) fn forget(&mut self) {
        self.last.clear();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    // There is nobody to tell when the terminal is gone.
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
    let _ = io::stdout().flush();
}
