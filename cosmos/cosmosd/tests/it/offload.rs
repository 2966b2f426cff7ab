// SPDX-License-Identifier: Apache-2.0
//! Guests let the switch decide their packets (docs/adr/0083), on the real store, switch and engine.
//! Needs root and NOXEN_PREFIX.

use cosmos_testbed::{GuestSpec, TestPort, Testbed, eventually, uuid};
use serde_json::json;

/// The element drops the test port's frames, here or in the switch.
const GUARD: &str = "\
FromDevice(0) -> o :: ClickOSOffload(0, drop ether-type 88b5) -> c :: Counter -> Discard;
";
const OFF: &str = "\
FromDevice(0) -> o :: ClickOSOffload(0, drop ether-type 88b5, ACTIVE false) -> c :: Counter
    -> Discard;
";
/// Frames in a burst; a ring of a guest has 255 slots.
const BURST: u64 = 100;

fn read(bed: &Testbed, guest: u16, name: &str) -> String {
    let args = json!({"uuid": uuid(guest), "rid": 0, "name": name});
    let answer = bed.call("handler-read", args).unwrap();
    answer["value"].as_str().unwrap().trim().to_owned()
}

fn write(bed: &Testbed, guest: u16, name: &str, value: &str) {
    let writes = json!([[name, value]]);
    let args = json!({"uuid": uuid(guest), "rid": 0, "writes": writes, "timeout_ms": 50_000});
    bed.call("handler-write", args).unwrap();
}

/// The sum of the counts that a handler has a line of for each rule.
fn hits(bed: &Testbed, guest: u16, name: &str) -> u64 {
    let text = read(bed, guest, name);
    let counts = text.lines().map(|line| line.split('\t').next().unwrap());
    counts.map(|count| count.parse::<u64>().unwrap()).sum()
}

fn becomes(bed: &Testbed, guest: u16, state: &str) {
    eventually(&format!("the offload is {state}"), || {
        (read(bed, guest, "o.state") == state).then_some(())
    });
}

fn burst(port: &mut TestPort) {
    (0..BURST).for_each(|_| port.send(b"drop me"));
}

#[test]
fn each_packet_is_counted_once_while_the_rules_come_and_go() {
    let bed = Testbed::start();
    let spec = GuestSpec::new(1, &bed.engine_sha256(), GUARD).vif(1);
    bed.call("create", spec.args()).unwrap();
    becomes(&bed, 1, "active");
    let mut port = TestPort::add(&mut bed.vale(), 1, 1);
    let mut sent = 0;
    for round in 0..30 {
        burst(&mut port);
        sent += BURST;
        let active = if round % 2 == 0 { "false" } else { "true" };
        write(&bed, 1, "o.active", active);
        // The guest, too, has taken the burst before the next one.
        eventually("each frame has a judge", || {
            (hits(&bed, 1, "o.hits") == sent).then_some(())
        });
    }
    let by_switch = hits(&bed, 1, "o.switch_hits");
    assert!(
        by_switch >= BURST && by_switch < sent,
        "{by_switch} of {sent}"
    );
    assert_eq!(read(&bed, 1, "c.count"), "0");
    let ports = bed.vale().port_list(None).unwrap();
    let guest = ports.iter().find(|p| p.port.as_str() == "g1-0").unwrap();
    assert_eq!(guest.counters.dropped_offload, by_switch);
    assert_eq!(guest.counters.tx_packets, sent - by_switch);
}

