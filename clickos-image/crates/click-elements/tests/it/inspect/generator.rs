// SPDX-License-Identifier: Apache-2.0
//! Rules with every keyword, always the same ones, and data for which each of them holds.

/// Numbers of a fixed row.
pub struct Row(u64);

impl Row {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// A word of lower-case letters.
    pub fn word(&mut self, length: usize) -> String {
        (0..length)
            .map(|_| char::from(b'a' + self.below(26) as u8))
            .collect()
    }
}

/// A rule, and data of a client to port 80 for which it holds.
pub struct Made {
    pub rule: String,
    pub data: Vec<u8>,
}

/// A word as a content, maybe in part with hexadecimal numbers.
fn content(row: &mut Row, word: &str) -> String {
    match row.below(3) {
        0 => {
            let (first, rest) = word.split_at(1);
            let digits: String = rest.bytes().map(|byte| format!("{byte:02x} ")).collect();
            format!("content:\"{first}|{}|\"; ", digits.trim())
        }
        _ => format!("content:\"{word}\"; "),
    }
}

/// Options for places, and data.
fn parts(row: &mut Row, number: usize) -> (String, String) {
    let length = 6 + row.below(20);
    let word = row.word(length);
    let first = content(row, &word);
    let (second, third) = (row.word(5), row.word(4));
    match number % 8 {
        0 => (first, word),
        1 => (format!("{first}nocase; "), word.to_uppercase()),
        2 => (
            format!("{first}offset:3; depth:{}; ", length + 2),
            format!("xyz{word}"),
        ),
        3 => (
            format!("{first}startswith; content:\"{second}\"; distance:2; fast_pattern; "),
            format!("{word}..{second}"),
        ),
        4 => {
            let within = format!(
                "{first}content:\"{second}\"; distance:0; within:9; content:!\"{third}\"; rawbytes; "
            );
            (within, format!("{word}....{second}"))
        }
        5 => (
            format!("{first}pcre:\"/{second}[0-9]{{2,4}}\\/{third}/Ri\"; "),
            format!("{word}{second}77/{third}"),
        ),
        6 => (
            format!("{first}content:\"{third}\"; distance:-30; pcre:!\"/{second}+x/s\"; "),
            format!("{third}{word}"),
        ),
        _ => (
            format!("{first}content:\"{second}\"; depth:200; pcre:\"/{third}|{second}$/m\"; "),
            format!("{second}{word}{third}"),
        ),
    }
}

/// Everything else that a rule may have.
fn others(row: &mut Row, number: usize) -> &'static str {
    match number % 10 {
        0 => "flow:established,to_server; ",
        1 => "flow:from_client; threshold:type limit, track by_src, count 9, seconds 60; ",
        2 => "flowbits:set,made; ",
        3 => "flowbits:isnotset,never; flowbits:unset,other; ",
        4 => "threshold:type threshold, track by_dst, count 1, seconds 60; ",
        5 => "threshold:type both, track by_src, count 1, seconds 60; ",
        6 => "reference:url,example.org/a; metadata:made by_a_row; ",
        7 => "flow:stateless; priority:2; ",
        8 => "detection_filter:track by_src, count 1, seconds 600; ",
        _ if row.below(2) == 0 => "flow:to_server,established; priority:1; ",
        _ => "",
    }
}

/// This many rules.
pub fn rules(seed: u64, count: usize) -> Vec<Made> {
    let mut row = Row::new(seed);
    let made = |number: usize| {
        let (options, data) = parts(&mut row, number);
        let action = ["alert", "drop", "alert"][row.below(3)];
        let nets = [
            "any",
            "$HOME_NET",
            "[10.0.0.0/24,!10.0.0.9]",
            "!192.0.2.0/24",
        ][row.below(4)];
        let ports = ["any", "80", "[80,443]", "$HTTP_PORTS", "[1:1023,!53]"][row.below(5)];
        let arrow = if row.below(9) == 0 { "<>" } else { "->" };
        let protocol = if row.below(9) == 0 { "ip" } else { "tcp" };
        let others = others(&mut row, number);
        let class = ["web-attack", "policy", "trojan"][row.below(3)];
        let sid = 1 + number;
        let rule = format!(
            "{action} {protocol} {nets} any {arrow} {nets} {ports} (msg:\"made rule {number}\"; {options}{others}classtype:{class}; sid:{sid}; rev:{};)",
            1 + row.below(9)
        );
        Made {
            rule,
            data: data.into_bytes(),
        }
    };
    (0..count).map(made).collect()
}

/// The text of a set.
pub fn text(rules: &[Made]) -> String {
    let lines: String = rules
        .iter()
        .map(|made| format!("{}\n", made.rule))
        .collect();
    format!("# made\nvar HOME_NET [10.0.0.0/8]\nvar HTTP_PORTS [80,8080]\n{lines}")
}

#[test]
fn each_of_500_rules_holds_for_its_data_alone_and_in_one_byte_segments() {
    use super::bed::{Bed, from_client};
    use super::packets::{ACK, SYN, Segment};
    let made = rules(7, 500);
    let text = text(&made);
    for keyword in [
        "content:",
        "content:!",
        "nocase",
        "offset",
        "depth",
        "startswith",
        "distance",
        "within",
        "fast_pattern",
        "rawbytes",
        "pcre:\"",
        "pcre:!",
        "flow:",
        "flowbits:set",
        "isnotset",
        "unset",
        "type limit",
        "type threshold",
        "type both",
        "detection_filter",
        "msg",
        "classtype",
        "priority",
        "sid",
        "rev",
        "reference",
        "metadata",
        "<>",
        "$",
    ] {
        assert!(text.contains(keyword), "{keyword}");
    }
    let mut bed = Bed::new(&super::bed::inspector("ACTION alert, CAPACITY 2000"));
    bed.write("ips.rules", &text);
    assert_eq!(bed.count("ips.rule_count"), 500);
    for (number, made) in made.iter().enumerate() {
        for size in [made.data.len(), 1] {
            let ports = [1000 + 2 * number as u16 + u16::from(size == 1), 80];
            let change = |segment: Segment| Segment { ports, ..segment };
            let (first, second) = (super::bed::CLIENT_SEQ, super::bed::SERVER_SEQ);
            assert!(bed.passes(&change(Segment::new(true, SYN, first, 0, b""))));
            assert!(bed.passes(&change(Segment::new(
                false,
                SYN | ACK,
                second,
                first.wrapping_add(1),
                b""
            ))));
            bed.write("ips.reset_log", "");
            // thresholds alert again
            bed.wait(61);
            for (at, part) in made.data.chunks(size).enumerate() {
                assert!(bed.passes(&change(from_client((at * size) as u32, part))));
            }
            let alerts = bed.read("ips.alerts");
            // the second one holds
            let waits = size != 1 && made.rule.contains("detection_filter");
            let told = waits || alerts.contains(&format!("\"signature_id\":{},", number + 1));
            assert!(
                told,
                "{}: {:?}: {alerts}",
                made.rule,
                String::from_utf8_lossy(&made.data)
            );
        }
    }
}
