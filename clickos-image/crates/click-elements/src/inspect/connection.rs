// SPDX-License-Identifier: Apache-2.0
//! A TCP connection: where its streams begin, and which segments belong to it.
use super::segment::Reason;
use super::stream::Stream;
use crate::guard::seen::Tcp;
use crate::guard::window::Windows;

/// A connection; its client is side 0.
#[derive(Clone, Debug)]
pub struct Connection {
    windows: Windows,
    pub streams: [Stream; 2],
    /// The server has answered, so the streams have their first numbers.
    is_answered: bool,
    /// Another first packet of the client, to which the server has not answered.
    again: Option<Windows>,
    /// It was there before, so the streams may have begun before their first numbers.
    is_loose: bool,
}

/// What a segment is to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its data counts.
    Data,
    /// It has none that counts.
    Control,
    /// It begins another connection.
    Begins,
    /// It is the answer with which another connection has begun in place of this one.
    Begun,
}

impl Connection {
    /// One that begins with a packet of its client.
    pub fn new(tcp: &Tcp) -> Self {
        let mut windows = Windows::new(tcp);
        windows.take(0, tcp);
        Self {
            windows,
            streams: Default::default(),
            is_answered: false,
            again: None,
            is_loose: false,
        }
    }

    /// One that was there before, of which the first packet seen is from its client.
    pub fn from_before(tcp: &Tcp) -> Self {
        let mut found = Self::new(tcp);
        found.streams[0].begin(tcp.seq);
        if let Some(ack) = tcp.ack {
            found.streams[1].begin(ack);
        }
        (found.is_answered, found.is_loose) = (true, true);
        found
    }

    /// True while both sides may send.
    pub fn is_open(&self) -> bool {
        self.is_answered && !self.windows.is_over()
    }

    pub fn is_answered(&self) -> bool {
        self.is_answered
    }

    pub fn is_loose(&self) -> bool {
        self.is_loose
    }

    /// The window for a segment of a side that offers more than `most` bytes.
    pub fn smaller_window(&self, side: usize, tcp: &Tcp, most: usize) -> Option<u16> {
        // the shifts of one that was there before are not known
        let scale = match tcp.is_syn() {
            true => 0,
            false => self.windows.sides[side].scale,
        };
        let is_known = !self.windows.unknown;
        let window = u16::try_from(most >> scale).ok()?.max(1);
        (is_known && tcp.window > window).then_some(window)
    }

    /// The memory of its streams.
    pub fn cost(&self) -> usize {
        self.streams.iter().map(Stream::cost).sum()
    }

    /// Judges a segment of a side.
    pub fn judge(&mut self, side: usize, tcp: &Tcp) -> Result<Kind, Reason> {
        if tcp.begins() {
            return self.ask(side, tcp);
        }
        if tcp.is_syn() {
            return self.answer(side, tcp);
        }
        if tcp.is_rst() {
            return self.reset(side, tcp);
        }
        // no receiver takes data that acknowledges nothing (RFC 9293, section 3.10.7.4)
        if !self.is_answered || tcp.ack.is_none() {
            return Err(Reason::NoConnection);
        }
        if !self.windows.take(side, tcp) {
            return Err(Reason::BeyondWindow);
        }
        if self.streams[side].first().is_none() {
            self.streams[side].begin(tcp.seq);
        }
        Ok(Kind::Data)
    }

    /// A reset: it counts only with the number that its receiver waits for, since others can guess one within the window
    /// (RFC 5961, section 3).
    fn reset(&mut self, side: usize, tcp: &Tcp) -> Result<Kind, Reason> {
        let refuses = |mut asked: Windows| side == 1 && asked.take(1, tcp);
        if self.again.is_some_and(refuses) {
            self.again = None;
            return Ok(Kind::Control);
        }
        let mut windows = self.windows;
        if !windows.take(side, tcp) {
            return Err(Reason::BeyondWindow);
        }
        if !self.is_answered || self.streams[side].awaits(tcp.seq) {
            self.windows = windows;
        }
        Ok(Kind::Control)
    }

    /// A first packet: its data is not known to arrive, so it has none.
    fn ask(&mut self, side: usize, tcp: &Tcp) -> Result<Kind, Reason> {
        // a reset may be forged, so what it ended stays until the server answers
        if self.is_answered && self.windows.is_over() && !self.windows.is_reset() {
            return Ok(Kind::Begins);
        }
        if side != 0 || tcp.len > 0 {
            return Err(Reason::NoConnection);
        }
        let mut windows = Windows::new(tcp);
        windows.take(0, tcp);
        match self.is_answered {
            // the server may be the one that started again
            true => self.again = Some(windows),
            false => self.windows = windows,
        }
        Ok(Kind::Control)
    }

