// SPDX-License-Identifier: Apache-2.0
//! What there is: the host, its guests, their ports and consoles, and the cache of images.

use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use control_socket::Peer;
use cosmos_proto::answer::{self, GuestPort};
use cosmos_proto::{Console, ImageAdd, Named, OfGuest, OfImage};

use crate::base::error::{Code, Error, Result};
use crate::base::text::escape;
use crate::guest::Guest;
use crate::images::{Images, Piece};
use crate::site::Site;
use crate::spec::Vif;

/// The most console text one call gives, in bytes of the log.
pub const MAX_CONSOLE: usize = 256 << 10;

pub fn hello(site: &Site, peer: &Peer) -> answer::Hello {
    answer::Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host_kind: site.host.kind().to_owned(),
        roles: peer.roles.clone(),
    }
}

/// The host, with the time since the start of the daemon.
pub fn host(site: &Site, started: Instant) -> Result<answer::Host> {
    let capacity = site.table.capacity();
    let guests = site.table.all();
    Ok(answer::Host {
        host_kind: site.host.kind().to_owned(),
        memory_mib: capacity.memory_mib.into(),
        memory_used_mib: site.table.memory_used_mib(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        max_vcpus: site.host.max_vcpus(),
        vcpus_used: site.table.vcpus_used(),
        guests: guests.iter().filter(|g| g.state().is_listed()).count(),
        pooled: site.table.pooled().len(),
        max_guests: capacity.guests,
        uptime_s: started.elapsed().as_secs(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        engine_sha256: site.host.engine_sha256()?,
        faults: site.health.faults(),
    })
}

/// All guests, without their address lists: those of many guests do not fit into one answer.
pub fn guests(site: &Site) -> answer::Guests {
    let outline = |guest: &Arc<Guest>| {
        let mut described = describe(site, guest)?;
        let vifs = described.vifs.iter_mut();
        vifs.for_each(|vif| vif.allowed = Vec::new()); // Never those of all guests at a time.
        Some(described)
    };
    let guests = site.table.all().iter().filter_map(outline).collect();
    answer::Guests { guests }
}

pub fn find(site: &Site, named: &Named) -> Result<answer::Found> {
    let uuids = site.table.named(&named.name);
    Ok(answer::Found { uuids })
}

/// One guest.
pub fn info(site: &Site, of: &OfGuest) -> Result<answer::Guest> {
    let guest = site.table.get(&of.uuid)?;
    describe(site, &guest).ok_or_else(|| {
        let message = format!("guest {} is being destroyed", of.uuid);
        Error::new(Code::NoSuchGuest, message)
    })
}

fn describe(site: &Site, guest: &Guest) -> Option<answer::Guest> {
    guest.describe(site.host.cpu_time_ns(guest.domain.domid))
}

pub fn console(site: &Site, args: &Console) -> Result<answer::Log> {
    let guest = site.table.get(&args.uuid)?;
    let max_bytes = usize::try_from(args.max_bytes).unwrap_or(usize::MAX);
    let tail = site
        .host
        .console(&guest.domain, max_bytes.min(MAX_CONSOLE))?;
    let text = escape(&tail);
    Ok(answer::Log { text })
}

/// The guest's ports with the counters of the switch, without removed ones.
pub fn ports(site: &Site, of: &OfGuest) -> Result<answer::GuestPorts> {
    let guest = site.table.get(&of.uuid)?;
    let infos = site.switch.ports()?;
    let port = |vif: Vif| {
        let mut infos = infos.iter();
        let info = infos.find(|i| i.switch == vif.switch && i.port == vif.port)?;
        Some(GuestPort {
            devid: vif.devid,
            mac: vif.mac,
            port_id: vif.port_id,
            link_up: info.link_up,
            closed: info
                .filter
                .is_some_and(|f| f.ingress_rules + f.egress_rules == 0),
            counters: info.counters,
        })
    };
    let plugged = guest.vifs().into_iter().filter(Vif::is_plugged);
    let ports = plugged.filter_map(port).collect();
    Ok(answer::GuestPorts { ports })
}

/// The cache of images, on a host that has one.
fn images(site: &Site) -> Result<&Images> {
    let kind = site.host.kind();
    let message = format!("hosts of kind {kind} run the installed engine only");
    site.host
        .images()
        .ok_or_else(|| Error::new(Code::Unsupported, message))
}

pub fn list_images(site: &Site) -> Result<answer::Images> {
    let images = images(site)?.list()?;
    Ok(answer::Images { images })
}

pub fn remove_image(site: &Site, of: &OfImage) -> Result<()> {
    images(site)?.remove(&of.sha256)
}

pub fn add_image(site: &Site, args: &ImageAdd) -> Result<answer::Taken> {
    let images = images(site)?;
    let data = BASE64
        .decode(&args.data)
        .map_err(|e| Error::bad_request(format!("image-add: data: {e}")))?;
    let complete = images.add(&Piece {
        sha256: &args.sha256,
        size: args.size,
        offset: args.offset,
        data: &data,
    })?;
    Ok(answer::Taken { complete })
}
