// SPDX-License-Identifier: Apache-2.0
//! Who is at the other end, and what it may do.
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::socket::{getsockopt, sockopt};
use serde::Deserialize;

/// The role that may call every verb; uid 0 and the daemon's own uid always have it.
pub const OPERATOR: &str = "operator";

/// Role names and the uids that have them: the `[roles]` table of a daemon's TOML.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Roles(BTreeMap<String, Vec<u32>>);

impl Roles {
    /// Refuses role names other than `known` and [`OPERATOR`].
    pub fn check(&self, known: &[&str]) -> Result<(), String> {
        match self
            .0
            .keys()
            .find(|role| *role != OPERATOR && !known.contains(&role.as_str()))
        {
            None => Ok(()),
            Some(role) => Err(format!(
                "roles: {role:?} is not a role; use {known:?} or {OPERATOR:?}"
            )),
        }
    }

    /// A uid that has a role and is in `range`, with that role.
    pub fn any_in(&self, range: std::ops::RangeInclusive<u32>) -> Option<(&str, u32)> {
        let mut uids = self
            .0
            .iter()
            .flat_map(|(role, uids)| uids.iter().map(move |uid| (role.as_str(), *uid)));
        uids.find(|(_, uid)| range.contains(uid))
    }

    /// The uids that have a role.
    pub(crate) fn uids(&self) -> Vec<u32> {
        let named = self.0.values().flatten().copied();
        let own = rustix::process::geteuid().as_raw();
        let uids: BTreeSet<u32> = named.chain([0, own]).collect();
        uids.into_iter().collect()
    }

    fn of(&self, uid: u32) -> Vec<String> {
        let own = rustix::process::geteuid().as_raw();
        let mut roles: Vec<String> = self
            .0
            .iter()
            .filter(|(_, uids)| uids.contains(&uid))
            .map(|(role, _)| role.clone())
            .collect();
        if (uid == 0 || uid == own) && !roles.iter().any(|r| r == OPERATOR) {
            roles.push(OPERATOR.to_owned());
        }
        roles
    }
}

/// The process at the other end of a connection, as the kernel knew it at connect.
#[derive(Clone, Debug)]
pub struct Peer {
    pub uid: u32,
    /// For logs; 0 for a process of another PID namespace.
    pub pid: i32,
    pub roles: Vec<String>,
    /// Number of the connection; no other has it as long as the daemon lives.
    pub connection: u64,
}

impl Peer {
    pub(crate) fn of(socket: impl AsFd, roles: &Roles) -> std::io::Result<Self> {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        let credentials = getsockopt(&socket, sockopt::PeerCredentials)?;
        let uid = credentials.uid();
        Ok(Self {
            uid,
            pid: credentials.pid(),
            roles: roles.of(uid),
            connection: CONNECTIONS.fetch_add(1, Ordering::Relaxed),
        })
    }

    pub fn has(&self, role: &str) -> bool {
        self.roles.iter().any(|r| r == role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_come_from_the_table_and_root_is_operator() {
        let roles: Roles = toml::from_str("nova = [7, 8]\nagent = [8]").unwrap();
        assert_eq!(roles.of(8), ["agent", "nova"]);
        assert_eq!(roles.of(0), [OPERATOR]);
        assert!(roles.of(9).is_empty());
        assert_eq!(roles.any_in(8..=9), Some(("agent", 8)));
        assert_eq!(roles.any_in(9..=99), None);
        assert!(roles.check(&["nova", "agent"]).is_ok());
        assert!(roles.check(&["nova"]).unwrap_err().contains("\"agent\""));
    }
}
