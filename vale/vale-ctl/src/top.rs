// SPDX-License-Identifier: Apache-2.0
//! What ports and workers do in each second.
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Map, Value, json};
use vale_proto::{Counters, PortInfo, SwitchName, ValeClient, WorkerInfo};

use crate::show::{self, Format};

/// Moves a terminal's cursor to the start and removes what is there.
const CLEAR: &str = "\x1b[H\x1b[J";

#[derive(Args)]
pub struct TopArguments {
    /// The ports of one switch only.
    pub switch: Option<SwitchName>,
    /// Seconds between two samples.
    #[arg(long, default_value_t = 1.0, value_parser = interval)]
    pub interval: f64,
    /// Looks until the end; 0 for no end.
    #[arg(long, default_value_t = 0)]
    pub count: u64,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok();
    let seconds = seconds.filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| format!("expected 0.1 to 3600 seconds, got {text:.20?}"))
}

/// The counters of one moment.
struct Look {
    at: Instant,
    ports: Vec<PortInfo>,
    workers: Vec<WorkerInfo>,
}

impl Look {
    fn new(client: &mut ValeClient, switch: Option<SwitchName>) -> Result<Self, String> {
        Ok(Self {
            at: Instant::now(),
            ports: client.port_list(switch).map_err(|e| e.to_string())?,
            workers: client.worker_list().map_err(|e| e.to_string())?,
        })
    }
}

