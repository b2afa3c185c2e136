use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde_json::Value;
use taskpawl_process::SpawnError;
use taskpawl_text::cut;
use thiserror::Error;

use crate::adjusted::AdjustedError;
use crate::sandbox::{ClosedReason, Grant, Hint};
use crate::scan::ScanStopped;
use crate::secrets::SecretError;

/// Error of a tool call.
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
        /// Description of the problem, worded to follow the name of the field.
        problem: String,
    },
    /// The operating system refused a file operation.
    #[error("failed to {action} `{path}`")]
    Io {
        /// Operation as a verb: `read`, `write`.
        action: &'static str,
        /// File, as the call named it.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A path leads out of the project.
    #[error("`{path}` leads out of the project root; use a path inside it, without links that leave it")]
    OutsideRoot {
        /// Path, as the call named it.
        path: PathBuf,
    },
    /// A path belongs to taskpawl itself.
    #[error("`{path}` belongs to taskpawl, and tools may not write there")]
    Protected {
        /// Path, as the call named it.
        path: PathBuf,
    },
    /// A path is excluded for tools, as it is for programs in the sandbox.
    #[error("`{path}` {reason}")]
    Closed {
        /// Path, as the call named it.
        path: PathBuf,
        /// Reason, with the setting that would allow access.
        reason: ClosedReason,
    },
    /// A secret that the arguments name is unavailable.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A program could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A program could not be started because of its sandbox.
    #[error("{source}; {hint}")]
    OutsideSandbox {
        /// Error of the operating system.
        source: SpawnError,
        /// Explanation of the part that the sandbox plays, with the setting that would let the program start.
        hint: Box<Hint>,
    },
    /// A program exited with a code that does not count as success.
    #[error("{}", exit_message(program, *code, *signal, stderr, hint.as_deref()))]
    Exit {
        /// Program, as the call named it.
        program: String,
        /// Exit code; 128 plus the number of the signal if a signal ended the program.
        code: i32,
        /// Signal that ended the program.
        signal: Option<i32>,
        /// Last line of its standard error, sanitized for a terminal; may be empty.
        stderr: String,
        /// Sandbox restriction that the program probably hit, with the setting that would lift it.
        hint: Option<Box<Hint>>,
        /// Result that the call would have returned.
        result: Box<Value>,
    },
    /// Output of a program or server is not JSON, although the call asked for that.
    #[error("{what} is not valid JSON: {problem}")]
    InvalidJson {
        /// Name of the output, as in ``stdout of `jq` ``.
        what: String,
        /// Description of the parse error.
        problem: String,
        /// Result that the call would have returned.
        result: Box<Value>,
    },
    /// The call was not over at its deadline.
    #[error("the call exceeded its deadline")]
    Timeout {
        /// Partial result up to then.
        result: Option<Box<Value>>,
    },
    /// The tool failed with an error of its own.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
    /// The tool failed with an error whose class or retries it decides itself. See [`ToolError::with_class`].
    #[error(transparent)]
    Adjusted(Box<AdjustedError>),
    /// The call was cancelled.
    #[error("the call was cancelled")]
    Cancelled {
        /// Partial result up to then.
        result: Option<Box<Value>>,
    },
    /// The program or server that did the work disappeared; the work may be done in part or in full.
    #[error("{message}")]
    Lost {
        /// Lower-case fragment that names the lost party.
        message: String,
    },
    /// The call wrote more output than its limit.
    #[error("the output of the call exceeded the limit of {limit_bytes} bytes")]
    OutputLimit {
        /// Limit in bytes, over all output files together.
        limit_bytes: u64,
        /// Partial result up to then.
        result: Option<Box<Value>>,
    },
    /// A request was blocked because of its host or address.
    #[error("`{host}:{port}` {}", block_message(host, *port, reason))]
    BlockedAddress {
        /// Host, in the form in which it was parsed.
        host: String,
        /// Port of the request.
        port: u16,
        /// Reason for the block.
        reason: BlockReason,
    },
    /// A request got no response.
    #[error("no answer from `{url}`: {problem}")]
    Http {
        /// URL of the request.
        url: String,
        /// Description of the failure.
        problem: String,
    },
    /// A server responded with an error status.
    #[error("`{url}` answered with status {status}")]
    HttpStatus {
        /// URL of the request.
        url: String,
        /// HTTP status, 400 or above.
        status: u16,
        /// Result that the call would have returned.
        result: Box<Value>,
    },
    /// A server reported that its tool failed.
    #[error("{message}")]
    Answered {
        /// Error message of the server, as one line.
        message: String,
        /// Result that the server sent with the error.
        result: Box<Value>,
    },
    /// A server could not be started or reached, or violates the protocol. The call has not begun, so that a retry is
    /// safe.
    #[error("{message}")]
    Server {
        /// Lower-case fragment that names the server and the problem.
        message: String,
    },
    /// The tool panicked.
    #[error("the tool panicked: {message}")]
    Panicked {
        /// Message of the panic.
        message: String,
    },
    /// Any other failure, worded by the tool.
    #[error("{message}")]
    Failed {
        /// Lower-case fragment that describes the failure.
        message: String,
    },
}

