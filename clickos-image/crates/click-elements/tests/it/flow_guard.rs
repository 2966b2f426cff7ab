// SPDX-License-Identifier: Apache-2.0
//! What FlowGuard tells of many flows, within the limits of a router.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use click_core::{Device, Environment, MemoryDevice, Progress, Router};

const CONFIG: &str = "FromDevice(0) -> MarkIPHeader -> g :: FlowGuard(1000); g[0] -> Discard;
    Idle -> [1]g; g[1] -> Discard; g[2] -> Discard; Idle -> [2]g;";
/// Bytes of a handler's value in these tests.
const MOST: usize = 4096;

/// A datagram without a checksum.
fn datagram(sport: u16) -> Vec<u8> {
    let head = [
        0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 1, 2,
    ];
    let [high, low] = sport.to_be_bytes();
    [&head[..], &[high, low, 0, 53, 0, 8, 0, 0]].concat()
}

#[test]
fn a_long_table_is_cut_at_a_line() {
    let device = Rc::new(RefCell::new(MemoryDevice::new([2, 0, 0, 0, 0, 1])));
    let mut environment = Environment {
        devices: BTreeMap::from([(0, device.clone() as Rc<RefCell<dyn Device>>)]),
        ..Environment::new()
    };
    environment.limits.handler_bytes = MOST;
    let registry = click_elements::registry();
    let mut router = Router::build("t", CONFIG, &registry, environment, 1).unwrap();
    device.borrow_mut().input.extend((1..=500).map(datagram));
    while router.run(1) == Progress::Worked {}
    let mut read = |name| String::from_utf8(router.read_handler(name, "", 1).unwrap()).unwrap();
    assert_eq!(read("g.table_size"), "500");
    let table = read("g.table");
    assert!(table.len() <= MOST, "{} bytes", table.len());
    assert!(table.ends_with("\n...\n"), "{table}");
    let state = read("g.state");
    assert!(state.len() <= MOST && state.starts_with("flowguard 1\n"));
}
