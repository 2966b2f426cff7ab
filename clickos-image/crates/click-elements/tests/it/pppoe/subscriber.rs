// SPDX-License-Identifier: Apache-2.0
//! A router with the element, and a subscriber that dials in.

use click_core::Router;
use md5::{Digest, Md5};

use crate::devices::{Memory, devices, environment};

pub const AC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const ALL: [u8; 6] = [0xff; 6];
pub const SECOND_NS: u64 = 1_000_000_000;

pub fn config(arguments: &str) -> String {
    format!(
        "FromDevice(0) -> s :: PPPoEServer(02:00:00:00:00:01, 10.0.0.1, {arguments});
         s[0] -> Queue(9000) -> ToDevice(0); FromDevice(1) -> [1] s; s[1] -> Queue(9000) -> ToDevice(1);
         FromDevice(2) -> [2] s; s[2] -> Queue(9000) -> ToDevice(2); s[3] -> Queue(9000) -> ToDevice(3);"
    )
}

pub const USERS: &str =
    "amy 10.0.0.2, bob 10.0.0.3 100kBps 100kBps, PASSWORDS \"amy one, bob two\", DNS 9.9.9.9";

/// A router with four devices: subscribers, IPv4, RADIUS servers, IPv6. And the time.
pub struct Bench {
    pub router: Router,
    pub devices: [Memory; 4],
    pub now_ns: u64,
}

impl Bench {
    pub fn new(arguments: &str) -> Self {
        Self::of(&config(arguments))
    }

    pub fn of(config: &str) -> Self {
        let devices = devices();
        let environment = environment(&devices);
        let now_ns = 1_000 * SECOND_NS;
        let registry = click_elements::registry();
        let router = Router::build("t", config, &registry, environment, now_ns).unwrap();
        Self {
            router,
            devices,
            now_ns,
        }
    }

    /// Puts frames into a device and returns what leaves by it.
    pub fn exchange(&mut self, device: usize, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        self.devices[device]
            .borrow_mut()
            .input
            .extend(frames.iter().cloned());
        for _ in 0..200 {
            self.router.run(self.now_ns);
        }
        self.sent(device)
    }

    pub fn sent(&mut self, device: usize) -> Vec<Vec<u8>> {
        self.devices[device].borrow_mut().output.drain(..).collect()
    }

    pub fn wait(&mut self, seconds: u64) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        for _ in 0..seconds {
            self.now_ns += SECOND_NS;
            sent.extend(self.exchange(0, &[]));
        }
        sent
    }

    pub fn read(&mut self, handler: &str) -> String {
        let value = self.router.read_handler(handler, "", self.now_ns).unwrap();
        String::from_utf8(value).unwrap()
    }

    pub fn write(&mut self, handler: &str, value: &str) {
        let writes = [(handler, value.as_bytes())];
        self.router.write_handlers(&writes, self.now_ns).unwrap();
    }
}

pub fn ethernet(to: [u8; 6], from: [u8; 6], kind: u16, payload: &[u8]) -> Vec<u8> {
    [&to[..], &from, &kind.to_be_bytes(), payload].concat()
}

pub fn pppoe(code: u8, session: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap();
    [
        &[0x11, code],
        &session.to_be_bytes()[..],
        &length.to_be_bytes(),
        payload,
    ]
    .concat()
}

