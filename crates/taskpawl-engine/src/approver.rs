use std::fmt::Debug;

use async_trait::async_trait;
use serde_json::Value;
use taskpawl_model::{ApprovalRequest, Map};

/// Decides about tasks of a run that wait for a decision, in place of somebody who gives `approve` and `reject`.
///
/// A run asks as soon as a task of its scope waits, also about those that wait when it starts, and goes on with everything else
/// meanwhile. It asks once about each thing: what is skipped stays as it is. Several questions may be asked at a time; who can
/// only answer one after the other lets the others wait.
#[async_trait]
pub trait Approver: Send + Sync + Debug {
    /// Decides. Only what is in `request` is approved: if something else is asked about by then, the run asks anew.
    ///
    /// # Cancel safety
    /// The future is dropped when the question has come to its end otherwise, and when the run is asked to stop.
    async fn decide(&self, request: &ApprovalRequest) -> Verdict;
}

/// What an [`Approver`] says.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It may run.
    Approve {
        /// The answer; needed where there are options, else `None` stands for yes.
        answer: Option<Value>,
        /// The arguments to run with instead of those that were asked about; only where that is one call.
        args: Option<Map>,
    },
    /// It is cancelled.
    Reject {
        /// Why.
        reason: Option<String>,
    },
    /// It goes on waiting: somebody else may decide.
    Skip,
}
