//! What the two sides say to each other.

use serde::{Deserialize, Serialize};
use taskpawl_model::{
    ActorKind, Answer, ApplyReport, CallId, EventQuery, Hint, Key, PlanAccess, Query, Refusal, RunId, TaskId,
};

use super::addition::Addition;

/// Both sides have to speak the same version.
pub(super) const VERSION: u32 = 2;

/// The longest request.
pub const MOST_REQUEST_BYTES: usize = 1 << 20;

/// The longest answer: far more than a task with its results has.
pub(super) const MOST_ANSWER_BYTES: usize = 64 << 20;

/// How many elements of a list come in one frame, and how many events are asked for at once.
pub(super) const PART: usize = 1_000;

/// What a call asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ask {
    /// Comes first.
    Hello {
        /// The version of this conversation.
        version: u32,
    },
    /// From here on one moment of the store is shown.
    Look,
    /// The look is over.
    Done,
    /// Something about the moment that is shown.
    View(ViewAsk),
    /// The last revision.
    Revision,
    /// Something is to be added.
    Add(Addition),
}

/// The questions of a [`View`](taskpawl_model::View), by their names there. What it takes to undo commands is not among them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each is a method of `View`, which has the documentation")]
pub enum ViewAsk {
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

/// The kind of an answer: its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value; of a list the last part.
    Value = 0,
    /// A part of a list; more follows.
    Part = 1,
    /// The request was refused, and nothing was changed.
    Refused = 2,
    /// The store failed, or the request makes no sense. Nothing follows.
    Failed = 3,
}

/// What is said to the first word of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// What the call may do.
    pub access: PlanAccess,
    /// Its task.
    pub task: TaskId,
    /// The call.
    pub call: CallId,
}

/// What became of an addition.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Added {
    tasks: Vec<TaskId>,
    applied: Option<ApplyReport>,
    events: u64,
    revision: u64,
}

impl From<Answer> for Added {
    fn from(answer: Answer) -> Self {
        let Answer { tasks, applied, events, revision, .. } = answer;
        Self { tasks, applied, events, revision }
    }
}

impl From<Added> for Answer {
    fn from(added: Added) -> Self {
        let Added { tasks, applied, events, revision } = added;
        Self { tasks, applied, events, revision, ..Self::default() }
    }
}

/// A refusal in words: its fields stay on the side that has the plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Refused {
    message: String,
    hint: Option<Hint>,
    is_about_ids: bool,
}

impl From<&Refusal> for Refused {
    fn from(refusal: &Refusal) -> Self {
        let (message, hint) = (refusal.to_string(), refusal.hint());
        Self { message, hint, is_about_ids: refusal.is_about_ids() }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let Refused { message, hint, is_about_ids } = refused;
        Self::Relayed { message, hint, is_about_ids }
    }
}

/// What is answered.
#[derive(Debug)]
pub enum Said<'a> {
    /// To the first word.
    Welcome(&'a Welcome),
    /// To an addition that was made.
    Added(&'a Added),
    /// To one that was not.
    Refused(&'a Refusal),
    /// To the question for the revision.
    Revision(u64),
    /// That it goes no further, and why.
    Failed(&'a str),
}

impl Said<'_> {
    /// Returns the frame.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Welcome(welcome) => frame(Kind::Value, welcome),
            Self::Added(added) => frame(Kind::Value, added),
            Self::Refused(refusal) => frame(Kind::Refused, &Refused::from(*refusal)),
            Self::Revision(revision) => frame(Kind::Value, revision),
            Self::Failed(problem) => frame(Kind::Failed, problem),
        }
    }
}

/// Returns an answer as bytes.
pub(super) fn frame<T: Serialize + ?Sized>(kind: Kind, value: &T) -> Vec<u8> {
    let mut bytes = vec![kind as u8];
    serde_json::to_writer(&mut bytes, value).expect("BUG: what a store keeps is always valid JSON");
    bytes
}

impl Ask {
    /// Returns the first word of this version.
    pub(super) fn hello() -> Self {
        Self::Hello { version: VERSION }
    }

    /// Reads a request.
    ///
    /// # Errors
    /// Says what does not fit.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        match taskpawl_json::read(bytes) {
            Ok(Self::Hello { version }) if version != VERSION => Err(format!(
                "it speaks version {version}, and the run version {VERSION}: use the same taskpawl"
            )),
            Ok(ask) => Ok(ask),
            Err(error) => Err(format!("a request cannot be understood: {error}")),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: a request is always valid JSON")
    }
}
