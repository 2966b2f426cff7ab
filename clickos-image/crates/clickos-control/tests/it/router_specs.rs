// SPDX-License-Identifier: Apache-2.0
//! Starting, configurations and their answers.
use super::{Bed, running};
use xenstore::Code;

const VERSION: &str = concat!("clickos ", env!("CARGO_PKG_VERSION"), " protocol 1");

#[test]
fn a_guest_announces_itself() {
    let bed = Bed::new();
    assert_eq!(bed.text("").as_deref(), None);
    assert_eq!(
        bed.store.text("/local/domain/5/data/clickos").as_deref(),
        Some("")
    );
    let version = bed.text("version").unwrap();
    assert_eq!(version, VERSION);
    assert_eq!(bed.store.writes(), ["data/clickos", "data/clickos/version"]);
}

#[test]
fn a_guest_that_may_not_announce_itself_is_lost_but_runs() {
    let bed = Bed::with(|store| store.refuse_write("clickos", Code::Access));
    assert!(bed.lost());
}

#[test]
fn a_wish_made_before_the_start_counts() {
    let mut bed = Bed::with(|store| {
        store.write("/local/domain/5/data/clickos/0/config/0", b"a :: Cell(1);");
        store.write("/local/domain/5/data/clickos/0/generation", b"77");
        store.write("/local/domain/5/data/clickos/1/config/0", b"a :: Cell(2);");
        store.write("/local/domain/5/data/clickos/1/status", b"Running");
        store.write("/local/domain/5/data/clickos/2/request/8/0", b".handlers");
    });
    assert_eq!(bed.text("0/state").as_deref(), Some("Running 77"));
    assert_eq!(bed.text("1/state").as_deref(), Some("Running 0"));
    assert_eq!(bed.response(2, 8).unwrap().0, 540);
    assert_eq!(bed.read(1, "a.value"), (200, "2".into()));
    assert_eq!(bed.text("2/state"), None);
}

/// A guest that was paused gets events of a device and of its configuration in one round, after it
/// looked at its devices.
#[test]
fn a_configuration_waits_for_a_look_at_the_devices() {
    let mut bed = Bed::new();
    let generation = bed.request_router(0, b"a :: Cell(1);", "Running");
    assert!(bed.round(true), "it has to go on at once");
    for _ in 0..10 {
        assert!(bed.round(false), "it must not fall asleep");
    }
    assert_eq!(bed.text("0/state"), None);
    bed.round(true);
    assert_eq!(bed.answer(0, generation), running());
}

/// The first random number of a router in a guest with this seed.
fn drawn(seed: Option<&str>) -> String {
    let mut bed = Bed::with(|store| {
        if let Some(seed) = seed {
            store.write("/local/domain/5/data/clickos/seed", seed.as_bytes());
        }
    });
    assert_eq!(bed.install(0, "a :: Cell(1);"), running());
    bed.read(0, "a.random").1
}

#[test]
fn the_toolstacks_seed_counts() {
    assert_eq!(drawn(Some("one")), drawn(Some("one")));
    assert_ne!(drawn(Some("one")), drawn(Some("two")));
    assert_ne!(drawn(Some("one")), drawn(None));
}

#[test]
fn a_seed_that_comes_with_a_wish_counts() {
    let mut bed = Bed::new();
    assert_eq!(bed.install(0, "a :: Cell(1);"), running());
    bed.by_hand("seed", "late");
    assert_eq!(bed.install(1, "a :: Cell(1);"), running());
    assert_ne!(bed.read(0, "a.random"), bed.read(1, "a.random"));
}

#[test]
fn an_answer_tells_the_memory_that_is_left() {
    let mut bed = Bed::new();
    assert_eq!(bed.text("memory"), None);
    assert_eq!(bed.install(0, "a :: Cell(1);"), running());
    assert_eq!(bed.text("memory").as_deref(), Some("5120"));
}

