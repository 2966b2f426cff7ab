// SPDX-License-Identifier: Apache-2.0
//! Round trips through one guest next to guests that spin: docs/adr/0027-shares.md.
//!
//! `cargo build --release -p valed -p cosmosd -p clickos-process` and then
//! `cargo run --release -p cosmos-testbed --example neighbor`, as root with NOXEN_PREFIX.
//! Prints microseconds.

use std::time::{Duration, Instant};

use cosmos_testbed::{GuestSpec, PATIENCE, TestPort, Testbed, cgroup};

const MIRROR: &str = "\
FromDevice(0) -> Strip(14) -> EtherEncap(0x88b5, 02:00:00:01:64:00, 02:00:00:00:00:01)
    -> Queue -> ToDevice(0);
";
const SPIN: &str = "InfiniteSource -> Discard;";
const SPINNERS: u16 = 8;
const FRAMES: usize = 3000;
/// Between two frames both sides sleep.
const PAUSE: Duration = Duration::from_micros(500);
/// The receiver looks at its ring this often: the figures are as coarse.
const LOOK: Duration = Duration::from_micros(20);

fn main() {
    for (spinners, preferred) in [(0, false), (SPINNERS, false), (SPINNERS, true)] {
        let trips = measure(spinners, preferred);
        let at = |percent: usize| trips[trips.len() * percent / 100].as_micros();
        println!(
            "{spinners} spinning guests, valed {}: p50 {} us, p99 {} us, max {} us",
            if preferred {
                "preferred"
            } else {
                "as any process"
            },
            at(50),
            at(99),
            trips[trips.len() - 1].as_micros()
        );
    }
}

/// The round trips through a mirror, the shortest first.
fn measure(spinners: u16, preferred: bool) -> Vec<Duration> {
    let bed = Testbed::start();
    if preferred {
        cgroup::prefer(bed.valed.pid());
        cgroup::prefer(std::process::id() as i32);
    }
    let sha256 = bed.engine_sha256();
    for n in 1..=spinners {
        let guest = GuestSpec::new(n, &sha256, SPIN);
        bed.call("create", guest.args())
            .expect("a guest can be made");
    }
    let mirror = GuestSpec::new(100, &sha256, MIRROR).vif(1);
    bed.call("create", mirror.args())
        .expect("a guest can be made");
    let mut port = TestPort::add(&mut bed.vale(), 1, 1);
    let mut trips: Vec<Duration> = (0..FRAMES).map(|_| trip(&mut port)).collect();
    trips.sort_unstable();
    trips
}

fn trip(port: &mut TestPort) -> Duration {
    std::thread::sleep(PAUSE);
    let began = Instant::now();
    port.send(b"there and back");
    port.receive_every(LOOK, PATIENCE)
        .expect("the mirror answers");
    began.elapsed()
}
