use std::fmt;

use taskpawl::RunOptions;
use taskpawl::model::advice::CommandLine;
use taskpawl::model::rules::Means;
use taskpawl::model::task::{BlockedReason, Event};
use taskpawl::model::value::{Timestamp, format_time};
use taskpawl_http::new_token;
use tokio::sync::mpsc;

use crate::approvals::Ask;

/// The rights of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// May read everything that the page shows.
    Read,
    /// May also give commands that need no terminal.
    Act,
}

/// The tokens of a server. They are valid until it ends.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// The token with [`Scope::Read`].
    pub read: String,
    /// The token with [`Scope::Act`]; absent on a server that only reads.
    pub act: Option<String>,
}

impl Tokens {
    /// Makes new random tokens.
    pub fn new(is_read_only: bool) -> Self {
        Self { read: new_token(), act: (!is_read_only).then(new_token) }
    }

    pub(crate) fn scopes(&self) -> impl Iterator<Item = (&str, Scope)> {
        let act = self.act.as_deref().map(|token| (token, Scope::Act));
        std::iter::once((self.read.as_str(), Scope::Read)).chain(act)
    }
}

/// The words of the terminal for what both show. Each has one home, which is there.
#[derive(Clone, Copy)]
pub struct Words {
    /// Describes the change of an event.
    pub event: fn(&Event) -> String,
    /// Describes why a task is blocked.
    pub reason: fn(&BlockedReason) -> String,
    /// Describes a time, relative to the second one.
    pub time: fn(Timestamp, Timestamp) -> String,
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Words")
    }
}

/// The words of the schema, for embedders without a terminal.
impl Default for Words {
    fn default() -> Self {
        Self {
            event: |event| event.kind.name().to_owned(),
            reason: |reason| reason.kind().to_owned(),
            time: |time, _| format_time(time),
        }
    }
}

/// Settings of a page and of the runs that it starts.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// Options of runs.
    pub run: RunOptions,
    /// The tools and resources of these runs.
    pub means: Means,
    /// The flags for commands that a person is shown.
    pub line: CommandLine,
    /// The words of the terminal.
    pub words: Words,
    /// Receives the approvals that the page asks for, to be confirmed at the terminal of the server. Without it, questions show the
    /// command that answers them.
    pub approvals: Option<mpsc::Sender<Ask>>,
}
