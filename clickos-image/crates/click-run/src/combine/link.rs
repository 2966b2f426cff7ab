// SPDX-License-Identifier: Apache-2.0
//! Links between components.
use std::str::FromStr;

use click_lang::{Flat, FlatElement, SourcePos, text};

use super::{ROUTER_LINK, retain};

/// `COMPONENT.ELEMENT`; ELEMENT is a name, or that of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    component: String,
    element: String,
}

/// `FROM=TO`: what leaves by FROM comes in by TO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    from: End,
    to: End,
}

impl FromStr for End {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('.') {
            Some((component, element)) if !component.is_empty() && !element.is_empty() => {
                Ok(Self {
                    component: component.to_string(),
                    element: element.to_string(),
                })
            }
            _ => Err(format!("\"{text}\": expected COMPONENT.ELEMENT")),
        }
    }
}

impl FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text
            .split_once('=')
            .ok_or_else(|| format!("\"{text}\": expected COMPONENT.ELEMENT=COMPONENT.ELEMENT"))?;
        Ok(Self {
            from: from.parse()?,
            to: to.parse()?,
        })
    }
}

impl Link {
    /// The components that it joins.
    pub fn components(&self) -> [&str; 2] {
        [&self.from.component, &self.to.component]
    }
}

impl End {
    /// The element of one of these classes whose name or device this is.
    fn find(&self, flat: &Flat, classes: &[&str]) -> Result<usize, String> {
        let Self { component, element } = self;
        let name = format!("{component}/{element}");
        let found = flat.elements.iter().position(|e| e.name == name);
        let prefix = format!("{component}/");
        let device = |e: &FlatElement| {
            let first = text::split_args(&e.config).into_iter().next();
            let device = first.map(|arg| text::unquote(&arg));
            e.name.starts_with(&prefix)
                && classes.contains(&&*e.class)
                && device.as_deref() == Some(element)
        };
        found
            .or_else(|| flat.elements.iter().position(device))
            .ok_or_else(|| {
                format!(
                    "{component}.{element}: no such element, and no {} of this device",
                    classes.join(" or ")
                )
            })
    }
}

/// Elements whose devices are one link.
#[derive(Default)]
struct Group {
    from: Vec<usize>,
    to: Vec<usize>,
}

/// Puts a `RouterLink` for each link; links that share an end are one.
pub fn join(flat: &mut Flat, links: &[Link]) -> Result<(), String> {
    let mut groups: Vec<Group> = Vec::new();
    for link in links {
        let from = link.from.find(flat, &["ToDevice"])?;
        let to = link.to.find(flat, &["FromDevice", "PollDevice"])?;
        if from == to {
            return Err(format!(
                "{}: a link of an element with itself",
                flat.elements[from].name
            ));
        }
        merge(&mut groups, from, to);
    }
    let mut keep = vec![true; flat.elements.len()];
    for (number, group) in groups.iter().enumerate() {
        replace(flat, &format!("link{}", number + 1), group);
        for &gone in group.from.iter().chain(&group.to) {
            keep[gone] = false;
        }
    }
    keep.resize(flat.elements.len(), true);
    retain(flat, &keep);
    Ok(())
}

/// Adds a link to the groups; those that it touches become one.
fn merge(groups: &mut Vec<Group>, from: usize, to: usize) {
    let mut whole = Group::default();
    groups.retain_mut(|group| {
        let touches = group.from.contains(&from) || group.to.contains(&to);
        if touches {
            whole.from.append(&mut group.from);
            whole.to.append(&mut group.to);
        }
        !touches
    });
    if !whole.from.contains(&from) {
        whole.from.push(from);
    }
    if !whole.to.contains(&to) {
        whole.to.push(to);
    }
    groups.push(whole);
}

/// Adds the link's element and leads the connections of its devices to it.
fn replace(flat: &mut Flat, name: &str, group: &Group) {
    let link = flat.elements.len();
    let ends = group.from.iter().chain(&group.to);
    let described: Vec<String> = ends.map(|&e| describe(&flat.elements[e])).collect();
    for connection in &mut flat.connections {
        if let Some(port) = group.from.iter().position(|&e| e == connection.to.0) {
            connection.to = (link, port);
        }
        if let Some(port) = group.to.iter().position(|&e| e == connection.from.0) {
            connection.from = (link, port);
        }
    }
    flat.elements.push(FlatElement {
        name: name.to_string(),
        class: ROUTER_LINK.into(),
        config: described.join(", "),
        place: SourcePos::default(),
    });
}

/// `NAME CLASS "CONFIG"`, so that the device's element can come back.
fn describe(element: &FlatElement) -> String {
    let FlatElement {
        name,
        class,
        config,
        ..
    } = element;
    format!("{name} {class} {}", text::quote(config))
}
