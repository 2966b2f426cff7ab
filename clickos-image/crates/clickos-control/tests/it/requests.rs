// SPDX-License-Identifier: Apache-2.0
//! Handlers of programs: requests and answers in pieces.
use super::{Bed, DOMID};

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
fn an_answer_says_which_writes_are_no_values() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    assert_eq!(bed.write(0, &[("a.value", "x")]), (200, String::new()));
    bed.install(1, "b :: Cell(1);");
    let writes = [("a.add", "x"), ("a.value", "y"), ("stop", "1")];
    let marks = "2 command\n0 edit\n".to_owned();
    assert_eq!(bed.write(0, &writes), (200, marks));
    assert_eq!(bed.write(0, &[("a.add", "x"), ("a.value", "bad")]).0, 520);
}

/// Without it the toolstack would take a change that was made for one that never came.
#[test]
fn the_longest_answer_to_a_write_is_told_again_to_a_new_store() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    let ask = |count| format!("writes {count}\n{}", "a.add 1\nx\n".repeat(count));
    let asked: Vec<_> = [1, 400, 1024]
        .map(|count| (count, bed.ask(0, ask(count).as_bytes())))
        .into();
    bed.run();
    bed.relink();
    for (count, seq) in asked {
        let (code, marks) = bed.response(0, seq).unwrap();
        assert_eq!((code, marks.lines().count()), (200, count));
    }
}

#[test]
fn a_guest_ends_with_its_router_once_the_answer_is_taken() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    let seq = bed.ask(0, b"write stop 1");
    bed.run();
    assert_eq!(bed.response(0, seq), Some((200, "0 command\n".into())));
    assert_eq!(bed.ended(), None);
    bed.remove(&format!("0/response/{seq}"));
    assert!(bed.ended().unwrap().contains("a handler such as stop"));
    // Another configuration takes the place of the router.
    bed.install(0, "b :: Cell(1);");
    assert_eq!(bed.ended(), None);
    // The toolstack does not take the answer.
    bed.ask(0, b"write stop 1");
    bed.run();
    assert_eq!(bed.ended(), None);
    bed.pass(5_000_000_000);
    assert!(bed.ended().is_some());
}

#[test]
fn a_guest_with_another_router_goes_on() {
    let mut bed = Bed::new();
    bed.install(0, "a :: Cell(1);");
    bed.install(1, "b :: Cell(1);");
    assert_eq!(bed.write(0, &[("stop", "1")]).0, 200);
    assert_eq!(bed.ended(), None);
    assert_eq!(bed.read(1, "b.value"), (200, "1".into()));
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
