// SPDX-License-Identifier: Apache-2.0
//! The element `VRRP`.
use alloc::rc::Rc;
use core::cell::RefCell;

use super::copier::{Copier, Heard, PAUSE_NS};
use super::frame;
use super::group::{Group, MAX_SIDES, Shared, Side};
use super::instance::Settings;
use super::message::{Key, MAX_BODY};
use crate::prelude::*;
use crate::wireguard::terms::KeyText;

const NS_PER_CS: u64 = 10_000_000;
const MAX_INTERVAL_CS: u64 = 4095;
/// The most bytes of the name of an element whose flows are copied, so that flows have room in a message.
const MAX_NAME: usize = 128;

/// One of a pair of routers.
pub struct Vrrp {
    group: Shared,
    copied: Vec<String>,
    key: Option<Key>,
    copier: Option<Copier>,
    /// The next look for changed flows.
    copy_ns: u64,
    /// The last look may have left changed flows, which were not sent.
    is_behind: bool,
    has_started: bool,
    /// Texts of the other router that an element refused.
    refused: u64,
}

/// Builds the element.
pub fn build(a: &mut Args<'_>) -> Built {
    let (priority, interval) = (
        a.or("PRIORITY", 100u8),
        a.or("INTERVAL", Span { ns: 1_000_000_000 }),
    );
    let (preempts, key) = (a.or("PREEMPT", true), a.opt::<KeyText>("KEY"));
    let (priority, interval_cs) = (priority?, interval?.ns / NS_PER_CS);
    let texts = a.rest().to_vec();
    let sides = texts.iter().map(|text| a.parse::<Side>("SIDE", text));
    let sides = sides.collect::<Option<Vec<_>>>()?;
    if !(1..=MAX_SIDES).contains(&sides.len()) {
        a.error(
            "SIDE",
            format!("{} sides, expected 1 to {MAX_SIDES}", sides.len()),
        );
    }
    if priority == 0 {
        a.error("PRIORITY", "0 is out of range, the least is 1");
    }
    if !(1..=MAX_INTERVAL_CS).contains(&interval_cs) {
        a.error(
            "INTERVAL",
            format!("{interval_cs}0 ms is out of range, 10 to 40950 ms"),
        );
    }
    let settings = Settings {
        priority,
        interval_cs: u16::try_from(interval_cs).unwrap_or(1),
        preempts: preempts?,
    };
    Some(Box::new(Vrrp {
        group: Rc::new(RefCell::new(Group::new(settings, sides))),
        copied: Vec::new(),
        key: key?.map(|key| key.0),
        copier: None,
        copy_ns: 0,
        is_behind: false,
        has_started: false,
        refused: 0,
    }))
}

impl Vrrp {
    /// The handlers of the element.
    pub const HANDLERS: [Handler<Self>; 6] = [
        read("state", |me, _| text(me.group.borrow().instance.state())),
        read("transitions", |me, _| {
            text(me.group.borrow().instance.transitions())
        }),
        read_write(
            "priority",
            |me, _| text(me.group.borrow().instance.settings.priority),
            Self::set_priority,
        ),
        command("resign", run!(|me, ctx| me.resign(ctx))),
        read("copies", |me, _| Ok(me.copies_text())),
        command("wake", run!(|me, ctx| me.work(ctx))),
    ];

    /// What the elements of a router share, for its ports and gates.
    fn group(&self) -> Shared {
        Rc::clone(&self.group)
    }

    /// Does what is due, has the ports send, and sets the timer.
    fn work(&mut self, ctx: &mut Context<'_>) {
        let now_ns = ctx.now_ns();
        let send = match core::mem::replace(&mut self.has_started, true) {
            true => self.group.borrow_mut().instance.run(now_ns),
            false => self.group.borrow_mut().instance.start(now_ns),
        };
        self.group.borrow_mut().send(send);
        self.hear(ctx);
        if self.copier.is_some() && self.copy_ns <= now_ns {
            self.copy_ns = now_ns + PAUSE_NS;
            self.copy(ctx);
        }
        let waiting = self.group.borrow().waiting();
        for port in waiting {
            ctx.call_later(&format!("{port}.flush"), "");
        }
        let due_ns = self.group.borrow().instance.due_ns();
        let copy_ns = self.copier.as_ref().map_or(u64::MAX, |_| self.copy_ns);
        ctx.set_timer(due_ns.min(copy_ns));
    }

    fn resign(&mut self, ctx: &mut Context<'_>) {
        let send = self.group.borrow_mut().instance.resign(ctx.now_ns());
        self.group.borrow_mut().send(send);
        self.work(ctx);
    }