#[test]
fn rules_return_after_a_restart_of_each_side() {
    let mut bed = Testbed::start();
    let spec = GuestSpec::new(1, &bed.engine_sha256(), GUARD).vif(1);
    bed.call("create", spec.args()).unwrap();
    becomes(&bed, 1, "active");
    let mut port = TestPort::add(&mut bed.vale(), 1, 1);
    burst(&mut port);
    eventually("hits", || {
        (hits(&bed, 1, "o.switch_hits") == BURST).then_some(())
    });
    let epoch = bed.vale().offload_list(None).unwrap()[0].epoch;

    bed.cosmosd.kill();
    burst(&mut port);
    bed.restart_cosmosd();
    eventually("hits", || {
        (hits(&bed, 1, "o.switch_hits") == 2 * BURST).then_some(())
    });
    assert_eq!(bed.vale().offload_list(None).unwrap()[0].epoch, epoch);

    bed.valed.kill();
    bed.restart_vale();
    eventually("the new valed has the rules", || {
        let tables = bed.vale().offload_list(None).ok()?;
        (tables.first()?.epoch != epoch).then_some(())
    });
    let mut port = TestPort::add(&mut bed.vale(), 1, 1);
    burst(&mut port);
    eventually("hits", || {
        (hits(&bed, 1, "o.switch_hits") == 3 * BURST).then_some(())
    });
    assert_eq!(
        read(&bed, 1, "o.hits"),
        format!("{}\tdrop ether-type 88b5", 3 * BURST)
    );

    bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
    assert!(bed.vale().offload_list(None).unwrap().is_empty());
    drop(port);
    bed.vale()
        .port_remove(&"vale0".parse().unwrap(), &"t1".parse().unwrap())
        .unwrap();
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[test]
fn a_hot_swap_keeps_hits_and_a_removed_element_takes_its_rules_away() {
    let bed = Testbed::start();
    let spec = GuestSpec::new(1, &bed.engine_sha256(), GUARD).vif(1);
    bed.call("create", spec.args()).unwrap();
    becomes(&bed, 1, "active");
    let install = |config: &str| {
        let args = json!({"uuid": uuid(1), "rid": 0, "config": config, "config_name": "x.click", "timeout_ms": 50_000});
        bed.call("router-install", args).unwrap();
    };
    let mut port = TestPort::add(&mut bed.vale(), 1, 1);
    burst(&mut port);
    install(OFF);
    eventually("no rules", || {
        bed.vale().offload_list(None).ok()?.is_empty().then_some(())
    });
    burst(&mut port);
    eventually("all hits", || {
        (hits(&bed, 1, "o.hits") == 2 * BURST).then_some(())
    });
    install(GUARD);
    becomes(&bed, 1, "active");
    install("FromDevice(0) -> c :: Counter -> Discard;");
    eventually("no rules", || {
        bed.vale().offload_list(None).ok()?.is_empty().then_some(())
    });
    burst(&mut port);
    eventually("the counter", || {
        (read(&bed, 1, "c.count") == BURST.to_string()).then_some(())
    });
}

/// A guest has no word about the ports of others, and the operator has the last one.
#[test]
fn other_ports_are_untouched_and_the_operator_may_forbid() {
    let bed = Testbed::start();
    let plain = "FromDevice(0) -> c :: Counter -> Discard;";
    for (n, config) in [(1, GUARD), (2, plain)] {
        let spec = GuestSpec::new(n, &bed.engine_sha256(), config).vif(1);
        bed.call("create", spec.args()).unwrap();
    }
    becomes(&bed, 1, "active");
    let mut port = TestPort::add(&mut bed.vale(), 1, 1);
    burst(&mut port);
    let all = BURST.to_string();
    eventually("the neighbor has all", || {
        (read(&bed, 2, "c.count") == all).then_some(())
    });
    let enable = json!({"switch": "vale0", "port": "g1-0", "owner": "guest", "enabled": false});
    let enable = serde_json::from_value(enable).unwrap();
    bed.vale().offload_enable(&enable).unwrap();
    burst(&mut port);
    eventually("all hits", || {
        (hits(&bed, 1, "o.hits") == 2 * BURST).then_some(())
    });
    assert_eq!(hits(&bed, 1, "o.switch_hits"), BURST);
    // A request that a person writes next to the guest is refused with a reason, and soon replaced.
    let node = format!("/local/domain/{}/data/clickos/offload/0", 1);
    let mut store = bed.store();
    store
        .write(xenstore::Tx::NONE, &node, b"99\nnonsense")
        .unwrap();
    let answer = "/local/domain/1/data/clickos/offloaded/0";
    eventually("a refusal", || {
        let answer = store.read_opt(xenstore::Tx::NONE, answer).ok()??;
        answer
            .starts_with(b"99 rule 0: rule: expected pass")
            .then_some(())
    });
    burst(&mut port);
    eventually("the guest judges", || {
        (hits(&bed, 1, "o.hits") == 3 * BURST).then_some(())
    });
}

/// An IPFilter lets the switch drop by its rules, and counts as before.
#[test]
fn a_filter_offloads_its_rules() {
    let bed = Testbed::start();
    let filter =
        "FromDevice(0) -> MarkIPHeader(14) -> fw :: IPFilter(deny udp dst port 53, allow all)
        -> c :: Counter -> Discard;";
    let spec = GuestSpec::new(1, &bed.engine_sha256(), filter).vif(1);
    let spec = spec.write("fw.offload", "true");
    bed.call("create", spec.args()).unwrap();
    eventually("the switch has the rule", || {
        (read(&bed, 1, "fw.offload_state") == "0 active").then_some(())
    });
    let tables = bed.vale().offload_list(None).unwrap();
    let rules: Vec<_> = tables[0]
        .rules
        .iter()
        .map(|r| String::from(r.rule))
        .collect();
    assert_eq!(rules, ["drop proto 17 dport 53"]);
    let mut port = TestPort::add(&mut bed.vale(), 1, 1);
    for _ in 0..BURST {
        port.send_frame(&packet(53));
        port.send_frame(&packet(80));
    }
    let all = format!("{BURST}\tdeny udp dst port 53\n{BURST}\tallow all");
    eventually("all hits", || {
        (read(&bed, 1, "fw.hits") == all).then_some(())
    });
    assert_eq!(read(&bed, 1, "c.count"), BURST.to_string());
    let counters = bed.vale().port_list(None).unwrap()[0].counters;
    assert_eq!(counters.dropped_offload, BURST);
}

/// A packet of UDP to the first guest.
fn packet(port: u16) -> Vec<u8> {
    sized(port, 60)
}

fn sized(port: u16, len: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 1, 1, 0, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend((len - 14).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9]);
    frame.extend(port.to_be_bytes());
    let words = frame[14..34]
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.resize(len.into(), 0);
    frame
}

