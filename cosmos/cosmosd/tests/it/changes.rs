// SPDX-License-Identifier: Apache-2.0
//! Numbered changes on the real store, switch and engine. Needs root and NOXEN_PREFIX.

use std::time::Duration;

use cosmos_testbed::{GuestSpec, TestPort, Testbed, eventually, kill, uuid};
use rustix::process::Signal;
use serde_json::{Value, json};

const FIREWALL: &str = "\
FromDevice(0) -> Strip(14) -> fw :: IPFilter(allow all) -> Unstrip(14) -> Queue -> ToDevice(1);
FromDevice(1) -> Discard;
";
/// `CHANGE_ROUNDS` gives another number.
const ROUNDS: u64 = 60;
/// No answer takes as long.
const LONG_MS: u64 = 50_000;
/// A cosmosd that is killed costs more than a round.
const KILLS_EVERY: u64 = 20;

struct Bench {
    bed: Testbed,
    incarnation: Value,
}

impl Bench {
    fn start(number: u64) -> Self {
        let mut bench = Self {
            bed: Testbed::start(),
            incarnation: Value::Null,
        };
        bench.create(number);
        bench
    }

    fn create(&mut self, number: u64) {
        let spec = GuestSpec::new(1, &self.bed.engine_sha256(), FIREWALL);
        let mut args = spec.vif(1).vif(2).args();
        args["number"] = json!(number);
        let created = self.bed.call("create", args).expect("cosmosd answers so");
        self.incarnation = created["incarnation"].clone();
    }

    fn kill_cosmosd(&mut self) {
        self.bed.cosmosd.kill();
        self.bed.restart_cosmosd();
    }

    fn pid(&self) -> i32 {
        let info = self
            .bed
            .call("info", json!({"uuid": uuid(1)}))
            .expect("cosmosd answers so");
        self.bed
            .guest_pid(info["domid"].as_u64().expect("cosmosd answers so"))
            .expect("cosmosd answers so")
    }

    /// Writes a rule that has the number in it; returns the error's code.
    fn write(&self, number: u64, timeout_ms: u64) -> Result<Value, String> {
        let args = json!({
            "uuid": uuid(1), "rid": 0, "timeout_ms": timeout_ms,
            "change_id": {"number": number, "incarnation": self.incarnation},
            "writes": [["fw.config", rule(number)]],
        });
        let answer = self.bed.call("handler-write", args);
        answer.map_err(|error| error.to_string())
    }

    fn fence(&self, number: u64) -> Value {
        let args = json!({"uuid": uuid(1), "number": number});
        self.bed
            .call("change-fence", args)
            .expect("cosmosd answers so")
    }

    fn in_force(&self) -> String {
        let args = json!({"uuid": uuid(1), "rid": 0, "name": "fw.config"});
        let answer = self
            .bed
            .call("handler-read", args)
            .expect("cosmosd answers so");
        answer["value"]
            .as_str()
            .expect("cosmosd answers so")
            .to_owned()
    }
}

fn rule(number: u64) -> String {
    format!("allow src 10.0.{}.{}, deny all", number / 250, number % 250)
}

fn is_stale(answer: &Result<Value, String>) -> bool {
    answer.as_ref().is_err_and(|error| error.contains("stale"))
}

#[test]
fn writes_that_time_out_overtake_none() {
    let rounds = std::env::var("CHANGE_ROUNDS").map_or(ROUNDS, |n| n.parse().unwrap());
    let mut bench = Bench::start(0);
    for round in 0..rounds {
        let (late, good) = (2 * round + 1, 2 * round + 2);
        let pid = bench.pid();
        kill(pid, Signal::STOP);
        let silent = bench.write(late, 2);
        assert!(silent.unwrap_err().contains("timeout"), "{round}");
        assert_eq!(bench.fence(0)["pending"], json!([late]), "{round}");
        match round % KILLS_EVERY {
            0 => bench.kill_cosmosd(),
            7 => {
                bench.bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
                let before = bench.incarnation.clone();
                bench.create(late);
                assert_ne!(bench.incarnation, before);
            }
            _ => {}
        }
        if round % KILLS_EVERY != 7 {
            kill(pid, Signal::CONT);
        }
        let accepted = bench.write(good, LONG_MS).unwrap();
        let accepted = accepted["applied"].as_array().unwrap().clone();
        assert_eq!(accepted.last(), Some(&json!(good)), "{round}");
        // The guest took the late one before, unless it started again.
        assert_eq!(accepted.contains(&json!(late)), round % KILLS_EVERY != 7);
        assert!(is_stale(&bench.write(late, LONG_MS)), "{round}");
        assert!(is_stale(&bench.write(good, LONG_MS)), "{round}");
        assert!(
            bench
                .in_force()
                .contains(rule(good).split(',').next().unwrap())
        );
    }
}

#[test]
fn a_held_guest_forwards_nothing_until_its_release() {
    let mut bed = Testbed::start();
    let mut vale = bed.vale();
    let (mut a, mut b) = (
        TestPort::add(&mut vale, 1, 1),
        TestPort::add(&mut vale, 2, 2),
    );
    let wire = "FromDevice(0) -> Queue -> ToDevice(1); FromDevice(1) -> Discard;";
    let mut args = GuestSpec::new(1, &bed.engine_sha256(), wire)
        .vif(1)
        .vif(2)
        .args();
    args["hold"] = json!(true);
    bed.call("create", args).unwrap();
    bed.cosmosd.kill();
    bed.restart_cosmosd();
    a.send(b"too early");
    a.await_switch(&mut vale);
    assert_eq!(b.receive(Duration::ZERO), None);
    bed.call("release", json!({"uuid": uuid(1)})).unwrap();
    eventually("a frame", || {
        a.send(b"now");
        b.receive(Duration::from_millis(200))
    });
}
