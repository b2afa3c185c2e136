//! Asks the person at the terminal about tasks that wait for a decision, while the run continues.

use std::io::BufRead as _;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use taskpawl::model::advice::Hint;
use taskpawl::model::task::{AGENT_TOOL, ApprovalRequest};
use taskpawl::{ApprovalVerdict, Approver};
use tokio::sync::{Mutex, mpsc};

use crate::app::App;
use crate::audit::{Action, Recorder};
use crate::caller::Caller;
use crate::commands::question::{self, Extent};
use crate::environment::is_in_foreground;
use crate::output::{columns_of_stderr, write_err};
use crate::pin::{Hidden, Pin};
use crate::report::ReportPause;
use crate::shown::{Shown, shown};
use crate::text::{Paint, clean, style};

/// Asks one question at a time on the terminal.
#[derive(Debug)]
pub(crate) struct Prompt {
    paint: Paint,
    pause: Option<ReportPause>,
    /// The PIN to type before the first decision, if one is required.
    pin: Option<Pin>,
    log: Option<Recorder>,
    /// Typed lines. The lock is held for a whole question, so that questions do not mix.
    keyboard: Mutex<Keyboard>,
}

/// The lines typed by the person.
#[derive(Debug, Default)]
struct Keyboard {
    /// Sent by a thread that reads standard input until its end. It cannot be stopped, because a blocked read
    /// cannot be cancelled.
    lines: Option<mpsc::UnboundedReceiver<String>>,
    is_at_end: bool,
    /// True if the PIN was already typed in this run.
    has_pin: bool,
}

/// The parsed meaning of a typed line.
#[derive(Debug, PartialEq)]
enum Typed {
    Verdict(ApprovalVerdict),
    Show,
    Unclear,
}

impl Prompt {
    /// Returns an approver for the person at the terminal. `None` for programs and agents, or if a required
    /// PIN is not set. `pause` stops the output of the run during a question.
    pub(crate) fn of_person(app: &App, pause: Option<ReportPause>) -> Option<Arc<dyn Approver>> {
        if !app.terminal().can_ask() || *app.caller() != Caller::Person {
            return None;
        }
        match Pin::needed(app) {
            Ok(pin) => {
                Some(Arc::new(Self::new(app.out().paint_err, pause, pin, Recorder::of(app).ok().flatten())))
            }
            Err(fault) => {
                let unasked = Hint::new(format!("questions stay open: decisions need the PIN: {fault}; "));
                let out = app.out();
                out.warn(&unasked.hint(fault.hint()).format_with(&*out.line));
                None
            }
        }
    }

    /// Returns an approver; `pause` stops the output of the run during a question.
    fn new(paint: Paint, pause: Option<ReportPause>, pin: Option<Pin>, log: Option<Recorder>) -> Self {
        Self { paint, pause, pin, log, keyboard: Mutex::default() }
    }

    /// Adds the decision to the log of decisions. It holds even if it cannot be logged: the store has it, too.
    fn log(&self, request: &ApprovalRequest, verdict: &ApprovalVerdict) {
        let action = match verdict {
            ApprovalVerdict::Approve { .. } => Action::Approve,
            ApprovalVerdict::Reject { .. } | ApprovalVerdict::SendBack { .. } => Action::Reject,
            ApprovalVerdict::SkipTask | ApprovalVerdict::Skip => return,
        };
        let Some(log) = &self.log else { return };
        if let Err(error) = log.record(action, request.task.as_str()) {
            say(&format!("  {}\n", error.message()).into());
        }
    }

    async fn ask(&self, keyboard: &mut Keyboard, request: &ApprovalRequest) -> ApprovalVerdict {
        // A line typed before the question was visible must not answer it.
        keyboard.forget();
        say(&shown!["\n", question::text(request, Extent::Short, self.paint)]);
        loop {
            say(&self.choices(request));
            let Some(line) = keyboard.line().await else {
                say(&"\n".into());
                return ApprovalVerdict::Skip;
            };
            match typed(line.trim(), request) {
                Typed::Verdict(ApprovalVerdict::Skip) => return ApprovalVerdict::Skip,
                Typed::Verdict(verdict) if self.has_pin(keyboard).await => return verdict,
                Typed::Verdict(_) => {}
                Typed::Show => say(&self.explained(request)),
                Typed::Unclear => say(&"  unknown choice; `?` explains the choices\n".into()),
            }
        }
    }

