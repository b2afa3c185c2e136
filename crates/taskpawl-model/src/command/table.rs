//! The table of commands: what the rules have to know of each besides its effect.

use super::Command;

/// What holds for a kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandTraits {
    /// The word on the command line, for messages.
    pub word: &'static str,
    /// The author.
    pub by: GivenBy,
    /// True if it may make an approval unnecessary. Models may not use it for that.
    pub may_loosen_approvals: bool,
}

/// The author of a kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenBy {
    /// People, agents and calls. It is recorded for undo.
    Hand,
    /// People and agents, without a record for undo: a renewal, for example, must not be undone.
    HandUnrecorded,
    /// Runs, recovery and repairs.
    Run,
}

impl Command {
    /// Returns its row of the table.
    pub fn traits(&self) -> CommandTraits {
        use GivenBy::{Hand, HandUnrecorded, Run};
        let (word, by, may_loosen_approvals) = match self {
            Self::Create(_) => ("create", Hand, false),
            Self::Update { .. } => ("update", Hand, true),
            Self::Delete { .. } => ("delete", Hand, true),
            Self::Claim { .. } => ("claim", Hand, false),
            Self::Renew { .. } => ("renew", HandUnrecorded, false),
            Self::Release { .. } => ("release", Hand, false),
            Self::Done { .. } => ("done", Hand, false),
            Self::Fail { .. } => ("fail", Hand, false),
            Self::Skip { .. } => ("skip", Hand, true),
            Self::Block { .. } => ("block", Hand, false),
            Self::Unblock { .. } => ("unblock", Hand, false),
            Self::Retry { .. } => ("retry", Hand, true),
            Self::Reopen { .. } => ("reopen", Hand, true),
            Self::Cancel { .. } => ("cancel", Hand, true),
            Self::Approve { .. } | Self::ApproveAhead { .. } => ("approve", Hand, false),
            Self::Reject { .. } => ("reject", Hand, false),
            Self::AddCall { .. } => ("add-tool-call", Hand, false),
            Self::AddDependency { .. } => ("add-dependency", Hand, true),
            Self::RemoveDependency { .. } => ("remove-dependency", Hand, true),
            Self::Move { .. } => ("add-subtask --existing", Hand, true),
            Self::Note { .. } => ("note", Hand, false),
            Self::Apply(_) => ("apply", Hand, true),
            Self::Import(_) => ("import", Hand, true),
            Self::RenamePlan { .. } => ("plan rename", Hand, false),
            Self::Undo { .. } => ("undo", Hand, true),
            Self::Signal(_) | Self::DropSignals { .. } => ("signal", HandUnrecorded, false),
            Self::Prune(_) => ("prune", Run, false),
            Self::StopRun { .. } => ("stop", HandUnrecorded, false),
            Self::RunOne { .. } => ("run", HandUnrecorded, false),
            Self::StartRun(_)
            | Self::SettleKeys(_)
            | Self::FinishRun { .. }
            | Self::CloseRun { .. }
            | Self::Round(_)
            | Self::Report(_)
            | Self::ToolsKnown { .. }
            | Self::PolicyKnown { .. }
            | Self::Wake { .. }
            | Self::ReturnExpired { .. }
            | Self::ExpireApprovals { .. } => ("run-all-ready", Run, false),
            Self::Settle => ("doctor --fix", Run, false),
            Self::Checklist { .. } => ("a list of a model", Run, false),
            Self::Mutate(_) => ("an addition of a call", Run, true),
            Self::Idempotent(once) => return once.command.traits(),
        };
        CommandTraits { word, by, may_loosen_approvals }
    }
}
