// SPDX-License-Identifier: Apache-2.0
//! Installing a router: the request and its answer.

use clickos_protocol::config_pieces;

use super::Router;
use super::slots::{Kind, Slot};
use crate::base::error::{Code, Error, Result};
use crate::base::text::escape;
use crate::store::{Change, Seen, Store};

/// Generations stay below what every JSON reader holds exactly.
const MAX_GENERATION: u64 = 1 << 53;

/// A guest's answer to a requested router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterState {
    /// `Running`, `Halted` or `Error`.
    pub word: String,
    pub generation: u64,
    /// Why; empty after a success.
    pub error: String,
}

/// A requested router.
pub struct RouterSpec<'a> {
    /// Empty: removes the router.
    pub config: &'a str,
    pub config_name: &'a str,
    /// Installs without running it.
    pub halted: bool,
}

/// Writes a configuration and waits for the guest's answer; an empty one removes the router.
///
/// # Errors
/// `bad-config` with the guest's own words; `timeout`, `dead-guest`, `store`.
pub fn install(router: Router<'_>, asked: &RouterSpec<'_>) -> Result<u64> {
    propose(router, asked, |_| Ok(()))?.wait_response()
}

/// A configuration that is written, and not answered yet.
pub struct Proposal<'a> {
    router: Router<'a>,
    generation: u64,
    what: String,
    /// One piece at most: to take it away would cost as much as to write it.
    is_small: bool,
    seen: Seen,
    _turn: Slot<'a>,
}

/// Writes a configuration, after `begin` took its generation.
///
/// # Errors
/// `store`; `timeout` if earlier ones take that long; those of `begin`.
pub fn propose<'a>(
    router: Router<'a>,
    asked: &RouterSpec<'_>,
    begin: impl FnOnce(u64) -> Result<()>,
) -> Result<Proposal<'a>> {
    let turn = router
        .requests
        .slots
        .enter(router.rid, Kind::Install, router.deadline)?;
    let generation = next_generation(&router)?;
    begin(generation)?;
    let seen = router.signals.seen();
    let mut changes = vec![
        Change::remove(router.path("config")),
        match asked.halted {
            true => router.node("status", "Halted"),
            false => Change::remove(router.path("status")), // Missing is `Running`, and the usual.
        },
    ];
    changes.push(router.seed()?);
    let nodes = nodes_of(asked, generation).into_iter();
    changes.extend(nodes.map(|(key, value)| router.node(&key, value)));
    router.store.commit(&changes)?;
    Ok(Proposal::new(router, asked, generation, seen, turn))
}

/// Writes the first configuration of a guest that does not run yet, after the other changes. There
/// are no nodes to remove, and no reader sees half of them. The guest owns the few nodes, as all
/// nodes below its root; this saves half of the requests. The guest has its seed already.
///
/// # Errors
/// `store`.
pub fn propose_first<'a>(
    router: Router<'a>,
    told: Vec<Change>,
    asked: &RouterSpec<'_>,
) -> Result<Proposal<'a>> {
    let turn = router
        .requests
        .slots
        .enter(router.rid, Kind::Install, router.deadline)?;
    let seen = router.signals.seen();
    let mut changes = told;
    let nodes = nodes_of(asked, 1).into_iter();
    changes.extend(nodes.map(|(key, value)| Change::write(router.path(&key), value)));
    router.store.apply(&changes)?;
    Ok(Proposal::new(router, asked, 1, seen, turn))
}

impl<'a> Proposal<'a> {
    fn new(
        router: Router<'a>,
        asked: &RouterSpec<'_>,
        generation: u64,
        seen: Seen,
        turn: Slot<'a>,
    ) -> Self {
        let what = format!("router {}: configuration {}", router.rid, asked.config_name);
        Self {
            is_small: config_pieces(asked.config.as_bytes()).count() <= 1,
            router,
            generation,
            what,
            seen,
            _turn: turn,
        }
    }

    /// Waits for the guest's answer.
    ///
    /// # Errors
    /// As those of [`install`].
    pub fn wait_response(self) -> Result<u64> {
        let answer = self.wait();
        let runs = answer.as_ref().is_ok_and(|answer| answer.word != "Error");
        let forgotten = match runs && self.is_small {
            true => Ok(()),
            false => self.forget(),
        };
        let answer = answer?;
        forgotten?;
        match answer.word.as_str() {
            "Error" => Err(Error::new(Code::BadConfig, answer.error)),
            _ => Ok(self.generation),
        }
    }

    /// Waits for the guest's answer, and leaves the text there without one.
    ///
    /// # Errors
    /// As those of [`install`].
    pub fn wait_or_keep(self) -> Result<u64> {
        match self.wait()? {
            answer if answer.word == "Error" => Err(Error::new(Code::BadConfig, answer.error)),
            _ => Ok(self.generation),
        }
    }