impl ToolError {
    /// Makes an error with the tool's own message: a lower-case fragment without a final period.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into() }
    }

    /// Makes an error from that of another library. A [`ToolError`] among them stays what it is.
    pub fn other(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        error.into().downcast::<Self>().map_or_else(Self::Other, |own| *own)
    }

    /// Returns the class of the failure as a stable word. Statistics group by it, and retry rules refer to it.
    pub fn class(&self) -> &str {
        match self {
            Self::Adjusted(adjusted) => adjusted.class.as_deref().unwrap_or_else(|| adjusted.error.class()),
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
            Self::Failed { .. } | Self::Other(_) => "failed",
        }
    }

    /// Adds a hint to the exit code 1 of a program that printed nothing, unless there is a better one.
    pub(crate) fn with_hint_if_silent(mut self, silent: Option<String>) -> Self {
        if let Self::Exit { code: 1, hint: hint @ None, result, .. } = &mut self
            && ["stdout", "stderr"].iter().all(|stream| result[stream] == "")
        {
            *hint = silent.map(|text| Box::new(text.into()));
        }
        self
    }

    /// Returns what would probably let the call succeed.
    pub fn hint(&self) -> Option<&str> {
        self.sandbox_hint().map(|hint| hint.text.as_str())
    }

    /// Returns what a person may grant to let the call succeed.
    pub fn grant(&self) -> Option<Grant> {
        self.sandbox_hint()?.grant.clone()
    }

    fn sandbox_hint(&self) -> Option<&Hint> {
        if let Self::Adjusted(adjusted) = self {
            return adjusted.error.sandbox_hint();
        }
        if let Self::Exit { hint, .. } = self {
            return hint.as_deref();
        }
        if let Self::OutsideSandbox { hint, .. } = self { Some(hint) } else { None }
    }

    /// Returns the partial or complete result of the failed call, in the form of its normal result.
    pub fn result(&self) -> Option<&Value> {
        match self {
            Self::Adjusted(adjusted) => adjusted.error.result(),
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
            | Self::Failed { .. }
            | Self::Other(_) => None,
        }
    }
}

/// Reason why a host is blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockReason {
    /// A list of allowed hosts is configured, and the host is missing there.
    Unlisted,
    /// The host is, or resolves to, an address that is not public and not listed explicitly.
    NotPublic {
        /// Blocked address.
        address: IpAddr,
        /// Kind of the address, as in `a loopback address`.
        kind: &'static str,
    },
}

fn block_message(host: &str, port: u16, reason: &BlockReason) -> String {
    match reason {
        BlockReason::Unlisted => {
            "is not an allowed host: add it to `hosts` in `[tools.http_request]` of the configuration"
                .to_owned()
        }
        BlockReason::NotPublic { address, kind } => {
            let listed = SocketAddr::new(*address, port);
            // Listing only the address would still fail for a request that uses the name, so that the message asks for
            // both.
            let is_name = host.trim_matches(['[', ']']) != address.to_string();
            let (leads, both) = if is_name {
                (format!("resolves to `{address}`, {kind}"), " in addition to the name")
            } else {
                (format!("is {kind}"), "")
            };
            format!(
                "{leads}, which is only allowed if `hosts` in `[tools.http_request]` of the user's configuration lists `{listed}`{both}"
            )
        }
    }
}

/// Number of characters of a command in an error: the cause follows it, and the command itself stands with the call.
const MAX_COMMAND: usize = 60;

fn exit_message(program: &str, code: i32, signal: Option<i32>, stderr: &str, hint: Option<&Hint>) -> String {
    let program = cut(program, MAX_COMMAND);
    let how = match signal {
        Some(signal) => format!("`{program}` was ended by signal {signal}"),
        None => format!("`{program}` exited with code {code}"),
    };
    let how = if stderr.is_empty() { how } else { format!("{how}: {stderr}") };
    hint.map_or(how.clone(), |hint| format!("{how}; {hint}"))
}

/// Error of registering a tool.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Another tool already has the name.
    #[error("a tool named `{name}` is already registered")]
    Duplicate {
        /// Rejected name.
        name: String,
    },
    /// The name is not valid in a plan.
    #[error(
        "`{name}` is not a valid tool name: use 1 to 64 letters, digits, `.`, `_` and `-`, prefixed with `SERVER/` for the tool of a server"
    )]
    InvalidName {
        /// Rejected name.
        name: String,
    },
    /// A schema of the tool cannot be compiled.
    #[error("the {which} schema of tool `{name}` is invalid at `{at}`: {problem}")]
    InvalidSchema {
        /// Name of the tool.
        name: String,
        /// `args` or `result`.
        which: &'static str,
        /// JSON Pointer into the schema.
        at: String,
        /// Description of the problem.
        problem: String,
    },
}

impl From<ScanStopped> for ToolError {
    fn from(stopped: ScanStopped) -> Self {
        match stopped {
            ScanStopped::Cancelled => Self::Cancelled { result: None },
            ScanStopped::TimedOut => Self::Timeout { result: None },
        }
    }
}
