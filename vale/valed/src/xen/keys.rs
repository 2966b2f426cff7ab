// SPDX-License-Identifier: Apache-2.0
//! The keys by which a frontend names its rings (docs/rings.md). Those of several queues are Xen's
//! (`xen/io/netif.h`).
use crate::device::queues;
use crate::device::region_registry::RegionRegistry;

/// The key in the backend's directory that allows more than one queue.
pub const MAX_QUEUES_KEY: &str = "multi-queue-max-queues";
const QUEUES: &str = "multi-queue-num-queues";
/// Version of the rings of a port with several queues.
const SEVERAL: u32 = 1;

/// The rings of a frontend.
#[derive(Debug, PartialEq, Eq)]
pub struct FrontendRings {
    /// Version of the rings.
    pub version: u32,
    /// One or more.
    pub queues: Vec<Queue>,
}

/// The keys of a pair of rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Reference of the first directory page.
    pub directory: u32,
    /// The guest's end of the event channel.
    pub evtchn_port: u32,
}

/// Most queues of a guest. netback hands over the keys of one. A valed that makes room for an older one
/// (`max_ring_version = 1`) allows one.
pub fn most_queues(netback: bool, regions: &RegionRegistry) -> usize {
    match netback || regions.copying {
        true => 1,
        false => queues::MAX,
    }
}

