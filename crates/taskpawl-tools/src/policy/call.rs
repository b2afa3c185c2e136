//! A call as the policy sees it, and the decisions about it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::sandbox::{SandboxMode, SandboxSettings};

/// Built-in tools that change nothing and only reach files beneath the root.
pub(crate) const READ_ONLY: &[&str] =
    &["artifacts", "fail", "glob", "grep", "list_dir", "log", "read_file", "return", "sleep", "wait"];

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// All values, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the word for this value in files.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Parses a word; `None` for unknown ones.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Decision on a call, ordered by strictness.
    Decision {
        /// The call runs.
        Allow = "allow",
        /// The call runs once it is approved.
        Ask = "ask",
        /// The call never runs.
        Deny = "deny",
    }
}

words! {
    /// Origin of a call: the party that added it.
    CallOrigin {
        /// A person, on the command line.
        Cli = "cli",
        /// A program that embeds the library.
        Library = "library",
        /// A plan file that a person applied.
        Plan = "plan",
        /// A client of the MCP server.
        Mcp = "mcp",
        /// An agent, through a tool call.
        Agent = "agent",
    }
}

impl CallOrigin {
    /// Returns whether calls of this origin are written by a model rather than a person.
    pub(crate) fn is_model(self) -> bool {
        matches!(self, Self::Mcp | Self::Agent)
    }
}

/// Sandbox permissions that a call requests, or that are granted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SandboxNeed {
    /// Network access.
    pub net: bool,
    /// Readable paths.
    pub read: Vec<String>,
    /// Writable paths; they are readable as well.
    pub write: Vec<String>,
}

impl SandboxNeed {
    /// Returns whether all permissions that `other` requests are granted.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let is_beneath = |paths: &[String], path: &String| {
            // A path with `..` only looks as if it were beneath a granted one.
            let has_parent = path.split('/').any(|part| part == "..");
            !has_parent && paths.iter().any(|above| std::path::Path::new(path).starts_with(above))
        };
        (self.net || !other.net)
            && other.read.iter().all(|path| is_beneath(&self.read, path) || is_beneath(&self.write, path))
            && other.write.iter().all(|path| is_beneath(&self.write, path))
    }
}

/// Call as the policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct PolicyCall<'a> {
    /// Name of the tool.
    pub tool: &'a str,
    /// Arguments after the evaluation of expressions.
    pub args: &'a Map<String, Value>,
    /// Origin of the call.
    pub origin: CallOrigin,
    /// Sandbox permissions that the call requests.
    pub sandbox: Option<&'a SandboxNeed>,
}

/// Sandbox of a run as the user configured it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The sandbox is switched off.
    pub(crate) is_off: bool,
    /// Permissions of every call; requesting them needs no approval.
    pub(crate) granted: SandboxNeed,
    /// Tools of the host program whose calls start no program and change nothing that is executed.
    pub(crate) harmless: Arc<BTreeSet<String>>,
}

impl Setting {
    pub(crate) fn of(settings: &SandboxSettings) -> Self {
        let texts =
            |paths: &[PathBuf]| paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let granted =
            SandboxNeed { net: settings.net, read: texts(&settings.read), write: texts(&settings.write) };
        Self { is_off: settings.mode == SandboxMode::Off, granted, harmless: Arc::default() }
    }
}
