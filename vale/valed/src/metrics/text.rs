// SPDX-License-Identifier: Apache-2.0
//! The text format of Prometheus. The labels are checked names, which need no escapes.
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use vale_proto::{ChainCounters, ChainInfo, Counters, MirrorInfo, PortInfo};

use crate::forwarder::Load;

/// Largest text: about 2,000 ports.
const MAX_TEXT: usize = 4 << 20;

const KEPT_WAITING: Named = ("vale_kept_waiting", "Kept requests that are not in force");
const TRUNCATED: Named = (
    "vale_metrics_truncated",
    "1 if values beyond 4 MiB were left out",
);

/// Everything that has counters, at one moment.
pub struct Snapshot {
    pub ports: Vec<PortInfo>,
    pub chains: Vec<ChainInfo>,
    pub mirrors: Vec<MirrorInfo>,
    pub workers: Vec<Load>,
    /// Kept requests that are not in force.
    pub waiting: usize,
}

/// A metric: its name, its help, its type, and its values by labels.
struct Family {
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    lines: Vec<(String, u64)>,
}

/// The name of a metric and its help.
type Named = (&'static str, &'static str);

impl Family {
    fn counter(named: Named) -> Self {
        Self::of(named, "counter")
    }

    fn of((name, help): Named, kind: &'static str) -> Self {
        Self {
            name,
            help,
            kind,
            lines: Vec::new(),
        }
    }

    /// A metric with one value.
    fn gauge(named: Named, labels: &str, value: u64) -> Self {
        let mut family = Self::of(named, "gauge");
        family.add(labels.to_owned(), value);
        family
    }

    /// Writes its head, and its values until the text is full. True if some were left out.
    fn write(&self, text: &mut String) -> bool {
        let (name, help, kind) = (self.name, self.help, self.kind);
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in &self.lines {
            if text.len() >= MAX_TEXT {
                return true;
            }
            let _ = writeln!(text, "{name}{{{labels}}} {value}");
        }
        false
    }

    fn add(&mut self, labels: String, value: u64) {
        self.lines.push((labels, value));
    }
}

/// Name and meaning of a figure of a worker, and how its load has it.
type WorkerFigure = ((&'static str, &'static str), fn(&Load) -> u64);

