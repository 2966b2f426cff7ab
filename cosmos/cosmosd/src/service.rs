// SPDX-License-Identifier: Apache-2.0
//! The function of each verb of docs/interfaces.md, "cosmosd".

use std::sync::Arc;
use std::time::Instant;

use control_socket::{ApiError, Peer, Service, Signature, Subscribing, Typed, Verb};

use crate::base::error::Error;
use crate::changes;
use crate::lifecycle::{Maker, beside, destroy, links, migration, pause, plug, save};
use crate::report;
use crate::routers;
use crate::site::Site;
use crate::switch::{devices, relay, uplinks};
use cosmos_proto::{answer, verb};

/// All that the verbs work on.
pub struct Daemon {
    pub site: Arc<Site>,
    pub maker: Maker,
    pub started: Instant,
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self::new(error.code.as_str(), error.message)
    }
}

impl Service for Daemon {
    fn verbs() -> &'static [Verb<Self>] {
        VERBS
    }

    fn closed(&self, peer: &Peer) {
        migration::forget_client(&self.site, peer.connection);
    }
}

/// The entry of a verb: the compiler holds its function to the verb's types.
const fn of<V: Signature>(call: &'static Typed<Daemon, V::Args, V::Answer, Error>) -> Verb<Daemon> {
    Verb::of::<V>(call)
}

/// The entry of a verb whose function needs the site and the verb's arguments.
macro_rules! on_site {
    ($verb:ident, $function:path) => {
        of::<verb::$verb>(&Typed(|d, _, args| {
            $function(&d.site, &args).map(Into::into)
        }))
    };
}

/// The entry of a verb that migrates a guest for the client of a connection.
macro_rules! for_client {
    ($verb:ident, $part:ident, $function:path) => {
        of::<verb::$verb>(&Typed(|d, peer, args| {
            $function(&d.$part, &args, peer.connection).map(Into::into)
        }))
    };
}

/// The entry of a verb about ports that are no guest's.
macro_rules! on_switch {
    ($verb:ident, $function:path) => {
        of::<verb::$verb>(&Typed(|d, _, args| {
            $function(&*d.site.switch, &args).map(Into::into)
        }))
    };
}

const VERBS: &[Verb<Daemon>] = &[
    of::<verb::HelloVerb>(&Typed(|d, peer, _| Ok(report::hello(&d.site, peer)))),
    of::<verb::DescribeHost>(&Typed(|d, _, _| report::host(&d.site, d.started))),
    of::<verb::Create>(&Typed(|d, _, spec| d.maker.create(&spec))),
    on_site!(Release, links::release),
    on_site!(Destroy, destroy::destroy),
    of::<verb::List>(&Typed(|d, _, _| Ok(report::guests(&d.site)))),
    of::<verb::ListStrangers>(&Typed(|d, _, _| beside::strangers(&d.site))),
    on_site!(Find, report::find),
    on_site!(Info, report::info),
    on_site!(Pause, pause::pause),
    on_site!(Unpause, pause::unpause),
    on_site!(ReadConsole, report::console),
    on_site!(AddImage, report::add_image),
    of::<verb::ListImages>(&Typed(|d, _, _| report::list_images(&d.site))),
    on_site!(RemoveImage, report::remove_image),
    on_site!(SetCpu, pause::set_cpu),
    on_site!(Save, save::save),
    on_site!(Restore, save::restore),
    for_client!(BeginMigration, site, migration::begin),
    for_client!(CommitMigration, site, migration::commit),
    for_client!(CancelMigration, site, migration::cancel),
    for_client!(ReceiveMigration, maker, migration::receive),
    for_client!(FinishMigration, site, migration::finish),
    on_site!(RemoveVif, links::remove_vif),
    on_site!(ListVifs, report::ports),
    on_site!(Plug, plug::plug_vif),
    on_site!(Unplug, plug::unplug_vif),
    on_site!(SetVif, links::set_vif),
    of::<verb::FilterPort>(&Typed(|d, _, filter| {
        filter.check().map_err(refused::<verb::FilterPort>)?;
        relay::<verb::FilterPort>(&*d.site.switch, &filter)
    })),
    on_switch!(GuardPort, relay::<verb::GuardPort>),
    of::<verb::LimitPort>(&Typed(|d, _, limit| {
        limit.limits.check().map_err(refused::<verb::LimitPort>)?;
        relay::<verb::LimitPort>(&*d.site.switch, &limit)
    })),
    on_switch!(SetUplink, uplinks::set),
    on_switch!(RemoveUplink, uplinks::remove),
    of::<verb::ListUplinks>(&Typed(|d, _, _| {
        let uplinks = uplinks::list(&*d.site.switch)?;
        Ok(answer::Uplinks { uplinks })
    })),
    on_switch!(SetDevice, devices::set),
    on_switch!(RemoveDevice, devices::remove),
    of::<verb::ListDevices>(&Typed(|d, _, _| {
        let devices = devices::list(&*d.site.switch)?;
        Ok(answer::Devices { devices })
    })),
    of::<verb::SetChain>(&Typed(|d, _, chain| {
        chain.check().map_err(refused::<verb::SetChain>)?;
        relay::<verb::SetChain>(&*d.site.switch, &chain)
    })),
    on_switch!(RemoveChain, relay::<verb::RemoveChain>),
    on_switch!(ListChains, relay::<verb::ListChains>),
    on_site!(InstallRouter, changes::install),
    on_site!(RunRouter, routers::run),
    on_site!(ListRouters, routers::list),
    on_site!(ListHandlers, routers::handlers),
    on_site!(ReadHandler, routers::read),
    on_site!(ReadHandlers, routers::read_many),
    on_site!(WriteHandlers, changes::write),
    on_site!(FenceChanges, changes::fence),
    Verb::of::<verb::Events>(&Subscribing(|d: &Daemon| d.site.events.subscribe())),
    // The names of before 1.0.
    on_site!(SettleChanges, changes::fence),
    for_client!(MoveBegin, site, migration::begin),
    for_client!(MoveSettle, site, migration::commit),
    for_client!(MoveCancel, site, migration::cancel),
    for_client!(MoveReceive, maker, migration::receive),
    for_client!(MoveArrive, site, migration::finish),
];

