// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::request::Tx;
use crate::wire::Header;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use proptest::prelude::*;

#[derive(Default)]
struct Memory {
    index: [u32; 4],
    req: Vec<u8>,
    rsp: Vec<u8>,
}

/// A page in ordinary memory; the test plays the store on the other handle.
#[derive(Clone)]
struct TestPage(Rc<RefCell<Memory>>);

impl TestPage {
    fn new() -> Self {
        let halves = || alloc::vec![0; RING_SIZE];
        Self(Rc::new(RefCell::new(Memory {
            index: [0; 4],
            req: halves(),
            rsp: halves(),
        })))
    }

    /// The store's part: takes all request bytes.
    fn taken(&self) -> Vec<u8> {
        let mut m = self.0.borrow_mut();
        let (cons, prod) = (m.index[0], m.index[1]);
        let count = prod.wrapping_sub(cons) as usize;
        let bytes = (0..count)
            .map(|i| m.req[(cons as usize + i) % RING_SIZE])
            .collect();
        m.index[0] = prod;
        bytes
    }

    /// The store's part: puts response bytes, as many as fit; returns the rest.
    fn put<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let mut m = self.0.borrow_mut();
        let (cons, prod) = (m.index[2], m.index[3]);
        let free = RING_SIZE - prod.wrapping_sub(cons) as usize;
        let (now, later) = bytes.split_at(bytes.len().min(free));
        for (i, byte) in now.iter().enumerate() {
            m.rsp[(prod as usize + i) % RING_SIZE] = *byte;
        }
        m.index[3] = prod.wrapping_add(now.len() as u32);
        later
    }
}

