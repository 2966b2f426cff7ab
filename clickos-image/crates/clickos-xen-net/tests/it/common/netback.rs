// SPDX-License-Identifier: Apache-2.0
//! The other side of netfront, by the macros of `xen/io/ring.h`.
use super::{Guest, View, Xen};
use ring::Memory;
use ring::layout::PAGE;
use std::rc::Rc;

/// One ring as the backend has it.
pub struct BackRing {
    pub page: View,
    slot: usize,
    pub req_cons: u32,
    pub rsp_prod: u32,
}

impl BackRing {
    fn new(xen: &Xen, gref: u32, slot: usize) -> Self {
        let page = View(vec![xen.page(gref, true)]);
        Self {
            page,
            slot,
            req_cons: 0,
            rsp_prod: 0,
        }
    }

    fn at(&self, index: u32) -> usize {
        64 + index as usize % 256 * self.slot
    }

    pub fn requests(&self) -> u32 {
        self.page.load(0).wrapping_sub(self.req_cons)
    }

    fn request<const N: usize>(&mut self) -> Option<[u8; N]> {
        if self.requests() == 0 {
            return None;
        }
        let mut bytes = [0; N];
        self.page.read(self.at(self.req_cons), &mut bytes);
        self.req_cons = self.req_cons.wrapping_add(1);
        Some(bytes)
    }

    pub fn respond(&mut self, bytes: &[u8]) {
        self.page.write(self.at(self.rsp_prod), bytes);
        self.rsp_prod = self.rsp_prod.wrapping_add(1);
    }

    /// True if the frontend wants an event.
    pub fn push_responses(&mut self) -> bool {
        let old = self.page.load(8);
        self.page.store(8, self.rsp_prod);
        let event = self.page.load(12);
        self.rsp_prod.wrapping_sub(event) < self.rsp_prod.wrapping_sub(old)
    }

    /// Asks for an event at the next request.
    pub fn sleep(&self) {
        self.page.store(4, self.req_cons.wrapping_add(1));
    }
}

pub struct Netback {
    xen: Rc<Xen>,
    pub tx: BackRing,
    pub rx: BackRing,
    pub tx_port: u32,
    pub rx_port: u32,
}

impl Netback {
    /// Answers the handshake of vif 0 and connects.
    pub fn connect(guest: &mut Guest, split: bool) -> Self {
        let path = "/local/domain/0/backend/vif/7/0/feature-split-event-channels";
        guest.store.write(path, if split { b"1" } else { b"0" });
        guest.set_backend("vif", 0, "2");
        guest.turn();
        assert_eq!(guest.key("vif", "state"), "4", "{:?}", guest.xen.said);
        let ports = if split {
            ["event-channel-tx", "event-channel-rx"]
        } else {
            ["event-channel", "event-channel"]
        };
        let this = Self {
            xen: Rc::clone(&guest.xen),
            tx: BackRing::new(&guest.xen, guest.number("vif", "tx-ring-ref"), 12),
            rx: BackRing::new(&guest.xen, guest.number("vif", "rx-ring-ref"), 8),
            tx_port: guest.number("vif", ports[0]),
            rx_port: guest.number("vif", ports[1]),
        };
        guest.set_backend("vif", 0, "4");
        guest.turn();
        this
    }

    /// All frames the guest sent, answered with `status`.
    pub fn take_all(&mut self, status: i16) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let Some(request) = self.tx.request::<12>() {
            let half = |at: usize| u16::from_le_bytes([request[at], request[at + 1]]);
            let gref = u32::from_le_bytes(request[..4].try_into().unwrap());
            let mut frame = vec![0; half(10).into()];
            View(vec![self.xen.page(gref, false)]).read(half(4).into(), &mut frame);
            frames.push(frame);
            let id = half(8).to_le_bytes();
            self.tx.respond(&[id, status.to_le_bytes()].concat());
        }
        if self.tx.push_responses() {
            self.xen.send_event(self.tx_port);
        }
        frames
    }

    /// Puts a frame into the next offered buffer; false if there is none.
    pub fn give(&mut self, frame: &[u8], flags: u16) -> bool {
        self.give_at(frame, 0, flags, frame.len() as i16)
    }

    pub fn give_at(&mut self, frame: &[u8], offset: u16, flags: u16, status: i16) -> bool {
        let Some(request) = self.rx.request::<8>() else {
            return false;
        };
        let gref = u32::from_le_bytes(request[4..].try_into().unwrap());
        let fits = usize::from(offset) + frame.len() <= PAGE;
        if fits {
            View(vec![self.xen.page(gref, true)]).write(offset.into(), frame);
        }
        let [id0, id1] = [request[0], request[1]];
        let [offset, flags, status] = [offset, flags, status as u16].map(u16::to_le_bytes);
        self.rx
            .respond(&[[id0, id1], offset, flags, status].concat());
        self.flush();
        true
    }

    /// Shows the guest what was given.
    pub fn flush(&mut self) {
        if self.rx.push_responses() {
            self.xen.send_event(self.rx_port);
        }
    }
}