#[test]
fn installing_swapping_and_removing() {
    let mut bed = Bed::new();
    assert_eq!(bed.install(0, "a :: Cell(1);"), running());
    assert_eq!(bed.write(0, &[("a.value", "kept")]), (200, String::new()));
    assert_eq!(bed.install(0, "a :: Cell(2); b :: Cell(3);"), running());
    assert_eq!(bed.read(0, "a.value"), (200, "kept".into()));
    assert_eq!(bed.read(0, "b.value"), (200, "3".into()));
    for empty in ["", " \n\t "] {
        assert_eq!(bed.install(0, empty), ("Halted".into(), String::new()));
        assert_eq!(bed.read(0, "a.value").0, 540);
        assert_eq!(bed.install(0, "a :: Cell(1);"), running());
        assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
    }
}

#[test]
fn after_a_restore_the_new_domains_store_is_told_everything() {
    let mut bed = Bed::new();
    assert_eq!(bed.install(3, "a :: Cell(1);"), running());
    assert_eq!(bed.write(3, &[("a.value", "kept")]), (200, String::new()));
    bed.restore();
    assert_eq!(bed.text("version").as_deref(), Some(VERSION));
    assert_eq!(bed.text("3/state").as_deref(), Some("Running 1"));
    assert_eq!(bed.text("3/error"), None);
    // its elements announce their addresses once
    assert_eq!(bed.read(3, "a.value"), (200, "kept announced".into()));
    assert_eq!(bed.install(3, "b :: Cell(2);"), running());
}

#[test]
fn a_configuration_that_does_not_start_changes_nothing() {
    let mut bed = Bed::new();
    let (word, error) = bed.install(0, "a :: Cell(1);\n b :: Nonesuch;");
    assert_eq!(word, "Error");
    assert!(error.starts_with("fw.click:2:"), "{error}");
    assert!(error.contains("Nonesuch"), "{error}");
    assert_eq!(bed.read(0, "a.value").0, 540);

    assert_eq!(bed.install(0, "a :: Cell(1);"), running());
    for bad in [
        "a :: Cell(1, 2, 3);",
        "a -> -> b",
        "a :: ToDump(x);",
        "((((",
        "\u{0}",
    ] {
        let (word, error) = bed.install(0, bad);
        assert_eq!(word, "Error", "{bad}");
        assert!(error.starts_with("fw.click:1:"), "{error}");
        assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
    }
    assert_eq!(bed.install(0, "a :: Cell(2);"), running());
}

#[test]
fn many_errors_fit_the_error_node() {
    let mut bed = Bed::new();
    let config: String = (0..500)
        .map(|n| format!("e{n} :: Nonesuch{n};\n"))
        .collect();
    let (word, error) = bed.install(0, &config);
    assert_eq!(word, "Error");
    assert!(error.len() <= 1900, "{}", error.len());
    assert!(error.lines().last().unwrap().ends_with(" more)"), "{error}");
}

#[test]
fn text_that_is_not_utf8_or_too_long_is_refused_with_its_place() {
    let mut bed = Bed::new();
    let generation = bed.request_router(0, b"a ::\n Cell(\xff);", "Running");
    bed.run();
    let (word, error) = bed.answer(0, generation);
    assert_eq!(
        (&word[..], &error[..]),
        ("Error", "fw.click:2:7: byte 0xff is not UTF-8 text")
    );
    let long = format!("a :: Cell(1); /* {} */", "x".repeat(99_000));
    assert_eq!(bed.install(0, &long), running());
    let too_long = format!("{long}// {}", "x".repeat(1_000));
    let (word, error) = bed.install(0, &too_long);
    let wanted = "fw.click: configuration is longer than the limit of 100000 bytes";
    assert_eq!((&word[..], &error[..]), ("Error", wanted));
}

#[test]
fn a_missing_piece_and_a_strange_status_are_named() {
    let mut bed = Bed::new();
    let generation = bed.request_router(0, &[b' '; 8000], "Running");
    bed.store.remove(&bed.node("0/config/1"));
    bed.store.write(&bed.node("0/config/7"), b"x");
    bed.run();
    assert_eq!(bed.answer(0, generation).1, "fw.click: config/1 is missing");
    let generation = bed.request_router(0, b"a :: Cell(1);", "Maybe");
    bed.run();
    assert_eq!(
        bed.answer(0, generation).1,
        "status: expected Running or Halted"
    );
}

