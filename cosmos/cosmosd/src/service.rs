// SPDX-License-Identifier: Apache-2.0
//! The verbs of docs/interfaces.md, "cosmosd": arguments in, answers out.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use control_socket::{Access, ApiError, Peer, Reply, Service, Typed, Verb};
use serde_json::{Value, json};

use crate::control::RouterSpec;
use crate::create::Created;
use crate::error::{Error, Result};
use crate::images::Piece;
use crate::spec::{Spec, check_config, check_handler, check_timeout, check_writes};
use crate::toolstack::Toolstack;
use cosmos_proto::{
    Console, ImageAdd, Install, MoveSource, MoveTarget, Named, NoArgs, OfGuest, OfImage, OfRouter,
    Place, Read, Run, SetVif, Share, Writes,
};
use vale_proto::{ChainId, ChainSet};

/// How long a guest may take to answer where the client names no deadline.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(5);

const NOVA: Access = Access::Only(&["nova"]);
const AGENT: Access = Access::Only(&["agent"]);

/// The toolstack behind the socket.
pub struct CosmosService(pub Arc<Toolstack>);

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self::new(error.code.as_str(), error.message)
    }
}

impl Service for CosmosService {
    fn verbs() -> &'static [Verb<Self>] {
        VERBS
    }

    fn closed(&self, peer: &Peer) {
        self.0.forget_client(peer.connection);
    }
}

const VERBS: &[Verb<CosmosService>] = &[
    Verb::new("hello", Access::Any, &Typed(CosmosService::hello)),
    Verb::new("host", Access::Any, &Typed(CosmosService::host)),
    Verb::new("create", NOVA, &Typed(CosmosService::create)).large(),
    Verb::new("destroy", NOVA, &Typed(CosmosService::destroy)),
    Verb::new("list", Access::Any, &Typed(CosmosService::list)).listing(),
    Verb::new("find", Access::Any, &Typed(CosmosService::find)),
    Verb::new("info", Access::Any, &Typed(CosmosService::info)),
    Verb::new("pause", NOVA, &Typed(CosmosService::pause)),
    Verb::new("unpause", NOVA, &Typed(CosmosService::unpause)),
    Verb::new("console", NOVA, &Typed(CosmosService::console)),
    Verb::new("image-add", NOVA, &Typed(CosmosService::add_image)).large(),
    Verb::new(
        "image-list",
        Access::Any,
        &Typed(CosmosService::list_images),
    ),
    Verb::new("image-remove", NOVA, &Typed(CosmosService::remove_image)),
    Verb::new("cpu", NOVA, &Typed(CosmosService::set_cpu)),
    Verb::new("save", NOVA, &Typed(CosmosService::save)),
    Verb::new("restore", NOVA, &Typed(CosmosService::restore)),
    Verb::new("move-begin", NOVA, &Typed(CosmosService::begin_move)),
    Verb::new("move-settle", NOVA, &Typed(CosmosService::settle_move)),
    Verb::new("move-cancel", NOVA, &Typed(CosmosService::cancel_move)),
    Verb::new("move-receive", NOVA, &Typed(CosmosService::receive_move)).large(),
    Verb::new("move-arrive", NOVA, &Typed(CosmosService::end_move)),
    Verb::new("vif-remove", AGENT, &Typed(CosmosService::remove_vif)),
    Verb::new("vif-set", AGENT, &Typed(CosmosService::set_vif)),
    Verb::new("chain-set", AGENT, &Typed(CosmosService::set_chain)),
    Verb::new("chain-remove", AGENT, &Typed(CosmosService::remove_chain)),
    Verb::new("chain-list", AGENT, &Typed(CosmosService::chains)),
    Verb::new("router-install", AGENT, &Typed(CosmosService::install)).large(),
    Verb::new("router-run", AGENT, &Typed(CosmosService::run)),
    Verb::new("router-list", AGENT, &Typed(CosmosService::routers)),
    Verb::new("handler-list", AGENT, &Typed(CosmosService::handlers)),
    Verb::new("handler-read", AGENT, &Typed(CosmosService::read)),
    Verb::new("handler-write", AGENT, &Typed(CosmosService::write)).large(),
    Verb::new("events", Access::Any, &Typed(CosmosService::subscribe)),
];

impl CosmosService {
    fn hello(&self, peer: &Peer, _: NoArgs) -> Result<Value> {
        Ok(json!({
            "version": env!("CARGO_PKG_VERSION"), "host_kind": self.0.host.kind(),
            "roles": peer.roles,
        }))
    }

    fn host(&self, _: &Peer, _: NoArgs) -> Result<Value> {
        self.0.describe_host()
    }

