// SPDX-License-Identifier: Apache-2.0
//! The rights of a domain in the real store behind the shim. The tests also hold our clients to
//! xenstored's protocol.

use crate::common::{Domain, Host, PATIENCE};
use xenstore::{Access, Code, Perm, Request, Tx};

#[test]
fn own_keys_are_the_domains() {
    let mut host = Host::new();
    let mut a = Domain::new(&mut host, 5);
    assert_eq!(a.read("name").unwrap(), b"guest");
    a.write("data/clickos/x", b"1").unwrap();
    assert_eq!(
        host.text("/local/domain/5/data/clickos/x").as_deref(),
        Some("1")
    );
    let perms = host
        .client
        .get_perms(Tx::NONE, "/local/domain/5/data/clickos/x")
        .unwrap();
    assert_eq!(perms, [Perm::new(Access::None, 5)]);
    for path in ["name", "new", "/local/domain/5"] {
        assert!(a.write(path, b"").unwrap_err().is(Code::Access), "{path}");
    }
}

#[test]
fn other_domains_and_dom0_are_out_of_reach() {
    let mut host = Host::new();
    let (mut a, mut b) = (Domain::new(&mut host, 5), Domain::new(&mut host, 6));
    b.write("data/secret", b"1").unwrap();
    host.client
        .write(Tx::NONE, "/tool/dom0-only", b"1")
        .unwrap();
    for path in [
        "/local/domain/6",
        "/local/domain/6/data",
        "/local/domain/6/data/secret",
        "/tool/dom0-only",
    ] {
        assert!(a.read(path).unwrap_err().is(Code::Access), "read {path}");
        let list = a.call(&Request::directory(Tx::NONE, path).unwrap());
        assert!(list.unwrap_err().is(Code::Access), "list {path}");
        assert!(
            a.write(path, b"2").unwrap_err().is(Code::Access),
            "write {path}"
        );
        let rm = a.call(&Request::rm(Tx::NONE, path).unwrap());
        assert!(rm.unwrap_err().is(Code::Access), "rm {path}");
        let own = [Perm::new(Access::Both, 5)];
        let chown = a.call(&Request::set_perms(Tx::NONE, path, &own).unwrap());
        assert!(
            chown.unwrap_err().is(Code::Access),
            "set permissions of {path}"
        );
    }
    let listing = a.call(&Request::directory(Tx::NONE, "/local/domain").unwrap());
    assert!(listing.unwrap_err().is(Code::Access));
    for toolstack in [Request::introduce(9, 1, 1), Request::release(6)] {
        assert!(a.call(&toolstack).unwrap_err().is(Code::Access));
    }
    assert_eq!(
        host.text("/local/domain/6/data/secret").as_deref(),
        Some("1")
    );
}

#[test]
fn watches_tell_nothing_about_other_domains() {
    let mut host = Host::new();
    let (mut a, mut b) = (Domain::new(&mut host, 5), Domain::new(&mut host, 6));
    for path in ["/local/domain/6", "/local/domain", "/"] {
        // The store takes such a watch and fires it once; what matters is that nothing follows.
        let _ = a.call(&Request::watch(path, "spy").unwrap());
    }
    for special in ["@releaseDomain", "@introduceDomain"] {
        let _ = a.call(&Request::watch(special, "spy").unwrap());
    }
    a.events();
    b.write("data/secret", b"1").unwrap();
    host.client
        .write(Tx::NONE, "/local/domain/6/data/other", b"2")
        .unwrap();
    Domain::new(&mut host, 7);
    host.destroy_domain(7);
    assert_eq!(a.events(), Vec::<String>::new());
    // The same watch on its own keys does fire, so the test sees events at all.
    a.call(&Request::watch("data", "own").unwrap()).unwrap();
    a.events();
    a.write("data/own", b"1").unwrap();
    assert!(a.events().contains(&"data/own".to_string()));
}

#[test]
fn quota_of_nodes_values_and_watches() {
    let mut host = Host::new();
    // The store stops listening to a domain whose events dom0 does not take.
    host.client.unwatch("/local/domain", "test").unwrap();
    let mut a = Domain::new(&mut host, 5);
    a.write("data/v", &[b'x'; 2000]).unwrap();
    assert!(
        a.write("data/v", &[b'x'; 2100])
            .unwrap_err()
            .is(Code::NoSpace)
    );
    // A directory's names count like a value, so the nodes are spread over several.
    let refused = (0..1100).find(|n| {
        let written = a.write(&format!("data/n{}/{n}", n / 100), b"");
        if let Err(error) = &written {
            assert!(error.is(Code::NoSpace), "{error}");
        }
        written.is_err()
    });
    assert!((950..=1000).contains(&refused.unwrap()), "{refused:?}");
    let refused = (0..200).find(|n| {
        a.call(&Request::watch("data", &n.to_string()).unwrap())
            .is_err()
    });
    assert!((127..=130).contains(&refused.unwrap()), "{refused:?}");
    // dom0 continues, and another domain has its own quota.
    host.client
        .write(Tx::NONE, "/tool/x", &[b'x'; 3000])
        .unwrap();
    let mut b = Domain::new(&mut host, 6);
    b.write("data/n/1", b"").unwrap();
}

