// SPDX-License-Identifier: Apache-2.0
//! Bodies to plain elements and connections: compounds are instantiated, tunnels dissolved.
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::ast::{Formal, Statement};
use crate::body::{Body, Class, CompoundClass, End, INPUT, OUTPUT};
use crate::error::{Errors, Limits, MAX_DEPTH, Place};
use crate::expand::Scope;
use crate::flat::{Flat, FlatConnection, FlatElement};
use crate::resolve::{Classes, resolve};
use crate::text;

/// Flattens a configuration; what was wrong is added to `errors`, and the rest is returned.
pub fn flatten(
    statements: &[Statement],
    classes: &dyn Classes,
    globals: &Scope,
    limits: &Limits,
    errors: &mut Errors,
) -> Flat {
    let resolved = resolve(statements, classes, limits, errors);
    let mut flattener = Flattener {
        limits,
        errors,
        nodes: Vec::new(),
        links: Vec::new(),
        elements: Vec::new(),
        text_left: limits.config_bytes.saturating_mul(4),
        exhausted: false,
    };
    let scope = globals.enter(0, Vec::new(), &resolved.body.defines);
    flattener.body(&resolved.body, "", &scope, 0);
    flattener.mark_incomplete();
    let connections = flattener.dissolve();
    Flat {
        elements: flattener.elements,
        connections,
        requirements: resolved.requirements,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Element(usize),
    Tunnel,
    Unknown,
}

struct Link {
    from: End,
    to: End,
    place: Place,
}

struct Flattener<'a> {
    limits: &'a Limits,
    errors: &'a mut Errors,
    nodes: Vec<Node>,
    links: Vec<Link>,
    elements: Vec<FlatElement>,
    /// Bytes of arguments that may still be made.
    text_left: usize,
    /// A limit was reached and reported; nothing is made any more.
    exhausted: bool,
}

