//! The conversation with a planner: it proposes, the caller judges, and all problems go back in one list.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::Value;
use taskpawl_model::plan::plan_value;

use crate::answer::{Found, plan_in};
use crate::planner::{Ending, Message, Planner, PlannerError, Reply, Request, Role, TokenUsage};

/// The most answers that a planner gives for one plan.
pub const MAX_TURNS: u32 = 3;

/// The most problems that go back to a planner. The others are counted.
const MAX_LISTED: usize = 20;

/// The limits of a planning.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The most tokens of all answers together.
    pub max_tokens: u64,
    /// The most tasks of the plan, subtasks included.
    pub max_tasks: usize,
    /// The longest duration of all answers together.
    pub timeout: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_tokens: 32_000, max_tasks: 20, timeout: Duration::from_secs(5 * 60) }
    }
}

/// An accepted plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The plan as the planner wrote it.
    pub plan: Value,
    /// The number of answers.
    pub turns: u32,
    /// The number of requests.
    pub requests: u32,
    /// The consumption.
    pub usage: TokenUsage,
}

/// The reason why no answer was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The last allowed answer still has problems.
    Turns,
    /// The planner gave the same answer again.
    SameAnswer,
    /// An answer was cut off.
    CutOff,
    /// The planner declined, with its words.
    Declined(String),
    /// All tokens are spent.
    Tokens,
}

/// A plan that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPlan {
    /// Its text.
    pub text: String,
    /// All its problems.
    pub problems: Vec<String>,
}

/// A planning without an accepted plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The reason.
    pub why: Why,
    /// The answer with the fewest problems; `None` if none had a plan.
    pub best: Option<RefusedPlan>,
    /// The number of answers.
    pub turns: u32,
    /// The number of requests.
    pub requests: u32,
    /// The consumption.
    pub usage: TokenUsage,
}

/// The failure of a planning.
#[derive(Debug)]
pub enum ProposeError<E> {
    /// No plan was accepted.
    Refused(Box<Refusal>),
    /// The planner gave no answer.
    Planner(PlannerError),
    /// The caller could not judge a plan.
    Judge(E),
}

impl<E> From<PlannerError> for ProposeError<E> {
    fn from(error: PlannerError) -> Self {
        Self::Planner(error)
    }
}

/// Asks a planner until `judge` returns no problems for the text of a plan.
///
/// # Errors
/// The planner fails, or none of its answers is accepted.
pub fn propose<E>(
    planner: &dyn Planner,
    mut messages: Vec<Message>,
    schema: &Value,
    budget: Budget,
    mut judge: impl FnMut(&str) -> Result<Vec<String>, E>,
) -> Result<Proposal, ProposeError<E>> {
    let deadline = Instant::now() + budget.timeout;
    let mut so_far = SoFar::default();
    loop {
        let left = budget.max_tokens.saturating_sub(so_far.usage.output);
        if left == 0 {
            return Err(so_far.refused(Why::Tokens));
        }
        let request =
            Request { messages: &messages, schema, max_tokens: left, limit: budget.timeout, deadline };
        let reply = planner.ask(&request)?;
        so_far.count(&reply);
        let text = match so_far.plan_of(&reply) {
            Ok(text) => text,
            Err(why) => return Err(so_far.refused(why)),
        };
        let problems = problems_of(text, budget.max_tasks, &mut judge).map_err(ProposeError::Judge)?;
        if problems.is_empty() {
            let plan = plan_value(text).unwrap_or_default();
            let SoFar { turns, requests, usage, .. } = so_far;
            return Ok(Proposal { plan, turns, requests, usage });
        }
        let listed = list(&problems);
        so_far.note(text, problems);
        if so_far.turns == MAX_TURNS {
            return Err(so_far.refused(Why::Turns));
        }
        messages.push(Message::new(Role::Assistant, text));
        messages.push(Message::new(Role::User, listed));
    }
}

/// Returns the problems of a plan: those of its size, then those that the caller finds.
fn problems_of<E>(
    text: &str,
    max_tasks: usize,
    judge: &mut impl FnMut(&str) -> Result<Vec<String>, E>,
) -> Result<Vec<String>, E> {
    let mut problems = Vec::new();
    if let Ok(plan) = plan_value(text) {
        let count = count(&plan["tasks"]);
        if count > max_tasks {
            problems.push(format!("tasks: {count} tasks, and at most {max_tasks} are allowed"));
        }
    }
    problems.extend(judge(text)?);
    Ok(problems)
}

fn count(tasks: &Value) -> usize {
    let tasks = tasks.as_array().into_iter().flatten();
    tasks.map(|task| 1 + count(&task["subtasks"])).sum()
}

/// Returns the message with all problems of an answer.
fn list(problems: &[String]) -> String {
    let mut text = "The plan is refused:\n".to_owned();
    for problem in problems.iter().take(MAX_LISTED) {
        let _ = writeln!(text, "- {problem}");
    }
    if problems.len() > MAX_LISTED {
        let _ = writeln!(text, "- and {} more", problems.len() - MAX_LISTED);
    }
    text + "Give the whole plan again with these problems fixed. Change nothing else."
}

/// The answers so far.
#[derive(Debug, Default)]
struct SoFar {
    turns: u32,
    requests: u32,
    usage: TokenUsage,
    last: Option<String>,
    best: Option<RefusedPlan>,
}

impl SoFar {
    fn count(&mut self, reply: &Reply) {
        self.turns += 1;
        self.requests += reply.requests;
        self.usage.add(reply.usage);
    }

