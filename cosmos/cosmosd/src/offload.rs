// SPDX-License-Identifier: Apache-2.0
//! Guests' requests that the switch decides packets, and the switch's hits (docs/adr/0083-offloaded-rules.md).
//!
//! The guest's node is the request, and the switch has the tables. This daemon compares both, so that a
//! restart of either side, and of this daemon, needs no other code.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use log::debug;
use vale_proto::{
    OffloadId, OffloadInfo, OffloadRule, OffloadSet, Owner, PortId, PortName, SwitchName,
};

use clickos_offload::{MAX_RULES, MAX_TEXT};

use crate::base::error::Result;
use crate::control;
use crate::guest::{Guest, State};
use crate::site::Site;
use crate::spec::Vif;

/// Shortest time between two looks: a guest that changes its request all the time costs no more.
const PAUSE: Duration = Duration::from_millis(100);
/// Time between two looks at the hits while a guest has a request.
const LOOK: Duration = Duration::from_secs(1);
/// Time between two looks without requests; each request is an event.
const IDLE: Duration = Duration::from_secs(3600);
/// Most bytes of the reason in an answer.
const REASON: usize = 200;
/// Digits of a number: the answer's nodes stay below the store's limit.
const MAX: u64 = (1 << 45) - 1;

/// The request for one device, and the last answer.
struct OffloadRequest {
    place: PortId,
    version: u64,
    rules: std::result::Result<Vec<OffloadRule>, String>,
    /// The last hits of the table that ended.
    ended: String,
    told: String,
}

/// The requests by domain and device.
#[derive(Default)]
pub struct OffloadRequests(BTreeMap<(u16, u32), OffloadRequest>);

