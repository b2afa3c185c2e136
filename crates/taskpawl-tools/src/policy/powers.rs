//! Powers: the ways in which a flag, a file, a remembered grant or a call gives more than there is by default: a wider sandbox, fewer
//! questions, or data that leaves the store. A policy has a key for each of them.

use serde::Serialize;

use super::call::words;

words! {
    /// A way to get more than there is by default.
    Power {
        /// Running programs without the sandbox.
        Off = "off",
        /// The whole network.
        Net = "net",
        /// Further paths.
        Paths = "paths",
        /// Hosts by name.
        Hosts = "hosts",
        /// Ports of this machine.
        Ports = "ports",
        /// Unix sockets of other programs.
        Sockets = "sockets",
        /// Further environment variables.
        Variables = "variables",
        /// Grants that a person has remembered for a project.
        Remembered = "remembered",
        /// Kits of sockets and settings for named tasks.
        Kits = "kits",
        /// Approvals that a person has remembered for a project.
        Approvals = "approvals",
        /// Values of models that a person trusts for a call, by `trustInputs`.
        TrustInputs = "trust_inputs",
        /// Files of projects that describe tools and servers, once a person trusts them.
        Trust = "trust",
        /// Calls over MCP that run without a question.
        Mcp = "mcp",
        /// Approvals that the page asks for.
        Page = "page",
        /// Details in reports and traces, such as output.
        Include = "include",
        /// Traces that are sent to a collector.
        Otlp = "otlp",
        /// Flags that widen the sandbox, given by coding agents.
        Agents = "agents",
        /// Asking a planner for a plan, which gets names of the project.
        Planner = "planner",
        /// Calls that a planner lets run again as they are, without a question.
        Retries = "retries",
        /// Signals to tasks that wait for them.
        Signals = "signals",
        /// Calls that are sent to workers on other machines.
        Engine = "engine",
    }
}

words! {
    /// The rule of a policy for a power; stricter ones are greater.
    Ruling {
        /// Everybody who gives the command has it.
        Allow = "allow",
        /// Only a person at a terminal has it, with the PIN if one is set. Calls that request it need an approval each.
        Ask = "ask",
        /// It does not exist.
        Never = "never",
    }
}

impl Power {
    /// Returns the ruling without a policy.
    pub(crate) fn default_ruling(self) -> Ruling {
        if self == Self::Retries { Ruling::Ask } else { Ruling::Allow }
    }

    /// Returns a description that continues "refused to …".
    pub fn action(self) -> &'static str {
        match self {
            Self::Off => "run programs without the sandbox",
            Self::Net => "let programs use the network",
            Self::Paths => "let programs reach other paths",
            Self::Hosts => "let programs reach hosts",
            Self::Ports => "let programs reach ports of this machine",
            Self::Sockets => "let programs connect to sockets of other programs",
            Self::Variables => "give programs further variables",
            Self::Remembered => "use remembered grants",
            Self::Kits => "use kits",
            Self::Approvals => "use remembered approvals",
            Self::TrustInputs => "trust values of models",
            Self::Trust => "trust files of projects",
            Self::Mcp => "let calls over MCP run without a question",
            Self::Page => "approve from the page",
            Self::Include => "put details into reports and traces",
            Self::Otlp => "send traces",
            Self::Agents => "let a coding agent widen the sandbox",
            Self::Planner => "ask a planner",
            Self::Retries => "let a planner run failed calls again without a question",
            Self::Signals => "send signals",
            Self::Engine => "send calls to workers",
        }
    }
}

/// The ruling of a layer on a power, with its position in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuledPower {
    pub(crate) ruling: Ruling,
    pub(crate) line: usize,
    /// The table of the file.
    pub(crate) table: &'static str,
}

/// The strictest ruling of all layers on a power.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PowerInForce {
    /// The power.
    pub power: Power,
    /// The ruling.
    pub ruling: Ruling,
    /// The place that says so; `None` for the built-in default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}
