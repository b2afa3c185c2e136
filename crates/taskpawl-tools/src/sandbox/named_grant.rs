//! Grants as they are written in files and remembered: `host:NAME`, `port:5432`, `read:PATH`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use taskpawl_process::HostGrant;
use thiserror::Error;

/// One addition to the sandbox, in the form `KIND:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NamedGrant {
    /// No sandbox: `off`.
    Off,
    /// The whole network: `net`.
    Net,
    /// A host by name: `host:NAME[:PORT]`.
    Host(HostGrant),
    /// A port of this machine's loopback: `port:N`.
    Port(u16),
    /// A path to read: `read:PATH`.
    Read(PathBuf),
    /// A path to read and write: `write:PATH`.
    Write(PathBuf),
    /// A unix socket of another program: `socket:PATH`.
    Socket(PathBuf),
    /// An environment variable: `env:NAME`.
    Env(String),
}

/// Error for a text that is not a [`NamedGrant`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a grant: {problem}")]
pub struct InvalidGrant {
    text: String,
    problem: String,
}

impl NamedGrant {
    /// Returns the kind, which is the word before the colon.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Net => "net",
            Self::Host(_) => "host",
            Self::Port(_) => "port",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Socket(_) => "socket",
            Self::Env(_) => "env",
        }
    }

    /// Returns whether this grant includes `other`.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Host(own), Self::Host(other)) => own.covers(other),
            (Self::Read(own), Self::Read(other))
            | (Self::Write(own), Self::Read(other) | Self::Write(other)) => is_at_or_beneath(other, own),
            (
                Self::Off
                | Self::Net
                | Self::Host(_)
                | Self::Port(_)
                | Self::Read(_)
                | Self::Write(_)
                | Self::Socket(_)
                | Self::Env(_),
                _,
            ) => self == other,
        }
    }
}

/// A path with `..` only looks as if it were beneath another one.
fn is_at_or_beneath(path: &Path, above: &Path) -> bool {
    path.starts_with(above) && !path.components().any(|part| part == std::path::Component::ParentDir)
}

impl fmt::Display for NamedGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Self::Off | Self::Net => f.write_str(kind),
            Self::Host(host) => write!(f, "{kind}:{host}"),
            Self::Port(port) => write!(f, "{kind}:{port}"),
            Self::Read(path) | Self::Write(path) | Self::Socket(path) => {
                write!(f, "{kind}:{}", path.display())
            }
            Self::Env(name) => write!(f, "{kind}:{name}"),
        }
    }
}

impl FromStr for NamedGrant {
    type Err = InvalidGrant;

    fn from_str(text: &str) -> Result<Self, InvalidGrant> {
        let invalid = |problem: &str| InvalidGrant { text: text.to_owned(), problem: problem.to_owned() };
        let path = |path: &str| match Path::new(path) {
            path if path.is_absolute() => Ok(path.to_owned()),
            _ => Err(invalid("a path is absolute")),
        };
        match text.split_once(':') {
            None if text == "off" => Ok(Self::Off),
            None if text == "net" => Ok(Self::Net),
            Some(("host", name)) => name
                .parse()
                .map(Self::Host)
                .map_err(|error: taskpawl_process::InvalidHostGrant| invalid(&error.to_string())),
            Some(("port", port)) => {
                let port = port.parse().ok().filter(|port: &u16| *port > 0);
                port.map(Self::Port).ok_or_else(|| invalid("a port is a number from 1 to 65535"))
            }
            Some(("read", place)) => path(place).map(Self::Read),
            Some(("write", place)) => path(place).map(Self::Write),
            Some(("socket", place)) => path(place).map(Self::Socket),
            Some(("env", name)) if is_variable(name) => Ok(Self::Env(name.to_owned())),
            _ => Err(invalid(
                "write `host:NAME`, `port:N`, `read:PATH`, `write:PATH`, `socket:PATH`, `env:NAME`, `net` or `off`",
            )),
        }
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl Serialize for NamedGrant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NamedGrant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A grant that a person has remembered for a project.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RememberedGrant {
    /// The plan whose calls have it; `None` for all plans of the project. Tasks without a plan have the name "".
    pub plan: Option<String>,
    /// Calls that a model wrote have it, too.
    pub agents: bool,
    /// The calls that have it; `None` for all calls of the plan.
    pub only: Option<Vec<GrantedWork>>,
    /// The kit of the calls that have it, as [`Tool::kit`](crate::Tool::kit) names it; `None` for all tools.
    pub kit: Option<String>,
    /// The grant. [`NamedGrant::Off`] and [`NamedGrant::Net`] have no effect here.
    pub grant: NamedGrant,
}

/// A call that has a grant, as it was defined when the grant was given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrantedWork {
    /// The id of the task.
    pub task: String,
    /// The hash of the call's definition.
    pub definition: String,
}

/// A call that asks for the remembered grants.
#[derive(Clone, Copy)]
pub struct GrantedCall<'a> {
    /// The plan of its task; "" without one.
    pub plan: &'a str,
    /// The id of its task.
    pub task: &'a str,
    /// Returns the hash of its definition.
    pub definition: &'a dyn Fn() -> String,
    /// The kit of its tool.
    pub kit: Option<&'a str>,
    /// A model wrote it.
    pub is_model: bool,
}

