// SPDX-License-Identifier: Apache-2.0
//! Bounds the work that strangers can ask for: a handshake costs this host three multiplications on the curve.
use super::Endpoint;
use super::crypto::{KEY, Key, MAC, mac, same};

/// Handshakes of one second before cookies are demanded, and those with a cookie.
const OPEN: u32 = 32;
const WITH_COOKIE: u32 = 64;
const SECOND_NS: u64 = 1_000_000_000;
/// A secret is good for two minutes (WireGuard's paper, section 5.4.7).
const SECRET_NS: u64 = 120 * SECOND_NS;

/// The decision about a message of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Read it.
    Open,
    /// Send its sender this cookie.
    Cookie([u8; MAC]),
    /// Drop it.
    Closed,
}

/// Counts handshakes by the second.
#[derive(Default)]
pub struct Doors {
    second: u64,
    open: u32,
    with_cookie: u32,
    secret: Key,
    secret_until_ns: u64,
}

impl Doors {
    /// Decides about a message from an address.
    pub fn judge(
        &mut self,
        message: &[u8],
        from: Endpoint,
        now_ns: u64,
        draw: &mut dyn FnMut() -> Key,
    ) -> Door {
        if now_ns / SECOND_NS != self.second {
            (self.second, self.open, self.with_cookie) = (now_ns / SECOND_NS, 0, 0);
        }
        if self.open < OPEN {
            self.open += 1;
            return Door::Open;
        }
        let cookie = self.cookie(from, now_ns, draw);
        let Some((text, last)) = message.split_last_chunk::<MAC>() else {
            return Door::Closed;
        };
        if !same(&mac(&cookie, &[text]), last) {
            return Door::Cookie(cookie);
        }
        if self.with_cookie == WITH_COOKIE {
            return Door::Closed;
        }
        self.with_cookie += 1;
        Door::Open
    }

    /// The cookie of an address: only who receives there knows it.
    fn cookie(&mut self, from: Endpoint, now_ns: u64, draw: &mut dyn FnMut() -> Key) -> [u8; MAC] {
        if self.secret == [0; KEY] || now_ns >= self.secret_until_ns {
            (self.secret, self.secret_until_ns) = (draw(), now_ns + SECRET_NS);
        }
        mac(&self.secret, &[&from.0.octets(), &from.1.to_be_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn a_flood_gets_cookies_and_a_host_with_one_gets_in() {
        let (mut doors, mut draw) = (Doors::default(), || [7; KEY]);
        let (here, there) = (
            (Ipv4Addr::new(1, 2, 3, 4), 5),
            (Ipv4Addr::new(1, 2, 3, 4), 6),
        );
        let mut message = [1; 148];
        for _ in 0..OPEN {
            assert_eq!(doors.judge(&message, here, 0, &mut draw), Door::Open);
        }
        let Door::Cookie(cookie) = doors.judge(&message, here, 0, &mut draw) else {
            panic!("no cookie");
        };
        let signed = mac(&cookie, &[&message[..132]]);
        message[132..].copy_from_slice(&signed);
        for _ in 0..WITH_COOKIE {
            assert_eq!(doors.judge(&message, here, 0, &mut draw), Door::Open);
        }
        assert_eq!(doors.judge(&message, here, 0, &mut draw), Door::Closed);
        assert!(matches!(
            doors.judge(&message, there, 0, &mut draw),
            Door::Cookie(_)
        ));
        assert_eq!(
            doors.judge(&message, there, SECOND_NS, &mut draw),
            Door::Open
        );
    }
}