pub fn tag(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap();
    [&kind.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
}

pub fn find_tag(tags: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = tags;
    while rest.len() >= 4 {
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        if rest[..2] == kind.to_be_bytes() {
            return Some(&rest[4..4 + length]);
        }
        rest = &rest[4 + length..];
    }
    None
}

pub fn ip_packet(from: [u8; 4], to: [u8; 4], length: u16) -> Vec<u8> {
    let mut packet = vec![0; usize::from(length)];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[8..10].copy_from_slice(&[64, 17]);
    packet[12..16].copy_from_slice(&from);
    packet[16..20].copy_from_slice(&to);
    packet
}

/// A subscriber: it answers what the server sends until its IPv4 is up.
pub struct Client {
    pub mac: [u8; 6],
    pub name: &'static str,
    pub password: &'static str,
    /// It refuses CHAP.
    pub pap: bool,
    /// The option that it proposes instead.
    pub proposes: &'static [u8],
    pub session: u16,
    pub address: [u8; 4],
    pub dns: [u8; 4],
    /// The link's and IPv4's negotiation: the server accepts ours, we accept the server's.
    pub link: [bool; 2],
    pub network: [bool; 2],
    /// It asks for IPv6, with this interface identifier; the same for that.
    pub identifier: Option<[u8; 8]>,
    pub network6: [bool; 2],
    /// IPv6 packets of the server.
    pub packets6: Vec<Vec<u8>>,
    pub is_over: bool,
    pub failed: bool,
}

impl Client {
    pub fn new(n: u8, name: &'static str, password: &'static str) -> Self {
        Self {
            mac: [2, 0, 0, 0, 9, n],
            name,
            password,
            pap: false,
            proposes: &[3, 4, 0xc0, 0x23],
            session: 0,
            address: [0; 4],
            dns: [0; 4],
            link: [false; 2],
            network: [false; 2],
            identifier: None,
            network6: [false; 2],
            packets6: Vec::new(),
            is_over: false,
            failed: false,
        }
    }

    pub fn is_up(&self) -> bool {
        self.network == [true; 2] && !self.is_over
    }

    pub fn padi(&self) -> Vec<u8> {
        let tags = [
            tag(0x0101, b""),
            tag(0x0103, b"host"),
            tag(0x0110, b"relay"),
        ]
        .concat();
        ethernet(ALL, self.mac, 0x8863, &pppoe(0x09, 0, &tags))
    }

    pub fn padr(&self, cookie: &[u8]) -> Vec<u8> {
        let tags = [tag(0x0101, b""), tag(0x0103, b"host"), tag(0x0104, cookie)].concat();
        ethernet(AC, self.mac, 0x8863, &pppoe(0x19, 0, &tags))
    }

    pub fn packet(&self, packet: &[u8]) -> Vec<u8> {
        ethernet(AC, self.mac, 0x8864, &pppoe(0, self.session, packet))
    }

    pub fn control(&self, protocol: u16, code: u8, id: u8, data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(data.len() + 4).unwrap();
        let parts = [
            &protocol.to_be_bytes()[..],
            &[code, id],
            &length.to_be_bytes(),
            data,
        ];
        self.packet(&parts.concat())
    }

    /// Works until both ends have nothing to say.
    pub fn dial(&mut self, bench: &mut Bench) {
        let mut sends = vec![self.padi()];
        for _ in 0..40 {
            let answers = bench.exchange(0, &sends);
            sends = answers
                .iter()
                .flat_map(|frame| self.answer(frame))
                .collect();
            if sends.is_empty() {
                return;
            }
        }
        panic!("it never ends");
    }

    pub fn answer(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        if frame[..6] != self.mac {
            return Vec::new();
        }
        assert_eq!(frame[6..12], AC);
        let length = usize::from(u16::from_be_bytes([frame[18], frame[19]]));
        let (code, session) = (frame[15], u16::from_be_bytes([frame[16], frame[17]]));
        let payload = &frame[20..20 + length];
        match (&frame[12..14], code) {
            ([0x88, 0x63], 0x07) => {
                assert_eq!(find_tag(payload, 0x0103), Some(&b"host"[..]));
                assert_eq!(find_tag(payload, 0x0110), Some(&b"relay"[..]));
                vec![self.padr(find_tag(payload, 0x0104).unwrap())]
            }
            ([0x88, 0x63], 0x65) => {
                self.session = session;
                self.is_over = session == 0;
                vec![self.control(0xc021, 1, 9, &[1, 4, 5, 0xd4, 5, 6, 1, 2, 3, 4])]
            }
            ([0x88, 0x63], 0xa7) => {
                assert_eq!(session, self.session);
                self.is_over = true;
                Vec::new()
            }
            ([0x88, 0x64], 0) if session == self.session => self.ppp(payload),
            _ => Vec::new(),
        }
    }

    pub fn ppp(&mut self, payload: &[u8]) -> Vec<Vec<u8>> {
        let protocol = u16::from_be_bytes([payload[0], payload[1]]);
        if protocol == 0x0057 {
            self.packets6.push(payload[2..].to_vec());
            return Vec::new();
        }
        let (code, id) = (payload[2], payload[3]);
        let length = usize::from(u16::from_be_bytes([payload[4], payload[5]]));
        let data = &payload[6..2 + length];
        match (protocol, code) {
            (0xc021, 1) if self.pap && data.windows(3).any(|w| w == [0xc2, 0x23, 5]) => {
                vec![self.control(0xc021, 3, id, self.proposes)]
            }
            (0xc021, 1) => {
                self.link[1] = true;
                let ack = self.control(0xc021, 2, id, data);
                [vec![ack], self.login()].concat()
            }
            (0xc021, 2) => {
                self.link[0] = true;
                self.login()
            }
            (0xc021, 9) => vec![self.control(0xc021, 10, id, &[1, 2, 3, 4])],
            (0xc223, 1) => {
                let challenge = &data[1..=usize::from(data[0])];
                let sum = Md5::digest([&[id], self.password.as_bytes(), challenge].concat());
                let answer = [&[16], &sum[..], self.name.as_bytes()].concat();
                vec![self.control(0xc223, 2, id, &answer)]
            }
            (0xc223, 3) | (0xc023, 2) => {
                let ask6 = self.identifier.map(|_| self.ask6());
                ask6.into_iter().chain([self.ask()]).collect()
            }
            (0x8057, 1) => {
                self.network6[1] = true;
                vec![self.control(0x8057, 2, id, data)]
            }
            (0x8057, 2) => {
                self.network6[0] = true;
                Vec::new()
            }
            (0x8057, 3) => {
                self.identifier = data[2..10].try_into().ok();
                vec![self.ask6()]
            }
            (0xc223, 4) | (0xc023, 3) => {
                self.failed = true;
                Vec::new()
            }
            (0x8021, 1) => {
                assert_eq!(data, [3, 6, 10, 0, 0, 1]);
                self.network[1] = true;
                vec![self.control(0x8021, 2, id, data)]
            }
            (0x8021, 2) => {
                self.network[0] = true;
                Vec::new()
            }
            (0x8021, 3) => {
                for option in data.chunks(6) {
                    let value = option[2..].try_into().unwrap();
                    match option[0] {
                        3 => self.address = value,
                        _ => self.dns = value,
                    }
                }
                vec![self.ask()]
            }
            _ => Vec::new(),
        }
    }

    /// A PAP request, once the link is up.
    pub fn login(&self) -> Vec<Vec<u8>> {
        if !self.pap || self.link != [true; 2] {
            return Vec::new();
        }
        let length = |text: &str| u8::try_from(text.len()).unwrap();
        let mut data = vec![length(self.name)];
        data.extend(self.name.bytes());
        data.push(length(self.password));
        data.extend(self.password.bytes());
        vec![self.control(0xc023, 1, 3, &data)]
    }

    pub fn ask(&self) -> Vec<u8> {
        let options = [&[3, 6], &self.address[..], &[129, 6], &self.dns].concat();
        self.control(0x8021, 1, 5, &options)
    }

    pub fn ask6(&self) -> Vec<u8> {
        let option = [&[1, 10], &self.identifier.unwrap_or_default()[..]].concat();
        self.control(0x8057, 1, 6, &option)
    }

    pub fn sends6(&self, packet: &[u8]) -> Vec<u8> {
        self.packet(&[&[0, 0x57], packet].concat())
    }

    pub fn sends(&self, from: [u8; 4], length: u16) -> Vec<u8> {
        let packet = ip_packet(from, [8, 8, 8, 8], length);
        self.packet(&[&[0, 0x21], &packet[..]].concat())
    }
}

pub fn up(bench: &mut Bench, n: u8, name: &'static str, password: &'static str) -> Client {
    let mut client = Client::new(n, name, password);
    client.dial(bench);
    assert!(client.is_up(), "{}", bench.read("s.sessions"));
    client
}
