// SPDX-License-Identifier: Apache-2.0
//! Handlers of element_nodes: a node each.
use super::Bed;

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
