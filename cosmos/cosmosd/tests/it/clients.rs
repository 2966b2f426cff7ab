// SPDX-License-Identifier: Apache-2.0
//! Who may do what, and many clients at once. Needs root and NOXEN_PREFIX.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use cosmos_testbed::{AGENT_UID, GuestSpec, NOVA_UID, Testbed, uuid};
use serde_json::json;

/// Calls verbs as another user, by an interpreter: a test cannot change its own uid.
fn error_codes(bed: &Testbed, uid: u32, verbs: &[&str]) -> Vec<String> {
    let script = "\
import json, socket, sys
for verb in sys.argv[2:]:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    try:
        s.sendall(json.dumps({'v': 1, 'id': 1, 'verb': verb}).encode() + b'\\n')
    except BrokenPipeError:
        pass
    print(json.loads(s.makefile().readline()).get('error', {}).get('code'))
";
    let mut command = Command::new("python3");
    command
        .args(["-I", "-c", script])
        .arg(bed.socket())
        .args(verbs);
    let out = command
        .uid(uid)
        .gid(uid)
        .output()
        .expect("python3 is installed");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_role_has_its_verbs() {
    let bed = Testbed::start();
    let nova = [
        "create",
        "destroy",
        "pause",
        "unpause",
        "console",
        "cpu",
        "save",
        "restore",
        "image-add",
        "image-remove",
        "vif-plug",
        "vif-unplug",
    ];
    let agent = ["router-run", "vif-remove", "port-filter"];
    // Nova moves guests with their routers.
    let both = [
        "router-install",
        "router-list",
        "handler-list",
        "handler-read",
        "handler-write",
    ];
    // Arguments are missing: a peer that may call the verb learns this.
    for (uid, of_nova, of_agent, of_any) in [
        (NOVA_UID, "bad-request", "forbidden", "None"),
        (AGENT_UID, "forbidden", "bad-request", "None"),
        (0, "bad-request", "bad-request", "None"),
        (65_000, "forbidden", "forbidden", "forbidden"),
    ] {
        let codes = |verbs| error_codes(&bed, uid, verbs);
        assert!(codes(&nova).iter().all(|code| code == of_nova), "{uid}");
        assert!(codes(&agent).iter().all(|code| code == of_agent), "{uid}");
        let of_both = if uid == 65_000 {
            of_agent
        } else {
            "bad-request"
        };
        assert!(codes(&both).iter().all(|code| code == of_both), "{uid}");
        let any = codes(&["hello", "host", "list", "events"]);
        assert!(any.iter().all(|code| code == of_any), "{uid}: {any:?}");
    }
}

#[test]
fn many_clients_are_served_and_those_that_leave_do_no_harm() {
    let bed = Testbed::start();
    let spec = GuestSpec::new(
        1,
        &bed.engine_sha256(),
        "c :: Counter; Idle -> c -> Discard;",
    );
    bed.call("create", spec.args()).unwrap();
    let read = json!({"uuid": uuid(1), "name": "c.count", "timeout_ms": 50_000});
    let request = json!({"v": 1, "id": 1, "verb": "handler-read", "args": read}).to_string();
    std::thread::scope(|scope| {
        for n in 0..200 {
            let (bed, read, request) = (&bed, &read, &request);
            scope.spawn(move || {
                if n % 4 == 0 {
                    // Leaves in the middle of a request, or without waiting for the answer.
                    let mut stream = UnixStream::connect(bed.socket()).unwrap();
                    let end = if n % 8 == 0 {
                        request.len() / 2
                    } else {
                        request.len()
                    };
                    stream.write_all(&request.as_bytes()[..end]).unwrap();
                    stream
                        .write_all(if n % 8 == 0 { b"" } else { b"\n" })
                        .unwrap();
                } else {
                    let answer = bed.call("handler-read", read.clone()).unwrap();
                    assert_eq!(answer["value"].as_str().unwrap().trim(), "0");
                }
            });
        }
    });
    assert_eq!(
        bed.call("info", json!({"uuid": uuid(1)})).unwrap()["state"],
        "running"
    );
    let path = "/local/domain/1/data/clickos/0";
    let store = || {
        bed.store()
            .directory_opt(xenstore::Tx::NONE, &format!("{path}/response"))
            .unwrap()
    };
    cosmos_testbed::eventually("all answers are removed", || {
        store().is_empty().then_some(())
    });
    bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[test]
fn a_client_that_leaves_during_a_creation_gets_a_guest_or_nothing() {
    let bed = Testbed::start();
    let args = GuestSpec::new(1, &bed.engine_sha256(), "Idle -> Discard;")
        .vif(1)
        .args();
    let request = json!({"v": 1, "id": 1, "verb": "create", "args": args}).to_string();
    let mut stream = UnixStream::connect(bed.socket()).unwrap();
    stream.write_all(format!("{request}\n").as_bytes()).unwrap();
    drop(stream);
    let running = || {
        let list = bed.call("list", json!({})).unwrap();
        (list["guests"][0]["state"] == "running").then_some(())
    };
    cosmos_testbed::eventually("the guest is created all the same", running);
    bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[test]
fn the_python_client_speaks_to_cosmosd() {
    let bed = Testbed::start();
    let script = "\
import sys
from cosmos_client import CosmosClient, CosmosError
socket, uuid = sys.argv[1:]
client = CosmosClient(socket)
events = client.events()
call, of = client.call, {'uuid': uuid}
engine = call('host')['engine_sha256']
assert call('hello')['host_kind'] == 'process'
vif = {'devid': 0, 'mac': '02:00:00:00:00:01', 'switch': 'vale0', 'port': 'a',
       'segment': 1, 'allowed': [{'ip': '10.0.0.1/32'}], 'port_security': True,
       'mtu': 1500, 'slots': 256}
config = 'c :: Counter; d :: Discard; Idle -> c -> d;'
assert call('create', name='g', image_sha256=engine, memory_mib=8, vifs=[vif],
            config=config, config_name='g.click',
            writes=[('d.active', 'false')], **of)['domid'] == 1
assert call('info', **of)['state'] == 'running'
assert [g['uuid'] for g in call('list')['guests']] == [uuid]
assert call('handler-read', name='d.active', **of)['value'].strip() == 'false'
assert call('handler-write', writes=[('d.active', 'true')], **of) == {}
assert {'name': 'c.rate', 'read': True, 'write': False} in call('handler-list', **of)['handlers']
assert call('router-install', config=config, config_name='h.click', **of) == {'generation': 2}
assert call('router-install', config=config, config_name='i.click', rid=1, halted=True,
            **of) == {'generation': 1}
assert [(r['rid'], r['state']) for r in call('router-list', **of)['routers']] == [
    (0, 'Running'), (1, 'Halted')]
assert call('router-run', run=True, rid=1, **of) == call('router-run', run=False, rid=1, **of) == {}
assert call('cpu', cpu={'weight': 512}, **of) == {}
chain = {'switch': 'vale0', 'chain': 'web', 'segment': 1,
         'classifiers': [{'source': '10.0.0.0/8'}],
         'hops': [{'pairs': [{'ingress': 'a', 'egress': 'a'}]}]}
assert call('chain-set', **chain) == {}
assert call('chain-list')['chains'][0]['live_pairs'] == [1]
assert call('chain-remove', switch='vale0', chain='web') == {} and call('chain-list') == {'chains': []}
for code, verb, args in (
        ('unsupported', 'image-list', {}), ('unsupported', 'image-remove', {'sha256': 'ab' * 32}),
        ('unsupported', 'save', of), ('exists', 'restore', of)):
    try:
        call(verb, **args)
        raise AssertionError
    except CosmosError as e:
        assert e.code == code, e
while events.next_event(10)['event'] != 'state':
    pass
call('pause', **of)
call('unpause', **of)
assert 'clickos' in call('console', max_bytes=65536, **of)['text']
try:
    call('router-install', config='NoSuchClass;', config_name='bad.click', **of)
    raise AssertionError
except CosmosError as e:
    assert e.code == 'bad-config' and 'bad.click:1:1' in e.message, e
call('destroy', **of)
assert call('list') == {'guests': []}
";
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../python");
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", package)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command.args(["-c", script]).arg(bed.socket()).arg(uuid(1));
    let out = command.output().expect("python3 is installed");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[test]
fn guests_are_made_side_by_side_until_the_host_is_full() {
    let bed = Testbed::start();
    let sha256 = bed.engine_sha256();
    let create = |n: u16| {
        let spec = GuestSpec::new(n, &sha256, "Idle -> Discard;").vif(1);
        bed.call("create", spec.args())
    };
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=20).map(|n| scope.spawn(move || create(n))).collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap())
            .collect::<Vec<_>>()
    });
    let refused: Vec<_> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert_eq!(refused.len(), 4, "{refused:?}");
    for error in refused {
        assert_eq!(
            error.to_string(),
            "16 of 16 guests are there already (too-many)"
        );
    }
    let host = bed.call("host", json!({})).unwrap();
    assert_eq!(
        (&host["guests"], &host["memory_used_mib"]),
        (&json!(16), &json!(256))
    );
    std::thread::scope(|scope| {
        for n in 1..=20 {
            let bed = &bed;
            scope.spawn(move || bed.call("destroy", json!({"uuid": uuid(n)})).unwrap());
        }
    });
    assert_eq!(bed.remains(), Vec::<String>::new());
}
