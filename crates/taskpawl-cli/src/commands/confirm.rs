//! Approvals that the page asks for: a person at the terminal sees the questions and types the code that the page shows.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use taskpawl::model::task::ApprovalRequest;
use taskpawl::tools::{Power, Ruling};
use taskpawl::{Approving, Error, Manager};
use taskpawl_text::revealed_line;
use taskpawl_web::{Ask, AskedQuestion, Decision, is_repeatable};
use tokio::sync::mpsc;

use crate::app::App;
use crate::audit::{Action, Recorder};
use crate::commands::question::{self, Extent};
use crate::error::CliError;
use crate::output::write_err;
use crate::person;
use crate::pin::{self, Pin};
use crate::shown::shown;
use crate::text::Paint;

/// Number of codes that may be typed for one ask.
const TRIES: usize = 3;

/// Time between two looks for questions that a code approves as well.
const LOOK: Duration = Duration::from_secs(1);

/// The terminal of a person who may approve.
pub(super) struct Terminal {
    manager: Manager,
    pin: Option<Pin>,
    paint: Paint,
    width: Option<usize>,
    /// The log of decisions.
    recorder: Option<Recorder>,
}

/// Questions that a typed code approves for a time: those of the same plans and rules.
struct Window {
    manager: Manager,
    recorder: Option<Recorder>,
    rules: BTreeSet<(Option<String>, Option<String>)>,
    until: Instant,
    note: String,
}

impl Terminal {
    /// Returns the terminal, under the rules of `approve`; `None` where `approve` would be refused.
    pub(super) fn of(app: &App) -> Result<Option<Self>, CliError> {
        if person::refuse_other_callers(app, "approve").is_err() {
            return Ok(None);
        }
        if app.policy()?.ruling(Power::Page).ruling == Ruling::Never {
            return Ok(None);
        }
        let Ok(pin) = Pin::needed(app) else { return Ok(None) };
        let out = app.out();
        let recorder = Recorder::of(app)?;
        Ok(Some(Self { manager: app.manager()?.clone(), pin, paint: out.paint, width: out.width, recorder }))
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
        for asked in &ask.questions {
            let mut text = question::text(&asked.request, Extent::Full, self.paint);
            if let Some(args) = &asked.args {
                let args = revealed_line(&Value::from(args.clone()).to_string());
                text.push(shown!["  with these arguments instead: ", args, "\n"]);
            }
            if let Some(answer) = &asked.answer {
                text.push(shown!["  with the answer: ", revealed_line(answer), "\n"]);
            }
            // Nothing may be approved that was not shown.
            if write_err(&shown!["\n", text].wrapped(self.width)).is_err() {
                return Decision::Refused("the terminal is gone".to_owned());
            }
        }
        if let Some(window) = ask.window {
            let minutes = window.as_secs() / 60;
            let text = format!(
                "\nThe code also approves questions of the same plans and rules for {minutes} minutes.\n"
            );
            let _ = write_err(&shown![text].wrapped(self.width));
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
            Ok(()) => {
                self.watch(ask);
                Decision::Approved
            }
            Err(error) => Decision::Refused(taskpawl_text::error_chain(&error)),
        }
    }

    /// Approves exactly the questions that were shown: a changed one has another hash.
    fn give(&self, ask: &Ask) -> Result<(), Error> {
        for AskedQuestion { request, args, answer } in &ask.questions {
            let answer = answer.clone().map(Value::from);
            let approval = Approving { hash: Some(request.hash.clone()), args: args.clone(), answer };
            approve(&self.manager, self.recorder.as_ref(), request, approval, &note(ask))?;
        }
        Ok(())
    }

    /// Starts the thread that approves similar questions for a time. It ends with the process at the latest.
    fn watch(&self, ask: &Ask) {
        let Some(window) = ask.window else { return };
        let rules = ask.questions.iter().map(|asked| rule(&asked.request)).collect();
        let (manager, recorder) = (self.manager.clone(), self.recorder.clone());
        let window = Window { manager, recorder, rules, until: Instant::now() + window, note: note(ask) };
        let thread = std::thread::Builder::new().name("taskpawl-window".to_owned());
        // Without the thread these questions wait, as all others do.
        let _ = thread.spawn(move || window.run());
    }
}

impl Window {
    fn run(self) {
        while Instant::now() < self.until {
            // A store that cannot be read now may be readable in a moment.
            for request in self.manager.approval_requests(&[]).unwrap_or_default() {
                if !is_repeatable(&request) || !self.rules.contains(&rule(&request)) {
                    continue;
                }
                let approval = Approving { hash: Some(request.hash.clone()), ..Approving::default() };
                if approve(&self.manager, self.recorder.as_ref(), &request, approval, &self.note).is_ok() {
                    let text = format!("approved {}, by the code of before", request.task);
                    let _ = write_err(&shown![crate::text::clean_block(&text), "\n"]);
                }
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// The plan and the rule of a question. A yes for a time holds for both alone.
fn rule(request: &ApprovalRequest) -> (Option<String>, Option<String>) {
    (request.plan.clone(), request.why.clone())
}

fn note(ask: &Ask) -> String {
    format!("approved on the page ({}), with its code typed at the terminal of `taskpawl serve`", ask.opener)
}

fn approve(
    manager: &Manager,
    recorder: Option<&Recorder>,
    request: &ApprovalRequest,
    approval: Approving,
    note: &str,
) -> Result<(), Error> {
    manager.approve(&[request.task.to_string()], approval)?;
    manager.note(request.task.as_str(), note)?;
    if let Some(recorder) = recorder {
        // The decision is made; `taskpawl audit` shows that the log lacks it.
        let _ = recorder.record(Action::Approve, request.task.as_str());
    }
    Ok(())
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