    fn set_priority(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let priority: u8 = view.parse(value)?;
        if priority == 0 {
            return Err(HandlerError::rejected("0 is out of range, the least is 1"));
        }
        on_write(self, move |me, _| {
            me.group.borrow_mut().instance.settings.priority = priority;
        })
    }

    /// Reads the messages of the other router.
    fn hear(&mut self, ctx: &mut Context<'_>) {
        let messages = core::mem::take(&mut self.group.borrow_mut().inbox);
        for message in messages {
            let Some(copier) = &mut self.copier else {
                return;
            };
            match copier.receive(&message, ctx.now_ns()) {
                Heard::Nothing => {}
                Heard::New => {
                    self.is_behind = true;
                    self.offer_all(ctx);
                }
                Heard::Flows { element, text } => self.merge(ctx, &element, &text),
            }
        }
    }

    /// All flows count as changed, since the other router has none of them.
    fn offer_all(&self, ctx: &mut Context<'_>) {
        for element in &self.copied {
            // its class was checked at the start, and the handler refuses nothing then
            let _ = ctx.read_handler(&format!("{element}.changes"), "all");
        }
    }

    /// An element takes flows. Only those of COPY may be named.
    fn merge(&mut self, ctx: &mut Context<'_>, element: &str, text: &str) {
        let is_known = self.copied.iter().any(|name| name == element);
        let merged = is_known.then(|| ctx.write_handler(&format!("{element}.merge"), text));
        self.refused += u64::from(!matches!(merged, Some(Ok(()))));
    }

    /// Sends changed flows, and what else is due to the other router.
    fn copy(&mut self, ctx: &mut Context<'_>) {
        let now_ns = ctx.now_ns();
        let Some(copier) = &mut self.copier else {
            return;
        };
        let mut messages = copier.due(now_ns);
        for element in &self.copied {
            let most = (MAX_BODY - element.len() - 1).to_string();
            while copier.has_room() {
                let text = ctx.read_handler(&format!("{element}.changes"), &most);
                let Some(text) = text.ok().filter(|text| !text.is_empty()) else {
                    break;
                };
                messages.extend(copier.flows(element, &text, now_ns));
            }
        }
        self.is_behind = copier.is_connected() && !copier.has_room();
        let group = &mut *self.group.borrow_mut();
        let side = group.sides.iter_mut().find(|side| side.peer.is_some());
        let Some((side, peer)) = side.and_then(|side| side.peer.map(|peer| (side, peer))) else {
            return;
        };
        for message in messages {
            side.send(frame::copy(side.own, peer, &message));
        }
    }

    fn copies_text(&self) -> String {
        let Some(copier) = &self.copier else {
            return "off\n".to_string();
        };
        let [sent, received] = copier.counts;
        let (connected, [own, peer]) = (copier.is_connected(), copier.ends());
        let waiting = copier.waiting() + usize::from(self.is_behind);
        let refused = self.refused;
        format!(
            "connected {connected}\nsent {sent}\nreceived {received}\nwaiting {waiting}\nrefused {refused}\nconnection {own} {peer}\n"
        )
    }
}

impl Element for Vrrp {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.copied = match self.key {
            Some(_) => names_of_copied(ctx),
            None => Vec::new(),
        };
        if let (Some(key), false) = (self.key, self.copied.is_empty()) {
            self.copier = Some(Copier::new(key, ctx.random() | 1));
        }
        ctx.set_timer(ctx.now_ns());
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        self.work(ctx);
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        self.group.borrow_mut().take_from(&old.group.borrow());
        (self.has_started, self.refused) = (old.has_started, old.refused);
        if old.key == self.key && old.copied == self.copied {
            (self.copier, self.is_behind) = (old.copier.take(), old.is_behind);
        }
    }
}

/// The elements whose flows can be copied.
fn names_of_copied(ctx: &Context<'_>) -> Vec<String> {
    let indices = (0..).take_while(|index| ctx.class_and_config(*index).is_some());
    let declared = indices.filter(|index| !ctx.is_copy(*index));
    let names = declared.map(|index| ctx.name_of(index));
    let has = |name: &str, handler| ctx.handler_info(&format!("{name}.{handler}")).is_some();
    let copied =
        names.filter(|name| name.len() <= MAX_NAME && has(name, "changes") && has(name, "merge"));
    copied.map(ToString::to_string).collect()
}

/// The group of the element `name`, for its ports and gates.
pub fn group_of(ctx: &mut Context<'_>, name: &str) -> Result<Shared, String> {
    let group = ctx.peer(name, |e| e.as_any().downcast_ref::<Vrrp>().map(Vrrp::group));
    group
        .flatten()
        .ok_or_else(|| format!("\"{name}\" is not a VRRP"))
}
