// SPDX-License-Identifier: Apache-2.0
//! Domains that end by themselves.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cosmos_xen as xen;
use log::{error, warn};

use super::convert::failed;
use super::lock;
use crate::base::error::{Error, Result};
use crate::host::Death;

/// How long the watching thread waits for an event before it looks all the same.
const IDLE: Duration = Duration::from_secs(60);

/// Reports domains that end by themselves, as long as this daemon lives.
pub fn watch(
    host: &Arc<xen::Host>,
    domains: &Arc<Mutex<BTreeMap<u16, u64>>>,
    deaths: Sender<Death>,
) -> Result<()> {
    let mut events = xen::Events::open().map_err(failed("events"))?;
    let (host, domains) = (Arc::clone(host), Arc::clone(domains));
    let body = move || {
        while let Ok(_event) = events
            .next(IDLE)
            .inspect_err(|e| error!("events of the host: {e}; restart cosmosd"))
        {
            report_ended(&host, &domains, &deaths);
        }
    };
    let thread = std::thread::Builder::new().name("domains".into());
    thread
        .spawn(body)
        .map(drop)
        .map_err(|e| Error::internal("thread", e))
}

/// Tells of every domain that has shut down or is gone, once.
fn report_ended(host: &xen::Host, domains: &Mutex<BTreeMap<u16, u64>>, deaths: &Sender<Death>) {
    // Taken before: what is made meanwhile is not missed in what the host lists.
    let known: Vec<u16> = lock(domains).keys().copied().collect();
    let infos = match host.peek_all() {
        Ok(infos) => infos,
        Err(e) => return warn!("looking for domains that ended: {e}"),
    };
    let infos: HashMap<_, _> = infos.iter().map(|info| (info.domid, info)).collect();
    for domid in known {
        let Some(reason) = ended(infos.get(&domid.into()).copied()) else {
            continue;
        };
        if lock(domains).remove(&domid).is_some() {
            // The receiver is gone only when this daemon ends.
            drop(deaths.send(Death { domid, reason }));
        }
    }
}

/// Why a domain does not run any more, if it does not; the host knows nothing of one that is gone.
fn ended(info: Option<&xen::Info>) -> Option<String> {
    let Some(info) = info else {
        return Some("destroyed by somebody".into());
    };
    match info.state {
        xen::State::Running | xen::State::Paused => None,
        xen::State::Dying => Some("destroyed by somebody".into()),
        // `xl save -c` resumes it; `xl save` destroys it.
        xen::State::ShutDown if info.reason == xen::Reason::Suspend => None,
        xen::State::ShutDown => Some(
            match info.reason {
                xen::Reason::Crash => "crashed",
                xen::Reason::Poweroff => "powered itself off",
                xen::Reason::Reboot => "rebooted, or a triple fault",
                _ => "shut down",
            }
            .into(),
        ),
    }
}
