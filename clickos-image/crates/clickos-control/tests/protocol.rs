// SPDX-License-Identifier: Apache-2.0
//! docs/control-protocol.md, case by case, on the simulated store.
#![allow(clippy::unwrap_used)] // A test.

mod bed;
mod files;

use bed::{Bed, DOMID};
use clickos_control::simulator::Quota;
use xenstore::Code;

const VERSION: &str = concat!("clickos ", env!("CARGO_PKG_VERSION"), " protocol 1");

fn running() -> (String, String) {
    ("Running".into(), String::new())
}

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

/// What a router draws first in a guest whose toolstack gave this seed.
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
    assert_eq!(bed.read(3, "a.value"), (200, "kept".into()));
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
    let generation = bed.wish(0, b"a ::\n Cell(\xff);", "Running");
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
    let generation = bed.wish(0, &[b' '; 8000], "Running");
    bed.store.remove(&bed.node("0/config/1"));
    bed.store.write(&bed.node("0/config/7"), b"x");
    bed.run();
    assert_eq!(bed.answer(0, generation).1, "fw.click: config/1 is missing");
    let generation = bed.wish(0, b"a :: Cell(1);", "Maybe");
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
        let generation = bed.wish(0, b"Nonesuch;", "Running");
        bed.store.write(&bed.node("0/config_name"), name);
        bed.run();
        let (_, error) = bed.answer(0, generation);
        assert!(error.starts_with("config:1:1: "), "{error}");
    }
}

#[test]
fn halting_and_resuming() {
    let mut bed = Bed::new();
    let generation = bed.wish(0, b"a :: Cell(1);", "Halted");
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
    let generation = bed.wish(64, b"a :: Cell(1);", "Running");
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
fn requests_of_programs() {
    let mut bed = Bed::new();
    assert_eq!(
        bed.read(0, "a.value"),
        (540, "router 0 is not installed".into())
    );
    bed.install(0, "a :: Cell(1); b :: Cell(2);");
    assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
    assert_eq!(bed.request(0, b"read a.big 5"), (200, "xxxxx".into()));
    assert_eq!(
        bed.request(0, b"write a.value two words\nand lines"),
        (200, String::new())
    );
    assert_eq!(bed.read(0, "a.value"), (200, "two words\nand lines".into()));
    assert_eq!(bed.read(0, "x.value").0, 510);
    assert_eq!(bed.read(0, "a.nothing").0, 511);
    assert_eq!(bed.read(0, "a.dead").0, 520);
    assert_eq!(bed.write(0, &[("a.value", "bad")]).0, 520);
    assert_eq!(bed.write(0, &[("a.fail", "x")]).0, 530);
    for malformed in [&b""[..], b"x", b"writes 3\n", b"read \xff"] {
        assert_eq!(bed.request(0, malformed).0, 500, "{malformed:?}");
    }
    let (code, list) = bed.request(0, b"handlers");
    assert_eq!(code, 200);
    for line in ["a.value rw", "a.big r", "b.value rw", "list r"] {
        assert!(list.lines().any(|l| l == line), "{line} is not in {list}");
    }
}

#[test]
fn a_batch_is_all_or_nothing() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1); b :: Cell(2);");
    let (code, error) = bed.write(0, &[("a.value", "x"), ("b.value", "bad")]);
    assert_eq!(code, 520);
    assert!(error.starts_with("b.value: "), "{error}");
    assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
    assert_eq!(bed.write(0, &[("a.value", "x"), ("b.value", "y")]).0, 200);
    assert_eq!(bed.read(0, "a.value"), (200, "x".into()));
    assert_eq!(bed.read(0, "b.value"), (200, "y".into()));
}

#[test]
fn long_requests_and_long_answers() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    let long = "v".repeat(50_000);
    assert_eq!(bed.write(0, &[("a.value", &long)]), (200, String::new()));
    assert_eq!(bed.read(0, "a.value"), (200, long));
    let (code, error) = bed.request(0, b"read a.big 300000");
    assert_eq!(
        (code, &error[..]),
        (590, "answer of 300000 bytes, the limit is 262144 now")
    );
    let (code, error) = bed.request(0, &[b'x'; 170_000]);
    assert_eq!(
        (code, &error[..]),
        (590, "request is longer than the limit of 165536 bytes")
    );
    assert_eq!(bed.read(0, "a.class").0, 200);
}

