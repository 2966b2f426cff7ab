// SPDX-License-Identifier: Apache-2.0
//! Opens ports.
use std::io;
use std::os::fd::OwnedFd;

use vale_proto::{Kind, PortAdd};

use super::Port;
use crate::device::host::HostPort;
use crate::device::host_resources::HostResources;
use crate::device::pcap::PcapPort;
use crate::device::ring_port::RingPort;
use crate::device::xdp_port::by_xdp;
use crate::device::{Absent, Device};

/// Opens the device that `add` names. Returns the descriptors for the caller, if there are any.
pub fn open(add: &PortAdd, resources: &HostResources) -> io::Result<(Port, Vec<OwnedFd>)> {
    if add.kind == Kind::Process {
        let regions = resources.regions.regions_in_place(add);
        let made = match add.has_long_frames() {
            true => RingPort::create_long(add.slots),
            false => RingPort::create(add.slots, regions.as_ref()),
        };
        let (rings, fds) = made.map_err(io::Error::other)?;
        return Ok((Port::new(add, Box::new(rings)), fds.into()));
    }
    Ok((Port::new(add, device(add, resources)?), Vec::new()))
}

/// Makes a process port that continues with the rings of an earlier one.
pub fn resume(add: &PortAdd, fds: Vec<OwnedFd>, resources: &HostResources) -> io::Result<Port> {
    let expected = |fds: Vec<_>| format!("expected 3 descriptors, not {}", fds.len());
    let fds = fds
        .try_into()
        .map_err(|fds| io::Error::other(expected(fds)))?;
    let mut rings = RingPort::resume(add.slots, fds)?;
    if add.has_long_frames() {
        rings.set_long();
    }
    if let Some(domain) = add.in_place_domid {
        rings.join(&resources.regions.regions(add.kind, domain));
    }
    Ok(Port::new(add, Box::new(rings)))
}

fn device(add: &PortAdd, resources: &HostResources) -> io::Result<Box<dyn Device>> {
    if let Some(vxlan) = &add.vxlan {
        return Ok(Box::new(resources.tunnels.open(vxlan)?));
    }
    if let Some(pipe) = &add.pipe {
        let place = (add.switch.clone(), add.segment);
        return Ok(Box::new(resources.pipes.open(pipe, place)?));
    }
    if let Some(pcap) = &add.pcap {
        let directory = resources.capture_dir.as_ref();
        let directory = directory.ok_or_else(|| io::Error::other(NO_DIRECTORY))?;
        return Ok(Box::new(PcapPort::open(pcap, directory)?));
    }
    if add.kind == Kind::Xen {
        return Ok(Box::new(Absent));
    }
    let ifname = add.ifname.as_deref().unwrap_or_default();
    if add.xdp {
        return by_xdp(ifname, add.vlan, add.mtu);
    }
    Ok(Box::new(HostPort::open(add.kind, ifname, add.vlan)?))
}

/// The failure of a port that names a file.
const NO_DIRECTORY: &str = "valed has no capture_dir in its configuration";
