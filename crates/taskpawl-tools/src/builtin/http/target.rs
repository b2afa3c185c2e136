//! Target of a URL. Each host has one normal form, regardless of its spelling.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ureq::http::Uri;

/// Normalized host, as it is compared and connected to: names in lower case without the final dot, and parsed
/// addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

/// Host and port of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) port: u16,
}

const PORT: &str = "has an invalid port";

impl Target {
    /// Parses the target of a URL. The error is worded to follow the name of the URL.
    pub(super) fn of(uri: &Uri) -> Result<Self, &'static str> {
        let authority = uri.authority().ok_or("has no host")?;
        if authority.as_str().contains('@') {
            return Err("contains a user or password; send them in the header `authorization`");
        }
        let default_port = match uri.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            _ => return Err("must begin with `http:` or `https:`"),
        };
        let after_host = &authority.as_str()[authority.host().len()..];
        let port = match after_host {
            "" | ":" => default_port,
            _ => after_host.strip_prefix(':').and_then(|port| port.parse().ok()).ok_or(PORT)?,
        };
        let host = Host::parse(authority.host()).ok_or("has a host that is neither a name nor an address")?;
        Ok(Self { host, port })
    }
}

impl Host {
    /// Parses a host. Text that ends in a number is an IPv4 address in one of its many spellings, as in browsers, and
    /// never a name: some resolvers would read it as an address as well.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[') {
            let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let last = name.rsplit('.').next().unwrap_or_default();
        if last.starts_with(|char: char| char.is_ascii_digit()) && number(last).is_some()
            || last.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Some(Self::Address(ipv4(&name)?.into()));
        }
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        (name.len() <= 253 && name.split('.').all(is_label)).then_some(Self::Name(name))
    }
}

/// Parses one to four numbers. The last one fills all remaining bytes, so that `127.1` is `127.0.0.1`.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut numbers: Vec<u64> = text.split('.').map(number).collect::<Option<_>>()?;
    let last = numbers.pop()?;
    let count = u32::try_from(numbers.len()).ok().filter(|count| *count < 4)?;
    if numbers.iter().any(|number| *number > 255) || last >= 1 << (8 * (4 - count)) {
        return None;
    }
    let bits = numbers.iter().zip([24, 16, 8]).map(|(number, shift)| number << shift).sum::<u64>() + last;
    u32::try_from(bits).ok().map(Ipv4Addr::from_bits)
}

/// Parses a decimal, octal (`0…`) or hexadecimal (`0x…`) number.
fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
