// SPDX-License-Identifier: Apache-2.0
//! The verbs of docs/interfaces.md, "cosmosd": arguments in, answers out.

#[cfg(test)]
mod golden;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use control_socket::{ApiError, Peer, Service, Signature, Subscribing, Typed, Verb};

use crate::control::RouterSpec;
use crate::devices;
use crate::error::{Error, Result};
use crate::images::Piece;
use crate::lifecycle::Created;
use crate::spec::{Spec, check_config, check_handler, check_param, check_timeout, check_writes};
use crate::toolstack::Toolstack;
use crate::uplinks;
use cosmos_proto::answer::{
    Applied, Changes, Created as CreatedAnswer, Devices, Found, Guest, GuestPorts, Guests, Halted,
    HandlerValue, HandlerValues, Handlers, Hello, Host, Images, Installed, Log, ReadError,
    ReadOutcome, Restored, Routers, Saved, Strangers, Taken, Uplinks,
};
use cosmos_proto::{
    Console, Done, ImageAdd, Install, MAX_READ_BYTES, MoveSource, MoveTarget, Named, NoArgs,
    OfGuest, OfImage, OfRouter, OfSegment, Place, PlugVif, Read, Reads, Run, Share, UpTo, VifLink,
    Writes, verb,
};
use vale_proto::{
    ChainId, ChainSet, Chains, HostDevice, PortFilter, PortGuard, PortId, PortLimit, SegmentUplink,
};

/// How long a guest may take to answer where the client names no deadline.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(5);

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
    of::<verb::HelloVerb>(&Typed(CosmosService::hello)),
    of::<verb::DescribeHost>(&Typed(CosmosService::host)),
    of::<verb::Create>(&Typed(CosmosService::create)),
    of::<verb::Release>(&Typed(CosmosService::release)),
    of::<verb::Destroy>(&Typed(CosmosService::destroy)),
    of::<verb::List>(&Typed(CosmosService::list)),
    of::<verb::ListStrangers>(&Typed(CosmosService::strangers)),
    of::<verb::Find>(&Typed(CosmosService::find)),
    of::<verb::Info>(&Typed(CosmosService::info)),
    of::<verb::Pause>(&Typed(CosmosService::pause)),
    of::<verb::Unpause>(&Typed(CosmosService::unpause)),
    of::<verb::ReadConsole>(&Typed(CosmosService::console)),
    of::<verb::AddImage>(&Typed(CosmosService::add_image)),
    of::<verb::ListImages>(&Typed(CosmosService::list_images)),
    of::<verb::RemoveImage>(&Typed(CosmosService::remove_image)),
    of::<verb::SetCpu>(&Typed(CosmosService::set_cpu)),
    of::<verb::Save>(&Typed(CosmosService::save)),
    of::<verb::Restore>(&Typed(CosmosService::restore)),
    of::<verb::MoveBegin>(&Typed(CosmosService::begin_move)),
    of::<verb::MoveSettle>(&Typed(CosmosService::settle_move)),
    of::<verb::MoveCancel>(&Typed(CosmosService::cancel_move)),
    of::<verb::MoveReceive>(&Typed(CosmosService::receive_move)),
    of::<verb::MoveArrive>(&Typed(CosmosService::end_move)),
    of::<verb::RemoveVif>(&Typed(CosmosService::remove_vif)),
    of::<verb::Plug>(&Typed(CosmosService::plug_vif)),
    of::<verb::Unplug>(&Typed(CosmosService::unplug_vif)),
    of::<verb::SetVif>(&Typed(CosmosService::set_vif)),
    of::<verb::FilterPort>(&Typed(CosmosService::filter_port)),
    of::<verb::GuardPort>(&Typed(CosmosService::guard_port)),
    of::<verb::LimitPort>(&Typed(CosmosService::limit_port)),
    of::<verb::SetUplink>(&Typed(CosmosService::set_uplink)),
    of::<verb::RemoveUplink>(&Typed(CosmosService::remove_uplink)),
    of::<verb::ListUplinks>(&Typed(CosmosService::uplinks)),
    of::<verb::SetDevice>(&Typed(CosmosService::set_device)),
    of::<verb::RemoveDevice>(&Typed(CosmosService::remove_device)),
    of::<verb::ListDevices>(&Typed(CosmosService::devices)),
    of::<verb::SetChain>(&Typed(CosmosService::set_chain)),
    of::<verb::RemoveChain>(&Typed(CosmosService::remove_chain)),
    of::<verb::ListVifs>(&Typed(CosmosService::ports)),
    of::<verb::ListChains>(&Typed(CosmosService::chains)),
    of::<verb::InstallRouter>(&Typed(CosmosService::install)),
    of::<verb::RunRouter>(&Typed(CosmosService::run)),
    of::<verb::ListRouters>(&Typed(CosmosService::routers)),
    of::<verb::ListHandlers>(&Typed(CosmosService::handlers)),
    of::<verb::ReadHandler>(&Typed(CosmosService::read)),
    of::<verb::ReadHandlers>(&Typed(CosmosService::read_many)),
    of::<verb::WriteHandlers>(&Typed(CosmosService::write)),
    of::<verb::SettleChanges>(&Typed(CosmosService::settle)),
    Verb::of::<verb::Events>(&Subscribing(|service: &CosmosService| {
        service.0.events.subscribe()
    })),
];

