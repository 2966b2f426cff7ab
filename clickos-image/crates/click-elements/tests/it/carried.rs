// SPDX-License-Identifier: Apache-2.0
//! Tables that a guest takes along to another host (docs/adr/0070).

use click_core::Router;

use crate::devices::{devices, environment};

const CONFIG: &str = "
    FromDevice(0) -> [0] sw :: EtherSwitch -> Queue -> ToDevice(0);
    FromDevice(1) -> [1] sw [1] -> Queue -> ToDevice(1);
    arp :: ARPQuerier(10.0.0.1, 02:00:00:00:00:01) -> Discard;
    Idle -> arp; Idle -> [1] arp;
    table :: ARPTable;
";
const SECOND_NS: u64 = 1_000_000_000;

fn router() -> Router {
    let environment = environment(&devices::<2>());
    Router::build("t", CONFIG, &click_elements::registry(), environment, 1).unwrap()
}

fn read(router: &mut Router, name: &str, now_s: u64) -> String {
    let value = router.read_handler(name, "", now_s * SECOND_NS).unwrap();
    String::from_utf8(value).unwrap()
}

#[test]
fn addresses_keep_their_age() {
    for (name, state, table) in [
        (
            "sw",
            "switch 1\n02-00-00-00-00-09 1 4000\n02-00-00-00-00-08 0 1000\n",
            "-09 1\n",
        ),
        (
            "arp",
            "arp 1\n10.0.0.9 02-00-00-00-00-09 4000\n",
            " 1 02-00-00-00-00-09 4.000000",
        ),
        (
            "table",
            "arp 1\n10.0.0.9 02-00-00-00-00-09 4000\n",
            " 1 02-00-00-00-00-09 4.000000",
        ),
    ] {
        let (mut router, handler) = (router(), format!("{name}.state"));
        let writes = [(handler.as_str(), state.as_bytes())];
        router.write_handlers(&writes, 1000 * SECOND_NS).unwrap();
        assert_eq!(read(&mut router, &handler, 1000), state);
        let text = read(&mut router, &format!("{name}.table"), 1000);
        assert!(text.contains(table), "{text}");
        assert!(read(&mut router, &handler, 1002).contains(" 6000\n"));
    }
}

#[test]
fn what_is_no_state_changes_nothing() {
    let mut router = router();
    for (handler, text) in [
        ("sw.state", ""),
        ("sw.state", "switch 2\n"),
        ("sw.state", "switch 1\n02-00-00-00-00-09 2 0\n"),
        ("sw.state", "switch 1\n02-00-00-00-00 1 0\n"),
        ("sw.state", "switch 1\n02-00-00-00-00-09 1 -1\n"),
        ("arp.state", "arp 1\n10.0.0.999 02-00-00-00-00-09 0\n"),
        ("arp.state", "arp 1\n10.0.0.9 02-00-00-00-00-+9 0\n"),
        ("table.state", "switch 1\n"),
    ] {
        let writes = [(handler, text.as_bytes())];
        let refused = router.write_handlers(&writes, SECOND_NS).unwrap_err();
        assert!(refused.to_string().contains("line "), "{text}: {refused}");
        let table = handler.replace("state", "table");
        assert_eq!(read(&mut router, &table, 1), "", "{text}");
    }
}
