// SPDX-License-Identifier: Apache-2.0
//! Keywords whose effect shows in packets.
use super::bed::{Bed, inspector};
use super::packets::{link, udp};

fn udp_bed(rules: &str) -> Bed {
    Bed::with_rules(rules)
}

fn passes(bed: &mut Bed, port: u16, text: &str) -> bool {
    bed.send(0, link(&udp(7, port, text.as_bytes()))).len() == 1
}

#[test]
fn bits_of_a_flow_connect_rules() {
    let mut bed = udp_bed(
        r#"drop udp any any -> any any (content:"go"; flowbits:isset,login; flowbits:isnotset,free; sid:2;)
alert udp any any -> any any (content:"user"; flowbits:set,login; flowbits:noalert; sid:1;)
alert udp any any -> any any (content:"pay"; flowbits:set,free; noalert; sid:3;)
alert udp any any -> any any (content:"exit"; flowbits:unset,login; noalert; sid:4;)"#,
    );
    assert!(passes(&mut bed, 1, "go"));
    assert!(passes(&mut bed, 1, "user") && !passes(&mut bed, 1, "go"));
    assert!(passes(&mut bed, 2, "go"), "another flow");
    assert!(
        !passes(&mut bed, 2, "user, go"),
        "one packet for both rules"
    );
    assert!(passes(&mut bed, 1, "exit") && passes(&mut bed, 1, "go"));
    assert!(passes(&mut bed, 2, "pay") && passes(&mut bed, 2, "go"));
    assert_eq!(bed.count("ips.alert_count"), 2);
    // names keep their bits under other rules
    let rules = r#"drop udp any any -> any any (content:"go"; flowbits:isset,other; sid:1;)
drop udp any any -> any any (content:"way"; flowbits:isset,free; sid:2;)"#;
    bed.write("ips.rules", rules);
    assert!(passes(&mut bed, 2, "go") && !passes(&mut bed, 2, "way"));
}

#[test]
fn rules_without_a_content_and_rules_that_let_pass() {
    let mut bed = udp_bed(
        r#"drop udp any any -> any 9 (sid:1;)
pass udp any any -> any [9,10] (content:"friend"; sid:2;)
alert udp any any -> any 10 (msg:"once"; sid:3;)
drop udp any any -> any any (content:"foe"; sid:4;)"#,
    );
    assert!(!passes(&mut bed, 9, "x") && !passes(&mut bed, 9, "friend"));
    assert!(passes(&mut bed, 10, "friend, foe") && !passes(&mut bed, 10, "foe"));
    assert!(passes(&mut bed, 10, "x"));
    let alerts = bed.read("ips.alerts");
    assert_eq!(alerts.matches("once").count(), 1, "{alerts}");
}

#[test]
fn thresholds_limit_alerts() {
    let mut bed = udp_bed(
        r#"alert udp any any -> any 1 (content:"x"; threshold:type limit, track by_src, count 2, seconds 60; sid:1;)
drop udp any any -> any 2 (content:"x"; detection_filter:track by_dst, count 2, seconds 60; sid:2;)"#,
    );
    assert!((0..5).all(|_| passes(&mut bed, 1, "x")));
    assert_eq!(bed.count("ips.alert_count"), 2);
    let passed: Vec<bool> = (0..4).map(|_| passes(&mut bed, 2, "x")).collect();
    assert_eq!(passed, [true, true, false, false]);
    bed.wait(61);
    assert!(passes(&mut bed, 2, "x") && passes(&mut bed, 1, "x"));
    assert_eq!(bed.count("ips.alert_count"), 5);
}

#[test]
fn a_rule_for_both_directions_and_one_for_answers() {
    let mut bed = udp_bed(
        r#"alert udp 10.0.0.2 80 <> any any (content:"both"; sid:1;)
alert udp any any -> any any (content:"new"; flow:not_established; sid:2;)
alert udp any any -> any any (content:"old"; flow:established; sid:3;)"#,
    );
    let answer = |text: &str| {
        let mut packet = udp(80, 7, text.as_bytes());
        packet[12..20].rotate_left(4);
        packet
    };
    assert!(passes(&mut bed, 80, "both, new, old"));
    assert_eq!(bed.count("ips.alert_count"), 2);
    assert_eq!(bed.send(1, link(&answer("both, new, old"))).len(), 1);
    assert_eq!(bed.count("ips.alert_count"), 4);
    assert!(bed.read("ips.alerts").contains("\"signature_id\":3"));
}