#[test]
fn bad_names_of_configurations_are_replaced() {
    let mut bed = Bed::new();
    for name in [&b""[..], b"a\x1b[2Jb", b"\xff", &[b'x'; 300]] {
        let generation = bed.request_router(0, b"Nonesuch;", "Running");
        bed.store.write(&bed.node("0/config_name"), name);
        bed.run();
        let (_, error) = bed.answer(0, generation);
        assert!(error.starts_with("config:1:1: "), "{error}");
    }
}

#[test]
fn halting_and_resuming() {
    let mut bed = Bed::new();
    let generation = bed.request_router(0, b"a :: Cell(1);", "Halted");
    bed.run();
    assert_eq!(bed.answer(0, generation), ("Halted".into(), String::new()));
    assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
    bed.by_hand("0/status", "Running");
    assert_eq!(bed.text("0/state"), Some(format!("Running {generation}")));
    bed.by_hand("0/status", "Halted");
    assert_eq!(bed.text("0/state"), Some(format!("Halted {generation}")));
    assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
}

#[test]
fn routers_are_side_by_side() {
    let mut bed = Bed::new();
    for rid in [0, 1, 63] {
        assert_eq!(bed.install(rid, &format!("a :: Cell({rid});")), running());
    }
    assert_eq!(bed.install(1, ""), ("Halted".into(), String::new()));
    assert_eq!(bed.read(0, "a.value"), (200, "0".into()));
    assert_eq!(bed.read(1, "a.value").0, 540);
    assert_eq!(bed.read(63, "a.value"), (200, "63".into()));
    let generation = bed.request_router(64, b"a :: Cell(1);", "Running");
    bed.run();
    assert_eq!(bed.text("64/state"), None, "generation {generation}");
}

#[test]
fn a_wish_by_hand() {
    let mut bed = Bed::new();
    bed.by_hand("0/config/0", "a :: ");
    bed.by_hand("0/config/1", "Cell(1);");
    assert_eq!(bed.text("0/state"), None);
    bed.by_hand("0/status", "Running");
    assert_eq!(bed.text("0/state").as_deref(), Some("Running 0"));
    bed.write(0, &[("a.value", "changed")]);
    bed.by_hand("0/status", "Running");
    assert_eq!(bed.read(0, "a.value"), (200, "changed".into()));
    bed.by_hand("0/config/1", "Nonesuch;");
    bed.by_hand("0/status", "Running");
    assert_eq!(bed.text("0/state").as_deref(), Some("Error 0"));
    assert!(
        bed.text("0/error").unwrap().starts_with("config:1:"),
        "{:?}",
        bed.text("0/error")
    );
    bed.by_hand("0/config/0", "");
    bed.by_hand("0/config/1", "");
    bed.by_hand("0/status", "Running");
    assert_eq!(bed.text("0/state").as_deref(), Some("Halted 0"));
    assert_eq!(bed.read(0, "a.value").0, 540);
}

#[test]
fn by_hand_after_the_toolstack() {
    let mut bed = Bed::new();
    assert_eq!(bed.install(0, "a :: Cell(1);"), running());
    bed.by_hand("0/config/0", "b :: Cell(2);");
    bed.by_hand("0/status", "Running");
    assert_eq!(bed.read(0, "b.value"), (200, "2".into()));
    assert_eq!(bed.install(0, "c :: Cell(3);"), running());
    assert_eq!(bed.read(0, "c.value"), (200, "3".into()));
}

#[test]
fn garbage_generations_are_no_generations() {
    let mut bed = Bed::new();
    bed.by_hand("0/config/0", "a :: Cell(1);");
    for garbage in ["", "x", "-1", "99999999999999999999999", "1 2", "\u{1b}[2J"] {
        bed.by_hand("0/generation", garbage);
        assert_eq!(bed.text("0/state"), None, "{garbage:?}");
    }
    bed.by_hand("0/status", "Running");
    assert_eq!(bed.text("0/state").as_deref(), Some("Running 0"));
}

#[test]
fn a_person_halts_the_router_beside_a_text_that_does_not_start() {
    let mut bed = Bed::new();
    bed.by_hand("0/config/0", "a :: Cell(1);");
    bed.by_hand("0/status", "Running");
    bed.by_hand("0/config/0", "a :: Nonesuch;");
    bed.by_hand("0/status", "Running");
    assert_eq!(bed.text("0/state").as_deref(), Some("Error 0"));
    bed.by_hand("0/status", "Halted");
    assert_eq!(bed.text("0/state").as_deref(), Some("Halted 0"));
    assert!(bed.text("0/error").unwrap().contains("Nonesuch"));
    assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
    bed.by_hand("0/status", "Neither");
    assert_eq!(bed.text("0/state").as_deref(), Some("Error 0"));
}

