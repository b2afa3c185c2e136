//! Single changes to a random plan, one kind for each construct. The positive control of the random plans: the
//! interpreter reads the changed plan while the engine runs the original, and the comparison has to notice.

use serde_json::{Value, json};
use taskpawl_testkit::{RandomCall, RandomPlan, RandomTask, Script, Template, Verdict};

/// Changes a plan. Returns false if the plan has nothing to change.
type Mutation = fn(&mut RandomPlan) -> bool;

pub(crate) const MUTATIONS: &[(&str, Mutation)] = &[
    ("a condition", |plan| first(plan, |task| negate(&mut task.when))),
    ("a condition of a call", |plan| first_call(plan, |call| negate(&mut call.when))),
    ("a list", |plan| first(plan, shorten_list)),
    ("rounds", |plan| first(plan, |task| take(&mut task.rounds))),
    ("a retry of a task", |plan| first(plan, |task| take(&mut task.retry))),
    ("a retry of a call", |plan| first_call(plan, |call| take(&mut call.retry))),
    ("which failures are tried again", |plan| first_call(plan, turn_matches)),
    ("a failure", |plan| first_call(plan, turn_failure)),
    ("a value", |plan| first_call(plan, turn_value)),
    ("a result by hand", |plan| first(plan, turn_result)),
    ("a decision about a task", |plan| first(plan, |task| turn_verdict(&mut task.approval))),
    ("a decision about a call", |plan| first_call(plan, |call| turn_verdict(&mut call.approval))),
    ("an answer", |plan| first(plan, turn_answer)),
    ("tasks that are made", |plan| first_call(plan, |call| take_list(&mut call.makes))),
    ("a circle", |plan| first_call(plan, |call| take(&mut call.circle))),
    ("a recorded success", |plan| first(plan, |task| std::mem::take(&mut task.is_cached))),
    ("a dependency", |plan| first(plan, |task| task.needs.pop_last().is_some())),
    ("a place below", |plan| first(plan, |task| take(&mut task.parent))),
];

/// Applies a change to every task; returns true if any task was changed.
fn first(plan: &mut RandomPlan, mut change: impl FnMut(&mut RandomTask) -> bool) -> bool {
    let mut has_changed = false;
    for task in &mut plan.tasks {
        has_changed |= change(task);
    }
    has_changed
}

fn first_call(plan: &mut RandomPlan, mut change: impl FnMut(&mut RandomCall) -> bool) -> bool {
    first(plan, |task| {
        let mut has_changed = false;
        for call in task.calls_mut() {
            has_changed |= change(call);
        }
        has_changed
    })
}

fn take<T>(field: &mut Option<T>) -> bool {
    field.take().is_some()
}

fn take_list<T>(field: &mut Vec<T>) -> bool {
    !std::mem::take(field).is_empty()
}

fn negate(condition: &mut Option<taskpawl_testkit::Expr>) -> bool {
    *condition = condition.take().map(taskpawl_testkit::Expr::negated);
    condition.is_some()
}

fn shorten_list(task: &mut RandomTask) -> bool {
    match task.items.as_mut().map(|items| &mut items.list) {
        Some(Template::Given(Value::Array(items))) => items.pop().is_some(),
        _ => false,
    }
}

fn turn_matches(call: &mut RandomCall) -> bool {
    let retry = call.retry.as_mut().filter(|retry| !retry.on.is_empty());
    retry.map(|retry| retry.on.clear()).is_some()
}

fn turn_failure(call: &mut RandomCall) -> bool {
    call.fails = if call.fails == 0 { RandomCall::ALWAYS } else { 0 };
    true
}

fn turn_value(call: &mut RandomCall) -> bool {
    call.value = Template::Given(json!("another"));
    true
}

fn turn_result(task: &mut RandomTask) -> bool {
    match &mut task.script {
        Script::Manual { value, .. } => {
            *value = json!("another");
            true
        }
        Script::Calls { .. } | Script::Milestone => false,
    }
}

fn turn_verdict(decision: &mut Option<taskpawl_testkit::Decision>) -> bool {
    let Some(decision) = decision else { return false };
    decision.verdict = match decision.verdict {
        Verdict::Granted(_) => Verdict::Rejected,
        Verdict::Rejected | Verdict::Expired => Verdict::Granted("red"),
    };
    true
}

fn turn_answer(task: &mut RandomTask) -> bool {
    match task.approval.as_mut().map(|decision| &mut decision.verdict) {
        Some(Verdict::Granted(answer)) => {
            *answer = if *answer == "red" { "blue" } else { "red" };
            true
        }
        Some(Verdict::Rejected | Verdict::Expired) | None => false,
    }
}
