//! Access that the output of a failed program names, and that its sandbox has refused: sockets of other programs, literal addresses, and
//! environment variables.
//!
//! The kernel does not report these attempts. So the output is compared with facts: a socket exists outside, a variable is set for
//! this process. The result is data to show, and opens nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use taskpawl_process::{Network, Profile};

/// The number of last lines of the output that are searched, and the most bytes of each.
const LINES: usize = 40;
const LINE: usize = 4096;

/// The most records of one call.
const MAX_RECORDS: usize = 20;

/// Phrases in the errors of programs that connect to an address without a route.
const UNREACHABLE: [&str; 4] =
    ["network is unreachable", "no route to host", "enetunreach", "could not connect to server"];

/// Phrases in the errors of programs that miss a variable.
const UNSET: [&str; 14] = [
    "environment",
    "keyerror",
    "missing",
    "must be set",
    "no value",
    "not defined",
    "not found",
    "not present",
    "not set",
    "parameter",
    "required",
    "unbound",
    "undefined",
    "unset",
];

/// Access that was refused, as far as the output of the program names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum NamedAccess {
    /// A unix socket outside of the sandbox.
    Socket { path: PathBuf },
    /// A literal address, which no grant opens: hosts are granted by name.
    Address {
        address: IpAddr,
        #[serde(skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
    },
    /// A variable of this process that programs do not see.
    Variable { name: String },
}

/// Returns the refused access that the standard error of a failed program names.
pub(crate) fn named_access(stderr: &str, profile: &Profile, unseen: &BTreeSet<OsString>) -> Vec<NamedAccess> {
    let mut found = BTreeSet::new();
    for line in stderr.lines().rev().take(LINES) {
        let line = line.get(..LINE).unwrap_or(line);
        let lower = line.to_lowercase();
        found.extend(sockets(line, profile));
        if profile.network == Network::None && UNREACHABLE.iter().any(|phrase| lower.contains(phrase)) {
            found.extend(addresses(line));
        }
        if UNSET.iter().any(|phrase| lower.contains(phrase)) {
            found.extend(variables(line, unseen));
        }
    }
    found.into_iter().take(MAX_RECORDS).collect()
}

/// Returns the words of a line, without the marks around them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | '<' | '>' | ',' | ';' | '=')
    };
    line.split(is_between)
        .map(|word| word.trim_end_matches([':', '.', '!', '?']))
        .filter(|word| !word.is_empty())
}

fn sockets(line: &str, profile: &Profile) -> Vec<NamedAccess> {
    let path_of = |word: &str| {
        let word = word.strip_prefix("unix:").unwrap_or(word);
        let path = Path::new(word.strip_prefix("//").map_or(word, |rest| rest));
        let is_socket =
            path.is_absolute() && fs::metadata(path).is_ok_and(|data| data.file_type().is_socket());
        // Places that the run may write are its own or granted.
        let is_own = profile.write.iter().any(|place| path.starts_with(place));
        (is_socket && !is_own).then(|| NamedAccess::Socket { path: path.to_owned() })
    };
    words(line).filter_map(path_of).collect()
}

fn addresses(line: &str) -> Vec<NamedAccess> {
    let words: Vec<&str> = words(line).collect();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let address = match (word.parse::<SocketAddr>(), word.trim_matches(['[', ']']).parse::<IpAddr>()) {
            (Ok(address), _) => Some((address.ip(), Some(address.port()))),
            (_, Ok(address)) => {
                let rest = words.get(at + 1..).unwrap_or_default();
                let port = match rest {
                    ["port", port, ..] | [port, ..] => port.parse().ok(),
                    [] => None,
                };
                Some((address, port))
            }
            _ => None,
        };
        let outside = address.filter(|(address, _)| !address.is_loopback() && !address.is_unspecified());
        found.extend(outside.map(|(address, port)| NamedAccess::Address { address, port }));
    }
    found
}

fn variables(line: &str, unseen: &BTreeSet<OsString>) -> Vec<NamedAccess> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = line.split(|c: char| !is_of_name(c)).filter(|name| {
        // Short and common words are variables by chance.
        name.len() > 2
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && unseen.contains(std::ffi::OsStr::new(name))
    });
    names.map(|name| NamedAccess::Variable { name: name.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn found(stderr: &str, profile: &Profile) -> String {
        let unseen = ["DEPLOY_STAGE", "API_TOKEN", "Not"].map(OsString::from).into();
        let found = named_access(stderr, profile, &unseen);
        found.iter().map(|access| serde_json::to_string(access).unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn addresses_are_read_from_errors_of_clients() {
        for line in [
            "curl: (7) Failed to connect to 203.0.113.5 port 443 after 0 ms: Network is unreachable",
            "connect ENETUNREACH 203.0.113.5:443 - Local (0.0.0.0:0)",
            "psql: error: connection to server at \"203.0.113.5\", port 443 failed: Network is unreachable",
            "ssh: connect to host 203.0.113.5 port 443: Network is unreachable",
            "Connecting to 203.0.113.5:443... failed: Network is unreachable.",
        ] {
            let expected = r#"{"kind":"address","address":"203.0.113.5","port":443}"#;
            assert_eq!(found(line, &Profile::default()), expected, "{line}");
        }
        for line in ["listening on 203.0.113.5:443", "127.0.0.1:80: network is unreachable"] {
            assert_eq!(found(line, &Profile::default()), "", "{line}");
        }
        let six = "connect to [2001:db8::1]:22: no route to host";
        assert_eq!(
            found(six, &Profile::default()),
            r#"{"kind":"address","address":"2001:db8::1","port":22}"#
        );
    }

    #[test]
    fn variables_are_those_of_this_process_alone() {
        let profile = Profile::default();
        for line in
            ["sh: 1: DEPLOY_STAGE: parameter not set", "KeyError: 'DEPLOY_STAGE'", "DEPLOY_STAGE is required"]
        {
            assert_eq!(found(line, &profile), r#"{"kind":"variable","name":"DEPLOY_STAGE"}"#, "{line}");
        }
        for line in ["OTHER_STAGE: unbound variable", "deployed to DEPLOY_STAGE", "XDEPLOY_STAGE not set"] {
            assert_eq!(found(line, &profile), "", "{line}");
        }
    }

    #[test]
    fn sockets_are_those_that_exist_outside() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        let line = format!("dial unix {}: connect: no such file or directory", path.display());
        let expected = serde_json::json!({"kind": "socket", "path": path}).to_string();
        assert_eq!(found(&line, &Profile::default()), expected);
        assert_eq!(found(&format!("cannot reach unix://{}.", path.display()), &Profile::default()), expected);
        let own = Profile { write: vec![directory.path().to_owned()], ..Profile::default() };
        assert_eq!(found(&line, &own), "");
        assert_eq!(found(&format!("{}.other: no such file", path.display()), &Profile::default()), "");
    }
}