/// A name and its figures in the order of a table.
type Row = (String, Vec<(&'static str, f64)>);

/// Shows the rates of each interval until the end.
pub fn run(
    client: &mut ValeClient,
    arguments: &TopArguments,
    format: Format,
) -> Result<String, String> {
    let mut before = Look::new(client, arguments.switch.clone())?;
    let mut looks = 0;
    while arguments.count == 0 || looks < arguments.count {
        std::thread::sleep(Duration::from_secs_f64(arguments.interval));
        let now = Look::new(client, arguments.switch.clone())?;
        let mut out = std::io::stdout();
        let clear = match out.is_terminal() && format == Format::Table {
            true => CLEAR,
            false => "",
        };
        let text = text(&before, &now, format);
        if out.write_all(format!("{clear}{text}").as_bytes()).is_err() {
            break;
        }
        (before, looks) = (now, looks + 1);
    }
    Ok(String::new())
}

fn text(before: &Look, now: &Look, format: Format) -> String {
    let (ports, workers) = (ports(before, now), workers(before, now));
    match format {
        Format::Table => format!("{}\n{}", table("PORT", &ports), table("WORKER", &workers)),
        Format::Json => {
            let both = json!({"ports": objects(&ports), "workers": objects(&workers)});
            format!("{both}\n")
        }
    }
}

fn seconds(before: &Look, now: &Look) -> f64 {
    (now.at - before.at).as_secs_f64().max(0.001)
}

/// The part of a whole; 0 of nothing.
fn part(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

fn ports(before: &Look, now: &Look) -> Vec<Row> {
    let known = before.ports.iter();
    let known: BTreeMap<_, _> = known.map(|p| ((&p.switch, &p.port), p.counters)).collect();
    let seconds = seconds(before, now);
    let row = |port: &PortInfo| {
        let old = known.get(&(&port.switch, &port.port)).copied();
        let (old, new) = (old.unwrap_or_default(), port.counters);
        let grown = |of: fn(&Counters) -> u64| of(&new).saturating_sub(of(&old));
        let rate = |of| grown(of) as f64 / seconds;
        let drops: fn(&Counters) -> u64 = |c| c.drops().map(|(_, count)| count).sum();
        let figures = vec![
            ("rx", rate(|c| c.rx_packets)),
            ("tx", rate(|c| c.tx_packets)),
            ("drops", rate(drops)),
            ("bursts", rate(|c| c.bursts)),
            (
                "frames_a_burst",
                part(grown(|c| c.rx_packets), grown(|c| c.bursts)),
            ),
            ("polls_empty", rate(|c| c.polls_empty)),
            ("kicks_sent", rate(|c| c.kicks)),
            ("kicks_received", rate(|c| c.kicks_received)),
        ];
        (format!("{}:{}", port.switch, port.port), figures)
    };
    now.ports.iter().map(row).collect()
}

fn workers(before: &Look, now: &Look) -> Vec<Row> {
    let known = before.workers.iter();
    let known: BTreeMap<_, _> = known.map(|worker| (worker.worker, worker)).collect();
    let seconds = seconds(before, now);
    let row = |worker: &WorkerInfo| {
        let grown = |of: fn(&WorkerInfo) -> u64| {
            let old = known.get(&worker.worker).map_or(0, |old| of(old));
            of(worker).saturating_sub(old)
        };
        let rate = |of| grown(of) as f64 / seconds;
        let figures = vec![
            ("busy_percent", rate(|w| w.busy_ms) / 10.0),
            ("rounds", rate(|w| w.rounds)),
            ("rounds_empty", rate(|w| w.rounds_empty)),
            ("sleeps", rate(|w| w.sleeps)),
            ("yields", rate(|w| w.yields)),
            ("handed_over", rate(WorkerInfo::all_handoffs)),
        ];
        (worker.worker.to_string(), figures)
    };
    now.workers.iter().map(row).collect()
}

fn table(first: &str, rows: &[Row]) -> String {
    let heads = rows.first().map(|(_, figures)| figures.iter());
    let heads = heads
        .into_iter()
        .flatten()
        .map(|(name, _)| name.to_uppercase());
    let heads: Vec<_> = std::iter::once(first.to_owned()).chain(heads).collect();
    let heads: Vec<_> = heads.iter().map(String::as_str).collect();
    let cells = |(name, figures): &Row| {
        let figures = figures.iter().map(|(name, value)| match *name {
            "frames_a_burst" | "busy_percent" => format!("{value:.1}"),
            _ => format!("{value:.0}"),
        });
        std::iter::once(name.clone()).chain(figures).collect()
    };
    show::table(&heads, rows.iter().map(cells))
}

fn objects(rows: &[Row]) -> Value {
    let object = |(name, figures): &Row| {
        let figures = figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)));
        let mut object: Map<_, _> = figures.collect();
        object.insert("name".to_owned(), json!(name));
        Value::Object(object)
    };
    rows.iter().map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at: Instant, packets: u64, rounds: u64) -> Look {
        let counters = Counters {
            rx_packets: packets,
            bursts: packets / 32,
            dropped_full: packets / 10,
            ..Counters::default()
        };
        let port = json!({"switch": "vale0", "port": "a", "kind": "veth", "segment": 7,
            "mac": null, "link_up": true, "counters": counters});
        let worker = json!({"worker": 0, "busy_ms": rounds, "handoffs": 0, "dropped_full": 0,
            "rounds": rounds, "rounds_empty": rounds / 2, "ports": []});
        Look {
            at,
            ports: vec![serde_json::from_value(port).unwrap()],
            workers: vec![serde_json::from_value(worker).unwrap()],
        }
    }

    #[test]
    fn figures_are_of_the_interval_and_a_second() {
        let start = Instant::now();
        let (before, now) = (
            look(start, 100_000, 5000),
            look(start + Duration::from_secs(2), 200_000, 7000),
        );
        let json: Value = serde_json::from_str(&text(&before, &now, Format::Json)).unwrap();
        let (port, worker) = (&json["ports"][0], &json["workers"][0]);
        for (found, expected) in [
            (&port["rx"], 50_000.0),
            (&port["drops"], 5000.0),
            (&port["frames_a_burst"], 32.0),
            (&worker["busy_percent"], 100.0),
            (&worker["rounds_empty"], 500.0),
        ] {
            let found = found.as_f64().unwrap();
            assert!((found - expected).abs() < 1.0, "{found} {expected}");
        }
        let table = text(&before, &now, Format::Table);
        assert!(table.starts_with("PORT     RX"), "{table}");
        assert!(table.contains("\nWORKER  BUSY_PERCENT"), "{table}");
    }

    /// A port that was removed and added again starts again.
    #[test]
    fn smaller_counters_make_no_rate() {
        let start = Instant::now();
        let rows = ports(&look(start, 100, 1), &look(start, 10, 1));
        assert!(rows[0].1.iter().all(|(_, value)| *value == 0.0));
    }
}
