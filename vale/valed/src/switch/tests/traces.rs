// SPDX-License-Identifier: Apache-2.0
//! A trace says the same as the switch does.
use super::*;
use crate::chain::Definition;

/// Sets all features that judge a frame.
fn armed() -> (Bench, Vec<Guest>) {
    let mut bench = Bench::new();
    let secure = json!({"mac": mac(1), "port_security": true, "allowed": [{"ip": "10.0.0.1/32"}]});
    let a = bench.try_add("a", secure).unwrap();
    let b = bench.guest(2, 1);
    let c = bench.open_guest(3, 1);
    let d = bench
        .try_add("d", json!({"mac": mac(4), "mtu": 100}))
        .unwrap();
    let filter = |rules: &[&str]| {
        let rules: Vec<_> = rules.iter().map(|r| r.parse().unwrap()).collect();
        Some(Box::new(Filter::new(&rules)))
    };
    let mut egress = filter(&["egress,udp,1-20", "egress,tcp"]);
    assert!(bench.switch.set_filter(&a.name, &mut egress));
    let mut ingress = filter(&["ingress,udp,7"]);
    assert!(bench.switch.set_filter(&b.name, &mut ingress));
    let hops = ["h1", "h2"].map(|n| bench.try_add(n, json!({"segment": 2})).unwrap());
    let chain = json!({"switch": "vale0", "chain": "web", "segment": 1,
        "classifiers": [{"source": "10.0.0.3/32", "protocol": 17}],
        "hops": [{"pairs": [{"ingress": "h1", "egress": "h2"}]}]});
    let chain: ChainSet = serde_json::from_value(chain).unwrap();
    bench
        .switch
        .set_chain(Definition::new(chain, None))
        .unwrap();
    let guests = [a, b, c, d].into_iter().chain(hops).collect();
    (bench, guests)
}

/// Frames of several kinds between all stations.
fn frames() -> Vec<Vec<u8>> {
    let mut all = vec![vec![0; 14]];
    for from in 1..=5 {
        for to in 1..=5 {
            all.push(frame(mac(to), mac(from), 60));
            all.push(udp(from, to, [0, 7, 0, 7], 60));
            all.push(udp(from, to, [0, 9, 0, 9], 200));
            all.push(udp(from, to, [0, 9, 1, 9], 60));
        }
        all.push(frame(BROADCAST, mac(from), 60));
    }
    all
}

#[test]
fn a_trace_says_what_the_switch_does_to_the_frame() {
    let (mut bench, mut guests) = armed();
    let mut passed = 0;
    for bytes in frames() {
        for sender in 0..guests.len() {
            let name = guests[sender].name.clone();
            let before: Vec<_> = guests.iter().map(|g| bench.counters(g)).collect();
            let trace = bench.switch.trace(&name, &bytes, 0).unwrap().trace;
            let after: Vec<_> = guests.iter().map(|g| bench.counters(g)).collect();
            assert_eq!(before, after, "a trace counts nothing");
            guests[sender].send(&bytes);
            bench.round();
            let got =
                |guest: &mut Guest| (!guest.received().is_empty()).then(|| guest.name.clone());
            let outputs: Vec<_> = guests.iter_mut().filter_map(got).collect();
            assert_eq!(trace.outputs, outputs, "{name}: {bytes:?} {trace:?}");
            passed += outputs.len();
            for stage in trace.stages.iter().filter(|s| !s.passes) {
                let Some(counter) = &stage.counter else {
                    continue;
                };
                let at = guests.iter().position(|g| g.name == stage.port).unwrap();
                let count = |c: &Counters| json!(c)[counter].as_u64().unwrap();
                let now = bench.counters(&guests[at]);
                assert_eq!(count(&now), count(&before[at]) + 1, "{stage:?}");
            }
        }
    }
    assert!(passed > 100, "{passed}");
}

#[test]
fn a_trace_names_the_rule_the_chain_and_the_reason() {
    let (mut bench, guests) = armed();
    let of = |bench: &Bench, guest: usize, bytes: &[u8]| {
        let trace = bench
            .switch
            .trace(&guests[guest].name, bytes, 0)
            .unwrap()
            .trace;
        let text = |s: &vale_proto::Stage| format!("{:?} {} {}", s.stage, s.port, s.passes);
        let all: Vec<_> = trace.stages.iter().map(text).collect();
        let rules: Vec<_> = trace
            .stages
            .iter()
            .filter_map(|s| s.rule.as_ref())
            .collect();
        (
            all.join("; "),
            rules.iter().map(|r| r.0).collect::<Vec<_>>(),
        )
    };
    let (stages, rules) = of(&bench, 0, &udp(1, 2, [0, 7, 0, 7], 60));
    let expected = "Guard a true; Filter a true; Lookup a true; Output p1-2 true; Filter p1-2 true";
    assert_eq!((stages.as_str(), rules), (expected, vec![1, 1]));
    let (stages, _) = of(&bench, 2, &udp(3, 2, [0, 7, 0, 7], 60));
    assert_eq!(stages, "Guard p1-3 true; Chain p1-3 true; Output h1 true");
    let spoofed = bench
        .switch
        .trace(&guests[0].name, &udp(2, 3, [0; 4], 60), 0)
        .unwrap();
    assert_eq!(
        spoofed.trace.stages[0].counter.as_deref(),
        Some("dropped_spoof")
    );
    let limits = json!({"rx": {"packets_per_s": 1}});
    let limits = PortLimits::new(&serde_json::from_value(limits).unwrap());
    assert!(bench.switch.set_limits(&guests[2].name, limits));
    assert!(
        of(&bench, 2, &frame(mac(2), mac(3), 60))
            .0
            .contains("Limits p1-3 true")
    );
    let nobody = "nobody".parse().unwrap();
    assert!(bench.switch.trace(&nobody, &[0; 60], 0).is_none());
}
