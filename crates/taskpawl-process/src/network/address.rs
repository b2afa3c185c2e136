//! Classification of public addresses by the IANA registries of special-purpose addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const fn v4(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

const fn v6(a: u16, b: u16, c: u16) -> Ipv6Addr {
    Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)
}

const PRIVATE: &str = "a private address";
const DOCUMENTATION: &str = "an address for documentation";

/// Networks with the length of their prefix and the kind of their addresses.
const SPECIAL_V4: &[(Ipv4Addr, u32, &str)] = &[
    (v4(0, 0, 0, 0), 8, "an address of this machine's own network"),
    (v4(10, 0, 0, 0), 8, PRIVATE),
    (v4(100, 64, 0, 0), 10, "an address behind a carrier's NAT"),
    (v4(127, 0, 0, 0), 8, "a loopback address"),
    (v4(169, 254, 0, 0), 16, "a link-local address"),
    (v4(172, 16, 0, 0), 12, PRIVATE),
    (v4(192, 0, 0, 0), 24, "an address for protocols"),
    (v4(192, 0, 2, 0), 24, DOCUMENTATION),
    (v4(192, 88, 99, 0), 24, "an address of 6to4 relays"),
    (v4(192, 168, 0, 0), 16, PRIVATE),
    (v4(198, 18, 0, 0), 15, "an address for benchmarks"),
    (v4(198, 51, 100, 0), 24, DOCUMENTATION),
    (v4(203, 0, 113, 0), 24, DOCUMENTATION),
    (v4(224, 0, 0, 0), 4, "a multicast address"),
    (v4(255, 255, 255, 255), 32, "the broadcast address"),
    (v4(240, 0, 0, 0), 4, "a reserved address"),
];

/// Networks as above; the first one that contains an address counts. `2002::/16` is missing, for it is judged by the
/// IPv4 address that it embeds.
const SPECIAL_V6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, "the unspecified address"),
    (Ipv6Addr::LOCALHOST, 128, "a loopback address"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, "an IPv4 address in IPv6 form"),
    (Ipv6Addr::UNSPECIFIED, 96, "an IPv4 address in IPv6 form"),
    (v6(0x64, 0xff9b, 0), 96, "an address of NAT64"),
    (v6(0x64, 0xff9b, 1), 48, "an address of NAT64"),
    (v6(0x100, 0, 0), 63, "an address that discards"),
    (v6(0x2001, 0, 0), 23, "an address for protocols"),
    (v6(0x2001, 0xdb8, 0), 32, DOCUMENTATION),
    (v6(0x3fff, 0, 0), 20, DOCUMENTATION),
    (v6(0x5f00, 0, 0), 16, "an address of segment routing"),
    (v6(0xfc00, 0, 0), 7, PRIVATE),
    (v6(0xfe80, 0, 0), 10, "a link-local address"),
    (v6(0xfec0, 0, 0), 10, "a site-local address"),
    (v6(0xff00, 0, 0), 8, "a multicast address"),
];

/// Returns the kind of an address that is not public.
pub fn special_address(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let is_in = |net: Ipv4Addr, bits: u32| (address.to_bits() ^ net.to_bits()) >> (32 - bits) == 0;
    SPECIAL_V4.iter().find(|(net, bits, _)| is_in(*net, *bits)).map(|(_, _, what)| *what)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let is_in = |net: Ipv6Addr, bits: u32| (address.to_bits() ^ net.to_bits()) >> (128 - bits) == 0;
    if let Some((_, _, what)) = SPECIAL_V6.iter().find(|(net, bits, _)| is_in(*net, *bits)) {
        return Some(what);
    }
    let [first, a, b, ..] = address.segments();
    if first == 0x2002 {
        return special_v4(Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b)));
    }
    // Only this block has been allocated so far.
    if is_in(v6(0x2000, 0, 0), 3) { None } else { Some("an unassigned address") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_every_network_are_special_and_their_neighbours_are_public() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::",
            "2001:db7:ffff::",
            "2001:db9::",
            "2002:808:808::1",
            "2606:4700::1111",
            "3ffe::",
        ] {
            assert_eq!(special_address(address.parse().unwrap()), None, "{address}");
        }
        for address in [
            "0.255.255.255",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.255.255.255",
            "169.254.169.254",
            "172.31.255.255",
            "192.0.0.255",
            "192.88.99.1",
            "198.19.255.255",
            "239.255.255.255",
            "255.255.255.254",
            "::2",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "64:ff9b:1:ffff::",
            "100:0:0:1::",
            "2001:1ff:ffff::",
            "2001::1",
            "2002:7f00:1::1",
            "2002:a00:1::1",
            "3fff:fff::",
            "4000::",
            "5f00::1",
            "fdff::1",
            "febf::1",
            "feff::1",
            "ff02::1",
        ] {
            assert!(special_address(address.parse().unwrap()).is_some(), "{address}");
        }
    }
}
