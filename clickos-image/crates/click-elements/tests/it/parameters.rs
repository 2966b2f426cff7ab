// SPDX-License-Identifier: Apache-2.0
//! Reads with a parameter: handlers that take one answer, and all others refuse it.
use click_core::{Environment, HandlerError, Router};
use click_elements::registry;

const CONFIG: &str = "
    routes :: RadixIPLookup(192.0.2.0/24 198.51.100.7 0, 0.0.0.0/0 1);
    blocks :: PortBlockMapper(100.64.0.0/30, 203.0.113.0/31, BLOCK 64);
    script :: Script(TYPE PASSIVE, set x 5);
    Idle -> c :: Counter -> routes;
    routes[0] -> Discard;
    routes[1] -> Discard;
";

fn router() -> Router {
    Router::build("p.click", CONFIG, &registry(), Environment::new(), 1).unwrap()
}

fn read(name: &str, param: &str) -> Result<String, HandlerError> {
    let value = router().read_handler(name, param, 1);
    value.map(|text| String::from_utf8(text).unwrap())
}

#[test]
fn a_lookup_answers_for_its_parameter() {
    assert_eq!(
        read("routes.lookup", "192.0.2.9").unwrap(),
        "0 198.51.100.7"
    );
    assert_eq!(read("routes.lookup", "203.0.113.9").unwrap(), "1");
    let error = read("routes.lookup", "nowhere").unwrap_err();
    assert_eq!((error.code(), error.name()), (520, "routes.lookup"));
    assert_eq!(read("blocks.lookup", "203.0.113.0 4000").unwrap(), "");
    assert_eq!(read("script.add", "2 3").unwrap(), "5");
}

#[test]
fn a_handler_without_a_parameter_refuses_one() {
    // A getter, one that the engine answers for each element, and a global one.
    for name in ["c.count", "c.class", "routes.table", "version"] {
        assert!(read(name, "").is_ok(), "{name}");
        let error = read(name, "192.0.2.9").unwrap_err();
        assert_eq!((error.code(), error.name()), (520, name));
        let message = "the handler takes no parameter, got \"192.0.2.9\"";
        assert_eq!(error.into_message(), message);
    }
}
