// SPDX-License-Identifier: Apache-2.0
//! The disk of cosmosd's state is full, or takes no write. Needs root and NOXEN_PREFIX.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use cosmos_testbed::{GuestSpec, Testbed, eventually, uuid};
use serde_json::{Value, json};

use crate::store::{faults, frames_arrive, sender_and_counter};

const DISK: &str = "size=1m,nr_inodes=120";
const NO_SPACE: &str = "No space left on device";
const READ_ONLY: &str = "Read-only file system";
/// No answer of a daemon that waits for nothing takes as long.
const AT_ONCE: Duration = Duration::from_secs(1);

/// A way to make a disk useless, and its words.
struct Trouble {
    begin: fn(&Testbed),
    end: fn(&Testbed),
    words: &'static str,
}

const TROUBLES: [Trouble; 3] = [
    Trouble {
        begin: fill_blocks,
        end: empty,
        words: NO_SPACE,
    },
    Trouble {
        begin: fill_inodes,
        end: empty,
        words: NO_SPACE,
    },
    Trouble {
        begin: cover,
        end: uncover,
        words: READ_ONLY,
    },
];

fn filler(bed: &Testbed, n: usize) -> PathBuf {
    bed.state().join(format!("filler-{n}"))
}

fn fill_blocks(bed: &Testbed) {
    let mut file = File::create(filler(bed, 0)).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
}

fn fill_inodes(bed: &Testbed) {
    let mut paths = (0..).map(|n| filler(bed, n));
    paths.find(|path| File::create(path).is_err());
}

fn empty(bed: &Testbed) {
    let mut paths = (0..).map(|n| filler(bed, n));
    paths.find(|path| fs::remove_file(path).is_err());
}

/// Covers the disk with a view that takes no write: guests' consoles keep the disk itself in use.
fn cover(bed: &Testbed) {
    mount(
        bed,
        r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0""#,
    );
}

fn uncover(bed: &Testbed) {
    mount(bed, r#"umount "$0""#);
}

fn mount(bed: &Testbed, script: &str) {
    let mut command = Command::new("nsenter");
    command.arg(format!("--mount=/proc/{}/ns/mnt", bed.cosmosd.pid()));
    command.args(["sh", "-c", script]).arg(bed.path("state"));
    assert!(command.status().unwrap().success(), "{script}");
}

/// The counter of frames, to be started instead of the one that runs.
fn again(bed: &Testbed) -> Value {
    let config = "FromDevice(0) -> c :: Counter -> Discard;";
    let spec = GuestSpec::new(2, &bed.engine_sha256(), config);
    let mut args = spec.vif(1).args();
    args["replace"] = json!(true);
    args
}

fn domid(bed: &Testbed) -> Value {
    bed.call("info", json!({"uuid": uuid(2)})).unwrap()["domid"].clone()
}

fn write(number: u64, handler: &str) -> Value {
    json!({"uuid": uuid(2), "rid": 0, "writes": [[handler, ""]], "timeout_ms": 60_000,
           "change_id": {"number": number}})
}

/// A configuration about which the guest has a lot to say.
fn bad_install(number: u64) -> Value {
    json!({"uuid": uuid(2), "rid": 0, "config": "Unknown -> ".repeat(30) + "Discard;",
           "config_name": "bad.click", "timeout_ms": 60_000, "change_id": {"number": number}})
}

#[test]
fn a_guest_is_not_ended_where_no_other_can_start() {
    for trouble in TROUBLES {
        let bed = Testbed::on_disk(DISK);
        sender_and_counter(&bed);
        frames_arrive(&bed);
        let (first, processes) = (domid(&bed), bed.guest_processes());
        let mut events = bed.client().events().unwrap();

        (trouble.begin)(&bed);
        let begun = Instant::now();
        let error = bed.refused("create", again(&bed));
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
        assert!(error.starts_with("state-dir: state_dir: "), "{error}");
        assert!(error.contains(trouble.words), "{error}");
        assert_eq!(
            (domid(&bed), bed.guest_processes()),
            (first.clone(), processes)
        );
        frames_arrive(&bed);
        faults(&bed, &["state_dir"]);
        let fault = events.next_event().unwrap().data["faults"][0].clone();
        assert!(
            fault["reason"].as_str().unwrap().contains(trouble.words),
            "{fault}"
        );

        (trouble.end)(&bed);
        faults(&bed, &[]);
        bed.call("create", again(&bed)).unwrap();
        assert_ne!(domid(&bed), first);
        frames_arrive(&bed);
    }
}

#[test]
fn a_write_that_cannot_be_noted_is_refused_at_once() {
    let bed = Testbed::on_disk(DISK);
    sender_and_counter(&bed);
    let [full, _, read_only] = TROUBLES;
    for (n, trouble) in (1..).zip([full, read_only]) {
        (trouble.begin)(&bed);
        // The guest's words fill the room that its ledger has.
        let mut numbers = n * 1000..n * 1000 + 100;
        let is_full = |number| {
            let error = bed.refused("router-install", bad_install(number));
            error.starts_with("state-dir: ")
        };
        assert!(numbers.any(is_full), "a ledger is bounded by its disk");
        let (begun, number) = (Instant::now(), n * 1000 + 500);
        let error = bed.refused("handler-write", write(number, "c.reset"));
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
        let words = "state-dir: state_dir: ledgers/";
        assert!(error.starts_with(words), "{error}");
        assert!(error.contains(trouble.words), "{error}");
        faults(&bed, &["state_dir"]);

        (trouble.end)(&bed);
        faults(&bed, &[]);
        // The guest has not seen the change: its number is still good.
        bed.call("handler-write", write(number, "c.reset")).unwrap();
    }
}

#[test]
fn guests_change_and_end_on_a_full_disk() {
    let bed = Testbed::on_disk(DISK);
    sender_and_counter(&bed);
    fill_blocks(&bed);
    bed.call("handler-write", write(1, "c.reset")).unwrap();
    frames_arrive(&bed);
    let pid = bed.guest_pid(domid(&bed).as_u64().unwrap()).unwrap();
    cosmos_testbed::kill(pid, rustix::process::Signal::KILL);
    eventually("the death is known", || {
        let info = bed.call("info", json!({"uuid": uuid(2)})).unwrap();
        (info["state"] == "crashed").then_some(())
    });
    let record = fs::read_to_string(bed.state().join(format!("guests/{}.json", uuid(2)))).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["phase"], "crashed");
    for n in 1..=2 {
        bed.call("destroy", json!({"uuid": uuid(n)})).unwrap();
    }
    empty(&bed);
    for folder in ["guests", "ledgers", "console"] {
        let left = fs::read_dir(bed.state().join(folder)).unwrap().count();
        assert_eq!(left, 0, "{folder}");
    }
}

#[test]
fn a_guest_is_not_ended_for_one_that_has_no_memory() {
    let bed = Testbed::start();
    sender_and_counter(&bed);
    let first = domid(&bed);
    let mut large = again(&bed);
    large["memory_mib"] = json!(4096);
    let error = bed.refused("create", large);
    assert!(error.starts_with("no-memory: 4096 MiB asked"), "{error}");
    assert_eq!(domid(&bed), first);
    frames_arrive(&bed);
}
