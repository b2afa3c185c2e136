use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde_json::Value;
use taskpawl_process::SpawnError;
use thiserror::Error;

use crate::sandbox::ClosedReason;
use crate::secrets::SecretError;

/// Why a tool call failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The arguments do not fit the tool; nothing was done.
    #[error("`{tool}` refuses its arguments: `{field}` {problem}")]
    InvalidArgs {
        /// Name of the tool.
        tool: String,
        /// Path of the field, as in `args.argv[0]`.
        field: String,
        /// What is wrong with it, to be read after the field.
        problem: String,
    },
    /// The operating system refused something about a file.
    #[error("failed to {action} `{path}`")]
    Io {
        /// What was tried, as a verb: `read`, `write`.
        action: &'static str,
        /// The file, as the call named it.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A path leads out of the project.
    #[error("`{path}` leads out of the project root; use a path beneath it, without links that leave it")]
    OutsideRoot {
        /// The path, as the call named it.
        path: PathBuf,
    },
    /// A path belongs to taskpawl itself.
    #[error("`{path}` belongs to taskpawl itself, and tools do not write there")]
    Protected {
        /// The path, as the call named it.
        path: PathBuf,
    },
    /// A path is closed to tools, as it is to programs in their sandbox.
    #[error("`{path}` {reason}")]
    Closed {
        /// The path, as the call named it.
        path: PathBuf,
        /// Why it is, and what would open it.
        reason: ClosedReason,
    },
    /// A secret that the arguments name cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A program could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A program could not be started because of its sandbox.
    #[error("{source}; {hint}")]
    OutsideSandbox {
        /// What the system said.
        source: SpawnError,
        /// What the sandbox has to do with it, and what would let it start.
        hint: String,
    },
    /// A program ended with another exit code than those that count as success.
    #[error("{}", exit_message(program, *code, *signal, stderr, hint.as_deref()))]
    Exit {
        /// The program, as the call named it.
        program: String,
        /// Exit code; 128 plus the number of the signal where one ended the program.
        code: i32,
        /// The signal that ended the program.
        signal: Option<i32>,
        /// The last line that it wrote to its standard error, fit for a terminal; may be empty.
        stderr: String,
        /// What of its sandbox it ran into, as far as can be told, and what would let it through.
        hint: Option<String>,
        /// What the call would have returned.
        result: Box<Value>,
    },
    /// What a program or server returned is not what the call asked for.
    #[error("{what} cannot be read as JSON: {problem}")]
    InvalidJson {
        /// What was read, as in ``stdout of `jq` ``.
        what: String,
        /// Why it could not be read.
        problem: String,
        /// What the call would have returned.
        result: Box<Value>,
    },
    /// The call was not over at its deadline.
    #[error("the call was not over at its deadline")]
    Timeout {
        /// What it had returned until then.
        result: Option<Box<Value>>,
    },
    /// The call was told to end.
    #[error("the call was cancelled")]
    Cancelled {
        /// What it had returned until then.
        result: Option<Box<Value>>,
    },
    /// Whoever did the work is gone, and nobody knows how far it came.
    #[error("{message}")]
    Lost {
        /// A lower-case fragment that says what is gone.
        message: String,
    },
    /// The call printed more than it may.
    #[error("the call put out more than the limit of {limit_bytes} bytes")]
    OutputLimit {
        /// The limit, over all of its output.
        limit_bytes: u64,
        /// What it had returned until then.
        result: Option<Box<Value>>,
    },
    /// A request was to go where it may not.
    #[error("`{host}:{port}` {}", block_message(host, *port, reason))]
    BlockedAddress {
        /// The host, as it was understood.
        host: String,
        /// The port.
        port: u16,
        /// Why it may not be reached.
        reason: BlockReason,
    },
    /// A request got no answer.
    #[error("no answer from `{url}`: {problem}")]
    Http {
        /// Where the request went.
        url: String,
        /// Why there is no answer.
        problem: String,
    },
    /// A server answered with an error.
    #[error("`{url}` answered with status {status}")]
    HttpStatus {
        /// Where the request went.
        url: String,
        /// The status, 400 or above.
        status: u16,
        /// What the call would have returned.
        result: Box<Value>,
    },
    /// A server said that its tool failed.
    #[error("{message}")]
    Answered {
        /// What it said, as one line.
        message: String,
        /// What it returned.
        result: Box<Value>,
    },
    /// A server could not be started or reached, or does not keep to the protocol; the call has not begun.
    #[error("{message}")]
    Server {
        /// A lower-case fragment that says which server and what is wrong.
        message: String,
    },
    /// The tool panicked.
    #[error("the tool panicked: {message}")]
    Panicked {
        /// What the panic said.
        message: String,
    },
    /// Everything that a tool wants to say in its own words.
    #[error("{message}")]
    Failed {
        /// A lower-case fragment that says what failed.
        message: String,
    },
}

