// SPDX-License-Identifier: Apache-2.0
//! Moves busy ports from a worker that is full to the idlest one. A frame between two workers costs more
//! than one within a worker, so ports of a worker that keeps up stay where they are.
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use vale_proto::PortId;

use super::Handle;

/// The time between two looks.
const PERIOD: Duration = Duration::from_secs(1);
/// Frames of a port cost the switch too little for a move below this rate.
const MIN_FRAMES: u64 = 10_000;
/// A worker is full if its rounds with frames take this part of a period, in percent.
const FULL: u64 = 75;

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
    let (mut busy_before, mut at) = (Vec::new(), Instant::now());
    loop {
        std::thread::sleep(PERIOD);
        let (Some(ports), Some(loads)) = (handle.ports(None), handle.loads()) else {
            return;
        };
        let busy: Vec<_> = loads.iter().map(|load| load.busy).collect();
        let period = at.elapsed().as_nanos() as u64;
        let percents = percents(&busy, &busy_before, period);
        (busy_before, at) = (busy, Instant::now());
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
        if let Some((id, worker)) = plan(&placed, &percents) {
            // A port that is gone meanwhile needs no move.
            if let Some(Ok(())) = handle.move_port(&id, worker) {
                log::info!("{}:{}: moved to worker {worker}", id.switch, id.port);
            }
        }
        before = frames;
    }
}

/// The part of a period that each worker was busy.
fn percents(busy: &[u64], before: &[u64], period: u64) -> Vec<u64> {
    let before = before.iter().copied().chain(std::iter::repeat(u64::MAX));
    let grown = busy.iter().zip(before);
    grown
        .map(|(now, before)| now.saturating_sub(before) / (period / 100).max(1))
        .collect()
}

/// The port that makes the load of a full worker and of the idlest one that is not full most equal, and
/// its new worker. None if there are no two such workers, or no move takes a tenth off a full one.
fn plan(ports: &[Busy], percents: &[u64]) -> Option<(PortId, usize)> {
    let load = |worker: usize| -> u64 {
        let of = ports.iter().filter(|(_, w, _)| *w == worker);
        of.map(|(_, _, frames)| frames).sum()
    };
    let loads: Vec<_> = (0..percents.len()).map(load).collect();
    let (mut full, free): (Vec<_>, Vec<_>) =
        (0..percents.len()).partition(|n| percents[*n] >= FULL);
    full.sort_by_key(|n| std::cmp::Reverse(loads[*n]));
    let least = free.into_iter().min_by_key(|n| loads[*n])?;
    full.into_iter().find_map(|most| {
        let after = |frames: u64| (loads[most] - frames).max(loads[least] + frames);
        let movable = ports
            .iter()
            .filter(|(_, w, frames)| *w == most && *frames >= MIN_FRAMES);
        let (id, _, frames) = movable.min_by_key(|(_, _, frames)| after(*frames))?;
        (after(*frames) <= loads[most] - loads[most] / 10).then(|| (id.clone(), least))
    })
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
        let percents: Vec<_> = (0..workers).map(|n| if n == 0 { 100 } else { 5 }).collect();
        let found = plan(&ports(loads), &percents)?;
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

    #[test]
    fn a_worker_that_keeps_up_keeps_its_ports() {
        let loads = ports(&[(0, 900_000), (0, 800_000), (1, 10_000)]);
        // Few frames may take all of a worker's time.
        let full = [100, 75];
        for (percents, moves) in [
            ([100, 5], true),
            ([75, 0], true),
            ([74, 0], false),
            (full, false),
        ] {
            assert_eq!(plan(&loads, &percents).is_some(), moves, "{percents:?}");
        }
        // The one that is full has nothing that another one could take.
        assert_eq!(plan(&loads, &[50, 100]), None);
        // A full one that cannot be helped does not stand in the way of another.
        let loads = ports(&[(0, 1_500_000), (1, 600_000), (1, 500_000)]);
        let (id, to) = plan(&loads, &[100, 100, 0]).unwrap();
        assert_eq!((id.port.as_str(), to), ("p1", 2));
    }

    #[test]
    fn a_percent_is_of_the_period() {
        let (before, now) = ([0, 500], [750_000_000, 500]);
        assert_eq!(percents(&now, &before, 1_000_000_000), [75, 0]);
        assert_eq!(percents(&now, &[], 1_000_000_000), [0, 0], "no period yet");
        assert_eq!(percents(&now, &before, 0), [750_000_000, 0]);
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
                let load = |n| placed.iter().filter(|p| p.1 == n).map(|p| p.2).sum::<u64>();
                let percents: Vec<_> = (0..4).map(|n| load(n) / 20_000).collect();
                let Some((id, to)) = plan(&placed, &percents) else {
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
