// SPDX-License-Identifier: Apache-2.0
//! The routers a guest has.

use cosmos_proto::answer;

use clickos_protocol::MAX_RID;

use super::{Router, read, root, router_state};
use crate::base::error::{Code, Result};
use crate::base::text::escape;

/// A read handler that every router has.
const PROBE: &str = "version";
/// Where the store does not know a configuration's name: that of a guest that was restored.
const UNNAMED: &str = "config";

/// Lists the installed routers of the guest that `router` is one of.
pub fn routers(router: Router<'_>) -> Result<Vec<answer::Router>> {
    let names = router.store.list(&root(router.domid))?;
    let numbers = names.iter().filter_map(|name| name.parse().ok());
    let mut rids: Vec<u8> = numbers.filter(|rid| *rid <= MAX_RID).collect();
    rids.sort_unstable();
    let listed = rids
        .into_iter()
        .map(|rid| installed(Router { rid, ..router }));
    listed.filter_map(Result::transpose).collect()
}

fn installed(router: Router<'_>) -> Result<Option<answer::Router>> {
    let Some(state) = router_state(router.store, router.domid, router.rid)? else {
        return Ok(None);
    };
    // A removed router is `Halted`, too, and the first of a guest may have been refused.
    if state.word != "Running" && !is_there(router)? {
        return Ok(None);
    }
    let name = router.store.read(&router.path("config_name"))?;
    Ok(Some(answer::Router {
        rid: router.rid,
        state: state.word,
        config_name: name.map_or_else(|| UNNAMED.into(), |name| escape(&name)),
    }))
}

fn is_there(router: Router<'_>) -> Result<bool> {
    match read(router, PROBE, "") {
        Err(e) if e.code == Code::NoSuchElement => Ok(false),
        answer => answer.map(|_| true),
    }
}
