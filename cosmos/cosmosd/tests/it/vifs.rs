// SPDX-License-Identifier: Apache-2.0
//! valed's ports of Xen guests, with a frontend that the test writes by hand: handshakes without
//! rings. Needs root and NOXEN_PREFIX.

use cosmos_testbed::{Testbed, eventually, kill};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::json;
use xenstore::Tx;

/// Changes of state that each flood makes.
const CHANGES: usize = 2000;
/// Fewer calls or log lines than these: a guest that waits is polled now and then.
const FEW: usize = CHANGES / 10;

struct Vif<'a> {
    bed: &'a Testbed,
    store: xenstore::Client,
    domid: u16,
}

impl<'a> Vif<'a> {
    /// The backend directory of a toolstack.
    fn of(bed: &'a Testbed, domid: u16) -> Self {
        let mut store = bed.store();
        let frontend = format!("/local/domain/{domid}/device/vale/0");
        let backend = format!("/local/domain/0/backend/vale/{domid}/0/frontend");
        store
            .write(Tx::NONE, &backend, frontend.as_bytes())
            .unwrap();
        Self { bed, store, domid }
    }

    /// As [`Self::of`], with a port of the switch.
    fn add(bed: &'a Testbed, domid: u16) -> Self {
        let add = json!({
            "switch": "vale0", "port": format!("d{domid}"), "kind": "xen", "segment": 1,
            "port_security": false, "guest": {"domid": domid, "devid": 0}, "allowed": [],
        });
        bed.vale()
            .port_add(&serde_json::from_value(add).unwrap())
            .unwrap();
        Self::of(bed, domid)
    }

    fn set(&mut self, state: &str) {
        let key = format!("/local/domain/{}/device/vale/0/state", self.domid);
        self.store.write(Tx::NONE, &key, state.as_bytes()).unwrap();
    }

    fn wait(&mut self, wanted: &str) {
        let key = format!("/local/domain/0/backend/vale/{}/0/state", self.domid);
        eventually(
            &format!("the backend of {} is {wanted}", self.domid),
            || {
                let state = self.store.read_opt(Tx::NONE, &key).ok()??;
                (state == wanted.as_bytes()).then_some(())
            },
        );
    }

    fn flood(&mut self) {
        for _ in 0..CHANGES / 2 {
            self.set("1");
            self.set("6");
        }
    }

    /// valed's log lines about it.
    fn lines(&self) -> usize {
        let log = std::fs::read_to_string(self.bed.path("valed.log")).unwrap();
        let name = format!("vale0:d{}:", self.domid);
        log.lines().filter(|line| line.contains(&name)).count()
    }
}

/// Reads and writes of valed's thread that follows the store.
fn calls(bed: &Testbed) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", bed.valed.pid())).unwrap();
    let folder = tasks
        .map(|task| task.unwrap().path())
        .find(|task| std::fs::read_to_string(task.join("comm")).unwrap() == "xen\n");
    let text = std::fs::read_to_string(folder.unwrap().join("io")).unwrap();
    let field = |name: &str| {
        text.lines()
            .find_map(|l| l.strip_prefix(name)?.parse::<usize>().ok())
    };
    field("syscr: ").unwrap() + field("syscw: ").unwrap()
}

#[test]
fn a_guest_that_toggles_its_vif_is_made_to_wait() {
    let bed = Testbed::start();
    let (mut hostile, mut neighbor) = (Vif::add(&bed, 5), Vif::add(&bed, 6));
    hostile.set("1");
    hostile.wait("2");
    hostile.flood();
    hostile.wait("6");
    assert!(hostile.lines() < FEW, "{} lines", hostile.lines());
    neighbor.set("1");
    neighbor.wait("2");
    // valed is idle now, and what comes from the waiting guest does not reach it.
    let before = calls(&bed);
    hostile.flood();
    neighbor.set("6");
    neighbor.wait("6");
    let made = calls(&bed) - before;
    assert!(
        made < FEW,
        "{made} calls for {CHANGES} changes of a guest that waits"
    );
}

/// Registers a domain with the store, as a toolstack does.
fn introduce(bed: &Testbed, domid: u16) {
    let place = |what: &str| bed.path(&format!("xenstore/dom{domid}.{what}"));
    std::fs::write(place("ring"), [0; 4096]).unwrap();
    if !place("event").exists() {
        mknodat(
            CWD,
            place("event"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
    }
    bed.store().introduce(domid, 1, 1).unwrap();
}

/// valed watches its vifs in the new store. The vif of a domain that this store does not know ends.
#[test]
fn a_lost_store_is_connected_again() {
    const FOREVER: u16 = 6;
    let mut bed = Testbed::start();
    for domid in [5, FOREVER] {
        introduce(&bed, domid);
        let mut vif = Vif::add(&bed, domid);
        vif.set("1");
        vif.wait("2");
    }
    // valed stands still until the new store is complete.
    kill(bed.valed.pid(), Signal::STOP);
    bed.kill_store();
    bed.restart_store();
    introduce(&bed, FOREVER);
    kill(bed.valed.pid(), Signal::CONT);
    eventually("valed drops the vif of domain 5", || {
        let log = std::fs::read_to_string(bed.path("valed.log")).ok()?;
        log.contains("vale0:d5: vif 0 of domain 5: Gone")
            .then_some(())
    });
    let mut kept = Vif::of(&bed, FOREVER);
    kept.set("6");
    kept.wait("6");
    let mut new = Vif::add(&bed, 7);
    new.set("1");
    new.wait("2");
}

/// A frontend that names no rings is refused; valed then looks at others only.
#[test]
fn a_refused_vif_costs_no_more() {
    let bed = Testbed::start();
    let (mut refused, mut other) = (Vif::add(&bed, 5), Vif::add(&bed, 6));
    refused.set("1");
    refused.wait("2");
    refused.set("4");
    refused.wait("6");
    other.set("1");
    other.wait("2");
    let before = calls(&bed);
    refused.flood();
    other.set("6");
    other.wait("6");
    let made = calls(&bed) - before;
    assert!(
        made < FEW,
        "{made} calls for {CHANGES} changes of a refused guest"
    );
}