    /// Asks for the PIN once in a run, and returns whether it was correct.
    async fn has_pin(&self, keyboard: &mut Keyboard) -> bool {
        let Some(pin) = self.pin.as_ref().filter(|_| !keyboard.has_pin) else { return true };
        say(&"  PIN: ".into());
        let typed = keyboard.hidden_line().await.unwrap_or_default();
        // Checking a PIN is slow on purpose, and would block the only thread of the run.
        let (pin, checked) = (pin.clone(), tokio::task::spawn_blocking);
        let checked = checked(move || pin.check(typed.trim_end())).await;
        match checked {
            Ok(Ok(())) => keyboard.has_pin = true,
            Ok(Err(fault)) => say(&shown!["  ", fault.to_string(), "\n"]),
            Err(_) => say(&"  failed to check the PIN\n".into()),
        }
        keyboard.has_pin
    }

    fn choices(&self, request: &ApprovalRequest) -> Shown {
        let key = |key: &str, rest: &str| shown!["[", self.paint.style(style::BOLD, key), "]", rest];
        let options = (1..).zip(&request.options);
        let line = |(number, option): (u32, &String)| {
            shown!["  ", key(&number.to_string(), &format!(" {}", clean(option))), "\n"]
        };
        let options: Shown = options.map(line).collect();
        let yes = if request.takes_text { key("a", "nswer text") } else { key("a", "pprove") };
        let mut choices = if options.is_empty() { vec![yes] } else { Vec::new() };
        choices.push(key("r", "eject [reason]"));
        choices.extend(is_of_agent(request).then(|| key("b", "ack to the agent TEXT")));
        choices.extend([key("s", "kip"), key("l", "ater"), key("?", " show")]);
        shown![options, "  ", Shown::joined(choices, "  "), ": "]
    }

    /// Returns the full question and the effect of each choice.
    fn explained(&self, request: &ApprovalRequest) -> Shown {
        let whole = question::text(request, Extent::Full, self.paint);
        let is_new = whole != question::text(request, Extent::Short, self.paint);
        let whole = if is_new { shown!["\n", whole] } else { "  the whole question is above\n".into() };
        let yes = if request.takes_text {
            ("a", "answers `yes`, or the text after `a`".to_owned())
        } else if request.options.is_empty() {
            let effect = if request.after { "accepts the result" } else { "runs it as shown" };
            ("a", effect.to_owned())
        } else {
            ("a number", "runs it with that answer, which can also be typed itself".to_owned())
        };
        let no = if request.after { "fails" } else { "cancels" };
        let choices = [
            yes,
            ("r", format!("{no} it; text after `r` is the reason")),
            ("b", "sends it back to its agent, which goes on with the text after `b`".to_owned()),
            ("s", "skips the task: tasks that depend on it may start".to_owned()),
            ("l", format!("leaves it open, for a later run or for `{}`", question::first_answer(request))),
        ];
        let is_offered = |(key, _): &(&str, String)| *key != "b" || is_of_agent(request);
        let lines = choices.into_iter().filter(is_offered).map(|(key, what)| format!("  {key:<8}  {what}\n"));
        shown![whole, lines.collect::<String>()]
    }
}

#[async_trait]
impl Approver for Prompt {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalVerdict {
        let mut keyboard = self.keyboard.lock().await;
        // A background process that reads from the terminal is stopped by SIGTTIN, and its run with it.
        if keyboard.is_at_end || !is_in_foreground() {
            return ApprovalVerdict::Skip;
        }
        let mut stage = Stage::enter(self.pause.as_ref());
        let verdict = self.ask(&mut keyboard, request).await;
        stage.is_answered = true;
        self.log(request, &verdict);
        verdict
    }
}

/// Holds back the output of the run while a question is on the terminal.
struct Stage<'a> {
    pause: Option<&'a ReportPause>,
    is_answered: bool,
}

impl<'a> Stage<'a> {
    fn enter(pause: Option<&'a ReportPause>) -> Self {
        if let Some(pause) = pause {
            pause.close();
        }
        Self { pause, is_answered: false }
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // Also dropped when the run cancels the question, because the task was decided elsewhere.
        if !self.is_answered {
            say(&"\n  (no longer asked)\n".into());
        }
        if let Some(pause) = self.pause {
            pause.open();
        }
    }
}

impl Keyboard {
    /// Discards lines that were typed before the question.
    fn forget(&mut self) {
        if let Some(lines) = &mut self.lines {
            while lines.try_recv().is_ok() {}
        }
    }

    /// Reads a line without echo.
    async fn hidden_line(&mut self) -> Option<String> {
        let terminal = terminal();
        let hidden = terminal.as_ref().and_then(|terminal| Hidden::begin(terminal, false));
        let line = self.line().await;
        drop(hidden);
        say(&"\n".into());
        line
    }

