//! What a command talks to servers through: a host of its own, or its part of one that the daemon
//! keeps.

use std::ops::Deref;

use toolway::{Attached, Host};

/// A command's way to servers.
pub(crate) struct CommandHost<'a> {
    host: &'a Host,
    attached: &'a Attached,
}

impl<'a> CommandHost<'a> {
    /// A host of its own.
    pub(crate) fn own(host: &'a Host) -> Self {
        Self {
            host,
            attached: host,
        }
    }

    /// One caller among others of this host.
    pub(crate) fn part(host: &'a Host, attached: &'a Attached) -> Self {
        Self { host, attached }
    }

    /// The whole host, for what only its owner may do: logins, plans, what everybody accepts.
    pub(crate) fn whole(&self) -> &'a Host {
        self.host
    }
}

impl Deref for CommandHost<'_> {
    type Target = Attached;

    fn deref(&self) -> &Attached {
        self.attached
    }
}
