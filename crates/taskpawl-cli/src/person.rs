//! Decisions that only a person may take.

use taskpawl::Error;
use taskpawl::model::command::Refusal;
use taskpawl::tools::{Power, PowerInForce, Ruling};

use crate::caller::Caller;
use crate::context::Context;
use crate::error::CliError;
use crate::pin;

/// Refuses decisions by programs of a task. They are recognized by their environment and their ancestors.
/// This is no security boundary: that takes a sandbox.
pub(crate) fn refuse_within_call(context: &Context, by: &'static str) -> Result<(), CliError> {
    if context.was_started_by_task() {
        Err(Error::Refused(Box::new(Refusal::RunDecides { by })).into())
    } else {
        Ok(())
    }
}

/// Refuses decisions by anyone but a person at a terminal, and asks for the PIN if one is set. Programs of a
/// run get an error of their own.
pub(crate) fn refuse_without_person(context: &Context, by: &'static str) -> Result<(), CliError> {
    refuse_other_callers(context, by)?;
    pin::ask(context, by)
}

/// Like [`refuse_without_person`], without the PIN.
pub(crate) fn refuse_other_callers(context: &Context, by: &'static str) -> Result<(), CliError> {
    refuse_within_call(context, by)?;
    match context.caller() {
        Caller::Person => Ok(()),
        Caller::Program => Err(CliError::NoTerminal { by }),
        Caller::Agent(sign) => Err(CliError::ByAgent { by, sign: sign.clone() }),
    }
}

/// Refuses the use of a power where a policy forbids it, or leaves it to a person and the caller is none.
pub(crate) fn check_power(context: &Context, power: Power, by: &'static str) -> Result<(), CliError> {
    let in_force = context.policy()?.ruling(power);
    match in_force.ruling {
        Ruling::Allow => Ok(()),
        Ruling::Ask => refuse_without_person(context, by),
        Ruling::Never => Err(forbidden(in_force)),
    }
}

/// Refuses the use of a power where a policy forbids it; for callers that have proved to be a person. Needs no valid configuration.
pub(crate) fn refuse_never(context: &Context, power: Power) -> Result<(), CliError> {
    let in_force = context.ruling(power)?;
    match in_force.ruling {
        Ruling::Never => Err(forbidden(in_force)),
        Ruling::Allow | Ruling::Ask => Ok(()),
    }
}

fn forbidden(in_force: PowerInForce) -> CliError {
    let why = format!("{} forbids it", in_force.place.unwrap_or_default());
    CliError::Forbidden { what: in_force.power.action(), why }
}
