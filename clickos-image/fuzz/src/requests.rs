// SPDX-License-Identifier: Apache-2.0
//! Lines for the control sockets of cosmosd and valed.
use control_socket::{Access, ApiError, Peer, Service, Size, Typed, Verb, prepare};
use serde_json::{Value, json};

/// The pieces of lines; a byte chooses one, and bytes beyond them are themselves.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "null",
    "true",
    "1",
    "-1",
    "1e999",
    "4294967296",
    "\"uuid\":",
    "\"00000000-0000-4000-8000-000000000001\"",
    "\"rid\":",
    "0",
    "\"name\":",
    "\"a.b\"",
    "\"config\":",
    "\"Idle;\"",
    "\"config_name\":",
    "\"timeout_ms\":",
    "1000",
    "\"writes\":",
    "[[\"a.b\",\"c\"]]",
    "\"vifs\":",
    "\"nics\":",
    "[]",
    "[{",
    "}]",
    "\"devid\":",
    "\"mac\":",
    "\"02:00:00:00:00:01\"",
    "\"switch\":",
    "\"vale0\"",
    "\"port\":",
    "\"p1\"",
    "\"segment\":",
    "\"allowed\":",
    "[{\"ip\":\"10.0.0.1/32\"}]",
    "\"port_security\":",
    "\"mtu\":",
    "1500",
    "\"slots\":",
    "256",
    "\"image_sha256\":",
    "\"memory_mib\":",
    "\"vcpus\":",
    "8",
    "\"routers\":",
    "\"run\":",
    "\"cpu\":",
    "{\"weight\":256}",
    "\"sha256\":",
    "\"size\":",
    "\"offset\":",
    "\"data\":",
    "\"kind\":",
    "\"process\"",
    "\"link_up\":",
    "\"max_bytes\":",
    "\"halted\":",
    "\"\\u0041\"",
    "\"\\ud800\"",
    "\"v\":",
    "\"id\":",
    "\"verb\":",
    "\"args\":",
    " ",
    "\n",
];

/// The verbs of both daemons, with nothing behind them.
struct Nothing;

impl Nothing {
    fn take<A>(&self, _: &Peer, _: A) -> Result<Value, ApiError> {
        Ok(json!({}))
    }
}

macro_rules! verbs {
    ($($name:literal: $args:ty,)*) => {
        const VERBS: &[Verb<Nothing>] =
            &[$(Verb::new($name, Access::Any, Size::Large, &Typed(Nothing::take::<$args>)),)*];
    };
}

verbs! {
    "create": cosmos_proto::Spec,
    "destroy": cosmos_proto::OfGuest,
    "host": cosmos_proto::NoArgs,
    "find": cosmos_proto::Named,
    "console": cosmos_proto::Console,
    "cpu": cosmos_proto::Share,
    "migrate-begin": cosmos_proto::MigrateBegin,
    "migrate-finish": cosmos_proto::MigrateFinish,
    "image-add": cosmos_proto::ImageAdd,
    "image-remove": cosmos_proto::OfImage,
    "router-install": cosmos_proto::Install,
    "router-run": cosmos_proto::Run,
    "handler-list": cosmos_proto::OfRouter,
    "handler-read": cosmos_proto::Read,
    "handler-write": cosmos_proto::Writes,
    "port-add": vale_proto::PortAdd,
    "port-remove": vale_proto::PortId,
    "port-set": vale_proto::PortSet,
    "port-list": vale_proto::PortList,
    "port-limit": vale_proto::PortLimit,
    "port-filter": vale_proto::PortFilter,
    "chain-set": vale_proto::ChainSet,
    "chain-remove": vale_proto::ChainId,
    "chain-list": vale_proto::ChainList,
    "port-trace": vale_proto::PortTrace,
    "mirror-set": vale_proto::MirrorSet,
    "mirror-remove": vale_proto::MirrorId,
    "mirror-list": vale_proto::MirrorList,
}

