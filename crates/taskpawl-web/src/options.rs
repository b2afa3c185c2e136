use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use taskpawl::model::advice::CommandLine;
use taskpawl::model::rules::Means;
use taskpawl::model::task::{BlockedReason, Event};
use taskpawl::model::value::{Timestamp, format_time};
use taskpawl::{PlanNames, RunOptions};
use taskpawl_http::{Mount, StoredTokens, new_token};
use tokio::sync::mpsc;

use crate::approvals::Ask;
use crate::scope::Scope;

/// The tokens of a server. They are valid until it ends.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// The token with [`Scope::Read`].
    pub read: String,
    /// The token with [`Scope::Act`]; absent on a server that only reads.
    pub act: Option<String>,
    /// The token with [`Scope::Mcp`]; absent on a server without MCP.
    pub mcp: Option<String>,
    /// Tokens that outlive the server. On a server that only reads, [`Scope::Act`] is to be given as [`Scope::Read`].
    pub stored: Option<StoredTokens<Scope>>,
}

impl Tokens {
    /// Makes new random tokens.
    pub fn new(is_read_only: bool) -> Self {
        Self { read: new_token(), act: (!is_read_only).then(new_token), mcp: None, stored: None }
    }

    /// Adds a token for the MCP server.
    #[must_use]
    pub fn with_mcp(self) -> Self {
        Self { mcp: Some(new_token()), ..self }
    }

    pub(crate) fn scopes(&self) -> impl Iterator<Item = (&str, Scope)> {
        let more = [(&self.act, Scope::Act), (&self.mcp, Scope::Mcp)];
        let more = more.into_iter().filter_map(|(token, scope)| Some((token.as_deref()?, scope)));
        std::iter::once((self.read.as_str(), Scope::Read)).chain(more)
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

/// Reads a file of the project by the rules for file tools: `None` if there is none, or the reason for a refusal.
#[derive(Clone)]
pub struct ReadFile(pub Arc<FileReader>);

type FileReader = dyn Fn(&str) -> Result<Option<String>, String> + Send + Sync;

impl fmt::Debug for ReadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadFile")
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
    /// The directory of the project, for the files of plans.
    pub root: Option<PathBuf>,
    /// The plans by name that the files of plans include. Without them, these files are not read.
    pub plan_names: Option<PlanNames>,
    /// Reads files for the changes that a question would make. Without it, they are not shown.
    pub read_file: Option<ReadFile>,
    /// The MCP server at `/mcp`, for holders of a token with [`Scope::Mcp`].
    pub mcp: Option<Mount>,
    /// Sends no signals for holders of [`Scope::Act`], because a policy leaves signals to people.
    pub refuses_signals: bool,
}