#[test]
fn a_router_ends_with_its_keys() {
    let mut bed = Bed::new();
    for rid in [0, 1] {
        assert_eq!(bed.install(rid, "a :: Cell(1);"), running());
    }
    bed.remove("0");
    assert_eq!(bed.text("0/state"), None);
    assert_eq!(bed.read(0, "a.value").0, 540);
    assert_eq!(bed.read(1, "a.value"), (200, "1".into()));
    let line = "router 0: its keys were removed: it has ended";
    assert!(bed.console.borrow().iter().any(|l| l == line));
    bed.by_hand("0/config/0", "a :: Cell(2);");
    bed.by_hand("0/status", "Running");
    assert_eq!(bed.read(0, "a.value"), (200, "2".into()));
}

#[test]
fn without_its_root_a_guest_announces_itself_again() {
    let mut bed = Bed::new();
    assert_eq!(bed.install(3, "a :: Cell(1);"), running());
    bed.remove("");
    assert_eq!(bed.text("version").as_deref(), Some(VERSION));
    assert_eq!(bed.text("3/state"), None);
    assert_eq!(bed.read(3, "a.value").0, 540);
    assert_eq!(bed.install(3, "a :: Cell(2);"), running());
}

#[test]
fn a_state_that_a_person_removes_comes_back() {
    let mut bed = Bed::new();
    assert_eq!(bed.install(0, "a :: Cell(1);"), running());
    let before = bed.store.requests();
    bed.remove("0/state");
    assert_eq!(bed.text("0/state").as_deref(), Some("Running 1"));
    bed.by_hand("0/state", "Halted 7");
    assert_eq!(bed.text("0/state").as_deref(), Some("Running 1"));
    assert!(bed.store.requests() - before < 10);
}

/// Runs the guest until it has written the state of a request, and not a step further.
fn step_to_answer(bed: &mut Bed, generation: u64) {
    let answered = format!(" {generation}");
    for _ in 0..1000 {
        if bed
            .text("0/state")
            .is_some_and(|state| state.ends_with(&answered))
        {
            return;
        }
        bed.step(1);
    }
    panic!("request {generation}: no answer");
}

/// A request arrives while the events of the one before it still wait: the guest finds it by such
/// an event, and its own events come later, when the toolstack has taken the pieces away.
#[test]
fn a_request_among_the_events_of_the_last_one_is_answered_once() {
    let good = "a :: Cell(1);";
    for (second, word) in [("a :: Nonesuch;", "Error"), (good, "Running")] {
        let mut bed = Bed::new();
        let first = bed.request_router(0, good.as_bytes(), "Running");
        step_to_answer(&mut bed, first);
        let second = bed.request_router(0, second.as_bytes(), "Running");
        step_to_answer(&mut bed, second);
        let answer = (bed.text("0/state"), bed.text("0/error"));
        assert_eq!(answer.0, Some(format!("{word} {second}")));
        let writes = bed.store.writes().len();
        bed.store.remove(&bed.node("0/config"));
        bed.run();
        assert_eq!((bed.text("0/state"), bed.text("0/error")), answer);
        let late = bed.store.writes().split_off(writes);
        assert!(!late.iter().any(|path| path.ends_with("state")), "{late:?}");
    }
}

/// Two answers in a row can reach the guest as one event of its own `state`.
#[test]
fn a_state_that_a_person_removes_comes_back_after_two_quick_answers() {
    let mut bed = Bed::new();
    let first = bed.request_router(0, b"a :: Cell(1);", "Running");
    step_to_answer(&mut bed, first);
    bed.store.drop_event("data/clickos/0/state");
    let second = bed.request_router(0, b"a :: Cell(2);", "Running");
    bed.run();
    assert_eq!(bed.text("0/state"), Some(format!("Running {second}")));
    bed.remove("0/state");
    assert_eq!(bed.text("0/state"), Some(format!("Running {second}")));
}