/// Requests that are right.
const RIGHT: &[&str] = &[
    concat!(
        r#"{"v":1,"id":7,"verb":"create","args":{"uuid":"00000000-0000-4000-8000-000000000001","#,
        r#""name":"g","image_sha256":"e5","memory_mib":8,"vifs":[{"devid":0,"mac":"#,
        r#""02:00:00:00:00:01","switch":"vale0","port":"p","segment":1,"allowed":[{"ip":"#,
        r#""10.0.0.1/32"}],"port_security":true,"mtu":1500,"slots":64}],"nics":[],"config":"#,
        r#""Idle;","config_name":"c","writes":[["a.b","c"]],"timeout_ms":1000}}"#,
    ),
    concat!(
        r#"{"v":1,"id":7,"verb":"handler-write","args":{"uuid":"#,
        r#""00000000-0000-4000-8000-000000000001","rid":0,"writes":[["a.b","c"],["d.e","f"]],"#,
        r#""timeout_ms":1000}}"#,
    ),
    concat!(
        r#"{"v":1,"id":7,"verb":"port-add","args":{"switch":"vale0","port":"p","kind":"process","#,
        r#""segment":1,"mac":"02:00:00:00:00:01","allowed":[{"ip":"10.0.0.1/32"}]}}"#,
    ),
    concat!(
        r#"{"v":1,"id":7,"verb":"port-filter","args":{"switch":"vale0","port":"p","rules":["#,
        r#"{"direction":"ingress","family":"ipv4","protocol":6,"ports":{"first":80,"last":90},"#,
        r#""remote":"10.0.0.0/8"},{"direction":"egress"}]}}"#,
    ),
    concat!(
        r#"{"v":1,"id":7,"verb":"chain-set","args":{"switch":"vale0","chain":"c","segment":1,"#,
        r#""classifiers":[{"source_port":"a","destination":"10.0.0.0/8","protocol":17}],"#,
        r#""hops":[{"pairs":[{"ingress":"p","egress":"q","weight":2}],"transparent":true,"#,
        r#""on_failure":"bypass"}],"nat":["10.1.0.1/32"],"symmetric":false}}"#,
    ),
];

impl Service for Nothing {
    fn verbs() -> &'static [Verb<Self>] {
        VERBS
    }
}

/// Tries the input as a line, as a line of pieces, as a verb's arguments, and as up to three pieces
/// in a right request. The service answers a refused line in few bytes and takes JSON only.
pub fn requests(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    read(data);
    RIGHT
        .iter()
        .for_each(|request| assert!(read(request.as_bytes())));
    let pieces: Vec<u8> = rest.iter().flat_map(|byte| piece(*byte)).collect();
    read(&pieces);
    let verb = VERBS[usize::from(*first) % VERBS.len()].name;
    let head = format!("{{\"v\":1,\"id\":7,\"verb\":\"{verb}\",\"args\":{{");
    read(&[head.as_bytes(), &pieces, b"}}"].concat());
    read(&changed(RIGHT[usize::from(*first) % RIGHT.len()], rest));
}

/// Each three bytes of `changes` put a piece at a place.
fn changed(request: &str, changes: &[u8]) -> Vec<u8> {
    let mut line = request.as_bytes().to_vec();
    for change in changes.chunks_exact(3).take(3) {
        let at = usize::from(change[0]) * 256 + usize::from(change[1]);
        let at = at % line.len();
        line.splice(at..at + usize::from(change[0] & 1), piece(change[2]));
    }
    line
}

fn piece(byte: u8) -> Vec<u8> {
    let known = PIECES.get(usize::from(byte));
    known.map_or_else(|| vec![byte], |piece| piece.as_bytes().to_vec())
}

/// True for a line that is understood.
fn read(line: &[u8]) -> bool {
    let peer = Peer {
        uid: 0,
        pid: 1,
        roles: vec!["operator".into()],
        connection: 1,
    };
    let (id, work) = prepare::<Nothing>(&peer, line);
    let work = match work {
        Ok(work) => work,
        Err(error) => {
            assert!(error.message.len() < 400, "{error}");
            return false;
        }
    };
    assert!(id.is_some() && work.run(&Nothing, &peer, Vec::new()).is_ok());
    assert!(serde_json::from_slice::<Value>(line).is_ok());
    true
}
