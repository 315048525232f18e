//! Whether this machine has a network at all.
//!
//! Owns the question, and what to do where it has none. Sends nothing: the system knows
//! whether it has a way out.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use toolway_types::StdioSpec;

/// What to do about a process that failed where it would have had to fetch what it runs.
pub(super) fn hint(process: &StdioSpec) -> Option<String> {
    let command = process.command.as_str();
    let program = command.rsplit('/').next().unwrap_or(command);
    (!has_network()).then(|| {
        format!(
            "this machine has no network, from which `{program}` fetches the server: connect it, \
             or install the server and name its program as `command`"
        )
    })
}

/// Whether there is a way out of this machine. The addresses are reserved for examples; connecting a
/// datagram socket looks up the route and sends nothing.
fn has_network() -> bool {
    let leads_out = |from: SocketAddr, to: SocketAddr| {
        UdpSocket::bind(from).is_ok_and(|socket| socket.connect(to).is_ok())
    };
    let example = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    leads_out(
        (Ipv4Addr::UNSPECIFIED, 0).into(),
        (Ipv4Addr::new(192, 0, 2, 1), 9).into(),
    ) || leads_out((Ipv6Addr::UNSPECIFIED, 0).into(), (example, 9).into())
}
