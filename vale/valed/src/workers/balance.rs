// SPDX-License-Identifier: Apache-2.0
//! Moves busy ports from the busiest worker to the idlest one.
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use vale_proto::PortId;

use super::Handle;

/// The time between two looks.
const PERIOD: Duration = Duration::from_secs(1);
/// Frames of a port cost the switch too little for a move below this rate.
const LEAST: u64 = 10_000;

/// A port, its worker and its frames of a period.
type Busy = (PortId, usize, u64);

/// Starts the thread, which ends with the process.
///
/// # Errors
/// There is no further thread.
pub fn start(handle: Handle) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("balance".to_owned());
    thread.spawn(move || balance(&handle)).map(drop)
}

fn balance(handle: &Handle) {
    let mut before = BTreeMap::new();
    loop {
        std::thread::sleep(PERIOD);
        let Some(ports) = handle.ports(None) else {
            return;
        };
        let frames: BTreeMap<_, u64> = ports
            .into_iter()
            .map(|p| {
                (
                    (p.switch, p.port),
                    p.counters.rx_packets + p.counters.tx_packets,
                )
            })
            .collect();
        let placed = handle.placed().into_iter().map(|(id, worker)| {
            let key = (id.switch.clone(), id.port.clone());
            let now = frames.get(&key).copied().unwrap_or(0);
            let moved = now.saturating_sub(before.get(&key).copied().unwrap_or(now));
            (id, worker, moved)
        });
        let placed: Vec<Busy> = placed.collect();
        if let Some((id, worker)) = plan(&placed, handle.workers()) {
            // A port that is gone meanwhile needs no move.
            if let Some(Ok(())) = handle.move_port(&id, worker) {
                log::info!("{}:{}: moved to worker {worker}", id.switch, id.port);
            }
        }
        before = frames;
    }
}

/// The port that makes the load of the busiest and of the idlest worker most equal, and its new worker.
/// None if no move takes a tenth off the busiest one.
fn plan(ports: &[Busy], workers: usize) -> Option<(PortId, usize)> {
    let load = |worker: usize| -> u64 {
        let of = ports.iter().filter(|(_, w, _)| *w == worker);
        of.map(|(_, _, frames)| frames).sum()
    };
    let loads: Vec<_> = (0..workers).map(load).collect();
    let most = (0..workers).max_by_key(|n| loads[*n])?;
    let least = (0..workers).min_by_key(|n| loads[*n])?;
    let after = |frames: u64| (loads[most] - frames).max(loads[least] + frames);
    let movable = ports
        .iter()
        .filter(|(_, w, frames)| *w == most && *frames >= LEAST);
    let (id, _, frames) = movable.min_by_key(|(_, _, frames)| after(*frames))?;
    (after(*frames) <= loads[most] - loads[most] / 10).then(|| (id.clone(), least))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ports(loads: &[(usize, u64)]) -> Vec<Busy> {
        let named = |(n, (worker, frames)): (usize, &(usize, u64))| {
            let id = format!("vale0:p{n}").parse().unwrap();
            (id, *worker, *frames)
        };
        loads.iter().enumerate().map(named).collect()
    }

    fn planned(loads: &[(usize, u64)], workers: usize) -> Option<(String, usize)> {
        let found = plan(&ports(loads), workers)?;
        Some((found.0.port.to_string(), found.1))
    }

    #[test]
    fn the_port_that_evens_the_load_moves() {
        let two_busy = [(0, 900_000), (0, 800_000), (0, 20_000), (1, 10_000)];
        assert_eq!(planned(&two_busy, 2), Some(("p0".to_owned(), 1)));
        assert_eq!(planned(&[(0, 900_000), (1, 10)], 2), None, "one port alone");
        assert_eq!(planned(&[(0, 5000), (0, 5000)], 2), None, "an idle switch");
        assert_eq!(planned(&[(0, 500_000), (1, 500_000), (0, 20_000)], 2), None);
        assert_eq!(planned(&[], 4), None);
    }

    proptest! {
        /// Moves end, and each lowers the load of the busiest worker.
        #[test]
        fn moves_come_to_an_end(
            loads in prop::collection::vec((0usize..4, 0u64..2_000_000), 0..40),
        ) {
            let mut placed = ports(&loads);
            let busiest = |placed: &[Busy]| {
                let load = |n| placed.iter().filter(|p| p.1 == n).map(|p| p.2).sum::<u64>();
                (0..4).map(load).max().unwrap()
            };
            for _ in 0..300 {
                let sum = |placed: &[Busy]| {
                    let load = |n| placed.iter().filter(|p| p.1 == n).map(|p| p.2 as u128).sum::<u128>();
                    (0..4).map(|n| load(n) * load(n)).sum::<u128>()
                };
                let (most, squares) = (busiest(&placed), sum(&placed));
                let Some((id, to)) = plan(&placed, 4) else {
                    return Ok(());
                };
                let port = placed.iter_mut().find(|p| p.0 == id).unwrap();
                port.1 = to;
                prop_assert!(busiest(&placed) <= most && sum(&placed) < squares);
            }
            prop_assert!(false, "no end");
        }
    }
}