/// Follows the guests' requests, forever.
pub fn offload_loop(site: &Site) -> ! {
    let mut requests = OffloadRequests::default();
    loop {
        let wait = if requests.0.is_empty() { IDLE } else { LOOK };
        let domids = site.watchers.offloads.take(wait);
        let read = domids
            .iter()
            .try_for_each(|d| read_offload_requests(site, *d, &mut requests));
        let looked = read.and_then(|()| reconcile_offloads(site, &mut requests));
        if let Err(e) = looked {
            debug!("wishes: {e}");
            site.watchers.offloads.add(domids);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Reads the requests for all devices of a guest.
pub fn read_offload_requests(
    site: &Site,
    domid: u16,
    requests: &mut OffloadRequests,
) -> Result<()> {
    let Some(guest) = site.table.by_domid(domid) else {
        return Ok(());
    };
    for vif in guest.vifs() {
        let text = site.store.read(&control::offload_path(domid, vif.devid))?;
        let key = (domid, vif.devid);
        match text.and_then(|text| OffloadRequest::parse(&vif, &text)) {
            Some(mut request) => {
                if let Some(old) = requests.0.remove(&key) {
                    (request.ended, request.told) = (old.ended, old.told);
                }
                requests.0.insert(key, request);
            }
            None => drop(requests.0.remove(&key)),
        }
    }
    Ok(())
}

/// Makes the tables of the switch equal to the requests, and tells the guests their hits.
pub fn reconcile_offloads(site: &Site, requests: &mut OffloadRequests) -> Result<()> {
    let mut tables = site.switch.offloads()?;
    tables.retain(|table| table.owner == Owner::Guest);
    requests.0.retain(|(domid, devid), request| {
        let guest = site.table.by_domid(*domid);
        let Some((guest, vif)) = guest.and_then(|guest| plugged(guest, *devid)) else {
            return false;
        };
        let is_it =
            |t: &OffloadInfo| t.switch == request.place.switch && t.port == request.place.port;
        let found = tables.iter().position(is_it);
        let table = found.map(|n| tables.swap_remove(n));
        if request.place != place_of(&vif) {
            return false;
        }
        fulfil(site, &guest, *devid, request, table);
        true
    });
    for table in tables {
        site.switch.remove_offload(&id(table.switch, table.port))?;
    }
    Ok(())
}

/// Fulfils a request, and answers. A guest that another thread makes or removes waits.
fn fulfil(
    site: &Site,
    guest: &Arc<Guest>,
    devid: u32,
    request: &mut OffloadRequest,
    table: Option<OffloadInfo>,
) {
    let domid = guest.domain.domid;
    let Some(_owner) = guest.try_lock_lifecycle() else {
        return site.watchers.offloads.add([domid]);
    };
    if !matches!(guest.state(), State::Running | State::Paused) {
        return;
    }
    let (outcome, now) = match apply(site, request, table) {
        Ok(now) => ("ok".to_owned(), now),
        Err(reason) => (reason, None),
    };
    let reason: String = outcome.chars().take(REASON).collect();
    let reason = reason.replace(char::is_control, " ");
    let now = now.as_ref().map_or(String::new(), line);
    let answer = format!("{} {reason}\n{}{now}", request.version, request.ended);
    if answer != request.told {
        match control::answer_offload(&*site.store, domid, devid, &answer) {
            Ok(()) => request.told = answer,
            Err(e) => debug!("wishes of domain {domid}: {e}"),
        }
    }
}

/// The table in force.
fn apply(
    site: &Site,
    request: &mut OffloadRequest,
    table: Option<OffloadInfo>,
) -> std::result::Result<Option<OffloadInfo>, String> {
    let PortId { switch, port } = request.place.clone();
    let (rules, refused) = match &request.rules {
        Ok(rules) => (rules.as_slice(), None),
        Err(reason) => (&[][..], Some(reason.clone())),
    };
    let change = match (table, rules.is_empty()) {
        (None, true) => return refused.map_or(Ok(None), Err),
        (Some(table), false) if table.version == request.version => return Ok(Some(table)),
        (Some(_), true) => site.switch.remove_offload(&id(switch, port)),
        (_, false) => site.switch.set_offload(&OffloadSet {
            switch,
            port,
            owner: Owner::Guest,
            version: request.version,
            replaces: None,
            rules: rules.to_vec(),
        }),
    };
    let change = change.map_err(|e| e.message)?;
    if let Some(before) = &change.before {
        request.ended = line(before);
    }
    refused.map_or(Ok(change.now), Err)
}

fn plugged(guest: Arc<Guest>, devid: u32) -> Option<(Arc<Guest>, Vif)> {
    let vifs = guest.vifs().into_iter();
    let vif = vifs
        .filter(Vif::is_plugged)
        .find(|vif| vif.devid == devid)?;
    Some((guest, vif))
}

fn place_of(vif: &Vif) -> PortId {
    PortId {
        switch: vif.switch.clone(),
        port: vif.port.clone(),
    }
}

fn id(switch: SwitchName, port: PortName) -> OffloadId {
    let owner = Owner::Guest;
    OffloadId {
        switch,
        port,
        owner,
    }
}

/// A table's version, epoch and hits.
fn line(table: &OffloadInfo) -> String {
    let hits = table
        .rules
        .iter()
        .map(|rule| format!(" {}", rule.hits.min(MAX)));
    let hits: String = hits.collect();
    format!("{} {}{hits}\n", table.version, table.epoch)
}

impl OffloadRequest {
    /// Reads a guest's node: its version, then a rule a line. None without a version, which no answer
    /// could name.
    fn parse(vif: &Vif, text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines();
        let version = lines.next()?.parse().ok()?;
        Some(Self {
            place: place_of(vif),
            version,
            rules: rules(&text, lines),
            ended: String::new(),
            told: String::new(),
        })
    }
}

fn rules<'a>(
    text: &str,
    lines: impl Iterator<Item = &'a str>,
) -> std::result::Result<Vec<OffloadRule>, String> {
    let bytes = text.len();
    // The version's line comes on top.
    if bytes > MAX_TEXT + 32 {
        return Err(format!("rules: {bytes} bytes, the limit is {MAX_TEXT}"));
    }
    let rules = lines.enumerate().map(|(n, line)| match n < MAX_RULES {
        true => line.parse().map_err(|e| format!("rule {n}: {e}")),
        false => Err(format!("rules: more than {MAX_RULES}, the limit")),
    });
    rules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, spec, uuid};

    struct Bed {
        world: World,
        requests: OffloadRequests,
    }

    const REQUEST: &str = "/local/domain/1/data/clickos/offload/0";

    impl Bed {
        fn new() -> Self {
            let world = World::new();
            world.create(&spec(1)).unwrap();
            let requests = OffloadRequests::default();
            Self { world, requests }
        }

        /// Does the work of the daemon's thread after an event, or a second.
        fn look(&mut self) -> String {
            let site = &self.world.site;
            for domid in site.watchers.offloads.take(Duration::ZERO) {
                read_offload_requests(site, domid, &mut self.requests).unwrap();
            }
            reconcile_offloads(site, &mut self.requests).unwrap();
            let answer = "/local/domain/1/data/clickos/offloaded/0";
            let answer = site.store.read(answer).unwrap().unwrap_or_default();
            String::from_utf8(answer).unwrap()
        }

        fn request(&mut self, text: &str) -> String {
            self.world.store.put(REQUEST, text);
            self.look()
        }

        fn tables(&self) -> Vec<String> {
            let tables = self.world.site.switch.offloads().unwrap();
            let port = |t: OffloadInfo| format!("{}:{} {}", t.switch, t.port, t.version);
            tables.into_iter().map(port).collect()
        }
    }

    #[test]
    fn a_wish_becomes_a_table_of_the_guests_own_port() {
        let mut bed = Bed::new();
        assert_eq!(bed.request("7\ndrop proto 6\npass\n"), "7 ok\n7 1 0 0\n");
        assert_eq!(bed.tables(), ["vale0:g1-0 7"]);
        bed.world.switch.hit("vale0:g1-0", 5);
        assert_eq!(bed.look(), "7 ok\n7 1 5 5\n");
        assert_eq!(bed.request("8\ndrop\n"), "8 ok\n7 1 5 5\n8 2 0\n");
        assert_eq!(bed.request("9\n"), "9 ok\n8 2 0\n");
        assert_eq!(bed.tables(), Vec::<String>::new());
        bed.world.destroy(&uuid(1)).unwrap();
        bed.look();
        assert_eq!(bed.world.remains(), Vec::<String>::new());
    }

    #[test]
    fn hostile_wishes_are_refused_and_the_old_rules_end() {
        let mut bed = Bed::new();
        let many = format!("3\n{}", "drop\n".repeat(MAX_RULES + 1));
        let long = format!("4\n{}", "x".repeat(MAX_TEXT + 40));
        for (text, expected) in [
            (
                "1\nallow\n",
                "1 rule 0: rule: expected pass, drop or redirect",
            ),
            ("2\ndrop proto 999\n", "2 rule 0: proto: expected"),
            (
                "6\ndrop dst 2001:db8::/129\n",
                "6 rule 0: dst: expected a prefix of 0 to 128 bits",
            ),
            (&many, "3 rules: more than 64"),
            (&long, "4 rules: 1942 bytes"),
        ] {
            bed.request("5\ndrop\n");
            assert_eq!(bed.tables().len(), 1);
            let answer = bed.request(text);
            assert!(answer.starts_with(expected), "{answer}");
            assert!(answer.len() < 300);
            assert_eq!(bed.tables().len(), 0);
        }
        for text in ["", "x\ndrop\n", "-1\ndrop\n", "\u{1}\ndrop\n"] {
            bed.request(text);
            assert_eq!(bed.tables().len(), 0, "{text:?}");
        }
        // A device that the guest does not have.
        bed.world
            .store
            .put("/local/domain/1/data/clickos/offload/7", "1\ndrop\n");
        bed.look();
        assert_eq!(bed.tables().len(), 0);
    }

    #[test]
    fn a_new_switch_and_a_new_daemon_have_the_tables_again() {
        let mut bed = Bed::new();
        bed.request("7\ndrop\n");
        bed.world.switch.hit("vale0:g1-0", 3);
        bed.world.switch.clear_offloads();
        assert_eq!(bed.look(), "7 ok\n7 2 0\n");
        assert_eq!(bed.tables(), ["vale0:g1-0 7"]);
        bed.world = bed.world.restart();
        bed.requests = OffloadRequests::default();
        bed.world.site.watchers.wake_all();
        bed.world.switch.hit("vale0:g1-0", 3);
        assert_eq!(bed.look(), "7 ok\n7 2 3\n");
        // A request that went while the daemon was away.
        bed.world.switch.put_offload("vale0:g1-1");
        bed.look();
        assert_eq!(bed.tables(), ["vale0:g1-0 7"]);
    }

    #[test]
    fn a_switch_that_refuses_is_a_reason_for_the_guest() {
        let mut bed = Bed::new();
        bed.world.faults.fail("switch.set_offload vale0:g1-0");
        let answer = bed.request("7\ndrop\n");
        assert!(answer.starts_with("7 "), "{answer}");
        assert!(!answer.starts_with("7 ok"), "{answer}");
        bed.world.faults.mend();
        assert_eq!(bed.look(), "7 ok\n7 1 0\n");
    }
}