    /// The answer to a first packet says where both streams begin.
    fn answer(&mut self, side: usize, tcp: &Tcp) -> Result<Kind, Reason> {
        if side != 1 || tcp.len > 0 {
            return Err(Reason::NoConnection);
        }
        let (ack, first) = (tcp.ack.unwrap_or(0), tcp.seq.wrapping_add(1));
        if !self.is_answered {
            let fits = self.windows.take(1, tcp);
            return self.begin(fits, ack, first);
        }
        let same = self.streams[0].first() == Some(ack) && self.streams[1].first() == Some(first);
        if same {
            return Ok(Kind::Control);
        }
        let Some(mut windows) = self.again.filter(|_| tcp.ack.is_some()) else {
            return Err(Reason::BeyondWindow);
        };
        let fits = windows.take(1, tcp);
        if fits {
            (self.windows, self.again) = (windows, None);
            self.streams = Default::default();
            self.is_loose = false;
        }
        self.begin(fits, ack, first).map(|_| Kind::Begun)
    }

    fn begin(&mut self, fits: bool, ack: u32, first: u32) -> Result<Kind, Reason> {
        if !fits {
            return Err(Reason::BeyondWindow);
        }
        self.streams[0].begin(ack);
        self.streams[1].begin(first);
        self.is_answered = true;
        Ok(Kind::Control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: u8 = 2;
    const ACK: u8 = 16;

    fn tcp(flags: u8, seq: u32, ack: u32, len: u32) -> Tcp {
        Tcp {
            flags,
            seq,
            ack: (flags & ACK != 0).then_some(ack),
            window: 60_000,
            scale: None,
            len,
        }
    }

    fn open() -> Connection {
        let mut connection = Connection::new(&tcp(SYN, 100, 0, 0));
        assert_eq!(
            connection.judge(1, &tcp(SYN | ACK, 500, 101, 0)),
            Ok(Kind::Control)
        );
        assert_eq!(connection.judge(0, &tcp(ACK, 101, 501, 0)), Ok(Kind::Data));
        connection
    }

    #[test]
    fn the_answer_says_where_streams_begin() {
        let mut connection = Connection::new(&tcp(SYN, 7, 0, 0));
        assert_eq!(
            connection.judge(0, &tcp(ACK, 8, 1, 5)),
            Err(Reason::NoConnection)
        );
        assert_eq!(connection.judge(0, &tcp(SYN, 100, 0, 0)), Ok(Kind::Control));
        assert_eq!(
            connection.judge(1, &tcp(SYN | ACK, 500, 102, 0)),
            Err(Reason::BeyondWindow)
        );
        assert_eq!(
            connection.judge(1, &tcp(SYN | ACK, 500, 101, 0)),
            Ok(Kind::Control)
        );
        assert_eq!(connection.streams[0].first(), Some(101));
        // another answer would move the stream of a client that has not seen this one
        assert_eq!(
            connection.judge(1, &tcp(SYN | ACK, 900, 101, 0)),
            Err(Reason::BeyondWindow)
        );
        assert_eq!(
            connection.judge(1, &tcp(SYN | ACK, 500, 101, 0)),
            Ok(Kind::Control)
        );
    }

    #[test]
    fn first_packets_have_no_data_and_end_no_open_connection() {
        let mut connection = open();
        assert_eq!(
            connection.judge(0, &tcp(SYN, 9000, 0, 4)),
            Err(Reason::NoConnection)
        );
        assert_eq!(
            connection.judge(1, &tcp(SYN, 9000, 0, 0)),
            Err(Reason::NoConnection)
        );
        assert_eq!(
            connection.judge(0, &tcp(SYN, 9000, 0, 0)),
            Ok(Kind::Control)
        );
        assert_eq!(connection.judge(0, &tcp(ACK, 101, 501, 3)), Ok(Kind::Data));
        assert_eq!(connection.streams[0].first(), Some(101));
        // the server has started again, and answers
        assert_eq!(
            connection.judge(1, &tcp(SYN | ACK, 70, 9001, 0)),
            Ok(Kind::Begun)
        );
        assert_eq!(connection.streams[0].first(), Some(9001));
    }

    #[test]
    fn what_is_beyond_the_window_is_not_data() {
        let mut connection = open();
        let far = tcp(ACK, 101 + 200_000, 501, 3);
        assert_eq!(connection.judge(0, &far), Err(Reason::BeyondWindow));
    }
}
