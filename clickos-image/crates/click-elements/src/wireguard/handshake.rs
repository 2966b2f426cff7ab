// SPDX-License-Identifier: Apache-2.0
//! The handshake: Noise IKpsk2 in two messages (WireGuard's paper, sections 5.4.2 to 5.4.5).
use x25519_dalek::{PublicKey, StaticSecret};

use super::crypto::{KEY, Key, LONG_NONCE, MAC, TAG, derive, hash, mac, open, same, seal};
use super::crypto::{open_long, seal_long};

const CONSTRUCTION: &[u8] = b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
const IDENTIFIER: &[u8] = b"WireGuard v1 zx2c4 Jason@zx2c4.com";
const LABEL_MAC1: &[u8] = b"mac1----";
const LABEL_COOKIE: &[u8] = b"cookie--";

/// Types of messages.
pub const INITIATION: u8 = 1;
/// The answer to an initiation.
pub const RESPONSE: u8 = 2;
/// The answer of a busy host.
pub const COOKIE: u8 = 3;
/// An encrypted packet.
pub const DATA: u8 = 4;

/// Bytes of an initiation.
pub const INITIATION_LENGTH: usize = 148;
/// Bytes of a response.
pub const RESPONSE_LENGTH: usize = 92;
/// Bytes of a cookie reply.
pub const COOKIE_LENGTH: usize = 64;
/// The two keyed hashes at the end of both.
pub const MACS: usize = 2 * MAC;
/// Bytes of a time (TAI64N).
pub const TIMESTAMP: usize = 12;

/// This host's keys.
pub struct Own {
    private: StaticSecret,
    /// The public key.
    pub public: Key,
    mac1: Key,
    cookie: Key,
}

impl Own {
    /// The keys that belong to a private one.
    pub fn new(private: Key) -> Self {
        let private = StaticSecret::from(private);
        let public = PublicKey::from(&private).to_bytes();
        Self {
            private,
            public,
            mac1: hash(&[LABEL_MAC1, &public]),
            cookie: hash(&[LABEL_COOKIE, &public]),
        }
    }

    /// True if a message's first keyed hash shows that its sender knows our public key.
    pub fn is_for_us(&self, message: &[u8]) -> bool {
        let Some((text, macs)) = message.split_last_chunk::<MACS>() else {
            return false;
        };
        same(&mac(&self.mac1, &[text]), &macs[..MAC])
    }

    /// A cookie reply to a message. Its sender puts a keyed hash with the cookie into the next one.
    pub fn cookie_reply(
        &self,
        message: &[u8],
        cookie: &[u8; MAC],
        nonce: &[u8; LONG_NONCE],
    ) -> Option<[u8; COOKIE_LENGTH]> {
        let (_, macs) = message.split_last_chunk::<MACS>()?;
        let mut reply = [0; COOKIE_LENGTH];
        reply[0] = COOKIE;
        reply[4..8].copy_from_slice(message.get(4..8)?);
        reply[8..32].copy_from_slice(nonce);
        reply[32..48].copy_from_slice(cookie);
        let tag = seal_long(&self.cookie, nonce, &macs[..MAC], &mut reply[32..48]);
        reply[48..].copy_from_slice(&tag);
        Some(reply)
    }
}

/// A peer's public key, and what follows from it.
#[derive(Clone)]
pub struct Remote {
    /// The public key.
    pub public: Key,
    /// The key that both know besides; zeros without one.
    pub preshared: Key,
    mac1: Key,
    cookie: Key,
}

impl Remote {
    /// A peer by its keys.
    pub fn new(public: Key, preshared: Key) -> Self {
        Self {
            public,
            preshared,
            mac1: hash(&[LABEL_MAC1, &public]),
            cookie: hash(&[LABEL_COOKIE, &public]),
        }
    }

    /// Fills in the keyed hashes at the end of a message; the first one.
    pub fn sign(&self, message: &mut [u8], cookie: Option<&[u8; MAC]>) -> [u8; MAC] {
        let at = message.len() - MACS;
        let first = mac(&self.mac1, &[&message[..at]]);
        message[at..at + MAC].copy_from_slice(&first);
        let second = cookie.map_or([0; MAC], |key| mac(key, &[&message[..at + MAC]]));
        message[at + MAC..].copy_from_slice(&second);
        first
    }

    /// The cookie of a reply to the message with this first keyed hash.
    pub fn read_cookie(&self, reply: &[u8; COOKIE_LENGTH], first: &[u8; MAC]) -> Option<[u8; MAC]> {
        let (nonce, tag) = (reply[8..].first_chunk()?, reply.last_chunk()?);
        let mut cookie: [u8; MAC] = *reply[32..].first_chunk()?;
        open_long(&self.cookie, nonce, first, &mut cookie, tag).then_some(cookie)
    }
}