    /// Returns the plan in an answer, or the reason why the planning ends.
    fn plan_of<'r>(&mut self, reply: &'r Reply) -> Result<&'r str, Why> {
        match &reply.ending {
            Ending::Declined(words) => return Err(Why::Declined(words.clone())),
            Ending::CutOff => return Err(Why::CutOff),
            Ending::Complete => {}
        }
        let Found::Plan(text) = plan_in(&reply.text) else { return Err(Why::CutOff) };
        if self.last.as_deref() == Some(text) {
            return Err(Why::SameAnswer);
        }
        self.last = Some(text.to_owned());
        Ok(text)
    }

    fn note(&mut self, text: &str, problems: Vec<String>) {
        // A later answer with as many problems has read more of them.
        if self.best.as_ref().is_none_or(|best| problems.len() <= best.problems.len()) {
            self.best = Some(RefusedPlan { text: text.to_owned(), problems });
        }
    }

    fn refused<E>(self, why: Why) -> ProposeError<E> {
        let Self { turns, requests, usage, best, last: _ } = self;
        ProposeError::Refused(Box::new(Refusal { why, best, turns, requests, usage }))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use super::*;

    /// Gives prepared answers, and records the last message of each request.
    #[derive(Debug)]
    struct Script(Mutex<Vec<Reply>>, Mutex<Vec<String>>);

    impl Script {
        fn new(answers: &[&str]) -> Self {
            Self::of(answers.iter().map(|text| reply(text, Ending::Complete)).collect())
        }

        fn of(mut replies: Vec<Reply>) -> Self {
            replies.reverse();
            Self(Mutex::new(replies), Mutex::default())
        }
    }

    fn reply(text: &str, ending: Ending) -> Reply {
        let usage = TokenUsage { input: 10, output: 100, cost: None };
        Reply { text: text.to_owned(), ending, usage, requests: 1 }
    }

    impl Planner for Script {
        fn name(&self) -> String {
            "script".to_owned()
        }

        fn ask(&self, request: &Request<'_>) -> Result<Reply, PlannerError> {
            self.1.lock().unwrap().push(request.messages.last().unwrap().text.clone());
            Ok(self.0.lock().unwrap().pop().unwrap())
        }
    }

    /// Refuses plans whose tasks have the word `bad`, once for each.
    #[expect(clippy::unnecessary_wraps, reason = "the signature of judges")]
    fn judge(text: &str) -> Result<Vec<String>, Infallible> {
        Ok(text.match_indices("bad").map(|(at, _)| format!("byte {at}: bad")).collect())
    }

    fn ask(script: &Script, budget: Budget) -> Result<Proposal, Refusal> {
        let goal = vec![Message::new(Role::User, "goal")];
        propose(script, goal, &Value::Null, budget, judge).map_err(|error| match error {
            ProposeError::Refused(refusal) => *refusal,
            other @ (ProposeError::Planner(_) | ProposeError::Judge(_)) => panic!("{other:?}"),
        })
    }

    #[test]
    fn all_problems_go_back_until_a_plan_is_accepted() {
        let script =
            Script::new(&["{\"tasks\": [\"bad\", \"bad\"]}", "{\"tasks\": [\"bad\"]}", "{\"tasks\": []}"]);
        let proposal = ask(&script, Budget::default()).unwrap();
        assert_eq!((proposal.turns, proposal.requests, proposal.usage.output), (3, 3, 300));
        let asked = script.1.lock().unwrap();
        assert_eq!(asked[1].matches("bad").count(), 2, "{}", asked[1]);
        assert!(asked[2].ends_with("Change nothing else."), "{}", asked[2]);
    }

    #[test]
    fn a_planning_ends_with_the_best_refused_plan() {
        let (two, one) = ("{\"tasks\": [\"bad\", \"bad\"]}", "{\"tasks\": [\"bad\"]}");
        for (answers, why, turns, problems) in [
            (vec![two, one, "{\"tasks\": [\"bad\", \"bad\", \"bad\"]}"], Why::Turns, 3, 1),
            (vec![two, two], Why::SameAnswer, 2, 2),
            (vec![two, "{\"tasks\": [\"bad"], Why::CutOff, 2, 2),
        ] {
            let refusal = ask(&Script::new(&answers), Budget::default()).unwrap_err();
            assert_eq!((refusal.why, refusal.turns), (why, turns), "{answers:?}");
            assert_eq!(refusal.best.unwrap().problems.len(), problems, "{answers:?}");
        }
    }

    #[test]
    fn a_planner_that_declines_or_is_cut_off_is_not_asked_again() {
        for (ending, why) in [
            (Ending::Declined("no".to_owned()), Why::Declined("no".to_owned())),
            (Ending::CutOff, Why::CutOff),
        ] {
            let refusal =
                ask(&Script::of(vec![reply("{\"tasks\": []}", ending)]), Budget::default()).unwrap_err();
            assert_eq!((refusal.why, refusal.turns, refusal.best), (why, 1, None));
        }
    }

    #[test]
    fn limits_of_tokens_and_tasks_hold() {
        let script = Script::new(&["{\"tasks\": [\"bad\"]}"]);
        let refusal = ask(&script, Budget { max_tokens: 100, ..Budget::default() }).unwrap_err();
        assert_eq!(refusal.why, Why::Tokens);
        let many = r#"{"tasks": [{"id": "a", "subtasks": [{"id": "b"}]}, {"id": "c"}]}"#;
        let refusal =
            ask(&Script::new(&[many, many]), Budget { max_tasks: 2, ..Budget::default() }).unwrap_err();
        assert_eq!(refusal.best.unwrap().problems, ["tasks: 3 tasks, and at most 2 are allowed"]);
    }
}
