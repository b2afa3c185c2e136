//! Plan files.

mod errors;
mod faulty;
mod forms;
mod hostile;
mod long_form;
mod sizes;

use taskpawl_model::{Plan, Position, parse_plan};

/// Returns the plan of a text, without where its tasks stand.
#[track_caller]
fn plan(text: &str) -> Plan {
    without_places(parse_plan(text).unwrap_or_else(|errors| panic!("{errors}\n{text}")))
}

fn without_places(mut plan: Plan) -> Plan {
    for task in &mut plan.tasks {
        task.at = Position::default();
    }
    plan
}

/// Returns all that is wrong with a text.
#[track_caller]
fn errors(text: &str) -> String {
    // All of them: the text of all errors together names five kinds.
    let errors = parse_plan(text).expect_err("the plan is refused");
    errors.errors().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
