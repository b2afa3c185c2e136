//! Rules for the hosts that requests may reach.

use std::net::IpAddr;

use thiserror::Error;

use super::target::{Host, Target};
use crate::error::{BlockReason, ToolError};
use taskpawl_process::special_address;

/// Hosts that the tool `http_request` may reach. By default these are all public ones.
///
/// A host is written as `api.example.com`, `*.example.org` (all names beneath it, but not itself), `192.0.2.7`,
/// `[2001:db8::1]`, `localhost`, or `*` for everything public. Each may have a port (`localhost:8080`).
///
/// Addresses that are not public (loopback, private, link-local and the like) are only reached if they are listed by
/// number or as `localhost`. A name that resolves to such an address is reached if both the name and the address are
/// listed.
#[derive(Clone, Debug, Default)]
pub struct HttpAccess {
    /// `None` means all public hosts.
    granted: Option<Vec<Pattern>>,
    /// Further lists; a host must be in each of them as well.
    narrowed: Vec<Vec<Pattern>>,
}

/// Error for a text that is not a host in the syntax of [`HttpAccess`].
#[derive(Debug, Error)]
#[error(
    "`{host}` is not a valid host: write `api.example.com`, `*.example.org`, `localhost:8080`, `127.0.0.1` or `[::1]:80`, without scheme and path"
)]
#[non_exhaustive]
pub struct InvalidHost {
    /// Rejected text.
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
    /// Suffix of a name, with its leading dot.
    Beneath(String),
    One(Host),
}

impl HttpAccess {
    /// Allows all public hosts.
    pub fn public() -> Self {
        Self::default()
    }

    /// Allows these hosts and no others.
    ///
    /// # Errors
    /// A text is not a host.
    pub fn only<S: AsRef<str>>(hosts: impl IntoIterator<Item = S>) -> Result<Self, InvalidHost> {
        Ok(Self { granted: Some(patterns(hosts)?), narrowed: Vec::new() })
    }

    /// Restricts access to hosts that this list covers, too. It never allows additional ones.
    ///
    /// # Errors
    /// A text is not a host.
    pub fn narrowed_to<S: AsRef<str>>(
        mut self,
        hosts: impl IntoIterator<Item = S>,
    ) -> Result<Self, InvalidHost> {
        self.narrowed.push(patterns(hosts)?);
        Ok(self)
    }

    /// Fails if a request to a target is not allowed, as far as that is known before name resolution.
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

    /// Fails if a request to a target must not use one of its addresses.
    pub(super) fn check_address(&self, target: &Target, address: IpAddr) -> Result<(), ToolError> {
        let Some(kind) = special_address(address) else { return Ok(()) };
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
        // An IPv6 address without brackets contains colons, which are no separator of a port.
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

    /// Returns whether the pattern covers a target. `*` covers every address, but does not allow non-public ones.
    fn covers(&self, target: &Target) -> bool {
        let host = match (&self.host, &target.host) {
            (Hosts::Any, _) => true,
            (Hosts::Beneath(end), Host::Name(name)) => name.ends_with(end),
            (Hosts::Beneath(_), Host::Address(_)) => false,
            (Hosts::One(host), of_target) => host == of_target,
        };
        host && self.covers_port(target)
    }

    /// Returns whether the pattern allows a non-public address.
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

/// Returns whether an address in a pattern has its usual form. In an unusual one, a typing error would allow another
/// address.
fn is_plain(host: &Host, text: &str) -> bool {
    matches!(host, Host::Name(_)) || text.starts_with('[') || text.parse::<IpAddr>().is_ok()
}
