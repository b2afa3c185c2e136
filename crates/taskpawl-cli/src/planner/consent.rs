//! The question before a planner of another machine gets the first prompt. The answer is kept in the user's state directory.

use std::collections::BTreeSet;
use std::fs;

use taskpawl::model::advice::Hint;

use super::Configured;
use crate::app::App;
use crate::caller::Caller;
use crate::error::CliError;
use crate::output::write_err;
use crate::person;
use crate::shown::shown;
use crate::state_files::{state_file, write_state};
use crate::text::clean;

/// The file with the planners that may get prompts.
const FILE: &str = "planners.json";

/// Asks once for each planner that sends the prompt to another machine, or whose program may read files of the user.
///
/// # Errors
/// The person says no, or there is no person to ask.
pub(crate) fn ask(
    app: &App,
    configured: &Configured,
    is_yes: bool,
    has_output: bool,
) -> Result<(), CliError> {
    let reads = configured.reads_files.then_some("this planner reads your files itself");
    let sends = configured.remote.as_ref().map(|address| format!("the prompt goes to {}", clean(address)));
    // Each project is asked about by itself.
    let output = configured.remote.is_some() && has_output;
    let output = output
        .then(|| format!("with it goes output of calls in {}", clean(&app.root().display().to_string())));
    let facts: Vec<String> = sends.into_iter().chain(output).chain(reads.map(str::to_owned)).collect();
    let fact = facts.join(", and ");
    let mut known = read(app);
    if fact.is_empty() || known.contains(&fact) {
        return Ok(());
    }
    let hint =
        Hint::new("`--print-prompt` shows what it gets; a person says yes once, in a terminal or by `--yes`");
    let is_person = person::refuse_other_callers(app, "plan new").is_ok();
    // An agent may not decide where the names of a project go.
    let is_program = matches!(app.caller(), Caller::Program);
    if !(is_person || is_yes && is_program) {
        return Err(CliError::Unasked { what: format!("whether {fact}"), hint });
    }
    if !is_yes {
        if !app.terminal().can_ask() {
            return Err(CliError::Unasked { what: format!("whether {fact}"), hint });
        }
        let asked = write_err(&shown![
            "For `",
            clean(&configured.planner.name()),
            "`: ",
            clean(&fact),
            ". Go on? [y/N] "
        ]);
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        if asked.is_err() || read.is_err() || !matches!(line.trim().to_lowercase().as_str(), "y" | "yes") {
            return Err(CliError::NoPlan {
                message: "the planner was not asked".to_owned(),
                problems: Vec::new(),
                hint,
            });
        }
    }
    known.insert(fact);
    let Some(path) = state_file(app, FILE) else { return Ok(()) };
    let text = serde_json::to_string_pretty(&known).expect("BUG: a list of texts is always valid JSON");
    write_state(&path, &text).map_err(|source| CliError::File { action: "write", path, source })
}

/// Returns the facts that a person agreed to. A file that cannot be read has none, so that the question comes again.
fn read(app: &App) -> BTreeSet<String> {
    let text = state_file(app, FILE).and_then(|path| fs::read(path).ok());
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}
