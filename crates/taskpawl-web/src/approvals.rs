//! Approvals of the page: a person types the code that the page shows at the terminal of the server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use serde::Deserialize;
use serde_json::json;
use taskpawl::Manager;
use taskpawl::model::advice::CommandLine;
use taskpawl::model::task::{ApprovalRequest, AskedCall};
use taskpawl::model::value::Map;
use tokio::sync::mpsc;

use crate::answer::{Problem, Reply};

/// Lifetime of a code.
const LIFETIME: Duration = Duration::from_secs(60);

/// Number of codes that are remembered after their end, so that the page can read how they ended.
const MAX_KEPT: usize = 32;

/// Letters and digits that are told apart at a glance.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The longest time for which a code approves questions that come up later.
const MAX_MINUTES: u64 = 10;

/// A question, with the answer that the page wants given.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedQuestion {
    /// The question, exactly as it is approved.
    pub request: ApprovalRequest,
    /// Arguments that replace those of its only call.
    pub args: Option<Map>,
    /// One of its options.
    pub answer: Option<String>,
}

/// Questions that the page wants approved.
#[derive(Debug)]
pub struct Ask {
    /// The questions.
    pub questions: Vec<AskedQuestion>,
    /// Also approve questions of the same plans and rules that come up within this time.
    pub window: Option<Duration>,
    /// The session of the page and its token, for the note on each task.
    pub opener: String,
    /// The code that the page shows.
    pub code: String,
    /// The time until which the code may be typed.
    pub until: Instant,
    slot: Slot,
}

impl Ask {
    /// Records the end, which the page shows.
    pub fn decide(self, decision: Decision) {
        self.slot.set(State::Ended(decision));
    }
}

/// The end of an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The code was typed, and the questions are approved.
    Approved,
    /// The code was not typed in time, or three wrong ones were.
    Expired,
    /// The questions could not be approved, for example because one has changed; with the reason.
    Refused(String),
}

#[derive(Debug, Clone)]
enum State {
    Open,
    Ended(Decision),
}

#[derive(Debug, Clone)]
struct Slot(Arc<Mutex<State>>);

impl Slot {
    fn set(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn get(&self) -> State {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The questions that a request names, each with the hash that the page has shown.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    questions: Vec<WantedQuestion>,
    /// Time in minutes for which the code holds, for questions of the same plans and rules.
    #[serde(default)]
    minutes: Option<u64>,
    /// The session of the page, which it has made up.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedQuestion {
    task: String,
    hash: String,
    #[serde(default)]
    args: Option<Map>,
    #[serde(default)]
    answer: Option<String>,
}

/// The asks of the page.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    /// The asks by id, with the time of their end.
    asks: Mutex<BTreeMap<String, (Instant, Slot)>>,
}

impl Approvals {
    /// Sends questions to the terminal, and returns the code for them.
    ///
    /// # Errors
    /// There is no terminal, another ask is open, or a question is not the one that the page has shown.
    pub(crate) fn ask(
        &self,
        manager: &Manager,
        terminal: Option<&mpsc::Sender<Ask>>,
        wanted: &Wanted,
        token: &str,
    ) -> Result<Reply, Problem> {
        let refused = |text: &str| Problem::new(StatusCode::CONFLICT, text);
        let terminal = terminal.ok_or_else(|| {
            refused(
                "approvals need a person at the terminal where `taskpawl serve` runs: use `taskpawl approve`",
            )
        })?;
        let questions = questions(manager, wanted)?;
        let window = wanted.window(&questions)?;
        let opener = format!("session {}, token {token}", session(wanted.session.as_deref()));
        let (id, code) = (uuid::Uuid::new_v4().simple().to_string(), new_code());
        let slot = Slot(Arc::new(Mutex::new(State::Open)));
        let until = Instant::now() + LIFETIME;
        let ask = Ask { questions, window, opener, code: code.clone(), until, slot: slot.clone() };
        // One ask at a time: a person at the terminal answers the one that they see.
        terminal.try_send(ask).map_err(|_| refused("another approval waits for its code"))?;
        let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        if asks.len() >= MAX_KEPT {
            asks.retain(|_, (until, _)| *until > Instant::now());
        }
        asks.insert(id.clone(), (until, slot));
        Ok(Reply::json(&json!({"id": id, "code": code, "seconds": LIFETIME.as_secs()})))
    }

