// SPDX-License-Identifier: Apache-2.0
//! Random frames of a guest and to it, most of them nearly right.

/// A generator of numbers (xorshift), so a failure repeats. It remembers the last IP packet to the
/// guest and from it, for errors about them.
pub struct Random(u64, [(u16, Vec<u8>); 2]);

pub const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const PAIR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];
const OTHER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OWN_V4: [u8; 4] = [10, 0, 0, 5];
const OWN_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
const LOCAL_V6: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 1];
const OTHER_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
const FAR_V6: [u8; 16] = [0x20, 1, 0xd, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const STRANGE_V6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
const MESSAGES: [u8; 16] = [
    0, 3, 5, 8, 9, 128, 129, 131, 133, 134, 135, 136, 137, 143, 17, 0x16,
];
const PORTS: [u16; 8] = [67, 68, 546, 547, 53, 80, 5000, 443];
const PROTOCOLS: [u8; 15] = [6, 17, 17, 17, 17, 1, 58, 58, 58, 58, 58, 2, 33, 132, 136];
const ERRORS: [u8; 9] = [1, 2, 3, 3, 4, 5, 11, 12, 128];
const EXTENSIONS: [u8; 10] = [0, 43, 44, 51, 60, 135, 139, 140, 253, 44];

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed, Default::default())
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// A frame from the guest, or to it.
    pub fn frame(&mut self, from_guest: bool) -> Vec<u8> {
        let mac = if self.chance(8) {
            self.one(&[PAIR_MAC, OTHER_MAC])
        } else {
            OWN_MAC
        };
        let (source, destination) = match from_guest {
            true => (mac, OTHER_MAC),
            false => (OTHER_MAC, OWN_MAC),
        };
        let has_error = matches!(self.1[usize::from(!from_guest)].0, 0x0800 | 0x86dd);
        let (kind, payload) = match self.below(10) {
            0 => (0x0806, self.arp(mac)),
            9 if has_error && self.chance(2) => self.error(from_guest),
            1..5 => (0x0800, self.ipv4(from_guest)),
            5..9 => (0x86dd, self.ipv6(mac, from_guest)),
            _ => (self.one(&[0x8100, 0x88cc, 0x8809, 0x0800, 5]), vec![0; 60]),
        };
        if payload.len() >= 40 {
            self.1[usize::from(from_guest)] = (kind, payload.clone());
        }
        let mut frame: Vec<u8> = destination.into_iter().chain(source).collect();
        if self.chance(60) {
            frame[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, self.below(20) as u8]);
        }
        frame.extend(u16::to_be_bytes(kind));
        frame.extend(payload);
        self.spoil(&mut frame);
        frame
    }

    /// An ICMP error about the last packet of the other side, most of them right.
    fn error(&mut self, from_guest: bool) -> (u16, Vec<u8>) {
        let (kind, about) = self.1[usize::from(!from_guest)].clone();
        let mut message = vec![self.one(&ERRORS), self.one(&[0, 1, 4]), 0, 0, 0, 0, 0, 0];
        let quoted = [about.len(), about.len(), 28, 24, 20].map(|n| n.min(about.len()));
        message.extend(&about[..self.one(&quoted)]);
        let sender = |width, at| {
            about
                .get(at..at + width)
                .unwrap_or(&about[..width])
                .to_vec()
        };
        match kind {
            0x0800 => {
                let source = if from_guest { OWN_V4 } else { [192, 0, 2, 9] };
                let mut packet = vec![0x45, 0];
                packet.extend((20 + message.len() as u16).to_be_bytes());
                packet.extend([0, 7, 0, 0, 64, 1, 0, 0]);
                packet.extend(source);
                packet.extend(sender(4, 12));
                (kind, [packet, message].concat())
            }
            _ => {
                let source = if from_guest { OWN_V6 } else { FAR_V6 };
                let mut packet = vec![0x60, 0, 0, 0];
                packet.extend((message.len() as u16).to_be_bytes());
                packet.extend([58, 64]);
                packet.extend(source);
                packet.extend(sender(16, 8));
                (kind, [packet, message].concat())
            }
        }
    }

    fn spoil(&mut self, frame: &mut Vec<u8>) {
        if self.chance(8) {
            let at = 12 + self.below(frame.len() - 12);
            frame[at] = self.one(&[0, 1, 2, 58, 128, 255]);
        }
        if self.chance(20) {
            frame.truncate(14 + self.below(frame.len() - 13));
        }
        if self.chance(10) {
            frame.extend([0; 9]);
        }
    }

    fn arp(&mut self, mac: [u8; 6]) -> Vec<u8> {
        let mut message = vec![0, 1, 8, 0, 6, 4, 0, self.one(&[1, 1, 2, 3])];
        message.extend(if self.chance(6) { OTHER_MAC } else { mac });
        message.extend(self.one(&[OWN_V4, OWN_V4, [0; 4], [10, 0, 0, 7]]));
        message.extend([0; 6]);
        message.extend(self.one(&[OWN_V4, [10, 0, 0, 7]]));
        message
    }

    fn ends<T: Copy>(&mut self, from_guest: bool, own: &[T], other: &[T]) -> (T, T) {
        let (own, other) = (self.one(own), self.one(other));
        if from_guest {
            (own, other)
        } else {
            (other, own)
        }
    }

    fn ipv4(&mut self, from_guest: bool) -> Vec<u8> {
        let own = [
            OWN_V4,
            OWN_V4,
            OWN_V4,
            [10, 0, 0, 9],
            [172, 16, 3, 4],
            [0; 4],
        ];
        let other = [[10, 0, 0, 7], [192, 0, 2, 1], [10, 1, 2, 3]];
        let (source, destination) = self.ends(from_guest, &own, &other);
        let protocol = self.one(&PROTOCOLS);
        let options = if self.chance(6) {
            self.options()
        } else {
            Vec::new()
        };
        let mut next = protocol;
        let mut body = self.body(protocol);
        if self.chance(12) {
            let mut header = vec![protocol, self.one(&[0, 1, 4]), 0, 0, 0, 0, 0, 0];
            header.extend([0; 4]);
            header.extend(body);
            (next, body) = (51, header);
        }
        let length = 20 + options.len() + body.len();
        let mut packet = vec![0x45 + options.len() as u8 / 4, self.one(&[0, 0, 16])];
        packet.extend((length as u16).to_be_bytes());
        packet.extend([0, 7]);
        packet.extend(self.fragment(0x2000, 1).to_be_bytes());
        packet.extend([64, next, 0, 0]);
        packet.extend(source);
        packet.extend(destination);
        packet.extend(options);
        if !self.chance(10) {
            let words = packet
                .chunks(2)
                .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
            let sum: u32 = words.sum();
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packet.extend(body);
        packet
    }

    /// The field of a fragment: mostly of a whole packet.
    fn fragment(&mut self, more: u16, unit: u16) -> u16 {
        match self.below(12) {
            0 => more,
            1 => self.one(&[1, 2, 3, 4, 8000]) * unit,
            2 => (self.one(&[1, 3, 5]) * unit) | more,
            _ => 0,
        }
    }

    fn options(&mut self) -> Vec<u8> {
        let mut options = Vec::new();
        for _ in 0..self.below(4) {
            let option: &[u8] = match self.below(6) {
                0 => &[1],
                1 => &[0],
                2 => &[131, 4, 4, 0],
                3 => &[7, 3, 4],
                4 => &[148, 4, 0, 0],
                _ => &[68, 0],
            };
            options.extend(option);
        }
        options.resize(options.len().div_ceil(4) * 4, 1);
        options
    }

    fn ipv6(&mut self, mac: [u8; 6], from_guest: bool) -> Vec<u8> {
        let own = [OWN_V6, OWN_V6, LOCAL_V6, [0; 16], STRANGE_V6];
        let other = [OTHER_V6, FAR_V6];
        let (source, destination) = self.ends(from_guest, &own, &other);
        let protocol = self.one(&PROTOCOLS);
        let mut next = protocol;
        let mut body = match protocol == 58 && self.chance(2) {
            true => self.discovery(mac),
            false => self.body(protocol),
        };
        for _ in 0..[0, 0, 0, 1, 2, 3, 10][self.below(7)] {
            (next, body) = self.extension(next, body);
        }
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((body.len() as u16).to_be_bytes());
        packet.extend([next, 64]);
        packet.extend(source);
        packet.extend(destination);
        packet.extend(body);
        packet
    }

    fn extension(&mut self, next: u8, body: Vec<u8>) -> (u8, Vec<u8>) {
        let kind = self.one(&EXTENSIONS);
        let mut header = vec![next, 0, 0, 0, 0, 0, 0, 0];
        match kind {
            44 => {
                let field = self.fragment(1, 8);
                header[2..4].copy_from_slice(&field.to_be_bytes());
            }
            43 => header[3] = u8::from(self.chance(3)),
            51 => {
                header[1] = self.one(&[0, 1, 2]);
                header.resize((usize::from(header[1]) + 2) * 4, 0);
            }
            _ => {
                header[1] = self.one(&[0, 0, 1]);
                header.resize((usize::from(header[1]) + 1) * 8, 0);
            }
        }
        header.extend(body);
        (kind, header)
    }

    fn discovery(&mut self, mac: [u8; 6]) -> Vec<u8> {
        let kind = self.one(&[133, 135, 135, 136, 136, 137]);
        let mut message = vec![kind, 0, 0, 0, 0, 0, 0, 0];
        if kind != 133 {
            message.extend(self.one(&[OWN_V6, LOCAL_V6, OTHER_V6]));
        }
        for _ in 0..self.below(3) {
            let units = self.one(&[1, 1, 1, 2, 0, 9]);
            message.extend([self.one(&[1, 2, 14]), units]);
            message.extend(if self.chance(5) { OTHER_MAC } else { mac });
            message.resize(
                message.len() + 8 * usize::from(units.min(2)).saturating_sub(1),
                0,
            );
        }
        message
    }

    fn body(&mut self, protocol: u8) -> Vec<u8> {
        let mut body = Vec::new();
        match protocol {
            1 | 2 | 58 => body.extend([
                self.one(&MESSAGES),
                self.one(&[0, 0, 1]),
                0,
                0,
                0,
                self.below(3) as u8,
            ]),
            _ => {
                body.extend(self.one(&PORTS).to_be_bytes());
                body.extend(self.one(&PORTS).to_be_bytes());
            }
        }
        let length = self.one(&[1, 3, 5, 7, 8, 23, 24, 30, 40]);
        body.resize(length, 0);
        body
    }
}