impl Snapshot {
    /// The text. Beyond 4 MiB it has no further values, and `vale_metrics_truncated` is 1.
    pub fn text(&self) -> String {
        let build = concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"");
        let named = ("vale_build_info", "The version of valed, always 1");
        let mut text = String::new();
        let mut truncated = Family::gauge(named, build, 1).write(&mut text);
        let families = self.ports().into_iter().chain(self.segments());
        let families = families.chain(self.chains()).chain(self.mirrors());
        for family in families.chain(self.workers()) {
            truncated |= family.write(&mut text);
        }
        for ((name, help), value) in [
            (KEPT_WAITING, self.waiting as u64),
            (TRUNCATED, truncated.into()),
        ] {
            let _ = writeln!(
                text,
                "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
            );
        }
        text
    }

    fn ports(&self) -> Vec<Family> {
        let mut traffic = Traffic::new([
            (
                "vale_port_packets_total",
                "Packets of a port; rx enter the switch",
            ),
            (
                "vale_port_bytes_total",
                "Bytes of a port; rx enter the switch",
            ),
            (
                "vale_port_drops_total",
                "Packets that a port dropped, by reason",
            ),
        ]);
        let mut kicks = Family::counter((
            "vale_port_notifications_total",
            "Notifications to the guest of a port",
        ));
        let mut received = Family::counter((
            "vale_port_notifications_received_total",
            "Notifications from the guest of a port",
        ));
        let mut polls = Family::counter((
            "vale_port_polls_empty_total",
            "Looks at a port that found no packet",
        ));
        let mut bursts = Family::counter((
            "vale_port_bursts_total",
            "Bursts of packets that a port sent",
        ));
        let mut up = Family::of(("vale_port_up", "1 if the link of a port is up"), "gauge");
        let mut connections = Family::of(
            (
                "vale_port_filter_connections",
                "Connections in the filter of a port",
            ),
            "gauge",
        );
        for port in &self.ports {
            let labels = || format!("switch=\"{}\",port=\"{}\"", port.switch, port.port);
            traffic.add(&labels(), &port.counters);
            kicks.add(labels(), port.counters.kicks);
            received.add(labels(), port.counters.kicks_received);
            polls.add(labels(), port.counters.polls_empty);
            bursts.add(labels(), port.counters.bursts);
            up.add(labels(), port.is_up().into());
            if let Some(filter) = port.filter {
                connections.add(labels(), filter.connections as u64);
            }
        }
        let [packets, bytes, drops] = traffic.0;
        vec![
            packets,
            bytes,
            drops,
            kicks,
            received,
            polls,
            bursts,
            up,
            connections,
        ]
    }

    fn workers(&self) -> Vec<Family> {
        let figures: [WorkerFigure; 6] = [
            (
                (
                    "vale_worker_busy_milliseconds_total",
                    "Processor time of a worker",
                ),
                |w| w.busy / 1_000_000,
            ),
            (
                (
                    "vale_worker_rounds_total",
                    "Rounds of a worker over its ports",
                ),
                |w| w.rounds,
            ),
            (
                (
                    "vale_worker_rounds_empty_total",
                    "Rounds of a worker without a packet",
                ),
                |w| w.rounds_empty,
            ),
            (
                ("vale_worker_sleeps_total", "How often a worker slept"),
                |w| w.sleeps,
            ),
            (
                (
                    "vale_worker_yields_total",
                    "How often a worker let others run",
                ),
                |w| w.yields,
            ),
            (
                (
                    "vale_worker_frames_handed_over_total",
                    "Frames that a worker gave to another one",
                ),
                |w| w.handoffs,
            ),
        ];
        let family = |(name, of): WorkerFigure| {
            let mut family = Family::counter(name);
            for load in &self.workers {
                family.add(format!("worker=\"{}\"", load.worker), of(load));
            }
            family
        };
        figures.into_iter().map(family).collect()
    }

    /// The sums of the ports of each segment.
    fn segments(&self) -> [Family; 3] {
        let mut sums: BTreeMap<_, Vec<&Counters>> = BTreeMap::new();
        for port in &self.ports {
            let of = sums.entry((&port.switch, port.segment)).or_default();
            of.push(&port.counters);
        }
        let mut traffic = Traffic::new([
            (
                "vale_segment_packets_total",
                "Packets of all ports of a segment",
            ),
            (
                "vale_segment_bytes_total",
                "Bytes of all ports of a segment",
            ),
            (
                "vale_segment_drops_total",
                "Packets that the ports of a segment dropped, by reason",
            ),
        ]);
        for ((switch, segment), counters) in sums {
            let labels = format!("switch=\"{switch}\",segment=\"{segment}\"");
            traffic.add(&labels, &sum(&counters));
        }
        traffic.0
    }

    fn chains(&self) -> Vec<Family> {
        let mut entered = Steered::new([
            ("vale_chain_packets_total", "Packets that entered a chain"),
            ("vale_chain_bytes_total", "Bytes that entered a chain"),
            (
                "vale_chain_drops_total",
                "Packets that a hop without a live port pair blocked",
            ),
            (
                "vale_chain_loops_total",
                "Frames of hops that would enter a hop again, or were too many",
            ),
        ]);
        let mut hops = Steered::new([
            ("vale_chain_hop_packets_total", "Packets to a hop"),
            ("vale_chain_hop_bytes_total", "Bytes to a hop"),
            (
                "vale_chain_hop_drops_total",
                "Packets that a hop without a live port pair blocked",
            ),
            (
                "vale_chain_hop_loops_total",
                "Frames of a hop that would enter a hop again, or were too many",
            ),
        ]);
        for chain in &self.chains {
            let labels = format!(
                "switch=\"{}\",chain=\"{}\"",
                chain.set.switch, chain.set.chain
            );
            entered.add(&labels, chain.counters);
            for (hop, counters) in chain.hop_counters.iter().enumerate() {
                hops.add(&format!("{labels},hop=\"{hop}\""), *counters);
            }
        }
        entered.0.into_iter().chain(hops.0).collect()
    }

    fn mirrors(&self) -> [Family; 2] {
        let mut copies = Family::counter(("vale_mirror_packets_total", "Copies of a mirror"));
        let mut drops = Family::counter((
            "vale_mirror_drops_total",
            "Copies that a mirror did not make, by reason",
        ));
        for mirror in &self.mirrors {
            let name = |extra: &dyn Display| {
                let (switch, mirror) = (&mirror.set.switch, &mirror.set.mirror);
                format!("switch=\"{switch}\",mirror=\"{mirror}\"{extra}")
            };
            copies.add(name(&""), mirror.counters.packets);
            drops.add(name(&",reason=\"rate\""), mirror.counters.over_rate);
            drops.add(name(&",reason=\"target\""), mirror.counters.dropped);
        }
        [copies, drops]
    }
}

