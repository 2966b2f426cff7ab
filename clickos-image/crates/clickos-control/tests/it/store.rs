// SPDX-License-Identifier: Apache-2.0
//! A store that is full, slow, broken or noisy, and the number of requests to it.
use super::{Bed, DOMID, running};
use clickos_control::simulator::Quota;
use xenstore::Code;

#[test]
fn lost_events_lead_to_a_look_at_everything() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    let generation = bed.request_router(0, b"a :: Cell(1); b :: Cell(2);", "Running");
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
    bed.request_router(0, b"b :: Cell(2);", "Running");
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
    // Every few steps of the guest the toolstack changes its mind; the last request has to win.
    for round in 0..20 {
        bed.request_router(
            0,
            format!("a :: Cell({round}); /* {} */", "x".repeat(9000)).as_bytes(),
            "Running",
        );
        bed.step(7 + round % 5);
    }
    let generation = bed.request_router(0, b"z :: Cell(last);", "Running");
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

/// Each is a message of the store to and fro, and most of the time that a router or a handler takes.
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
    // Seven requests for the router, two for its answer.
    bounds::hold("max_first_router_store_requests", made(&bed) as f64);
    bed.by_hand("0/generation", "8");
    assert_eq!(made(&bed), 1);
    bed.by_hand("0/generation", "9");
    assert_eq!(made(&bed), 10);
    assert_eq!(bed.read(0, "a.value").0, 200);
    bounds::hold("max_handler_store_requests", made(&bed) as f64);
    assert_eq!(bed.write(0, &[("a.value", "x")]).0, 200);
    bounds::hold("max_handler_store_requests", made(&bed) as f64);
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
    for own in ["0/error", "version", "0/response/1/0", "panic"] {
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
