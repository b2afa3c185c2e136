use std::process::ExitCode;

use serde::Serialize;

use crate::app::App;
use crate::audit::{self, Action};
use crate::error::CliError;
use crate::person;
use crate::pin::{self, LENGTHS, Pin, PinFault};

/// Set a PIN that decisions require
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Where a PIN is set, `approve`, `reject`, `trust` and the questions of a run ask for it. It stops an agent that runs \
as you and passes for a person at a terminal. It stops no program that runs as you without the \
sandbox and removes the file in your state directory.
After five wrong ones it is locked for ten minutes. `[decisions] pin = \"required\"` in /etc/taskpawl/policy.toml \
refuses decisions of users who have set none.

Examples:
  taskpawl pin set
  taskpawl pin remove
  taskpawl pin")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<PinCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum PinCommand {
    /// Set the PIN, or change it
    Set,
    /// Remove the PIN
    Remove,
}

/// Status of the PIN in `--json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    is_set: bool,
    /// The policy file that requires a PIN.
    #[serde(skip_serializing_if = "Option::is_none")]
    required_by: Option<String>,
}

/// Sets, removes or shows the PIN.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let Some(place) = Pin::place(app) else {
        return Err(CliError::usage_with("there is no place for a PIN", "set HOME"));
    };
    match args.command {
        Some(PinCommand::Set) => set(app, &place),
        Some(PinCommand::Remove) => remove(app, &place),
        None => show(app, &place),
    }
}

fn show(app: &App, place: &Pin) -> Result<ExitCode, CliError> {
    let is_set = place.is_set().map_err(|fault| CliError::Pin { by: "pin", fault })?;
    let shown = Shown { is_set, required_by: app.policy()?.requires_pin() };
    let out = app.out();
    if out.is_json {
        return out.data(&shown);
    }
    let is_set = if is_set { "a PIN is set: decisions ask for it" } else { "no PIN is set" };
    let required = shown.required_by.map(|file| format!("{} requires one\n", crate::text::clean(&file)));
    out.print(format!("{is_set}\n{}", required.unwrap_or_default()))?;
    Ok(ExitCode::SUCCESS)
}

fn set(app: &App, place: &Pin) -> Result<ExitCode, CliError> {
    let by = "pin set";
    let fault = |fault| CliError::Pin { by, fault };
    person::refuse_other_callers(app, by)?;
    ask_for_old(place, by)?;
    let typed = |question| pin::type_in(question).ok_or(PinFault::NotTyped).map_err(fault);
    let new = typed("New PIN: ")?;
    if !LENGTHS.contains(&new.chars().count()) {
        let (least, most) = (LENGTHS.start(), LENGTHS.end());
        return Err(CliError::usage(format!("a PIN has {least} to {most} characters")));
    }
    if typed("Again: ")? != new {
        return Err(CliError::usage("the two are not the same; nothing was changed"));
    }
    place.set(&new).map_err(fault)?;
    audit::record(app, Action::Pin, "set")?;
    app.out().remark("the PIN is set: decisions ask for it");
    Ok(ExitCode::SUCCESS)
}

fn remove(app: &App, place: &Pin) -> Result<ExitCode, CliError> {
    let by = "pin remove";
    person::refuse_other_callers(app, by)?;
    let fault = |fault| CliError::Pin { by, fault };
    if !place.is_set().map_err(fault)? {
        app.out().remark("no PIN was set");
        return Ok(ExitCode::SUCCESS);
    }
    ask_for_old(place, by)?;
    place.remove().map_err(fault)?;
    audit::record(app, Action::Pin, "removed")?;
    app.out().remark("the PIN is removed");
    Ok(ExitCode::SUCCESS)
}

fn ask_for_old(place: &Pin, by: &'static str) -> Result<(), CliError> {
    let fault = |fault| CliError::Pin { by, fault };
    if !place.is_set().map_err(fault)? {
        return Ok(());
    }
    let typed = pin::type_in("PIN: ").ok_or(PinFault::NotTyped).map_err(fault)?;
    place.check(&typed).map_err(fault)
}