/// The entry of a verb: the compiler holds its function to the verb's types.
const fn of<V: Signature>(
    call: &'static Typed<CosmosService, V::Args, V::Answer, Error>,
) -> Verb<CosmosService> {
    Verb::of::<V>(call)
}

impl CosmosService {
    fn hello(&self, peer: &Peer, _: NoArgs) -> Result<Hello> {
        Ok(Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host_kind: self.0.host.kind().to_owned(),
            roles: peer.roles.clone(),
        })
    }

    fn host(&self, _: &Peer, _: NoArgs) -> Result<Host> {
        self.0.describe_host()
    }

    fn create(&self, _: &Peer, spec: Spec) -> Result<CreatedAnswer> {
        self.0.create(&spec).map(created)
    }

    fn release(&self, _: &Peer, args: OfGuest) -> Result<Done> {
        done(self.0.connect(&args.uuid))
    }

    fn destroy(&self, _: &Peer, args: OfGuest) -> Result<Done> {
        done(self.0.destroy(&args.uuid))
    }

    fn list(&self, _: &Peer, _: NoArgs) -> Result<Guests> {
        let guests = self.0.list();
        Ok(Guests { guests })
    }

    fn strangers(&self, _: &Peer, _: NoArgs) -> Result<Strangers> {
        let strangers = self.0.strangers()?;
        Ok(Strangers { strangers })
    }

    fn find(&self, _: &Peer, args: Named) -> Result<Found> {
        let uuids = self.0.table.named(&args.name);
        Ok(Found { uuids })
    }

    fn info(&self, _: &Peer, args: OfGuest) -> Result<Guest> {
        self.0.info(&args.uuid)
    }

    fn pause(&self, _: &Peer, args: OfGuest) -> Result<Done> {
        done(self.0.pause(&args.uuid))
    }

    fn unpause(&self, _: &Peer, args: OfGuest) -> Result<Done> {
        done(self.0.unpause(&args.uuid))
    }

    fn console(&self, _: &Peer, args: Console) -> Result<Log> {
        let max_bytes = usize::try_from(args.max_bytes).unwrap_or(usize::MAX);
        let text = self.0.console(&args.uuid, max_bytes)?;
        Ok(Log { text })
    }

    fn add_image(&self, _: &Peer, args: ImageAdd) -> Result<Taken> {
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
        Ok(Taken { complete })
    }

    fn list_images(&self, _: &Peer, _: NoArgs) -> Result<Images> {
        let images = self.0.images()?.list()?;
        Ok(Images { images })
    }

    fn remove_image(&self, _: &Peer, args: OfImage) -> Result<Done> {
        done(self.0.images()?.remove(&args.sha256))
    }

    fn set_cpu(&self, _: &Peer, args: Share) -> Result<Done> {
        done(self.0.set_cpu(&args.uuid, &args.cpu))
    }

    fn save(&self, _: &Peer, args: OfGuest) -> Result<Saved> {
        self.0.save(&args.uuid)?;
        let bytes = self.0.saved.bytes(&args.uuid)?;
        Ok(Saved { bytes })
    }

    fn restore(&self, _: &Peer, args: OfGuest) -> Result<Restored> {
        let steps = self.0.restore(&args.uuid)?;
        let steps_ms = steps.answer();
        Ok(Restored { steps_ms })
    }

    fn begin_move(&self, peer: &Peer, args: MoveSource) -> Result<Halted> {
        let timeout = check_timeout(args.timeout_ms)?;
        self.0.migrate_source(&args.uuid, peer.connection, timeout)
    }

    fn settle_move(&self, peer: &Peer, args: OfGuest) -> Result<Done> {
        done(self.0.settle_departure(&args.uuid, peer.connection))
    }

    fn cancel_move(&self, peer: &Peer, args: MoveSource) -> Result<Done> {
        let timeout = check_timeout(args.timeout_ms)?;
        let cancelled = self
            .0
            .cancel_departure(&args.uuid, peer.connection, timeout);
        done(cancelled)
    }

    fn receive_move(&self, peer: &Peer, spec: Spec) -> Result<CreatedAnswer> {
        self.0.receive(&spec, peer.connection).map(created)
    }

    fn end_move(&self, peer: &Peer, args: MoveTarget) -> Result<Done> {
        let timeout = check_timeout(args.timeout_ms)?;
        done(self.0.migrate_target(peer.connection, &args, timeout))
    }

    fn install(&self, _: &Peer, args: Install) -> Result<Installed> {
        check_config(&args.config, &args.config_name)?;
        let timeout = check_timeout(args.timeout_ms)?;
        let spec = RouterSpec {
            config: &args.config,
            config_name: &args.config_name,
            halted: args.halted,
        };
        self.0
            .install_stamped(&args.uuid, args.rid, &spec, args.stamp.as_ref(), timeout)
    }

    fn remove_vif(&self, _: &Peer, place: Place) -> Result<Done> {
        done(self.0.remove_vif(&place))
    }

    fn plug_vif(&self, _: &Peer, args: PlugVif) -> Result<Done> {
        done(self.0.plug_vif(&args))
    }

    fn unplug_vif(&self, _: &Peer, place: Place) -> Result<Done> {
        done(self.0.unplug_vif(&place))
    }

    fn set_vif(&self, _: &Peer, args: VifLink) -> Result<Done> {
        done(self.0.set_vif(&args.place(), args.link_up))
    }

    fn filter_port(&self, _: &Peer, filter: PortFilter) -> Result<Done> {
        let named = |e| Error::bad_request(format!("port-filter: {e}"));
        filter.check().map_err(named)?;
        done(self.0.switch.set_filter(&filter))
    }

    fn guard_port(&self, _: &Peer, guard: PortGuard) -> Result<Done> {
        done(self.0.switch.set_guard(&guard))
    }

    fn limit_port(&self, _: &Peer, limit: PortLimit) -> Result<Done> {
        let named = |e| Error::bad_request(format!("port-limit: {e}"));
        limit.limits.check().map_err(named)?;
        done(self.0.switch.set_limits(&limit))
    }

    fn set_uplink(&self, _: &Peer, uplink: SegmentUplink) -> Result<Done> {
        done(uplinks::set(&*self.0.switch, &uplink))
    }

    fn remove_uplink(&self, _: &Peer, of: OfSegment) -> Result<Done> {
        done(uplinks::remove(&*self.0.switch, &of))
    }

    fn uplinks(&self, _: &Peer, _: NoArgs) -> Result<Uplinks> {
        let uplinks = uplinks::list(&*self.0.switch)?;
        Ok(Uplinks { uplinks })
    }

    fn set_device(&self, _: &Peer, device: HostDevice) -> Result<Done> {
        done(devices::set(&*self.0.switch, &device))
    }

    fn remove_device(&self, _: &Peer, port: PortId) -> Result<Done> {
        done(devices::remove(&*self.0.switch, &port))
    }

    fn devices(&self, _: &Peer, _: NoArgs) -> Result<Devices> {
        let devices = devices::list(&*self.0.switch)?;
        Ok(Devices { devices })
    }

    fn set_chain(&self, _: &Peer, chain: ChainSet) -> Result<Done> {
        chain
            .check()
            .map_err(|e| Error::bad_request(format!("chain-set: {e}")))?;
        done(self.0.switch.set_chain(&chain))
    }

    fn remove_chain(&self, _: &Peer, chain: ChainId) -> Result<Done> {
        done(self.0.switch.remove_chain(&chain))
    }

    fn ports(&self, _: &Peer, args: OfGuest) -> Result<GuestPorts> {
        let ports = self.0.ports(&args.uuid)?;
        Ok(GuestPorts { ports })
    }

    fn chains(&self, _: &Peer, _: NoArgs) -> Result<Chains> {
        let chains = self.0.switch.chains()?;
        Ok(Chains { chains })
    }

    fn run(&self, _: &Peer, args: Run) -> Result<Done> {
        let timeout = check_timeout(args.timeout_ms)?;
        done(self.0.run(&args.uuid, args.rid, args.run, timeout))
    }

    fn routers(&self, _: &Peer, args: OfGuest) -> Result<Routers> {
        let routers = self.0.routers(&args.uuid, HANDLER_TIMEOUT)?;
        Ok(Routers { routers })
    }

    fn handlers(&self, _: &Peer, args: OfRouter) -> Result<Handlers> {
        let handlers = self.0.handlers(&args.uuid, args.rid, HANDLER_TIMEOUT)?;
        Ok(Handlers { handlers })
    }

    fn read(&self, _: &Peer, args: Read) -> Result<HandlerValue> {
        let Read {
            uuid,
            rid,
            name,
            param,
        } = args;
        check_handler(&name)?;
        check_param(&param)?;
        let handler = (name.as_str(), param.as_str());
        let value = self.0.read(&uuid, rid, handler, HANDLER_TIMEOUT)?;
        Ok(HandlerValue { value })
    }

    fn read_many(&self, _: &Peer, args: Reads) -> Result<HandlerValues> {
        let names = &args.names;
        names.iter().try_for_each(|name| check_handler(name))?;
        let limit = MAX_READ_BYTES;
        let read = self
            .0
            .read_many((&args.uuid, args.rid), names, limit, HANDLER_TIMEOUT)?;
        let values = read.into_iter().map(outcome).collect();
        Ok(HandlerValues { values })
    }

    fn write(&self, _: &Peer, args: Writes) -> Result<Applied> {
        check_writes(&args.writes)?;
        let timeout = check_timeout(args.timeout_ms)?;
        self.0.write_stamped(&args, timeout)
    }

    fn settle(&self, _: &Peer, up_to: UpTo) -> Result<Changes> {
        self.0.settle_changes(&up_to)
    }
}

