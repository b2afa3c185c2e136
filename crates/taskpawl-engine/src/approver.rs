use std::fmt::Debug;

use async_trait::async_trait;
use serde_json::Value;
use taskpawl_model::task::ApprovalRequest;
use taskpawl_model::value::Map;

/// Decides about tasks of a run that wait for an approval, instead of a person who runs `approve` or `reject`.
///
/// The run asks as soon as a task of its scope waits, including tasks that already wait when the run starts, and
/// continues with all other tasks meanwhile. It asks once about each request; a request that is skipped keeps waiting.
/// Several requests may be pending, so `decide` is called concurrently. An approver that can only handle one request at
/// a time has to queue the others itself.
#[async_trait]
pub trait Approver: Send + Sync + Debug {
    /// Decides about one request. The verdict covers exactly the content of `request`: if the task asks about something
    /// else by then, the verdict is discarded and the run asks again.
    ///
    /// # Cancel safety
    /// The future is dropped when the request is settled in another way, and when the run is asked to stop.
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalVerdict;
}

/// The decision of an [`Approver`].
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalVerdict {
    /// The task or call may run.
    Approve {
        /// The chosen answer. Required if the request has options; otherwise `None` means yes.
        answer: Option<Value>,
        /// Arguments that replace the ones in the request. Only valid if the request is about a single call.
        args: Option<Map>,
    },
    /// The task is cancelled; it fails if the request is about its result.
    Reject {
        /// Shown to users as the reason.
        reason: Option<String>,
    },
    /// The result goes back to the agent of the task, which corrects its work. Only valid if the request is about a result.
    SendBack {
        /// The text for the agent.
        text: String,
    },
    /// The task is skipped; its dependents may start.
    SkipTask,
    /// The task keeps waiting; another person or program may still decide.
    Skip,
}
