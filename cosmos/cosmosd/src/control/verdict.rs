// SPDX-License-Identifier: Apache-2.0
//! The verdict of a change that its sender did not wait for any longer.

use clickos_protocol::{ANSWER_NODES, Answer, Joined, Joiner, Marks};

use super::install::router_state;
use super::request::outcome;
use super::root;
use crate::base::error::{Code, Error, Result};
use crate::state::ledger::ChangeNode;
use crate::store::{Change, Store};

/// The guest's answer to a change, if it is there.
pub fn verdict(store: &dyn Store, domid: u16, place: ChangeNode) -> Result<Option<Result<Marks>>> {
    match place {
        ChangeNode::Request { rid, seq } => {
            of_request(store, &format!("{}/{rid}", root(domid)), seq)
        }
        ChangeNode::Install { rid, generation } => of_install(store, domid, rid, generation),
    }
}

/// Removes the nodes of a change.
pub fn forget(store: &dyn Store, domid: u16, place: ChangeNode) -> Result<()> {
    let root = root(domid);
    match place {
        // In this order the guest need not look whether its answer was taken.
        ChangeNode::Request { rid, seq } => store.apply(&[
            Change::remove(format!("{root}/{rid}/response/{seq}")),
            Change::remove(format!("{root}/{rid}/request/{seq}")),
        ]),
        ChangeNode::Install { rid, .. } => {
            store.apply(&[Change::remove(format!("{root}/{rid}/config"))])
        }
    }
}

fn of_request(store: &dyn Store, router: &str, seq: u32) -> Result<Option<Result<Marks>>> {
    let mut answer = Joiner::new(Answer::MAX);
    for next in 0..ANSWER_NODES {
        let Some(piece) = store.read(&format!("{router}/response/{seq}/{next}"))? else {
            break;
        };
        match answer.add(&piece) {
            Joined::More => {}
            Joined::Whole => {
                let parsed = Answer::parse(answer.data());
                let parsed =
                    parsed.map_err(|_| Error::internal("guest's answer", "not of the protocol"));
                return Ok(Some(
                    parsed.and_then(outcome).map(|data| Marks::parse(&data)),
                ));
            }
            Joined::Malformed | Joined::TooLong => {
                let error = Error::internal("guest's answer", "not of the protocol");
                return Ok(Some(Err(error)));
            }
        }
    }
    // The guest answers what it finds; without a request there is nothing to answer.
    let is_there = store.read(&format!("{router}/request/{seq}/0"))?.is_some();
    Ok((!is_there).then(|| Err(never())))
}

fn never() -> Error {
    Error::new(Code::Timeout, "the change did not reach the guest")
}

/// True if the guest can still find a requested router. A store that began again has none.
fn is_wished(store: &dyn Store, domid: u16, rid: u8, generation: u64) -> Result<bool> {
    let wished = store.read(&format!("{}/{rid}/generation", root(domid)))?;
    let wished = wished.and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok());
    Ok(wished.is_some_and(|wished: u64| wished >= generation))
}

fn of_install(
    store: &dyn Store,
    domid: u16,
    rid: u8,
    generation: u64,
) -> Result<Option<Result<Marks>>> {
    let state = router_state(store, domid, rid)?.filter(|state| state.generation >= generation);
    if state.is_none() && !is_wished(store, domid, rid, generation)? {
        return Ok(Some(Err(never())));
    }
    Ok(state.map(|state| match (state.generation, &*state.word) {
        (found, "Error") if found == generation => Err(Error::new(Code::BadConfig, state.error)),
        (found, _) if found == generation => Ok(Marks::default()),
        _ => Err(Error::new(Code::Stale, "a later configuration came first")),
    }))
}