/// Packets, bytes and drops of ports.
struct Traffic([Family; 3]);

impl Traffic {
    fn new(names: [Named; 3]) -> Self {
        Self(names.map(Family::counter))
    }

    fn add(&mut self, labels: &str, counters: &Counters) {
        let [packets, bytes, drops] = &mut self.0;
        let both = [
            ("rx", counters.rx_packets, counters.rx_bytes),
            ("tx", counters.tx_packets, counters.tx_bytes),
        ];
        for (direction, count, size) in both {
            packets.add(format!("{labels},direction=\"{direction}\""), count);
            bytes.add(format!("{labels},direction=\"{direction}\""), size);
        }
        for (reason, count) in counters.drops() {
            drops.add(format!("{labels},reason=\"{reason}\""), count);
        }
        // The label of `rogue` before 1.0, for one more release.
        drops.add(format!("{labels},reason=\"role\""), counters.dropped_role);
    }
}

/// Packets, bytes, drops and loops of chains.
struct Steered([Family; 4]);

impl Steered {
    fn new(names: [Named; 4]) -> Self {
        Self(names.map(Family::counter))
    }

    fn add(&mut self, labels: &str, counters: ChainCounters) {
        let ChainCounters {
            packets,
            bytes,
            dropped,
            looped,
        } = counters;
        let values = [packets, bytes, dropped, looped];
        for (family, value) in self.0.iter_mut().zip(values) {
            family.add(labels.to_owned(), value);
        }
    }
}

