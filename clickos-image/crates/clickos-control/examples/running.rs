// SPDX-License-Identifier: Apache-2.0
//! A guest from its start to `Running` with a firewall of ten rules, for an instruction counter:
//! ```text
//! cargo build --release -p clickos-control --example running
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='running::boot' \
//!     target/release/examples/running
//! ```
use click_core::Environment;
use clickos_control::Guest;
use clickos_control::simulator::{Connection, Simulator};
use std::cell::RefCell;
use std::rc::Rc;

const DOMID: u16 = 1;
const ROOT: &str = "/local/domain/1/data/clickos/0";
/// A slice of the guest's loop; it comes to rest long before so many.
const SLICES: u64 = 10_000;
const FIREWALL: &str = "
InfiniteSource(LIMIT 0) -> CheckIPHeader(OFFSET 0, VERBOSE false)
-> fw :: IPFilter(
allow tcp && dst port 22, allow tcp && dst port 80,
allow tcp && dst port 443, allow udp && dst port 53,
deny src net 10.0.0.0/8, deny src net 172.16.0.0/12,
allow icmp type echo, allow udp && src port 123,
deny dst host 192.0.2.7, allow all) -> Discard;
";

fn main() {
    let store = Simulator::new();
    let connection = store.domain(DOMID);
    store.write(&format!("{ROOT}/config/0"), FIREWALL.as_bytes());
    store.write(&format!("{ROOT}/generation"), b"1");
    let slices = boot(&store, connection);
    println!("Running after {slices} slices");
}

#[inline(never)]
fn boot(store: &Simulator, connection: Connection) -> u64 {
    let connection = Rc::new(RefCell::new(connection));
    let registry = click_elements::registry().guest();
    let mut guest = Guest::new(connection, registry, Environment::new(), None);
    let state = format!("{ROOT}/state");
    for slice in 1..SLICES {
        guest.run(slice * 1_000_000);
        if store.text(&state).as_deref() == Some("Running 1") {
            return slice;
        }
    }
    panic!("not running: {:?}", store.text(&format!("{ROOT}/error")));
}