#[test]
fn errors_name_line_keyword_value_and_limit() {
    let mut bed = Bed::new(&inspector(""));
    let long = "a".repeat(256);
    let many = r#"content:"a"; "#.repeat(17);
    for (options, want) in [
        (
            format!("content:\"{long}\"; sid:1;"),
            "content: 256 bytes, the limit is 255",
        ),
        (
            format!("{many} sid:1;"),
            "content: 17 in a rule, the limit is 16",
        ),
        (
            "content:\"a\"; depth:70000; sid:1;".into(),
            "depth: 70000, the limit is 65535",
        ),
        (
            "content:\"abc\"; depth:2; sid:1;".into(),
            "depth: 2, and the content has 3 bytes",
        ),
        (
            "content:\"a\"; http_uri; sid:1;".into(),
            "http_uri: this keyword is not taken",
        ),
        (
            "depth:2; content:\"a\"; sid:1;".into(),
            "depth: expected a content in front of it",
        ),
        (
            "content:!\"a\"; sid:1;".into(),
            "content: at least one without ! is needed",
        ),
        (
            "content:\"a\";".into(),
            "sid: expected a number from 1, got none",
        ),
        (
            "content:\"a\"; pcre:\"/(/\"; sid:1;".into(),
            "pcre: \"\\\"/(/\\\"\": unclosed group",
        ),
        (
            "flowbits:flip,a; sid:1;".into(),
            "flowbits: \"flip\": expected set",
        ),
    ] {
        let rule = format!("# first\nalert tcp any any -> any any ({options})");
        let error = bed
            .router
            .write_handlers(&[("ips.rules", rule.as_bytes())], 1)
            .unwrap_err();
        let error = format!("{error:?}");
        let want = want.replace('"', "\\\"").replace("\\\\\"", "\\\\\\\"");
        assert!(
            error.contains("line 2: ") && error.contains(want.trim_start_matches("pcre: ")),
            "{error}\n{want}"
        );
    }
    let bits: String = (0..65).map(|n| format!("flowbits:set,b{n}; ")).collect();
    let names = bits.split_inclusive("; ").enumerate();
    let rules: String = names
        .map(|(n, bit)| {
            format!(
                "alert udp any any -> any any ({bit}content:\"a\"; sid:{};)\n",
                n + 1
            )
        })
        .collect();
    let error = bed
        .router
        .write_handlers(&[("ips.rules", rules.as_bytes())], 1)
        .unwrap_err();
    assert!(format!("{error:?}").contains("line 65: flowbits: 65 names, the limit is 64"));
    assert_eq!(bed.count("ips.rule_count"), 0);
}

#[test]
fn the_lists_of_all_rules_are_bounded() {
    let nets: Vec<String> = (0..255).map(|n| format!("10.0.0.{n}")).collect();
    let rule = |(n, net): (usize, &str)| {
        format!(
            "alert udp [$A,{net}] any -> any any (content:\"a\"; sid:{};)\n",
            n + 1
        )
    };
    let variable = format!("var A [{}]\n", nets.join(","));
    let others: Vec<String> = (0..65).map(|n| format!("10.9.0.{n}")).collect();
    let different = others.iter().map(String::as_str).enumerate().map(rule);
    let different: String = different.collect();
    let mut bed = Bed::new(&inspector(""));
    let text = variable.clone() + &different;
    let error = bed
        .router
        .write_handlers(&[("ips.rules", text.as_bytes())], 1)
        .unwrap_err();
    let want = "line 66: 16640 networks and ports in all lists, the limit is 16384";
    assert!(format!("{error:?}").contains(want), "{error:?}");
    // the same list is one
    let same: String = (0..500).map(|n| rule((n, "10.9.0.1"))).collect();
    bed.write("ips.rules", &(variable + &same));
}