impl ToolError {
    /// Makes an error in the tool's own words: a lower-case fragment without a final period.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into() }
    }

    /// Returns the kind of failure as a stable word, by which failures are grouped and retries decided.
    pub fn class(&self) -> &'static str {
        match self {
            Self::InvalidArgs { .. } => "invalid_args",
            Self::Io { .. } | Self::Spawn(SpawnError::Output { .. }) => "io",
            Self::OutsideRoot { .. } => "outside_root",
            Self::Protected { .. } | Self::Closed { .. } => "protected",
            Self::Secret(_) => "secret",
            Self::Spawn(_) | Self::OutsideSandbox { .. } => "spawn",
            Self::Exit { .. } => "exit_code",
            Self::InvalidJson { .. } => "invalid_json",
            Self::Timeout { .. } => "timeout",
            Self::Cancelled { .. } => "cancelled",
            Self::Lost { .. } => "lost",
            Self::OutputLimit { .. } => "output_limit",
            Self::BlockedAddress { .. } => "blocked_address",
            Self::Http { .. } => "http",
            Self::HttpStatus { .. } => "http_status",
            Self::Answered { .. } => "tool_error",
            Self::Server { .. } => "server",
            Self::Panicked { .. } => "panic",
            Self::Failed { .. } => "failed",
        }
    }

    /// Returns what the call had to show for itself although it failed, in the form of its result.
    pub fn result(&self) -> Option<&Value> {
        match self {
            Self::Exit { result, .. }
            | Self::InvalidJson { result, .. }
            | Self::Answered { result, .. }
            | Self::HttpStatus { result, .. } => Some(result),
            Self::Timeout { result } | Self::Cancelled { result } | Self::OutputLimit { result, .. } => {
                result.as_deref()
            }
            Self::InvalidArgs { .. }
            | Self::Io { .. }
            | Self::OutsideRoot { .. }
            | Self::Protected { .. }
            | Self::Closed { .. }
            | Self::Secret(_)
            | Self::Spawn(_)
            | Self::OutsideSandbox { .. }
            | Self::Lost { .. }
            | Self::BlockedAddress { .. }
            | Self::Http { .. }
            | Self::Server { .. }
            | Self::Panicked { .. }
            | Self::Failed { .. } => None,
        }
    }
}

/// Why a host may not be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockReason {
    /// There is a list of hosts, and it is not on it.
    Unlisted,
    /// It is, or leads to, an address that is not public, and nobody has listed that.
    NotPublic {
        /// The address.
        address: IpAddr,
        /// What it is, as in `a loopback address`.
        kind: &'static str,
    },
}

fn block_message(host: &str, port: u16, reason: &BlockReason) -> String {
    match reason {
        BlockReason::Unlisted => {
            "is not among the hosts that may be reached: `hosts` in `[tools.http_request]` of the configuration lists them"
                .to_owned()
        }
        BlockReason::NotPublic { address, kind } => {
            let listed = SocketAddr::new(*address, port);
            let is_name = host.trim_matches(['[', ']']) != address.to_string();
            let (leads, both) = if is_name {
                (format!("leads to `{address}`, {kind}"), " beside the name")
            } else {
                (format!("is {kind}"), "")
            };
            format!("{leads}, and may only be reached if `hosts` in `[tools.http_request]` of the user's configuration lists `{listed}`{both}")
        }
    }
}

fn exit_message(program: &str, code: i32, signal: Option<i32>, stderr: &str, hint: Option<&str>) -> String {
    let how = match signal {
        Some(signal) => format!("`{program}` was ended by signal {signal}"),
        None => format!("`{program}` exited with code {code}"),
    };
    let how = if stderr.is_empty() { how } else { format!("{how}: {stderr}") };
    hint.map_or(how.clone(), |hint| format!("{how}; {hint}"))
}

/// Why a tool could not be registered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Another tool has the name.
    #[error("a tool named `{name}` is registered already")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The name cannot stand in a plan.
    #[error(
        "`{name}` is no name for a tool: use 1 to 64 letters, digits, `.`, `_` and `-`, with `SERVER/` before it for the tool of a server"
    )]
    InvalidName {
        /// The name.
        name: String,
    },
    /// A schema of the tool cannot be used.
    #[error("the {which} schema of tool `{name}` is invalid at `{at}`: {problem}")]
    InvalidSchema {
        /// Name of the tool.
        name: String,
        /// `args` or `result`.
        which: &'static str,
        /// JSON pointer into the schema.
        at: String,
        /// What is wrong there.
        problem: String,
    },
}
