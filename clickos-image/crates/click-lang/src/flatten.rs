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
use crate::expand::{Room, Scope, TooMuch};
use crate::flat::{Flat, FlatElement};
use crate::resolve::{Classes, Resolved, resolve};
use crate::source::{SourcePos, Sources};
use crate::text;
use select::{Selected, cost, select};

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
    let bytes = Scope::bytes(&body.defines);
    let place = SourcePos::default();
    if (flattener.errors).has_memory(bytes, limits, place, DEFINING) {
        let scope = globals.top(&body.defines);
        flattener.body(&body, "", &scope, 0);
    }
    drop(body);
    let connections = flattener.dissolve();
    Flat {
        elements: flattener.elements,
        connections,
        requirements,
        directives: errors.directives(),
    }
}

/// Arguments of a compound element, with those that `__REST__` takes.
const MAX_ARGUMENTS: usize = 16_384;
/// Steps of work that an error names.
const EXPANDING: &str = "expanding its arguments";
const DEFINING: &str = "defining variables";
const NAMING: &str = "naming elements";
/// Nodes for each element that is allowed: a compound element, which has two, may surround few.
const NODES_PER_ELEMENT: usize = 16;

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
    place: SourcePos,
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
    fn give_up(&mut self, place: SourcePos, message: String) {
        if !self.exhausted {
            self.errors.add(place, message);
        }
        self.exhausted = true;
    }

    /// Counts work. Returns false beyond the limit; the caller then makes nothing more.
    fn spend(&mut self, steps: usize, place: SourcePos, what: &str) -> bool {
        let fits = self.errors.spend(steps, self.limits, place, what);
        self.exhausted |= !fits;
        fits
    }

    /// Adds a node; there are no more than what their elements could need.
    fn node(&mut self, node: Node, place: SourcePos) -> Sides {
        let limit = self.limits.elements.saturating_mul(NODES_PER_ELEMENT);
        if self.nodes.len() >= limit {
            self.give_up(
                place,
                format!("more than {limit} elements, and ports of compound elements"),
            );
        } else {
            self.nodes.push(node);
        }
        let index = narrow(self.nodes.len().saturating_sub(1));
        (index, index)
    }

    fn expand(&mut self, scope: &Scope, member: &Member<'_>) -> String {
        let mut room = Room {
            bytes: self.text_left,
            steps: self.limits.steps.saturating_sub(self.errors.steps()),
            memory: self.limits.memory,
        };
        let before = room.steps;
        let error = match scope.expand(&member.config().text(), &mut room) {
            Ok(text) => {
                self.spend(before - room.steps, member.place, EXPANDING);
                self.text_left -= text.len();
                return text;
            }
            Err(error) => error,
        };
        let what = format!("'{}': {EXPANDING}", member.name);
        match error {
            TooMuch::Bytes => self.out_of_text(member),
            TooMuch::Memory => self.out_of_memory(member.place, &what),
            TooMuch::Steps => _ = self.spend(usize::MAX, member.place, &what),
        }
        String::new()
    }

    fn out_of_memory(&mut self, place: SourcePos, what: &str) {
        self.errors.out_of_memory(self.limits, place, what);
        self.exhausted = true;
    }

    fn out_of_text(&mut self, member: &Member<'_>) {
        let limit = self.limits.config_bytes.saturating_mul(4);
        let message = format!(
            "'{}': names and expanded arguments exceed {limit} bytes",
            member.name
        );
        self.give_up(member.place, message);
    }

    /// The full name of a member; its bytes count as made text.
    fn name(&mut self, prefix: &str, member: &Member<'_>) -> String {
        let bytes = prefix.len().saturating_add(member.name.text.len());
        match self.text_left.checked_sub(bytes) {
            Some(left) if self.spend(bytes, member.place, NAMING) => {
                self.text_left = left;
                return format!("{prefix}{}", member.name);
            }
            Some(_) => {}
            None => self.out_of_text(member),
        }
        String::new()
    }

    /// Instantiates a body; returns the nodes of its members.
    fn body(&mut self, body: &Body<'a>, prefix: &str, scope: &Scope, depth: usize) -> Vec<Sides> {
        let mut map = vec![(u32::MAX, u32::MAX); body.members.len()];
        for (index, member) in body.members.iter().enumerate() {
            if self.exhausted {
                return map;
            }
            map[index] = match member.class {
                Class::Compound(_) => continue,
                Class::Tunnel => self.node(Node::Tunnel, member.place),
                Class::Unknown => self.node(Node::Unknown, member.place),
                Class::Native(class) => {
                    let config = self.expand(scope, member);
                    let name = self.name(prefix, member);
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
            if self.exhausted {
                return;
            }
            if let Class::Compound(class) = &member.class {
                let (inputs, outputs) = ports[index];
                let instance = Instance {
                    class,
                    name: self.name(prefix, member),
                    config: self.expand(scope, member),
                    ports: (inputs as usize, outputs as usize),
                    place: member.place,
                };
                map[index] = self.instance(&instance, scope, depth);
            }
        }
    }

    fn element(&mut self, name: String, class: &'a str, config: String, place: SourcePos) -> Sides {
        let limit = self.limits.elements;
        if self.elements.len() >= limit {
            self.give_up(place, format!("more than {limit} elements"));
            return self.node(Node::Unknown, place);
        }
        let known = self.class_names.entry(class);
        self.elements.push(FlatElement {
            name,
            class: known.or_insert_with(|| class.into()).clone(),
            config,
            place,
        });
        self.node(Node::Element(narrow(self.elements.len() - 1)), place)
    }

    fn connect(&mut self, body: &Body<'_>, map: &[Sides]) {
        let limit = self.limits.connections;
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
            return self.node(Node::Unknown, of.place);
        }
        let count = text::count_args(&of.config);
        if count > MAX_ARGUMENTS {
            let message = format!(
                "'{}': {count} arguments, the limit is {MAX_ARGUMENTS}",
                of.name
            );
            self.give_up(of.place, message);
            return self.node(Node::Unknown, of.place);
        }
        if !self
            .limits
            .memory
            .has_text(text::bytes_to_split(&of.config))
        {
            self.out_of_memory(of.place, &format!("'{}': instantiating it", of.name));
            return self.node(Node::Unknown, of.place);
        }
        let args = text::split_args(&of.config);
        let steps = cost(of.class, of.config.len(), args.len());
        if !self.spend(steps, of.place, &format!("'{}': instantiating it", of.name)) {
            return self.node(Node::Unknown, of.place);
        }
        match select(of.class, &args, of.ports) {
            Ok(Selected::Compound(body, values)) => {
                if !self.limits.memory.has_text(Scope::bytes(&body.defines)) {
                    self.out_of_memory(of.place, DEFINING);
                    return self.node(Node::Unknown, of.place);
                }
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
                self.node(Node::Unknown, of.place)
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
