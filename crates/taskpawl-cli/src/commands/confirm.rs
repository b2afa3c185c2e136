//! Approvals that the page asks for: a person at the terminal sees the questions and types the code that the page shows.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use taskpawl::{Approving, Error, Manager};
use taskpawl_web::{Ask, Decision};
use tokio::sync::mpsc;

use crate::app::App;
use crate::commands::question::{self, Extent};
use crate::error::CliError;
use crate::output::write_err;
use crate::person;
use crate::pin::{self, Pin};
use crate::shown::shown;
use crate::text::Paint;

/// Number of codes that may be typed for one ask.
const TRIES: usize = 3;

/// The note on a task that was approved this way.
const NOTE: &str = "approved on the page, with its code typed at the terminal of `taskpawl serve`";

/// The terminal of a person who may approve.
pub(super) struct Terminal {
    manager: Manager,
    pin: Option<Pin>,
    paint: Paint,
    width: Option<usize>,
}

impl Terminal {
    /// Returns the terminal, under the rules of `approve`; `None` where `approve` would be refused.
    pub(super) fn of(app: &App) -> Result<Option<Self>, CliError> {
        if person::refuse_other_callers(app, "approve").is_err() {
            return Ok(None);
        }
        let Ok(pin) = Pin::needed(app) else { return Ok(None) };
        let out = app.out();
        Ok(Some(Self { manager: app.manager()?.clone(), pin, paint: out.paint, width: out.width }))
    }

    /// Asks at the terminal, one ask after the other, until the page ends.
    pub(super) fn confirm(&self, mut asks: mpsc::Receiver<Ask>) {
        while let Some(ask) = asks.blocking_recv() {
            let decision = self.decide(&ask);
            let said = match &decision {
                Decision::Approved => "approved".to_owned(),
                Decision::Expired => "not approved: the right code was not typed in time".to_owned(),
                Decision::Refused(reason) => format!("not approved: {reason}"),
            };
            // A terminal that is gone shows nothing; the page has the decision.
            let _ = write_err(&shown![crate::text::clean_block(&said), "\n"]);
            ask.decide(decision);
        }
    }

    fn decide(&self, ask: &Ask) -> Decision {
        for request in &ask.questions {
            let text = question::text(request, Extent::Full, self.paint);
            // Nothing may be approved that was not shown.
            if write_err(&shown!["\n", text].wrapped(self.width)).is_err() {
                return Decision::Refused("the terminal is gone".to_owned());
            }
        }
        let Ok(terminal) = File::options().read(true).write(true).open("/dev/tty") else {
            return Decision::Refused("the terminal is gone".to_owned());
        };
        for _ in 0..TRIES {
            let Some(typed) = typed(&terminal, ask.until) else { return Decision::Expired };
            if is_code(&typed, &ask.code) {
                return self.approve(ask);
            }
        }
        Decision::Expired
    }

    fn approve(&self, ask: &Ask) -> Decision {
        if let Some(pin) = &self.pin {
            let typed = pin::type_in("PIN: ");
            let checked = typed.map(|typed| pin.check(&typed));
            if !matches!(checked, Some(Ok(()))) {
                return Decision::Refused("the PIN is wrong".to_owned());
            }
        }
        match self.give(ask) {
            Ok(()) => Decision::Approved,
            Err(error) => Decision::Refused(taskpawl_text::error_chain(&error)),
        }
    }

    /// Approves exactly the questions that were shown: a changed one has another hash.
    fn give(&self, ask: &Ask) -> Result<(), Error> {
        for request in &ask.questions {
            let ids = [request.task.to_string()];
            let approval = Approving { hash: Some(request.hash.clone()), ..Approving::default() };
            self.manager.approve(&ids, approval)?;
            self.manager.note(request.task.as_str(), NOTE)?;
        }
        Ok(())
    }
}

/// Compares without regard to case and spaces, which people add.
fn is_code(typed: &str, code: &str) -> bool {
    let letters = typed.chars().filter(|letter| !letter.is_whitespace() && *letter != '-');
    letters.flat_map(char::to_uppercase).eq(code.chars())
}

/// Reads a line from the terminal; `None` if there is none in time. Ctrl-C ends the server as usual meanwhile.
fn typed(mut terminal: &File, until: Instant) -> Option<String> {
    terminal.write_all(b"Code that the page shows: ").ok()?;
    let left = until.checked_duration_since(Instant::now())?;
    let mut files = [PollFd::new(terminal, PollFlags::IN)];
    let timeout = Timespec::try_from(left).ok()?;
    if poll(&mut files, Some(&timeout)).ok()? == 0 {
        return None;
    }
    let mut bytes = [0; 256];
    let count = terminal.read(&mut bytes).ok()?;
    let line = String::from_utf8_lossy(&bytes[..count]).trim().to_owned();
    (count > 0 && Instant::now() < until).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_people_type_it() {
        assert!(is_code("ab3 d5f", "AB3D5F") && is_code("AB3-D5F", "AB3D5F"));
        assert!(!is_code("AB3D5", "AB3D5F") && !is_code("", "AB3D5F") && !is_code("AB3D5FF", "AB3D5F"));
    }
}
