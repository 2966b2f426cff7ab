// SPDX-License-Identifier: Apache-2.0
//! Arguments and answers of the verbs about what valed keeps for its next start.
use control_socket::typed_at;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{
    ChainId, ChainSet, MirrorId, MirrorSet, OffloadEnable, OffloadId, OffloadSet, PortAdd,
    PortFilter, PortId, PortLimit, PortSet, SegmentLimit,
};

/// Most requests that valed keeps.
pub const MAX_KEPT: usize = 1024;

/// Arguments of `keep`: an operator's request. valed carries it out, and repeats it when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(
    tag = "verb",
    content = "args",
    rename_all = "kebab-case",
    deny_unknown_fields
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Keep {
    PortAdd(Box<PortAdd>),
    PortRemove(PortId),
    PortSet(PortSet),
    PortLimit(PortLimit),
    PortFilter(PortFilter),
    SegmentLimit(SegmentLimit),
    OffloadSet(OffloadSet),
    OffloadRemove(OffloadId),
    OffloadEnable(OffloadEnable),
    MirrorSet(MirrorSet),
    MirrorRemove(MirrorId),
    ChainSet(Box<ChainSet>),
    ChainRemove(ChainId),
}

const VERBS: &[&str] = &[
    "port-add",
    "port-remove",
    "port-set",
    "port-limit",
    "port-filter",
    "segment-limit",
    "offload-set",
    "offload-remove",
    "offload-enable",
    "mirror-set",
    "mirror-remove",
    "chain-set",
    "chain-remove",
];

/// Its arguments stay text until the verb is known, so an error names the place in them.
impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Request {
            verb: String,
            args: Box<RawValue>,
        }
        let Request { verb, args } = Request::deserialize(input)?;
        if !VERBS.contains(&&*verb) {
            return Err(D::Error::unknown_variant(&verb, VERBS));
        }
        Self::of(&verb, args.get()).map_err(D::Error::custom)
    }
}

impl Keep {
    fn of(verb: &str, args: &str) -> Result<Self, String> {
        fn read<A: DeserializeOwned>(args: &str) -> Result<A, String> {
            typed_at("args", args)
        }
        Ok(match verb {
            "port-add" => Self::PortAdd(read(args)?),
            "port-remove" => Self::PortRemove(read(args)?),
            "port-set" => Self::PortSet(read(args)?),
            "port-limit" => Self::PortLimit(read(args)?),
            "port-filter" => Self::PortFilter(read(args)?),
            "segment-limit" => Self::SegmentLimit(read(args)?),
            "offload-set" => Self::OffloadSet(read(args)?),
            "offload-remove" => Self::OffloadRemove(read(args)?),
            "offload-enable" => Self::OffloadEnable(read(args)?),
            "mirror-set" => Self::MirrorSet(read(args)?),
            "mirror-remove" => Self::MirrorRemove(read(args)?),
            "chain-set" => Self::ChainSet(read(args)?),
            "chain-remove" => Self::ChainRemove(read(args)?),
            other => return Err(format!("verb: {other:.40?} cannot be kept")),
        })
    }
}

/// Answer of `keep`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeepAnswer {
    /// Why the request is in force, but will not be repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
}

/// A kept request as `kept-list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptInfo {
    pub request: Keep,
    /// Why it is not in force; valed tries it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
}

/// Answer of `kept-list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptList {
    pub kept: Vec<KeptInfo>,
    /// The fault of the file of kept requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// The file of kept requests.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptFile {
    pub version: u32,
    #[serde(deserialize_with = "kept")]
    pub kept: Vec<Keep>,
}

/// The version of [`KeptFile`].
pub const KEPT_VERSION: u32 = 1;

fn kept<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Keep>, D::Error> {
    control_socket::at_most(input, MAX_KEPT)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<Keep, String> {
        control_socket::typed(&value.to_string())
    }

    #[test]
    fn a_request_is_its_verb_and_its_checked_arguments() {
        let id = json!({"switch": "vale0", "port": "a"});
        let request = read(json!({"verb": "port-remove", "args": id})).unwrap();
        assert!(matches!(request, Keep::PortRemove(_)));
        let again = serde_json::to_value(&request).unwrap();
        assert_eq!(again, json!({"verb": "port-remove", "args": id}));
        for (wrong, word) in [
            (json!({"verb": "port-list", "args": {}}), "port-list"),
            (json!({"verb": "keep", "args": {}}), "keep"),
            (json!({"verb": "port-remove"}), "args"),
            (
                json!({"verb": "port-remove", "args": {"switch": "vale0", "port": "A b"}}),
                "args.port: expected",
            ),
            (
                json!({"verb": "port-remove", "args": id, "more": 1}),
                "more",
            ),
        ] {
            let error = read(wrong.clone()).unwrap_err();
            assert!(error.contains(word), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_file_is_bounded() {
        let file = |count| {
            let one = json!({"verb": "port-remove", "args": {"switch": "vale0", "port": "a"}});
            let file = json!({"version": 1, "kept": vec![one; count]});
            control_socket::typed::<KeptFile>(&file.to_string())
        };
        assert_eq!(file(MAX_KEPT).unwrap().kept.len(), MAX_KEPT);
        let error = file(MAX_KEPT + 1).unwrap_err();
        assert!(error.contains("kept: more than 1024"), "{error}");
    }
}
