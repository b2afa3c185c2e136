//! Reference interpreter: predicts the end of a random plan from the description of the constructs alone.
//!
//! It keeps no counters and no queues. It evaluates every task again and again, to see if it starts and how it ends,
//! until nothing more follows. It shares no code with the rules of the model, nor with its expressions.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Status, Trigger};

use crate::plans::{Fact, Facts, RandomCall, RandomPlan, RandomTask, Script, Template, Verdict, until};

/// Ids of a task or list item, and of one of its calls.
pub type CallName = (String, String);

/// Predicted end of a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expected {
    /// Final status of each task and list item.
    pub states: BTreeMap<String, Status>,
    /// Smallest and largest number of starts of each call.
    pub starts: BTreeMap<CallName, (u32, u32)>,
    /// Results of the calls of successful tasks.
    pub results: BTreeMap<CallName, Value>,
    /// Number of occurrences of each situation, to prove that the random plans cover all of them.
    pub covered: BTreeMap<&'static str, u64>,
}

/// Combined effect of the parent, the trigger, the dependencies, the condition and the approval of a task.
#[derive(Debug, Clone, PartialEq)]
enum Opening {
    Opens,
    /// The task starts, once for each of these items.
    Items(Vec<Value>),
    Blocks,
    Skips,
    Cancels,
    Fails,
}

/// Outcome of the calls of a task or item.
#[derive(Debug, Clone)]
struct Ran {
    status: Status,
    /// Smallest and largest number of starts by call; below, the results of the last round by call.
    starts: Vec<(u32, u32)>,
    results: Vec<Value>,
    /// Positions of the tasks that its calls created.
    made: Vec<usize>,
}

/// Outcome of one call.
enum Came {
    Skipped,
    Good(Value, u32),
    Bad(u32),
    Rejected,
}

struct Interpreter<'p> {
    plan: &'p RandomPlan,
    made: BTreeSet<usize>,
    openings: BTreeMap<usize, Opening>,
    facts: BTreeMap<usize, Fact>,
    expected: Expected,
    covered: RefCell<BTreeMap<&'static str, u64>>,
}

/// Returns the end of a plan in which every task that may start does, and all decisions are as scripted.
pub fn interpret(plan: &RandomPlan) -> Expected {
    let made = (0..plan.tasks.len()).filter(|position| plan.tasks[*position].made_by.is_none()).collect();
    let (openings, facts, expected) = (BTreeMap::new(), BTreeMap::new(), Expected::default());
    let covered = RefCell::default();
    let mut interpreter = Interpreter { plan, made, openings, facts, expected, covered };
    while interpreter.goes_on() {}
    interpreter.expected()
}