impl Flattener<'_> {
    fn give_up(&mut self, place: &Place, message: String) {
        if !self.exhausted {
            self.errors.add(place, message);
        }
        self.exhausted = true;
    }

    fn node(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn expand(&mut self, scope: &Scope, config: &str, place: &Place) -> String {
        let Some(text) = scope.expand(config, self.text_left) else {
            let limit = self.limits.config_bytes.saturating_mul(4);
            self.give_up(place, format!("expanded arguments exceed {limit} bytes"));
            return String::new();
        };
        self.text_left -= text.len();
        text
    }

    /// Instantiates a body; returns the nodes of its members, input side and output side.
    fn body(
        &mut self,
        body: &Body,
        prefix: &str,
        scope: &Scope,
        depth: usize,
    ) -> Vec<(usize, usize)> {
        let mut map = vec![(usize::MAX, usize::MAX); body.members.len()];
        for (index, member) in body.members.iter().enumerate() {
            if self.exhausted {
                return map;
            }
            let node = match &member.class {
                Class::Compound(_) => continue,
                Class::Tunnel => Node::Tunnel,
                Class::Unknown => Node::Unknown,
                Class::Native(class) => {
                    let config = self.expand(scope, &member.config, &member.place);
                    self.element(
                        format!("{prefix}{}", member.name),
                        class,
                        config,
                        &member.place,
                    )
                }
            };
            let node = self.node(node);
            map[index] = (node, node);
        }
        for (index, member) in body.members.iter().enumerate() {
            if let Class::Compound(class) = &member.class {
                let name = format!("{prefix}{}", member.name);
                let config = self.expand(scope, &member.config, &member.place);
                let ports = body.ports_in_use(index);
                map[index] =
                    self.instance(class, &name, &config, ports, scope, depth, &member.place);
            }
        }
        self.connect(body, &map);
        map
    }

    fn element(&mut self, name: String, class: &Rc<str>, config: String, place: &Place) -> Node {
        if self.elements.len() >= self.limits.elements {
            self.give_up(
                place,
                format!("more than {} elements", self.limits.elements),
            );
            return Node::Unknown;
        }
        self.elements.push(FlatElement {
            name,
            class: class.clone(),
            config,
            place: place.clone(),
            incomplete: false,
        });
        Node::Element(self.elements.len() - 1)
    }

    fn connect(&mut self, body: &Body, map: &[(usize, usize)]) {
        for link in &body.links {
            if self.exhausted {
                return;
            }
            if self.links.len() >= self.limits.connections.saturating_mul(4) {
                self.give_up(
                    &link.place,
                    format!("more than {} connections", self.limits.connections),
                );
                return;
            }
            let from = (map[link.from.0].1, link.from.1);
            let to = (map[link.to.0].0, link.to.1);
            self.links.push(Link {
                from,
                to,
                place: link.place.clone(),
            });
        }
    }

    /// Instantiates a compound element.
    #[expect(clippy::too_many_arguments, reason = "all of it describes one element")]
    fn instance(
        &mut self,
        class: &Rc<CompoundClass>,
        name: &str,
        config: &str,
        ports: (usize, usize),
        scope: &Scope,
        depth: usize,
        place: &Place,
    ) -> (usize, usize) {
        let unknown = |me: &mut Self| {
            let node = me.node(Node::Unknown);
            (node, node)
        };
        if self.exhausted || depth >= MAX_DEPTH {
            self.give_up(
                place,
                format!("{name}: compound elements nested deeper than {MAX_DEPTH}"),
            );
            return unknown(self);
        }
        let args = text::split_args(config);
        match select(class, &args, ports) {
            Ok(Selected::Compound(body, values)) => {
                let inside = scope.enter(body.depth, values, &body.defines);
                let map = self.body(body, &format!("{name}/"), &inside, depth + 1);
                self.check_ports(name, class, body, ports, place);
                (map[INPUT].0, map[OUTPUT].1)
            }
            Ok(Selected::Native(class)) => {
                let element = self.element(name.to_string(), class, config.to_string(), place);
                let node = self.node(element);
                (node, node)
            }
            Err(message) => {
                self.errors.add(place, format!("{name}: {message}"));
                unknown(self)
            }
        }
    }

    fn check_ports(
        &mut self,
        name: &str,
        class: &CompoundClass,
        body: &Body,
        used: (usize, usize),
        place: &Place,
    ) {
        let what = if class.name.is_empty() {
            "compound element"
        } else {
            &class.name
        };
        for (used, has, kind) in [
            (used.0, body.inputs, "input"),
            (used.1, body.outputs, "output"),
        ] {
            if used > has {
                let port = used - 1;
                self.errors.add(
                    place,
                    format!("{name} :: {what}: no {kind} {port}, it has {has} {kind}s"),
                );
            }
        }
    }

    /// Marks elements that are connected to something unknown.
    fn mark_incomplete(&mut self) {
        for link in &self.links {
            match (self.nodes[link.from.0], self.nodes[link.to.0]) {
                (Node::Element(e), Node::Unknown) | (Node::Unknown, Node::Element(e)) => {
                    self.elements[e].incomplete = true;
                }
                _ => {}
            }
        }
    }

    /// Connections between elements, through however many tunnels.
    fn dissolve(&mut self) -> Vec<FlatConnection> {
        let mut by_source: Vec<(End, usize)> = self
            .links
            .iter()
            .enumerate()
            .map(|(i, l)| (l.from, i))
            .collect();
        by_source.sort_unstable();
        let mut found: Vec<FlatConnection> = Vec::new();
        let mut steps = self.limits.connections.saturating_mul(16);
        for start in 0..self.links.len() {
            let Node::Element(from) = self.nodes[self.links[start].from.0] else {
                continue;
            };
            let mut pending = vec![(start, 0usize)];
            while let Some((index, passed)) = pending.pop() {
                let link = &self.links[index];
                steps = steps.saturating_sub(1);
                let endless = passed > self.links.len();
                if steps == 0 || endless || found.len() >= self.limits.connections {
                    let place = link.place.clone();
                    let limit = self.limits.connections;
                    let loops = "these compound ports are connected in a circle".to_string();
                    self.give_up(
                        &place,
                        if endless {
                            loops
                        } else {
                            format!("more than {limit} connections")
                        },
                    );
                    return found;
                }
                match self.nodes[link.to.0] {
                    Node::Element(to) => found.push(FlatConnection {
                        from: (from, self.links[start].from.1),
                        to: (to, link.to.1),
                        place: if passed == 0 {
                            link.place.clone()
                        } else {
                            self.links[start].place.clone()
                        },
                    }),
                    Node::Unknown => {}
                    Node::Tunnel => {
                        let first = by_source.partition_point(|(end, _)| *end < link.to);
                        let next = by_source[first..]
                            .iter()
                            .take_while(|(end, _)| *end == link.to);
                        pending.extend(next.map(|(_, i)| (*i, passed + 1)));
                    }
                }
            }
        }
        found.sort_by_key(|c| (c.from, c.to));
        found.dedup_by_key(|c| (c.from, c.to));
        found
    }
}

