// SPDX-License-Identifier: Apache-2.0
//! The ways of packets out of hops, also of hops that left the chain while packets were inside.
use std::time::{Duration, Instant};

use vale_proto::{ChainSet, Hop, PortName};

/// A hop that left a chain sends its last packets for this long.
const GRACE: Duration = Duration::from_secs(1);

/// The place where packets go on that a hop sends by one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The hop; none for one that left the chain.
    pub hop: Option<usize>,
    /// With the classifier they go on at this hop.
    pub forward: Option<usize>,
    /// Answers go on at the hop before this one.
    pub reverse: Option<usize>,
    /// The end of the time of a hop that left the chain.
    pub until: Option<Instant>,
}

impl Exit {
    /// The exit by one port of the hop with this number.
    pub fn of(hop: usize, is_ingress: bool, is_egress: bool) -> Self {
        Self {
            hop: Some(hop),
            forward: is_egress.then_some(hop + 1),
            reverse: is_ingress.then_some(hop),
            until: None,
        }
    }

    pub fn is_over(self) -> bool {
        self.until.is_some_and(|until| Instant::now() > until)
    }
}

/// The exit of a port that left the chain.
#[derive(Clone, Debug)]
pub struct Retired {
    pub port: PortName,
    pub exit: Exit,
}

/// The ports that leave a chain when `new` replaces `old`, and those of `earlier` changes.
pub fn retire(old: &ChainSet, earlier: &[Retired], new: &ChainSet) -> Vec<Retired> {
    let position = |n: usize| {
        new.hops
            .iter()
            .position(|hop| shares_pair(hop, &old.hops[n]))
    };
    let forward = |n: usize| {
        let rest = (n..old.hops.len()).find_map(position);
        rest.unwrap_or(new.hops.len())
    };
    let reverse = |n: usize| {
        let rest = (0..n).rev().find_map(position);
        rest.map_or(0, |hop| hop + 1)
    };
    let moved = |exit: Exit, until| Exit {
        hop: None,
        forward: exit.forward.map(forward),
        reverse: exit.reverse.map(reverse),
        until: Some(until),
    };
    let until = Instant::now() + GRACE;
    let leaving = exits(old).map(|(port, exit)| (port, moved(exit, until)));
    let still = earlier.iter().filter(|r| !r.exit.is_over());
    let still = still.map(|r| (&r.port, moved(r.exit, r.exit.until.unwrap_or(until))));
    let stays = |port: &PortName| exits(new).any(|(other, _)| other == port);
    let gone = leaving.chain(still).filter(|(port, _)| !stays(port));
    gone.map(|(port, exit)| Retired {
        port: port.clone(),
        exit,
    })
    .collect()
}

pub fn shares_pair(hop: &Hop, other: &Hop) -> bool {
    let same = |pair: &vale_proto::Pair| {
        let mut others = other.pairs.iter();
        others.any(|o| (&o.ingress, &o.egress) == (&pair.ingress, &pair.egress))
    };
    hop.pairs.iter().any(same)
}

/// The ports of a chain's hops, each with its exit.
pub fn exits(set: &ChainSet) -> impl Iterator<Item = (&PortName, Exit)> {
    set.hops.iter().enumerate().flat_map(|(n, hop)| {
        hop.pairs.iter().flat_map(move |pair| {
            let same = pair.ingress == pair.egress;
            let second = (!same).then(|| (&pair.egress, Exit::of(n, false, true)));
            let first = (&pair.ingress, Exit::of(n, true, same));
            [Some(first), second].into_iter().flatten()
        })
    })
}