#[test]
fn a_request_in_pieces_is_answered_once_when_it_is_whole() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    bed.by_hand("0/request/7/0", "+write a.val");
    assert_eq!(bed.response(0, 7), None);
    bed.by_hand("0/request/7/2", ".2");
    assert_eq!(bed.response(0, 7), None);
    bed.by_hand("0/request/7/1", "+ue ");
    assert_eq!(bed.response(0, 7), Some((200, String::new())));
    bed.write(0, &[("a.value", "3")]);
    bed.by_hand("0/request/7/1", "+ue ");
    assert_eq!(bed.read(0, "a.value"), (200, "3".into()));
    bed.by_hand("0/request/8/0", "no mark");
    assert_eq!(
        bed.response(0, 8),
        Some((500, "piece without + or .".into()))
    );
}

#[test]
fn at_most_sixteen_answers_wait_to_be_taken() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    let seqs: Vec<u32> = (0..20).map(|_| bed.ask(0, b"read a.value")).collect();
    bed.run();
    let answered = |bed: &Bed| {
        seqs.iter()
            .filter(|s| bed.response(0, **s).is_some())
            .count()
    };
    assert_eq!(answered(&bed), 16);
    assert_eq!(bed.response(0, seqs[15]), Some((200, "1".into())));
    for seq in &seqs[..4] {
        bed.take_away(0, *seq);
    }
    assert_eq!(answered(&bed), 16);
    assert!(bed.response(0, seqs[19]).is_some());
    seqs.iter().for_each(|seq| bed.take_away(0, *seq));
    assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
    assert_eq!(bed.store.list(&bed.node("0/response")), [""; 0]);
}

#[test]
fn large_answers_share_their_budget() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    let seqs: Vec<u32> = (0..3).map(|_| bed.ask(0, b"read a.big 250000")).collect();
    bed.run();
    let codes: Vec<u16> = seqs
        .iter()
        .map(|s| bed.response(0, *s).unwrap().0)
        .collect();
    assert_eq!(codes, [200, 200, 590]);
    assert!(bed.store.owned(DOMID) < 400, "{}", bed.store.owned(DOMID));
    seqs.iter().for_each(|seq| bed.take_away(0, *seq));
    assert_eq!(bed.request(0, b"read a.big 250000").0, 200);
}

#[test]
fn a_requester_that_gave_up_leaves_nothing_behind() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    // Removed before it was seen: no answer at all.
    let seq = bed.ask(0, b"read a.value");
    bed.store.remove(&bed.node(&format!("0/request/{seq}")));
    bed.run();
    assert_eq!(bed.response(0, seq), None);
    // Removed after it was answered: the answer goes too. More often than answers are kept.
    for _ in 0..20 {
        let seq = bed.ask(0, b"read a.value");
        bed.run();
        bed.store.remove(&bed.node(&format!("0/request/{seq}")));
        bed.run();
        assert_eq!(bed.response(0, seq), None);
    }
    // The same by removing all at once.
    (0..16).for_each(|_| _ = bed.ask(0, b"read a.value"));
    bed.run();
    bed.store.remove(&bed.node("0/request"));
    bed.run();
    assert_eq!(bed.store.list(&bed.node("0/response")), [""; 0]);
    assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
}

#[test]
fn strange_request_names_are_ignored() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    for name in ["x", "01", "-1", "4294967296"] {
        bed.by_hand(&format!("0/request/{name}/0"), ".read a.value");
        assert_eq!(bed.text(&format!("0/response/{name}/0")), None, "{name}");
    }
    assert_eq!(bed.read(0, "a.value").0, 200);
}

#[test]
fn people_write_handlers() {
    let mut bed = Bed::new();
    bed.install(3, "a :: Cell(1); c :: { b :: Cell(2) };");
    bed.by_hand("3/elements/a/value", "5");
    assert_eq!(bed.read(3, "a.value"), (200, "5".into()));
    bed.by_hand("3/elements/c-b/value", "6");
    assert_eq!(bed.read(3, "c/b.value"), (200, "6".into()));
    assert_eq!(bed.text("3/error"), None);
    for (path, wanted) in [
        ("3/elements/a/nothing", "a.nothing: "),
        ("3/elements/x-y/value", "x/y.value: "),
        ("4/elements/a/value", "router 4 "),
    ] {
        bed.by_hand(path, "7");
        let error = bed.text(&format!("{}/error", &path[..1])).unwrap();
        assert!(error.starts_with(wanted), "{error}");
    }
    bed.by_hand("3/elements/a/value", "bad");
    assert!(bed.text("3/error").unwrap().starts_with("a.value: "));
    assert_eq!(bed.read(3, "a.value"), (200, "5".into()));
}

