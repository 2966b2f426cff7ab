// SPDX-License-Identifier: Apache-2.0
//! A combined configuration that an engine runs: links without devices.
use click_core::Registry;
use click_lang::{Flat, FlatConnection, FlatElement, SourcePos};

use super::{ROUTER_LINK, queues, retain};

/// Replaces each `RouterLink` by an element that moves packets. Behind an output that is pulled, such as a Queue's, this
/// is Unqueue, and Null behind one that pushes.
///
/// # Errors
/// A link has several receivers.
pub fn fuse(mut flat: Flat, registry: &Registry) -> Result<Flat, String> {
    queues::drop_idle(&mut flat);
    let mut keep = vec![true; flat.elements.len()];
    for (link, kept) in keep.iter_mut().enumerate() {
        if &*flat.elements[link].class == ROUTER_LINK {
            replace(&mut flat, link, registry)?;
            *kept = false;
        }
    }
    keep.resize(flat.elements.len(), true);
    retain(&mut flat, &keep);
    Ok(flat)
}

fn replace(flat: &mut Flat, link: usize, registry: &Registry) -> Result<(), String> {
    let name = flat.elements[link].name.clone();
    let ends = |c: &&FlatConnection| c.from.0 == link;
    let receivers: Vec<(usize, usize)> =
        flat.connections.iter().filter(ends).map(|c| c.to).collect();
    if flat
        .connections
        .iter()
        .any(|c| c.from.0 == link && c.from.1 > 0)
    {
        return Err(format!(
            "{name}: several receivers, a link that runs has one"
        ));
    }
    let senders = flat.connections.iter().filter(|c| c.to.0 == link);
    let mut ports: Vec<usize> = senders.map(|c| c.to.1).collect();
    ports.dedup();
    for port in ports {
        add_mover(flat, (link, port), &receivers, registry);
    }
    Ok(())
}

/// Adds an element between the senders of an input of a link and the link's receivers.
fn add_mover(
    flat: &mut Flat,
    input: (usize, usize),
    receivers: &[(usize, usize)],
    registry: &Registry,
) {
    let mover = flat.elements.len();
    let sender = flat.connections.iter().find(|c| c.to == input);
    let pulled = sender.is_some_and(|c| is_pulled(flat, c.from, registry, mover));
    let (class, config) = if pulled {
        ("Unqueue", "32")
    } else {
        ("Null", "")
    };
    flat.elements.push(FlatElement {
        name: format!("{}_{}", flat.elements[input.0].name, input.1),
        class: class.into(),
        config: config.to_string(),
        place: SourcePos::default(),
    });
    for connection in flat.connections.iter_mut().filter(|c| c.to == input) {
        connection.to = (mover, 0);
    }
    flat.connections
        .extend(receivers.iter().map(|&to| FlatConnection {
            from: (mover, 0),
            to,
            place: SourcePos::default(),
        }));
}

/// True if an output gives packets when it is pulled; an agnostic one is as the element's first input, at most
/// `steps` elements back.
fn is_pulled(flat: &Flat, output: (usize, usize), registry: &Registry, steps: usize) -> bool {
    let class = &*flat.elements[output.0].class;
    if class == ROUTER_LINK {
        return false; // what takes its place pushes
    }
    let processing = registry
        .get(class)
        .map_or("a/a", |entry| entry.class.processing);
    let codes = processing.rsplit('/').next().unwrap_or("a");
    match codes.chars().nth(output.1).or(codes.chars().last()) {
        Some('l') => true,
        Some('h') => false,
        _ => {
            let before = flat.connections.iter().find(|c| c.to == (output.0, 0));
            steps > 0 && before.is_some_and(|c| is_pulled(flat, c.from, registry, steps - 1))
        }
    }
}