impl RememberedGrant {
    /// Returns whether a call has the grant.
    pub fn is_of(&self, call: GrantedCall<'_>) -> bool {
        let is_of_plan = self.plan.as_deref().is_none_or(|own| own == call.plan);
        let is_work = |only: &Vec<GrantedWork>| {
            only.iter().any(|work| work.task == call.task && work.definition == (call.definition)())
        };
        let is_of_kit = self.kit.as_deref().is_none_or(|own| call.kit == Some(own));
        is_of_plan && is_of_kit && (self.agents || !call.is_model) && self.only.as_ref().is_none_or(is_work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(text: &str) -> NamedGrant {
        text.parse().unwrap()
    }

    #[test]
    fn a_grant_is_written_as_it_is_read() {
        for text in [
            "off",
            "net",
            "host:a.example",
            "host:*.a.example:22",
            "socket:/run/a.sock",
            "port:5432",
            "read:/a b",
            "write:/a",
            "env:A_1",
        ] {
            assert_eq!(grant(text).to_string(), text);
        }
        for text in
            ["", "host", "host:", "host:10.0.0.1", "port:0", "port:x", "read:a", "env:", "env:A B", "all"]
        {
            assert!(text.parse::<NamedGrant>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_grant_covers_itself_and_less() {
        for (own, other, is_covered) in [
            ("host:a.example", "host:a.example", true),
            ("host:a.example", "host:a.example:443", true),
            ("host:a.example:443", "host:a.example", false),
            ("host:*.a.example", "host:b.a.example", true),
            ("host:*.a.example", "host:*.b.a.example", true),
            ("host:*.a.example", "host:a.example", false),
            ("host:b.a.example", "host:*.a.example", false),
            ("port:1", "port:2", false),
            ("write:/a", "read:/a/b", true),
            ("read:/a", "write:/a", false),
            ("read:/a", "read:/a/../b", false),
            ("off", "net", false),
        ] {
            assert_eq!(grant(own).covers(&grant(other)), is_covered, "{own} {other}");
        }
    }

    #[test]
    fn a_remembered_grant_is_of_its_plan_and_not_of_models() {
        let of = |plan: Option<&str>, agents| RememberedGrant {
            plan: plan.map(str::to_owned),
            agents,
            only: None,
            kit: None,
            grant: NamedGrant::Port(1),
        };
        let call = |plan, is_model| GrantedCall {
            plan,
            task: "t",
            definition: &|| "1".to_owned(),
            kit: Some("agent:a"),
            is_model,
        };
        assert!(
            of(Some("a"), false).is_of(call("a", false)) && !of(Some("a"), false).is_of(call("b", false))
        );
        assert!(
            of(None, false).is_of(call("b", false))
                && !of(None, false).is_of(call("b", true))
                && of(None, true).is_of(call("b", true))
        );
        let of_kit = |kit: &str| RememberedGrant { kit: Some(kit.to_owned()), ..of(None, false) };
        assert!(of_kit("agent:a").is_of(call("a", false)) && !of_kit("agent:b").is_of(call("a", false)));
        let only = |task: &str, definition: &str| {
            let work = GrantedWork { task: task.to_owned(), definition: definition.to_owned() };
            RememberedGrant { only: Some(vec![work]), ..of(None, false) }
        };
        assert!(only("t", "1").is_of(call("a", false)) && !only("t", "1").is_of(call("a", true)));
        assert!(!only("t", "2").is_of(call("a", false)) && !only("u", "1").is_of(call("a", false)));
    }
}