fn sum(all: &[&Counters]) -> Counters {
    let mut sum = Counters::default();
    for counters in all {
        sum += **counters;
    }
    sum
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn port(name: &str) -> PortInfo {
        serde_json::from_value(json!({
            "switch": "vale0", "port": name, "kind": "veth", "segment": 7, "mac": null,
            "link_up": true, "counters": {"rx_packets": 2, "dropped_spoof": 3, "dropped_rogue": 4, "dropped_role": 4,
                "polls_empty": 13},
        }))
        .unwrap()
    }

    fn text(ports: Vec<PortInfo>) -> String {
        let chain = json!({"switch": "vale0", "chain": "web", "segment": 1, "classifiers": [{}],
            "hops": [], "counters": {"packets": 5, "bytes": 0, "dropped": 0}, "hop_counters": [{"packets": 0, "bytes": 0, "dropped": 6, "looped": 8}], "live_pairs": []});
        let mirror = json!({"switch": "vale0", "mirror": "m", "segment": 1, "to_port": "x",
            "counters": {"over_rate": 9}});
        let snapshot = Snapshot {
            ports,
            chains: vec![serde_json::from_value(chain).unwrap()],
            mirrors: vec![serde_json::from_value(mirror).unwrap()],
            workers: vec![Load {
                worker: 1,
                sleeps: 11,
                ..Load::default()
            }],
            waiting: 2,
        };
        snapshot.text()
    }

    #[test]
    fn ports_segments_chains_and_mirrors_have_their_counters() {
        let text = text(vec![port("a"), port("b")]);
        for line in [
            "# TYPE vale_port_packets_total counter",
            r#"vale_port_packets_total{switch="vale0",port="a",direction="rx"} 2"#,
            r#"vale_port_drops_total{switch="vale0",port="b",reason="spoof"} 3"#,
            r#"vale_port_drops_total{switch="vale0",port="b",reason="rogue"} 4"#,
            r#"vale_port_drops_total{switch="vale0",port="b",reason="role"} 4"#,
            r#"vale_segment_packets_total{switch="vale0",segment="7",direction="rx"} 4"#,
            r#"vale_segment_drops_total{switch="vale0",segment="7",reason="spoof"} 6"#,
            r#"vale_port_up{switch="vale0",port="a"} 1"#,
            r#"vale_chain_packets_total{switch="vale0",chain="web"} 5"#,
            r#"vale_chain_hop_drops_total{switch="vale0",chain="web",hop="0"} 6"#,
            r#"vale_chain_hop_loops_total{switch="vale0",chain="web",hop="0"} 8"#,
            r#"vale_mirror_drops_total{switch="vale0",mirror="m",reason="rate"} 9"#,
            r#"vale_port_polls_empty_total{switch="vale0",port="a"} 13"#,
            r#"vale_worker_sleeps_total{worker="1"} 11"#,
            "vale_kept_waiting 2",
            "vale_metrics_truncated 0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }

    /// Each name of a metric in the dashboard and the alert rules is one of ours.
    #[test]
    fn the_operators_files_name_metrics_that_exist() {
        let text = text(vec![filtered("a")]);
        let known: Vec<_> = text
            .lines()
            .filter_map(|l| l.strip_prefix("# HELP ")?.split(' ').next())
            .collect();
        assert_eq!(known.len(), 31, "{known:?}");
        let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operator");
        let mut named = 0;
        for file in ["prometheus-alerts.yaml", "grafana-dashboard.json"] {
            let content = std::fs::read_to_string(here.join(file)).unwrap();
            let words = content.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            for word in words.filter(|word| word.starts_with("vale_")) {
                assert!(known.contains(&word), "{file}: {word}");
                named += 1;
            }
        }
        assert!(named > 10, "{named}");
    }

    #[test]
    fn each_metric_has_help_before_its_type() {
        let text = text(vec![filtered("a")]);
        let lines: Vec<_> = text.lines().collect();
        for (n, line) in lines.iter().enumerate() {
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let name = kind.split(' ').next().unwrap();
                let help = lines[n - 1].strip_prefix(&format!("# HELP {name} "));
                assert!(help.is_some_and(|h| h.len() > 10), "{line}");
            }
        }
        let version = env!("CARGO_PKG_VERSION");
        let build = format!("vale_build_info{{version=\"{version}\"}} 1");
        assert!(lines.contains(&build.as_str()));
    }

    fn filtered(name: &str) -> PortInfo {
        let filter = json!({"ingress_rules": 0, "egress_rules": 0, "connections": 4});
        PortInfo {
            filter: Some(serde_json::from_value(filter).unwrap()),
            ..port(name)
        }
    }

    #[test]
    fn addresses_rules_and_hops_are_not_in_the_text() {
        let mut port = port("a");
        port.mac = Some("02:00:00:00:00:77".parse().unwrap());
        let chain = json!({"switch": "vale0", "chain": "web", "segment": 1,
            "classifiers": [{"source_port": "secretsource", "source": "192.0.2.77/32", "protocol": 17}],
            "hops": [{"pairs": [{"ingress": "secretin", "egress": "secretout"}]}],
            "nat": ["198.51.100.77/32"],
            "counters": {"packets": 5, "bytes": 0, "dropped": 0},
            "hop_counters": [{"packets": 0, "bytes": 0, "dropped": 6}], "live_pairs": []});
        let snapshot = Snapshot {
            ports: vec![port],
            chains: vec![serde_json::from_value(chain).unwrap()],
            mirrors: Vec::new(),
            workers: Vec::new(),
            waiting: 0,
        };
        let text = snapshot.text();
        assert!(text.contains("chain=\"web\"") && text.contains("port=\"a\""));
        for hidden in ["02:00:00", "192.0.2", "198.51.100", "secret"] {
            assert!(!text.contains(hidden), "{hidden}\n{text}");
        }
    }

    #[test]
    fn the_text_has_a_limit() {
        let ports = (0..8000).map(|n| port(&format!("p{n}"))).collect();
        let text = text(ports);
        assert!(text.len() < MAX_TEXT + 4096, "{}", text.len());
        assert!(text.ends_with("vale_metrics_truncated 1\n"));
    }
}
