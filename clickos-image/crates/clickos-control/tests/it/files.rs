// SPDX-License-Identifier: Apache-2.0
//! Configurations in archives, and what their routers do with the files.
use super::{Bed, running};

/// A pcap file of one Ethernet frame, cut at 20 bytes, of 60.
fn capture() -> Vec<u8> {
    let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 2000, 1];
    let record = [1_700_000_000_u32, 5, 20, 60];
    let words = header.iter().chain(&record);
    let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend((0..20).map(|n| n * 13));
    bytes
}

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let size = data.len();
        let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
        bytes.extend(header.bytes().chain(data.iter().copied()));
        bytes.extend((size % 2 == 1).then_some(b'\n'));
    }
    bytes
}

fn bed() -> Bed {
    Bed::of(click_elements::registry(), |_| {})
}

fn install(bed: &mut Bed, config: &str, file: (&str, &[u8])) -> (String, String) {
    let archive = archive(&[file, ("config/", config.as_bytes())]);
    let generation = bed.request_router(0, &archive, "Running");
    bed.run();
    bed.answer(0, generation)
}

fn file(bed: &mut Bed, asked: &str) -> (u16, Vec<u8>) {
    let seq = bed.ask(0, format!("read file {asked}").as_bytes());
    bed.run();
    let answer = bed.response_bytes(0, seq).expect("an answer");
    bed.take_away(0, seq);
    answer
}

#[test]
fn a_file_of_the_archive_goes_through_the_router_into_another() {
    let mut bed = bed();
    let config = "FromDump(in.pcap) -> c :: Counter -> ToDump(out.pcap);";
    assert_eq!(
        install(&mut bed, config, ("in.pcap/", &capture())),
        running()
    );
    assert_eq!(bed.read(0, "c.count"), (200, "1".into()));
    assert_eq!(
        bed.read(0, "files"),
        (200, "60 in.pcap\n60 out.pcap\n".into())
    );
    assert_eq!(file(&mut bed, "0 out.pcap"), (200, capture()));
    assert_eq!(
        file(&mut bed, "50 out.pcap"),
        (200, capture()[50..].to_vec())
    );
    assert_eq!(file(&mut bed, "60 out.pcap"), (200, Vec::new()));
    let (code, error) = file(&mut bed, "0 none");
    assert_eq!(code, 520);
    assert!(
        String::from_utf8(error)
            .unwrap()
            .contains("\"none\" is not a member of the configuration's archive")
    );
    let (_, handlers) = bed.request(0, b"handlers");
    assert!(
        handlers.contains("\nfile r\nfiles r\nvifs r\n"),
        "{handlers}"
    );
}

#[test]
fn files_belong_to_their_router_and_go_with_it() {
    let mut bed = bed();
    assert_eq!(
        install(&mut bed, "Idle -> Discard;", ("a/", b"1")),
        running()
    );
    assert_eq!(bed.install(1, "Idle -> Discard;"), running());
    assert_eq!(bed.read(1, "files"), (200, String::new()));
    assert_eq!(
        install(&mut bed, "Idle -> Null -> Discard;", ("b/", b"2")),
        running()
    );
    assert_eq!(bed.read(0, "files"), (200, "1 a\n1 b\n".into()));
    assert_eq!(bed.install(0, "").0, "Halted");
    assert_eq!(bed.install(0, "Idle -> Discard;"), running());
    assert_eq!(bed.read(0, "files"), (200, String::new()));
}

#[test]
fn what_does_not_start_leaves_the_files_alone() {
    let mut bed = bed();
    assert_eq!(
        install(&mut bed, "Idle -> Discard;", ("a/", b"old")),
        running()
    );
    let (word, error) = install(&mut bed, "Idle -> Nonesuch;", ("a/", b"new"));
    assert_eq!(word, "Error");
    assert!(error.starts_with("fw.click:1:9: "), "{error}");
    assert_eq!(file(&mut bed, "0 a"), (200, b"old".to_vec()));
}

#[test]
fn archives_that_do_not_fit_are_refused() {
    let mut bed = bed();
    let config = "Idle -> Discard;";
    let (word, error) = install(&mut bed, config, ("a/", &[0; 10_001]));
    let limit = "fw.click: archive: a: the limit of all files is 10000 bytes";
    assert_eq!((word.as_str(), error.as_str()), ("Error", limit));
    assert_eq!(install(&mut bed, config, ("a/", &[0; 10_000])), running());
    let (_, error) = install(&mut bed, config, ("..a/b", b""));
    assert!(
        error.starts_with("fw.click: archive: \"..a/b\" has a folder"),
        "{error}"
    );
    let mut cut = archive(&[("config/", config.as_bytes())]);
    cut.truncate(70);
    let generation = bed.request_router(0, &cut, "Running");
    bed.run();
    let (_, error) = bed.answer(0, generation);
    assert_eq!(error, "fw.click: archive: a member is longer than the file");
}
