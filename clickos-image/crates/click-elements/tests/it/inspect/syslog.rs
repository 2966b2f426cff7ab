// SPDX-License-Identifier: Apache-2.0
//! Messages of syslog about alerts, as the package of the IPS sends them.
use super::bed::{Bed, package};
use super::packets::{LINK, around, link, udp};

const OWN: [u8; 4] = [10, 0, 0, 9];
const RECEIVER: [u8; 4] = [10, 0, 0, 7];
/// The MTU that the bed defines.
const MTU: usize = 300;

#[test]
fn messages_are_fragments_that_fit_the_link() {
    let mut bed = Bed::new(&package("ips", ""));
    let rule = "alert udp any any -> any any (msg:\"long\"; content:\"bad\"; sid:7;)";
    bed.write("ips.rules", rule);
    bed.write("syslog.target", "10.0.0.7 514");
    let alert = |bed: &mut Bed| {
        bed.send(0, link(&udp(7, 9, b"bad")));
        bed.wait(1);
        bed.send(0, link(&udp(7, 9, b"fine")))
    };
    let asked = alert(&mut bed);
    let is_question = |frame: &Vec<u8>| frame[12..14] == [8, 6] && frame[38..42] == RECEIVER;
    assert!(asked.iter().any(is_question), "{asked:?}");
    let answer = [
        &[0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 7][..],
        &RECEIVER,
        &[2, 0, 0, 0, 0, 9],
        &OWN,
    ];
    let answer = around(&[8, 6], &answer.concat());
    assert_eq!(bed.send(1, answer).len(), 1, "left has the answer, too");
    let sent = alert(&mut bed);
    let own: Vec<_> = sent
        .iter()
        .filter(|frame| frame[12..14] == [8, 0] && frame[26..30] == OWN)
        .collect();
    assert!(own.len() > 1, "{}", own.len());
    assert!(own.iter().all(|frame| frame.len() <= LINK + MTU));
    assert_eq!(bed.count("syslog.sent"), 2);
}