    /// Waits for a line; `None` at the end of the input.
    async fn line(&mut self) -> Option<String> {
        let line = self.lines.get_or_insert_with(read_lines).recv().await;
        self.is_at_end = line.is_none();
        line
    }
}

/// Opens the controlling terminal, to turn its echo off.
fn terminal() -> Option<std::fs::File> {
    std::fs::File::options().read(true).write(true).open("/dev/tty").ok()
}

fn read_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    let read = move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    // If no thread can be started, the dropped sender acts as the end of the input.
    drop(std::thread::Builder::new().name("taskpawl-keyboard".to_owned()).spawn(read));
    lines
}

fn typed(line: &str, request: &ApprovalRequest) -> Typed {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
    let option = option_of(line, &request.options);
    // An option may be called `no` or `skip`: the options of the task take precedence over these words.
    match word.to_lowercase().as_str() {
        "r" | "reject" | "n" | "no" if option.is_none() => {
            Typed::Verdict(ApprovalVerdict::Reject { reason: rest.map(str::to_owned) })
        }
        "b" | "back" | "rework" if option.is_none() && is_of_agent(request) => match rest {
            Some(text) => Typed::Verdict(ApprovalVerdict::SendBack { text: text.to_owned() }),
            None => Typed::Unclear,
        },
        "s" | "skip" if option.is_none() && rest.is_none() => Typed::Verdict(ApprovalVerdict::SkipTask),
        "l" | "later" if option.is_none() => Typed::Verdict(ApprovalVerdict::Skip),
        "?" | "show" if option.is_none() => Typed::Show,
        "a" | "answer" | "approve" | "y" | "yes" if request.options.is_empty() => {
            Typed::Verdict(approve(rest))
        }
        _ => option.map_or(Typed::Unclear, |option| Typed::Verdict(approve(Some(option)))),
    }
}

/// Returns whether a question is about a result that an agent can correct.
fn is_of_agent(request: &ApprovalRequest) -> bool {
    request.results.iter().any(|result| result.tool == AGENT_TOOL)
}

fn approve(answer: Option<&str>) -> ApprovalVerdict {
    ApprovalVerdict::Approve { answer: answer.map(|answer| Value::String(answer.to_owned())), args: None }
}

/// Returns the option that a line names, by its text or else by its number.
fn option_of<'a>(line: &str, options: &'a [String]) -> Option<&'a str> {
    let by_number = line.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
    let option = options.iter().find(|option| option.as_str() == line).or(by_number);
    option.map(String::as_str)
}

fn say(text: &Shown) {
    // A question that cannot be printed is not answered and stays open.
    let _ = write_err(&text.wrapped(columns_of_stderr()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskpawl::model::value::TaskId;

    fn request(options: &[&str]) -> ApprovalRequest {
        ApprovalRequest {
            task: TaskId::from("a"),
            name: "a".to_owned(),
            plan: None,
            call: None,
            ask: None,
            why: None,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            takes_text: false,
            expires_at: None,
            on_expiry: None,
            hash: String::new(),
            after: false,
            calls: Vec::new(),
            results: Vec::new(),
            items: None,
        }
    }

    #[test]
    fn typed_lines_are_decisions_or_are_asked_again() {
        let reject = |reason: Option<&str>| {
            Typed::Verdict(ApprovalVerdict::Reject { reason: reason.map(str::to_owned) })
        };
        let yes = |answer: Option<&str>| Typed::Verdict(approve(answer));
        let plain = request(&[]);
        for (line, meant) in [
            ("a", yes(None)),
            ("yes", yes(None)),
            ("approve  by noon ", yes(Some("by noon"))),
            ("r", reject(None)),
            ("reject too late", reject(Some("too late"))),
            ("s", Typed::Verdict(ApprovalVerdict::SkipTask)),
            ("skip it", Typed::Unclear),
            ("l", Typed::Verdict(ApprovalVerdict::Skip)),
            ("later", Typed::Verdict(ApprovalVerdict::Skip)),
            ("?", Typed::Show),
            ("", Typed::Unclear),
            ("1", Typed::Unclear),
            ("apropve", Typed::Unclear),
        ] {
            assert_eq!(typed(line, &plain), meant, "{line}");
        }
        let colours = request(&["blue", "no", "3 or more"]);
        for (line, meant) in [
            ("1", yes(Some("blue"))),
            ("blue", yes(Some("blue"))),
            ("no", yes(Some("no"))),
            ("3 or more", yes(Some("3 or more"))),
            ("r", reject(None)),
            ("a", Typed::Unclear),
            ("yes", Typed::Unclear),
            ("0", Typed::Unclear),
            ("4", Typed::Unclear),
        ] {
            assert_eq!(typed(line, &colours), meant, "{line}");
        }
    }
}
