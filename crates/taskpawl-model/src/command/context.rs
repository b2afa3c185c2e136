//! The context of a command: actor, time, authority, and the record of an idempotent request.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Debug;
use std::sync::Arc;

use super::{ApplyReport, Command};
use crate::task::policy_hook::PolicyHook;
use crate::task::spec::Origin;
use crate::task::{Actor, ActorKind};
use crate::value::Timestamp;
use crate::value::{RunId, SharedText, TaskId};

/// Actor, time and authority of a command. The rules read no clock, so the time comes from here.
#[derive(Debug, Clone)]
pub struct Context {
    /// Time of the command.
    pub now: Timestamp,
    /// Name of the actor.
    pub actor: SharedText,
    /// Kind of the actor. Names are unique only within a kind.
    pub kind: ActorKind,
    /// The run that gives the command, if any.
    pub run: Option<RunId>,
    /// Origin recorded on the calls that the command adds.
    pub origin: Origin,
    /// Policy hook that authorizes calls before they start. Without one, only the authors of calls require approvals.
    pub policy_hook: Option<Arc<dyn PolicyHook>>,
    /// Removes secrets from what is copied into names. Without it names are stored unchanged.
    pub redact: Option<Arc<dyn Redact>>,
}

/// Removes secrets from texts about tasks: results, notes, reasons, answers and names. The engine installs one.
pub trait Redact: Debug + Send + Sync {
    /// Replaces the secrets in all strings of a value. May read files, but must not prompt the user.
    fn redact(&self, value: &mut Value);
}

impl Context {
    /// Returns the context of a reader, which changes nothing.
    pub(crate) fn of_reader() -> Self {
        Self {
            now: Timestamp::default(),
            actor: SharedText::default(),
            kind: ActorKind::Unknown,
            run: None,
            origin: Origin::Library,
            policy_hook: None,
            redact: None,
        }
    }

    /// Returns the actor in the form that claims and events are compared with.
    pub fn as_actor(&self) -> Actor<'_> {
        Actor { kind: self.kind, name: &self.actor }
    }

    /// Returns the kind to record. A recorded run already identifies its actor, so the kind is left unknown then.
    pub(crate) fn recorded_kind(&self) -> ActorKind {
        if self.run.is_some() && self.kind == ActorKind::Run { ActorKind::Unknown } else { self.kind }
    }
}

/// A command together with its context.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command.
    pub command: Command,
    /// Actor and time.
    pub context: Context,
}

/// A command with a request name, so that a caller that lost the reply can retry it safely.
#[derive(Debug, Clone)]
pub struct IdempotentRequest {
    /// Request name, chosen by the actor.
    pub request: String,
    /// Digest of the arguments; tells apart two requests with the same name.
    pub digest: String,
    /// The command to give.
    pub command: Command,
}

/// Record of a completed request, which answers a repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRecord {
    /// Name of the actor.
    pub actor: String,
    /// Kind of the actor; unknown for requests recorded by versions before 0.2.
    #[serde(default, skip_serializing_if = "ActorKind::is_unknown")]
    pub kind: ActorKind,
    /// Request name.
    pub request: String,
    /// Digest of the arguments of the request.
    pub digest: String,
    /// Time of the command.
    pub at: Timestamp,
    /// Tasks in the answer.
    pub tasks: Vec<TaskId>,
    /// Report of an apply, if the command was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<ApplyReport>,
}

impl RequestRecord {
    /// Returns the key under which a store indexes the actor.
    pub fn actor_key(&self) -> String {
        Actor { kind: self.kind, name: &self.actor }.key()
    }

    /// Returns whether `actor` made the request. A record without a kind is matched by name alone.
    pub fn is_of(&self, actor: Actor<'_>) -> bool {
        actor.is(self.kind, &self.actor)
    }
}