impl Interpreter<'_> {
    /// Evaluates every task once; returns whether anything new became known.
    fn goes_on(&mut self) -> bool {
        let before = (self.openings.len(), self.facts.len(), self.made.len());
        for position in self.made.clone() {
            if !self.openings.contains_key(&position)
                && let Some(opening) = self.opening(position)
            {
                self.openings.insert(position, opening);
            }
            if !self.facts.contains_key(&position)
                && let Some(fact) = self.end(position)
            {
                self.facts.insert(position, fact);
            }
        }
        before != (self.openings.len(), self.facts.len(), self.made.len())
    }

    fn expected(mut self) -> Expected {
        for position in self.made {
            let status = self.facts.get(&position).map_or(Status::Todo, |fact| fact.status);
            self.expected.states.insert(RandomPlan::id(position).to_string(), status);
        }
        self.expected.covered = self.covered.into_inner();
        self.expected
    }

    fn note(&self, situation: &'static str) {
        *self.covered.borrow_mut().entry(situation).or_default() += 1;
    }

    fn opening(&self, position: usize) -> Option<Opening> {
        let task = &self.plan.tasks[position];
        if let Some(parent) = task.parent {
            match self.openings.get(&parent)? {
                Opening::Opens => {}
                // Subtasks of a task that failed before it started stay waiting.
                Opening::Fails | Opening::Items(_) => return None,
                shut @ (Opening::Blocks | Opening::Skips | Opening::Cancels) => return Some(shut.clone()),
            }
        }
        let opening = self.gate(task)?;
        if opening != Opening::Opens {
            return Some(opening);
        }
        let facts = self.facts_for(position, None);
        match task.when.as_ref().map(|when| when.holds(&facts)) {
            None => {}
            Some(Some(true)) => self.note("condition holds"),
            Some(Some(false)) => {
                self.note("condition does not hold");
                return Some(Opening::Skips);
            }
            Some(None) => {
                self.note("condition cannot be evaluated");
                return Some(Opening::Fails);
            }
        }
        // An approval comes after the condition: a task whose condition does not hold is never asked about.
        match task.approval.as_ref().map(|decision| (decision.verdict, decision.is_question)) {
            None => {}
            Some((Verdict::Granted(_), true)) => self.note("answered question"),
            Some((Verdict::Granted(_), false)) => self.note("granted"),
            Some((verdict, _)) => {
                self.note(if verdict == Verdict::Expired { "expired" } else { "rejected" });
                return Some(Opening::Cancels);
            }
        }
        Some(task.items.as_ref().map_or(Opening::Opens, |items| self.list(&items.list, &facts)))
    }

    fn list(&self, list: &Template, facts: &Facts) -> Opening {
        let Some(Value::Array(items)) = list.value(facts) else {
            self.note("no list");
            return Opening::Fails;
        };
        self.note(match (items.is_empty(), list) {
            (true, _) => "empty list",
            (false, Template::Given(_)) => "list of items",
            (false, Template::Lone(_) | Template::Text(..)) => "list from a result",
        });
        Opening::Items(items)
    }

    /// Returns the effect of the trigger; `None` while it is undecided.
    fn gate(&self, task: &RandomTask) -> Option<Opening> {
        // Dependencies that another call creates exist once that call has ended; until then they do not count.
        let needs: Vec<&usize> = task.needs.iter().filter(|on| self.made.contains(on)).collect();
        let known: Vec<Status> =
            needs.iter().filter_map(|on| self.facts.get(on)).map(|fact| fact.status).collect();
        let all_known = known.len() == needs.len();
        let any = |wanted: &[Status]| known.iter().any(|state| wanted.contains(state));
        let has_failed = any(&[Status::Failed, Status::Blocked, Status::Cancelled]);
        match task.trigger {
            Trigger::AllDone if has_failed => Some(Opening::Blocks),
            Trigger::AllDone | Trigger::AllFinished => all_known.then_some(Opening::Opens),
            Trigger::AnyDone if any(&[Status::Done]) => Some(Opening::Opens),
            Trigger::AnyDone => all_known.then_some(Opening::Blocks),
            Trigger::AnyFailed if has_failed => Some(Opening::Opens),
            Trigger::AnyFailed => all_known.then_some(Opening::Skips),
        }
    }

    fn facts_for(&self, position: usize, item: Option<(usize, Value)>) -> Facts {
        let approval = self.plan.tasks[position].approval.as_ref();
        let answer = approval.and_then(|decision| match decision.verdict {
            Verdict::Granted(answer) if decision.is_question => Some(json!(answer)),
            Verdict::Granted(_) => Some(json!(true)),
            Verdict::Rejected | Verdict::Expired => None,
        });
        let own = answer.into_iter().map(|answer| ("approval".to_owned(), answer)).collect();
        Facts { params: self.plan.params.clone(), tasks: self.facts.clone(), own, item }
    }

    fn end(&mut self, position: usize) -> Option<Fact> {
        let status = match self.openings.get(&position)?.clone() {
            Opening::Blocks => Status::Blocked,
            Opening::Skips => Status::Skipped,
            Opening::Cancels => Status::Cancelled,
            Opening::Fails => Status::Failed,
            Opening::Items(items) => return Some(self.end_items(position, items)),
            Opening::Opens => return self.end_one(position),
        };
        Some(self.nothing(position, status))
    }

    /// Returns the facts about a task that produced no results.
    fn nothing(&self, position: usize, status: Status) -> Fact {
        let task = &self.plan.tasks[position];
        let names = task.calls().iter().enumerate().map(|(number, call)| call.name(number));
        Fact {
            status,
            result: Value::Null,
            results: if task.items.is_some() { Vec::new() } else { vec![Value::Null; task.calls().len()] },
            context: names.map(|name| (name, Value::Null)).collect(),
        }
    }

    fn end_items(&mut self, position: usize, items: Vec<Value>) -> Fact {
        let mut results = Vec::new();
        let mut status = Status::Done;
        for (index, item) in items.into_iter().enumerate() {
            let id = format!("{}.{index}", RandomPlan::id(position));
            let facts = self.facts_for(position, Some((index, item)));
            let (ended, result) = self.do_script(position, &id, &facts);
            results.push(result);
            if ended == Status::Failed {
                self.note("failing item");
                status = Status::Blocked;
            }
            self.expected.states.insert(id, ended);
        }
        let nothing = self.nothing(position, status);
        if status == Status::Done { Fact { results, ..nothing } } else { nothing }
    }

    fn end_one(&mut self, position: usize) -> Option<Fact> {
        let below: Vec<Option<Status>> = (self.plan.subtasks(position))
            .map(|below| self.facts.get(&below).map(|fact| fact.status))
            .collect();
        let is_bad = |state: &Option<Status>| matches!(state, Some(Status::Failed | Status::Blocked));
        if below.iter().any(is_bad) {
            return Some(self.nothing(position, Status::Blocked));
        }
        if below.iter().any(Option::is_none) {
            return None;
        }
        let nothing = self.nothing(position, Status::Done);
        if matches!(self.plan.tasks[position].script, Script::Manual { .. }) && !below.is_empty() {
            return Some(nothing);
        }
        let (id, facts) = (RandomPlan::id(position).to_string(), self.facts_for(position, None));
        let (status, result) = self.do_script(position, &id, &facts);
        if status != Status::Done {
            return Some(Fact { status, ..nothing });
        }
        let task = &self.plan.tasks[position];
        let of_call = |number: usize| {
            let name = (id.clone(), format!("c{number}"));
            self.expected.results.get(&name).cloned().unwrap_or_default()
        };
        let results: Vec<Value> = (0..task.calls().len()).map(of_call).collect();
        let names = task.calls().iter().enumerate().map(|(number, call)| call.name(number));
        Some(Fact { status, result, context: names.zip(results.clone()).collect(), results })
    }

    /// Executes the script of a task or item. Returns the final status and the result.
    fn do_script(&mut self, position: usize, id: &str, facts: &Facts) -> (Status, Value) {
        let ran = match &self.plan.tasks[position].script {
            Script::Milestone => return (Status::Done, Value::Null),
            Script::Manual { good: false, .. } => return (Status::Failed, Value::Null),
            Script::Manual { value, .. } => return (Status::Done, value.clone()),
            Script::Calls { .. } => self.run(&self.plan.tasks[position], facts.clone()),
        };
        self.made.extend(&ran.made);
        for (number, starts) in ran.starts.iter().enumerate() {
            let name = (id.to_owned(), format!("c{number}"));
            self.expected.starts.insert(name.clone(), *starts);
            if ran.status == Status::Done && !ran.results[number].is_null() {
                self.expected.results.insert(name, ran.results[number].clone());
            }
        }
        let result = if ran.status == Status::Done { ran.results.last().cloned() } else { None };
        (ran.status, result.unwrap_or_default())
    }

    /// Runs the calls of a task, round by round.
    fn run(&self, task: &RandomTask, mut facts: Facts) -> Ran {
        self.note_task(task);
        let count = task.calls().len();
        let mut ran =
            Ran { status: Status::Done, starts: vec![(0, 0); count], results: Vec::new(), made: Vec::new() };
        for round in 0..task.rounds.as_ref().map_or(1, |rounds| rounds.most) {
            ran.results = vec![Value::Null; count];
            self.run_round(task, round, &mut facts, &mut ran);
            if ran.status != Status::Done {
                return ran;
            }
            let is_over = |enough| until(task, enough).holds(&facts) == Some(true);
            let Some(rounds) = &task.rounds else { return ran };
            if is_over(rounds.enough) {
                self.note("rounds that have enough");
                return ran;
            }
        }
        self.note("rounds that never have enough");
        ran.status = Status::Failed;
        ran
    }

    fn note_task(&self, task: &RandomTask) {
        let has = [
            (task.is_parallel() && task.calls().len() > 1, "parallel"),
            (task.timeout.is_some(), "task timeout"),
            (!task.resources.is_empty(), "resources"),
            (!task.writes.is_empty(), "writes"),
            (task.is_cached, "cached"),
        ];
        has.into_iter().filter(|(has, _)| *has).for_each(|(_, situation)| self.note(situation));
    }

    fn run_round(&self, task: &RandomTask, round: u32, facts: &mut Facts, ran: &mut Ran) {
        for (number, call) in task.calls().iter().enumerate() {
            facts.own.remove(&call.name(number));
        }
        let before = ran.starts.clone();
        for (number, call) in task.calls().iter().enumerate() {
            let (came, mut result) = (self.call(task, call, round, facts), Value::Null);
            let starts = match came {
                Came::Skipped => 0,
                Came::Good(value, starts) => {
                    ran.made.extend(&call.makes);
                    result = value;
                    starts
                }
                Came::Bad(starts) => {
                    ran.status = Status::Failed;
                    starts
                }
                Came::Rejected => {
                    ran.status = Status::Cancelled;
                    0
                }
            };
            ran.starts[number] = (before[number].0 + starts, before[number].1 + starts);
            facts.own.insert(call.name(number), result.clone());
            ran.results[number] = result;
            if ran.status != Status::Done && !task.is_parallel() {
                return;
            }
        }
        if ran.status == Status::Failed {
            // When a parallel call fails, the others may not have started yet and then never do. So the smallest number
            // of starts is that before the round.
            for (number, starts) in ran.starts.iter_mut().enumerate() {
                starts.0 = before[number].0;
            }
        }
    }

    fn call(&self, task: &RandomTask, call: &RandomCall, round: u32, facts: &Facts) -> Came {
        match call.when.as_ref().map_or(Some(true), |when| when.holds(facts)) {
            Some(true) => {}
            Some(false) => {
                self.note("call condition does not hold");
                return Came::Skipped;
            }
            None => return Came::Bad(0),
        }
        let Some(value) = call.value.value(facts) else {
            self.note("argument is missing");
            return Came::Bad(0);
        };
        match call.approval.as_ref().map(|decision| decision.verdict) {
            None => {}
            Some(Verdict::Granted(_)) => self.note("granted call"),
            Some(Verdict::Rejected | Verdict::Expired) => {
                self.note("rejected call");
                return Came::Rejected;
            }
        }
        let (is_good, starts) = self.starts(task, call, value == "bad");
        if !is_good {
            return Came::Bad(starts);
        }
        if call.circle.is_some() {
            self.note("refused circle");
            return Came::Bad(starts);
        }
        let mut result = json!({"value": value, "round": round});
        if !call.makes.is_empty() {
            self.note("made tasks");
            result["tasks"] = self.plan.made(call);
        }
        Came::Good(result, starts)
    }

    /// Returns whether a call succeeds in a round, and the number of its starts.
    fn starts(&self, task: &RandomTask, call: &RandomCall, is_bad: bool) -> (bool, u32) {
        let (fails, class) = if is_bad { (u32::MAX, "failed") } else { (call.fails, call.class) };
        let retry = call.retry.as_ref().or(task.retry.as_ref());
        let matches = retry.is_some_and(|retry| retry.on.is_empty() || retry.on.contains(&class));
        // The timeout of a task ends with the first call that never finishes, so that call is not retried.
        let is_tried_again = matches && task.timeout.is_none();
        let attempts = retry.filter(|_| is_tried_again).map_or(1, |retry| retry.attempts);
        let is_good = fails < attempts;
        if fails > 0 {
            self.note(match (retry.is_some(), matches, is_good) {
                (true, true, true) => "retry that helps",
                (true, true, false) => "retry that does not help",
                (true, false, _) => "retry that does not match",
                (false, ..) => "failure",
            });
            self.note(if class == "timeout" { "timeout" } else { "other failure" });
        }
        (is_good, if is_good { fails + 1 } else { attempts })
    }
}

