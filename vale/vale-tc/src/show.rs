// SPDX-License-Identifier: Apache-2.0
//! The counters of an interface.
use aya::maps::{Map, MapData, PerCpuArray};
use clickos_offload::Rule as Decision;
use serde_json::{Map as Object, Value, json};

use crate::attach::{Folders, InForce};
use crate::counter::{DROPS, Drop, FIRST_RULE, first_offload};
use crate::object::COUNTERS;
use crate::policy::Policy;

/// The counters of drops and the hits of each rule.
///
/// # Errors
/// The interface has no policy, or its counters cannot be read.
pub fn counters(folders: &Folders, interface: &str) -> Result<Value, String> {
    let InForce { index, policy } = folders.in_force(interface)?;
    let path = folders.maps_of(index).join(COUNTERS);
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let map = MapData::from_pin(&path).map_err(|e| failed(&e))?;
    let array: PerCpuArray<_, u64> = Map::PerCpuArray(map)
        .try_into()
        .map_err(|e: aya::maps::MapError| failed(&e))?;
    let mut values = Vec::new();
    for n in 0..array.len() {
        let of_cpus = array.get(&n, 0).map_err(|e| failed(&e))?;
        values.push(of_cpus.iter().sum());
    }
    Ok(document(interface, &policy, &values))
}

fn document(interface: &str, policy: &Policy, values: &[u64]) -> Value {
    let value = |n: usize| values.get(n).copied().unwrap_or_default();
    let drops = DROPS.iter().enumerate();
    let mut drops: Object<_, _> = drops
        .map(|(n, name)| ((*name).into(), json!(value(n))))
        .collect();
    // The name of `dropped_rogue` before 1.0, for one more release.
    drops.insert("dropped_role".into(), json!(value(Drop::Rogue as usize)));
    let mut document = json!({"interface": interface, "counters": drops});
    if let Some(rules) = &policy.rules {
        let rules = rules.iter().zip(FIRST_RULE..);
        let rules = rules.map(|(rule, n)| json!({"rule": rule, "hits": value(n)}));
        document["rules"] = rules.collect();
    }
    let mut at = first_offload(policy);
    for (name, rules) in policy.offload.tables() {
        let hits = |n: usize, rule: &Decision| json!({"rule": rule.to_string(), "hits": value(n)});
        let shown = rules.iter().zip(at..).map(|(rule, n)| hits(n, &rule.0));
        document["offload"][name] = shown.collect();
        at += rules.len();
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_counter() {
        let policy = json!({
            "mac": "02:00:00:00:00:01", "rules": [{"direction": "egress"}],
            "offload": {"operator": ["pass"], "guest": ["drop"]},
        });
        let policy = Policy::parse(&policy.to_string()).unwrap();
        let values: Vec<u64> = (100..).take(crate::counter::count(&policy)).collect();
        let found = document("vif1.0", &policy, &values);
        assert_eq!(found["counters"]["dropped_spoof"], 103);
        for name in ["dropped_rogue", "dropped_role"] {
            assert_eq!(found["counters"][name], 104, "{name}");
        }
        assert_eq!(found["rules"][0]["hits"], 107);
        assert_eq!(found["offload"]["operator"][0]["hits"], 108);
        assert_eq!(
            found["offload"]["guest"][0],
            json!({"rule": "drop", "hits": 109})
        );
    }
}