/// Reads the keys of a guest that may have up to `most` queues. `read` gives the text of a key. The
/// inner error says what the guest did wrong.
pub fn read<E>(
    most: usize,
    mut read: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<Result<FrontendRings, String>, E> {
    // Guests that know version 1 only do not name it, nor do those with one queue their number.
    let mut numbers = [("ring-version", 1), (QUEUES, 1)];
    for (key, number) in &mut numbers {
        if let Some(text) = read(key)? {
            match text.parse() {
                Ok(found) => *number = found,
                Err(_) => return Ok(Err(format!("{key}: is not a number"))),
            }
        }
    }
    let [(_, version), (_, count)] = numbers;
    if let Err(why) = check(version, count, most) {
        return Ok(Err(why));
    }
    let mut queues = Vec::new();
    for n in 0..count {
        match read_queue(n, count, &mut read)? {
            Ok(queue) => queues.push(queue),
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok(FrontendRings { version, queues }))
}

fn check(version: u32, count: u32, most: usize) -> Result<(), String> {
    if count == 0 || count as usize > most {
        return Err(format!("{QUEUES}: {count} is not from 1 to {most}"));
    }
    if count > 1 && version != SEVERAL {
        return Err(format!(
            "{QUEUES}: only rings of version {SEVERAL} have several"
        ));
    }
    Ok(())
}

/// Reads the keys of queue `n`. The only queue has no directory of its own.
fn read_queue<E>(
    n: u32,
    count: u32,
    read: &mut impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<Result<Queue, String>, E> {
    let mut number = |key: &str| {
        let key = match count {
            1 => key.to_owned(),
            _ => format!("queue-{n}/{key}"),
        };
        let found = read(&key)?.and_then(|text| text.parse().ok());
        Ok(found.ok_or_else(|| format!("{key}: is not a number")))
    };
    let (directory, evtchn_port) = (number("ring-ref")?, number("event-channel")?);
    Ok(directory.and_then(|directory| {
        Ok(Queue {
            directory,
            evtchn_port: evtchn_port?,
        })
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// The rings that valed finds in a store with these keys of a guest.
    fn found(keys: &[(&str, &str)]) -> Result<FrontendRings, String> {
        let store: HashMap<_, _> = keys.iter().copied().collect();
        let text = |key: &str| Ok::<_, ()>(store.get(key).map(|text| (*text).to_owned()));
        read(queues::MAX, text).unwrap()
    }

    fn rings(version: u32, queues: &[(u32, u32)]) -> FrontendRings {
        let queues = queues.iter().map(|(directory, evtchn_port)| Queue {
            directory: *directory,
            evtchn_port: *evtchn_port,
        });
        FrontendRings {
            version,
            queues: queues.collect(),
        }
    }

    const FLAT: [(&str, &str); 2] = [("ring-ref", "8"), ("event-channel", "9")];
    const TWO: [(&str, &str); 5] = [
        ("multi-queue-num-queues", "2"),
        ("queue-0/ring-ref", "10"),
        ("queue-0/event-channel", "11"),
        ("queue-1/ring-ref", "20"),
        ("queue-1/event-channel", "21"),
    ];

    #[test]
    fn one_queue_has_the_keys_of_guests_that_know_no_other() {
        assert_eq!(found(&FLAT), Ok(rings(1, &[(8, 9)])));
        let of = |key, text| found(&[&FLAT[..], &[(key, text)]].concat());
        assert_eq!(of("multi-queue-num-queues", "1"), Ok(rings(1, &[(8, 9)])));
        assert_eq!(of("ring-version", "2"), Ok(rings(2, &[(8, 9)])));
    }

    #[test]
    fn each_of_several_queues_has_keys_of_its_own() {
        let two = rings(1, &[(10, 11), (20, 21)]);
        assert_eq!(found(&TWO), Ok(two));
        let keys: Vec<_> = (0..queues::MAX)
            .flat_map(|n| {
                [
                    format!("queue-{n}/ring-ref"),
                    format!("queue-{n}/event-channel"),
                ]
            })
            .collect();
        let most = queues::MAX.to_string();
        let all = keys.iter().map(|key| (key.as_str(), "7"));
        let all: Vec<_> = all
            .chain([("multi-queue-num-queues", most.as_str())])
            .collect();
        assert_eq!(found(&all), Ok(rings(1, &[(7, 7); queues::MAX])));
        // The keys of one queue from before are nothing.
        assert_eq!(found(&[&TWO[..], &FLAT].concat()), found(&TWO));
    }

    #[test]
    fn wrong_numbers_of_queues_are_refused() {
        for number in ["0", "5", "4294967295", "4294967296", "-1", "", "x", "2 "] {
            let keys = [&TWO[1..], &FLAT, &[("multi-queue-num-queues", number)]].concat();
            let why = found(&keys).unwrap_err();
            assert!(why.starts_with("multi-queue-num-queues: "), "{why}");
        }
    }

    #[test]
    fn several_queues_have_version_1() {
        for version in ["0", "2", "3"] {
            let keys = [&TWO[..], &[("ring-version", version)]].concat();
            let why = found(&keys).unwrap_err();
            assert!(why.contains("only rings of version 1"), "{why}");
        }
        let one = [&TWO[..], &[("ring-version", "1")]].concat();
        assert_eq!(found(&one), found(&TWO));
    }

    #[test]
    fn missing_and_odd_keys_are_named() {
        for n in 1..TWO.len() {
            let (key, _) = TWO[n];
            let mut keys = TWO.to_vec();
            for text in ["", "-1", "4294967296", "seven"] {
                keys[n].1 = text;
                assert_eq!(found(&keys), Err(format!("{key}: is not a number")));
            }
            keys.remove(n);
            assert_eq!(found(&keys), Err(format!("{key}: is not a number")));
        }
        for missing in 0..2 {
            let (key, _) = FLAT[missing];
            let why = found(&[FLAT[1 - missing]]).unwrap_err();
            assert_eq!(why, format!("{key}: is not a number"));
        }
        let odd = [&FLAT[..], &[("ring-version", "one")]].concat();
        assert_eq!(found(&odd), Err("ring-version: is not a number".into()));
    }

    #[test]
    fn a_vif_of_netback_has_one_queue_and_so_have_all_before_an_older_valed() {
        let text = |key: &str| {
            let found = TWO.iter().find(|(k, _)| *k == key);
            Ok::<_, ()>(found.map(|(_, text)| (*text).to_owned()))
        };
        for (netback, version, most) in [(false, 2, 4), (true, 2, 1), (false, 1, 1)] {
            assert_eq!(most_queues(netback, &RegionRegistry::new(version)), most);
            match read(most, text).unwrap() {
                Ok(_) => assert!(most > 1),
                Err(why) => assert!(why.contains("2 is not from 1 to 1"), "{why}"),
            }
        }
    }

    /// The store fails only as a whole.
    #[test]
    fn an_error_of_the_store_is_none_of_the_guest() {
        for good in 0..6 {
            let mut reads = 0;
            let text = |key: &str| match reads == good {
                true => Err("lost"),
                false => {
                    reads += 1;
                    let found = TWO.iter().find(|(k, _)| *k == key);
                    Ok(found.map(|(_, text)| (*text).to_owned()))
                }
            };
            assert_eq!(read(queues::MAX, text).err(), Some("lost"));
        }
    }
}