#[test]
fn the_end_of_a_domain_is_told_and_its_keys_go() {
    let mut host = Host::new();
    let mut a = Domain::new(&mut host, 5);
    a.write("data/x", b"1").unwrap();
    host.client.watch("@releaseDomain", "end").unwrap();
    let mut event = || host.client.wait_event(PATIENCE).unwrap().unwrap();
    while event().token != "end" {} // The event that every new watch gets.
    std::fs::remove_file(host.path("dom5.ring")).unwrap();
    host.client.release(5).unwrap();
    let end = std::iter::from_fn(|| host.client.wait_event(PATIENCE).unwrap())
        .find(|event| event.token == "end");
    assert_eq!(end.unwrap().path, "@releaseDomain");
    assert_eq!(host.text("/local/domain/5/data/x"), None);
    assert!(host.client.release(5).unwrap_err().is(Code::NoEntry));
    std::fs::remove_file(host.path("dom5.event")).unwrap();
    // The number can be used again.
    Domain::new(&mut host, 5).write("data/x", b"2").unwrap();
}

#[test]
fn introducing_a_domain_that_is_not_there_fails() {
    let mut host = Host::new();
    assert!(host.client.introduce(77, 1, 1).is_err());
    std::fs::write(host.path("dom78.ring"), b"short").unwrap();
    assert!(host.client.introduce(78, 1, 1).is_err());
    host.client.write(Tx::NONE, "/tool/x", b"1").unwrap();
}

#[test]
fn garbage_in_a_ring_hurts_its_domain_only() {
    use std::io::{Seek, Write};
    let mut host = Host::new();
    let mut good = Domain::new(&mut host, 4);
    let mut noise = 1_u64;
    for domid in 5..25 {
        let mut bad = Domain::new(&mut host, domid);
        let mut page = [0; 4096];
        page.iter_mut().for_each(|byte| {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695);
            *byte = (noise >> 33) as u8;
        });
        if domid % 2 == 0 {
            // Plausible indices: the garbage is taken as messages.
            page[2048..2064].fill(0);
            page[2052..2056].copy_from_slice(&1000_u32.to_ne_bytes());
        }
        bad.ring.rewind().unwrap();
        bad.ring.write_all(&page).unwrap();
        let [_, mut to_store, _] = host.link(domid);
        to_store.write_all(&[0; 100]).unwrap();
        good.write("data/x", domid.to_string().as_bytes()).unwrap();
        host.client.write(Tx::NONE, "/tool/x", b"1").unwrap();
    }
    assert_eq!(host.text("/local/domain/4/data/x").as_deref(), Some("24"));
    let mut fresh = Domain::new(&mut host, 30);
    fresh.write("data/x", b"1").unwrap();
}

#[test]
fn lists_beyond_one_message() {
    let mut host = Host::new();
    let names: Vec<String> = (0..700)
        .map(|n| format!("a-child-with-a-long-name-{n:04}"))
        .collect();
    host.client
        .transaction(|tx| {
            names
                .iter()
                .try_for_each(|n| tx.write(&format!("/tool/many/{n}"), b""))
        })
        .unwrap();
    let mut list = host.client.directory(Tx::NONE, "/tool/many").unwrap();
    list.sort();
    assert_eq!(list, names);
    let missing = host.client.directory(Tx::NONE, "/tool/many/x");
    assert!(missing.unwrap_err().is(Code::NoEntry));
    assert_eq!(
        host.client.directory_opt(Tx::NONE, "/tool/many/x").unwrap(),
        [""; 0]
    );
    let one = host
        .client
        .directory(Tx::NONE, &format!("/tool/many/{}", names[0]))
        .unwrap();
    assert_eq!(one, [""; 0]);
}

#[test]
fn transactions_are_repeated_and_all_or_nothing() {
    let mut host = Host::new();
    let mut other = xenstore::Client::connect(&host.path("socket")).unwrap();
    host.client.write(Tx::NONE, "/tool/n", b"0").unwrap();
    let mut tries = 0;
    let sum = host.client.transaction(|tx| {
        tries += 1;
        let value: u32 = String::from_utf8(tx.read("/tool/n")?)
            .unwrap()
            .parse()
            .unwrap();
        if tries == 1 {
            other.write(Tx::NONE, "/tool/n", b"10").unwrap();
        }
        tx.write("/tool/n", (value + 1).to_string().as_bytes())?;
        Ok(value + 1)
    });
    assert_eq!((sum.unwrap(), tries), (11, 2));
    let failed = host.client.transaction(|tx| {
        tx.write("/tool/n", b"99")?;
        tx.read("/tool/missing")
    });
    assert!(failed.unwrap_err().is(Code::NoEntry));
    assert_eq!(host.text("/tool/n").as_deref(), Some("11"));
}

#[test]
fn events_while_requests_are_under_way_are_kept() {
    let mut host = Host::new();
    host.client.watch("/tool", "kept").unwrap();
    let mut event = || host.client.wait_event(PATIENCE).unwrap().unwrap();
    while event().token != "kept" {} // The event that every new watch gets.
    host.client.write(Tx::NONE, "/tool/a", b"1").unwrap();
    host.client.read(Tx::NONE, "/tool/a").unwrap();
    let event = host.client.wait_event(PATIENCE).unwrap().unwrap();
    assert_eq!(
        (event.path.as_str(), event.token.as_str()),
        ("/tool/a", "kept")
    );
    host.client.unwatch("/tool", "kept").unwrap();
    host.client.write(Tx::NONE, "/tool/a", b"2").unwrap();
    // The next event is the first one of another watch.
    host.client.watch("/tool", "later").unwrap();
    let event = host.client.wait_event(PATIENCE).unwrap().unwrap();
    assert_eq!(event.token, "later");
}

#[test]
fn a_dead_store_is_an_error_not_a_wait() {
    let mut host = Host::new();
    host.kill_store();
    let client = &mut host.client;
    let error = client.read(Tx::NONE, "/tool").unwrap_err();
    assert!(error.is_fatal(), "{error}");
    assert!(client.read(Tx::NONE, "/tool").unwrap_err().is_fatal());
    assert!(xenstore::Client::connect(&host.path("socket")).is_err());
}