/// The refusal of arguments that break a rule between fields.
fn refused<V: Signature>(words: String) -> Error {
    Error::bad_request(format!("{}: {words}", V::NAME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::faults::ENGINE;
    use crate::testing::{World, uuid, vif};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use control_socket::{Access, Reply};
    use cosmos_proto::MAX_READS;
    use serde_json::{Value, json};
    use sha2::Digest;

    struct Bench {
        world: World,
    }

    fn bench() -> Bench {
        let world = World::new();
        Bench { world }
    }

    impl Bench {
        fn call(&self, verb: &str, args: Value) -> std::result::Result<Value, ApiError> {
            let peer = Peer {
                uid: 0,
                pid: 1,
                roles: vec!["operator".into()],
                connection: 1,
            };
            let line = json!({"v": 1, "id": 1, "verb": verb, "args": args});
            let (_, work) = control_socket::prepare::<Daemon>(&peer, line.to_string().as_bytes());
            match work?.run(&self.world.daemon, &peer, Vec::new())? {
                Reply::Value(value) => Ok(value),
                _ => Ok(json!("events")),
            }
        }

        fn refused(&self, verb: &str, args: Value) -> String {
            let error = self
                .call(verb, args.clone())
                .expect_err(&format!("{verb} {args}"));
            format!("{}: {}", error.code, error.message)
        }
    }

    fn create_args() -> Value {
        json!({
            "uuid": uuid(1), "name": "g", "image_sha256": ENGINE, "memory_mib": 8,
            "vifs": [vif(1, 0)], "config": "Idle;", "config_name": "g.click",
            "writes": [], "timeout_ms": 60_000,
        })
    }

    /// Their answers name no tenant's guest, address or rule.
    const FOR_ALL_ROLES: [&str; 2] = ["hello", "host"];

    #[test]
    fn each_verb_that_shows_a_tenant_names_its_roles() {
        for verb in Daemon::verbs() {
            let is_for_all = matches!(verb.access, Access::Any);
            assert_eq!(
                is_for_all,
                FOR_ALL_ROLES.contains(&verb.name),
                "{}",
                verb.name
            );
        }
    }

    #[test]
    fn no_verb_is_for_a_peer_without_a_role() {
        let peer = Peer {
            uid: 65_534,
            pid: 1,
            roles: Vec::new(),
            connection: 1,
        };
        for verb in Daemon::verbs() {
            let line = json!({"v": 1, "id": 1, "verb": verb.name, "args": {}}).to_string();
            let (_, work) = control_socket::prepare::<Daemon>(&peer, line.as_bytes());
            let error = work.err().unwrap_or_else(|| panic!("{}", verb.name));
            assert_eq!(error.code, "forbidden", "{}", verb.name);
        }
    }

    #[test]
    fn a_guests_life_through_the_verbs() {
        let bench = bench();
        let of = |extra: Value| {
            let mut args = json!({"uuid": uuid(1)});
            args.as_object_mut()
                .unwrap()
                .extend(extra.as_object().unwrap().clone());
            args
        };
        let created = bench.call("create", create_args()).unwrap();
        assert_eq!(
            (&created["domid"], &created["steps_ms"][0][0]),
            (&json!(1), &json!("turn"))
        );
        assert_eq!(
            bench.call("list", json!({})).unwrap()["guests"][0]["name"],
            "g"
        );
        for (name, uuids) in [("g", json!([uuid(1)])), ("h", json!([]))] {
            let found = bench.call("find", json!({"name": name})).unwrap();
            assert_eq!(found, json!({"uuids": uuids}));
        }
        let vif = &bench.call("info", of(json!({}))).unwrap()["vifs"][0];
        assert_eq!(vif["allowed"][0]["ip"], "10.0.0.1/32");
        let writes = json!({"rid": 0, "writes": [["fw.config", "x"]], "timeout_ms": 60_000});
        assert_eq!(bench.call("handler-write", of(writes)).unwrap(), json!({}));
        let read = json!({"rid": 0, "name": "fw.config"});
        assert_eq!(
            bench.call("handler-read", of(read)).unwrap(),
            json!({"value": "x"})
        );
        for (rid, word) in [(0, "Halted"), (1, "Halted"), (64, "Running")] {
            let state = format!("/local/domain/1/data/clickos/{rid}/state");
            bench.world.store.put(&state, &format!("{word} 1"));
        }
        let routers = bench.call("router-list", of(json!({}))).unwrap();
        let only = json!({"rid": 0, "state": "Halted", "config_name": "g.click"});
        assert_eq!(routers, json!({"routers": [only]}));
        let handlers = bench.call("handler-list", of(json!({"rid": 0}))).unwrap();
        assert_eq!(
            handlers["handlers"][1],
            json!({"name": "c.count", "read": true, "write": false})
        );
        let install = |config: &str| {
            let args =
                json!({"rid": 0, "config": config, "config_name": "n", "timeout_ms": 60_000});
            bench.call("router-install", of(args))
        };
        assert_eq!(install("Idle;").unwrap(), json!({"generation": 2}));
        assert_eq!(install("Bad").unwrap_err().code, "bad-config");
        assert_eq!(
            bench.call("info", of(json!({}))).unwrap()["config_name"],
            "n"
        );
        let console = bench.call("console", of(json!({"max_bytes": 5}))).unwrap();
        assert_eq!(console, json!({"text": "done\n"}));
        for verb in ["pause", "pause", "unpause", "unpause", "destroy", "destroy"] {
            assert_eq!(
                bench.call(verb, of(json!({}))).unwrap(),
                json!({}),
                "{verb}"
            );
        }
        assert_eq!(bench.world.remains(), Vec::<String>::new());
    }

    #[test]
    fn names_of_before_1_0_are_verbs() {
        let bench = bench();
        bench.call("create", create_args()).unwrap();
        let fence = |verb: &str, number: u64| {
            let args = json!({"uuid": uuid(1), "number": number});
            bench.call(verb, args).unwrap()["newest"].clone()
        };
        assert_eq!(fence("change-settle", 4), 4);
        assert_eq!(fence("change-fence", 0), 4);
        let of = || json!({"uuid": uuid(1)});
        let halted = bench.call("move-begin", of()).unwrap();
        bench.call("move-cancel", of()).unwrap();
        bench.call("migrate-begin", of()).unwrap();
        bench.call("move-settle", of()).unwrap();
        bench.call("destroy", of()).unwrap();
        bench.call("move-receive", create_args()).unwrap();
        let mut finish = of();
        finish["routers"] = json!([]);
        finish["changes"] = halted["changes"].clone();
        bench.call("move-arrive", finish).unwrap();
        assert_eq!(bench.call("info", of()).unwrap()["state"], "running");
    }

    #[test]
    fn hello_and_host() {
        let bench = bench();
        assert_eq!(bench.call("hello", json!({})).unwrap()["host_kind"], "sim");
        let host = bench.call("host", json!({})).unwrap();
        assert_eq!(
            (&host["memory_mib"], &host["engine_sha256"]),
            (&json!(64), &json!(ENGINE))
        );
    }

    #[test]
    fn several_reads_each_have_an_answer() {
        let bench = bench();
        bench.call("create", create_args()).unwrap();
        // More than are on their way at a time.
        let mut names = vec!["version"; MAX_READS - 2];
        names.insert(5, "fw.nothing");
        names.push("fw.config");
        let read_with = |names: &[&str], params: &[&str]| {
            let args = json!({"uuid": uuid(1), "rid": 0, "names": names, "params": params});
            bench
                .call("handlers-read", args)
                .map(|answer| answer["values"].clone())
        };
        let read = |names: &[&str]| read_with(names, &[]);
        let values = read(&names).unwrap();
        let values = values.as_array().unwrap();
        assert_eq!(values.len(), MAX_READS);
        assert_eq!(values[4], json!({"value": "0"}));
        assert_eq!(values[5]["error"]["code"], "no-such-element");
        assert_eq!(values[6], json!({"value": "0"}));
        assert_eq!(values[63], json!({"value": "allow all"}));
        let keys = bench.world.store.keys();
        let left: Vec<_> = keys
            .iter()
            .filter(|key| key.contains("request/") || key.contains("response/"))
            .collect();
        assert_eq!(left, Vec::<&String>::new());
        let error = read(&vec!["version"; MAX_READS + 1]).unwrap_err();
        assert!(
            error.message.contains("names: more than 64 entries"),
            "{error}"
        );
        assert!(
            read(&["a b"])
                .unwrap_err()
                .message
                .starts_with("handlers-read: names[0]: ")
        );
        let error = read_with(&["version"], &["", ""]).unwrap_err();
        assert_eq!(error.message, "params: 2 parameters for 1 names");
        let error = read_with(&["version"], &["a\nb"]).unwrap_err();
        assert!(error.message.contains("control characters"), "{error}");
        let values = read_with(&["fw.lookup", "fw.config"], &["192.0.2.1 7", ""]).unwrap();
        assert_eq!(
            values,
            json!([{"value": "192.0.2.1 7"}, {"value": "allow all"}])
        );
    }

    #[test]
    fn the_longest_history_moves() {
        let places: Vec<_> = (0..clickos_protocol::WRITES_MAX).collect();
        let numbers = 1..=cosmos_proto::VERDICTS as u64;
        let numbers: Vec<_> = numbers.map(|n| (1 << 53) - n).collect();
        let marked = |number| json!({"number": number, "commands": [], "edits": places});
        let passing: Vec<_> = numbers.iter().map(marked).collect();
        let changes = json!({
            "incarnation": uuid(9), "newest": numbers[0], "applied": numbers, "passing": passing,
        });
        let routers: Vec<_> = (0..=clickos_protocol::MAX_RID).collect();
        let args = json!({
            "uuid": uuid(1), "routers": routers, "changes": changes, "timeout_ms": 60_000,
        });
        let error = bench().refused("migrate-finish", args);
        assert!(error.starts_with("no-such-guest"), "{error}");
    }

    #[test]
    fn images_through_the_verbs() {
        let bench = bench();
        let image = crate::images::kernel(&[18]);
        let sha256 = crate::base::text::hex(&sha2::Sha256::digest(&image));
        let piece = |from: usize, data: &[u8]| {
            json!({"sha256": sha256, "size": image.len(), "offset": from,
                   "data": BASE64.encode(data)})
        };
        let add = |args: Value| bench.call("image-add", args).unwrap()["complete"].clone();
        assert_eq!(add(piece(0, &image[..40])), false);
        assert_eq!(add(piece(40, &image[40..])), true);
        let known = bench.call("image-list", json!({})).unwrap();
        assert_eq!(known["images"][0]["sha256"], json!(sha256));
        let of = json!({"sha256": sha256});
        assert_eq!(bench.call("image-remove", of).unwrap(), json!({}));
        let known = bench.call("image-list", json!({})).unwrap();
        assert_eq!(known, json!({"images": []}));
        let mut bad = piece(0, b"");
        bad["data"] = json!("%");
        assert!(bench.refused("image-add", bad).contains("data: "));
        let name = json!({"sha256": "../x"});
        assert!(bench.refused("image-remove", name).contains("not a sha256"));
    }

    #[test]
    fn chains_go_to_the_switch() {
        let bench = bench();
        let hop = json!({"pairs": [{"ingress": "a", "egress": "b"}]});
        let mut set = json!({"switch": "vale0", "chain": "web", "segment": 1,
            "classifiers": [{"source_port": "c"}], "hops": [hop]});
        bench.call("chain-set", set.clone()).unwrap();
        let known = bench.call("chain-list", json!({})).unwrap();
        assert_eq!(known["chains"][0]["chain"], "web");
        set["hops"] = json!([]);
        assert!(bench.refused("chain-set", set).contains("hops: 0 entries"));
        let id = json!({"switch": "vale0", "chain": "web"});
        bench.call("chain-remove", id).unwrap();
        let known = bench.call("chain-list", json!({})).unwrap();
        assert_eq!(known, json!({"chains": []}));
    }

    #[test]
    fn the_table_has_every_verb_of_the_contract() {
        let mut bound: Vec<_> = VERBS.iter().map(|verb| verb.name).collect();
        let mut named = verb::NAMES.to_vec();
        bound.sort_unstable();
        named.sort_unstable();
        assert_eq!(bound, named);
    }

    #[test]
    fn every_verb_refuses_what_it_does_not_know() {
        let bench = bench();
        for verb in VERBS.iter().map(|verb| verb.name) {
            let error = bench.refused(verb, json!({"nonsense": 1}));
            assert!(
                error.starts_with(&format!("bad-request: {verb}: ")),
                "{error}"
            );
            assert!(bench.call(verb, json!([])).is_err(), "{verb}");
            assert!(bench.call(verb, json!(7)).is_err(), "{verb}");
        }
    }

    #[test]
    fn every_verb_of_a_guest_needs_one() {
        let bench = bench();
        let cases = [
            ("info", json!({})),
            ("pause", json!({})),
            ("unpause", json!({})),
            ("migrate-begin", json!({"timeout_ms": 60_000})),
            ("migrate-commit", json!({})),
            ("migrate-cancel", json!({"timeout_ms": 60_000})),
            (
                "migrate-finish",
                json!({"routers": [], "timeout_ms": 60_000, "changes":
                       {"incarnation": uuid(8), "newest": 0, "applied": []}}),
            ),
            ("console", json!({"max_bytes": 10})),
            (
                "router-install",
                json!({"rid": 0, "config": "", "config_name": "n", "timeout_ms": 60_000}),
            ),
            ("handler-list", json!({"rid": 0})),
            ("handler-read", json!({"rid": 0, "name": "a.b"})),
            ("handlers-read", json!({"rid": 0, "names": ["a.b"]})),
            (
                "handler-write",
                json!({"rid": 0, "writes": [["a.b", ""]], "timeout_ms": 60_000}),
            ),
        ];
        for (verb, mut args) in cases {
            args["uuid"] = json!(uuid(9));
            let error = bench.refused(verb, args.clone());
            assert!(error.starts_with("no-such-guest: "), "{verb}: {error}");
            args["uuid"] = json!("../../etc/passwd");
            assert!(
                bench.refused(verb, args).starts_with("bad-request: "),
                "{verb}"
            );
        }
    }

    #[test]
    fn bad_values_are_named() {
        let bench = bench();
        bench.call("create", create_args()).unwrap();
        let cases = [
            (
                "router-install",
                json!({"rid": 64, "config": "", "config_name": "n", "timeout_ms": 60_000}),
                "bad-request: router-install: rid: expected 0 to 63",
            ),
            (
                "router-install",
                json!({"rid": 0, "config": "", "config_name": "", "timeout_ms": 60_000}),
                "bad-request: router-install: config_name: ",
            ),
            (
                "router-install",
                json!({"rid": 0, "config": "", "config_name": "n", "timeout_ms": 0}),
                "bad-request: router-install: timeout_ms: expected 1",
            ),
            (
                "handler-read",
                json!({"rid": 0, "name": "a b"}),
                "bad-request: handler-read: name: ",
            ),
            (
                "handler-read",
                json!({"rid": 0, "name": "x.y"}),
                "no-such-element: ",
            ),
            (
                "handler-read",
                json!({"rid": -1, "name": "x.y"}),
                "bad-request: handler-read: rid: ",
            ),
            (
                "handler-write",
                json!({"rid": 0, "writes": [["a.b"]], "timeout_ms": 60_000}),
                "bad-request: handler-write: writes[0]: ",
            ),
            (
                "handler-write",
                json!({"rid": 0, "writes": [["fw.config", "bad"]], "timeout_ms": 60_000}),
                "handler-error: fw.config: bad rule",
            ),
            ("console", json!({"max_bytes": -1}), "bad-request: console"),
        ];
        for (verb, mut args, words) in cases {
            args["uuid"] = json!(uuid(1));
            let error = bench.refused(verb, args);
            assert!(error.starts_with(words), "{words}: {error}");
        }
    }
}
