// SPDX-License-Identifier: Apache-2.0
//! The windows of a TCP connection (RFC 9293, section 3.4): a packet passes if its receiver could have asked for it.
use super::seen::Tcp;

/// What one end has sent, and what the other may send to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// It was heard of.
    pub known: bool,
    /// After the last number that it sent.
    pub end: u32,
    /// After the last number that the other end has let it send.
    pub edge: u32,
    /// The largest window that it offered.
    pub window: u32,
    /// Bits by which its windows are shifted.
    pub scale: u8,
    /// It has sent its last number.
    pub is_done: bool,
    /// Another guest had the connection, and this side has sent nothing since: it may be further.
    pub is_behind: bool,
    /// It has given the connection up, unless that was forged: then it sends more (RFC 7857, section 2.2).
    pub is_reset: bool,
}

impl Side {
    /// True if copies are too old since it was at `end`.
    pub fn has_stepped(&self, end: u32) -> bool {
        (self.end ^ end) >= STEP
    }
}

/// An acknowledgment may be this far behind, or as far as the largest window.
const OLD_ACK: u32 = 66_000;
/// Numbers of a copy are sent again when a side is further by about as many bytes.
const STEP: u32 = 1 << 22;
/// A side may be further than its copy by this many bytes: a step, and what passes until the copy arrives.
const AHEAD: u32 = 1 << 27;
/// Windows are shifted by at most 14 bits (RFC 7323, section 2.3).
const MAX_SCALE: u8 = 14;

/// True if `a` is not behind `b`.
fn up_to(a: u32, b: u32) -> bool {
    b.wrapping_sub(a) < 1 << 31
}

/// Both ends, the one that began first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    pub sides: [Side; 2],
    /// The connection was there before, so the shifts of its windows are unknown.
    pub unknown: bool,
}

impl Windows {
    /// Those of a connection that begins with a packet.
    pub fn new(first: &Tcp) -> Self {
        Self {
            unknown: !first.is_syn(),
            ..Self::default()
        }
    }

    /// True if both ends are done, or one has given up.
    pub fn is_over(&self) -> bool {
        self.is_reset() || self.sides.iter().all(|side| side.is_done)
    }

    /// True if one end has given up.
    pub fn is_reset(&self) -> bool {
        self.sides.iter().any(|side| side.is_reset)
    }

    /// True if both ends have been heard of.
    pub fn is_open(&self) -> bool {
        self.sides.iter().all(|side| side.known)
    }

    /// The same on another guest, which has not seen the last packets.
    pub fn set_behind(&mut self) {
        self.sides.iter_mut().for_each(|side| side.is_behind = true);
    }

    /// Judges a packet of the side `from` and takes what it says; false if it is beyond a window.
    pub fn take(&mut self, from: usize, tcp: &Tcp) -> bool {
        let [mut sender, receiver] = match from {
            0 => self.sides,
            _ => [self.sides[1], self.sides[0]],
        };
        let is_fine = self.unknown || fits(&sender, &receiver, tcp);
        if !is_fine {
            return false;
        }
        let mut receiver = receiver;
        learn(&mut sender, &mut receiver, tcp);
        self.sides = match from {
            0 => [sender, receiver],
            _ => [receiver, sender],
        };
        true
    }
}

/// True if the sender may send a packet.
fn fits(sender: &Side, receiver: &Side, tcp: &Tcp) -> bool {
    if !receiver.known {
        // the first packets, up to the answer
        return !sender.known || tcp.is_syn() || tcp.is_rst();
    }
    let ahead = if receiver.is_behind { AHEAD } else { 0 };
    let acks_what_was_sent = || {
        let oldest = receiver.end.wrapping_sub(OLD_ACK.max(sender.window));
        let last = receiver.end.wrapping_add(ahead);
        tcp.ack
            .is_none_or(|ack| up_to(ack, last) && up_to(oldest, ack))
    };
    if !sender.known {
        return tcp.is_syn() && acks_what_was_sent()
            || tcp.is_rst() && tcp.ack == Some(receiver.end);
    }
    let first = sender.end.wrapping_sub(receiver.window.max(1));
    let edge = sender.edge.wrapping_add(ahead);
    up_to(tcp.seq, edge) && up_to(first, tcp.end()) && acks_what_was_sent()
}

