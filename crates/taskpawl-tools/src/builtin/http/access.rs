//! Which hosts may be reached.

use std::net::IpAddr;

use thiserror::Error;

use super::address::special;
use super::target::{Host, Target};
use crate::error::{BlockReason, ToolError};

/// Which hosts the tool `http_request` may reach. By default: every public one.
///
/// A host is written as `api.example.com`, `*.example.org` (all names beneath it, not itself), `192.0.2.7`, `[2001:db8::1]`, `localhost`,
/// or `*` for everything public, each with or without a port (`localhost:8080`). Addresses that are not public (loopback, private,
/// link-local and the like) are reached only where they are listed as such, by their numbers or as `localhost`; a name that leads to
/// one is reached if both are listed.
#[derive(Clone, Debug, Default)]
pub struct HttpAccess {
    /// `None` is every public host.
    granted: Option<Vec<Pattern>>,
    /// Each list leaves of the former what it matches too.
    narrowed: Vec<Vec<Pattern>>,
}

/// A text is no host as [`HttpAccess`] takes it.
#[derive(Debug, Error)]
#[error(
    "`{host}` is no host: write `api.example.com`, `*.example.org`, `localhost:8080`, `127.0.0.1` or `[::1]:80`, without scheme and path"
)]
#[non_exhaustive]
pub struct InvalidHost {
    /// The text.
    pub host: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    host: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    Any,
    /// Begins with a dot.
    Beneath(String),
    One(Host),
}

impl HttpAccess {
    /// Grants every public host.
    pub fn public() -> Self {
        Self::default()
    }

    /// Grants these hosts and no other.
    ///
    /// # Errors
    /// A text is no host.
    pub fn only<S: AsRef<str>>(hosts: impl IntoIterator<Item = S>) -> Result<Self, InvalidHost> {
        Ok(Self { granted: Some(patterns(hosts)?), narrowed: Vec::new() })
    }

    /// Takes away what these hosts do not cover. They grant nothing that was not granted before.
    ///
    /// # Errors
    /// A text is no host.
    pub fn narrowed_to<S: AsRef<str>>(
        mut self,
        hosts: impl IntoIterator<Item = S>,
    ) -> Result<Self, InvalidHost> {
        self.narrowed.push(patterns(hosts)?);
        Ok(self)
    }

    /// Fails if a request may not go there, as far as that can be said before names are looked up.
    pub(super) fn check_target(&self, target: &Target) -> Result<(), ToolError> {
        let lists = self.granted.iter().chain(&self.narrowed);
        if !lists.into_iter().all(|list| list.iter().any(|pattern| pattern.covers(target))) {
            return Err(blocked(target, BlockReason::Unlisted));
        }
        match target.host {
            Host::Address(address) => self.check_address(target, address),
            Host::Name(_) => Ok(()),
        }
    }

    /// Fails if a request to a target may not go to an address that the target has.
    pub(super) fn check_address(&self, target: &Target, address: IpAddr) -> Result<(), ToolError> {
        let Some(kind) = special(address) else { return Ok(()) };
        if self.granted.iter().flatten().any(|pattern| pattern.grants(target, address)) {
            return Ok(());
        }
        Err(blocked(target, BlockReason::NotPublic { address, kind }))
    }
}

fn blocked(target: &Target, reason: BlockReason) -> ToolError {
    ToolError::BlockedAddress { host: target.host.to_string(), port: target.port, reason }
}

fn patterns<S: AsRef<str>>(hosts: impl IntoIterator<Item = S>) -> Result<Vec<Pattern>, InvalidHost> {
    let pattern = |host: S| {
        let host = host.as_ref();
        Pattern::parse(host).ok_or_else(|| InvalidHost { host: host.to_owned() })
    };
    hosts.into_iter().map(pattern).collect()
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        // An IPv6 address without brackets has colons of its own.
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self { host: Hosts::One(Host::Address(address)), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (text, None),
        };
        let host = match host.strip_prefix("*.") {
            _ if host == "*" => Hosts::Any,
            Some(name) => match Host::parse(name)? {
                Host::Name(name) => Hosts::Beneath(format!(".{name}")),
                Host::Address(_) => return None,
            },
            None => Hosts::One(Host::parse(host).filter(|found| is_plain(found, host))?),
        };
        Some(Self { host, port })
    }

    /// Returns whether the pattern is about a target. `*` is about every address, but grants none that is not public.
    fn covers(&self, target: &Target) -> bool {
        let host = match (&self.host, &target.host) {
            (Hosts::Any, _) => true,
            (Hosts::Beneath(end), Host::Name(name)) => name.ends_with(end),
            (Hosts::Beneath(_), Host::Address(_)) => false,
            (Hosts::One(host), of_target) => host == of_target,
        };
        host && self.covers_port(target)
    }

    /// Returns whether the pattern grants an address that is not public.
    fn grants(&self, target: &Target, address: IpAddr) -> bool {
        let is_listed = match &self.host {
            Hosts::Any | Hosts::Beneath(_) => false,
            Hosts::One(Host::Address(listed)) => *listed == address,
            Hosts::One(Host::Name(name)) => {
                name == "localhost" && address.is_loopback() && self.covers(target)
            }
        };
        is_listed && self.covers_port(target)
    }

    fn covers_port(&self, target: &Target) -> bool {
        self.port.is_none_or(|port| port == target.port)
    }
}

/// Returns whether an address in a pattern is spelled as everybody does: a slip in it would open something else.
fn is_plain(host: &Host, text: &str) -> bool {
    matches!(host, Host::Name(_)) || text.starts_with('[') || text.parse::<IpAddr>().is_ok()
}