/// The two keys of a session, as the peer whose they are uses them.
pub struct Keys {
    /// Encrypts what we send.
    pub send: Key,
    /// Decrypts what we receive.
    pub receive: Key,
}

/// The state of a handshake that both sides share.
#[derive(Clone)]
struct Transcript {
    chain: Key,
    hash: Key,
}

impl Transcript {
    fn new(responder: &Key) -> Self {
        let chain = hash(&[CONSTRUCTION]);
        let first = hash(&[&chain, IDENTIFIER]);
        Self {
            chain,
            hash: hash(&[&first, responder]),
        }
    }

    fn note(&mut self, text: &[u8]) {
        self.hash = hash(&[&self.hash, text]);
    }

    fn mix(&mut self, input: &[u8]) {
        [self.chain] = derive(&self.chain, input);
    }

    /// A key for one text.
    fn key(&mut self, input: &[u8]) -> Key {
        let [chain, key] = derive(&self.chain, input);
        self.chain = chain;
        key
    }

    /// Encrypts a field of a message, whose last bytes become the tag.
    fn seal(&mut self, key: &Key, field: &mut [u8]) {
        let (text, tag) = field.split_at_mut(field.len() - TAG);
        tag.copy_from_slice(&seal(key, 0, &self.hash, text));
        self.note(field);
    }

    fn open<const N: usize>(&mut self, key: &Key, field: &[u8]) -> Option<[u8; N]> {
        let (text, tag) = field.split_last_chunk::<TAG>()?;
        let mut plain: [u8; N] = text.try_into().ok()?;
        let good = open(key, 0, &self.hash, &mut plain, tag);
        self.note(field);
        good.then_some(plain)
    }

    /// Mixes the preshared key in; the key of the response's empty field.
    fn preshare(&mut self, preshared: &Key) -> Key {
        let [chain, text, key] = derive(&self.chain, preshared);
        self.chain = chain;
        self.note(&text);
        key
    }

    fn session(&self) -> [Key; 2] {
        derive(&self.chain, &[])
    }
}

/// The secret of two keys; `None` for points that reveal it.
fn agree(private: &StaticSecret, public: &Key) -> Option<Key> {
    let shared = private.diffie_hellman(&PublicKey::from(*public));
    shared.was_contributory().then(|| shared.to_bytes())
}

/// An initiation that waits for its response.
pub struct Initiated {
    transcript: Transcript,
    ephemeral: StaticSecret,
}

/// Makes an initiation without its keyed hashes; `None` if the peer's key is invalid.
pub fn initiate(
    own: &Own,
    remote: &Remote,
    ephemeral: Key,
    index: u32,
    timestamp: &[u8; TIMESTAMP],
) -> Option<(Initiated, [u8; INITIATION_LENGTH])> {
    let ephemeral = StaticSecret::from(ephemeral);
    let point = PublicKey::from(&ephemeral).to_bytes();
    let mut transcript = Transcript::new(&remote.public);
    let mut message = [0; INITIATION_LENGTH];
    message[0] = INITIATION;
    message[4..8].copy_from_slice(&index.to_le_bytes());
    message[8..40].copy_from_slice(&point);
    transcript.mix(&point);
    transcript.note(&point);
    let key = transcript.key(&agree(&ephemeral, &remote.public)?);
    message[40..72].copy_from_slice(&own.public);
    transcript.seal(&key, &mut message[40..88]);
    let key = transcript.key(&agree(&own.private, &remote.public)?);
    message[88..100].copy_from_slice(timestamp);
    transcript.seal(&key, &mut message[88..116]);
    Some((
        Initiated {
            transcript,
            ephemeral,
        },
        message,
    ))
}

/// An initiation whose sender is known and not proven.
pub struct Claimed {
    /// The public key that it claims.
    pub public: Key,
    /// The number of the session at its side.
    pub sender: u32,
    transcript: Transcript,
    point: Key,
}

/// An initiation of a proven peer.
pub struct Proven {
    /// When it was sent; each is later than those before.
    pub timestamp: [u8; TIMESTAMP],
    claimed: Claimed,
}

/// Reads whose an initiation claims to be.
pub fn read_initiation(own: &Own, message: &[u8; INITIATION_LENGTH]) -> Option<Claimed> {
    let point: Key = *message[8..].first_chunk()?;
    let mut transcript = Transcript::new(&own.public);
    transcript.mix(&point);
    transcript.note(&point);
    let key = transcript.key(&agree(&own.private, &point)?);
    Some(Claimed {
        public: transcript.open(&key, &message[40..88])?,
        sender: u32::from_le_bytes(*message[4..].first_chunk()?),
        transcript,
        point,
    })
}

impl Claimed {
    /// Proves that the peer made the initiation.
    pub fn prove(mut self, own: &Own, message: &[u8; INITIATION_LENGTH]) -> Option<Proven> {
        let key = self.transcript.key(&agree(&own.private, &self.public)?);
        let timestamp = self.transcript.open(&key, &message[88..116])?;
        Some(Proven {
            timestamp,
            claimed: self,
        })
    }
}

