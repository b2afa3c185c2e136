//! The loopback addresses and files by which programs reach granted hosts. Supervisor and engine both compute the layout from the
//! profile, so that they agree on the order of the listening sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::grant::is_beneath;
use crate::profile::Profile;

/// The address of the resolver. It answers UDP and TCP.
pub(crate) const RESOLVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 64, 255, 53)), 53);

/// The network of the addresses of granted names.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 1);

/// Returns whether an address belongs to a granted name, or to the resolver.
pub(super) fn is_of_name(address: Ipv4Addr) -> bool {
    address.octets()[..2] == FIRST.octets()[..2]
}

/// The number of names beneath a wildcard that programs of a run can use. Each has an address and listening sockets of its own, which
/// must exist before the programs start.
pub(crate) const NAMES_PER_WILDCARD: usize = 32;

/// The maximum number of listening sockets.
pub(crate) const MAX_ENDPOINTS: usize = 480;

/// A granted name with its addresses.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) is_wildcard: bool,
    ports: BTreeSet<u16>,
    /// One address, or one for each possible name beneath a wildcard.
    pub(crate) addresses: Vec<Ipv4Addr>,
}

/// The destination of the connections to a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The granted name with this index, and the index of the address.
    Name(usize, usize),
    /// The same port of this machine.
    ThisMachine,
}

/// A listening socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) destination: Destination,
}

/// The addresses of the granted names and ports of a profile.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) names: Vec<Named>,
    ports: BTreeSet<u16>,
}

impl Layout {
    pub(crate) fn of(profile: &Profile) -> Self {
        let mut ports_of: BTreeMap<(&str, bool), BTreeSet<u16>> = BTreeMap::new();
        for grant in &profile.hosts {
            ports_of.entry((grant.name(), grant.is_wildcard())).or_default().extend(grant.ports());
        }
        let mut next = FIRST.to_bits();
        let mut take = || {
            next += 1;
            Ipv4Addr::from_bits(next - 1)
        };
        let names = ports_of.into_iter().map(|((name, is_wildcard), ports)| {
            let count = if is_wildcard { NAMES_PER_WILDCARD } else { 1 };
            let addresses = (0..count).map(|_| take()).collect();
            Named { name: name.to_owned(), is_wildcard, ports, addresses }
        });
        Self { names: names.collect(), ports: profile.ports.iter().copied().collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.ports.is_empty()
    }

    /// Returns the listening sockets in a fixed order.
    pub(crate) fn endpoints(&self) -> Vec<Endpoint> {
        let mut endpoints = Vec::new();
        for (index, named) in self.names.iter().enumerate() {
            for (slot, address) in named.addresses.iter().enumerate() {
                let destination = Destination::Name(index, slot);
                let of_port = |port: &u16| Endpoint { address: (*address, *port).into(), destination };
                endpoints.extend(named.ports.iter().map(of_port));
            }
        }
        let of_machine = |port: &u16| Endpoint {
            address: (Ipv4Addr::LOCALHOST, *port).into(),
            destination: Destination::ThisMachine,
        };
        endpoints.extend(self.ports.iter().map(of_machine));
        endpoints
    }

    /// Returns the index of the granted name that covers `name`. A name that is granted itself comes before a wildcard.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let exact = |named: &Named| !named.is_wildcard && named.name == name;
        let wild = |named: &Named| named.is_wildcard && is_beneath(name, &named.name);
        self.names.iter().position(exact).or_else(|| self.names.iter().position(wild))
    }

    /// Returns the content of `/etc/hosts`: granted names, and of the machine's file the loopback and the name of the machine itself.
    ///
    /// The other addresses of that file cannot be reached. Without them a program that looks such a name up asks the resolver, which
    /// records it.
    pub(crate) fn hosts(&self, of_machine: &str, machine: &str) -> String {
        let mut text = String::new();
        let own = self.names.iter().filter(|named| !named.is_wildcard);
        for (named, address) in
            own.flat_map(|named| named.addresses.iter().map(move |address| (named, address)))
        {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{address} {}", named.name);
        }
        for line in of_machine.lines().filter_map(|line| self.kept(line, machine)) {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// Returns the part of a line of the machine's `/etc/hosts` that programs see.
    fn kept(&self, line: &str, machine: &str) -> Option<String> {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let address: IpAddr = words.next()?.parse().ok()?;
        let is_kept = |name: &&str| {
            self.find(&name.to_ascii_lowercase()).is_none() && (address.is_loopback() || *name == machine)
        };
        let names: Vec<&str> = words.filter(is_kept).collect();
        (!names.is_empty()).then(|| format!("{address} {}", names.join(" ")))
    }
}

/// Returns the content of `/etc/resolv.conf`.
pub(crate) fn resolver_settings() -> String {
    format!("nameserver {}\noptions timeout:5 attempts:1\n", RESOLVER.ip())
}

/// Returns the content of `/etc/nsswitch.conf`: that of the machine, but hosts come from the files above alone. Other modules ask
/// services that programs cannot reach, and take their failure for the answer.
pub(crate) fn lookup_order(of_machine: &str) -> String {
    let others = of_machine.lines().filter(|line| !line.trim_start().starts_with("hosts:"));
    others.chain(["hosts: files dns"]).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(hosts: &[&str], ports: &[u16]) -> Layout {
        let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
        Layout::of(&Profile { hosts, ports: ports.to_vec(), ..Profile::default() })
    }

    #[test]
    fn each_name_has_an_address_and_each_port_of_it_a_socket() {
        let layout = layout(&["b.example:22", "a.example", "b.example"], &[5432]);
        let endpoints: Vec<String> =
            layout.endpoints().iter().map(|endpoint| endpoint.address.to_string()).collect();
        assert_eq!(
            endpoints,
            [
                "127.64.0.1:80",
                "127.64.0.1:443",
                "127.64.0.2:22",
                "127.64.0.2:80",
                "127.64.0.2:443",
                "127.0.0.1:5432"
            ]
        );
    }

    #[test]
    fn a_name_itself_comes_before_the_wildcard() {
        let layout = layout(&["*.example.org", "a.example.org"], &[]);
        let found = |name| layout.find(name).map(|index| layout.names[index].is_wildcard);
        assert_eq!(
            [found("a.example.org"), found("b.example.org"), found("example.org"), found("c.example.com")],
            [Some(false), Some(true), None, None]
        );
    }

    #[test]
    fn of_the_files_of_the_machine_only_what_can_be_reached_stays() {
        let layout = layout(&["git.example.org", "*.corp.example"], &[]);
        let of_machine = "# ours\n127.0.0.1 localhost GIT.example.org\n::1 localhost\n10.0.0.1 git.example.org\n10.0.0.2 wiki.corp.example\n10.0.0.3 other.example\n10.0.0.4 box box.example\n";
        insta::assert_snapshot!(layout.hosts(of_machine, "box"), @"
        127.64.0.33 git.example.org
        127.0.0.1 localhost
        ::1 localhost
        10.0.0.4 box
        ");
        assert_eq!(lookup_order("passwd: files\n hosts: resolve\n"), "passwd: files\nhosts: files dns\n");
    }
}