/// Returns the differences from the expectation, one per line: statuses, starts, and results of calls of successful
/// tasks.
pub fn differences(expected: &Expected, found: &Found) -> Vec<String> {
    let mut lines = Vec::new();
    for id in expected.states.keys().chain(found.states.keys()).collect::<BTreeSet<_>>() {
        let (wanted, found) = (expected.states.get(id), found.states.get(id));
        if wanted != found {
            lines.push(format!("{id}: expected {wanted:?}, found {found:?}"));
        }
    }
    for name in expected.starts.keys().chain(found.starts.keys()).collect::<BTreeSet<_>>() {
        let (least, most) = expected.starts.get(name).copied().unwrap_or_default();
        let count = found.starts.get(name).copied().unwrap_or_default();
        if count < least || count > most {
            let (id, call) = name;
            lines.push(format!("call {call} of {id}: expected {least} to {most} starts, found {count}"));
        }
    }
    lines.extend(other_results(expected, found));
    lines
}

/// Returns the calls of successful tasks with an unexpected result.
pub fn other_results(expected: &Expected, found: &Found) -> Vec<String> {
    let is_done = |name: &&CallName| found.states.get(&name.0) == Some(&Status::Done);
    let names: BTreeSet<&CallName> = expected.results.keys().chain(found.results.keys()).collect();
    let mut lines = Vec::new();
    for name in names.into_iter().filter(is_done) {
        let (wanted, found) = (expected.results.get(name), found.results.get(name));
        if wanted != found {
            let (id, call) = name;
            lines.push(format!("call {call} of {id}: expected the result {wanted:?}, found {found:?}"));
        }
    }
    lines
}

/// Actual end of a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Status of each task and list item.
    pub states: BTreeMap<String, Status>,
    /// Number of starts of each call.
    pub starts: BTreeMap<CallName, u32>,
    /// Results of calls.
    pub results: BTreeMap<CallName, Value>,
}
