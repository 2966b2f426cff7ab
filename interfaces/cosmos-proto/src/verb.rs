// SPDX-License-Identifier: Apache-2.0
//! The verbs. An entry of the table names the types of arguments and answer. The table lacks
//! `events`, which answers with a stream ([`control_socket::Client::events`]).

use serde::Serialize;
use serde::de::DeserializeOwned;
use vale_proto::{
    ChainId, ChainSet, HostDevice, PortFilter, PortGuard, PortId, PortLimit, SegmentUplink,
};

use crate::answer;
use crate::guest::Spec;
use crate::request::*;

/// A verb of cosmosd.
pub trait Verb {
    const NAME: &'static str;
    type Args: Serialize + DeserializeOwned;
    type Answer: Serialize + DeserializeOwned;
}

macro_rules! verbs {
    ($($verb:ident $name:literal: $args:ty => $answer:ty;)*) => {
        $(
            #[doc = concat!("The verb `", $name, "`.")]
            #[derive(Debug)]
            pub enum $verb {}

            impl Verb for $verb {
                const NAME: &'static str = $name;
                type Args = $args;
                type Answer = $answer;
            }
        )*

        /// The schemas of arguments and answers by verb.
        #[cfg(test)]
        pub(crate) fn schemas(gen_: &mut schemars::SchemaGenerator) -> serde_json::Value {
            let mut all = serde_json::Map::new();
            $(
                let verb = serde_json::json!({
                    "args": gen_.subschema_for::<$args>(),
                    "answer": gen_.subschema_for::<$answer>(),
                });
                all.insert($name.to_owned(), verb);
            )*
            all.into()
        }
    };
}

verbs! {
    HelloVerb "hello": NoArgs => answer::Hello;
    DescribeHost "host": NoArgs => answer::Host;
    Create "create": Spec => answer::Created;
    Destroy "destroy": OfGuest => answer::Done;
    Release "release": OfGuest => answer::Done;
    List "list": NoArgs => answer::Guests;
    ListStrangers "strangers": NoArgs => answer::Strangers;
    Find "find": Named => answer::Found;
    Info "info": OfGuest => answer::Guest;
    Pause "pause": OfGuest => answer::Done;
    Unpause "unpause": OfGuest => answer::Done;
    ReadConsole "console": Console => answer::Log;
    SetCpu "cpu": Share => answer::Done;
    Save "save": OfGuest => answer::Saved;
    Restore "restore": OfGuest => answer::Restored;
    MoveBegin "move-begin": MoveSource => answer::Halted;
    MoveSettle "move-settle": OfGuest => answer::Done;
    MoveCancel "move-cancel": MoveSource => answer::Done;
    MoveReceive "move-receive": Spec => answer::Created;
    MoveArrive "move-arrive": MoveTarget => answer::Done;
    AddImage "image-add": ImageAdd => answer::Taken;
    ListImages "image-list": NoArgs => answer::Images;
    RemoveImage "image-remove": OfImage => answer::Done;
    RemoveVif "vif-remove": Place => answer::Done;
    ListVifs "vif-list": OfGuest => answer::Ports;
    Plug "vif-plug": PlugVif => answer::Done;
    Unplug "vif-unplug": Place => answer::Done;
    SetVif "vif-set": VifLink => answer::Done;
    FilterPort "port-filter": PortFilter => answer::Done;
    GuardPort "port-guard": PortGuard => answer::Done;
    LimitPort "port-limit": PortLimit => answer::Done;
    SetUplink "uplink-set": SegmentUplink => answer::Done;
    RemoveUplink "uplink-remove": OfSegment => answer::Done;
    ListUplinks "uplink-list": NoArgs => answer::Uplinks;
    SetDevice "device-set": HostDevice => answer::Done;
    RemoveDevice "device-remove": PortId => answer::Done;
    ListDevices "device-list": NoArgs => answer::Devices;
    SetChain "chain-set": ChainSet => answer::Done;
    RemoveChain "chain-remove": ChainId => answer::Done;
    ListChains "chain-list": NoArgs => answer::Chains;
    InstallRouter "router-install": Install => answer::Installed;
    RunRouter "router-run": Run => answer::Done;
    ListRouters "router-list": OfGuest => answer::Routers;
    ListHandlers "handler-list": OfRouter => answer::Handlers;
    ReadHandler "handler-read": Read => answer::HandlerValue;
    ReadHandlers "handlers-read": Reads => answer::HandlerValues;
    WriteHandlers "handler-write": Writes => answer::Applied;
    SettleChanges "change-settle": UpTo => answer::Changes;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checked-in schema, which the Python client is tested against.
    const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.json");

    #[test]
    fn the_schema_is_that_of_the_types() {
        let mut generator = schemars::SchemaGenerator::default();
        let verbs = schemas(&mut generator);
        let schema = serde_json::json!({
            "$comment": "SPDX-License-Identifier: Apache-2.0",
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": generator.take_definitions(true),
            "verbs": verbs,
        });
        let text = format!("{schema:#}\n");
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(SCHEMA, &text).unwrap();
        }
        let kept = std::fs::read_to_string(SCHEMA).unwrap_or_default();
        assert!(
            kept == text,
            "schema.json differs from the types; run \
             `UPDATE_SCHEMA=1 cargo test -p cosmos-proto` and read the difference"
        );
    }
}
