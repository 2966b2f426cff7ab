// SPDX-License-Identifier: Apache-2.0
//! Names of the protocol's nodes: what a watch event means, and the paths the guest writes.
use alloc::format;
use alloc::string::{String, ToString};
use clickos_protocol::{ROOT, ROUTERS};

/// An element's handler as people name it: `/` in the element's name is `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handler {
    pub element: String,
    pub name: String,
}

impl Handler {
    /// The name that the router knows.
    pub(crate) fn full_name(&self) -> String {
        format!("{}.{}", self.element.replace('-', "/"), self.name)
    }
}

/// A change of the store that concerns the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Anything may have changed.
    Everything,
    /// Anything of this router may have changed.
    Router(u8),
    Generation(u8),
    Status(u8),
    /// The guest's own word, which a person may have removed.
    State(u8),
    /// A piece of a request.
    Piece(u8, u32),
    /// A request as a whole: made or removed.
    Request(u8, u32),
    /// An answer as a whole: removed by the requester.
    Response(u8, u32),
    Element(u8, Handler),
    /// The toolstack's answer to the request for a device.
    Offloaded(u32),
    ReadRequest(u8, Handler),
}

impl Node {
    /// The change behind an event's path; `None` for the guest's own nodes.
    pub(crate) fn of(path: &str) -> Option<Node> {
        let rest = path.strip_prefix(ROOT)?;
        if rest.is_empty() {
            return Some(Node::Everything);
        }
        let rest = rest.strip_prefix('/')?;
        if let Some(device) = rest.strip_prefix("offloaded/") {
            return number(device).map(Node::Offloaded);
        }
        let mut parts = rest.split('/');
        let rid = number(parts.next()?).filter(|rid| *rid < u32::from(ROUTERS))?;
        let rid = u8::try_from(rid).ok()?;
        let rest: [Option<&str>; 4] = [parts.next(), parts.next(), parts.next(), parts.next()];
        if parts.next().is_some() {
            return None;
        }
        Self::of_router(rid, rest)
    }

    fn of_router(rid: u8, rest: [Option<&str>; 4]) -> Option<Node> {
        let handler = |element: &str, name: &str| {
            let good = !element.is_empty() && !name.is_empty();
            good.then(|| Handler {
                element: element.to_string(),
                name: name.to_string(),
            })
        };
        match rest {
            [None, ..] | [Some("request" | "response"), None, ..] => Some(Node::Router(rid)),
            [Some("generation"), None, ..] => Some(Node::Generation(rid)),
            [Some("status"), None, ..] => Some(Node::Status(rid)),
            [Some("state"), None, ..] => Some(Node::State(rid)),
            [Some("request"), Some(seq), None, _] => Some(Node::Request(rid, number(seq)?)),
            [Some("request"), Some(seq), Some(_), None] => Some(Node::Piece(rid, number(seq)?)),
            [Some("response"), Some(seq), None, _] => Some(Node::Response(rid, number(seq)?)),
            [Some("elements"), Some(e), Some(h), None] => Some(Node::Element(rid, handler(e, h)?)),
            [Some("control"), Some("read"), Some(e), Some(h)] => {
                Some(Node::ReadRequest(rid, handler(e, h)?))
            }
            _ => None,
        }
    }
}

/// A decimal number in its shortest form: `7`, never `07` or `+7`.
pub(crate) fn number(text: &str) -> Option<u32> {
    let canonical = text == "0" || (text.starts_with(|c: char| ('1'..='9').contains(&c)));
    text.parse().ok().filter(|_| canonical)
}

pub(crate) fn seed() -> String {
    format!("{ROOT}/seed")
}

pub(crate) fn memory() -> String {
    format!("{ROOT}/memory")
}

pub(crate) fn version() -> String {
    format!("{ROOT}/version")
}

/// The request for a device.
pub(crate) fn offload(device: u32) -> String {
    format!("{ROOT}/offload/{device}")
}

/// The toolstack's answer to it.
pub(crate) fn offloaded(device: u32) -> String {
    format!("{ROOT}/offloaded/{device}")
}

pub(crate) fn of_router(rid: u8, what: &str) -> String {
    format!("{ROOT}/{rid}/{what}")
}

pub(crate) fn request(rid: u8, seq: u32) -> String {
    format!("{ROOT}/{rid}/request/{seq}")
}

pub(crate) fn response(rid: u8, seq: u32) -> String {
    format!("{ROOT}/{rid}/response/{seq}")
}

pub(crate) fn element(rid: u8, handler: &Handler) -> String {
    format!("{ROOT}/{rid}/elements/{}/{}", handler.element, handler.name)
}

pub(crate) fn read_request(rid: u8, handler: &Handler) -> String {
    format!(
        "{ROOT}/{rid}/control/read/{}/{}",
        handler.element, handler.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<Node> {
        Node::of(&format!("{ROOT}{path}"))
    }

    #[test]
    fn what_concerns_the_guest() {
        let h = Handler {
            element: "a-b".into(),
            name: "count".into(),
        };
        assert_eq!(of(""), Some(Node::Everything));
        assert_eq!(of("/3"), Some(Node::Router(3)));
        assert_eq!(of("/3/request"), Some(Node::Router(3)));
        assert_eq!(of("/63/generation"), Some(Node::Generation(63)));
        assert_eq!(of("/0/status"), Some(Node::Status(0)));
        assert_eq!(of("/0/state"), Some(Node::State(0)));
        assert_eq!(of("/0/request/7"), Some(Node::Request(0, 7)));
        assert_eq!(of("/0/request/7/0"), Some(Node::Piece(0, 7)));
        assert_eq!(of("/0/response/7"), Some(Node::Response(0, 7)));
        assert_eq!(
            of("/0/elements/a-b/count"),
            Some(Node::Element(0, h.clone()))
        );
        assert_eq!(
            of("/0/control/read/a-b/count"),
            Some(Node::ReadRequest(0, h.clone()))
        );
        assert_eq!(of("/offloaded/3"), Some(Node::Offloaded(3)));
        assert_eq!(h.full_name(), "a/b.count");
    }

    #[test]
    fn what_does_not() {
        for path in [
            "x",
            "/",
            "/64",
            "/00",
            "/-1",
            "/x/status",
            "/0/status/x",
            "/0/error",
            "/0/config/0",
            "/0/response/7/0",
            "/0/request/x/0",
            "/0/request/007/0",
            "/0/request/4294967296/0",
            "/0/elements/a",
            "/0/elements//x",
            "/0/elements/a/b/c",
            "/0/control/read/a",
            "/0/control/read/a/b/c",
            "/0/control/write/a/b",
            "/version",
            "/offload/3",
            "/offloaded",
            "/offloaded/x",
            "/offloaded/3/0",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
        assert_eq!(Node::of("data"), None);
        assert_eq!(Node::of(""), None);
    }
}