    /// Returns the state of an ask.
    ///
    /// # Errors
    /// There is none with this id.
    pub(crate) fn state(&self, id: &str) -> Result<Reply, Problem> {
        let asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, slot) = asks.get(id).ok_or_else(|| Problem::missing("there is no such approval"))?;
        let (state, reason) = match slot.get() {
            State::Open if *until < Instant::now() => ("expired", None),
            State::Open => ("open", None),
            State::Ended(Decision::Approved) => ("approved", None),
            State::Ended(Decision::Expired) => ("expired", None),
            State::Ended(Decision::Refused(reason)) => ("refused", Some(reason)),
        };
        Ok(Reply::json(&json!({"state": state, "reason": reason})))
    }
}

/// Reads the wanted questions as they are now. Each must still be the one that the page has shown.
fn questions(manager: &Manager, wanted: &Wanted) -> Result<Vec<AskedQuestion>, Problem> {
    if wanted.questions.is_empty() {
        return Err(Problem::invalid("no question is named"));
    }
    let changed = |task: &str| {
        Problem::new(
            StatusCode::CONFLICT,
            format!("the question of `{task}` has changed or is answered: read it again"),
        )
    };
    let mut found = Vec::new();
    for WantedQuestion { task, hash, args, answer } in &wanted.questions {
        let request =
            manager.approval_request(task).map_err(|error| Problem::of(&error, &CommandLine::default()))?;
        let request = request.filter(|request| request.hash == *hash).ok_or_else(|| changed(task))?;
        let is_answer = |answer: &String| {
            request.options.contains(answer)
                || request.options.is_empty() && request.takes_text && !answer.is_empty()
        };
        if answer.as_ref().map_or(!request.is_plain(), |answer| !is_answer(answer)) {
            return Err(Problem::invalid(format!("`{task}` takes one of its options as the answer")));
        }
        if args.is_some() && request.calls.len() != 1 {
            return Err(Problem::invalid(format!(
                "`{task}` has not exactly one call whose arguments can change"
            )));
        }
        found.push(AskedQuestion { request, args: args.clone(), answer: answer.clone() });
    }
    Ok(found)
}

impl Wanted {
    /// Returns the time for which similar questions are approved as well. Only plain questions have similar ones: no question with options,
    /// with other arguments, or with access beyond the sandbox.
    fn window(&self, questions: &[AskedQuestion]) -> Result<Option<Duration>, Problem> {
        let Some(minutes) = self.minutes else { return Ok(None) };
        if !(1..=MAX_MINUTES).contains(&minutes) {
            return Err(Problem::invalid(format!("a code holds for 1 to {MAX_MINUTES} minutes")));
        }
        let is_plain = |asked: &AskedQuestion| asked.args.is_none() && is_repeatable(&asked.request);
        if !questions.iter().all(is_plain) {
            return Err(Problem::invalid(
                "only questions without options, changed arguments and access beyond the sandbox are approved for a time",
            ));
        }
        Ok(Some(Duration::from_secs(minutes * 60)))
    }
}

/// Returns whether a yes to a question may hold for similar ones that come up later: it has a plan, no options, nothing that models or
/// tools have decided, its calls ask for no access beyond the sandbox, and it does not concern a result, which is new each time.
pub fn is_repeatable(request: &ApprovalRequest) -> bool {
    let is_plain = |call: &AskedCall| {
        call.sandbox.is_none() && call.trusts.is_empty() && call.untrusted.iter().all(|value| value.is_data)
    };
    request.plan.is_some() && !request.after && request.is_plain() && request.calls.iter().all(is_plain)
}

/// Returns the session that a page has made up, as far as it is one.
fn session(given: Option<&str>) -> &str {
    let is_session = |text: &&str| {
        (1..=16).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    given.filter(is_session).unwrap_or("without a name")
}

/// Returns six random characters.
fn new_code() -> String {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    // The first six bytes of a random id are random as a whole; 32 characters divide 256 evenly.
    bytes[..6].iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_a_short_word_and_nothing_else() {
        assert_eq!(session(Some("ab12")), "ab12");
        for odd in [Some("a b"), Some("\u{1b}[31m"), Some("12345678901234567"), Some(""), None] {
            assert_eq!(session(odd), "without a name");
        }
    }

    #[test]
    fn codes_are_six_characters_that_differ() {
        let codes: std::collections::BTreeSet<String> = (0..100).map(|_| new_code()).collect();
        assert_eq!(codes.len(), 100);
        assert!(
            codes.iter().all(|code| code.len() == 6 && code.bytes().all(|byte| ALPHABET.contains(&byte)))
        );
    }
}
