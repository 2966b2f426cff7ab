// SPDX-License-Identifier: Apache-2.0
//! `vale-ctl driver-domain` with a real store and a real valed; the test writes what domain 0 writes.
//! Needs root and NOXEN_PREFIX.

use std::process::{Child, Command, Stdio};

use cosmos_testbed::{Testbed, eventually};
use vale_proto::PortInfo;
use xenstore::Tx;

const GOOD: [(&str, &str); 8] = [
    ("frontend", "/local/domain/7/device/vale/1"),
    ("switch", "vale0"),
    ("port", "dom7-1"),
    ("segment", "5"),
    ("mac", "00:16:3e:00:00:07"),
    ("mtu", "1500"),
    ("slots", "256"),
    ("allow", "10.0.0.7/32"),
];

struct DriverDomain(Child);

impl DriverDomain {
    fn start(bed: &Testbed) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vale-ctl"));
        command.arg("--socket").arg(bed.path("valed.sock"));
        command.arg("--xenstore").arg(bed.path("xenstore/socket"));
        let child = command.arg("driver-domain").stderr(Stdio::null()).spawn();
        Self(child.unwrap())
    }
}

impl Drop for DriverDomain {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn path(key: &str) -> String {
    format!("/local/domain/0/backend/vale/7/1/{key}")
}

fn put(bed: &Testbed, keys: &[(&str, &str)]) {
    let write = |tx: &mut xenstore::Transaction<'_>| {
        keys.iter()
            .try_for_each(|(key, value)| tx.write(&path(key), value.as_bytes()))
    };
    bed.store().transaction(write).unwrap();
}

fn ports(bed: &Testbed) -> Vec<PortInfo> {
    bed.vale().port_list(None).unwrap()
}

fn await_port(bed: &Testbed, segment: u32) {
    eventually(&format!("the port of segment {segment}"), || {
        let found = ports(bed);
        (found.len() == 1 && found[0].segment == segment).then_some(())
    });
}

fn await_none(bed: &Testbed) {
    eventually("no port", || ports(bed).is_empty().then_some(()));
}

fn await_error(bed: &Testbed, begin: &str) {
    eventually(begin, || {
        let path = path("hotplug-error");
        let text = bed.store().read_opt(Tx::NONE, &path).unwrap()?;
        text.starts_with(begin.as_bytes()).then_some(())
    });
}

#[test]
fn ports_are_what_the_store_describes() {
    let mut bed = Testbed::start();
    put(&bed, &GOOD);
    let running = DriverDomain::start(&bed);
    await_port(&bed, 5);
    let guest = ports(&bed)[0].guest.unwrap();
    assert_eq!((guest.domid, guest.devid), (7, 1));

    put(&bed, &[("segment", "6")]);
    await_port(&bed, 6);
    bed.restart_vale();
    await_port(&bed, 6);

    drop(running);
    bed.store()
        .rm(Tx::NONE, "/local/domain/0/backend/vale/7")
        .unwrap();
    let _running = DriverDomain::start(&bed);
    await_none(&bed);

    put(&bed, &[("slots", "100"), GOOD[0]]);
    await_error(&bed, "switch: is missing");
    put(&bed, &[GOOD[1], GOOD[2], GOOD[3], GOOD[4], GOOD[5]]);
    await_error(&bed, "port-add: slots");
    put(&bed, &[GOOD[6]]);
    await_port(&bed, 5);
    put(&bed, &[("online", "0")]);
    await_none(&bed);
    eventually("no directory", || {
        let left = bed.store().read_opt(Tx::NONE, &path("frontend"));
        left.unwrap().is_none().then_some(())
    });
}
