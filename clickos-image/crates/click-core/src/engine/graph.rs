// SPDX-License-Identifier: Apache-2.0
//! Checks the connections of a configuration and settles what is pushed and what is pulled.
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use click_lang::{Errors, Flat, FlatConnection, Limits, Phase, SourcePos, Subject};

use crate::engine::class::Class;
use crate::ports::{Processing, count, flows, processing};

/// Steps of work to compare an input's flow code with an output's.
const FLOW: usize = 16;

/// One side of an element after the check.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    /// For each port what it is, and the element it is so because of.
    state: Vec<(Option<Processing>, usize)>,
    declared: Vec<Option<Processing>>,
}

/// The checked graph.
pub struct Graph {
    inputs: Vec<Ports>,
    outputs: Vec<Ports>,
}

/// Numbers of ports of every element; too many are errors at the connection that has them.
pub fn count_ports(
    flat: &Flat,
    classes: &[Option<&Class>],
    errors: &mut Errors,
) -> Vec<(usize, usize)> {
    let mut used = vec![(0, 0); flat.elements.len()];
    for c in &flat.connections {
        used[c.from.0].1 = used[c.from.0].1.max(c.from.1 + 1);
        used[c.to.0].0 = used[c.to.0].0.max(c.to.1 + 1);
    }
    for (index, class) in classes.iter().enumerate() {
        let Some(class) = class else { continue };
        match count(class.ports, used[index]) {
            Ok(ports) => used[index] = ports,
            Err((output, most)) => too_many(flat, index, output, most, errors),
        }
    }
    used
}

fn too_many(flat: &Flat, index: usize, output: bool, most: usize, errors: &mut Errors) {
    let side = |c: &FlatConnection| if output { c.from } else { c.to };
    let what = if output { "output" } else { "input" };
    for c in flat
        .connections
        .iter()
        .filter(|c| side(c).0 == index && side(c).1 >= most)
    {
        let has = if most == 1 {
            format!("1 {what}")
        } else {
            format!("{most} {what}s")
        };
        let message = format!(
            "{}: no {what} {}, it has at most {has}",
            flat.elements[index].label(),
            side(c).1
        );
        errors.add(c.place, message);
    }
}

impl Graph {
    /// Settles and checks all ports; whether each is used as often as it must be only if the graph
    /// is `whole`. Elements without a class (an error was reported) fit everything.
    pub fn check(
        flat: &Flat,
        classes: &[Option<&Class>],
        counts: &[(usize, usize)],
        whole: bool,
        limits: &Limits,
        errors: &mut Errors,
    ) -> Self {
        let side = |output: bool| {
            let one = |(index, class): (usize, &Option<&Class>)| {
                let n = if output {
                    counts[index].1
                } else {
                    counts[index].0
                };
                let declared = |p| {
                    if p == Processing::Agnostic {
                        None
                    } else {
                        Some(p)
                    }
                };
                let list = class.map_or_else(
                    || vec![Processing::Agnostic; n],
                    |c| processing(c.processing, output, n),
                );
                let declared: Vec<_> = list.into_iter().map(declared).collect();
                Ports {
                    state: declared.iter().map(|p| (*p, index)).collect(),
                    declared,
                }
            };
            classes.iter().enumerate().map(one).collect::<Vec<_>>()
        };
        let mut graph = Self {
            inputs: side(false),
            outputs: side(true),
        };
        graph.settle(flat, classes, limits, errors);
        if whole {
            graph.check_use(flat, classes, errors);
        }
        graph
    }

    /// True if packets are pulled at an input.
    pub fn input_is_pull(&self, element: usize, port: usize) -> bool {
        self.inputs[element].state[port].0 == Some(Processing::Pull)
    }

    /// True if packets are pulled at an output.
    pub fn output_is_pull(&self, element: usize, port: usize) -> bool {
        self.outputs[element].state[port].0 == Some(Processing::Pull)
    }

    /// True if a port takes the processing of its neighbors.
    pub fn is_agnostic(&self, element: usize, output: bool, port: usize) -> bool {
        let side = if output { &self.outputs } else { &self.inputs };
        side[element].declared[port].is_none()
    }

    /// Spreads push and pull over connections and through agnostic elements until nothing changes.
    fn settle(
        &mut self,
        flat: &Flat,
        classes: &[Option<&Class>],
        limits: &Limits,
        errors: &mut Errors,
    ) {
        let round = self.round(flat.connections.len());
        let mut changed = true;
        let mut reported = vec![false; flat.connections.len()];
        let mut mixed = vec![false; classes.len()];
        while changed {
            changed = false;
            let what = "settling push and pull";
            if !errors.spend(round, limits, SourcePos::default(), what) {
                return;
            }
            for (index, c) in flat.connections.iter().enumerate() {
                let (Some(from), Some(to)) = (
                    self.outputs[c.from.0].state.get(c.from.1).copied(),
                    self.inputs[c.to.0].state.get(c.to.1).copied(),
                ) else {
                    continue;
                };
                match (from.0, to.0) {
                    (Some(_), None) => self.inputs[c.to.0].state[c.to.1] = from,
                    (None, Some(_)) => self.outputs[c.from.0].state[c.from.1] = to,
                    (Some(a), Some(b)) if a != b && !reported[index] => {
                        reported[index] = true;
                        errors.add(c.place, conflict(flat, c, (a, from.1), (b, to.1)));
                        continue;
                    }
                    _ => continue,
                }
                changed = true;
            }
            for (element, class) in classes.iter().enumerate() {
                let Some(class) = class else { continue };
                match self.through(element, class) {
                    Through::Nothing => {}
                    Through::Settled => changed = true,
                    Through::Mixed(input, output) if !mixed[element] => {
                        mixed[element] = true;
                        let leaves = |c: &&FlatConnection| c.from == (element, output);
                        let connection = flat.connections.iter().find(leaves);
                        let place = connection.map_or(flat.elements[element].place, |c| c.place);
                        errors.add(place, self.mixed(flat, element, input, output));
                    }
                    Through::Mixed(..) => {}
                }
            }
        }
    }

