//! Powers: the ways in which a flag, a file, a remembered grant or a call gives more than the sandbox does by default. A policy has a key
//! for each of them.

use serde::Serialize;

use super::call::words;

words! {
    /// A way to get more than the sandbox gives by default.
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
        /// Further environment variables.
        Variables = "variables",
        /// Grants that a person has remembered for a project.
        Remembered = "remembered",
        /// Flags that widen the sandbox, given by coding agents.
        Agents = "agents",
        /// Asking a planner for a plan, which gets names of the project.
        Planner = "planner",
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
    /// Returns a description that continues "refused to …".
    pub fn action(self) -> &'static str {
        match self {
            Self::Off => "run programs without the sandbox",
            Self::Net => "let programs use the network",
            Self::Paths => "let programs reach other paths",
            Self::Hosts => "let programs reach hosts",
            Self::Ports => "let programs reach ports of this machine",
            Self::Variables => "give programs further variables",
            Self::Remembered => "use remembered grants",
            Self::Agents => "let a coding agent widen the sandbox",
            Self::Planner => "ask a planner",
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
