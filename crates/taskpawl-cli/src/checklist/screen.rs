//! The terminal while a checklist is drawn on it, and its restoration afterwards.

use std::time::Duration;

use crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};

use crate::error::CliError;
use crate::output::write_out;
use crate::shown::{Control, Shown, shown};

/// The duration of one picture of the spinner.
pub(crate) const TURN: Duration = Duration::from_millis(300);

/// The whole terminal. Its previous state is restored when this is dropped, and before a panic is printed.
#[derive(Debug)]
pub(crate) struct Screen {
    last: Vec<Shown>,
}

impl Screen {
    /// Switches the terminal to raw mode and to the alternate screen.
    pub(crate) fn enter() -> Result<Self, CliError> {
        enable_raw_mode().map_err(CliError::Output)?;
        // Created before the next steps, so that an error in them restores the terminal by `Drop`.
        let screen = Self { last: Vec::new() };
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // A message on the alternate screen would disappear with it, so the terminal is restored first.
            give_back();
            before(panic);
        }));
        write_out(&Control::EnterScreen.into())?;
        Ok(screen)
    }

    /// Returns columns and lines.
    pub(crate) fn size() -> (usize, usize) {
        let (columns, lines) = size().unwrap_or_default();
        let or = |number: u16, default: usize| if number == 0 { default } else { usize::from(number) };
        (or(columns, 80), or(lines, 24))
    }

    /// Draws a frame in one write, to prevent flicker. A frame equal to the last one is skipped.
    pub(crate) fn draw(&mut self, lines: Vec<Shown>) -> Result<(), CliError> {
        if lines == self.last {
            return Ok(());
        }
        let mut frame = shown![Control::BeginFrame, Control::Home];
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                // In raw mode a line break alone does not move to the first column.
                frame.push(shown![Control::Return, "\n"]);
            }
            frame.push(shown![line, Control::EraseLine]);
        }
        frame.push(shown![Control::EraseBelow, Control::EndFrame]);
        write_out(&frame)?;
        self.last = lines;
        Ok(())
    }

    /// Forgets the drawn frame, after another program has written to the terminal.
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
    // If the terminal is gone, the error cannot be reported anywhere.
    let _ = write_out(&Control::LeaveScreen.into());
    let _ = disable_raw_mode();
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// The variable that marks the process which draws on the terminal of the test.
    const ON_STAGE: &str = "TASKPAWL_TEST_ON_STAGE";

    fn tmux(socket: &Path) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(socket).stdin(Stdio::null());
        tmux
    }

    fn said(socket: &Path, words: &[&str]) -> String {
        String::from_utf8(tmux(socket).args(words).output().unwrap().stdout).unwrap()
    }

    /// The test starts itself again on a tmux terminal, where it draws and then panics.
    #[test]
    fn a_panic_gives_the_terminal_back_and_is_read_on_it() {
        if std::env::var_os(ON_STAGE).is_some() {
            let mut screen = Screen::enter().unwrap();
            screen.draw(vec!["drawn in place".into()]).unwrap();
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
            taskpawl_fuzz::skip("tmux", "a panic on a terminal", "it is not installed");
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
