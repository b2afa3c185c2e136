//! Hints for network access that was refused.

use taskpawl_process::{HostGrant, RefusedAccess, powerful_server};

use super::lines::{CONNECTING, LINES, UNREACHABLE, has_words, says};
use crate::sandbox::hint::{Grant, Hint};

pub(super) const NO_NETWORK: &str = "programs have no network in the sandbox; `--allow-net` enables it";

pub(super) fn no_network() -> Hint {
    Hint { text: NO_NETWORK.to_owned(), grant: Some(Grant::Network) }
}

/// Returns whether refused access may be the cause of the errors that a program wrote: it wrote none, or they name the host, the port or
/// a failed connection.
pub(super) fn may_explain(access: &RefusedAccess, errors: &str) -> bool {
    let mut lines = errors.lines().rev().take(LINES);
    let named = match access {
        RefusedAccess::Host { name } | RefusedAccess::TooManyNames { name, .. } => name.clone(),
        RefusedAccess::Address { host, .. } | RefusedAccess::ServerName { host, .. } => host.clone(),
        RefusedAccess::Port { port } => port.to_string(),
        RefusedAccess::Socket { path } => path.to_string_lossy().to_lowercase(),
        RefusedAccess::Further | _ => return false,
    };
    errors.trim().is_empty()
        || lines.any(|line| {
            says(line, &UNREACHABLE) || says(line, &CONNECTING) || has_words(&line.to_lowercase(), &named)
        })
}

/// Returns a hint for the network access that was refused: the flag for the first name that is not granted, or the reason why a granted
/// one was not reached.
pub(super) fn of_refused(refused: &[RefusedAccess]) -> Option<Hint> {
    let hosts = refused.iter().filter_map(|access| {
        let RefusedAccess::Host { name } = access else { return None };
        // Only what the flag accepts: a name in a question can be any text.
        name.parse::<HostGrant>().ok().map(|_| name.as_str())
    });
    let hosts: Vec<&str> = hosts.collect();
    if let Some(first) = hosts.first() {
        let more = match hosts.len() - 1 {
            0 => String::new(),
            count => format!(" (and {count} more, in `sandbox.refused` of the result)"),
        };
        let text = format!(
            "programs looked up `{first}`{more}, which is not granted; `--allow-host {first}` lets them reach it, if you trust this name; `taskpawl allow` remembers it"
        );
        return Some(Hint { text, grant: Some(Grant::Host((*first).to_owned())) });
    }
    let of_port = || refused.iter().find_map(port_hint);
    let of_socket = || refused.iter().find_map(socket_hint);
    refused.iter().find_map(reason_at_granted).map(Hint::from).or_else(of_port).or_else(of_socket)
}

/// Returns a hint for a socket at which a program of this machine listens. It names no flag to copy: the clients of some such programs can
/// do everything.
fn socket_hint(access: &RefusedAccess) -> Option<Hint> {
    let RefusedAccess::Socket { path } = access else { return None };
    let path = path.display();
    let text = format!(
        "programs tried the socket `{path}` of another program; `taskpawl allow` shows it, and `taskpawl allow --socket {path}` opens it to the programs of a plan"
    );
    Some(text.into())
}

/// Returns a hint for a port at which a server of this machine listens.
fn port_hint(access: &RefusedAccess) -> Option<Hint> {
    let RefusedAccess::Port { port } = access else { return None };
    if let Some(server) = powerful_server(*port) {
        let text = format!(
            "programs tried port {port} of this machine, that of {server}, whose clients can do everything; only `--sandbox off` reaches it"
        );
        return Some(text.into());
    }
    let text = format!(
        "programs tried port {port} of this machine, where a server listens outside of the sandbox; `--allow-port {port}` lets them reach it, `taskpawl allow --port {port}` for later runs as well"
    );
    Some(Hint { text, grant: Some(Grant::Port(*port)) })
}

/// Explains why a granted name was not reached.
fn reason_at_granted(access: &RefusedAccess) -> Option<String> {
    Some(match access {
        RefusedAccess::Address { host, address, reason } => {
            format!("the granted name `{host}` leads to {address}, {reason}, which no grant opens")
        }
        RefusedAccess::ServerName { host, asked: Some(asked) } => {
            format!(
                "a connection to the granted name `{host}` asked for the server `{asked}` by TLS; only `{host}` itself is reached on port 443"
            )
        }
        RefusedAccess::ServerName { host, asked: None } => {
            format!("a connection to port 443 of the granted name `{host}` did not name it by TLS")
        }
        RefusedAccess::TooManyNames { beneath, name } => {
            format!(
                "`{name}` is one name too many beneath `*.{beneath}`; grant names that are needed themselves"
            )
        }
        RefusedAccess::Host { .. }
        | RefusedAccess::Port { .. }
        | RefusedAccess::Socket { .. }
        | RefusedAccess::Further
        | _ => return None,
    })
}
