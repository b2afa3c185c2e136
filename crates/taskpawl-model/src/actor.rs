//! Kinds of actors: what the name of an actor alone cannot tell.

use serde::{Deserialize, Serialize};

use crate::spec::{Origin, word_enum};

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