/// A firewall; ACTIVE A becomes the argument of its element.
const DROPS: &str =
    "FromDevice(0) -> o :: ClickOSOffload(0, drop proto 17 dport 53, ACTIVE A) -> Discard;";

#[test]
fn offload_saves_the_guest_its_processor_time() {
    let [without, with] = costs(DROPS, 52);
    let saved = saved_percent(without.guest_us, with.guest_us);
    bounds::hold("min_offload_guest_saved_percent", saved);
}

/// The switch polls for a while after the last packet of a burst, whatever it decides, so offload
/// does not save its time. The least of three costs counts: other programs take the caches.
#[test]
#[cfg_attr(debug_assertions, ignore = "a promise of the release build")]
fn offload_saves_processor_time() {
    let (mut without, mut with) = (f64::MAX, f64::MAX);
    for [first, second] in (0..3).map(|_| costs(DROPS, 52)) {
        without = without.min(first.both_us());
        with = with.min(second.both_us());
    }
    bounds::hold("min_offload_saved_percent", saved_percent(without, with));
}

/// Processor time, wake-ups and notifications of a process pair for packets that a firewall drops and
/// that a balancer redirects, with and without offload.
#[test]
#[ignore = "prints figures: cargo test --release -p cosmosd --test it offload:: -- --ignored --nocapture"]
fn cost_of_a_decided_packet() {
    let redirects =
        "FromDevice(0) -> o :: ClickOSOffload(0, redirect 02:00:00:00:00:02 proto 17, ACTIVE A)
        -> Discard; o[1] -> Queue(1000) -> ToDevice(0);";
    for (name, config) in [("dropped", DROPS), ("balanced", redirects)] {
        for len in [52, 1500] {
            let [without, with] = costs(config, len);
            let saved = saved_percent(without.both_us(), with.both_us());
            println!("{name}, {len} bytes: {saved:.1} % less processor time");
        }
    }
}

fn saved_percent(without: f64, with: f64) -> f64 {
    100.0 * (1.0 - with / without)
}

/// Microseconds on a processor for a packet.
struct Cost {
    guest_us: f64,
    switch_us: f64,
}

impl Cost {
    fn both_us(&self) -> f64 {
        self.guest_us + self.switch_us
    }
}

/// The costs of packets of a length without offload and with it.
fn costs(config: &str, len: u16) -> [Cost; 2] {
    ["false", "true"].map(|active| {
        let config = config.replace("ACTIVE A", &format!("ACTIVE {active}"));
        cost(&config, active, len + 14)
    })
}

/// The cost at 20,000 packets a second.
fn cost(config: &str, active: &str, len: u16) -> Cost {
    const ROUNDS: u32 = 2000;
    const PACKETS: u32 = 20;
    let bed = Testbed::start();
    let spec = GuestSpec::new(1, &bed.engine_sha256(), config).vif(1);
    bed.call("create", spec.args()).unwrap();
    becomes(&bed, 1, if active == "true" { "active" } else { "off" });
    let mut vale = bed.vale();
    let (mut port, mut sink) = (
        TestPort::add(&mut vale, 1, 1),
        TestPort::add(&mut vale, 2, 1),
    );
    let guest = bed.guest_processes()[0];
    let frame = sized(53, len);
    let kicks = |vale: &mut vale_proto::ValeClient| vale.port_list(None).unwrap()[0].counters.kicks;
    let before = (spent(guest), spent(bed.valed.pid()), kicks(&mut vale));
    let mut sent = 0;
    for _ in 0..ROUNDS {
        let next = std::time::Instant::now() + std::time::Duration::from_millis(1);
        let took = (0..PACKETS).filter(|_| port.try_send_frame(&frame));
        sent += took.count();
        while sink.receive(std::time::Duration::ZERO).is_some() {}
        std::thread::sleep(next.saturating_duration_since(std::time::Instant::now()));
    }
    let after = (spent(guest), spent(bed.valed.pid()), kicks(&mut vale));
    let packets = sent as f64;
    let us = |ns: u64| ns as f64 / 1000.0 / packets;
    let (in_guest, in_switch) = (us(after.0 - before.0), us(after.1 - before.1));
    println!(
        "offload {active}, {len} byte frames: guest {in_guest:.3} us, switch {in_switch:.3} us, {} notifications of the guest for {packets} packets",
        after.2 - before.2
    );
    assert_eq!(
        hits(&bed, 1, "o.hits") > 0,
        active == "false" || hits(&bed, 1, "o.switch_hits") > 0
    );
    Cost {
        guest_us: in_guest,
        switch_us: in_switch,
    }
}

/// Nanoseconds on a processor of all threads of a process.
fn spent(pid: i32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |task: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
        text.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    tasks.map(of).sum()
}