enum Selected<'a> {
    Compound(&'a Body, Vec<(String, String)>),
    Native(&'a Rc<str>),
}

/// Chooses the overload that fits ports and arguments; one whose arguments fit is the second choice.
fn select<'a>(
    class: &'a CompoundClass,
    args: &[String],
    ports: (usize, usize),
) -> Result<Selected<'a>, String> {
    let mut second = None;
    let mut candidates = Vec::new();
    let mut at = class;
    loop {
        for body in &at.overloads {
            candidates.push(signature(&at.name, body));
            if let Some(values) = assign(&body.formals, args) {
                if (body.inputs, body.outputs) == ports {
                    return Ok(Selected::Compound(body, values));
                }
                second = Some((body, values));
            }
        }
        match &at.extends {
            Some(Class::Compound(next)) => at = next,
            Some(Class::Native(name)) => return Ok(Selected::Native(name)),
            _ => break,
        }
    }
    match second {
        Some((body, values)) if candidates.len() == 1 => Ok(Selected::Compound(body, values)),
        _ => {
            let (inputs, outputs) = ports;
            let given = format!(
                "{} arguments, {inputs} inputs, {outputs} outputs",
                args.len()
            );
            Err(format!(
                "nothing fits {given}; candidates: {}",
                candidates.join("; ")
            ))
        }
    }
}

fn signature(name: &str, body: &Body) -> String {
    let formal = |f: &Formal| {
        format!(
            "{}{}${}",
            f.keyword,
            if f.keyword.is_empty() { "" } else { " " },
            f.name
        )
    };
    let formals: Vec<String> = body.formals.iter().map(formal).collect();
    let name = if name.is_empty() {
        "compound element"
    } else {
        name
    };
    format!(
        "{name}({})[{} inputs, {} outputs]",
        formals.join(", "),
        body.inputs,
        body.outputs
    )
}

/// Gives parameters their values; `None` if the arguments do not fit.
fn assign(formals: &[Formal], args: &[String]) -> Option<Vec<(String, String)>> {
    let keywords: Vec<&str> = formals
        .iter()
        .map(|f| f.keyword.as_str())
        .filter(|k| !k.is_empty())
        .collect();
    if keywords.is_empty() {
        let fits = formals.len() == args.len();
        return fits.then(|| {
            formals
                .iter()
                .zip(args)
                .map(|(f, a)| (f.name.clone(), a.clone()))
                .collect()
        });
    }
    let mut left: Vec<Option<&String>> = args.iter().map(Some).collect();
    let mut values = Vec::new();
    for formal in formals {
        let value = match formal.keyword.as_str() {
            "" => left.get_mut(values.len())?.take()?.clone(),
            "__REST__" => {
                let rest: Vec<&str> = left
                    .iter_mut()
                    .filter_map(Option::take)
                    .map(String::as_str)
                    .collect();
                rest.join(", ")
            }
            keyword => {
                let is_it =
                    |a: &&mut Option<&String>| a.is_some_and(|a| text::shift_word(a).0 == keyword);
                text::shift_word(left.iter_mut().find(is_it)?.take()?).1
            }
        };
        values.push((formal.name.clone(), value));
    }
    left.iter().all(Option::is_none).then_some(values)
}