    fn subscribe(&self, _: &Peer, _: NoArgs) -> Result<Reply> {
        Ok(Reply::Events(self.0.events.subscribe()))
    }

    fn create(&self, _: &Peer, spec: Spec) -> Result<Value> {
        self.0.create(&spec).map(created)
    }

    fn destroy(&self, _: &Peer, args: OfGuest) -> Result<Value> {
        done(self.0.destroy(&args.uuid))
    }

    fn list(&self, _: &Peer, _: NoArgs) -> Result<Value> {
        Ok(json!({"guests": self.0.list()}))
    }

    fn find(&self, _: &Peer, args: Named) -> Result<Value> {
        Ok(json!({"uuids": self.0.table.named(&args.name)}))
    }

    fn info(&self, _: &Peer, args: OfGuest) -> Result<Value> {
        self.0.info(&args.uuid)
    }

    fn pause(&self, _: &Peer, args: OfGuest) -> Result<Value> {
        done(self.0.pause(&args.uuid))
    }

    fn unpause(&self, _: &Peer, args: OfGuest) -> Result<Value> {
        done(self.0.unpause(&args.uuid))
    }

    fn console(&self, _: &Peer, args: Console) -> Result<Value> {
        let max_bytes = usize::try_from(args.max_bytes).unwrap_or(usize::MAX);
        let text = self.0.console(&args.uuid, max_bytes)?;
        Ok(json!({"text": text}))
    }

    fn add_image(&self, _: &Peer, args: ImageAdd) -> Result<Value> {
        let images = self.0.images()?;
        let data = BASE64
            .decode(&args.data)
            .map_err(|e| Error::bad_request(format!("image-add: data: {e}")))?;
        let complete = images.add(&Piece {
            sha256: &args.sha256,
            size: args.size,
            offset: args.offset,
            data: &data,
        })?;
        Ok(json!({"complete": complete}))
    }

    fn list_images(&self, _: &Peer, _: NoArgs) -> Result<Value> {
        Ok(json!({"images": self.0.images()?.list()?}))
    }

    fn remove_image(&self, _: &Peer, args: OfImage) -> Result<Value> {
        done(self.0.images()?.remove(&args.sha256))
    }

    fn set_cpu(&self, _: &Peer, args: Share) -> Result<Value> {
        done(self.0.set_cpu(&args.uuid, &args.cpu))
    }

    fn save(&self, _: &Peer, args: OfGuest) -> Result<Value> {
        self.0.save(&args.uuid)?;
        Ok(json!({"bytes": self.0.saved.bytes(&args.uuid)?}))
    }

    fn restore(&self, _: &Peer, args: OfGuest) -> Result<Value> {
        let steps = self.0.restore(&args.uuid)?;
        Ok(json!({"steps_ms": steps.answer()}))
    }

    fn begin_move(&self, peer: &Peer, args: MoveSource) -> Result<Value> {
        let timeout = check_timeout(args.timeout_ms)?;
        let routers = self
            .0
            .migrate_source(&args.uuid, peer.connection, timeout)?;
        Ok(json!({"routers": routers}))
    }

    fn settle_move(&self, peer: &Peer, args: OfGuest) -> Result<Value> {
        done(self.0.settle_departure(&args.uuid, peer.connection))
    }

    fn cancel_move(&self, peer: &Peer, args: MoveSource) -> Result<Value> {
        let timeout = check_timeout(args.timeout_ms)?;
        let cancelled = self
            .0
            .cancel_departure(&args.uuid, peer.connection, timeout);
        done(cancelled)
    }

    fn receive_move(&self, peer: &Peer, spec: Spec) -> Result<Value> {
        self.0.receive(&spec, peer.connection).map(created)
    }

    fn end_move(&self, peer: &Peer, args: MoveTarget) -> Result<Value> {
        let timeout = check_timeout(args.timeout_ms)?;
        let MoveTarget { uuid, routers, .. } = args;
        done(
            self.0
                .migrate_target(&uuid, peer.connection, &routers, timeout),
        )
    }

    fn install(&self, _: &Peer, args: Install) -> Result<Value> {
        check_config(&args.config, &args.config_name)?;
        let timeout = check_timeout(args.timeout_ms)?;
        let wish = RouterSpec {
            config: &args.config,
            config_name: &args.config_name,
            halted: args.halted,
        };
        let generation = self.0.install(&args.uuid, args.rid, &wish, timeout)?;
        Ok(json!({"generation": generation}))
    }

    fn remove_vif(&self, _: &Peer, place: Place) -> Result<Value> {
        done(self.0.remove_vif(&place))
    }

    fn set_vif(&self, _: &Peer, args: SetVif) -> Result<Value> {
        done(self.0.set_vif(&args.place(), args.link_up))
    }