fn outcome(value: Result<String>) -> ReadOutcome {
    match value {
        Ok(value) => ReadOutcome::Value(value),
        Err(error) => ReadOutcome::Error(ReadError {
            code: error.code.as_str().to_owned(),
            message: error.message,
        }),
    }
}

fn created(created: Created) -> CreatedAnswer {
    CreatedAnswer {
        domid: created.domid,
        incarnation: created.incarnation,
        steps_ms: created.steps.answer(),
    }
}

fn done(result: Result<()>) -> Result<Done> {
    result.map(|()| Done {})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::ENGINE;
    use crate::testing::{World, uuid, vif};
    use control_socket::{Access, Reply};
    use cosmos_proto::MAX_READS;
    use serde_json::{Value, json};
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
            match work?.run(&self.service, &peer, Vec::new())? {
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
        for verb in CosmosService::verbs() {
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
        for verb in CosmosService::verbs() {
            let line = json!({"v": 1, "id": 1, "verb": verb.name, "args": {}}).to_string();
            let (_, work) = control_socket::prepare::<CosmosService>(&peer, line.as_bytes());
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
        let read = |names: &[&str]| {
            let args = json!({"uuid": uuid(1), "rid": 0, "names": names});
            bench
                .call("handlers-read", args)
                .map(|answer| answer["values"].clone())
        };
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
                .starts_with("handler name")
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
        let error = bench().refused("move-arrive", args);
        assert!(error.starts_with("no-such-guest"), "{error}");
    }

    #[test]
    fn images_through_the_verbs() {
        let bench = bench();
        let image = crate::images::kernel(&[18]);
        let sha256 = crate::text::hex(&sha2::Sha256::digest(&image));
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
            ("move-begin", json!({"timeout_ms": 60_000})),
            ("move-settle", json!({})),
            ("move-cancel", json!({"timeout_ms": 60_000})),
            (
                "move-arrive",
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
                "bad-request: rid: expected 0 to 63",
            ),
            (
                "router-install",
                json!({"rid": 0, "config": "", "config_name": "", "timeout_ms": 60_000}),
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
                json!({"rid": 0, "writes": [["a.b"]], "timeout_ms": 60_000}),
                "bad-request: handler-write",
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
