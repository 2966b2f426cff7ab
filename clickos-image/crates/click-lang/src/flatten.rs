// SPDX-License-Identifier: Apache-2.0
//! Bodies to plain elements and connections: compounds are instantiated, tunnels dissolved.
mod dissolve;
mod select;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::body::{Body, Class, CompoundClass, INPUT, Link, Member, OUTPUT, narrow};
use crate::error::{Errors, Limits, MAX_DEPTH};
use crate::expand::Scope;
use crate::flat::{Flat, FlatElement};
use crate::resolve::{Classes, Resolved, resolve};
use crate::source::{Place, Sources};
use crate::text;
use select::{Selected, select};

/// Parses and flattens a configuration; what was wrong is added to `errors`, and the rest is
/// returned.
pub fn flatten(
    sources: &Sources,
    classes: &dyn Classes,
    globals: &Scope,
    limits: &Limits,
    errors: &mut Errors,
) -> Flat {
    let Resolved { body, requirements } = resolve(sources, classes, limits, errors);
    let mut flattener = Flattener {
        limits,
        errors,
        nodes: Vec::new(),
        links: Vec::new(),
        elements: Vec::new(),
        class_names: BTreeMap::new(),
        text_left: limits.config_bytes.saturating_mul(4),
        exhausted: false,
    };
    let scope = globals.top(&body.defines);
    flattener.body(&body, "", &scope, 0);
    drop(body);
    let connections = flattener.dissolve();
    Flat {
        elements: flattener.elements,
        connections,
        requirements,
        directives: errors.directives(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Element(u32),
    Tunnel,
    Unknown,
}

/// The nodes of a member: its input side and its output side.
type Sides = (u32, u32);

/// A compound element about to be instantiated.
struct Instance<'b, 'a> {
    class: &'b CompoundClass<'a>,
    name: String,
    /// Its arguments, expanded.
    config: String,
    /// Inputs and outputs in use.
    ports: (usize, usize),
    place: Place,
}

struct Flattener<'e, 'a> {
    limits: &'e Limits,
    errors: &'e mut Errors,
    nodes: Vec<Node>,
    links: Vec<Link>,
    elements: Vec<FlatElement>,
    /// Each class's name, held once.
    class_names: BTreeMap<&'a str, Rc<str>>,
    /// Bytes of arguments that may still be made.
    text_left: usize,
    /// A limit was reached and reported; nothing is made any more.
    exhausted: bool,
}

impl<'a> Flattener<'_, 'a> {
    fn give_up(&mut self, place: Place, message: String) {
        if !self.exhausted {
            self.errors.add(place, message);
        }
        self.exhausted = true;
    }

    fn node(&mut self, node: Node) -> Sides {
        self.nodes.push(node);
        let index = narrow(self.nodes.len() - 1);
        (index, index)
    }

    fn expand(&mut self, scope: &Scope, member: &Member<'_>) -> String {
        let Some(text) = scope.expand(&member.config().text(), self.text_left) else {
            let limit = self.limits.config_bytes.saturating_mul(4);
            let message = format!("expanded arguments exceed {limit} bytes");
            self.give_up(member.place, message);
            return String::new();
        };
        self.text_left -= text.len();
        text
    }

    /// Instantiates a body; returns the nodes of its members.
    fn body(&mut self, body: &Body<'a>, prefix: &str, scope: &Scope, depth: usize) -> Vec<Sides> {
        let mut map = vec![(u32::MAX, u32::MAX); body.members.len()];
        self.nodes.reserve(body.members.len());
        self.elements.reserve(body.members.len());
        for (index, member) in body.members.iter().enumerate() {
            if self.exhausted {
                return map;
            }
            map[index] = match member.class {
                Class::Compound(_) => continue,
                Class::Tunnel => self.node(Node::Tunnel),
                Class::Unknown => self.node(Node::Unknown),
                Class::Native(class) => {
                    let config = self.expand(scope, member);
                    let name = format!("{prefix}{}", member.name);
                    self.element(name, class, config, member.place)
                }
            };
        }
        self.compounds(body, prefix, scope, depth, &mut map);
        self.connect(body, &map);
        map
    }

    /// Compounds come behind all plain elements of the body they are in.
    fn compounds(
        &mut self,
        body: &Body<'a>,
        prefix: &str,
        scope: &Scope,
        depth: usize,
        map: &mut [Sides],
    ) {
        let is_compound = |m: &Member<'_>| matches!(m.class, Class::Compound(_));
        if !body.members.iter().any(is_compound) {
            return;
        }
        let ports = body.ports_in_use();
        for (index, member) in body.members.iter().enumerate() {
            if let Class::Compound(class) = &member.class {
                let (inputs, outputs) = ports[index];
                let instance = Instance {
                    class,
                    name: format!("{prefix}{}", member.name),
                    config: self.expand(scope, member),
                    ports: (inputs as usize, outputs as usize),
                    place: member.place,
                };
                map[index] = self.instance(&instance, scope, depth);
            }
        }
    }

    fn element(&mut self, name: String, class: &'a str, config: String, place: Place) -> Sides {
        let limit = self.limits.elements;
        if self.elements.len() >= limit {
            self.give_up(place, format!("more than {limit} elements"));
            return self.node(Node::Unknown);
        }
        let known = self.class_names.entry(class);
        self.elements.push(FlatElement {
            name,
            class: known.or_insert_with(|| class.into()).clone(),
            config,
            place,
        });
        self.node(Node::Element(narrow(self.elements.len() - 1)))
    }

    fn connect(&mut self, body: &Body<'_>, map: &[Sides]) {
        let limit = self.limits.connections;
        self.links.reserve(body.links.len());
        for link in &body.links {
            if self.exhausted {
                return;
            }
            if self.links.len() >= limit.saturating_mul(4) {
                self.give_up(link.place, format!("more than {limit} connections"));
                return;
            }
            let from = (map[link.from().0].1 as usize, link.from().1);
            let to = (map[link.to().0].0 as usize, link.to().1);
            self.links.push(Link::new(from, to, link.place));
        }
    }

    /// Instantiates a compound element.
    fn instance(&mut self, of: &Instance<'_, 'a>, scope: &Scope, depth: usize) -> Sides {
        if self.exhausted || depth >= MAX_DEPTH {
            let name = &of.name;
            let message = format!("{name}: compound elements nested deeper than {MAX_DEPTH}");
            self.give_up(of.place, message);
            return self.node(Node::Unknown);
        }
        let args = text::split_args(&of.config);
        match select(of.class, &args, of.ports) {
            Ok(Selected::Compound(body, values)) => {
                let inside = scope.enter(body.depth, values, &body.defines);
                let map = self.body(body, &format!("{}/", of.name), &inside, depth + 1);
                self.check_ports(of, body);
                (map[INPUT].0, map[OUTPUT].1)
            }
            Ok(Selected::Native(class)) => {
                self.element(of.name.clone(), class, of.config.clone(), of.place)
            }
            Err(message) => {
                self.errors.add(of.place, format!("{}: {message}", of.name));
                self.node(Node::Unknown)
            }
        }
    }

    fn check_ports(&mut self, of: &Instance<'_, '_>, body: &Body<'_>) {
        let sides = [
            (of.ports.0, body.inputs, "input"),
            (of.ports.1, body.outputs, "output"),
        ];
        for (used, has, kind) in sides {
            if used > has {
                let port = used - 1;
                let message = format!("'{}' has no {kind} {port}, it has {has} {kind}s", of.name);
                self.errors.add(of.place, message);
            }
        }
    }
}