    fn set_chain(&self, _: &Peer, chain: ChainSet) -> Result<Value> {
        chain
            .check()
            .map_err(|e| Error::bad_request(format!("chain-set: {e}")))?;
        done(self.0.switch.set_chain(&chain))
    }

    fn remove_chain(&self, _: &Peer, chain: ChainId) -> Result<Value> {
        done(self.0.switch.remove_chain(&chain))
    }

    fn chains(&self, _: &Peer, _: NoArgs) -> Result<Value> {
        Ok(json!({"chains": self.0.switch.chains()?}))
    }

    fn run(&self, _: &Peer, args: Run) -> Result<Value> {
        let timeout = check_timeout(args.timeout_ms)?;
        done(self.0.run(&args.uuid, args.rid, args.run, timeout))
    }

    fn routers(&self, _: &Peer, args: OfGuest) -> Result<Value> {
        let routers = self.0.routers(&args.uuid, HANDLER_TIMEOUT)?;
        Ok(json!({"routers": routers}))
    }

    fn handlers(&self, _: &Peer, args: OfRouter) -> Result<Value> {
        let handlers = self.0.handlers(&args.uuid, args.rid, HANDLER_TIMEOUT)?;
        Ok(json!({"handlers": handlers}))
    }

    fn read(&self, _: &Peer, args: Read) -> Result<Value> {
        let Read { uuid, rid, name } = args;
        check_handler(&name)?;
        let value = self.0.read(&uuid, rid, &name, HANDLER_TIMEOUT)?;
        Ok(json!({"value": value}))
    }

    fn write(&self, _: &Peer, args: Writes) -> Result<Value> {
        check_writes(&args.writes)?;
        let timeout = check_timeout(args.timeout_ms)?;
        done(self.0.write(&args.uuid, args.rid, &args.writes, timeout))
    }
}

fn created(created: Created) -> Value {
    json!({"domid": created.domid, "steps_ms": created.steps.answer()})
}

fn done(result: Result<()>) -> Result<Value> {
    result.map(|()| json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ENGINE, World, uuid, vif};
    use sha2::Digest;

    struct Bench {
        world: World,
        service: CosmosService,
    }

    fn bench() -> Bench {
        let world = World::new();
        let service = CosmosService(world.toolstack.clone());
        Bench { world, service }
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
            let (_, work) = control_socket::prepare(&peer, line.to_string().as_bytes());
            match work?.run(&self.service, &peer)? {
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
            "writes": [], "timeout_ms": 1000,
        })
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
        let writes = json!({"rid": 0, "writes": [["fw.config", "x"]], "timeout_ms": 100});
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
            let args = json!({"rid": 0, "config": config, "config_name": "n", "timeout_ms": 100});
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
    fn images_through_the_verbs() {
        let bench = bench();
        let image = crate::images::kernel(&[18]);
        let sha256 = crate::host::hex(&sha2::Sha256::digest(&image));
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
            ("move-begin", json!({"timeout_ms": 10})),
            ("move-settle", json!({})),
            ("move-cancel", json!({"timeout_ms": 10})),
            ("move-arrive", json!({"routers": [], "timeout_ms": 10})),
            ("console", json!({"max_bytes": 10})),
            (
                "router-install",
                json!({"rid": 0, "config": "", "config_name": "n", "timeout_ms": 10}),
            ),
            ("handler-list", json!({"rid": 0})),
            ("handler-read", json!({"rid": 0, "name": "a.b"})),
            (
                "handler-write",
                json!({"rid": 0, "writes": [["a.b", ""]], "timeout_ms": 10}),
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
                json!({"rid": 64, "config": "", "config_name": "n", "timeout_ms": 10}),
                "bad-request: rid: expected 0 to 63",
            ),
            (
                "router-install",
                json!({"rid": 0, "config": "", "config_name": "", "timeout_ms": 10}),
                "bad-request: config_name",
            ),
            (
                "router-install",
                json!({"rid": 0, "config": "", "config_name": "n", "timeout_ms": 0}),
                "bad-request: timeout_ms: expected 1",
            ),
            (
                "handler-read",
                json!({"rid": 0, "name": "a b"}),
                "bad-request: handler name",
            ),
            (
                "handler-read",
                json!({"rid": 0, "name": "x.y"}),
                "no-such-element: ",
            ),
            (
                "handler-read",
                json!({"rid": -1, "name": "x.y"}),
                "bad-request: handler-read",
            ),
            (
                "handler-write",
                json!({"rid": 0, "writes": [["a.b"]], "timeout_ms": 10}),
                "bad-request: handler-write",
            ),
            (
                "handler-write",
                json!({"rid": 0, "writes": [["fw.config", "bad"]], "timeout_ms": 10}),
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
