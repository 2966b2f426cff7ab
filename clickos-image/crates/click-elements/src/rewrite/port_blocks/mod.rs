// SPDX-License-Identifier: Apache-2.0
//! The element that gives subscribers blocks of ports.
mod blocks;
mod layout;
mod subscriber;

use alloc::rc::Rc;
use core::cell::RefCell;

use click_core::Limits;
use click_core::text::split_words;

use super::mapper::Shared;
use crate::prelude::*;
use crate::syslog::log_of;
use blocks::{Blocks, SWEEP_NS};
use layout::{Layout, count};

/// Builds the element.
pub fn build(a: &mut Args<'_>) -> Built {
    let (subscribers, public) = (a.need("SUBSCRIBERS"), a.need("PUBLIC"));
    let (first_port, last_port) = (a.or("FIRST_PORT", 1024u16), a.or("LAST_PORT", u16::MAX));
    let block = a.opt::<u32>("BLOCK");
    let (log, flows) = (a.or("LOG", String::new()), a.or("FLOWS", u32::MAX));
    let mut layout = Layout {
        subscribers: subscribers?,
        public: public?,
        first_port: first_port?,
        last_port: last_port?,
        block: 1,
    };
    check(a, &layout)?;
    let most = layout.most();
    let wanted = block?.map_or(most, u64::from);
    if !(1..=most).contains(&wanted) {
        let message = format!("{wanted} ports for each subscriber, there are {most}");
        a.error("BLOCK", message);
        return None;
    }
    layout.block = wanted as u32;
    let flows = flows?;
    if flows == 0 {
        a.error("FLOWS", "0 flows, the least is 1");
        return None;
    }
    let blocks = Blocks::new(layout, flows);
    Some(Box::new(PortBlockMapper { blocks, log: log? }))
}

fn holes(prefix: Prefix) -> String {
    format!("the mask {} has holes", prefix.mask)
}

/// Checks the arguments that no type checks; notes the first error.
fn check(a: &mut Args<'_>, layout: &Layout) -> Option<()> {
    let all = count(layout.subscribers);
    let most = a.environment().limits.table_entries as u64;
    let (name, message) = if !all.is_power_of_two() {
        ("SUBSCRIBERS", holes(layout.subscribers))
    } else if !count(layout.public).is_power_of_two() {
        ("PUBLIC", holes(layout.public))
    } else if all > most {
        let message = format!("{all} addresses, the most is {most}");
        ("SUBSCRIBERS", message)
    } else if layout.first_port == 0 || layout.first_port > layout.last_port {
        let message = format!("{} is not within 1 to LAST_PORT", layout.first_port);
        ("FIRST_PORT", message)
    } else {
        return Some(());
    };
    a.error(name, message);
    None
}

/// The element.
pub struct PortBlockMapper {
    blocks: Rc<RefCell<Blocks>>,
    /// The element that sends what is logged, or nothing.
    log: String,
}

impl PortBlockMapper {
    /// The decider for rewriters.
    pub fn shared(&self) -> Shared {
        self.blocks.clone()
    }

    pub fn table_text(&self, limits: &Limits) -> String {
        self.blocks.borrow().table(limits)
    }

    pub fn lookup_text(&self, view: &View<'_>) -> Text {
        let words = split_words(view.param());
        let [address, port] = words.as_slice() else {
            return Err(HandlerError::rejected(expected(
                "ADDRESS PORT",
                view.param(),
            )));
        };
        let (address, port) = (view.parse(address)?, view.parse(port)?);
        let owner = self.blocks.borrow().layout.owner(address, port);
        owner.map_or_else(|| text(""), text)
    }
}

impl Element for PortBlockMapper {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let prepared = self.blocks.borrow_mut().prepare();
        prepared.ok_or("SUBSCRIBERS: the memory has no place for them")?;
        if !self.log.is_empty() {
            self.blocks.borrow_mut().log = Some(log_of(ctx, &self.log)?);
        }
        ctx.set_timer(ctx.now_ns() + SWEEP_NS);
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let pause_ns = self.blocks.borrow_mut().sweep();
        ctx.set_timer(ctx.now_ns() + pause_ns);
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            let mut blocks = self.blocks.borrow_mut();
            blocks.adopt(&mut old.blocks.borrow_mut());
            if !blocks.is_complete() {
                // the log takes messages once it has its own state
                ctx.set_timer(ctx.now_ns() + 1);
            }
        }
    }
}