impl Page for TestPage {
    fn load(&self, index: Index) -> u32 {
        self.0.borrow().index[index as usize]
    }
    fn store(&mut self, index: Index, value: u32) {
        self.0.borrow_mut().index[index as usize] = value;
    }
    fn write_request(&mut self, offset: usize, bytes: &[u8]) {
        self.0.borrow_mut().req[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    fn read_response(&self, offset: usize, out: &mut [u8]) {
        out.copy_from_slice(&self.0.borrow().rsp[offset..offset + out.len()]);
    }
}

#[derive(Clone, Default)]
struct Count(Rc<Cell<u32>>);

impl Notify for Count {
    fn notify(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn client() -> (RingClient<TestPage, Count>, TestPage, Count) {
    let (page, count) = (TestPage::new(), Count::default());
    (RingClient::new(page.clone(), count.clone()), page, count)
}

fn message(kind: u32, req_id: u32, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        kind,
        req_id,
        tx_id: 0,
        len: payload.len() as u32,
    };
    [&header.to_bytes()[..], payload].concat()
}

fn ask<P: Page, N: Notify>(client: &mut RingClient<P, N>, path: &str) {
    client
        .submit(&Request::read(Tx::NONE, path).unwrap())
        .unwrap();
    client.pump();
}

#[test]
fn request_and_answer() {
    let (mut client, page, count) = client();
    let request = Request::read(Tx::NONE, "domid").unwrap();
    client.submit(&request).unwrap();
    client.pump();
    assert_eq!(page.taken(), request.encode(1));
    assert_eq!(count.0.get(), 1);
    assert_eq!(client.poll_reply(), None);
    page.put(&message(2, 1, b"5"));
    client.pump();
    assert_eq!(client.poll_reply(), Some(Ok(b"5".to_vec())));
}

#[test]
fn several_requests_cost_one_event_and_are_answered_in_their_order() {
    let (mut client, page, count) = client();
    let requests = ["a", "b", "c"].map(|path| Request::read(Tx::NONE, path).unwrap());
    requests.iter().for_each(|r| client.submit(r).unwrap());
    client.pump();
    assert_eq!(count.0.get(), 1);
    let sent = (1..).zip(&requests).flat_map(|(id, r)| r.encode(id));
    assert_eq!(page.taken(), sent.collect::<Vec<u8>>());
    for (id, payload) in [(1, b"1"), (2, b"2"), (3, b"3")] {
        page.put(&message(2, id, payload));
    }
    client.pump();
    for payload in [b"1", b"2", b"3"] {
        assert_eq!(client.poll_reply(), Some(Ok(payload.to_vec())));
    }
    assert_eq!(client.poll_reply(), None);
}

#[test]
fn message_longer_than_the_ring_goes_in_parts_and_indices_wrap() {
    for start in [u32::MAX - 100, 5] {
        let page = TestPage::new();
        page.0.borrow_mut().index = [start; 4];
        let mut client = RingClient::new(page.clone(), Count::default());
        let value = [7; 3000];
        let request = Request::write(Tx::NONE, "a", &value).unwrap();
        client.submit(&request).unwrap();
        client.pump();
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.extend(page.taken());
            client.pump();
        }
        assert_eq!(seen, request.encode(client.last_id));
        let reply = message(11, client.last_id, b"OK\0");
        page.put(&reply);
        client.pump();
        assert_eq!(client.poll_reply(), Some(Ok(b"OK\0".to_vec())));
    }
}

#[test]
fn a_full_response_ring_is_reported_back() {
    let (mut client, page, count) = client();
    ask(&mut client, "a");
    let before = count.0.get();
    let reply = message(2, 1, &[1; 3000]);
    let mut rest = &reply[..];
    while !rest.is_empty() {
        rest = page.put(rest);
        client.pump();
    }
    assert_eq!(count.0.get() - before, 2);
    assert_eq!(client.poll_reply(), Some(Ok([1; 3000].to_vec())));
}

#[test]
fn store_error_names_the_path() {
    let (mut client, page, _) = client();
    ask(&mut client, "/x");
    page.put(&message(16, 1, b"EACCES\0"));
    client.pump();
    let error = client.poll_reply().unwrap().unwrap_err();
    assert!(error.is(Code::Access) && !error.is_fatal());
    assert_eq!(alloc::format!("{error}"), "/x: EACCES");
}

#[test]
fn events_merge_and_overflow_is_told_once() {
    let (mut client, page, _) = client();
    page.put(&message(15, 0, b"/a\0t\0"));
    page.put(&message(15, 0, b"/a\0t\0"));
    client.pump();
    assert!(client.poll_event().unwrap().is_some());
    assert!(client.poll_event().unwrap().is_none());
    for i in 0..EVENTS_MAX + 1 {
        page.put(&message(15, 0, alloc::format!("/{i}\0t\0").as_bytes()));
        client.pump();
    }
    assert_eq!(client.poll_event(), Err(Error::EventsLost));
    assert!(client.poll_event().unwrap().is_some());
    assert!(client.poll_event().unwrap().is_none());
}

#[test]
fn a_lying_store_breaks_the_connection_only() {
    let wrong_id = message(2, 9, b"");
    let wrong_kind = message(11, 1, b"");
    let too_long = Header {
        kind: 2,
        req_id: 1,
        tx_id: 0,
        len: 5000,
    }
    .to_bytes();
    for bytes in [&wrong_id[..], &wrong_kind, &too_long] {
        let (mut client, page, _) = client();
        ask(&mut client, "a");
        page.put(bytes);
        client.pump();
        assert!(client.broken().is_some());
        client.pump();
        assert!(client.poll_reply().is_none_or(|r| r.is_err()));
        assert!(client.submit(&Request::release(1)).is_err());
    }
    let (mut client, page, _) = client();
    page.0.borrow_mut().index[3] = 5000;
    client.pump();
    assert_eq!(
        client.broken(),
        Some(&Error::Protocol("ring index out of range"))
    );
    assert!(client.poll_event().is_err());
}

#[test]
fn last_words_go_out_while_a_request_is_under_way() {
    let (mut client, page, _) = client();
    ask(&mut client, "a");
    let last = Request::write(Tx::NONE, "panic", b"why").unwrap();
    client.submit_last(&last);
    assert!(client.is_sent());
    assert!(page.taken().ends_with(&last.encode(2)));
}

proptest! {
    #[test]
    fn garbage_in_the_ring_never_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..RING_SIZE),
        index in any::<[u32; 4]>(),
        tame in any::<bool>(),
    ) {
        let (mut client, page, _) = client();
        if !tame {
            page.0.borrow_mut().index = index;
        }
        prop_assert!(client.broken().is_none());
        let _ = client.submit(&Request::read(Tx::NONE, "a").unwrap());
        if tame {
            page.put(&bytes);
        }
        client.pump();
        client.pump();
        let _ = client.poll_reply();
        let _ = client.poll_event();
    }
}

/// The page over real shared memory; the store's side is a second mapping of the same file.
#[cfg(feature = "std")]
#[test]
fn mapped_file() {
    use std::io::{Read, Seek, Write};
    let memfd = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::empty()).unwrap();
    let mut file = std::fs::File::from(memfd);
    assert!(crate::page::MappedPage::map(&file).is_err());
    file.set_len(4096).unwrap();
    let page = crate::page::MappedPage::map(&file).unwrap();
    let mut client = RingClient::new(page, Count::default());
    ask(&mut client, "a");
    let mut all = [0; 4096];
    file.rewind().unwrap();
    file.read_exact(&mut all).unwrap();
    assert_eq!(&all[16..18], b"a\0");
    assert_eq!(all[2052..2056], 18u32.to_ne_bytes());
    let reply = message(2, 1, b"v");
    file.seek(std::io::SeekFrom::Start(1024)).unwrap();
    file.write_all(&reply).unwrap();
    file.seek(std::io::SeekFrom::Start(2060)).unwrap();
    file.write_all(&(reply.len() as u32).to_ne_bytes()).unwrap();
    client.pump();
    assert_eq!(client.poll_reply(), Some(Ok(b"v".to_vec())));
}
