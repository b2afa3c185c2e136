use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::{Status, Trigger};

use crate::plans::{RandomPlan, Script};

/// How a plan ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The last state of each task.
    pub states: BTreeMap<usize, Status>,
    /// The calls that are started, each once: task and number.
    pub starts: BTreeSet<(usize, usize)>,
    /// Those of them that perhaps are not: beside one that fails, what waits for a place is left out.
    pub perhaps: BTreeSet<(usize, usize)>,
}

/// What the task above, the trigger and the dependencies say about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    Opens,
    Blocks,
    Skips,
}

/// Returns how a plan ends when everything that may start does.
pub fn interpret(plan: &RandomPlan) -> Expected {
    let mut expected = Expected::default();
    let mut openings = BTreeMap::new();
    loop {
        let before = (openings.len(), expected.states.len());
        for position in 0..plan.tasks.len() {
            if let Some(opening) = opening(plan, position, &openings, &expected.states) {
                openings.insert(position, opening);
            }
            if let Some(state) = end(plan, position, &openings, &expected.states) {
                expected.states.insert(position, state);
            }
        }
        if before == (openings.len(), expected.states.len()) {
            break;
        }
    }
    (expected.starts, expected.perhaps) = starts(plan, &expected.states);
    expected
}

fn opening(
    plan: &RandomPlan,
    position: usize,
    openings: &BTreeMap<usize, Opening>,
    states: &BTreeMap<usize, Status>,
) -> Option<Opening> {
    let task = &plan.tasks[position];
    if let Some(parent) = task.parent {
        match openings.get(&parent)? {
            Opening::Opens => {}
            shut @ (Opening::Blocks | Opening::Skips) => return Some(*shut),
        }
    }
    let known: Vec<Status> = task.needs.iter().filter_map(|on| states.get(on).copied()).collect();
    let all_known = known.len() == task.needs.len();
    let any = |wanted: &[Status]| known.iter().any(|state| wanted.contains(state));
    let has_failed = any(&[Status::Failed, Status::Blocked]);
    match task.trigger {
        Trigger::AllDone if has_failed => Some(Opening::Blocks),
        Trigger::AllDone | Trigger::AllFinished => all_known.then_some(Opening::Opens),
        Trigger::AnyDone if any(&[Status::Done]) => Some(Opening::Opens),
        Trigger::AnyDone => all_known.then_some(Opening::Blocks),
        Trigger::AnyFailed if has_failed => Some(Opening::Opens),
        Trigger::AnyFailed => all_known.then_some(Opening::Skips),
    }
}

fn end(
    plan: &RandomPlan,
    position: usize,
    openings: &BTreeMap<usize, Opening>,
    states: &BTreeMap<usize, Status>,
) -> Option<Status> {
    match openings.get(&position)? {
        Opening::Blocks => return Some(Status::Blocked),
        Opening::Skips => return Some(Status::Skipped),
        Opening::Opens => {}
    }
    let below: Vec<Option<Status>> =
        plan.subtasks(position).map(|below| states.get(&below).copied()).collect();
    let is_bad = |state: &Option<Status>| matches!(state, Some(Status::Failed | Status::Blocked));
    if below.iter().any(is_bad) {
        return Some(Status::Blocked);
    }
    if below.iter().any(Option::is_none) {
        return None;
    }
    let good = match &plan.tasks[position].script {
        Script::Calls { calls, .. } => calls.iter().all(|call| call.good),
        Script::Manual { good } => *good || !below.is_empty(),
        Script::Milestone => true,
    };
    Some(if good { Status::Done } else { Status::Failed })
}

type Calls = BTreeSet<(usize, usize)>;

/// Returns the calls that are started, and those of them that perhaps are not.
fn starts(plan: &RandomPlan, states: &BTreeMap<usize, Status>) -> (Calls, Calls) {
    let (mut starts, mut perhaps) = (BTreeSet::new(), BTreeSet::new());
    for (position, task) in plan.tasks.iter().enumerate() {
        let ran = matches!(states.get(&position), Some(Status::Done | Status::Failed));
        if let (true, Script::Calls { parallel, calls }) = (ran, &task.script) {
            let first_bad = calls.iter().position(|call| !call.good);
            let count = if *parallel { calls.len() } else { first_bad.map_or(calls.len(), |bad| bad + 1) };
            let calls = (0..count).map(|number| (position, number));
            if *parallel && first_bad.is_some() {
                perhaps.extend(calls.clone());
            }
            starts.extend(calls);
        }
    }
    (starts, perhaps)
}

/// Returns what is otherwise than expected, a line each. `starts` says how often each call was started.
pub fn differences(
    expected: &Expected,
    states: &BTreeMap<usize, Status>,
    starts: &BTreeMap<(usize, usize), usize>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for position in expected.states.keys().chain(states.keys()).collect::<BTreeSet<_>>() {
        let (wanted, found) = (expected.states.get(position), states.get(position));
        if wanted != found {
            lines.push(format!("t{position}: expected {wanted:?}, found {found:?}"));
        }
    }
    for call in expected.starts.iter().chain(starts.keys()).collect::<BTreeSet<_>>() {
        let wanted = usize::from(expected.starts.contains(call));
        let found = starts.get(call).copied().unwrap_or(0);
        let is_open = expected.perhaps.contains(call) && found == 0;
        if wanted != found && !is_open {
            lines.push(format!("call {} of t{}: expected {wanted} starts, found {found}", call.1, call.0));
        }
    }
    lines
}
