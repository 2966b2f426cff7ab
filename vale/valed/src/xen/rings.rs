// SPDX-License-Identifier: Apache-2.0
//! Maps the rings that a guest has granted.
use super::keys::{FrontendRings, Queue};
use crate::device::Device;
use crate::device::queues;
use crate::device::region_registry::RegionRegistry;
use crate::device::ring_port::RingPort;
use ring::layout::{Layout, PAGE};
use ring::{SwitchPort, directory};
use std::io;
use vale_proto::Kind;
use vale_xen_dev::EventChannel;

/// Maps all rings of a domain's vif, which have the agreed size. Its ports send frames from each
/// other's rings. An error of one queue drops what is mapped of the others.
pub fn open(
    domid: u16,
    frontend: &FrontendRings,
    slots: u32,
    regions: &RegionRegistry,
) -> io::Result<Box<dyn Device>> {
    let layout = layout(frontend.version, slots, regions)?;
    let opened = frontend.queues.iter().map(|queue| {
        let mut rings = open_queue(domid, *queue, layout)?;
        rings.join(&regions.regions(Kind::Xen, domid));
        Ok(rings)
    });
    queues::device(opened.collect::<io::Result<_>>()?)
}

fn open_queue(domid: u16, queue: Queue, layout: Layout) -> io::Result<RingPort> {
    let read = |reference| vale_xen_dev::read(domid, reference);
    let references =
        references(queue.directory, layout, read).map_err(|e| named("ring-ref", &e))?;
    let region = vale_xen_dev::map(domid, &references).map_err(|e| named("pages", &e))?;
    let mut ring = SwitchPort::attach(region, layout.slots()).map_err(io::Error::other)?;
    if ring.version() != layout.version() {
        let why = format!("ring-version: the region has version {}", ring.version());
        return Err(io::Error::other(why));
    }
    ring.negotiate();
    let channel = EventChannel::bind(domid, queue.evtchn_port);
    let channel = channel.map_err(|e| named("event-channel", &e))?;
    Ok(RingPort::of_guest(ring, channel))
}

/// The layout of a version that valed accepts.
fn layout(version: u32, slots: u32, regions: &RegionRegistry) -> io::Result<Layout> {
    let most = regions.version();
    if version > most {
        let why = format!("ring-version: {version} is above {most}");
        return Err(io::Error::other(why));
    }
    Layout::of(version, slots).map_err(io::Error::other)
}

/// Copies the directory page by page, so that later changes of the guest have no effect.
fn references(
    first: u32,
    layout: Layout,
    mut read: impl FnMut(u32) -> io::Result<[u32; PAGE / 4]>,
) -> io::Result<Vec<u32>> {
    let mut references = vec![0; layout.size() / PAGE];
    let mut next = first;
    for part in references.chunks_mut(directory::PER_PAGE) {
        next = directory::read(&read(next)?, part);
    }
    Ok(references)
}

fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_gets_no_version_above_what_valed_has() {
        for most in [1, 2] {
            let regions = RegionRegistry::new(most);
            for version in [1, 2, 3, u32::MAX] {
                let layout = layout(version, 256, &regions).map(Layout::version);
                match version <= most {
                    true => assert_eq!(layout.unwrap(), version),
                    false => assert!(layout.unwrap_err().to_string().contains("above")),
                }
            }
            assert!(layout(0, 256, &regions).is_err());
        }
    }

    /// A page whose next one is itself ends valed's work after the pages of the layout.
    #[test]
    fn a_directory_in_a_circle_is_read_once_for_each_part() {
        for (version, slots, pages) in [(1, 64, 1), (2, 256, 1), (1, 2048, 3), (2, 2048, 3)] {
            let layout = Layout::of(version, slots).unwrap();
            let mut reads = 0;
            let read = |reference| {
                reads += 1;
                assert_eq!(reference, 7);
                Ok([7; PAGE / 4])
            };
            let references = references(7, layout, read).unwrap();
            assert_eq!((reads, references.len()), (pages, layout.size() / PAGE));
        }
    }

    #[test]
    fn a_directory_that_is_no_grant_is_refused() {
        let layout = Layout::of(2, 2048).unwrap();
        for good in 0..2 {
            let mut reads = 0;
            let read = |_| match reads {
                n if n == good => Err(io::Error::other("no grant")),
                _ => {
                    reads += 1;
                    Ok([1; PAGE / 4])
                }
            };
            assert!(references(1, layout, read).is_err());
        }
    }
}
