// SPDX-License-Identifier: Apache-2.0
//! Installing a router: the wish and its answer.

use clickos_protocol::config_pieces;

use super::Router;
use super::slots::Kind;
use crate::error::{Code, Error, Result};
use crate::host::escape;
use crate::spec::random_bytes;
use crate::store::{Change, Store};

/// Random bytes that a guest is given with each wish.
const SEED_BYTES: usize = 32;
/// Generations stay below what every JSON reader holds exactly.
const MAX_GENERATION: u64 = 1 << 53;

/// A guest's answer to a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterState {
    /// `Running`, `Halted` or `Error`.
    pub word: String,
    pub generation: u64,
    /// Why; empty after a success.
    pub error: String,
}

/// What is to be installed.
pub struct Wish<'a> {
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
pub fn install(router: Router<'_>, asked: &Wish<'_>) -> Result<u64> {
    let _turn = router
        .requests
        .slots
        .enter(router.rid, Kind::Install, router.deadline)?;
    let generation = next_generation(&router)?;
    router.store.commit(&wish(&router, asked, generation)?)?;
    let what = format!("router {}: configuration {}", router.rid, asked.config_name);
    let answer = router.signals.wait(&what, router.deadline, || {
        let state = router_state(router.store, router.domid, router.rid)?;
        Ok(state.filter(|state| state.generation == generation))
    });
    // The guest has read them, or nobody wants it to any more.
    let forgotten = router.store.commit(&[
        Change::remove(router.path("config")),
        Change::remove(router.seed_path()),
    ]);
    let answer = answer?;
    forgotten?;
    match answer.word.as_str() {
        "Error" => Err(Error::new(Code::BadConfig, answer.error)),
        _ => Ok(generation),
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
    // With its generation, so that it is no new wish, in a restored guest's store neither.
    router.store.commit(&[
        router.node("status", word),
        router.node("generation", state.generation.to_string()),
    ])?;
    let what = format!("router {}: {word}", router.rid);
    router.signals.wait(&what, router.deadline, || {
        let now = router_state(router.store, router.domid, router.rid)?;
        Ok(now.filter(|now| now.word == word).map(drop))
    })
}

/// The last answer of a router, if it gave one that can be understood.
pub fn router_state(store: &dyn Store, domid: u16, rid: u8) -> Result<Option<RouterState>> {
    let root = super::root(domid);
    let Some(text) = store.read(&format!("{root}/{rid}/state"))? else {
        return Ok(None);
    };
    let Some((word, generation)) = parse_state(&text) else {
        return Ok(None);
    };
    let error = store
        .read(&format!("{root}/{rid}/error"))?
        .unwrap_or_default();
    Ok(Some(RouterState {
        word,
        generation,
        error: escape(&error),
    }))
}

fn parse_state(text: &[u8]) -> Option<(String, u64)> {
    let (word, generation) = std::str::from_utf8(text).ok()?.split_once(' ')?;
    let known = matches!(word, "Running" | "Halted" | "Error");
    known.then_some((word.to_owned(), generation.parse().ok()?))
}

/// One above the last wish, which the store remembers across restarts of this daemon; in the
/// store of a restored guest only the guest does.
fn next_generation(router: &Router<'_>) -> Result<u64> {
    let last = router.store.read(&router.path("generation"))?;
    let last = match last.and_then(|text| std::str::from_utf8(&text).ok()?.parse::<u64>().ok()) {
        None => router_state(router.store, router.domid, router.rid)?.map(|s| s.generation),
        wished => wished,
    };
    Ok(last.filter(|last| *last < MAX_GENERATION).unwrap_or(0) + 1)
}

fn wish(router: &Router<'_>, asked: &Wish<'_>, generation: u64) -> Result<Vec<Change>> {
    let mut changes = vec![Change::remove(router.path("config"))];
    let pieces = config_pieces(asked.config.as_bytes()).enumerate();
    changes.extend(pieces.map(|(n, piece)| router.node(&format!("config/{n}"), piece)));
    let status = if asked.halted { "Halted" } else { "Running" };
    changes.push(router.node("config_name", asked.config_name));
    changes.push(router.node("status", status));
    changes.push(router.node("generation", generation.to_string()));
    changes.push(router.node_at(router.seed_path(), random_bytes::<SEED_BYTES>()?));
    Ok(changes)
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
