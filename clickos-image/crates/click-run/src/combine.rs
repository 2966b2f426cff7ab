// SPDX-License-Identifier: Apache-2.0
//! Several routers as one configuration. Elements of component `fw` are named `fw/NAME`.
//! A `RouterLink` stands for the devices at both ends of a link: its inputs for the senders, its outputs for the receivers.
mod fuse;
mod link;
mod queues;
mod rename;
mod split;

use click_lang::{Flat, FlatConnection, FlatElement, SourcePos};
pub use fuse::fuse;
pub use link::{End, Link};
pub use rename::Device;
pub use split::split;

/// The class of what stands for the devices of a link. No engine runs it; see [`fuse`].
pub const ROUTER_LINK: &str = "RouterLink";

/// Combines the components, by name, into one configuration, and gives elements other devices.
///
/// # Errors
/// Two components have one name, or a link or a device is of none.
pub fn combine(
    components: Vec<(String, Flat)>,
    links: &[Link],
    devices: &[Device],
) -> Result<Flat, String> {
    let known: Vec<String> = components.iter().map(|(name, _)| name.clone()).collect();
    let ends = links.iter().flat_map(Link::components);
    let named = ends.chain(devices.iter().map(Device::component));
    let mut unknown = named.filter(|name| !known.iter().any(|known| known == name));
    if let Some(name) = unknown.next() {
        return Err(no_component(name, &known));
    }
    let mut whole = Flat::default();
    for (name, flat) in components {
        let prefix = format!("{name}/");
        if whole.elements.iter().any(|e| e.name.starts_with(&prefix)) {
            return Err(format!("{name}: there are two components of this name"));
        }
        add(&mut whole, &prefix, flat);
    }
    link::join(&mut whole, links)?;
    rename::rename(&mut whole, devices)?;
    Ok(whole)
}

/// The error about a component that is not one of those `known`.
fn no_component(name: &str, known: &[String]) -> String {
    let end = match known {
        [] => "; the configuration has none".to_string(),
        known => format!(", expected one of {}", known.join(", ")),
    };
    format!("{name}: no such component{end}")
}

/// Adds a component.
fn add(whole: &mut Flat, prefix: &str, flat: Flat) {
    let offset = whole.elements.len();
    whole
        .elements
        .extend(flat.elements.into_iter().map(|e| FlatElement {
            name: format!("{prefix}{}", e.name),
            place: SourcePos::default(),
            ..e
        }));
    let moved = |(element, port): (usize, usize)| (element + offset, port);
    whole
        .connections
        .extend(flat.connections.into_iter().map(|c| FlatConnection {
            from: moved(c.from),
            to: moved(c.to),
            place: SourcePos::default(),
        }));
    whole.requirements.extend(flat.requirements);
}

/// Removes elements and the connections that still name them; the others keep their order.
fn retain(flat: &mut Flat, keep: &[bool]) {
    let mut next = 0;
    let number = |&kept: &bool| {
        next += usize::from(kept);
        kept.then_some(next - usize::from(kept))
    };
    let numbers: Vec<Option<usize>> = keep.iter().map(number).collect();
    let old = std::mem::take(&mut flat.elements);
    let left = old.into_iter().zip(keep).filter(|(_, kept)| **kept);
    flat.elements = left.map(|(element, _)| element).collect();
    flat.connections.retain_mut(|c| {
        let ends = (numbers[c.from.0], numbers[c.to.0]);
        let (Some(from), Some(to)) = ends else {
            return false;
        };
        (c.from.0, c.to.0) = (from, to);
        true
    });
    flat.connections.sort_by_key(|c| (c.from, c.to));
}
