//! Kinds of actors: information that the name of an actor does not contain.

use serde::{Deserialize, Serialize};

use crate::task::event::Event;
use crate::task::spec::{Origin, word_enum};
use crate::task::status::Claim;
use crate::value::Timestamp;

word_enum! {
    /// The kind of an actor. It follows from the interface in use, never from the name: a name does not prove an
    /// identity.
    #[derive(Default)]
    ActorKind {
        /// A person at a terminal, or a program with the embedded library that acts for one.
        Person = "person",
        /// A model: an MCP client, a program of a call with `planAccess`, or a command in the environment of an agent.
        Agent = "agent",
        /// A run, for the calls that it starts and ends.
        Run = "run",
        /// A program without a terminal, or one with the embedded library.
        Program = "program",
        /// Unknown: recorded by a version that stored names only.
        #[default]
        Unknown = "unknown",
    }
}

impl ActorKind {
    /// Returns whether only the name of the actor is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// Returns the origin of a value that an actor of this kind writes by hand. `of_calls` is the origin of its calls.
    ///
    /// A plan that an agent applies and a call that it adds on the command line keep their origin, because the sandbox
    /// confines them. A value goes wherever an expression inserts it, so it counts as text of a model.
    pub fn origin_by_hand(self, of_calls: Origin) -> Origin {
        match (self, of_calls) {
            (Self::Agent, Origin::Mcp) => Origin::Mcp,
            (Self::Agent, _) => Origin::Agent,
            (Self::Person | Self::Run | Self::Program | Self::Unknown, origin) => origin,
        }
    }
}

/// An actor for comparisons. Names are only unique within a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Actor<'a> {
    /// Its kind.
    pub kind: ActorKind,
    /// Its name.
    pub name: &'a str,
}

impl Actor<'_> {
    /// Returns a text that is unique for kind and name. An actor without a kind has its name as key, as in stores of
    /// version 0.1.
    pub fn key(self) -> String {
        match self.kind {
            ActorKind::Unknown => self.name.to_owned(),
            kind @ (ActorKind::Person | ActorKind::Agent | ActorKind::Run | ActorKind::Program) => {
                format!("{kind}\n{}", self.name)
            }
        }
    }

    /// Returns whether a record with `kind` and `name` is of this actor. Records without a kind are compared by name
    /// only.
    pub fn is(self, kind: ActorKind, name: &str) -> bool {
        name == self.name && (kind == ActorKind::Unknown || kind == self.kind)
    }
}

impl Claim {
    /// Returns whether `actor` made the claim and may renew it.
    pub fn is_of(&self, actor: Actor<'_>) -> bool {
        self.run.is_none() && actor.is(self.kind, &self.actor)
    }

    /// Returns whether the store has the task, which waits for a time or a signal: neither a run nor an actor holds it.
    pub fn is_of_store(&self) -> bool {
        self.run.is_none() && self.kind == ActorKind::Run
    }

    /// Returns whether `actor` may report on the task and release it. For tasks of a run, only the run may.
    pub fn may_be_ended_by(&self, actor: Actor<'_>) -> bool {
        self.run.is_none() && (actor.kind == ActorKind::Person || self.is_of(actor))
    }

    /// Returns whether `actor` may take the task away from its holder at `now`, by cancelling it or otherwise.
    ///
    /// Any actor may, except for tasks that a person holds: an agent that tidies up must not end the work of a person.
    pub fn may_be_taken_by(&self, actor: Actor<'_>, now: Timestamp) -> bool {
        let is_of_person = self.run.is_none() && self.kind == ActorKind::Person;
        !is_of_person || actor.kind == ActorKind::Person || self.is_expired(now)
    }
}

impl Event {
    /// Returns the kind of the actor. Actions of a run itself are stored without a kind, because the event has the id
    /// of the run.
    pub fn kind_of_actor(&self) -> ActorKind {
        match (&self.run, self.actor_kind) {
            (Some(_), ActorKind::Unknown) => ActorKind::Run,
            (_, kind) => kind,
        }
    }

    /// Returns whether `actor` caused it outside any run.
    pub(crate) fn is_of(&self, actor: Actor<'_>) -> bool {
        self.run.is_none() && actor.is(self.actor_kind, &self.actor)
    }
}
