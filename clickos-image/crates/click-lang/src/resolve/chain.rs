// SPDX-License-Identifier: Apache-2.0
//! Chains of connections.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Resolver;
use crate::ast::{Arrow, Ports, Step};
use crate::body::{Body, End};
use crate::ports::{Side, pairs};
use crate::source::SourcePos;

/// The members a term stands for: its inputs and its outputs differ for groups.
pub(super) struct Ends {
    pub input: usize,
    pub output: usize,
    pub inputs: Option<Ports>,
    pub outputs: Option<Ports>,
}

impl Ends {
    fn input_side(&self) -> Side<'_> {
        Side {
            element: self.input,
            ports: self.inputs.as_ref(),
        }
    }

    fn output_side(&self) -> Side<'_> {
        Side {
            element: self.output,
            ports: self.outputs.as_ref(),
        }
    }

    fn is_group(&self) -> bool {
        self.input != self.output
    }
}

impl<'a> Resolver<'_, 'a> {
    pub(super) fn chain(&mut self, steps: &[Step<'a>], body: &mut Body<'a>) {
        let mut left: Option<(SourcePos, Vec<Ends>, Arrow, SourcePos)> = None;
        for (index, step) in steps.iter().enumerate() {
            let ends = self.terms(&step.terms, body, steps.len() == 1, index == 0);
            let Some(ends) = ends else {
                left = None;
                continue;
            };
            match left.take() {
                Some((from, outputs, arrow, place)) => {
                    let made = self.pairs(&outputs, &ends, arrow, body);
                    match made {
                        Ok(list) => list.iter().for_each(|(f, t)| body.link(*f, *t, place)),
                        Err(message) => self.errors.add(from, message),
                    }
                }
                None if index == 0 => self.check_useless(step, &ends, false),
                None => {}
            }
            match step.arrow {
                Some((arrow, place)) => left = Some((step.terms[0].place, ends, arrow, place)),
                None => self.check_useless(step, &ends, true),
            }
        }
    }

    /// The connections that an arrow makes.
    fn pairs(
        &self,
        outputs: &[Ends],
        inputs: &[Ends],
        arrow: Arrow,
        body: &Body<'a>,
    ) -> Result<Vec<(End, End)>, String> {
        let outputs: Vec<_> = outputs.iter().map(Ends::output_side).collect();
        let inputs: Vec<_> = inputs.iter().map(Ends::input_side).collect();
        let limit = self.limits.connections;
        let list = pairs(&outputs, &inputs, arrow, self.limits.ports)?;
        if body.links.len() + list.len() > limit {
            return Err(format!("more than {limit} connections"));
        }
        Ok(list)
    }

    /// Reports ports at an end of a chain.
    fn check_useless(&mut self, step: &Step<'_>, ends: &[Ends], outputs: bool) {
        let named = |e: &&Ends| {
            if outputs {
                e.outputs.is_some()
            } else {
                e.inputs.is_some()
            }
        };
        if ends.iter().filter(|e| !e.is_group()).any(|e| named(&e)) {
            let message = if outputs {
                "output ports at the end of a chain"
            } else {
                "input ports at the start of a chain"
            };
            self.errors.add(step.terms[0].place, message);
        }
    }
}