impl Proven {
    /// Makes the response without its keyed hashes, and the session's keys.
    pub fn respond(
        self,
        remote: &Remote,
        ephemeral: Key,
        index: u32,
    ) -> Option<([u8; RESPONSE_LENGTH], Keys)> {
        let Claimed {
            mut transcript,
            sender,
            point: theirs,
            public,
        } = self.claimed;
        let ephemeral = StaticSecret::from(ephemeral);
        let point = PublicKey::from(&ephemeral).to_bytes();
        let mut message = [0; RESPONSE_LENGTH];
        message[0] = RESPONSE;
        message[4..8].copy_from_slice(&index.to_le_bytes());
        message[8..12].copy_from_slice(&sender.to_le_bytes());
        message[12..44].copy_from_slice(&point);
        transcript.mix(&point);
        transcript.note(&point);
        transcript.mix(&agree(&ephemeral, &theirs)?);
        transcript.mix(&agree(&ephemeral, &public)?);
        let key = transcript.preshare(&remote.preshared);
        transcript.seal(&key, &mut message[44..60]);
        let [receive, send] = transcript.session();
        Some((message, Keys { send, receive }))
    }
}

impl Initiated {
    /// Reads the response; the session's keys and its number at the peer.
    pub fn read_response(
        &self,
        own: &Own,
        remote: &Remote,
        message: &[u8; RESPONSE_LENGTH],
    ) -> Option<(Keys, u32)> {
        let mut transcript = self.transcript.clone();
        let point: Key = *message[12..].first_chunk::<KEY>()?;
        transcript.mix(&point);
        transcript.note(&point);
        transcript.mix(&agree(&self.ephemeral, &point)?);
        transcript.mix(&agree(&own.private, &point)?);
        let key = transcript.preshare(&remote.preshared);
        transcript.open::<0>(&key, &message[44..60])?;
        let [send, receive] = transcript.session();
        let index = u32::from_le_bytes(*message[4..].first_chunk()?);
        Some((Keys { send, receive }, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Own, Own) {
        (Own::new([1; KEY]), Own::new([2; KEY]))
    }

    #[test]
    fn both_sides_get_the_same_keys() {
        let (a, b) = pair();
        let (to_b, to_a) = (
            Remote::new(b.public, [9; KEY]),
            Remote::new(a.public, [9; KEY]),
        );
        let (begun, mut message) = initiate(&a, &to_b, [3; KEY], 7, &[5; TIMESTAMP]).unwrap();
        to_b.sign(&mut message, None);
        assert!(b.is_for_us(&message) && !a.is_for_us(&message));
        let claimed = read_initiation(&b, &message).unwrap();
        assert_eq!((claimed.public, claimed.sender), (a.public, 7));
        let proven = claimed.prove(&b, &message).unwrap();
        assert_eq!(proven.timestamp, [5; TIMESTAMP]);
        let (mut response, theirs) = proven.respond(&to_a, [4; KEY], 8).unwrap();
        to_a.sign(&mut response, None);
        let (ours, index) = begun.read_response(&a, &to_b, &response).unwrap();
        assert_eq!(index, 8);
        assert_eq!((ours.send, ours.receive), (theirs.receive, theirs.send));
        let other = Remote::new(b.public, [8; KEY]);
        assert!(
            begun.read_response(&a, &other, &response).is_none(),
            "another preshared key"
        );
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let (a, b) = pair();
        let to_b = Remote::new(b.public, [0; KEY]);
        let (_, message) = initiate(&a, &to_b, [3; KEY], 7, &[5; TIMESTAMP]).unwrap();
        for at in 8..116 {
            let mut changed = message;
            changed[at] ^= 1;
            let proven = read_initiation(&b, &changed).and_then(|c| c.prove(&b, &changed));
            assert!(proven.is_none(), "byte {at}");
        }
    }

    #[test]
    fn a_cookie_is_for_the_sender_of_the_message() {
        let (a, b) = pair();
        let to_b = Remote::new(b.public, [0; KEY]);
        let (_, mut message) = initiate(&a, &to_b, [3; KEY], 7, &[5; TIMESTAMP]).unwrap();
        let first = to_b.sign(&mut message, None);
        let reply = b
            .cookie_reply(&message, &[6; MAC], &[1; LONG_NONCE])
            .unwrap();
        assert_eq!(to_b.read_cookie(&reply, &first), Some([6; MAC]));
        assert_eq!(to_b.read_cookie(&reply, &[0; MAC]), None);
    }

    #[test]
    fn points_of_low_order_are_refused() {
        let (a, _) = pair();
        assert!(
            initiate(
                &a,
                &Remote::new([0; KEY], [0; KEY]),
                [3; KEY],
                7,
                &[5; TIMESTAMP]
            )
            .is_none()
        );
    }
}