    /// Steps of work of one round of `settle`.
    fn round(&self, connections: usize) -> usize {
        let agnostic = |p: &Ports| p.declared.iter().filter(|d| d.is_none()).count();
        let sides = self.inputs.iter().zip(&self.outputs);
        let pairs = sides.map(|(i, o)| agnostic(i).saturating_mul(agnostic(o)));
        let compared = pairs.fold(0, usize::saturating_add).saturating_mul(FLOW);
        connections.saturating_add(compared)
    }

    /// Spreads push and pull between the agnostic ports of one element.
    fn through(&mut self, element: usize, class: &Class) -> Through {
        let (inputs, outputs) = (&mut self.inputs[element], &mut self.outputs[element]);
        let mut result = Through::Nothing;
        for i in 0..inputs.state.len() {
            for o in 0..outputs.state.len() {
                let agnostic = inputs.declared[i].is_none() && outputs.declared[o].is_none();
                if !agnostic || !flows(class.flow, i, o) {
                    continue;
                }
                match (inputs.state[i].0, outputs.state[o].0) {
                    (Some(_), None) => outputs.state[o] = inputs.state[i],
                    (None, Some(_)) => inputs.state[i] = outputs.state[o],
                    (Some(a), Some(b)) if a != b => return Through::Mixed(i, o),
                    _ => continue,
                }
                result = Through::Settled;
            }
        }
        result
    }

    fn mixed(&self, flat: &Flat, element: usize, input: usize, output: usize) -> String {
        let (i, o) = (
            self.inputs[element].state[input],
            self.outputs[element].state[output],
        );
        let word = |p: Option<Processing>| {
            if p == Some(Processing::Pull) {
                "pull"
            } else {
                "push"
            }
        };
        format!(
            "{}: agnostic, but input {input} is {} (because of {}) and output {output} is {} (because of {})",
            flat.elements[element].label(),
            word(i.0),
            flat.elements[i.1].name,
            word(o.0),
            flat.elements[o.1].name
        )
    }

    /// Every port is connected; a push output and a pull input only once.
    fn check_use(&self, flat: &Flat, classes: &[Option<&Class>], errors: &mut Errors) {
        let mut uses: [Vec<Vec<usize>>; 2] = [&self.inputs, &self.outputs]
            .map(|side| side.iter().map(|p| vec![0; p.state.len()]).collect());
        for c in &flat.connections {
            for (side, end) in [c.to, c.from].into_iter().enumerate() {
                let Some(n) = uses[side][end.0].get_mut(end.1) else {
                    continue;
                };
                *n += 1;
                let output = side == 1;
                let pull = if output {
                    self.output_is_pull(end.0, end.1)
                } else {
                    self.input_is_pull(end.0, end.1)
                };
                if *n == 2 && output != pull {
                    let (what, kind) = if output {
                        ("output", "push")
                    } else {
                        ("input", "pull")
                    };
                    let name = flat.elements[end.0].label();
                    let message = format!("illegal reuse of '{name}' {kind} {what} {}", end.1);
                    errors.add_about(flat.elements[end.0].place, of_ports(flat, end.0), message);
                }
            }
        }
        for (element, class) in classes.iter().enumerate() {
            for (side, what) in ["input", "output"].into_iter().enumerate() {
                for port in (0..uses[side][element].len()).filter(|p| uses[side][element][*p] == 0)
                {
                    if class.is_some() {
                        let message =
                            format!("'{}' {what} {port} unused", flat.elements[element].label());
                        let place = flat.elements[element].place;
                        errors.add_about(place, of_ports(flat, element), message);
                    }
                }
            }
        }
    }
}

/// The element an error of its ports is about.
fn of_ports(flat: &Flat, index: usize) -> Subject {
    Subject {
        phase: Phase::Connecting,
        element: flat.elements[index].label(),
    }
}

enum Through {
    Nothing,
    Settled,
    Mixed(usize, usize),
}

fn conflict(
    flat: &Flat,
    c: &FlatConnection,
    from: (Processing, usize),
    to: (Processing, usize),
) -> String {
    let (words, cure) = match from.0 {
        Processing::Push => (("push", "pull"), "a Queue"),
        _ => (("pull", "push"), "an Unqueue"),
    };
    let because = |element: usize, of: usize| {
        if element == of {
            String::new()
        } else {
            format!(" (because of {})", flat.elements[of].label())
        }
    };
    format!(
        "{} output {} is {}{}, but {} input {} is {}{}; {cure} between them would help",
        flat.elements[c.from.0].label(),
        c.from.1,
        words.0,
        because(c.from.0, from.1),
        flat.elements[c.to.0].label(),
        c.to.1,
        words.1,
        because(c.to.0, to.1),
    )
}
