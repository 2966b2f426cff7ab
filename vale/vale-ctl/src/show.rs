// SPDX-License-Identifier: Apache-2.0
//! Tables and JSON.
use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};
use vale_proto::{PortInfo, PreconnectedVif, WorkerInfo};

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
}

pub fn switches(ports: &[PortInfo], format: Format) -> String {
    let mut counts = BTreeMap::new();
    for port in ports {
        *counts.entry(port.switch.as_str()).or_insert(0usize) += 1;
    }
    if format == Format::Json {
        let list: Vec<_> = counts
            .iter()
            .map(|(name, n)| json!({"switch": name, "ports": n}))
            .collect();
        return json_text(&list);
    }
    let rows = counts
        .iter()
        .map(|(name, n)| vec![(*name).to_owned(), n.to_string()]);
    table(&["SWITCH", "PORTS"], rows)
}

pub fn ports(ports: &[PortInfo], format: Format) -> String {
    if format == Format::Json {
        return json_text(&ports);
    }
    let rows = ports.iter().map(|p| {
        let value = json!(p);
        vec![
            address(p),
            text(&value["kind"]),
            p.segment.to_string(),
            p.mac.map_or("-".to_owned(), |m| m.to_string()),
            link(p),
            p.counters.rx_packets.to_string(),
            p.counters.tx_packets.to_string(),
            drops(p),
            policies(p),
        ]
    });
    let head = [
        "PORT", "KIND", "SEGMENT", "MAC", "LINK", "RX", "TX", "DROPS", "POLICIES",
    ];
    table(&head, rows)
}

/// The link of a port: `down` by a request, else the state of its far end.
fn link(port: &PortInfo) -> String {
    match port.link_up {
        true => port.far_end.to_string(),
        false => "down".to_owned(),
    }
}

pub fn workers(workers: &[WorkerInfo], format: Format) -> String {
    if format == Format::Json {
        return json_text(&workers);
    }
    let rows = workers.iter().map(|worker| {
        let ports = worker.ports.iter();
        let ports: Vec<_> = ports.map(|p| format!("{}:{}", p.switch, p.port)).collect();
        vec![
            worker.worker.to_string(),
            worker.busy_ms.to_string(),
            worker.all_handoffs().to_string(),
            worker.dropped_full.to_string(),
            worker.rounds.to_string(),
            worker.rounds_empty.to_string(),
            worker.sleeps.to_string(),
            worker.yields.to_string(),
            ports.join(" "),
        ]
    });
    let head = [
        "WORKER",
        "BUSY_MS",
        "HANDED_OVER",
        "DROPPED_FULL",
        "ROUNDS",
        "ROUNDS_EMPTY",
        "SLEEPS",
        "YIELDS",
        "PORTS",
    ];
    table(&head, rows)
}

pub fn preconnected(vifs: &[PreconnectedVif], format: Format) -> String {
    if format == Format::Json {
        return json_text(&vifs);
    }
    let rows = vifs.iter().map(|vif| {
        let connected = if vif.connected { "yes" } else { "no" };
        vec![
            vif.domid.to_string(),
            vif.devid.to_string(),
            connected.to_owned(),
        ]
    });
    table(&["DOMAIN", "DEVID", "CONNECTED"], rows)
}

/// The drops of a port by reason.
fn drops(port: &PortInfo) -> String {
    let some = port.counters.drops().filter(|(_, count)| *count > 0);
    or_none(some.map(|(reason, count)| format!("{reason}={count}")))
}

/// The limits, the filter, backpressure, the mode and the mirrors of a port.
fn policies(port: &PortInfo) -> String {
    let limits = port
        .limits
        .map(|limits| format!("limits={}", json!(limits)));
    let filter = port.filter.map(|f| {
        let (rules, connections) = (f.ingress_rules + f.egress_rules, f.connections);
        format!("rules={rules} connections={connections}")
    });
    let mirrors = port.mirrors.iter().map(|name| format!("mirror={name}"));
    let backpressure = (port.backpressure || port.hold).then(|| "backpressure".to_owned());
    let mode = port.mode.as_ref().map(|mode| format!("mode={mode:?}"));
    or_none(
        limits
            .into_iter()
            .chain(filter)
            .chain(backpressure)
            .chain(mode)
            .chain(mirrors),
    )
}

fn or_none(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<_> = parts.collect();
    match parts.is_empty() {
        true => "-".to_owned(),
        false => parts.join(" "),
    }
}

pub fn stats(ports: &[PortInfo], format: Format) -> String {
    if format == Format::Json {
        return json_text(&ports);
    }
    let rows = ports.iter().flat_map(|p| {
        let counters = json!(p.counters);
        let counters = counters.as_object().cloned().unwrap_or_default();
        counters
            .into_iter()
            .map(|(name, value)| vec![address(p), name, text(&value)])
    });
    table(&["PORT", "COUNTER", "VALUE"], rows)
}

fn address(port: &PortInfo) -> String {
    format!("{}:{}", port.switch, port.port)
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

pub fn json_text(value: &impl Serialize) -> String {
    format!("{:#}\n", json!(value))
}

pub fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut all = vec![head.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>()];
    all.extend(rows);
    let width = |column: usize| all.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<_> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str) -> PortInfo {
        serde_json::from_value(json!({
            "switch": "vale0", "port": name, "kind": "veth", "segment": 7, "mac": null, "link_up": false,
            "counters": vale_proto::Counters { rx_packets: 12, ..Default::default() },
        }))
        .unwrap()
    }

    #[test]
    fn tables_are_aligned() {
        let ports = [port("a"), port("longer")];
        assert_eq!(
            switches(&ports, Format::Table),
            "SWITCH  PORTS\nvale0   2\n"
        );
        let text = super::ports(&ports, Format::Table);
        assert_eq!(
            text.lines().nth(1).unwrap(),
            "vale0:a       veth  7        -    down  12  0   -      -"
        );
        let mut busy = port("b");
        busy.counters.dropped_rate = 3;
        busy.filter = Some(vale_proto::FilterInfo {
            ingress_rules: 1,
            egress_rules: 2,
            connections: 4,
        });
        busy.mirrors = vec!["m".parse().unwrap()];
        let text = super::ports(&[busy], Format::Table);
        assert!(
            text.ends_with("rate=3  rules=3 connections=4 mirror=m\n"),
            "{text}"
        );
        assert!(stats(&ports, Format::Table).contains("vale0:longer  rx_packets"));
    }

    #[test]
    fn json_is_the_answer_of_the_daemon() {
        let text = super::ports(&[port("a")], Format::Json);
        let back: Vec<PortInfo> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, [port("a")]);
    }
}
