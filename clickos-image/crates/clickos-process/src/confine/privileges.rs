// SPDX-License-Identifier: Apache-2.0
//! An identity of its own, without privileges and without a way to regain any.
use super::at;
use rustix::process::{DumpableBehavior, Gid, Uid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

/// Capability numbers that exist, with some to come; the kernel refuses the others.
const CAPABILITIES: u32 = 64;

/// Gives up every group, capability and way to a new one, and becomes `uid`.
pub(super) fn drop_all(uid: u32) -> Result<(), String> {
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
    drop_bounding_set()?;
    at("ambient capabilities", clear_ambient_capability_set())?;
    at("setgroups", set_thread_groups(&[]))?;
    at("setresgid", set_thread_res_gid(group, group, group))?;
    at("setresuid", set_thread_res_uid(user, user, user))?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    at("capabilities", set_capabilities(None, sets))?;
    at("no_new_privs", set_no_new_privs(true))?;
    at(
        "dumpable",
        set_dumpable_behavior(DumpableBehavior::NotDumpable),
    )
}

fn drop_bounding_set() -> Result<(), String> {
    let all = (0..CAPABILITIES).map(|bit| CapabilitySet::from_bits_retain(1 << bit));
    // An unknown number is an error: the kernel has no such capability.
    for capability in all.filter(|c| capability_is_in_bounding_set(*c).unwrap_or(false)) {
        at(
            "bounding set",
            remove_capability_from_bounding_set(capability),
        )?;
    }
    Ok(())
}
