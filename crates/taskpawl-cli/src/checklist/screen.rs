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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// Says that this process is the program on the terminal.
    const ON_STAGE: &str = "TASKPAWL_TEST_ON_STAGE";

    fn tmux(socket: &Path) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(socket).stdin(Stdio::null());
        tmux
    }

    fn said(socket: &Path, words: &[&str]) -> String {
        String::from_utf8(tmux(socket).args(words).output().unwrap().stdout).unwrap()
    }

    /// It runs itself again on a terminal of tmux, where it draws and then panics.
    #[test]
    fn a_panic_gives_the_terminal_back_and_is_read_on_it() {
        if std::env::var_os(ON_STAGE).is_some() {
            let mut screen = Screen::enter().unwrap();
            screen.draw(vec!["drawn in place".to_owned()]).unwrap();
            panic!("something is wrong");
        }
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("tmux");
        let name = "checklist::screen::tests::a_panic_gives_the_terminal_back_and_is_read_on_it";
        let itself = std::env::current_exe().unwrap();
        let program = format!("{ON_STAGE}=1 '{}' --exact {name} --nocapture", itself.display());
        let script = format!("{program}; echo [exit $?]; stty -a; read x");
        let started = tmux(&socket)
            .env("LC_ALL", "C.UTF-8")
            .args(["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", &script])
            .status();
        if started.is_err() {
            println!("SKIPPED: a panic on a terminal: tmux is not installed");
            return;
        }
        let end = Instant::now() + Duration::from_mins(1);
        let mut screen = String::new();
        while !screen.contains("cs8") {
            assert!(Instant::now() < end, "it never came:\n{screen}");
            std::thread::yield_now();
            screen = said(&socket, &["capture-pane", "-p"]);
        }
        let state = said(&socket, &["display-message", "-p", "#{cursor_flag} #{alternate_on}"]);
        said(&socket, &["kill-server"]);
        assert!(screen.contains("something is wrong") && screen.contains("[exit 101]"), "{screen}");
        assert!(!screen.contains("drawn in place"), "the other screen is left: {screen}");
        assert!(screen.contains(" icanon") && screen.contains(" echo "), "keys are as before: {screen}");
        assert_eq!(state.trim(), "1 0");
    }
}
