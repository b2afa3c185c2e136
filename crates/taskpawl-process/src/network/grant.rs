//! Hosts that programs may reach by name.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// The ports of a grant that names none: HTTPS and HTTP.
const USUAL_PORTS: [u16; 2] = [443, 80];

/// The longest name that DNS allows.
const MAX_NAME: usize = 253;

/// Ports of servers that carry out any command of a client, each with the server.
const ALL_POWERFUL: [(u16, &str); 9] = [
    (2375, "the container engine"),
    (2376, "the container engine"),
    (2377, "the container engine"),
    (5005, "the debugger of Java"),
    (5678, "the debugger of Python"),
    (6443, "Kubernetes"),
    (9222, "the debugger of browsers"),
    (9229, "the debugger of Node.js"),
    (10250, "Kubernetes"),
];

/// Returns the server of a port, if its clients can do everything; a grant of the port would be as good as no sandbox.
pub fn powerful_server(port: u16) -> Option<&'static str> {
    ALL_POWERFUL.iter().find(|(powerful, _)| *powerful == port).map(|(_, server)| *server)
}

/// A host that programs may reach by its name, although they have no network.
///
/// It is written as `registry.example.org`, as `*.example.org` (all names beneath it, but not itself), or with a port as
/// `git.example.org:22`. Without a port, it stands for the ports 443 and 80.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostGrant {
    name: String,
    is_wildcard: bool,
    port: Option<u16>,
}

/// Error for a text that is not a host in the syntax of [`HostGrant`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidHostGrant {
    /// The text is an IP address.
    #[error("`{0}` is an address, and only names can be granted; name the host")]
    Address(String),
    /// The text stands for this machine.
    #[error("`{0}` is this machine; `--allow-port` lets programs use one of its ports")]
    ThisMachine(String),
    /// The text covers all names of a top-level domain.
    #[error(
        "`{0}` covers a whole top-level domain; write at least two labels after `*.`, as in `*.example.org`"
    )]
    TooWide(String),
    /// The text is something else.
    #[error(
        "`{0}` is not a host; write `registry.example.org`, `*.example.org` or `git.example.org:22`, without scheme and path, and other scripts in punycode (`xn--…`)"
    )]
    Malformed(String),
}

impl HostGrant {
    /// Returns the name, without `*.`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the grant covers the names beneath its name, instead of the name itself.
    pub fn is_wildcard(&self) -> bool {
        self.is_wildcard
    }

    /// Returns whether everything that `other` opens is open by this grant.
    pub fn covers(&self, other: &Self) -> bool {
        let has_name = match (self.is_wildcard, other.is_wildcard) {
            (false, true) => false,
            (false, false) => self.name == other.name,
            (true, is_wildcard) => {
                is_beneath(&other.name, &self.name) || (is_wildcard && other.name == self.name)
            }
        };
        let ports = self.ports();
        has_name && other.ports().iter().all(|port| ports.contains(port))
    }

    /// Returns the ports that programs may connect to.
    pub fn ports(&self) -> Vec<u16> {
        self.port.map_or(USUAL_PORTS.to_vec(), |port| vec![port])
    }
}

/// Returns whether `name` is a name beneath `above`.
pub(super) fn is_beneath(name: &str, above: &str) -> bool {
    name.strip_suffix(above).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// Returns whether a text in lower case is a host name.
pub(super) fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // Resolvers read a name that ends in a number as an address.
    let ends_in_number =
        text.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()));
    text.len() <= MAX_NAME && text.split('.').all(is_label) && !ends_in_number
}

impl FromStr for HostGrant {
    type Err = InvalidHostGrant;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || InvalidHostGrant::Malformed(text.to_owned());
        if text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return Err(InvalidHostGrant::Address(text.to_owned()));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => {
                (host, Some(port.parse().ok().filter(|port| *port > 0).ok_or_else(malformed)?))
            }
            None => (text, None),
        };
        if host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return Err(InvalidHostGrant::Address(text.to_owned()));
        }
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let (name, is_wildcard) = match host.strip_prefix("*.") {
            Some(name) => (name.to_owned(), true),
            None => (host, false),
        };
        if !is_name(&name) {
            return Err(malformed());
        }
        if name == "localhost" || is_beneath(&name, "localhost") {
            return Err(InvalidHostGrant::ThisMachine(text.to_owned()));
        }
        if is_wildcard && !name.contains('.') {
            return Err(InvalidHostGrant::TooWide(text.to_owned()));
        }
        Ok(Self { name, is_wildcard, port })
    }
}

impl fmt::Display for HostGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_wildcard { "*." } else { "" })?;
        f.write_str(&self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(text: &str) -> Result<HostGrant, InvalidHostGrant> {
        text.parse()
    }

    #[test]
    fn a_grant_has_one_spelling_and_usual_ports() {
        for (text, shown, ports) in [
            ("Registry.Example.ORG.", "registry.example.org", &[443, 80][..]),
            ("git.example.org:22", "git.example.org:22", &[22]),
            ("*.example.org", "*.example.org", &[443, 80]),
            ("gitlab", "gitlab", &[443, 80]),
            ("xn--bcher-kva.example", "xn--bcher-kva.example", &[443, 80]),
        ] {
            let grant = grant(text).unwrap();
            assert_eq!((grant.to_string().as_str(), &grant.ports()[..]), (shown, ports));
            assert_eq!(shown.parse(), Ok(grant));
        }
    }

    #[test]
    fn what_is_no_name_is_refused_with_the_reason() {
        for text in [
            "",
            "*",
            "*.",
            "a b",
            "http://a.b",
            "a/b",
            "a:",
            "a:0",
            "a:99999",
            "a:b",
            "bücher.example",
            "-.",
            "a..b",
            "127.1",
            "0x7f.1",
            "a.*.b",
        ] {
            assert_eq!(grant(text), Err(InvalidHostGrant::Malformed(text.to_owned())), "{text}");
        }
        for text in ["127.0.0.1", "192.0.2.1:80", "::1", "[::1]", "[::1]:80"] {
            assert_eq!(grant(text), Err(InvalidHostGrant::Address(text.to_owned())), "{text}");
        }
        for text in ["localhost", "LOCALHOST:80", "a.localhost", "*.localhost"] {
            assert_eq!(grant(text), Err(InvalidHostGrant::ThisMachine(text.to_owned())), "{text}");
        }
        assert_eq!(grant("*.org"), Err(InvalidHostGrant::TooWide("*.org".to_owned())));
    }

    #[test]
    fn a_name_beneath_another_has_a_label_more() {
        assert!(is_beneath("a.example.org", "example.org") && is_beneath("a.b.example.org", "example.org"));
        for name in ["example.org", ".example.org", "anexample.org", "example.org.a", ""] {
            assert!(!is_beneath(name, "example.org"), "{name}");
        }
    }
}
