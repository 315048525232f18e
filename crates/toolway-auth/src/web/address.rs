//! What kind of place an address is.
//!
//! Owns the ranges. IPv6 addresses that carry an IPv4 address (mapped, compatible, NAT64, 6to4,
//! Teredo) are what that address is: a translator on the way would lead there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A kind of place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// Link-local, cloud metadata, unspecified, multicast, reserved: no login server is there.
    Never,
    /// This machine.
    Loopback,
    /// A network behind a router: private, shared by carriers, unique local.
    Private,
    /// The internet.
    Public,
}

/// Where clouds answer with credentials outside of the link-local ranges.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)),
];

/// The kind of an address.
pub fn classify(address: IpAddr) -> AddressClass {
    if METADATA.contains(&address) {
        return AddressClass::Never;
    }
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

fn v4(address: Ipv4Addr) -> AddressClass {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => AddressClass::Loopback,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) | (198, 18..=19, _) => {
            AddressClass::Private
        }
        (0 | 224..=255, ..) | (169, 254, _) | (192, 0, 0 | 2) | (198, 51, 100) | (203, 0, 113) => {
            AddressClass::Never
        }
        _ => AddressClass::Public,
    }
}

fn v6(address: Ipv6Addr) -> AddressClass {
    let parts = address.segments();
    let carried = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        classify(Ipv4Addr::new(a, b, c, d).into())
    };
    match parts {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // Compatible and mapped, translated, NAT64 (well known and local), 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0 | 1, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => carried(high, low),
        // Teredo writes the address inverted.
        [0x2001, 0, _, _, _, _, high, low] => carried(!high, !low),
        [0x2001, 0xdb8, ..] => AddressClass::Never,
        [first, ..] => match first {
            0xfc00..=0xfdff | 0xfec0..=0xfeff => AddressClass::Private,
            0x2000..=0x3fff => AddressClass::Public,
            // Link-local, multicast, and unassigned ranges.
            _ => AddressClass::Never,
        },
    }
}
