//! Tests of plan files.

mod errors;
mod faulty;
mod forms;
mod hostile;
mod includes;
mod long_form;
mod sessions;
mod sizes;

use taskpawl_model::plan::{Plan, Position, parse_plan};

/// Parses a plan and removes the positions of its tasks.
#[track_caller]
fn plan(text: &str) -> Plan {
    without_positions(parse_plan(text).unwrap_or_else(|errors| panic!("{errors}\n{text}")))
}

fn without_positions(mut plan: Plan) -> Plan {
    for task in &mut plan.tasks {
        task.at = Position::default();
    }
    plan.requires.at = Position::default();
    plan
}

/// Returns all errors of a text.
#[track_caller]
fn errors(text: &str) -> String {
    // Formatted one by one, because the text of all errors together is limited to five kinds.
    let errors = parse_plan(text).expect_err("the plan is refused");
    errors.errors().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
