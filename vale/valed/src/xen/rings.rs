// SPDX-License-Identifier: Apache-2.0
//! Maps the rings that a guest has granted.
use crate::ring_port::RingPort;
use ring::layout::{Layout, PAGE};
use ring::{SwitchPort, directory};
use std::io;
use vale_xen_dev::EventChannel;

/// The keys of a frontend that name its rings.
pub struct FrontendRings {
    pub domid: u16,
    /// Reference of the first directory page.
    pub directory: u32,
    /// The guest's end of the event channel.
    pub evtchn_port: u32,
}

/// Maps a guest's rings of the agreed size.
pub fn open(frontend: &FrontendRings, slots: u32) -> io::Result<RingPort> {
    let layout = Layout::new(slots).map_err(io::Error::other)?;
    let references =
        references(frontend, layout.size() / PAGE).map_err(|e| named("ring-ref", &e))?;
    let region = vale_xen_dev::map(frontend.domid, &references).map_err(|e| named("pages", &e))?;
    let ring = SwitchPort::attach(region, slots).map_err(io::Error::other)?;
    let channel = EventChannel::bind(frontend.domid, frontend.evtchn_port);
    let channel = channel.map_err(|e| named("event-channel", &e))?;
    Ok(RingPort::of_guest(ring, channel))
}

/// Copies the directory page by page, so that later changes of the guest have no effect.
fn references(frontend: &FrontendRings, pages: usize) -> io::Result<Vec<u32>> {
    let mut references = vec![0; pages];
    let mut next = frontend.directory;
    for part in references.chunks_mut(directory::PER_PAGE) {
        next = directory::read(&vale_xen_dev::read(frontend.domid, next)?, part);
    }
    Ok(references)
}

fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!("{what}: {error}"))
}
