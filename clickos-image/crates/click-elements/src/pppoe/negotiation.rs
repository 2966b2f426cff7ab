// SPDX-License-Identifier: Apache-2.0
//! PPP's option negotiation (RFC 1661, section 4), as far as PPPoE needs it.
//!
//! The lower layer is always up, and both ends begin at once. A layer that ends takes its session with it, so no states
//! follow `Opened`.
use alloc::vec::Vec;

use click_wire::ppp::{Control, Options, code};

use super::{Moment, Outbox, REQUESTS, RESTART_NS};

/// Requests of the peer that may be refused before both count as unable to agree.
const REFUSALS: u8 = 8;

/// The decision about the peer's request.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All options are good.
    Ack,
    /// These values would be good.
    Nak(Vec<u8>),
    /// These options are unknown.
    Reject(Vec<u8>),
}

impl Verdict {
    /// Unknown options count before wrong values.
    pub fn of(naks: Vec<u8>, rejects: Vec<u8>) -> Self {
        match (naks.is_empty(), rejects.is_empty()) {
            (_, false) => Self::Reject(rejects),
            (false, true) => Self::Nak(naks),
            (true, true) => Self::Ack,
        }
    }
}

/// The subject of a negotiation.
pub trait Layer {
    /// The protocol's number.
    const PROTOCOL: u16;
    /// The options that this end asks for.
    fn wanted(&self) -> Vec<u8>;
    /// Judges the options that the peer asks for.
    fn judge(&mut self, options: Options<'_>, moment: &mut Moment<'_>) -> Verdict;
    /// The peer refused some of ours; false if this end cannot do without.
    fn refused(&mut self, options: Options<'_>, rejected: bool, moment: &mut Moment<'_>) -> bool;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Neither request is accepted.
    Requested,
    /// The peer accepted ours.
    Accepted,
    /// This end accepted the peer's.
    Accepts,
    /// Both are.
    Opened,
}

/// The effect of a packet or of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing that concerns others.
    Goes,
    /// The layer opened.
    Opened,
    /// The layer was open, and the peer begins again.
    Restarted,
    /// Both do not agree, or the peer does not answer.
    Failed,
}

/// The negotiation of a layer.
pub struct Negotiation<L> {
    /// The agreed values so far.
    pub layer: L,
    state: State,
    /// The identifier of the request that waits for an answer, and its options.
    waits: Option<u8>,
    sent: Vec<u8>,
    last_id: u8,
    requests_left: u8,
    refusals_left: u8,
    resend_at_ns: u64,
}

impl<L: Layer> Negotiation<L> {
    /// Sends the first request.
    pub fn begin(layer: L, now_ns: u64, out: &mut Outbox) -> Self {
        let mut me = Self::opened(layer);
        me.restart(now_ns, out);
        me
    }

    /// A layer that opened elsewhere.
    pub fn opened(layer: L) -> Self {
        Self {
            layer,
            state: State::Opened,
            waits: None,
            sent: Vec::new(),
            last_id: 0,
            requests_left: REQUESTS,
            refusals_left: REFUSALS,
            resend_at_ns: 0,
        }
    }

    /// True if both ends agree.
    pub fn is_open(&self) -> bool {
        self.state == State::Opened
    }

    fn restart(&mut self, now_ns: u64, out: &mut Outbox) {
        (self.requests_left, self.refusals_left) = (REQUESTS, REFUSALS);
        self.state = State::Requested;
        self.request(now_ns, out);
    }

    /// Sends a request; false after too many.
    fn request(&mut self, now_ns: u64, out: &mut Outbox) -> bool {
        let Some(left) = self.requests_left.checked_sub(1) else {
            return false;
        };
        self.requests_left = left;
        self.last_id = self.last_id.wrapping_add(1);
        (self.waits, self.sent) = (Some(self.last_id), self.layer.wanted());
        self.resend_at_ns = now_ns + RESTART_NS;
        out.control(L::PROTOCOL, code::REQUEST, self.last_id, &self.sent);
        true
    }

    /// Takes a packet with one of the first four codes.
    pub fn receive(
        &mut self,
        control: &Control<'_>,
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Outcome {
        let Ok(options) = Options::new(control.data) else {
            return Outcome::Goes;
        };
        if control.code == code::REQUEST {
            return self.requested(control, options, moment, out);
        }
        if self.waits != Some(control.id) {
            return Outcome::Goes;
        }
        match control.code {
            code::ACK if control.data == self.sent => self.accepted(),
            code::ACK => Outcome::Goes,
            refusal => {
                let rejected = refusal == code::REJECT;
                let goes = self.layer.refused(options, rejected, moment)
                    && self.request(moment.now_ns, out);
                if goes { Outcome::Goes } else { Outcome::Failed }
            }
        }
    }

    fn accepted(&mut self) -> Outcome {
        self.waits = None;
        if self.state == State::Accepts {
            self.state = State::Opened;
            return Outcome::Opened;
        }
        self.state = State::Accepted;
        Outcome::Goes
    }

    fn requested(
        &mut self,
        control: &Control<'_>,
        options: Options<'_>,
        moment: &mut Moment<'_>,
        out: &mut Outbox,
    ) -> Outcome {
        let anew = self.is_open();
        if anew {
            self.restart(moment.now_ns, out);
        }
        let opened = match self.layer.judge(options, moment) {
            Verdict::Ack => {
                out.control(L::PROTOCOL, code::ACK, control.id, control.data);
                let opened = self.state == State::Accepted;
                self.state = if opened {
                    State::Opened
                } else {
                    State::Accepts
                };
                opened
            }
            Verdict::Nak(values) => return self.refuse(code::NAK, control.id, &values, anew, out),
            Verdict::Reject(unknown) => {
                return self.refuse(code::REJECT, control.id, &unknown, anew, out);
            }
        };
        match (anew, opened) {
            (true, _) => Outcome::Restarted,
            (false, true) => Outcome::Opened,
            (false, false) => Outcome::Goes,
        }
    }

    fn refuse(
        &mut self,
        code: u8,
        id: u8,
        options: &[u8],
        anew: bool,
        out: &mut Outbox,
    ) -> Outcome {
        let Some(left) = self.refusals_left.checked_sub(1) else {
            return Outcome::Failed;
        };
        self.refusals_left = left;
        if self.state == State::Accepts {
            self.state = State::Requested;
        }
        out.control(L::PROTOCOL, code, id, options);
        if anew {
            Outcome::Restarted
        } else {
            Outcome::Goes
        }
    }

    /// Repeats what was not answered.
    pub fn tick(&mut self, now_ns: u64, out: &mut Outbox) -> Outcome {
        if self.is_open() || now_ns < self.resend_at_ns {
            return Outcome::Goes;
        }
        if self.state == State::Accepted {
            self.state = State::Requested;
        }
        match self.request(now_ns, out) {
            true => Outcome::Goes,
            false => Outcome::Failed,
        }
    }
}
