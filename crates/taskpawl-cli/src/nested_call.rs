//! Commands inside a call: a program of a call with `planAccess` may read the plan of the call and add tasks to it,
//! and nothing else.
//!
//! The run enforces this itself. The check here only gives a clearer error, and refuses commands that make no sense
//! inside a call.

use taskpawl::model::command::Refusal;

use crate::app::App;
use crate::args::Command;
use crate::error::CliError;

/// Refuses commands that programs of a call may not use, if this process belongs to a call.
pub(crate) fn check(app: &App, command: &Command) -> Result<(), CliError> {
    match beyond(command) {
        Some(what) if app.is_within_call() => Err(Refusal::BeyondAccess { access: None, what }.into()),
        _ => Ok(()),
    }
}

/// Returns the reason why programs of a call may not use a command. Returns `None` for commands that read, add tasks,
/// or do not concern a plan.
fn beyond(command: &Command) -> Option<String> {
    let word = match command {
        Command::Apply(args) if args.is_dry_run() => {
            return Some(
                "what `apply --dry-run` shows is another plan, and these tasks join that of the call"
                    .to_owned(),
            );
        }
        Command::Create(_)
        | Command::Apply(_)
        | Command::AddSubtask(_)
        | Command::AddToolCall(_)
        | Command::AddDependency(_)
        | Command::Note(_)
        | Command::List(_)
        | Command::Show(_)
        | Command::Ready(_)
        | Command::Runs(_)
        | Command::Explain(_)
        | Command::CriticalPath(_)
        | Command::Graph(_)
        | Command::History(_)
        | Command::Prime(_)
        | Command::Mcp(_)
        | Command::Plan(_)
        | Command::Where(_)
        | Command::Config(_)
        | Command::Policy(_)
        | Command::Tools(_)
        | Command::Todo(_)
        | Command::TodoQueue(_)
        | Command::Schema(_)
        | Command::Completions(_)
        | Command::Man(_) => return None,
        Command::RunAllReady(_) | Command::Run(_) => {
            return Some("the run that this call belongs to takes what is added by itself".to_owned());
        }
        Command::Logs(_) => {
            return Some(
                "`logs` reads files that calls do not see; `show` has what is kept of them".to_owned(),
            );
        }
        Command::Init(_) => "init",
        Command::Update(_) => "update",
        Command::Delete(_) => "delete",
        Command::Claim(_) => "claim",
        Command::Renew(_) => "renew",
        Command::Release(_) => "release",
        Command::Done(_) => "done",
        Command::Fail(_) => "fail",
        Command::Skip(_) => "skip",
        Command::Block(_) => "block",
        Command::Unblock(_) => "unblock",
        Command::Retry(_) => "retry",
        Command::Reopen(_) => "reopen",
        Command::Cancel(_) => "cancel",
        Command::Approve(_) => "approve",
        Command::Reject(_) => "reject",
        Command::Trust(_) => "trust",
        Command::Pin(_) => "pin",
        Command::RemoveDependency(_) => "remove-dependency",
        Command::Watch(_) => "watch",
        Command::Undo(_) => "undo",
        Command::Prune(_) => "prune",
        Command::Import(_) => "import",
        Command::Export(_) => "export",
        Command::Doctor(_) => "doctor",
    };
    Some(format!("`{word}` is for neither"))
}