#[test]
fn people_read_handlers_and_reading_never_writes() {
    let mut bed = Bed::new();
    bed.install(3, "a :: Cell(1); c :: { b :: Cell(2) };");
    bed.by_hand("3/control/read/c-b/value", "1");
    assert_eq!(bed.text("3/elements/c-b/value").as_deref(), Some("2"));
    bed.by_hand("3/control/read/a/value", "1");
    bed.write(3, &[("a.value", "changed")]);
    assert_eq!(bed.text("3/elements/a/value").as_deref(), Some("1"));
    bed.store.fire(&bed.node("3/control/read/a/value"));
    bed.run();
    assert_eq!(bed.text("3/elements/a/value").as_deref(), Some("changed"));
    // The event of what was shown must not have been taken as a write of the old value.
    assert_eq!(bed.read(3, "a.value"), (200, "changed".into()));
    // A person who writes the very value that is shown does write it.
    bed.write(3, &[("a.value", "other")]);
    bed.by_hand("3/elements/a/value", "changed");
    assert_eq!(bed.read(3, "a.value"), (200, "changed".into()));
    bed.by_hand("3/control/read/a/fail", "1");
    assert!(bed.text("3/error").unwrap().starts_with("a.fail: "));
    bed.write(3, &[("a.value", "2000")]);
    bed.by_hand("3/control/read/a/big", "1");
    let error = bed.text("3/error").unwrap();
    assert_eq!(error, "a.big: value of 2000 bytes, the limit is 1900");
}

#[test]
fn removing_what_people_use_does_nothing() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    bed.by_hand("0/control/read/a/value", "1");
    bed.store.remove(&bed.node("0/elements/a/value"));
    bed.run();
    bed.store.remove(&bed.node("0/control/read/a/value"));
    bed.run();
    assert_eq!(bed.text("0/elements/a/value"), None);
    assert_eq!(bed.text("0/error"), None);
    assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
}

#[test]
fn element_nodes_have_a_budget() {
    let mut bed = Bed::new();
    let config: String = (0..70).map(|n| format!("a{n} :: Cell({n});")).collect();
    bed.install(0, &config);
    for n in 0..70 {
        bed.by_hand(&format!("0/control/read/a{n}/value"), "1");
        assert_eq!(
            bed.text(&format!("0/elements/a{n}/value")).is_some(),
            n < 64,
            "{n}"
        );
    }
    assert_eq!(
        bed.text("0/error").unwrap(),
        "a69.value: 64 element nodes are made, remove some"
    );
    bed.store.remove(&bed.node("0/elements/a3/value"));
    bed.run();
    bed.by_hand("0/control/read/a69/value", "2");
    assert_eq!(bed.text("0/elements/a69/value").as_deref(), Some("69"));
}

#[test]
fn lost_events_lead_to_a_look_at_everything() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    let generation = bed.wish(0, b"a :: Cell(1); b :: Cell(2);", "Running");
    let seq = bed.ask(0, b"read b.value");
    bed.store.lose_events();
    bed.run();
    assert_eq!(bed.answer(0, generation), running());
    assert_eq!(bed.response(0, seq), Some((200, "2".into())));
    bed.store.remove(&bed.node(&format!("0/request/{seq}")));
    bed.store.lose_events();
    bed.run();
    assert_eq!(bed.response(0, seq), None);
}

#[test]
fn a_full_quota_is_answered_and_survived() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    // Directories of request and answer, and one piece: the second is refused.
    let nodes = bed.store.owned(DOMID) + 5;
    bed.store.set_quota(Quota {
        nodes,
        ..Quota::default()
    });
    let (code, error) = bed.request(0, b"read a.big 50000");
    assert_eq!(code, 590);
    assert!(error.contains("ENOSPC"), "{error}");
    assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
    bed.store.set_quota(Quota {
        nodes: 1,
        ..Quota::default()
    });
    let seq = bed.ask(0, b"read a.value");
    bed.run();
    assert_eq!(bed.response(0, seq), None);
    bed.by_hand("0/control/read/a/value", "1");
    assert_eq!(bed.text("0/elements/a/value"), None);
    bed.store.set_quota(Quota::default());
    bed.take_away(0, seq);
    assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
    assert!(
        bed.console
            .borrow()
            .iter()
            .any(|line| line.contains("ENOSPC"))
    );
    assert!(!bed.lost());
}

#[test]
fn a_store_that_refuses_an_answer_once() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    bed.store.refuse_write("/1", Code::Again);
    let (code, error) = bed.request(0, b"read a.big 5000");
    assert_eq!((code, error.contains("EAGAIN")), (590, true), "{error}");
    bed.store.refuse_write("0/state", Code::NoSpace);
    bed.wish(0, b"b :: Cell(2);", "Running");
    bed.run();
    let told = bed
        .console
        .borrow()
        .iter()
        .any(|line| line.contains("ENOSPC"));
    assert!(told, "the console says nothing");
    assert_eq!(bed.read(0, "b.value"), (200, "2".into()));
    assert_eq!(bed.install(0, "c :: Cell(3);"), running());
}

