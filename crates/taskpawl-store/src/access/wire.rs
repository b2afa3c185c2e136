//! The messages of the protocol.

use serde::{Deserialize, Serialize};
use taskpawl_model::advice::Hint;
use taskpawl_model::command::MutationRequest;
use taskpawl_model::command::{Answer, ApplyReport, Refusal};
use taskpawl_model::task::{ActorKind, PlanAccess};
use taskpawl_model::value::{CallId, Key, RunId, TaskId};
use taskpawl_model::view::{EventQuery, Query};

/// The protocol version; the handshake fails if the two sides differ.
pub(super) const VERSION: u32 = 2;

/// The size limit of a request, in bytes.
pub const MAX_REQUEST_BYTES: usize = 1 << 20;

/// The size limit of an answer, in bytes: far above the size of a task with its results.
pub(super) const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Elements of a list per frame, and events per page.
pub(super) const PART: usize = 1_000;

/// A request of a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AccessRequest {
    /// Opens the connection; must be the first request.
    Hello {
        /// The protocol version of the client.
        version: u32,
    },
    /// Opens a snapshot for the following view queries.
    Look,
    /// Closes the snapshot.
    Done,
    /// Queries the open snapshot.
    View(ViewRequest),
    /// Asks for the last revision.
    Revision,
    /// Adds something to the plan.
    Add(MutationRequest),
}

/// The queries of a [`View`](taskpawl_model::view::View), by their names there. Undo snapshots cannot be queried.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each is a method of `View`, which has the documentation")]
pub enum ViewRequest {
    Key(String),
    Id(Key),
    IdsWithPrefix(String, usize),
    DeletedId(String),
    NextKey,
    Node(Key),
    Task(Key),
    Calls(Key),
    Dependencies(Key),
    Dependents(Key),
    Subtasks(Key),
    Applied(Key),
    Plan(String),
    Plans,
    Run(RunId),
    Runs(usize),
    OpenRuns,
    Find(Box<Query>),
    Leases(Option<String>),
    Running,
    Tools,
    ReadyCalling(String, usize),
    EachNode,
    EachDependency,
    EachDuration,
    ToBeOpened,
    Counts,
    Revision,
    Events { after: u64, task: Option<Key>, limit: usize },
    FindEvents(Box<EventQuery>),
    Undoables(u64, u64),
    LastUndoable(ActorKind, String),
    PrunedRuns(String),
}

/// The kind of an answer, sent as its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value, or the last part of a list.
    Value = 0,
    /// A part of a list; more parts follow.
    Part = 1,
    /// The request was refused, and nothing was changed.
    Refused = 2,
    /// The store failed or the request was invalid. Nothing follows.
    Failed = 3,
}

/// The reply to [`AccessRequest::Hello`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Handshake {
    /// The access of the call to its plan.
    pub access: PlanAccess,
    /// The task that the call belongs to.
    pub task: TaskId,
    /// The id of the call within its task.
    pub call: CallId,
}

/// The result of an accepted addition.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MutationReport {
    tasks: Vec<TaskId>,
    applied: Option<ApplyReport>,
    events: u64,
    revision: u64,
}

impl From<Answer> for MutationReport {
    fn from(answer: Answer) -> Self {
        let Answer { tasks, applied, events, revision, .. } = answer;
        Self { tasks, applied, events, revision }
    }
}

impl From<MutationReport> for Answer {
    fn from(added: MutationReport) -> Self {
        let MutationReport { tasks, applied, events, revision } = added;
        Self { tasks, applied, events, revision, ..Self::default() }
    }
}

/// A refusal as text. Its structured fields stay in the process of the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireRefusal {
    message: String,
    hint: Option<Hint>,
    is_about_ids: bool,
}

impl From<&Refusal> for WireRefusal {
    fn from(refusal: &Refusal) -> Self {
        let (message, hint) = (refusal.to_string(), refusal.hint());
        Self { message, hint, is_about_ids: refusal.is_about_ids() }
    }
}

impl From<WireRefusal> for Refusal {
    fn from(refused: WireRefusal) -> Self {
        let WireRefusal { message, hint, is_about_ids } = refused;
        Self::Relayed { message, hint, is_about_ids }
    }
}

/// An answer of the run.
#[derive(Debug)]
pub enum AccessReply<'a> {
    /// Replies to [`AccessRequest::Hello`].
    Handshake(&'a Handshake),
    /// Reports an accepted addition.
    MutationReport(&'a MutationReport),
    /// Reports a refused addition.
    Refused(&'a Refusal),
    /// Replies to [`AccessRequest::Revision`].
    Revision(u64),
    /// Reports a failure, after which the run closes the connection.
    Failed(&'a str),
}

impl AccessReply<'_> {
    /// Encodes the answer: one byte for its kind, then JSON.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Handshake(handshake) => frame(Kind::Value, handshake),
            Self::MutationReport(added) => frame(Kind::Value, added),
            Self::Refused(refusal) => frame(Kind::Refused, &WireRefusal::from(*refusal)),
            Self::Revision(revision) => frame(Kind::Value, revision),
            Self::Failed(problem) => frame(Kind::Failed, problem),
        }
    }
}

/// Encodes an answer of the given kind.
pub(super) fn frame<T: Serialize + ?Sized>(kind: Kind, value: &T) -> Vec<u8> {
    let mut bytes = vec![kind as u8];
    serde_json::to_writer(&mut bytes, value).expect("BUG: what a store keeps is always valid JSON");
    bytes
}

impl AccessRequest {
    /// Returns the handshake request of this protocol version.
    pub(super) fn hello() -> Self {
        Self::Hello { version: VERSION }
    }

    /// Parses a request.
    ///
    /// # Errors
    /// The bytes are not a valid request, or the client has another protocol version. The text is shown to
    /// the client.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        match taskpawl_json::read(bytes) {
            Ok(Self::Hello { version }) if version != VERSION => Err(format!(
                "its protocol version is {version}, and that of the run is {VERSION}: use the same taskpawl"
            )),
            Ok(ask) => Ok(ask),
            Err(error) => Err(format!("invalid request: {error}")),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: a request is always valid JSON")
    }
}
