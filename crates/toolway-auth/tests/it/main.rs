//! The authentication of a server, through its public surface, against real servers on loopback.

mod discovery;
mod site;