    /// Takes the text away: the guest has read it, or is not to try it again.
    fn forget(&self) -> Result<()> {
        let config = Change::remove(self.router.path("config"));
        self.router.store.apply(&[config])
    }

    fn wait(&self) -> Result<RouterState> {
        let router = &self.router;
        let signals = router.signals;
        signals.wait_since(self.seen, &self.what, router.deadline, || self.answer())
    }

    /// The guest's answer, if it is there; the reason of a refusal was written before it.
    fn answer(&self) -> Result<Option<RouterState>> {
        let router = &self.router;
        let state = router.store.read(&router.path("state"))?;
        let answered = state.and_then(|state| state_of(&state, b""));
        match answered.filter(|state| state.generation == self.generation) {
            Some(refused) if refused.word == "Error" => {
                router_state(router.store, router.domid, router.rid)
            }
            answer => Ok(answer),
        }
    }
}

/// Halts a router or lets it run again, and waits until it is so.
///
/// # Errors
/// `no-such-element` when there is no such router; `timeout`, `dead-guest`, `store`.
pub fn run(router: Router<'_>, run: bool) -> Result<()> {
    let _turn = router
        .requests
        .slots
        .enter(router.rid, Kind::Install, router.deadline)?;
    let state = router_state(router.store, router.domid, router.rid)?;
    let Some(state) = state else {
        let message = format!("router {} is not installed", router.rid);
        return Err(Error::new(Code::NoSuchElement, message));
    };
    let word = if run { "Running" } else { "Halted" };
    let seen = router.signals.seen();
    // With its generation, so that it is no new request, in a restored guest's store neither.
    router.store.commit(&[
        router.node("status", word),
        router.node("generation", state.generation.to_string()),
    ])?;
    let what = format!("router {}: {word}", router.rid);
    let signals = router.signals;
    signals.wait_since(seen, &what, router.deadline, || {
        let now = router_state(router.store, router.domid, router.rid)?;
        Ok(now.filter(|now| now.word == word).map(drop))
    })
}

/// The last answer of a router, if it gave one that can be understood.
pub fn router_state(store: &dyn Store, domid: u16, rid: u8) -> Result<Option<RouterState>> {
    let path = |key: &str| format!("{}/{rid}/{key}", super::root(domid));
    // The guest writes the state last.
    let read = store.read_all(&[&path("state"), &path("error")])?;
    let [Some(state), error] = &read[..] else {
        return Ok(None);
    };
    Ok(state_of(state, error.as_deref().unwrap_or_default()))
}

fn state_of(state: &[u8], error: &[u8]) -> Option<RouterState> {
    let (word, generation) = parse_state(state)?;
    Some(RouterState {
        word,
        generation,
        error: escape(error),
    })
}

fn parse_state(text: &[u8]) -> Option<(String, u64)> {
    let (word, generation) = std::str::from_utf8(text).ok()?.split_once(' ')?;
    let known = matches!(word, "Running" | "Halted" | "Error");
    known.then_some((word.to_owned(), generation.parse().ok()?))
}

/// One above the last generation, which the store remembers across restarts of this daemon; in the
/// store of a restored guest only the guest does.
fn next_generation(router: &Router<'_>) -> Result<u64> {
    let paths = [router.path("generation"), router.path("state")];
    let read = router.store.read_all(&[&paths[0], &paths[1]])?;
    let mut read = read.into_iter().map(Option::unwrap_or_default);
    let (wished, state) = (read.next().unwrap_or_default(), read.next());
    let wished = std::str::from_utf8(&wished)
        .ok()
        .and_then(|n| n.parse().ok());
    let answered = || Some(parse_state(&state?)?.1);
    let last: Option<u64> = wished.or_else(answered);
    Ok(last.filter(|last| *last < MAX_GENERATION).unwrap_or(0) + 1)
}

/// The store nodes of a requested router, and their values.
fn nodes_of(asked: &RouterSpec<'_>, generation: u64) -> Vec<(String, Vec<u8>)> {
    let pieces = config_pieces(asked.config.as_bytes()).enumerate();
    let pieces = pieces.map(|(n, piece)| (format!("config/{n}"), piece.to_vec()));
    let mut keys: Vec<_> = pieces.collect();
    keys.push(("config_name".into(), asked.config_name.into()));
    keys.push(("generation".into(), generation.to_string().into()));
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_protocols_states_are_answers() {
        assert_eq!(parse_state(b"Running 3"), Some(("Running".into(), 3)));
        for bad in [
            "",
            "Running",
            "Running x",
            "Sleeping 3",
            "Running -1",
            "Running 3 4",
        ] {
            assert_eq!(parse_state(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse_state(b"Error \xff"), None);
    }
}
