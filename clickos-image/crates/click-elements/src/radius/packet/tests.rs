// SPDX-License-Identifier: Apache-2.0
//! The examples of RFC 2865, section 7, and what a stranger can change in an answer.
use super::*;
use alloc::string::String;
use alloc::vec;
use proptest::prelude::*;

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    let digits: String = hex.split_whitespace().collect();
    assert_eq!(digits.len(), 2 * N);
    core::array::from_fn(|n| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap())
}

const SECRET: &[u8] = b"xyzzy5461";

#[test]
fn the_telnet_user_of_section_7_1_hides_its_password() {
    let random = bytes("0f403f9473978057bd83d5cb98f4227a");
    let hidden = hidden(b"arctangent", &random, SECRET);
    assert_eq!(hidden, bytes::<16>("0dbe708d93d413ce3196e43f782a0aee"));
}

#[test]
fn the_answers_of_sections_7_1_and_7_2_are_right() {
    let telnet: [u8; 38] =
        bytes("0200002686fe220e7624ba2a1005f6bf9b55e0b2 060600000001 0f0600000000 0e06c0a80103");
    let framed: [u8; 56] = bytes(
        "02010038 15efbc7dab26cfa3dc34d9c03c8601a4 060600000002 070600000001 0806fffffffe
         0a0600000002 0d0600000001 0c06000005dc",
    );
    for (answer, request) in [
        (&telnet[..], "0f403f9473978057bd83d5cb98f4227a"),
        (&framed[..], "2aee86f08d0d55969ca5978e0d3367a2"),
    ] {
        let request = bytes(request);
        let read = Answer::parse(answer).unwrap();
        assert_eq!(read.code, code::ACCESS_ACCEPT);
        assert!(read.is_right(&request, SECRET, false));
        assert!(
            !read.is_right(&request, SECRET, true),
            "it has no signature"
        );
        assert!(!read.is_right(&request, b"xyzzy5460", false));
        assert!(!read.is_right(&[0; 16], SECRET, false));
    }
    let types = Answer::parse(&framed).unwrap().values.map(|(kind, _)| kind);
    assert!(types.eq([6, 7, 8, 10, 13, 12]));
}

#[test]
fn a_request_begins_with_its_signature() {
    let mut attributes = Attributes::default();
    attributes.put(attribute::USER_NAME, b"amy");
    let packet = access_request(7, &[3; 16], &attributes, SECRET);
    assert_eq!(packet[..4], [1, 7, 0, 43]);
    assert_eq!(packet[20..22], [80, 18]);
    assert_eq!(packet[38..], [1, 5, b'a', b'm', b'y']);
    // the other side's sum: with the signature's place empty
    let mut empty = packet.clone();
    empty[22..38].fill(0);
    assert_eq!(packet[22..38], hmac(SECRET, &[&empty]));
}

#[test]
fn the_authenticator_of_an_account_is_a_sum_of_it() {
    let mut attributes = Attributes::default();
    attributes.number(attribute::ACCT_STATUS_TYPE, 1);
    let packet = accounting_request(9, &attributes, SECRET);
    let mut empty = packet.clone();
    empty[4..20].fill(0);
    assert_eq!(packet[4..20], md5(&[&empty, SECRET]));
}

#[test]
fn passwords_have_whole_blocks_and_an_end() {
    assert_eq!(hidden(b"", &[0; 16], SECRET).len(), 16);
    assert_eq!(hidden(&[7; 16], &[0; 16], SECRET).len(), 16);
    assert_eq!(hidden(&[7; 17], &[0; 16], SECRET).len(), 32);
    assert_eq!(hidden(&[7; 255], &[0; 16], SECRET).len(), PASSWORD);
}

/// A server's answer without a signature.
pub fn unsigned(code: u8, id: u8, request: &[u8; SUM], secret: &[u8]) -> Vec<u8> {
    let mut packet = header(code, id, &Attributes::default());
    let sum = md5(&[&packet[..4], request, secret]);
    packet[4..HEADER].copy_from_slice(&sum);
    packet
}

/// A server's answer with its signature.
pub fn answer(code: u8, id: u8, more: &[u8], request: &[u8; SUM], secret: &[u8]) -> Vec<u8> {
    let mut attributes = Attributes::default();
    attributes.put(attribute::MESSAGE_AUTHENTICATOR, &[0; SUM]);
    attributes.0.extend(more);
    let mut packet = header(code, id, &attributes);
    packet[4..HEADER].copy_from_slice(request);
    let sum = hmac(secret, &[&packet]);
    packet[HEADER + 2..HEADER + 2 + SUM].copy_from_slice(&sum);
    let sum = md5(&[&packet, secret]);
    packet[4..HEADER].copy_from_slice(&sum);
    packet
}

#[test]
fn no_byte_of_an_answer_can_be_changed() {
    let request = [5; SUM];
    let packet = answer(
        code::ACCESS_ACCEPT,
        1,
        &[6, 6, 0, 0, 0, 2],
        &request,
        SECRET,
    );
    let right = |packet: &[u8], signed| {
        Answer::parse(packet).is_some_and(|read| read.is_right(&request, SECRET, signed))
    };
    assert!(right(&packet, true) && right(&packet, false));
    for at in 0..packet.len() {
        let mut changed = packet.clone();
        changed[at] ^= 0x40;
        assert!(
            !right(&changed, true) && !right(&changed, false),
            "byte {at}"
        );
    }
    let padded = [&packet[..], &[0; 9]].concat();
    assert!(right(&padded, true), "padding counts as nothing");
}

#[test]
fn a_second_or_a_short_signature_is_wrong() {
    let request = [5; SUM];
    for more in [
        &[80, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
        &[80, 3, 0],
    ] {
        let packet = answer(code::ACCESS_ACCEPT, 1, more, &request, SECRET);
        let read = Answer::parse(&packet).unwrap();
        assert!(!read.is_right(&request, SECRET, false));
    }
}

#[test]
fn lengths_that_lie_are_no_packet() {
    let whole = answer(code::ACCESS_REJECT, 1, &[18, 3, b'x'], &[0; SUM], SECRET);
    for length in 0..whole.len() {
        assert!(Answer::parse(&whole[..length]).is_none(), "{length}");
    }
    for (at, value) in [(3, 19), (2, 0xff), (21, 0), (21, 1), (39, 4)] {
        let mut wrong = whole.clone();
        wrong[at] = value;
        assert!(Answer::parse(&wrong).is_none(), "{at} {value}");
    }
    let mut long = vec![0; LONGEST + 1];
    long[2..4].copy_from_slice(&(LONGEST as u16 + 1).to_be_bytes());
    assert!(Answer::parse(&long).is_none());
}

proptest! {
    /// No bytes make a panic, and values never reach beyond the packet.
    #[test]
    fn strangers_bytes_are_read(
        datagram in prop::collection::vec(any::<u8>(), 0..80), length in 0u16..80, honest: bool,
    ) {
        let mut datagram = datagram;
        if let Some(field) = datagram.get_mut(2..4).filter(|_| honest) {
            field.copy_from_slice(&length.to_be_bytes());
        }
        if let Some(read) = Answer::parse(&datagram) {
            let sum: usize = read.values.map(|(_, value)| value.len() + 2).sum();
            prop_assert!(sum + HEADER <= datagram.len());
            prop_assert!(!read.is_right(&[0; SUM], b"", true));
        }
    }
}
