//! Scopes: the rights of tokens.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use taskpawl::model::task::check_signal_name;

/// The word before the name of a signal.
const SIGNAL: &str = "signal:";

/// The rights of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scope {
    /// May read everything that the page shows.
    Read,
    /// May also give commands that need no terminal.
    Act,
    /// May use the MCP server as an agent, and nothing else.
    Mcp,
    /// May send the signal of this name, and nothing else.
    Signal(String),
}

/// The right that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    Read,
    Act,
    Mcp,
    /// To send the signal that the path names.
    Signal,
}

impl Right {
    /// Returns the word of the scope that has it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Act => "act",
            Self::Mcp => "mcp",
            Self::Signal => "signal",
        }
    }
}

impl Scope {
    /// Returns whether a token with this scope has a right on the value of a path.
    pub(crate) fn allows(&self, needed: Right, value: &str) -> bool {
        match self {
            Self::Read => needed == Right::Read,
            Self::Act => needed != Right::Mcp,
            Self::Mcp => needed == Right::Mcp,
            Self::Signal(name) => needed == Right::Signal && name == value,
        }
    }

    /// Returns the scope on a server that only reads; `None` if nothing is left of it.
    pub fn for_reading(self) -> Option<Self> {
        match self {
            Self::Act | Self::Read => Some(Self::Read),
            Self::Mcp => Some(Self::Mcp),
            Self::Signal(_) => None,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read => f.write_str("read"),
            Self::Act => f.write_str("act"),
            Self::Mcp => f.write_str("mcp"),
            Self::Signal(name) => write!(f, "{SIGNAL}{name}"),
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "read" => Ok(Self::Read),
            "act" => Ok(Self::Act),
            "mcp" => Ok(Self::Mcp),
            _ => {
                let name = text.strip_prefix(SIGNAL);
                let name =
                    name.ok_or_else(|| "expected read, act, mcp, or signal: with a name".to_owned())?;
                check_signal_name(name)?;
                Ok(Self::Signal(name.to_owned()))
            }
        }
    }
}

impl TryFrom<String> for Scope {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_what_the_table_says() {
        let signal = Scope::Signal("go".to_owned());
        let all = [Scope::Read, Scope::Act, Scope::Mcp, signal.clone()];
        let rights = [Right::Read, Right::Act, Right::Mcp, Right::Signal];
        let allowed = all.map(|given| rights.map(|needed| given.allows(needed, "go")));
        let expected = [
            [true, false, false, false],
            [true, true, false, true],
            [false, false, true, false],
            [false, false, false, true],
        ];
        assert_eq!(allowed, expected);
        assert!(!signal.allows(Right::Signal, "other"));
    }

    #[test]
    fn a_scope_is_one_word() {
        for word in ["read", "act", "mcp", "signal:go"] {
            let scope: Scope = word.parse().unwrap();
            assert_eq!(scope.to_string(), word);
            assert_eq!(serde_json::to_string(&scope).unwrap(), format!("\"{word}\""));
        }
        for wrong in ["", "signal", "signal:", "signal:a b", "signal:*", "write"] {
            assert!(wrong.parse::<Scope>().is_err(), "{wrong}");
        }
    }
}