/// Takes what a packet says of its sender, and what it lets the receiver send.
fn learn(sender: &mut Side, receiver: &mut Side, tcp: &Tcp) {
    sender.is_reset = tcp.is_rst();
    if tcp.is_syn() {
        sender.scale = tcp.scale.unwrap_or(0).min(MAX_SCALE);
    }
    let scale = if tcp.is_syn() { 0 } else { sender.scale };
    let window = u32::from(tcp.window) << scale;
    if !sender.known {
        // what it may send before the answer
        (sender.known, sender.end, sender.edge) = (true, tcp.end(), tcp.end());
    }
    if tcp.is_syn_ack() && tcp.scale.is_none() {
        // shifts count only if both ends say theirs (RFC 7323, section 2.2)
        receiver.scale = 0;
    }
    sender.window = sender.window.max(window);
    if up_to(sender.end, tcp.end()) {
        sender.end = tcp.end();
    }
    sender.is_done |= tcp.is_fin();
    sender.is_behind = false;
    if let Some(ack) = tcp.ack {
        let edge = ack.wrapping_add(window.max(1));
        if !receiver.known || up_to(receiver.edge, edge) {
            receiver.edge = edge;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: u8 = 2;
    const ACK: u8 = 16;
    const RST: u8 = 4;
    const FIN: u8 = 1;

    fn packet(flags: u8, seq: u32, ack: u32, window: u16, len: u32) -> Tcp {
        Tcp {
            flags,
            seq,
            ack: (flags & ACK != 0).then_some(ack),
            window,
            scale: (flags & SYN != 0).then_some(7),
            len,
        }
    }

    /// A connection whose numbers begin at 1,000 and 5,000, near their end for the second.
    fn opened(first: u32, second: u32) -> Windows {
        let syn = packet(SYN, first, 0, 64_000, 0);
        let mut windows = Windows::new(&syn);
        assert!(windows.take(0, &syn));
        assert!(windows.take(1, &packet(SYN | ACK, second, first.wrapping_add(1), 500, 0)));
        let ack = packet(ACK, first.wrapping_add(1), second.wrapping_add(1), 500, 0);
        assert!(windows.take(0, &ack));
        assert!(windows.is_open() && !windows.is_over());
        windows
    }

    #[test]
    fn what_was_asked_for_passes() {
        for second in [5_000, u32::MAX - 3] {
            let mut windows = opened(1_000, second);
            // 500 bytes without shift may come before the next acknowledgment
            assert!(windows.take(0, &packet(ACK, 1_001, second.wrapping_add(1), 500, 500)));
            let answer = packet(ACK, second.wrapping_add(1), 1_501, 500, 1_400);
            assert!(windows.take(1, &answer), "the window is 64,000");
            assert!(windows.take(1, &answer), "again");
            // a probe of a connection that is silent
            assert!(windows.take(0, &packet(ACK, 1_500, second.wrapping_add(1_401), 500, 0)));
        }
    }

    #[test]
    fn what_is_beyond_a_window_does_not() {
        let windows = opened(1_000, 5_000);
        for (from, wrong) in [
            (0, packet(ACK, 1_001 + 100_000, 5_001, 500, 10)),
            (0, packet(ACK, 1_001, 6_000, 500, 10)),
            (1, packet(ACK, 5_001 + 70_000, 1_001, 500, 10)),
            (1, packet(ACK, 4_000_000_000, 1_001, 500, 10)),
            (1, packet(ACK, 5_001, 1_002, 500, 10)),
            (1, packet(RST, 5_001 + 70_000, 0, 0, 0)),
            (1, packet(SYN | ACK, 900_000, 1_001, 500, 0)),
        ] {
            assert!(!windows.clone().take(from, &wrong), "{from}: {wrong:?}");
        }
    }

    #[test]
    fn an_answer_acknowledges_the_first_packet() {
        let syn = packet(SYN, 1_000, 0, 64_000, 0);
        for (wrong, is_fine) in [
            (packet(SYN | ACK, 5_000, 1_002, 500, 0), false),
            (packet(ACK, 5_000, 1_001, 500, 10), false),
            (packet(RST, 5_000, 0, 0, 0), false),
            (packet(RST | ACK, 0, 1_001, 0, 0), true),
            (packet(SYN, 5_000, 0, 500, 0), true),
        ] {
            let mut windows = Windows::new(&syn);
            assert!(windows.take(0, &syn));
            assert_eq!(windows.take(1, &wrong), is_fine, "{wrong:?}");
        }
    }

    #[test]
    fn ends_are_noticed() {
        let mut windows = opened(1_000, 5_000);
        assert!(windows.take(0, &packet(FIN | ACK, 1_001, 5_001, 500, 0)));
        assert!(!windows.is_over());
        assert!(windows.take(1, &packet(FIN | ACK, 5_001, 1_002, 500, 0)));
        assert!(windows.is_over());
        let mut windows = opened(1_000, 5_000);
        assert!(windows.take(1, &packet(RST, 5_001, 0, 0, 0)));
        assert!(windows.is_over());
        // what was on its way, then what shows that the reset was forged
        assert!(windows.take(0, &packet(ACK, 1_001, 5_001, 500, 10)));
        assert!(windows.is_over());
        assert!(windows.take(1, &packet(ACK, 5_001, 1_011, 500, 10)));
        assert!(!windows.is_over());
    }

    #[test]
    fn a_copy_is_judged_with_patience_until_a_side_is_heard() {
        let mut copy = opened(1_000, 5_000);
        copy.set_behind();
        let far = 1_001 + 20_000_000;
        let beyond = packet(ACK, 1_001 + 200_000_000, 5_001, 500, 10);
        assert!(!copy.clone().take(0, &beyond), "more than any copy is late");
        let inside = packet(ACK, far, 5_001 + 3_000_000, 500, 10);
        assert!(copy.take(0, &inside));
        let outside = packet(ACK, 5_001 + 3_000_000, far + 10, 500, 10);
        assert!(copy.take(1, &outside));
        assert!(!copy.sides.iter().any(|side| side.is_behind));
        for (from, wrong) in [
            (0, packet(ACK, far + 100_000, 5_001 + 3_000_010, 500, 10)),
            (0, packet(ACK, far + 10, 5_001 + 3_000_011, 500, 10)),
            (1, packet(ACK, 5_001 + 3_100_000, far + 10, 500, 10)),
        ] {
            assert!(!copy.clone().take(from, &wrong), "{from}: {wrong:?}");
        }
    }

    #[test]
    fn copies_follow_in_steps() {
        let mut windows = opened(1_000, 5_000);
        let (mut steps, mut seq) = (0, 1_001);
        for _ in 0..1_000 {
            let end = windows.sides[0].end;
            assert!(windows.take(0, &packet(ACK, seq, 5_001, 500, 50_000)));
            seq += 50_000;
            assert!(windows.take(1, &packet(ACK, 5_001, seq, 500, 0)));
            steps += u32::from(windows.sides[0].has_stepped(end));
        }
        assert_eq!(steps, (1_001 + 50_000_000) / STEP);
    }

    #[test]
    fn a_connection_from_before_is_not_judged() {
        let first = packet(ACK, 77, 88, 1, 3);
        let mut windows = Windows::new(&first);
        assert!(windows.take(0, &first));
        assert!(windows.take(1, &packet(ACK, 4_000_000_000, 9, 1, 3)));
        assert!(windows.is_open());
    }
}
