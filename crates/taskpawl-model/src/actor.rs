//! Kinds of actors: what the name of an actor alone cannot tell.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::event::Event;
use crate::spec::{Origin, word_enum};
use crate::status::Claim;

word_enum! {
    /// The kind of an actor. The way in decides it, never the name that the actor gives: a name is not proof of who acts.
    #[derive(Default)]
    ActorKind {
        /// A person at a terminal, or an embedder that speaks for one.
        Person = "person",
        /// A model: a client of the MCP server, a program of a call with `planAccess`, a command under an agent's marker.
        Agent = "agent",
        /// A run, for the calls that it starts and ends.
        Run = "run",
        /// A program without a terminal, or one that embeds the library.
        Program = "program",
        /// Not known: written by a version that recorded names alone.
        #[default]
        Unknown = "unknown",
    }
}

impl ActorKind {
    /// Returns whether nothing is known of the actor but its name.
    pub fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// Returns the origin of a value that an actor of this kind writes by hand, where its calls have the origin `of_calls`.
    ///
    /// A plan that an agent applies and a call that it adds on the command line keep their origin, because the sandbox holds
    /// them. A value goes wherever an expression inserts it, so it counts as what it is: the words of a model.
    pub fn origin_by_hand(self, of_calls: Origin) -> Origin {
        match (self, of_calls) {
            (Self::Agent, Origin::Mcp) => Origin::Mcp,
            (Self::Agent, _) => Origin::Agent,
            (Self::Person | Self::Run | Self::Program | Self::Unknown, origin) => origin,
        }
    }
}

/// An actor as the rules compare it: names are unique within a kind alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Actor<'a> {
    /// Its kind.
    pub kind: ActorKind,
    /// Its name.
    pub name: &'a str,
}

impl Actor<'_> {
    /// Returns a text that no actor of another kind or name has. An actor without a kind has its name, as in stores of 0.1.
    pub fn key(self) -> String {
        match self.kind {
            ActorKind::Unknown => self.name.to_owned(),
            kind @ (ActorKind::Person | ActorKind::Agent | ActorKind::Run | ActorKind::Program) => {
                format!("{kind}\n{}", self.name)
            }
        }
    }

    /// Returns whether a record of `kind` and `name` is one of this actor. A record without a kind is told by its name alone.
    pub fn is(self, kind: ActorKind, name: &str) -> bool {
        name == self.name && (kind == ActorKind::Unknown || kind == self.kind)
    }
}

impl Claim {
    /// Returns whether `actor` made the claim: it may renew it.
    pub fn is_of(&self, actor: Actor<'_>) -> bool {
        self.run.is_none() && actor.is(self.kind, &self.actor)
    }

    /// Returns whether `actor` may report on the task and release it. A run alone reports on what it holds.
    pub fn may_be_ended_by(&self, actor: Actor<'_>) -> bool {
        self.run.is_none() && (actor.kind == ActorKind::Person || self.is_of(actor))
    }

    /// Returns whether `actor` may take the task away from its holder at `now`, by cancelling it or otherwise.
    ///
    /// Anybody may, but for what a person holds: an agent that is told to tidy up must not end the work of a person.
    pub fn may_be_taken_by(&self, actor: Actor<'_>, now: Timestamp) -> bool {
        let is_of_person = self.run.is_none() && self.kind == ActorKind::Person;
        !is_of_person || actor.kind == ActorKind::Person || self.is_expired(now)
    }
}

impl Event {
    /// Returns the kind of the actor. What a run did itself is recorded without one, since the run says it.
    pub fn kind_of_actor(&self) -> ActorKind {
        match (&self.run, self.actor_kind) {
            (Some(_), ActorKind::Unknown) => ActorKind::Run,
            (_, kind) => kind,
        }
    }

    /// Returns whether `actor` did it, outside of any run.
    pub(crate) fn is_of(&self, actor: Actor<'_>) -> bool {
        self.run.is_none() && actor.is(self.actor_kind, &self.actor)
    }
}
