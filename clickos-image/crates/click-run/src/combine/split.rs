// SPDX-License-Identifier: Apache-2.0
//! A component of a combined configuration as a router of its own.
use std::collections::BTreeSet;

use click_lang::{Flat, FlatElement, SourcePos, text};

use super::{ROUTER_LINK, no_component, retain};

/// The names of all components.
fn known(flat: &Flat) -> Vec<String> {
    let of = |e: &FlatElement| Some(e.name.split_once('/')?.0.to_string());
    let names: BTreeSet<String> = flat.elements.iter().filter_map(of).collect();
    names.into_iter().collect()
}

/// The component of a name, its devices where the links were.
///
/// # Errors
/// There is none of this name, or a `RouterLink` has wrong arguments.
pub fn split(mut flat: Flat, component: &str) -> Result<Flat, String> {
    let prefix = format!("{component}/");
    for link in 0..flat.elements.len() {
        if &*flat.elements[link].class == ROUTER_LINK {
            restore(&mut flat, link, &prefix)?;
        }
    }
    let own = |e: &FlatElement| e.name.starts_with(&prefix);
    let keep: Vec<bool> = flat.elements.iter().map(own).collect();
    if !keep.contains(&true) {
        return Err(no_component(component, &known(&flat)));
    }
    retain(&mut flat, &keep);
    for element in &mut flat.elements {
        element.name.drain(..prefix.len());
    }
    Ok(flat)
}

/// Puts back the component's devices that a link stands for: senders come first, one for each input.
fn restore(flat: &mut Flat, link: usize, prefix: &str) -> Result<(), String> {
    let inputs = ports(flat.connections.iter().map(|c| c.to), link);
    for (number, arg) in text::split_args(&flat.elements[link].config)
        .iter()
        .enumerate()
    {
        let device = parse(arg).ok_or_else(|| {
            let name = &flat.elements[link].name;
            format!("{name} :: {ROUTER_LINK}: {arg}: expected NAME CLASS \"CONFIG\"")
        })?;
        if !device.name.starts_with(prefix) {
            continue;
        }
        let (new, port) = (flat.elements.len(), (link, number));
        let output = number.checked_sub(inputs).map(|output| (link, output));
        for connection in &mut flat.connections {
            if number < inputs && connection.to == port {
                connection.to = (new, 0);
            }
            if Some(connection.from) == output {
                connection.from = (new, 0);
            }
        }
        flat.elements.push(device);
    }
    Ok(())
}

/// How many ports of an element are connected.
fn ports(ends: impl Iterator<Item = (usize, usize)>, element: usize) -> usize {
    let own = ends.filter(|end| end.0 == element).map(|end| end.1 + 1);
    own.max().unwrap_or(0)
}

fn parse(arg: &str) -> Option<FlatElement> {
    let [name, class, config] = text::split_words(arg).try_into().ok()?;
    Some(FlatElement {
        name,
        class: class.as_str().into(),
        config: text::unquote(&config),
        place: SourcePos::default(),
    })
}