#[test]
fn a_slow_store_does_not_hold_up_the_guest() {
    let mut bed = Bed::new();
    bed.connection.borrow_mut().delay = 5;
    assert_eq!(bed.install(0, "a :: Cell(1);"), running());
    assert_eq!(bed.read(0, "a.value"), (200, "1".into()));
}

#[test]
fn a_broken_store_is_told_once() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    bed.store.break_connections();
    bed.run();
    assert!(bed.lost());
    bed.run();
}

#[test]
fn a_wish_that_changes_while_it_is_read_is_not_mixed() {
    let mut bed = Bed::new();
    bed.connection.borrow_mut().delay = 2;
    // Every few steps of the guest the toolstack changes its mind; the last wish has to win.
    for round in 0..20 {
        bed.wish(
            0,
            format!("a :: Cell({round}); /* {} */", "x".repeat(9000)).as_bytes(),
            "Running",
        );
        bed.step(7 + round % 5);
    }
    let generation = bed.wish(0, b"z :: Cell(last);", "Running");
    bed.run();
    assert_eq!(bed.answer(0, generation), running());
    assert_eq!(bed.read(0, "z.value"), (200, "last".into()));
}

#[test]
fn an_error_is_taken_back_by_the_next_success() {
    let mut bed = Bed::new();
    assert_eq!(bed.install(0, "a :: Nonesuch;").0, "Error");
    assert_eq!(bed.install(0, "a :: Cell(1);"), running());
    bed.by_hand("0/elements/a/value", "bad");
    assert_ne!(bed.text("0/error").as_deref(), Some(""));
    assert_eq!(bed.install(0, "a :: Cell(2);"), running());
    bed.restore();
    assert_eq!(bed.install(0, "a :: Nonesuch;").0, "Error");
    assert_eq!(bed.install(0, "a :: Cell(1);"), running());
}

/// Each is a message of the store to and fro, and most of the time that a wish or a handler takes.
#[test]
fn requests_to_the_store_are_few() {
    let mut bed = Bed::new();
    assert_eq!(bed.store.requests(), 5); // Node, watch, list; version; the watch's first event.
    let mut before = bed.store.requests();
    let mut made = |bed: &Bed| {
        let now = bed.store.requests();
        now - std::mem::replace(&mut before, now)
    };
    bed.store.write(&bed.node("0/config/0"), b"a :: Cell(1);");
    bed.by_hand("0/generation", "8");
    assert_eq!(made(&bed), 9); // Seven looks, two answers.
    bed.by_hand("0/generation", "8");
    assert_eq!(made(&bed), 1);
    bed.by_hand("0/generation", "9");
    assert_eq!(made(&bed), 10);
    assert_eq!(bed.read(0, "a.value").0, 200);
    assert_eq!(made(&bed), 2);
    assert_eq!(bed.write(0, &[("a.value", "x")]).0, 200);
    assert_eq!(made(&bed), 2);
    bed.by_hand("0/elements/a/value", "y");
    assert_eq!(made(&bed), 1);
    bed.by_hand("0/control/read/a/value", "1");
    assert_eq!(made(&bed), 3);
}

#[test]
fn own_writes_cost_no_requests() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    bed.run();
    let before = bed.store.requests();
    for own in ["0/state", "0/error", "version", "0/response/1/0", "panic"] {
        bed.store.fire(&bed.node(own));
    }
    bed.run();
    assert_eq!(bed.store.requests(), before);
}

#[test]
fn noise_in_the_store_is_survived() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    let words = [
        "0",
        "1",
        "63",
        "64",
        "config",
        "status",
        "generation",
        "request",
        "response",
        "elements",
        "control",
        "read",
        "a",
        "value",
        "7",
        "state",
        "error",
        "",
    ];
    let mut noise = 1_usize;
    let mut word = || {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963);
        words[(noise >> 33) % words.len()]
    };
    for _ in 0..3000 {
        let path = [word(), word(), word(), word()].join("/");
        let path = bed.node(path.trim_matches('/')).replace("//", "/");
        bed.store
            .write(path.trim_end_matches('/'), word().as_bytes());
        bed.store.fire(&bed.node(word()));
        bed.step(3);
    }
    bed.store.remove("/local/domain/5/data/clickos");
    bed.run();
    assert!(!bed.lost());
    assert!(bed.store.owned(DOMID) < 1000);
    assert_eq!(bed.install(0, "z :: Cell(9);"), running());
    assert_eq!(bed.read(0, "z.value"), (200, "9".into()));
}
